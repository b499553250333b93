"""The parts as texts."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

PARTS = (
    "engine",
    "launch",
    "config",
    "parameters",
    "regions",
    "optimizers",
    "buffers",
    "gradients",
    "scaler",
    "native_scaler",
    "pieces",
    "checkpoints",
    "directories",
    "copies",
)
"""In the order in which they stand in ``ds_compat.py``; a part imports from those before it alone."""


@cache
def sources() -> Mapping[str, str]:
    """The source of each part by its name."""
    folder = Path(__file__).parent
    return MappingProxyType({part: (folder / f"{part}.py").read_text(encoding="utf-8") for part in PARTS})
