"""What a hover says about optimizer and scheduler types, and about their parameters."""

from __future__ import annotations

from collections.abc import Iterator

from dsmigrate.editing.hover import here
from dsmigrate.editing.hover.budget import within
from dsmigrate.editing.hover.footer import footer, related
from dsmigrate.editing.hover.keys import trap
from dsmigrate.editing.hover.links import Links
from dsmigrate.editing.hover.target import Target
from dsmigrate.editing.hover.told import REFUSED, is_told
from dsmigrate.editing.hover.values import suggested, written
from dsmigrate.editing.urls import url_for_type
from dsmigrate.editing.view import View
from dsmigrate.knowledge import MISSING, Parameter, TypeFacts, wording
from dsmigrate.knowledge.versions import order
from dsmigrate.languages import say

_LONGEST_LIST = 80


def type_parts(view: View, links: Links, target: Target, facts: TypeFacts) -> Iterator[str]:
    """Yield the paragraphs about the type that a section names; its page has the rest."""
    said = (
        "" if is_told(view, target, REFUSED) else _status(view, facts),
        facts.summary,
        _type_line(facts),
    )
    yield from within(said, (here.here(view, target, None), trap(facts.trap)))
    yield related(view, links, facts.related)
    yield footer(view, links, facts.name, url_for_type(facts))


def parameter_parts(view: View, links: Links, target: Target, parameter: Parameter) -> Iterator[str]:
    """Yield the paragraphs about a parameter of the type that the section names."""
    said = (
        _value(target, parameter),
        parameter.summary,
        _parameter_line(target, parameter),
        "" if is_told(view, target, REFUSED) else wording.only_text(parameter.only_said),
    )
    yield from within(said, (here.here(view, target, None), trap(parameter.trap)))
    if target.type_facts is not None:
        yield footer(view, links, ".".join(map(str, target.path)), url_for_type(target.type_facts))


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
    told = [
        "" if facts.since == wording.FIRST else say("since {since}", since=facts.since),
        say("the name is taken exactly") if facts.case_sensitive else "",
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
