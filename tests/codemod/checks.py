"""What every test of the codemod does: migrate a script, and hold the result to what any migration promises.

``migrate`` fails a test at once where the result does not compile, where a second run would change it again, where a
line is gone that no change speaks of, or where the config is not one that DeepSpeed loads as it stands.
"""

from __future__ import annotations

import argparse
import ast
import json
import shlex
from dataclasses import dataclass, replace
from textwrap import dedent, indent
from typing import Any

from dsmigrate.codemod.model import Change, FileResult, Kind, Options, Status
from tests.support.migrating import migrate_source, uncovered

_CONVERTED = {Status.CONVERTED, Status.CONVERTED_WITH_TODOS}


@dataclass(frozen=True, slots=True)
class Migrated:
    """A migrated script with what the tests ask of it."""

    before: str
    result: FileResult

    @property
    def code(self) -> str:
        """The converted script."""
        assert self.result.new_source is not None, self.told()
        return self.result.new_source.decode()

    @property
    def config(self) -> dict[str, Any]:
        """The DeepSpeed config."""
        assert self.result.config is not None, self.told()
        return self.result.config

    @property
    def changes(self) -> tuple[Change, ...]:
        """The report."""
        return self.result.changes

    def told(self) -> str:
        """The report as text, for failure messages."""
        return "\n".join(f"{c.code} {c.kind.value} {c.line}-{c.end_line} {c.message}" for c in self.changes)

    def said(self, code: str, line: str, kind: Kind | None = None) -> Change:
        """The change with this code that speaks of the original line that holds this text."""
        numbers = [n for n, text in enumerate(self.before.splitlines(), 1) if line in text]
        assert numbers, f"{line!r} is not in the script"
        for change in self.changes:
            there = any(change.line <= number <= change.end_line for number in numbers)
            if there and change.code == code and kind in (None, change.kind):
                return change
        raise AssertionError(f"no {code} for {line!r} in lines {numbers}\n{self.told()}")

    def silent(self, *codes: str) -> None:
        """Check that none of these codes is in the report."""
        assert not [c for c in self.changes if c.code in codes], self.told()

    def section(self, name: str) -> str:
        """The converted lines of one section of ``script``, without their indentation."""
        found: list[str] = []
        inside = False
        for line in self.code.splitlines():
            if line.strip().startswith("# section "):
                inside = line.strip() == f"# section {name}"
            elif inside:
                found.append(line)
        return dedent("\n".join(found)).strip("\n") + "\n"


def migrate(source: str, **options: Any) -> Migrated:
    """Migrate a script and check what every migration promises."""
    return _migrated(dedent(source).lstrip("\n"), Options(**options))


def migrate_example(source: str) -> Migrated:
    """Migrate an example, with the options that its first line names."""
    return _migrated(source, options_of(source))


def options_of(source: str) -> Options:
    """The options in the first line of an example, ``# options: --zero-stage 3 --config '{…}'``."""
    first = source.partition("\n")[0]
    parser = argparse.ArgumentParser()
    parser.add_argument("--zero-stage", type=int)
    parser.add_argument("--offload")
    parser.add_argument("--nvme-path")
    parser.add_argument("--optimizer")
    parser.add_argument("--precision")
    parser.add_argument("--checkpoints")
    parser.add_argument("--target-version")
    parser.add_argument("--config", type=json.loads)
    words = shlex.split(first.removeprefix("# options: ")) if first.startswith("# options: ") else []
    given = {name: value for name, value in vars(parser.parse_args(words)).items() if value is not None}
    return replace(Options(), **given)


def _migrated(source: str, options: Options) -> Migrated:
    ast.parse(source)
    result = migrate_source(source.encode(), path="train.py", options=options)
    migrated = Migrated(source, result)
    if result.new_source is None:
        assert result.status not in _CONVERTED
        assert result.diff == ""
        assert result.config is None
        return migrated
    assert result.status in _CONVERTED, migrated.told()
    assert (result.status is Status.CONVERTED_WITH_TODOS) == any(c.kind is Kind.TODO for c in result.changes)
    compile(migrated.code, "train.py", "exec", dont_inherit=True)
    again = migrate_source(result.new_source, path="train.py", options=options)
    assert (again.status, again.diff) == (Status.UNCHANGED, ""), again.diff
    gone = uncovered(result, source.encode())
    assert not gone, [source.splitlines()[line - 1] for line in gone]
    _check_config(migrated)
    return migrated


def _check_config(migrated: Migrated) -> None:
    text = json.dumps(migrated.config, allow_nan=False)
    assert json.loads(text) == migrated.config
    assert '"auto"' not in text
    assert isinstance(migrated.config["gradient_clipping"], int | float)


