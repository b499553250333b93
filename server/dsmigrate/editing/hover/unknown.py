"""What a hover says about a key that no release knows."""

from __future__ import annotations

from collections.abc import Iterator

from dsmigrate.editing.hover.footer import footer
from dsmigrate.editing.hover.links import Links
from dsmigrate.editing.hover.target import Target
from dsmigrate.editing.hover.told import REFUSED, is_told
from dsmigrate.editing.markdown import code
from dsmigrate.editing.urls import url_for_key, url_for_type
from dsmigrate.editing.view import View
from dsmigrate.knowledge import Key, TypeFacts
from dsmigrate.knowledge.paths import ANY_ELEMENT
from dsmigrate.languages import say
from dsmigrate.rules.typed import nearest_names


def parts(view: View, links: Links, target: Target) -> Iterator[str]:
    """Yield what becomes of a key that DeepSpeed does not know, and what may have been meant.

    Nothing about what lies below an unknown key, about values, and where a diagnostic says it.
    """
    if target.on_value or is_told(view, target, REFUSED):
        return
    if target.is_parameter:
        yield from _parameter(view, links, target)
        return
    section = view.known.key(target.path[:-1]) if len(target.path) > 1 else None
    if len(target.path) > 1 and (section is None or not section.is_section):
        return
    yield from _key(view, links, target, section)


def type_parts(view: View, target: Target) -> Iterator[str]:
    """Yield that no release builds what a section names, and what may have been meant."""
    name = target.value.value() if target.value is not None else None
    if not isinstance(name, str) or name == "auto" or is_told(view, target, REFUSED):
        return
    kind = str(target.path[0])
    what = say("an optimizer") if kind == "optimizer" else say("a scheduler")
    yield say("No DeepSpeed release since 0.9 builds {what} {code}.", what=what, code=code(name))
    every = view.known.optimizers() if kind == "optimizer" else view.known.schedulers()
    near = nearest_names(name, [facts.name for facts in every])
    if near:
        yield say("Near it: {near}.", near=say(", ").join(f"`{name}`" for name in near))


def _key(view: View, links: Links, target: Target, section: Key | None) -> Iterator[str]:
    where = say("at the top level") if section is None else say("in `{section_path}`", section_path=section.path)
    yield say("No DeepSpeed release since 0.9 reads a key {code} {where}.", code=code(target.name), where=where)
    rejects = section is not None and section.rejects_unknown_keys
    yield (say("DeepSpeed rejects a config that holds it.") if rejects else say("It is silently ignored."))
    path = "" if section is None else section.path
    near = view.known.nearest(target.name, path) if ANY_ELEMENT not in path else []
    if near:
        yield say("Near it: {near}.", near=say(", ").join(f"`{name}`" for name in near))
    if section is not None:
        yield footer(view, links, section.path, url_for_key(section, view.known))


def _parameter(view: View, links: Links, target: Target) -> Iterator[str]:
    facts = target.type_facts
    section = str(target.path[0])
    if facts is None:
        yield say(
            "What {code} does depends on `{section}.type`, which names no type that is known.",
            code=code(target.name),
            section=section,
        )
        return
    yield say("`{facts_name}` takes no parameter {code}.", facts_name=facts.name, code=code(target.name))
    yield say("It is silently ignored.") if facts.takes_anything else _refusal(facts)
    near = nearest_names(target.name, facts.parameters)
    if near:
        yield say("Near it: {near}.", near=say(", ").join(f"`{name}`" for name in near))
    yield footer(view, links, facts.name, url_for_type(facts))


def _refusal(facts: TypeFacts) -> str:
    return say("Building the {kind} fails with a TypeError.", kind=facts.kind)
