"""The facts of the forms: ``schemas/deepspeed/forms.toml``, read when first asked for."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from dsmigrate.schemas_location import schema_toml

MISSING = object()
"""Stands for an ``absent`` that is not there: Accelerate writes nothing."""


@dataclass(frozen=True, slots=True)
class Field:
    """A key of ``deepspeed_config:`` and argument of ``DeepSpeedPlugin``; schemas/README.md explains the fields."""

    name: str
    path: tuple[str, ...]
    type: str
    absent: object = MISSING
    needs: str = ""
    only_for: str = ""
    lost_in_yaml: bool = False


@functools.cache
def _load() -> Mapping[str, Any]:
    return schema_toml("deepspeed/forms.toml")


def accelerate() -> Mapping[str, Any]:
    """Return the facts of Accelerate as they are written."""
    facts: Mapping[str, Any] = _load()["accelerate"]
    return facts


def fsdp() -> Mapping[str, Any]:
    """Return the facts of FSDP as they are written."""
    facts: Mapping[str, Any] = _load()["fsdp"]
    return facts


def transformers() -> Mapping[str, Any]:
    """Return the facts of Transformers as they are written."""
    facts: Mapping[str, Any] = _load()["transformers"]
    return facts


@functools.cache
def fields() -> Mapping[str, Field]:
    """Return the fields of Accelerate by name, in the order in which ``accelerate config`` asks."""
    return {
        name: Field(
            name=name,
            path=tuple(record["path"].split(".")),
            type=record["type"],
            absent=record.get("absent", MISSING),
            needs=record.get("with", ""),
            only_for=record.get("only_for", ""),
            lost_in_yaml=bool(record.get("lost_in_yaml")),
        )
        for name, record in accelerate()["fields"].items()
    }
