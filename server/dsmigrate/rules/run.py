"""Checking a config: every rule that holds for the release and the consumer, in the order of the text."""

from __future__ import annotations

import functools
from collections.abc import Iterable
from dataclasses import dataclass, field

from dsmigrate.document import Document
from dsmigrate.knowledge import Consumer, knowledge
from dsmigrate.knowledge.versions import order
from dsmigrate.patience import LimitError, pause
from dsmigrate.rules.context import Context
from dsmigrate.rules.model import Facts, Finding, Rule
from dsmigrate.rules.registry import every_rule


@dataclass(frozen=True, slots=True)
class Settings:
    """What a check is made for: the release (None is the newest), the consumer, facts, and which rules.

    ``select`` and ``ignore`` hold codes or beginnings of them (``DS4``); an empty ``select`` takes all.
    """

    version: str | None = None
    consumer: Consumer = Consumer.DEEPSPEED
    facts: Facts = field(default_factory=Facts)
    select: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()

    def takes(self, rule: Rule) -> bool:
        """Return whether a rule is asked for and holds for the release and the consumer."""
        asked = not self.select or rule.code.startswith(self.select)
        if not asked or (self.ignore and rule.code.startswith(self.ignore)):
            return False
        if self.consumer not in rule.consumers:
            return False
        release = order(knowledge(self.version).version)
        return (rule.since is None or order(rule.since) <= release) and (
            rule.until is None or release < order(rule.until)
        )


def check(
    document: Document, settings: Settings | None = None, *, unknown: frozenset[int] = frozenset()
) -> list[Finding]:
    """Return the findings of a document in the order of the text; for ``unknown`` see Context."""
    settings = settings or Settings()
    return check_in(_context(document, settings, unknown), settings)


def check_in(context: Context, settings: Settings) -> list[Finding]:
    """Return the findings of a context that was made with ``settings``, and that others may have asked already."""
    return _found(context, _taken(settings.version, settings.consumer, settings.select, settings.ignore))


def check_with(
    document: Document, settings: Settings, rules: Iterable[Rule], *, unknown: frozenset[int] = frozenset()
) -> list[Finding]:
    """Return the findings of ``rules`` alone, as far as the settings take them."""
    return _found(_context(document, settings, unknown), [rule for rule in rules if settings.takes(rule)])


@functools.lru_cache(maxsize=64)
def _taken(
    version: str | None, consumer: Consumer, select: tuple[str, ...], ignore: tuple[str, ...]
) -> tuple[Rule, ...]:
    settings = Settings(version=version, consumer=consumer, select=select, ignore=ignore)
    return tuple(rule for rule in every_rule() if settings.takes(rule))


def _context(document: Document, settings: Settings, unknown: frozenset[int]) -> Context:
    known = knowledge(settings.version)
    return Context(document, known, consumer=settings.consumer, facts=settings.facts, unknown=unknown)


def _found(context: Context, rules: Iterable[Rule]) -> list[Finding]:
    """Return what rules find; what they have found so far, where the work may take no longer."""
    found: list[Finding] = []
    try:
        for rule in rules:
            if rule.training and not context.facts.trains:
                continue
            context.rule = rule
            pause()
            found += rule.check(context)
    except LimitError:
        context.is_cut = True
    return in_order(found)


def in_order(findings: Iterable[Finding]) -> list[Finding]:
    """Return findings by place, then by code, each once; what they propose is not worked out to tell."""
    once: dict[tuple[object, ...], Finding] = {}
    for finding in findings:
        once.setdefault((*_place(finding), finding.path, finding.severity, finding.related), finding)
    return sorted(once.values(), key=_place)


def _place(finding: Finding) -> tuple[int, int, str, str]:
    return finding.start, finding.end, finding.code, finding.message
