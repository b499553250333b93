"""What is known of a code, beside the note that carries it."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from dsmigrate.convert.codes import REJECTED
from dsmigrate.convert.model import Form, Kind


@dataclass(frozen=True, slots=True)
class Example:
    """A source for which the code is said.

    Attributes:
        text: the source.
        name: what it is called, which tells its form.
        to: the form that it is converted to.
        given: values by key or argument, as of ``--set``.
        world_size: the number of processes, None where it is not given.
        carrying: ``--carry``.
        there: the text of the target that is edited, None where there is none.
        instead: the source for which the code is not said any more, "" for none.
    """

    text: str
    name: str = "accelerate.yaml"
    to: Form = Form.PLUGIN
    given: Mapping[str, Any] = field(default_factory=dict)
    world_size: int | None = None
    carrying: str = "auto"
    there: str | None = None
    instead: str = ""


@dataclass(frozen=True, slots=True)
class Explained:
    """A code: what it is about in a sentence, why it is said, and what to do.

    ``kinds`` are what its notes say of a key. ``is_checked`` says that ``check`` reports it: it is a fault of the
    source itself, whatever it is converted to. ``source`` names the code that the claims rest on.
    """

    code: str
    name: str
    kinds: tuple[Kind, ...]
    summary: str
    why: str
    advice: str
    source: tuple[str, ...]
    examples: tuple[Example, ...]
    is_checked: bool = False

    @property
    def rejects(self) -> bool:
        """Whether the consumer stops with an error."""
        return self.code in REJECTED


@functools.cache
def every_conversion() -> tuple[Explained, ...]:
    """Return every code of conversions, in the order of the codes."""
    from dsmigrate.convert.explained import fsdp, plugin, values, writing, yaml  # noqa: PLC0415 - they need this module

    found = (*yaml.CODES, *plugin.CODES, *writing.CODES, *values.CODES, *fsdp.CODES)
    return tuple(sorted(found, key=lambda one: one.code))
