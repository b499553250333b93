"""Two texts, compared: for which releases, for whom, and what could not be read."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path, PurePath
from typing import TYPE_CHECKING

from dsmigrate.checking.evidence import consumer_for, release_for
from dsmigrate.checking.job import facts, lightning_for
from dsmigrate.checking.trained import with_model
from dsmigrate.diff.model import Result, Severity
from dsmigrate.diff.run import compare_views
from dsmigrate.document import Document, DocumentError, Scalar, parse_bytes
from dsmigrate.document.problems import Code
from dsmigrate.editing.view import View
from dsmigrate.knowledge import Consumer
from dsmigrate.languages import mark, say
from dsmigrate.rules import Facts, Settings
from dsmigrate.rules.context import is_absurd
from dsmigrate.settings.diff import DiffSettings
from dsmigrate.settings.errors import SettingsError

if TYPE_CHECKING:
    from dsmigrate.checking.forms import Part

OTHERS = frozenset({".yaml", ".yml", ".py", ".pyw"})
"""Suffixes of files that hold a config in another form."""


class UnreadableError(Exception):
    """A side that is no text, or one that is no config; the message names it."""


@dataclass(frozen=True, slots=True)
class Source:
    """One side as it comes in: what reports call it, its bytes, and the folder where evidence is looked for."""

    name: str
    data: bytes
    folder: Path | None = None


@dataclass(frozen=True, slots=True)
class Versions:
    """The releases that are asked for; None leaves one to settings and evidence. ``why`` says where they come from.

    ``frameworks`` are packages that hand the config on, each with its release on either side.
    """

    old: str | None = None
    new: str | None = None
    why: str = mark("as asked for")
    frameworks: tuple[tuple[str, tuple[str, str]], ...] = ()


@dataclass(frozen=True, slots=True)
class Compared:
    """A comparison with both sides; ``why_version`` and ``why_consumer`` say where release and consumer came from."""

    old_name: str
    new_name: str
    old: View
    new: View
    result: Result
    why_version: str = ""
    why_consumer: str = ""

    def fails(self, least: str) -> bool:
        """Return whether something is at least as severe as ``least``: a severity, or "never"."""
        order = list(Severity)
        return least != "never" and order.index(self.result.worst) <= order.index(Severity(least))


def compare(old: Source, new: Source, settings: DiffSettings, versions: Versions | None = None) -> Compared:
    """Compare two configs as one consumer reads them.

    Both sides are of one release unless ``versions`` says otherwise: the one asked for, else the one that evidence
    around the new side shows. Raises UnreadableError for a side that cannot be read as text, or holds no config.
    """
    versions = versions or Versions()
    parts = _part(old), _part(new)
    documents = _document(old, parts[0]), _document(new, parts[1])
    release, why_version = settings.check.version, say(versions.why)
    if release is None and (versions.old is None or versions.new is None):
        guess = release_for(new.folder or Path())
        release, why_version = guess.value, guess.why
    consumer, why_consumer, lightning = _consumer(documents, (old, new), parts, settings)
    views = [
        View(
            document,
            Settings(
                version=version or release,
                consumer=consumer,
                facts=replace(_of_side(settings, versions, side, new.folder), lightning=lightning),
            ),
            folder=source.folder,
            unknown=() if part is None else part.unknown,
            whole=part is None or part.is_whole,
        )
        for side, (document, version, source, part) in enumerate(
            zip(documents, (versions.old, versions.new), (old, new), parts, strict=True)
        )
    ]
    result = compare_views(views[0], views[1], names=(old.name, new.name), takes=settings.takes)
    return Compared(old.name, new.name, views[0], views[1], result, why_version, why_consumer)


def _of_side(settings: DiffSettings, versions: Versions, side: int, folder: Path | None) -> Facts:
    """Return what is known beside a side: 0 is the old one, 1 the new one. Both train the model in ``folder``."""
    try:
        known = with_model(facts(settings.check), settings.check, folder)
    except SettingsError as error:
        raise UnreadableError(str(error)) from None
    given = {name: releases[side] for name, releases in versions.frameworks}
    return replace(
        known,
        transformers=given.get("transformers", known.transformers),
        accelerate=given.get("accelerate", known.accelerate),
    )


def _part(source: Source) -> Part | None:
    """Return the config of a script or YAML file; None for a side that is a config itself."""
    if PurePath(source.name).suffix.lower() not in OTHERS:
        return None
    from dsmigrate.checking.forms import side_of  # noqa: PLC0415 - what few comparisons need
    from dsmigrate.convert.model import ConvertError  # noqa: PLC0415

    try:
        return side_of(source.name, source.data, source.folder)
    except ConvertError as error:
        raise UnreadableError(f"{source.name}{error.where}: {error.message}") from None


def _document(source: Source, part: Part | None) -> Document:
    if part is not None:
        return part.document
    try:
        document = parse_bytes(source.data)
    except DocumentError as error:
        raise UnreadableError(f"{source.name}: {error}") from None
    if document.root is None and document.text.strip():
        raise UnreadableError(say("{name}: no config can be read from it", name=source.name))
    for _, _, node in document.walk():
        if isinstance(node, Scalar) and is_absurd(node.value()):
            line = document.position(node.start).line + 1
            message = say("the number is beyond any setting of DeepSpeed, and what it does is not known")
            raise UnreadableError(say("{name}, line {line}: {message}", name=source.name, line=line, message=message))
    deep = next((item for item in document.problems if item.code is Code.TOO_DEEP), None)
    if deep is not None:  # nothing that reads it goes so deep: DeepSpeed does not, nor Python's json
        line = document.position(deep.start).line + 1
        raise UnreadableError(say("{name}, line {line}: {message}", name=source.name, line=line, message=deep.message))
    return document


def _consumer(
    documents: tuple[Document, Document],
    sources: tuple[Source, Source],
    parts: tuple[Part | None, Part | None],
    settings: DiffSettings,
) -> tuple[Consumer, str, bool]:
    """Return who reads both sides, why, and whether Lightning hands them on.

    Of two guesses the one counts that is not plain DeepSpeed, as it saw an "auto".
    """
    if settings.check.consumer is not None:
        return settings.check.consumer, say("as asked for"), False
    for part in reversed(parts):
        if part is not None:
            return part.consumer, part.why, part.lightning
    guesses = [consumer_for(document, source.folder) for document, source in zip(documents, sources, strict=True)]
    guess = next((one for one in reversed(guesses) if one.value != Consumer.DEEPSPEED.value), guesses[1])
    folder = sources[1].folder
    lightning = lightning_for(guess, folder / PurePath(sources[1].name).name) if folder is not None else ""
    if lightning:
        return Consumer.DEEPSPEED, lightning, True
    return Consumer(guess.value), guess.why, False
