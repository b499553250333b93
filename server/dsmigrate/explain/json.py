"""A subject as JSON: the contract of ``schemas/output/explain.schema.json``."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from dsmigrate.codemod.model import Idea
from dsmigrate.convert.explained import Explained
from dsmigrate.diff.registry import Explanation
from dsmigrate.docs import conversions
from dsmigrate.explain.subject import Messages, Overview, ParameterOf, Subject
from dsmigrate.knowledge import MISSING, Consumer, Event, Key, Knowledge, Parameter, TypeFacts
from dsmigrate.knowledge.bugs import Bug, bugs_of
from dsmigrate.languages import say
from dsmigrate.messages import Match
from dsmigrate.messages.entries import since_and_last
from dsmigrate.rules import Rule

VERSION = 1
Document = dict[str, Any]


def document(subject: Subject, known: Knowledge) -> Document:
    """Return the JSON document of a subject; a default that does not exist is left out."""
    head: Document = {"version": VERSION, "deepspeed_version": known.version}
    if isinstance(subject, Idea):
        return {**head, "about": "code", **asdict(subject)}
    if isinstance(subject, Rule):
        return {**head, "about": "code", **_rule(subject)}
    if isinstance(subject, Explanation):
        return {**head, "about": "code", **_explanation(subject)}
    if isinstance(subject, Explained):
        return {**head, "about": "code", **_conversion(subject)}
    if isinstance(subject, Bug):
        return {**head, "about": "bug", **bug(subject)}
    if isinstance(subject, Key):
        members = [member.path for member in known.children(subject.path)]
        return {**head, "about": "key", **key(subject), "keys": members}
    if isinstance(subject, TypeFacts):
        return {**head, "about": "type", **type_(subject)}
    if isinstance(subject, ParameterOf):
        described = [{"of": facts.path, **parameter(found)} for facts, found in subject.described]
        return {**head, "about": "parameter", "name": subject.name, "parameters": described}
    if isinstance(subject, Messages):
        found = [message(match) for match in subject.matches]
        return {**head, "about": "message", "near": subject.near, "messages": found}
    return {**head, "about": "overview", **_overview(subject, known)}


def key(found: Key) -> Document:
    """Return the facts and texts of a key."""
    texts = {name: getattr(found, name) for name in ("summary", "doc", "when", "trap", "myth", "unit", "dead")}
    bounds = ("minimum", "exclusive_minimum", "maximum", "exclusive_maximum")
    return {
        "path": found.path,
        "status": found.status.value,
        "section": found.is_section,
        "type": list(found.type),
        "items": list(found.items),
        **({} if found.default is MISSING else {"default": found.default}),
        "enum": list(found.enum or found.item_enum),
        "values": dict(found.values),
        **{bound: getattr(found, bound) for bound in bounds if getattr(found, bound) is not None},
        "rejects_unknown_keys": found.rejects_unknown_keys if found.is_section else None,
        "also": found.field,
        "alias_of": found.alias_of,
        "use_instead": list(found.successors),
        "since": found.since,
        "until": found.until,
        "history": [_event(event) for event in found.history],
        "auto": {
            consumer.value: {"effect": found.auto(consumer).effect.value, "from": found.auto(consumer).source}
            for consumer in Consumer
        },
        "required_when": None if found.required_when is None else dict(found.required_when),
        "effective_when": {path: list(values) for path, values in found.effective_when.items()},
        "effective_when_any": [dict(conditions) for conditions in found.effective_when_any],
        "suggestions": [dict(value) for value in found.suggestions],
        "affects": list(found.affects),
        "related": list(found.related),
        "source": list(found.source),
        "bugs": [one.id for one in bugs_of(found.path)],
        **texts,
    }


def bug(found: Bug) -> Document:
    """Return a known bug: what happens, to whom, and what cures it."""
    return {
        "name": found.id,
        "what": found.said,
        "severity": found.severity,
        "effect": found.effect,
        "first": found.first,
        "last": found.last,
        "fixed": found.fixed,
        "when": found.met,
        "set": dict(found.sets),
        "remove": list(found.removes),
        "keys": list(found.keys),
        "example": found.example,
        "ran": found.ran,
        "source": list(found.links),
    }


def type_(facts: TypeFacts) -> Document:
    """Return the facts and texts of an optimizer or scheduler type."""
    return {
        "path": facts.path,
        "name": facts.name,
        "kind": facts.kind,
        "builds": list(facts.builds),
        "case_sensitive": facts.case_sensitive,
        "needs_zero_allow_untested_optimizer": facts.untested,
        "torch": facts.torch,
        "since": facts.since,
        "until": facts.until,
        "parameters": [parameter(found) for found in facts.parameters.values()],
        "source": list(facts.source),
        **{name: getattr(facts, name) for name in ("summary", "doc", "when", "trap", "myth")},
    }


def parameter(found: Parameter) -> Document:
    """Return the facts and texts of a parameter."""
    return {
        "name": found.name,
        "type": list(found.type),
        "items": list(found.items),
        **({} if found.default is MISSING else {"default": found.default}),
        "required": found.required,
        "since": found.since,
        "history": [_event(event) for event in found.changes],
        "suggestions": [dict(value) for value in found.suggestions],
        **{name: getattr(found, name) for name in ("summary", "doc", "when", "trap", "unit")},
        "only_with": found.only_said,
    }


def message(match: Match) -> Document:
    """Return what a message means; ``last`` is the last release that has this wording, null where the newest has it."""
    since, last = since_and_last(match.entry.package, [match.text])
    return {
        "id": match.entry.name,
        "text": match.text.shown,
        "package": match.entry.package,
        "kind": match.text.kind,
        "severity": match.text.severity.value,
        "since": since,
        "last": last,
        "cause": match.entry.cause,
        "cure": match.entry.cure,
        "keys": list(match.entry.keys),
        "codes": list(match.entry.codes),
        "source": match.text.file,
    }


def _rule(rule: Rule) -> Document:
    return {
        "code": rule.code,
        "kind": "rule",
        "title": rule.name,
        "summary": say(rule.summary),
        "why": say(rule.why),
        "severity": rule.severity.value,
        "effect": rule.effect.value,
        "source": ", ".join(rule.source),
        "keys": list(rule.keys),
    }


def _explanation(item: Explanation) -> Document:
    return {
        "code": item.code,
        "kind": "change",
        "title": item.name,
        "summary": say(item.summary),
        "why": say(item.why),
        "source": ", ".join(item.source),
    }


def _conversion(item: Explained) -> Document:
    severity = conversions.severity(item)
    return {
        "code": item.code,
        "kind": "conversion",
        "title": item.name,
        "summary": say(item.summary),
        "why": say(item.why),
        "effect": conversions.effect(item),
        "advice": say(item.advice),
        "severity": None if severity is None else severity.value,
        "source": ", ".join(item.source),
    }


def _event(event: Event) -> Document:
    sides = {"old": event.old, "new": event.new}
    return {
        "version": event.version,
        "kind": event.kind.value,
        **{
            side: list(value) if isinstance(value, tuple) else value
            for side, value in sides.items()
            if value is not MISSING
        },
    }


def _overview(subject: Overview, known: Knowledge) -> Document:
    return {
        "keys": [{"path": found.path, "section": found.is_section, "summary": found.summary} for found in subject.keys],
        "optimizers": [facts.name for facts in known.optimizers()] if subject.keys else [],
        "schedulers": [facts.name for facts in known.schedulers()] if subject.keys else [],
        "codes": [{"code": idea.code, "kind": idea.kind.value, "title": idea.title} for idea in subject.codes]
        + [{"code": rule.code, "kind": "rule", "title": rule.name} for rule in subject.rules]
        + [{"code": item.code, "kind": "change", "title": item.name} for item in subject.explanations]
        + [{"code": item.code, "kind": "conversion", "title": item.name} for item in subject.conversions],
    }
