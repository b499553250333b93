"""DS140: a value that a JSON Schema of the project does not allow."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from dsmigrate.document import Object
from dsmigrate.languages import mark, say
from dsmigrate.rules.context import Context
from dsmigrate.rules.model import Effect, Example, Facts, Finding, OwnSchema, Severity
from dsmigrate.rules.registry import rule
from dsmigrate.rules.types._values import shown_value

if TYPE_CHECKING:  # few projects have schemas
    from jsonschema.exceptions import ValidationError

_MOST = 100
"""So many findings of a schema are told."""
_LONGEST = 200
_SAID: Mapping[str, str] = {
    "type": mark("{value} is not of type {wanted}"),
    "enum": mark("{value} is not one of {wanted}"),
    "const": mark("{value} is not {wanted}"),
    "minimum": mark("{value} is less than {wanted}"),
    "maximum": mark("{value} is more than {wanted}"),
    "exclusiveMinimum": mark("{value} is not above {wanted}"),
    "exclusiveMaximum": mark("{value} is not below {wanted}"),
    "multipleOf": mark("{value} is not a multiple of {wanted}"),
    "pattern": mark("{value} does not match {wanted}"),
    "minLength": mark("{value} is shorter than {wanted}"),
    "maxLength": mark("{value} is longer than {wanted}"),
    "minItems": mark("{value} has fewer entries than {wanted}"),
    "maxItems": mark("{value} has more entries than {wanted}"),
}
"""What a value breaks, by the keyword of JSON Schema; of other keywords the keyword is said."""
_TEAM = OwnSchema(
    "team.schema.json",
    {
        "properties": {
            "team": {"type": "object", "properties": {"seed": {"type": "integer"}}, "additionalProperties": False}
        }
    },
)


@rule(
    "DS140",
    "own-schema",
    summary="A value that a JSON Schema of the project does not allow.",
    why="DeepSpeed ignores the keys that an application puts into the config, whatever is in them. A project that has "
    "a JSON Schema for them names it under `schemas` in `[tool.dsmigrate.check]`, or the file does with `$schema` and "
    "a path. What DeepSpeed reads itself is held against it only as far as it names the key. Nothing is fetched: a "
    "`$ref` has to lead into the same schema.",
    severity=Severity.ERROR,
    effect=Effect.RISKY,
    source=("https://json-schema.org/",),
    examples=(
        Example('{"train_batch_size": 8, "team": {"seed": «"one"»}}', facts=Facts(schemas=(_TEAM,))),
        Example('{"train_batch_size": 8, "team": {«"sed"»: 1}}', facts=Facts(schemas=(_TEAM,))),
        Example('{"train_batch_size": 8, "team": {"seed": 1}}', facts=Facts(schemas=(_TEAM,))),
        Example('{"train_batch_size": 8, "team": {"seed": 1}}'),
    ),
)
def check(context: Context) -> Iterator[Finding]:
    """Yield a finding for each place that a schema does not allow, and for each schema that cannot be used."""
    if context.root is None:
        return
    for schema in context.facts.schemas:
        if schema.problem:
            yield _unread(context, schema, schema.problem)
        else:
            yield from _of_schema(context, context.root, schema)


def _of_schema(context: Context, root: Object, schema: OwnSchema) -> Iterator[Finding]:
    from jsonschema.exceptions import SchemaError  # noqa: PLC0415 - few projects have schemas
    from jsonschema.validators import Draft202012Validator, validator_for  # noqa: PLC0415
    from referencing import Registry  # noqa: PLC0415
    from referencing.exceptions import Unresolvable  # noqa: PLC0415

    kind = validator_for(schema.content, default=Draft202012Validator)
    named = schema.content.get("properties", {})
    values = {
        name: value for name, value in root.value().items() if name in named or context.known.key((name,)) is None
    }
    values.pop("$schema", None)
    try:
        kind.check_schema(schema.content)
        errors = kind(schema.content, registry=Registry()).iter_errors(values)
        for _, error in zip(range(_MOST), errors, strict=False):
            yield _finding(context, schema, error)
    except (SchemaError, Unresolvable, RecursionError) as error:
        yield _unread(context, schema, str(error).partition("\n")[0][:_LONGEST])


def _finding(context: Context, schema: OwnSchema, error: ValidationError) -> Finding:
    path = tuple(error.absolute_path)
    wrong = error.validator in {"additionalProperties", "propertyNames"} and isinstance(error.instance, Mapping)
    if wrong:
        known: Any = error.schema.get("properties", {}) if isinstance(error.schema, Mapping) else {}
        path = (*path, next((name for name in error.instance if name not in known), ""))
    place = path if not wrong or context.document.node_at(path) is not None else path[:-1]
    return context.finding(
        place,
        say("{message} ({schema})", message=_said(error, str(path[-1]) if path else ""), schema=schema.name),
        part="key" if wrong else "value",
    )


def _said(error: ValidationError, name: str) -> str:
    """Return what a value breaks; ``name`` is that of the key that is one too many, where that is it."""
    value, wanted = shown_value(error.instance), shown_value(error.validator_value)
    keyword = str(error.validator)
    if keyword in {"additionalProperties", "propertyNames"}:
        return say("the schema has no key `{name}`", name=name)
    if keyword == "required":
        missing = [f"`{one}`" for one in error.validator_value if one not in error.instance]
        return say("lacks {names}", names=say(", ").join(missing))
    if keyword in _SAID:
        return say(_SAID[keyword], value=value, wanted=wanted)
    return say("{value} breaks `{keyword}`", value=value, keyword=keyword)


def _unread(context: Context, schema: OwnSchema, problem: str) -> Finding:
    return context.finding(
        ("$schema",),
        say("the schema {schema} cannot be used: {problem}", schema=schema.name, problem=problem),
        part="value",
        severity=Severity.WARNING,
    )
