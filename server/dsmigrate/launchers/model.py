"""What travels between the stages: the scripts that were converted, launch lines, and what is decided about them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import PurePosixPath

from dsmigrate.codemod.model import Kind, Start
from dsmigrate.launchers.shell import Command, Word

TORCHRUN, LAUNCH_MODULE, DEEPSPEED, ACCELERATE, PYTHON, OTHER = (
    "torchrun", "torch.distributed.launch", "deepspeed", "accelerate", "python", "other",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Script:
    """A converted entry script: its path from the project's root, and how the original started its processes.

    ``unique``: no other file of the project has its name. ``module``: its dotted name from the root.
    """

    path: str
    start: Start
    unique: bool = True

    @property
    def name(self) -> str:
        """The file name."""
        return PurePosixPath(self.path).name

    @property
    def stem(self) -> str:
        """The last part of its dotted name."""
        return PurePosixPath(self.path).stem


@dataclass(frozen=True, slots=True)
class Launch:
    """A command that starts a script.

    ``head`` is the first and the last index of the words that name the program: ``python -u``, ``torchrun``, ``python
    -m torch.distributed.run``. ``script`` is the index of the script or module, ``module`` says which; ``options`` the
    words between head and script, ``arguments`` those behind it. ``managers`` are srun, mpirun in front, ``strangers``
    words in front that may be programs nobody knows here.
    """

    command: Command
    kind: str
    head: tuple[int, int]
    script: int
    module: bool
    managers: tuple[str, ...] = ()
    strangers: tuple[str, ...] = ()
    flags: tuple[str, ...] = ()

    @property
    def options(self) -> tuple[Word, ...]:
        """The words between the program and the script; ``-m`` is not among them."""
        words = self.command.words[self.head[1] + 1 : self.script]
        return words[:-1] if self.module and words and words[-1].text in {"-m", "--module"} else words

    @property
    def arguments(self) -> tuple[Word, ...]:
        """The script's own arguments."""
        return self.command.words[self.script + 1 :]

    @property
    def in_front(self) -> tuple[Word, ...]:
        """What stands before the program: assignments, ``srun``, ``nohup``."""
        return self.command.words[: self.head[0]]


@dataclass(frozen=True, slots=True)
class Verdict:
    """What is decided about a launch. ``words`` replace those from ``first`` to ``last``; None where they stay."""

    code: str
    kind: Kind
    message: str
    reason: str
    first: int = 0
    last: int = -1
    words: tuple[str, ...] | None = None
