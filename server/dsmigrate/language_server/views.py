"""From an open document and its settings to the ``View`` that the features ask."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from dsmigrate.checking.evidence import Guess, consumer_for, installed_in, release_for
from dsmigrate.checking.job import facts
from dsmigrate.checking.schemas import schemas_for
from dsmigrate.checking.trained import with_model
from dsmigrate.document import Document
from dsmigrate.editing.view import View
from dsmigrate.knowledge import Consumer
from dsmigrate.rules import Settings
from dsmigrate.settings.errors import SettingsError

if TYPE_CHECKING:
    from dsmigrate.language_server.documents import OpenDocument
    from dsmigrate.language_server.settings import EditorSettings
    from dsmigrate.settings.check import CheckSettings


def make(
    tree: Document,
    document: OpenDocument,
    settings: EditorSettings,
    *,
    unknown: Sequence[tuple[int, int]] = (),
    whole: bool = True,
    shows_findings: bool = True,
    ignore: tuple[str, ...] = (),
) -> View:
    """Return the view of ``tree``, with release and consumer as asked for, else by what lies around the file.

    For ``unknown``, ``whole`` and ``shows_findings`` see View; ``ignore`` are rules that are left out besides.
    """
    asked = settings.check
    release = _release(document.folder, settings)
    consumer = Guess(asked.consumer.value, "") if asked.consumer is not None else consumer_for(tree, document.folder)
    known = facts(asked, document.folder, Consumer(consumer.value))
    with contextlib.suppress(SettingsError):  # the settings have said so once
        known = with_model(known, asked, document.folder)
    return View(
        tree,
        Settings(
            version=release.value or None,
            consumer=Consumer(consumer.value),
            facts=replace(known, schemas=schemas_for(tree, asked, document.folder)),
            select=asked.select,
            ignore=(*(asked.ignore if document.path is None else asked.ignored_in(document.path)), *ignore),
        ),
        why_version=release.why,
        why_consumer=consumer.why,
        folder=document.folder,
        unknown=unknown,
        whole=whole,
        shows_findings=shows_findings,
    )


def asked_for(settings: EditorSettings, folder: Path | None) -> CheckSettings:
    """Return the settings of a check with the release that a folder's configs are looked at with."""
    release = _release(folder, settings).value
    return replace(settings.check, version=release) if release else settings.check


def _release(folder: Path | None, settings: EditorSettings) -> Guess:
    if settings.check.version is not None:
        return Guess(settings.check.version, "")
    if settings.interpreter is not None:
        installed = installed_in(settings.interpreter)
        if installed is not None:
            return Guess(installed, "installed for the chosen interpreter")
    return release_for(folder) if folder is not None else Guess("", "the newest known")
