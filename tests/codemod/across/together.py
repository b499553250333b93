"""Migrates small projects, and holds the results to what any migration promises."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from textwrap import dedent
from typing import Any

from pyflakes.checker import Checker
from pyflakes.messages import UndefinedName

from dsmigrate.codemod.across import SetResult, migrate_set
from dsmigrate.codemod.model import Kind, Options, Status

ENTRY = """
    import engine
    import torch
    import torch.distributed as dist
    from torch.nn.parallel import DistributedDataParallel

    def main():
        dist.init_process_group("nccl")
        model = DistributedDataParallel(torch.nn.Linear(4, 4).cuda())
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        engine.train_one_epoch(model, loader, optimizer)

    main()
    """
ENGINE = """
    import torch.nn.functional as F

    def train_one_epoch(net, loader, optimizer):
        for x, y in loader:
            loss = F.mse_loss(net(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    """


@dataclass(frozen=True, slots=True)
class Project:
    """A migrated project: its files before, and the result."""

    before: dict[str, str]
    result: SetResult

    def after(self, path: str) -> str:
        """The text of a file after the migration."""
        found = self.result.entry if path == next(iter(self.before)) else self.result.modules.get(path)
        source = found.new_source if found is not None else None
        return self.before[path] if source is None else source.decode()

    def told(self) -> str:
        """Every decision, for failure messages."""
        results = (self.result.entry, *self.result.modules.values())
        return "\n".join(f"{r.path}:{c.line} {c.code} {c.kind.value} {c.message}" for r in results for c in r.changes)


def migrate(files: dict[str, str], **options: Any) -> Project | None:
    """Migrate a project whose first file is the entry script; None where the training is in that file alone."""
    before = {path: dedent(text).lstrip("\n") for path, text in files.items()}
    read: list[str] = []

    def reader(texts: dict[str, str]) -> Any:
        def read_file(path: str) -> bytes | None:
            read.append(path)
            return texts[path].encode() if path in texts else None

        return read_file

    entry = next(iter(before))
    result = migrate_set(reader(before), entry, shown=lambda path: path, options=Options(**options))
    if result is None:
        return None
    project = Project(before, result)
    after = {path: project.after(path) for path in before}
    for path, text in after.items():
        compile(text, path, "exec", dont_inherit=True)
        assert undefined(text) <= undefined(before[path]), path
    if result.entry.status in {Status.CONVERTED, Status.CONVERTED_WITH_TODOS}:
        again = migrate_set(reader(after), entry, shown=lambda path: path, options=Options(**options))
        assert again is None or (again.entry.status is Status.UNCHANGED and not again.modules)
    return project


def convert(files: dict[str, str], **options: Any) -> Project:
    """Migrate a project that has to be converted."""
    project = migrate(files, **options)
    assert project is not None
    assert project.result.entry.status in {Status.CONVERTED, Status.CONVERTED_WITH_TODOS}, project.told()
    return project


def refused(files: dict[str, str], code: str, message: str = "", **options: Any) -> None:
    """Check that a project is left alone, with this code and words."""
    project = migrate(files, **options)
    assert project is not None
    assert project.result.entry.status is Status.REFUSED, project.told()
    assert not project.result.modules
    (change,) = project.result.entry.changes
    assert (change.code, change.kind) == (code, Kind.REFUSED)
    assert message in change.message


def undefined(text: str) -> set[str]:
    """Names that a module uses without defining them."""
    return {str(m.message_args[0]) for m in Checker(ast.parse(text)).messages if isinstance(m, UndefinedName)}
