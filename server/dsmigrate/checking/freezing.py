"""Whether a script beside a config freezes parts of the model, and what of it trains where the script writes that out."""

from __future__ import annotations

import contextlib
import functools
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dsmigrate.files.reading import read
from dsmigrate.files.text import SourceError

if TYPE_CHECKING:  # few checks know a model
    from dsmigrate.convert.python_calls import Call
    from dsmigrate.memory.trained import Adapter

_LARGEST = 1 << 20
_SCRIPTS = 40
_FREEZES = re.compile(
    r"\b(?:get_peft_model|LoraConfig|prepare_model_for_kbit_training)\s*\("
    r"|\brequires_grad_\s*\(\s*False\b|\.requires_grad\s*=\s*False\b"
)
_LORA = "LoraConfig"
_BASES = (
    ("4bit-double", re.compile(r"\bload_in_4bit\s*=\s*True\b[\s\S]*\bbnb_4bit_use_double_quant\s*=\s*True\b")),
    ("4bit", re.compile(r"\bload_in_4bit\s*=\s*True\b")),
    ("8bit", re.compile(r"\bload_in_8bit\s*=\s*True\b")),
)
_OTHERS = ("rank_pattern", "layers_to_transform", "layers_pattern", "target_parameters", "trainable_token_indices")
"""Arguments of ``LoraConfig`` by which more or less trains than by rank and targets."""
_RANK = 8
"""PEFT's default of ``r``."""


@dataclass(frozen=True, slots=True)
class Freezing:
    """A script that freezes parts, ``adapter`` where it writes its LoRA out, and how it keeps the rest, "" for unsaid."""

    script: str
    adapter: Adapter | None = None
    base: str = ""


def freezing(folder: Path) -> Freezing | None:
    """Return what scripts in a folder freeze, None where none does; other adapters than one are not written out."""
    scripts = []
    for script in sorted(folder.glob("*.py"))[:_SCRIPTS]:
        with contextlib.suppress(OSError):
            state = script.stat()
            scripts.append((script, state.st_mtime_ns, state.st_size))
    return _freezing(tuple(scripts)) if scripts else None


@functools.lru_cache(maxsize=8)
def _freezing(scripts: tuple[tuple[Path, int, int], ...]) -> Freezing | None:
    """Return the same for scripts with their times and sizes; an editor asks at each key."""
    found = [(script, text) for script, text in _texts(one[0] for one in scripts) if _FREEZES.search(text)]
    if not found:
        return None
    adapters = {adapter for _, text in found for adapter in _adapters(text)}
    script = next((script for script, text in found if _LORA in text), found[0][0])
    base = next((kind for kind, sign in _BASES if any(sign.search(text) for _, text in found)), "")
    return Freezing(script, adapters.pop() if len(adapters) == 1 else None, base)


def _texts(scripts: Iterable[Path]) -> Iterator[tuple[str, str]]:
    for script in scripts:
        try:
            yield script.name, read(script, _LARGEST).decode("utf-8", "replace")
        except SourceError:
            continue


def _adapters(text: str) -> Iterator[Adapter | None]:
    """Yield what each ``LoraConfig`` of a script comes to, None for one that is not written out."""
    from dsmigrate.convert.model import ConvertError  # noqa: PLC0415 - few projects have such a script
    from dsmigrate.convert.python_calls import script_of  # noqa: PLC0415

    if _LORA in text:
        try:
            yield from map(_adapter, script_of(text).calls(_LORA))
        except ConvertError:
            yield None


def _adapter(call: Call) -> Adapter | None:
    from dsmigrate.memory.trained import Adapter  # noqa: PLC0415 - few checks know a model

    def given(name: str, otherwise: object) -> Any:  # noqa: ANN401 - any literal
        return call.arguments[name].value if name in call.arguments else otherwise

    targets, saved = given("target_modules", None), given("modules_to_save", None) or []
    targets = [targets] if targets == "all-linear" else targets
    listed = all(
        isinstance(one, (list, tuple)) and all(isinstance(name, str) for name in one) for one in (targets, saved)
    )
    rank, magnitudes = given("r", _RANK), given("use_dora", False)
    known = (
        type(rank) is int and 0 < rank < 1 << 20 and isinstance(magnitudes, bool) and given("bias", "none") == "none"
    )
    if not (call.is_whole and listed and known) or any(given(name, None) for name in _OTHERS):
        return None
    return Adapter(rank, tuple(sorted(set(targets))), tuple(sorted(set(saved))), magnitudes)


def _is_name(value: object) -> bool:
    return isinstance(value, str)
