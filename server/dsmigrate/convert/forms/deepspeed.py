"""Reads and writes ``ds_config.json``."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from dsmigrate.convert import tree
from dsmigrate.convert.model import Config, ConvertError, Form, Place, Settings
from dsmigrate.document import Document, EditError, Object, Path, TextEdit, apply, parse, render_path
from dsmigrate.document import edits as editing
from dsmigrate.knowledge import Consumer
from dsmigrate.languages import say


def read_deepspeed(text: str, consumer: Consumer) -> Settings:
    """Return what a config says; raises ConvertError, with the place, for text that DeepSpeed does not read."""
    document = parse(text)
    for problem in document.problems:
        if problem.is_fatal:
            raise ConvertError.at(problem.message, text, problem.start)
    value = document.value()
    if not isinstance(value, dict):
        raise ConvertError.at(say("the config is no object"), text, 0)
    for path, number in tree.leaves(value):
        if isinstance(number, float) and not math.isfinite(number):
            where = places_of(document).get(path)
            message = say("{key} is {value}, which no JSON can hold", key=render_path(path), value=number)
            raise ConvertError.at(message, text, where.start if where else 0)
    return Settings(Form.DEEPSPEED, consumer, value, places=places_of(document), text=text)


def places_of(document: Document) -> dict[Path, Place]:
    """Return the place of every member and item of a document."""
    found: dict[Path, Place] = {}
    for path, member, node in document.walk():
        if path and node is not None:
            key = member.key if member is not None else None
            start, end = (key.start, key.end) if key is not None else (node.start, node.start)
            found[path] = Place(start, end, node.start, node.end)
    return found


def write_deepspeed(config: Config, there: str | None) -> str:
    """Return the text of a config: a new one, or ``there`` with what differs changed, comments and layout kept.

    Raises ConvertError for a text that is there and cannot be edited.
    """
    if there is None or not there.strip():
        return f"{tree.dumped(config, 2)}\n"
    document = parse(there)
    return apply(there, edits_to(document, config))


def edits_to(document: Document, config: Mapping[str, Any]) -> tuple[TextEdit, ...]:
    """Return the edits that make a document say ``config``; raises ConvertError where its text does not allow them."""
    if document.root is not None and not isinstance(document.root, Object):
        raise ConvertError.at(say("the target is no object"), document.text, document.root.start)
    done: tuple[TextEdit, ...] = ()
    original = document.text
    try:
        for _ in range(10_000):
            step = _step(document, config, ())
            if step is None:
                return done
            done = editing.compose(original, done, step)
            document = parse(apply(document.text, step))
    except EditError as error:
        raise ConvertError(say("the target cannot be edited: {error}", error=error)) from None
    raise ConvertError(say("the target cannot be edited: it has too many differences"))


def _step(document: Document, wanted: Mapping[str, Any], path: Path) -> tuple[TextEdit, ...] | None:
    """Return the edits for the first difference of the section at ``path``; None where there is none."""
    node = document.node_at(path)
    there = node.value() if isinstance(node, Object) else {}
    for name in there:
        if name not in wanted:
            return editing.remove(document, (*path, name))
    previous: str | None = None
    for name, value in wanted.items():
        here = (*path, name)
        if name not in there:
            after = previous if previous is not None and document.member_at((*path, previous)) else None
            return editing.insert(document, here, value, after=after)
        previous = name
        if isinstance(value, dict) and value and isinstance(there[name], dict) and there[name]:
            step = _step(document, value, here)
            if step is not None:
                return step
        elif not tree.same(there[name], value):
            return editing.replace(document, here, value)
    return None
