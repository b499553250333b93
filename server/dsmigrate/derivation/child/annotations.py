"""Type annotations of pydantic fields as JSON types."""

from __future__ import annotations

import enum
import pathlib
import types
import typing
from typing import Any

NAMES = ("boolean", "integer", "number", "string", "array", "object", "null")
"""JSON types in the order in which they are written."""
PLAIN: dict[Any, str] = {
    bool: "boolean",
    int: "integer",
    float: "number",
    str: "string",
    list: "array",
    tuple: "array",
    set: "array",
    dict: "object",
    type(None): "null",
    pathlib.Path: "string",
}


def facts_of(annotation: object) -> dict[str, Any]:
    """Return ``type`` (None when it is unknown), and ``enum`` and ``items`` where the annotation tells."""
    origin = typing.get_origin(annotation)
    if origin is typing.Annotated:
        return facts_of(typing.get_args(annotation)[0])
    if origin in {typing.Union, types.UnionType}:
        return union([facts_of(part) for part in typing.get_args(annotation)])
    if origin is typing.Literal:
        return from_values(list(typing.get_args(annotation)))
    if origin in {list, tuple, set}:
        parts = [part for part in typing.get_args(annotation) if part is not Ellipsis]
        inner = union([facts_of(part) for part in parts]) if parts else {}
        return {"type": ["array"]} | ({"items": inner} if inner.get("type") else {})
    if origin is dict:
        return {"type": ["object"]}
    if isinstance(annotation, type) and issubclass(annotation, enum.Enum):
        return from_values([member.value for member in annotation])
    if annotation in PLAIN:
        return {"type": [PLAIN[annotation]]}
    if isinstance(annotation, type) and (hasattr(annotation, "model_fields") or hasattr(annotation, "__fields__")):
        return {"type": ["object"]}
    return {"type": None}


def union(parts: list[dict[str, Any]]) -> dict[str, Any]:
    """Return what a value is that may be any of ``parts``; an enum holds only when every part but null has one."""
    if any(part["type"] is None for part in parts):
        return {"type": None}
    found: dict[str, Any] = {"type": ordered({name for part in parts for name in part["type"]})}
    valued = [part for part in parts if part["type"] != ["null"]]
    if valued and all("enum" in part for part in valued):
        found["enum"] = [value for part in valued for value in part["enum"]]
    inner = [part["items"] for part in parts if "items" in part]
    if len(inner) == 1:
        found["items"] = inner[0]
    return found


def from_values(values: list[Any]) -> dict[str, Any]:
    """Return the facts of a closed list of values."""
    plain: list[Any] = []
    for value in values:
        spelled = plain_value(value)
        if spelled not in plain:
            plain.append(spelled)
    return {"type": ordered({json_type(value) for value in plain}), "enum": plain}


def plain_value(value: object) -> Any:  # noqa: ANN401 - a JSON value, or what has none
    """Return an enum member, or a number of a subclass of int, as JSON writes it."""
    if isinstance(value, enum.Enum):
        return plain_value(value.value)
    for kind in (bool, int, float, str):
        if isinstance(value, kind):
            return value if kind is bool else kind(value)
    return value


def json_type(value: object) -> str:
    """Return the JSON type of a Python value; an unknown one is a string, as JSON can only name it."""
    return next((name for kind, name in PLAIN.items() if isinstance(value, kind)), "string")


def ordered(names: set[str]) -> list[str]:
    """Return JSON types in their fixed order."""
    return [name for name in NAMES if name in names]
