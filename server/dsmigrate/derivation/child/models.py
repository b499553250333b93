"""Pydantic models of either version as facts: fields, defaults, ranges, aliases, deprecations and extra keys."""

from __future__ import annotations

import inspect
import sys
import typing
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

from dsmigrate.derivation.child.annotations import facts_of, ordered, plain_value

Model: TypeAlias = Any
"""A model class of either version of pydantic."""
RANGES = {"ge": "minimum", "gt": "exclusiveMinimum", "le": "maximum", "lt": "exclusiveMaximum"}
POLICIES = {"forbid": "reject", "ignore": "ignore", "allow": "ignore"}


@dataclass(frozen=True)
class Field:
    """One field of a model of either pydantic version."""

    name: str
    alias: str
    annotation: Any
    required: bool
    default: Any
    may_be_none: bool
    bounds: dict[str, Any]
    extra: dict[str, Any]


def is_model(target: type) -> bool:
    """Return whether ``target`` is a pydantic model."""
    return isinstance(getattr(target, "model_fields", getattr(target, "__fields__", None)), dict)


def fields(model: Model) -> list[Field]:
    """Return the fields of a model."""
    return fields_2(model) if hasattr(model, "model_fields") else fields_1(model)


def fields_2(model: Model) -> list[Field]:
    """Return the fields of a model of pydantic 2."""
    found = []
    for name, info in model.model_fields.items():
        bounds = {
            word: getattr(mark, short)
            for mark in info.metadata
            for short, word in RANGES.items()
            if hasattr(mark, short)
        }
        default = None if info.is_required() else info.get_default(call_default_factory=True)
        extra = info.json_schema_extra if isinstance(info.json_schema_extra, dict) else {}
        found.append(
            Field(
                name=name,
                alias=info.alias or name,
                annotation=info.annotation,
                required=info.is_required(),
                default=default,
                may_be_none=False,
                bounds=bounds,
                extra={"deprecated": getattr(info, "deprecated", None), **extra},
            )
        )
    return found


def fields_1(model: Model) -> list[Field]:
    """Return the fields of a model of pydantic 1, whose field types hide the annotation."""
    hints = typing.get_type_hints(model)
    found = []
    for name, field in model.__fields__.items():
        info = field.field_info
        bounds = {
            word: getattr(info, short) for short, word in RANGES.items() if getattr(info, short, None) is not None
        }
        default = None if field.required else field.get_default()
        found.append(
            Field(
                name=name,
                alias=field.alias,
                annotation=hints.get(name, field.outer_type_),
                required=bool(field.required),
                default=default,
                may_be_none=field.allow_none,
                bounds=bounds,
                extra=dict(info.extra),
            )
        )
    return found


def nested_models(model: type) -> dict[str, type]:
    """Return the models of fields that are sections, by field name and by alias."""
    found: dict[str, type] = {}
    for field in fields(model):
        inner = section_model(field.annotation)
        if inner is not None:
            found |= {field.name: inner, field.alias: inner}
    return found


def section_model(annotation: object) -> type | None:
    """Return the model that an annotation names, alone or in a union."""
    if isinstance(annotation, type) and is_model(annotation):
        return annotation
    for part in typing.get_args(annotation):
        if isinstance(part, type) and is_model(part):
            return part
    return None


def unknown_keys(model: Model) -> str:
    """Return what a model does with a key it does not know."""
    if hasattr(model, "model_config"):
        extra = model.model_config.get("extra", "ignore")
    else:
        extra = getattr(model.__config__, "extra", "ignore")
    return POLICIES[str(getattr(extra, "value", extra))]


def model_source(model: type, root: Path) -> str:
    """Return the file of a model, relative to the release."""
    return Path(inspect.getsourcefile(sys.modules[model.__module__]) or "").relative_to(root).as_posix()


def model_facts(model: type, path: str, root: Path) -> dict[str, dict[str, Any]]:
    """Return the facts of every key below the section ``path`` that ``model`` judges, and of the sections in it."""
    source = model_source(model, root)
    spelled = {field.name: field.alias for field in fields(model)}
    found: dict[str, dict[str, Any]] = {}
    for field in fields(model):
        key = f"{path}.{field.alias}"
        facts = facts_of(field.annotation)
        if field.may_be_none and facts["type"] is not None:
            facts["type"] = ordered({*facts["type"], "null"})
        inner = section_model(field.annotation)
        default = json_default(field.default)
        if not field.required and default is not UNSPELLED and not (inner and default is not None):
            facts["default"] = default
        facts |= {word: plain_value(value) for word, value in field.bounds.items()}
        if field.alias != field.name:
            facts["field"] = field.name
        facts |= deprecation(field, path, spelled)
        facts |= {"validated": "pydantic", "source": source}
        if inner is not None:
            facts["unknownKeys"] = unknown_keys(inner)
            found |= model_facts(inner, key, root)
        elif "object" in (facts["type"] or ()):
            facts["unknownKeys"] = "ignore"
        found[key] = facts
    return found


def deprecation(field: Field, path: str, spelled: dict[str, str]) -> dict[str, Any]:
    """Return ``deprecated`` and the keys that replace the field, spelled as a config spells them."""
    if not field.extra.get("deprecated"):
        return {}
    named = str(field.extra.get("new_param") or "").split(" or ")
    replacing = [f"{path}.{spelled.get(name, name)}" for name in named if name]
    return {"deprecated": True} | ({"replacedBy": replacing} if replacing else {})


UNSPELLED: Any = object()
"""A default that no JSON value spells."""


def json_default(value: object) -> Any:  # noqa: ANN401 - a JSON value
    """Return a default as JSON, or UNSPELLED."""
    value = plain_value(value)
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, Path):
        return str(value)
    if isinstance(value, list | tuple):
        parts = [json_default(part) for part in value]
        return UNSPELLED if UNSPELLED in parts else parts
    if isinstance(value, dict):
        made = {str(key): json_default(part) for key, part in value.items()}
        return UNSPELLED if UNSPELLED in made.values() else made
    return UNSPELLED
