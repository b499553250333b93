"""Where the schemas are, what SchemaStore is told of them, and how a validator's errors read as paths."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import jsonschema

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "schemas" / "deepspeed"
CONTRIBUTION = ROOT / "schemas" / "schemastore" / "contribution.json"
GOOD = Path(__file__).with_name("good")
NAME = "deepspeed-config"
SUFFIX = ".schema.json"

Schema = dict[str, Any]
Config = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Failure:
    """One thing that a validator has against a config: where, and by which keyword of the schema.

    An unknown key is named by the path itself.
    """

    path: str
    keyword: str
    message: str


def paths() -> dict[str, Path]:
    """Every schema by its name: ``deepspeed-config`` for the newest release, ``deepspeed-config-0.16`` for a minor."""
    found = [FOLDER / f"{NAME}{SUFFIX}", *(FOLDER / "versions").glob(f"*{SUFFIX}")]
    return {path.name.removesuffix(SUFFIX): path for path in sorted(found)}


def names() -> list[str]:
    """Every name, the newest release first."""
    return list(paths())


@cache
def schema(name: str = NAME) -> Schema:
    """Read a schema."""
    content: Schema = json.loads(paths()[name].read_text(encoding="utf-8"))
    return content


def for_release(minor: str | None) -> str:
    """Return the name of the schema of a minor release, of the newest for None."""
    return NAME if minor is None else f"{NAME}-{minor}"


@cache
def validator(name: str = NAME) -> jsonschema.Draft7Validator:
    """Return a validator for a schema."""
    return jsonschema.Draft7Validator(schema(name))


def contribution() -> dict[str, Any]:
    """Read what goes to SchemaStore beside the schemas: the entry of its catalog and the options of its checker."""
    content: dict[str, Any] = json.loads(CONTRIBUTION.read_text(encoding="utf-8"))
    return content


def good_configs() -> Iterator[tuple[str, str | None, Path]]:
    """Yield name, minor release (None for the newest) and file of every config that must pass."""
    for path in sorted(GOOD.rglob("*.json")):
        folder = path.relative_to(GOOD).parent.as_posix()
        yield path.stem, None if folder == "." else folder, path


def failures(checker: jsonschema.Draft7Validator, config: object) -> list[list[Failure]]:
    """Return a list per error: the error first, then what its alternatives said."""
    return [list(_told(error)) for error in checker.iter_errors(config)]


def _told(error: jsonschema.ValidationError) -> Iterator[Failure]:
    place = [str(part) for part in error.absolute_path]
    unknown = sorted(error.instance.keys() - error.schema.get("properties", {})) if _is_about_keys(error) else [None]
    for key in unknown:
        yield Failure(".".join([*place, *([key] if key is not None else [])]), str(error.validator), error.message)
    for inner in error.context or ():
        yield from _told(inner)


def _is_about_keys(error: jsonschema.ValidationError) -> bool:
    return error.validator == "additionalProperties" and error.validator_value is False


def nodes(schema: object, path: tuple[str | int, ...] = ()) -> Iterator[tuple[tuple[str | int, ...], Schema]]:
    """Yield every subschema with its place; values that only look like schemas (defaults, snippets) are left out."""
    if not isinstance(schema, dict):
        return
    yield path, schema
    for keyword in ("properties", "patternProperties", "definitions"):
        for name, inner in schema.get(keyword, {}).items():
            yield from nodes(inner, (*path, keyword, name))
    for keyword in ("additionalProperties", "items", "not", "if", "then", "else", "propertyNames", "contains"):
        yield from nodes(schema.get(keyword), (*path, keyword))
    for keyword in ("allOf", "anyOf", "oneOf"):
        for index, inner in enumerate(schema.get(keyword, ())):
            yield from nodes(inner, (*path, keyword, index))