# -- one section at a time ---------------------------------------------------------------------------------------------

_NET = """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Linear(32, 64)
        self.head = nn.Linear(64, 10)

    def forward(self, x):
        return self.head(F.relu(self.body(x)))
"""
_IMPORTS = """
import argparse
import contextlib
import copy
import os
import shutil

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, DistributedSampler

from dataset import Digits
"""
_OPTIONS = """
parser = argparse.ArgumentParser()
parser.add_argument("--batch-size", type=int, default=64)
parser.add_argument("--lr", type=float, default=3e-4)
parser.add_argument("--epochs", type=int, default=10)
parser.add_argument("--clip", type=float, default=1.0)
parser.add_argument("--accum", type=int, default=4)
parser.add_argument("--amp", action="store_true")
parser.add_argument("--distributed", action="store_true")
parser.add_argument("--resume", default="")
parser.add_argument("--output", default="runs")
"""
_SECTIONS = {
    "group": """
        dist.init_process_group("nccl")
        local_rank = int(os.environ["LOCAL_RANK"])
        rank = dist.get_rank()
        torch.cuda.set_device(local_rank)
        """,
    "data": """
        dataset = Digits("train")
        train_loader = DataLoader(dataset, batch_size=args.batch_size, sampler=DistributedSampler(dataset))
        """,
    "wrap": """
        model = DDP(Net().cuda())
        """,
    "optimizer": """
        optimizer = torch.optim.AdamW(model.parameters(), lr=args.lr)
        """,
    "resume": "",
    "loop": """
        for x, y in train_loader:
            loss = F.cross_entropy(model(x.cuda()), y.cuda())
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        """,
    "end": """
        dist.destroy_process_group()
        """,
}


def script(*, imports: str = "", options: str = "", helpers: str = "", order: str = "", **sections: str) -> str:
    """Give a training script in which sections can be replaced.

    Its sections are ``group``, ``data``, ``wrap``, ``optimizer``, ``resume``, ``loop`` and ``end``; ``imports`` and
    ``options`` come on top of the usual ones, ``helpers`` are functions above ``main``.
    """
    unknown = set(sections) - set(_SECTIONS)
    assert not unknown, unknown
    parts = [
        _IMPORTS.strip("\n"),
        dedent(imports).strip("\n"),
        "\n" + _OPTIONS.strip("\n"),
        dedent(options).strip("\n"),
    ]
    parts += ["\n", _NET.strip("\n"), "\n"]
    if helpers:
        parts += ["# section helpers", dedent(helpers).strip("\n"), "\n"]
    parts += ["# section main", "def main():", "    args = parser.parse_args()"]
    names = order.split() if order else list(_SECTIONS)
    for name in names:
        parts.append(f"    # section {name}")
        text = dedent(sections.get(name, _SECTIONS[name])).strip("\n")
        if text:
            parts.append(indent(text, "    "))
    parts += ["    # section rest", "    return args", "\n", 'if __name__ == "__main__":', "    main()", ""]
    return "\n".join(part for part in parts if part)


def convert(*, to: dict[str, Any] | None = None, **parts: str) -> Migrated:
    """Migrate ``script(**parts)`` with the options ``to``; it has to be converted."""
    migrated = migrate(script(**parts), **(to or {}))
    assert migrated.result.status in _CONVERTED, migrated.told()
    return migrated


def check_section(name: str, before: str, after: str, *, to: dict[str, Any] | None = None, **parts: str) -> Migrated:
    """Check that a section of ``script`` becomes ``after``; gives the migrated script for more questions."""
    migrated = convert(to=to, **{name: before}, **parts)
    assert migrated.section(name) == dedent(after).strip("\n") + "\n", migrated.told()
    return migrated


def check_kept(name: str, text: str, *, to: dict[str, Any] | None = None, **parts: str) -> Migrated:
    """Check that a section stays as it is in a script that is converted."""
    return check_section(name, text, text, to=to, **parts)


def check_noop(source: str, **options: Any) -> None:
    """Check that a script does not concern the codemod: unchanged, with nothing to say."""
    migrated = migrate(source, **options)
    assert migrated.result.status is Status.UNCHANGED, migrated.told()
    assert migrated.changes == ()


def check_refused(source: str, code: str, line: str, message: str = "", **options: Any) -> None:
    """Check that a script is refused with a code, at the line that holds this text, with a message that says this."""
    migrated = migrate(source, **options)
    assert migrated.result.status is Status.REFUSED, migrated.told()
    assert [change.code for change in migrated.changes] == [code], migrated.told()
    change = migrated.said(code, line, Kind.REFUSED)
    assert message in change.message
