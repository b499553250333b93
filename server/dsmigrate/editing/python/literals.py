"""Finds the dictionaries of a script that DeepSpeed gets as its config."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from dsmigrate.document import Document, parse
from dsmigrate.editing.python.masking import Masked, mask
from dsmigrate.editing.python.tokens import Token, tokens

_PASSED = frozenset({"config", "config_params", "hf_ds_config", "deepspeed", "ds_config", "deepspeed_config"})
"""Arguments that take a config: of deepspeed.initialize, of Accelerate's plugin, of TrainingArguments and others."""
_TAKERS = frozenset({"HfDeepSpeedConfig", "DeepSpeedConfig", "HfTrainerDeepSpeedConfig"})
"""Classes whose first argument is a config."""
_NAME = re.compile(r"(?i)(^|_)(ds|deepspeed|zero\d?)(_|$)")
_WORTH_A_LOOK = re.compile(r"(?i)deepspeed|ds_config")


@dataclass(frozen=True)
class Literal:
    """A dictionary from its opening brace at ``start`` to behind its closing one at ``end``.

    ``is_whole`` is False where something is unpacked into it, so that keys may be there that nobody sees.
    """

    start: int
    end: int
    masked: Masked

    @property
    def is_whole(self) -> bool:
        """Whether all its keys are written out."""
        return not self.masked.is_partial

    @cached_property
    def document(self) -> Document:
        """The dictionary as a config: everything else of the script is blank, so that offsets are those of the script.

        Expressions stand as numbers at the offsets in ``masked.unknown``.
        """
        return parse(self.masked.text)


def literals(text: str) -> tuple[Literal, ...]:
    """Return the config dictionaries of a script, in order; of a script that never speaks of DeepSpeed none."""
    if not _WORTH_A_LOOK.search(text):
        return ()
    found = [token for token in tokens(text) if token.kind not in {"comment", "newline"}]
    passed = _names_passed(found)
    made = (mask(text, found, index) for index in _starts(found, passed))
    return tuple(Literal(masked.start, masked.end, masked) for masked in made)


def _names_passed(found: Sequence[Token]) -> set[str]:
    """Return the names that are given to an argument or class that takes a config."""
    names: set[str] = set()
    for index, token in enumerate(found[:-2]):
        after, then = found[index + 1], found[index + 2]
        if token.kind != "name" or then.kind != "name":
            continue
        if (token.text in _PASSED and after.text == "=") or (token.text in _TAKERS and after.text == "("):
            names.add(then.text)
    return names


def _starts(found: Sequence[Token], passed: set[str]) -> Iterator[int]:
    """Yield the index of each opening brace of a config."""
    inside_until = -1
    for index, token in enumerate(found):
        if token.text != "{" or index < 2 or token.start < inside_until:
            continue
        before, name = found[index - 1], found[index - 2]
        if name.kind != "name":
            continue
        given = before.text == "=" and (name.text in _PASSED or name.text in passed or _NAME.search(name.text))
        if given or (before.text == "(" and name.text in _TAKERS):
            inside_until = _closing(found, index)
            yield index


def _closing(found: Sequence[Token], index: int) -> int:
    depth = 0
    for token in found[index:]:
        depth += {"open": 1, "close": -1}.get(token.kind, 0)
        if depth == 0:
            return token.end
    return found[-1].end
