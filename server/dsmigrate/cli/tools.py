"""The commands as tools for agents (Model Context Protocol): their own arguments, and their JSON.

Tools read and answer. Options that write files, or change how an answer is printed, are left to people.
"""

from __future__ import annotations

import asyncio
import importlib
import json
import os
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import click
from jsonschema import Draft202012Validator

from dsmigrate.schemas_location import schema_json

NAMES = ("check", "explain", "diff", "memory", "recommend", "convert", "migrate")
FOLDER = "folder"
_NOT_FOR_AGENTS = frozenset({
    "--exit-zero", "--fix", "--force", "--format", "--git-driver", "--git-setup", "--jobs", "--output", "--plot",
    "--quiet", "--statistics", "--textconv", "--write",
})  # fmt: skip
_SEVERAL_ANSWERS = frozenset({"diff"})
"""Tools whose options decide about the schema of the answer."""
_IN_FOLDER = {"type": "string", "description": "The folder from which relative paths count; an absolute path."}
Schema = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Answer:
    """What a tool gives back: a JSON document, or what went wrong."""

    document: dict[str, Any] | None
    error: str = ""


def description(name: str) -> str:
    """Return what a tool does."""
    return " ".join(str(_command(name).help).split()).replace("\b", "")


@cache
def input_schema(name: str) -> Schema:
    """Return the JSON Schema of the arguments of a tool."""
    taken = dict(_taken(name))
    required = [key for key, parameter in taken.items() if parameter.required]
    properties = {key: _schema(parameter) for key, parameter in taken.items()}
    return {
        "type": "object",
        "properties": {**properties, FOLDER: _IN_FOLDER},
        "required": required,
        "additionalProperties": False,
    }


def output_schema(name: str) -> Schema | None:
    """Return the JSON Schema of the answer of a tool, None where there are several."""
    if name in _SEVERAL_ANSWERS:
        return None
    content = schema_json(f"output/{name}.schema.json")
    assert isinstance(content, dict)  # noqa: S101 - our own file
    return content


async def call(name: str, arguments: Mapping[str, Any]) -> Answer:
    """Run the command of a tool in a process of its own, which ends when the call is cancelled."""
    problem = _problem(name, arguments)
    if problem:
        return Answer(None, problem)
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "dsmigrate", name, *_words(name, arguments)),
        cwd=arguments.get(FOLDER, "."),
        env={**os.environ, "PYTHONUTF8": "1"},
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        out, said = await process.communicate()
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    try:
        document = json.loads(out)
    except ValueError:
        return Answer(None, said.decode("utf-8", "replace").strip() or f"exit code {process.returncode}")
    return Answer(document)


def _problem(name: str, arguments: Mapping[str, Any]) -> str:
    """Return why a tool cannot be called with these arguments, "" if it can."""
    found = next(Draft202012Validator(input_schema(name)).iter_errors(dict(arguments)), None)
    if found is not None:
        return f"{'.'.join(map(str, found.absolute_path)) or name}: {found.message}"
    folder = Path(arguments.get(FOLDER, "."))
    return "" if folder.is_dir() else f"{folder}: no such folder"


def _words(name: str, arguments: Mapping[str, Any]) -> Iterator[str]:
    """Yield the words of the command line, options first."""
    taken = dict(_taken(name))
    yield "--format=json"
    for key, value in arguments.items():
        if isinstance(taken.get(key), click.Option):
            if value is True:
                yield _long(taken[key])
            elif value is not False:
                yield from (f"{_long(taken[key])}={one}" for one in (value if isinstance(value, list) else [value]))
    yield "--"
    for key, parameter in taken.items():
        if isinstance(parameter, click.Argument) and key in arguments:
            value = arguments[key]
            yield from (str(one) for one in (value if isinstance(value, list) else [value]))


def _command(name: str) -> click.Command:
    command = importlib.import_module(f"dsmigrate.cli.{name}").command
    assert isinstance(command, click.Command)  # noqa: S101 - tells mypy what the modules hold
    return command


def _taken(name: str) -> Iterator[tuple[str, click.Parameter]]:
    """Yield the arguments and options that a tool takes, by their names there."""
    for parameter in _command(name).params:
        if isinstance(parameter, click.Argument):
            yield parameter.name or "", parameter
        elif not _NOT_FOR_AGENTS & set(parameter.opts):
            yield _long(parameter).removeprefix("--").replace("-", "_"), parameter


def _long(option: click.Parameter) -> str:
    return [name for name in option.opts if name.startswith("--")][-1]


def _schema(parameter: click.Parameter) -> Schema:
    kind = _kind(parameter.type)
    if parameter.nargs == -1 or parameter.multiple:
        kind = {"type": "array", "items": kind}
    elif isinstance(parameter, click.Option) and parameter.is_flag:
        kind = {"type": "boolean"}
    said = getattr(parameter, "help", None)
    return {**kind, "description": said} if said else kind


def _kind(kind: click.ParamType[Any]) -> Schema:
    if isinstance(kind, click.Choice):
        return {"enum": list(kind.choices)}
    if isinstance(kind, click.IntRange | click.FloatRange):
        low = "exclusiveMinimum" if kind.min_open else "minimum"
        bounds = {low: kind.min, "maximum": kind.max}
        whole = isinstance(kind, click.IntRange)
        return {
            "type": "integer" if whole else "number",
            **{bound: value for bound, value in bounds.items() if value is not None},
        }
    return {"type": {click.INT: "integer", click.FLOAT: "number"}.get(kind, "string")}
