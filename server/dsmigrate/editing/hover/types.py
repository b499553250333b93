"""What a hover says about optimizer and scheduler types, and about their parameters."""

from __future__ import annotations

from collections.abc import Iterator

from dsmigrate.editing.hover import here
from dsmigrate.editing.hover.footer import footer
from dsmigrate.editing.hover.keys import history, notes, related
from dsmigrate.editing.hover.target import Target
from dsmigrate.editing.hover.told import REFUSED, is_told
from dsmigrate.editing.hover.values import suggested, written
from dsmigrate.editing.markdown import flow
from dsmigrate.editing.urls import url_for_type
from dsmigrate.editing.view import View
from dsmigrate.knowledge import MISSING, Parameter, TypeFacts, wording
from dsmigrate.knowledge.versions import order
from dsmigrate.languages import say

_LONGEST_LIST = 80


def type_parts(view: View, target: Target, facts: TypeFacts) -> Iterator[str]:
    """Yield the paragraphs about the type that a section names."""
    if not is_told(view, target, REFUSED):
        yield _status(view, facts)
    yield facts.summary
    yield _type_line(facts)
    yield here.here(view, target, None)
    yield flow(facts.doc)
    yield from notes(facts.when, facts.trap, facts.myth)
    if facts.parameters:
        yield say("Parameters: {parameters}.", parameters=say(", ").join(f"`{name}`" for name in facts.parameters))
    yield related(facts.related)
    yield footer(view, url_for_type(facts))


def parameter_parts(view: View, target: Target, parameter: Parameter) -> Iterator[str]:
    """Yield the paragraphs about a parameter of the type that the section names."""
    facts = target.type_facts
    yield _value(target, parameter)
    yield parameter.summary
    yield _parameter_line(target, parameter)
    yield here.here(view, target, None)
    yield flow(parameter.doc)
    if not is_told(view, target, REFUSED):
        yield wording.only_text(parameter.only_said)
    yield from notes(parameter.when, parameter.trap, "")
    yield history(parameter.changes, gone=bool(parameter.changes))
    if facts is not None:
        yield footer(view, url_for_type(facts))


def _value(target: Target, parameter: Parameter) -> str:
    """Return what the value under the cursor is: which item of a list, or a sensible value."""
    if target.value is None:
        return ""
    if target.item is not None:
        return say("{text}.", text=parameter.parts[target.item]) if target.item < len(parameter.parts) else ""
    value = target.value.value()
    found = parameter.values.get(wording.value_name(value), "") or suggested(parameter.suggestions, value)
    return say("{what}: {means}", what=written(target.value), means=found) if found else ""


def _status(view: View, facts: TypeFacts) -> str:
    now = order(view.known.version)
    if now < order(facts.since):
        return say(
            "**Not in DeepSpeed {known_version}: it came with {since}.**",
            known_version=view.known.version,
            since=facts.since,
        )
    if facts.until is not None and order(facts.until) <= now:
        return say("**Removed: DeepSpeed does not build it since {until}.**", until=facts.until)
    return ""


def _type_line(facts: TypeFacts) -> str:
    came = say("0.9 or earlier") if facts.since == wording.FIRST else say("since {since}", since=facts.since)
    told = [
        f"`{facts.kind}.type`",
        say("builds {builds}", builds=say("; ").join(map(say, facts.builds))) if facts.builds else "",
        came if facts.until is None else say("{came}, gone with {until}", came=came, until=facts.until),
        say("the name is taken exactly") if facts.case_sensitive else say("the name is taken in any case"),
        say("ZeRO needs `zero_allow_untested_optimizer`") if facts.untested else "",
    ]
    return " · ".join(part for part in told if part)


def _parameter_line(target: Target, parameter: Parameter) -> str:
    bounds = wording.range_text(parameter)
    accepted = wording.kinds_text(parameter.type)
    accepted += f" {bounds}" if bounds else ""
    of = say(" of `{type_facts_name}`", type_facts_name=target.type_facts.name) if target.type_facts else ""
    told = [
        f"`{target.path[0]}.params.{parameter.name}`{of}",
        accepted + say(" ({unit})", unit=say(parameter.unit)) if parameter.unit else accepted,
    ]
    if parameter.required:
        told.append(say("required"))
    elif parameter.default is not MISSING:
        told.append(say("default `{default}`", default=wording.json_text(parameter.default)[:_LONGEST_LIST]))
    return " · ".join(told)
