"""What there is to choose from: releases and consumers, starters of new configs, words that can be explained."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dsmigrate.language_server.asking import asked_of
from dsmigrate.language_server.features.commands import text
from dsmigrate.language_server.uris import path_of
from dsmigrate.languages import say

if TYPE_CHECKING:
    from dsmigrate.language_server.session import Session
    from dsmigrate.language_server.wire import Data


def choices(_session: Session, _arguments: Sequence[Any]) -> Data:
    """Return the releases that are known, the newest first, and who can read a config, with the name of each."""
    from dsmigrate.knowledge import Consumer, store  # noqa: PLC0415

    return {
        "releases": list(reversed(store.index()["releases"])),
        "consumers": [{"name": consumer.value, "title": consumer.title} for consumer in Consumer],
    }


def starters(session: Session, arguments: Sequence[Any]) -> list[Data]:
    """Return whole configs to begin with, those for every reader first.

    Each has a ``label``, a ``summary``, its ``consumer`` (None for all) and a ``snippet``, in which numbers are places
    to type in. The argument is the address of the folder that the config is for: settings and pins choose the release.
    """
    from dsmigrate.checking.evidence import release_for  # noqa: PLC0415
    from dsmigrate.editing.completion import data, skeletons  # noqa: PLC0415
    from dsmigrate.editing.completion.body import PLAIN  # noqa: PLC0415
    from dsmigrate.knowledge import Consumer, knowledge  # noqa: PLC0415

    uri = text(arguments, 0)
    folder = path_of(uri) if uri else None
    version = session.settings_in(folder, uri).check.version or release_for(folder or Path()).value
    known = knowledge(version or None)
    found = {starter.label: starter for consumer in Consumer for starter in data.files(known, consumer)}
    return [
        {
            "label": starter.label,
            "summary": starter.summary,
            "consumer": None if starter.consumer is None else starter.consumer.title,
            "snippet": skeletons.body(starter, PLAIN).text(snippet=True, inline=False),
        }
        for starter in sorted(found.values(), key=lambda starter: starter.consumer is not None)
    ]


def subjects(session: Session, arguments: Sequence[Any]) -> list[Data]:
    """Return the words that ``dsmigrate.explain`` knows: ``word``, ``kind`` (key, type or code) and ``summary``.

    The argument is the address of a config, for its release; "" takes the settings'.
    """
    from dsmigrate.convert.explained import every_conversion  # noqa: PLC0415
    from dsmigrate.diff.registry import every_explanation  # noqa: PLC0415
    from dsmigrate.knowledge import knowledge  # noqa: PLC0415
    from dsmigrate.migration.catalogue import every_idea  # noqa: PLC0415
    from dsmigrate.rules import every_rule  # noqa: PLC0415

    uri = text(arguments, 0)
    asked = asked_of(session, uri) if uri else None
    known = asked.view.known if asked is not None else knowledge(session.settings_in(None).check.version)
    keys = (known.key(path) for path in known.every_path())
    types = (*known.optimizers(), *known.schedulers())
    rows = [
        *((key.path, "key", key.summary) for key in keys if key is not None),
        *((facts.name, "type", facts.summary) for facts in types),
        *((rule.code, "code", say(rule.summary)) for rule in every_rule()),
        *((idea.code, "code", idea.title) for idea in every_idea()),
        *((item.code, "code", say(item.summary)) for item in every_explanation()),
        *((item.code, "code", say(item.summary)) for item in every_conversion()),
    ]
    return [{"word": word, "kind": kind, "summary": summary} for word, kind, summary in rows]
