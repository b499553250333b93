"""The upgrade: idea after idea, each on the result of the one before."""

from __future__ import annotations

from collections.abc import Iterator

from dsmigrate.document import Document, EditError
from dsmigrate.editing.actions.draft import Draft, Step, started, why_not
from dsmigrate.editing.actions.judging import errors
from dsmigrate.editing.actions.model import Outcome
from dsmigrate.editing.actions.upgrading.clamped import clamped
from dsmigrate.editing.actions.upgrading.crossing import Crossing, Idea, Left
from dsmigrate.editing.actions.upgrading.moved_defaults import moved_defaults
from dsmigrate.editing.actions.upgrading.newly_read import newly_read
from dsmigrate.editing.actions.upgrading.removed import removed
from dsmigrate.editing.actions.upgrading.renamed import renamed
from dsmigrate.editing.actions.upgrading.rewritten import rewritten
from dsmigrate.editing.actions.upgrading.strict import strict
from dsmigrate.knowledge import Consumer, Knowledge, knowledge
from dsmigrate.knowledge.versions import order
from dsmigrate.languages import say
from dsmigrate.rules import Facts, Settings
from dsmigrate.rules.context import Context

IDEAS: tuple[Idea, ...] = (removed, renamed, strict, rewritten, clamped, moved_defaults)
"""In this order: what is renamed or rewritten has the defaults of its new place."""


def upgraded(
    document: Document,
    from_version: str,
    to_version: str,
    consumer: Consumer,
    *,
    facts: Facts | None,
    unknown: frozenset[int],
) -> Outcome:
    """Return what ``editing.actions.upgrade`` does."""
    before = knowledge(from_version)
    settings = Settings(version=to_version, consumer=consumer, facts=facts or Facts())
    after = knowledge(to_version)
    reason = why_not(document)
    if not reason and order(before.version) > order(after.version):
        reason = say(
            "DeepSpeed {after_version} is older than {before_version}.",
            after_version=after.version,
            before_version=before.version,
        )
    if reason:
        return Outcome(left=(reason,))
    draft = started(document, unknown)
    left = [found.why for found in newly_read(_crossing(draft, before, settings)) if isinstance(found, Left)]
    for idea in IDEAS:
        found = list(idea(_crossing(draft, before, settings)))
        left += [one.why for one in found if isinstance(one, Left)]
        for step in found:
            if isinstance(step, Step):
                draft, problem = _made(draft, step)
                left += [problem] if problem else []
    return Outcome(draft.edits, draft.done, (*left, *_refused(draft, before, settings)))


def has_work(
    document: Document, from_version: str, to_version: str, consumer: Consumer, unknown: frozenset[int] = frozenset()
) -> bool:
    """Return whether an upgrade would edit the text, without making the edits; it does not edit broken text."""
    if why_not(document):
        return False
    settings = Settings(version=to_version, consumer=consumer)
    crossing = _crossing(started(document, unknown), knowledge(from_version), settings)
    return any(isinstance(found, Step) for idea in IDEAS for found in idea(crossing))


def _crossing(draft: Draft, before: Knowledge, settings: Settings) -> Crossing:
    context = Context(
        draft.document,
        knowledge(settings.version),
        consumer=settings.consumer,
        facts=settings.facts,
        unknown=draft.unknown,
    )
    return Crossing(context, before, settings)


def _made(draft: Draft, step: Step) -> tuple[Draft, str]:
    try:
        return draft.after([step]), ""
    except EditError as error:
        return draft, say("{told} This could not be written: {error}.", told=step.told, error=error)


def _refused(draft: Draft, before: Knowledge, settings: Settings) -> Iterator[str]:
    """Yield the errors of the result that the config did not have in the earlier release."""
    old = Settings(version=before.version, consumer=settings.consumer, facts=settings.facts)
    known = {(finding.code, finding.path) for finding in errors(old, draft.original, draft.unknown_before)}
    for finding in errors(settings, draft.document, draft.unknown):
        if (finding.code, finding.path) not in known:
            yield f"{finding.code}: {finding.message}"
