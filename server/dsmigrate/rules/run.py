"""Checking a config: every rule that holds for the release and the consumer, in the order of the text."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from dsmigrate.document import Document
from dsmigrate.knowledge import Consumer, knowledge
from dsmigrate.knowledge.versions import order
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


def check(document: Document, settings: Settings | None = None) -> list[Finding]:
    """Return the findings of a document in the order of the text."""
    settings = settings or Settings()
    return check_with(document, settings, every_rule())


def check_with(document: Document, settings: Settings, rules: Iterable[Rule]) -> list[Finding]:
    """Return the findings of ``rules`` alone, as far as the settings take them."""
    context = Context(document, knowledge(settings.version), consumer=settings.consumer, facts=settings.facts)
    found: list[Finding] = []
    for rule in rules:
        if settings.takes(rule):
            context.rule = rule
            found += rule.check(context)
    return in_order(found)


def in_order(findings: Iterable[Finding]) -> list[Finding]:
    """Return findings by place, then by code, each once."""
    return sorted(dict.fromkeys(findings), key=_place)


def _place(finding: Finding) -> tuple[int, int, str, str]:
    return finding.start, finding.end, finding.code, finding.message
