"""Hints at the end of a section: the defaults of decisive keys that it leaves out."""

from __future__ import annotations

from collections.abc import Iterator

from dsmigrate.document import Object
from dsmigrate.editing.derived import built_class, unmet
from dsmigrate.editing.inlay.model import Hint, Kind, named
from dsmigrate.editing.urls import url_for_key, url_for_type
from dsmigrate.editing.view import View
from dsmigrate.knowledge import MISSING, Status
from dsmigrate.knowledge.wording import json_text
from dsmigrate.languages import say
from dsmigrate.rules.context import UNKNOWN, Context
from dsmigrate.rules.scheduler._shared import default_peak
from dsmigrate.rules.typed import Section, built_type, section

_SECTIONS: tuple[Section, ...] = ("optimizer", "scheduler")


def hints(view: View, start: int, end: int) -> Iterator[Hint]:
    """Yield the hints whose place lies in a range."""
    context = view.context
    if context.root is not None and len(context.root):
        yield from _of_section(view, context.root, "", start, end)
    for entry in context.entries:
        if isinstance(entry.node, Object) and entry.key is not None and entry.key.status is Status.PRESENT:
            yield from _of_section(view, entry.node, entry.key.alias_of or entry.key.path, start, end)
    for name in _SECTIONS:
        yield from _of_params(view, name, start, end)


def _of_section(view: View, node: Object, path: str, start: int, end: int) -> Iterator[Hint]:
    if not start <= node.inner_end <= end:
        return
    context = view.context
    for key in view.known.children(path):
        if not key.decisive or key.status is not Status.PRESENT or context.has(key.path):
            continue
        if unmet(context, key, tuple(key.path.split("."))) is not None:
            continue
        value = context.value(key.path)
        if value is not MISSING and value is not UNKNOWN:
            yield _hint(node, key.name, value, key.decisive, url_for_key(key, view.known))


def _of_params(view: View, name: Section, start: int, end: int) -> Iterator[Hint]:
    context = view.context
    facts = built_type(context, name)
    params = context.document.node_at((name, "params"))
    if facts is None or section(context, name) is None or not isinstance(params, Object):
        return
    if not start <= params.inner_end <= end or _is_of_torch(context, name):
        return
    for parameter in facts.parameters.values():
        default = default_peak(context, parameter)
        if parameter.decisive and default is not MISSING and params.get(parameter.name) is None:
            yield _hint(params, parameter.name, default, parameter.decisive, url_for_type(facts))


def _is_of_torch(context: Context, name: Section) -> bool:
    """Return whether the class of torch is built instead, whose defaults are others."""
    facts = built_type(context, name)
    return facts is not None and built_class(context, facts).startswith("torch.")


def _hint(node: Object, name: str, value: object, why: str, url: str) -> Hint:
    return Hint(
        node.inner_end,
        named(name, say(": {value} (default)", value=json_text(value))),
        say("{why} [Documentation]({url})", why=why, url=url),
        Kind.DEFAULT,
    )
