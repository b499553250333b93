"""Keys that are left out and whose default is another one now: written down as they were."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from dsmigrate.document import render_path
from dsmigrate.editing.actions.draft import Step, put
from dsmigrate.editing.actions.judging import rules_of
from dsmigrate.editing.actions.upgrading.crossing import Crossing, Left
from dsmigrate.knowledge.wording import json_text
from dsmigrate.languages import say
from dsmigrate.rules import Settings
from dsmigrate.rules.run import check_with


def moved_defaults(crossing: Crossing) -> Iterator[Step | Left]:
    """Yield each default of the earlier release that would act, or what to decide where the consumer has a say."""
    facts = replace(crossing.settings.facts, before=crossing.earlier.version)
    settings = Settings(crossing.settings.version, crossing.settings.consumer, facts)
    context = crossing.context
    for finding in check_with(crossing.document, settings, rules_of(("DS950",)), unknown=context.unknown):
        old, new = crossing.earlier.default(finding.path), context.known.default(finding.path)
        name = f"`{render_path(finding.path)}`"
        auto = context.known.auto(finding.path, context.consumer)
        moved = say(
            "{old} in {earlier_version} and means {new} in {known_version}",
            old=json_text(old),
            earlier_version=crossing.earlier.version,
            new=json_text(new),
            known_version=context.known.version,
        )
        if auto is not None and auto.must_match:
            yield Left(
                say(
                    '{name} is left out: it meant {moved}. Write "auto" and choose with {source}.',
                    name=name,
                    moved=moved,
                    source=auto.source,
                )
            )
        else:
            yield put(
                finding.path,
                old,
                say("{name} is {old}: left out it meant {moved}.", name=name, old=json_text(old), moved=moved),
            )
