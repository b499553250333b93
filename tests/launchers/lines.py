"""Converts the text of a launcher for a project of a few scripts."""

from __future__ import annotations

from dataclasses import dataclass
from textwrap import dedent

from dsmigrate.codemod.model import Change, Options, Start
from dsmigrate.launchers.convert import Converted, convert
from dsmigrate.launchers.model import Script

SPAWN = Script("spawn.py", Start(spawned=True, count="--gpus", default="gpus"))
"""It called mp.spawn with nprocs=args.gpus, whose default is torch.cuda.device_count()."""
FOUR = Script("four.py", Start(spawned=True, count="4"))
SWITCH = Script("main.py", Start(spawned=True, count="gpus", switches=("--multiprocessing-distributed",)))
"""ImageNet's way: it spawned where the option is given."""
PLAIN = Script("train.py", Start(local_rank=True))
BARE = Script("bare.py", Start())
SLURM = Script("slurm.py", Start(slurm=True))
MPI = Script("mpi.py", Start(mpi=True))
DEEP = Script("tools/pkg/deep.py", Start(spawned=True, count="2"))
SCRIPTS = (SPAWN, FOUR, SWITCH, PLAIN, BARE, SLURM, MPI, DEEP)
FILES = frozenset({*(script.path for script in SCRIPTS), "other/train.py", "scripts/run.sh"})


@dataclass(frozen=True, slots=True)
class Done:
    """What became of a launcher."""

    text: str
    changes: tuple[Change, ...]

    @property
    def decisions(self) -> list[tuple[int, str, str]]:
        """Line, code and kind of every decision, in order."""
        return [(change.line, change.code, change.kind.value) for change in self.changes]

    @property
    def said(self) -> str:
        """Every message and reason."""
        return "\n".join(f"{change.message} ({change.reason})" for change in self.changes)


def converted(text: str, kind: str = "shell", path: str = "run.sh", launcher: str = "keep") -> Done:
    """Convert the text, and see to it that a second time changes nothing."""
    text = dedent(text).removeprefix("\n")
    done = _convert(text, kind, path, launcher)
    assert _convert(done.text, kind, path, launcher).text == done.text, "a second time changes it again"
    lines = {line for change in done.changes for line in range(change.line, change.end_line + 1)}
    for number, (old, new) in enumerate(zip(text.split("\n"), done.text.split("\n"), strict=False), start=1):
        assert old == new or number in lines or text.count("\n") != done.text.count("\n"), (
            f"nothing speaks of line {number}"
        )
    return Done(done.text, done.changes)


def _convert(text: str, kind: str, path: str, launcher: str) -> Converted:
    return convert(text, kind, path, SCRIPTS, exists=lambda way: way in FILES, options=Options(launcher=launcher))
