"""Everything that is derived of one release."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dsmigrate.derivation import classes
from dsmigrate.derivation.errors import DerivationError
from dsmigrate.derivation.run import run_config_code

Facts = dict[str, Any]
KINDS = {"optimizers": ("names", "classes", "engine"), "schedulers": ("names", "classes")}
"""The files beside those of the keys, and the parts of each."""


@dataclass(frozen=True)
class Release:
    """The facts of one release: keys by path; names and classes of optimizers and schedulers.

    ``engine`` of the optimizers is what the engine itself takes out of ``optimizer.params``.
    """

    keys: Mapping[str, Facts]
    optimizers: Mapping[str, Mapping[str, Facts]]
    schedulers: Mapping[str, Mapping[str, Facts]]


def derive(release: str, root: Path) -> Release:
    """Return the facts of the release unpacked at ``root``; raises DerivationError naming release and module."""
    if not (root / "deepspeed" / "runtime" / "config.py").is_file():
        raise DerivationError(f"DeepSpeed {release}: {root} holds no deepspeed/runtime/config.py")
    try:
        told = run_config_code(release, root)
        return Release(told["keys"], classes.optimizers(root) | {"engine": told["engine"]}, classes.schedulers(root))
    except (OSError, SyntaxError, KeyError) as error:
        raise DerivationError(f"DeepSpeed {release}: {type(error).__name__}: {error}") from error


def derive_all(roots: Mapping[str, Path], processes: int) -> dict[str, Release]:
    """Return the facts of many releases, each in a child process of its own, ``processes`` at a time."""
    names: Iterable[str] = roots
    with ThreadPoolExecutor(max_workers=max(processes, 1)) as pool:
        return dict(zip(names, pool.map(lambda name: derive(name, roots[name]), names), strict=True))
