"""Whether a script beside a config freezes parts of the model, and what of it trains where it writes that out."""

from __future__ import annotations

import ast
import contextlib
import functools
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TypeGuard

from dsmigrate.files.reading import read
from dsmigrate.files.text import SourceError

if TYPE_CHECKING:  # few checks know a model
    from dsmigrate.convert.python_calls import Call
    from dsmigrate.memory.trained import Adapter

_LARGEST = 1 << 20
_SCRIPTS = 40
_FREEZES = re.compile(
    r"\b(?:get_peft_model|LoraConfig|prepare_model_for_kbit_training)\s*\("
    r"|\bfrom\s+peft\s+import\s+(?:\([^)]*|[^\n(]*)\w*Config\b"
    r"|\brequires_grad_\s*\(\s*False\b|\.requires_grad\s*=\s*False\b|\.freeze_\w+\s*\("
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
    """A script that freezes parts; ``adapter`` is the LoRA that it writes out, ``base`` how the rest is kept or ""."""

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
            script = script_of(text)
        except ConvertError:
            yield None
            return
        perhaps = [node for node in ast.walk(script.tree) if _decides(node)]
        for call in script.calls(_LORA):
            line = script.line_of(call)
            yield None if any(one.lineno <= line <= (one.end_lineno or 0) for one in perhaps) else _adapter(call)


def _decides(node: ast.AST) -> TypeGuard[ast.If | ast.IfExp]:
    """Return whether it depends on a condition what a node does, other than on being started as a script."""
    return isinstance(node, (ast.If, ast.IfExp)) and "__name__" not in ast.dump(node.test)


def _adapter(call: Call) -> Adapter | None:
    from dsmigrate.memory.trained import Adapter  # noqa: PLC0415 - few checks know a model

    found = {name: one.value for name, one in call.arguments.items()}
    targets, saved = found.get("target_modules"), found.get("modules_to_save") or []
    targets = [targets] if targets == "all-linear" else targets
    if not (call.is_whole and _are_names(targets) and _are_names(saved)) or any(map(found.get, _OTHERS)):
        return None
    rank, magnitudes = found.get("r", _RANK), found.get("use_dora", False)
    if (
        not isinstance(rank, int)
        or isinstance(rank, bool)
        or not 0 < rank < 1 << 20
        or not isinstance(magnitudes, bool)
    ):
        return None
    if found.get("bias", "none") != "none":
        return None
    return Adapter(rank, tuple(sorted(set(targets))), tuple(sorted(set(saved))), magnitudes)


def _are_names(value: object) -> TypeGuard[list[str] | tuple[str, ...]]:
    return isinstance(value, (list, tuple)) and all(isinstance(one, str) for one in value)
