"""Where the results of a run go: beside the scripts, or into a directory of their own."""

from __future__ import annotations

import ast
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from dsmigrate.files import syntax
from dsmigrate.files.paths import resolved
from dsmigrate.files.reading import read, read_if_there
from dsmigrate.files.text import SourceError, decode
from dsmigrate.files.writing import Write
from dsmigrate.migration.configs import ConfigFile, config_at, config_path, means_otherwise
from dsmigrate.migration.job import Job, Outcome, relative


class PlacementError(ValueError):
    """The results cannot be placed without overwriting something; nothing was written."""


@dataclass(frozen=True, slots=True)
class Placed:
    """One outcome with where its script and its config go; ``config`` is None where there is none.

    ``patched_in``: the folder from which the patch names its files, where that is another one than the current.
    """

    outcome: Outcome
    script: Path
    config: ConfigFile | None
    root: Path
    patched_in: Path | None = None

    @property
    def config_is_in_the_way(self) -> bool:
        """Whether a different config lies where this one goes."""
        return self.config is not None and self.config.differs


def place(outcomes: Sequence[Outcome], output: Path | None) -> list[Placed]:
    """Decide the places of all outcomes; in ``output``, each script keeps its path below its root.

    Raises PlacementError when two results have one place, an original would be overwritten, or a config that is
    already there cannot be read.
    """
    placed = [_place(outcome, output) for outcome in outcomes]
    if output is not None:
        _check_output([item for item in placed if item.outcome.result.new_source is not None])
    return placed


def writes(placed: Sequence[Placed], *, force: bool, in_place: bool) -> list[Write]:
    """Return the set of writes.

    Raises PlacementError, naming each file, when something different is there already and ``force`` is off.
    """
    found: dict[str, Write] = {}
    in_the_way: list[Path] = []
    for item in placed:
        new = item.outcome.result.new_source
        if new is None:  # with modules around it, a script may stay as it is and still have a config
            for write in _config_writes(item, in_the_way):
                found.setdefault(os.path.realpath(write.path), write)
            continue
        former = _read(item.script) if item.outcome.is_new or not in_place else item.outcome.source
        if not in_place and former not in {None, new}:
            in_the_way.append(item.script)
        found[os.path.realpath(item.script)] = Write(item.script, new, former, item.root)
        for write in _config_writes(item, in_the_way):
            found.setdefault(os.path.realpath(write.path), write)
    if in_the_way and not force:
        names = ", ".join(dict.fromkeys(map(str, in_the_way)))
        raise PlacementError(
            f"{names}: already there with other content; --force replaces it, --config-name NAME gives the config "
            "another name. Nothing was written"
        )
    return list(found.values())


def would_replace(placed: Sequence[Placed]) -> tuple[str, ...]:
    """Say which configs of the project, there already or to come, the written ones replace in the originals' place."""
    given = {path for item in placed for path in (resolved(item.outcome.job.path), *item.outcome.looked_at)}
    found: dict[str, None] = {}
    for item in placed:
        job, config = item.outcome.job, item.outcome.result.config
        if config is None or item.config is None or item.script == job.path:
            continue
        own = config_path(job)
        if (former := _former(own)) is not None and means_otherwise(former, config):
            found[
                f"{own} is there and differs: {item.config.path} would replace it in its place, --config-name NAME "
                "leaves it"
            ] = None
        others = [path.name for path in sorted(job.path.parent.glob("*.py")) if resolved(path) not in given]
        others = [name for name in others if _WRAPPER in (_former(job.path.parent / name) or b"")]
        if others:
            shown = ", ".join(others[:_SHOWN]) + (" …" if len(others) > _SHOWN else "")
            found[
                f"{own.name} would be the name of another script's config too, where that is converted in a run of its "
                f"own ({shown}): convert them in one run, or give --config-name NAME"
            ] = None
    return tuple(found)


_WRAPPER = b"DistributedDataParallel"
_SHOWN = 4


def _former(path: Path) -> bytes | None:
    try:
        return read(path)
    except SourceError:
        return None


def imports_beside(outcome: Outcome) -> bool:
    """Whether a script imports a file or folder that lies beside it, so that it runs nowhere else."""
    if outcome.job.source is not None:
        return False
    try:
        tree = syntax.parse(decode(outcome.source).text)
    except SourceError:
        return False
    folder = outcome.job.path.parent
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.level:
            return True
        named = [node.module or ""] if isinstance(node, ast.ImportFrom) else []
        named += [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        for name in (name.partition(".")[0] for name in named):
            if (folder / f"{name}.py").is_file() or any((folder / name).glob("*.py")):
                return True
    return False


def _config_writes(item: Placed, in_the_way: list[Path]) -> Iterator[Write]:
    config = item.config
    if config is None or not (config.is_new or config.differs):
        return
    if config.differs:
        in_the_way.append(config.path)
    yield Write(config.path, config.text.encode(), config.former, item.root)


def _place(outcome: Outcome, output: Path | None) -> Placed:
    job, config = outcome.job, outcome.result.config
    script = job.path if output is None else output / _below_root(job)
    root = job.root if output is None else output
    path = script.parent / job.options.config_name
    try:
        return Placed(outcome, script, None if config is None else config_at(path, config), root)
    except SourceError as error:
        raise PlacementError(f"{path}: {error.message}") from None
    except ValueError as error:
        raise PlacementError(f"{path}: the config is not strict JSON: {error}") from None


def _below_root(job: Job) -> Path:
    way = relative(job.path, job.root)
    return Path(job.path.name if way is None else way)


def _check_output(placed: Sequence[Placed]) -> None:
    originals = {os.path.realpath(item.outcome.job.path) for item in placed}
    taken: dict[str, Job] = {}
    for item in placed:
        target = os.path.realpath(item.script)
        job = item.outcome.job
        if target in originals:
            raise PlacementError(f"--output would overwrite the original {item.script}; --write does that on purpose")
        if target in taken:
            raise PlacementError(
                f"{taken[target].path} and {job.path} would both become {item.script}: give their common directory, "
                "or one --output for each"
            )
        taken[target] = job


def _read(path: Path) -> bytes | None:
    try:
        return read_if_there(path)
    except SourceError as error:
        raise PlacementError(f"{path}: {error.message}") from None
