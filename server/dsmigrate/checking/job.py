"""One config file, checked and, where asked for, mended."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path, PurePath

from dsmigrate.checking.evidence import consumer_for, frameworks_for, release_for
from dsmigrate.checking.recognise import SUFFIXES
from dsmigrate.checking.suppression import visible
from dsmigrate.document import Document, DocumentError, parse_bytes
from dsmigrate.files.diff import unified
from dsmigrate.files.reading import read
from dsmigrate.files.text import SourceError
from dsmigrate.knowledge import Consumer
from dsmigrate.rules import Facts, Finding, Fix, Settings, Severity, check
from dsmigrate.rules.fixing import fix_all, with_few_fixes
from dsmigrate.settings.check import CheckSettings

GIB = 1 << 30


@dataclass(frozen=True, slots=True)
class Mending:
    """Whether fixes are applied, and the unsafe ones too."""

    wanted: bool = False
    unsafe: bool = False


@dataclass(frozen=True, slots=True)
class Checked:
    """A file and what was found in it.

    ``document`` is the text as it was read, or after mending; None when the file could not be read, which ``error``
    explains. ``why_version`` and ``why_consumer`` say where these came from.
    """

    name: str
    document: Document | None
    findings: tuple[Finding, ...] = ()
    version: str = ""
    why_version: str = ""
    consumer: Consumer = Consumer.DEEPSPEED
    why_consumer: str = ""
    original: str = ""
    fixed: tuple[tuple[Finding, Fix], ...] = ()
    error: str = ""

    @property
    def is_changed(self) -> bool:
        """Whether mending changed the text."""
        return self.document is not None and self.document.text != self.original

    @property
    def diff(self) -> str:
        """The unified diff of what mending changed, "" where that is nothing."""
        return "" if self.document is None else unified(self.original, self.document.text, self.name)

    @property
    def worst(self) -> Severity | None:
        """The severity of the worst finding."""
        order = list(Severity)
        return min((finding.severity for finding in self.findings), key=order.index, default=None)


def check_file(
    path: Path, settings: CheckSettings, mending: Mending | None = None, *, document: Document | None = None
) -> Checked:
    """Check the file at ``path``; a file that cannot be read gives a Checked with an ``error``.

    ``document`` is its content, if that has been read already.
    """
    if document is not None:
        return _check(str(path), document, path.parent, settings, mending)
    try:
        data = read(path)
    except SourceError as error:
        return Checked(str(path), None, error=error.message)
    return check_bytes(str(path), data, path.parent, settings, mending)


def check_bytes(
    name: str, data: bytes, folder: Path | None, settings: CheckSettings, mending: Mending | None = None
) -> Checked:
    """Check the content of a file; ``folder`` is where evidence is looked for, None for text from nowhere."""
    if PurePath(name).suffix.lower() not in SUFFIXES:
        from dsmigrate.checking.forms import check_form  # noqa: PLC0415 - what few files need

        found = check_form(name, data, folder, settings, mending or Mending())
        if found is not None:
            return found
    try:
        document = parse_bytes(data)
    except DocumentError as error:
        return Checked(name, None, error=str(error))
    return _check(name, document, folder, settings, mending)


def _check(
    name: str, document: Document, folder: Path | None, settings: CheckSettings, mending: Mending | None
) -> Checked:
    release = release_of(settings, folder)
    consumer, why = settings.consumer, "as asked for"
    if consumer is None:
        guess = consumer_for(document, folder)
        consumer, why = Consumer(guess.value), guess.why
    asked = Settings(
        version=release[0],
        consumer=consumer,
        facts=facts(settings, folder, consumer),
        select=settings.select,
        ignore=settings.ignored_in(Path(name)),
    )
    original = document.text
    mending = mending or Mending()
    applied: tuple[tuple[Finding, Fix], ...] = ()
    if mending.wanted:
        result = fix_all(document, lambda text: visible(text, check(text, asked)), unsafe=mending.unsafe)
        document, applied, found = result.document, result.applied, list(result.left)
    else:
        found = visible(document, check(document, asked))
    return Checked(
        name=name,
        document=document,
        findings=tuple(with_few_fixes(document.text, found)),
        version=str(release[0]),
        why_version=release[1],
        consumer=consumer,
        why_consumer=why,
        original=original,
        fixed=applied,
    )


def release_of(settings: CheckSettings, folder: Path | None) -> tuple[str, str]:
    """Return the release that a config is checked for, and where it comes from."""
    if settings.version is not None:
        return settings.version, "as asked for"
    guess = release_for(folder or Path())
    return guess.value, guess.why


def facts(settings: CheckSettings, folder: Path | None = None, consumer: Consumer = Consumer.DEEPSPEED) -> Facts:
    """Return what the settings say beside the file, and what lies around it, in the units of the rules."""
    around = frameworks_for(folder) if consumer is not Consumer.DEEPSPEED else {}
    memory = None if settings.gpu_memory is None else int(settings.gpu_memory * GIB)
    return Facts(
        world_size=settings.world_size,
        gpu_memory=memory,
        parameters=settings.parameters,
        hardware=settings.hardware,
        before=settings.before,
        transformers=settings.transformers or around.get("transformers"),
        accelerate=settings.accelerate or around.get("accelerate"),
    )
