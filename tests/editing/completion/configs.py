"""Readable configs to type in: real ones, and ones made of the knowledge."""

from __future__ import annotations

import json
import random
from typing import Any

from dsmigrate.document import parse
from dsmigrate.knowledge import Consumer, Knowledge
from dsmigrate.rules import Facts, Settings, check
from tests.document import texts
from tests.rules.agreement.valid import valid

SETTINGS = (
    *[Settings()] * 4,
    Settings(consumer=Consumer.TRANSFORMERS),
    Settings(consumer=Consumer.ACCELERATE),
    Settings(facts=Facts(world_size=8)),
    Settings(facts=Facts(world_size=6)),
    Settings(version="0.16.9"),
    Settings(version="0.12.6"),
    Settings(version="0.9.5"),
)
"""The newest release for plain DeepSpeed more often than the others."""
_MEANINGLESS = ("some", "out", "x")
_PLACEHOLDER = "DS020"


def real() -> list[str]:
    """Return the readable texts of the corpus without those with placeholders, which any switch makes errors."""
    return [text for text in texts.corpus().values() if parse(text).is_readable and not _is_template(text)]


def _is_template(text: str) -> bool:
    return any(finding.code == _PLACEHOLDER for finding in check(parse(text)))


def made(seed: int, count: int, known: Knowledge) -> list[str]:
    """Return so many texts of configs with keys of all sections, laid out in several ways."""
    rng = texts.seeded(seed)
    return [_written(rng, valid(rng, known)[0]) for _ in range(count)]


def _written(rng: random.Random, config: dict[str, Any]) -> str:
    """Return a config as text, without texts that mean nothing: they are wrong as soon as somebody reads them."""
    return json.dumps(_without_nonsense(config), indent=rng.choice([None, 2, 4, "\t"]))


def _without_nonsense(value: object) -> object:
    if isinstance(value, dict):
        return {name: _without_nonsense(inner) for name, inner in value.items() if not _is_nonsense(inner)}
    return value


def _is_nonsense(value: object) -> bool:
    return value in _MEANINGLESS or (isinstance(value, list) and any(item in _MEANINGLESS for item in value))
