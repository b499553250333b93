"""Real config files as cases, with "auto" filled as the Trainer fills it before DeepSpeed sees the config."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from dsmigrate.document import Object, parse
from dsmigrate.knowledge import Consumer
from tests.schemas.judge import AUTO, filled

from .case import Case
from .judging import Answer, judge

SUFFIXES = frozenset({".json", ".conf", ".hjson"})


def cases(folder: Path) -> Iterator[Case]:
    """Yield a case per config file of a folder: for the Trainer when it holds an "auto", else for DeepSpeed itself."""
    for path in sorted(folder.rglob("*")):
        if path.suffix in SUFFIXES and path.is_file():
            text = path.read_text(encoding="utf-8-sig", errors="replace")
            name = path.relative_to(folder).as_posix()
            root = parse(text).root
            config = root.value() if isinstance(root, Object) else None
            if isinstance(config, dict) and leftover(config):
                yield Case(name, filled(config), None, (), text, Consumer.TRANSFORMERS)
            else:
                yield Case(name, None, None, (), text)


def answers(asked: Sequence[Case]) -> list[Answer]:
    """Return what the consumer and then DeepSpeed say of each case."""
    found = judge(asked)
    return [
        Answer("config", error) if (error := refused_before(case)) else answer
        for case, answer in zip(asked, found, strict=True)
    ]


def refused_before(case: Case) -> str:
    """Return what the Trainer says before DeepSpeed sees the config; "" when it lets it pass."""
    if case.consumer is Consumer.DEEPSPEED or case.text is None:
        return ""
    try:
        json.loads(case.text)
    except ValueError as error:
        return f"JSONDecodeError: {error}"
    left = leftover(case.config or {})
    return f"ValueError: `{left}` not found in kwargs. Please specify `{left}` without `auto`" if left else ""


def leftover(value: Any, path: str = "") -> str:
    """Return the path of the first "auto", "" when there is none."""
    if value == AUTO:
        return path
    if isinstance(value, dict):
        found = (leftover(inner, f"{path}.{name}" if path else str(name)) for name, inner in value.items())
        return next((one for one in found if one), "")
    return ""
