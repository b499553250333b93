"""One config file, checked and, where asked for, mended."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path, PurePath

from dsmigrate.checking.arguments import (
    accelerated_for,
    arguments_for,
    behind_flag,
    configures_checkpointing,
    given_to_lightning,
    is_for_inference,
    is_of_accelerate,
    left_to_lightning,
    maker_among,
    names_for_accelerate,
    reader_of,
)
from dsmigrate.checking.evidence import Guess, consumer_for, frameworks_for, release_for
from dsmigrate.checking.recognise import SUFFIXES
from dsmigrate.checking.schemas import schemas_for
from dsmigrate.checking.suppression import visible
from dsmigrate.checking.trained import with_model
from dsmigrate.document import Document, DocumentError, parse_bytes
from dsmigrate.files.diff import unified
from dsmigrate.files.reading import read
from dsmigrate.files.text import SourceError
from dsmigrate.knowledge import Consumer
from dsmigrate.languages import say
from dsmigrate.rules import Effect, Facts, Finding, Fix, Settings, Severity, check
from dsmigrate.rules.fixing import fix_all, with_few_fixes
from dsmigrate.settings.check import CheckSettings

GIB = 1 << 30
STDIN_NAME = "<stdin>"


@dataclass(frozen=True, slots=True)
class Mending:
    """Whether fixes are applied, the unsafe ones too, and the least severity of findings that are shown."""

    wanted: bool = False
    unsafe: bool = False
    least: Severity | None = Severity.HINT

    def of(self, findings: Sequence[Finding]) -> list[Finding]:
        """Return the findings whose fixes may be applied."""
        return at_least(findings, self.least)


def at_least(findings: Sequence[Finding], least: Severity | None) -> list[Finding]:
    """Return the findings that are at least so bad.

    None stands for INFO, without those where DeepSpeed rejects the config: what it would do comes after that.
    """
    if least is None:
        rejected = any(found.severity is Severity.ERROR and found.effect is Effect.REJECTED for found in findings)
        least = Severity.WARNING if rejected else Severity.INFO
    order = list(Severity)
    return [found for found in findings if order.index(found.severity) <= order.index(least)]


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
    hidden: int = 0
    """Findings that are too slight to be shown."""

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


def lightning_for(guess: Guess, config: Path) -> str:
    """Return why Lightning reads a config of which nothing but a guess says who does; "" for none."""
    if guess.value != Consumer.DEEPSPEED.value and not guess.by_auto:
        return ""
    return left_to_lightning(config, holds_auto=guess.by_auto)


def _check(
    name: str, document: Document, folder: Path | None, settings: CheckSettings, mending: Mending | None
) -> Checked:
    release = release_of(settings, folder)
    consumer, why = settings.consumer, "as asked for"
    lies = folder is not None and name != STDIN_NAME
    given, trainer = arguments_for(Path(name)) if lies else ((), "")
    launched = names_for_accelerate(Path(name)) if lies else ""
    own = reader_of(Path(name)) if lies and consumer is None else None
    lightning = given_to_lightning(Path(name)) if lies and consumer is None and not trainer and own is None else ""
    if own is not None:
        consumer, why = own[0], say("{place} gives it to {consumer}", place=own[1], consumer=own[0].title)
    elif lightning:
        consumer, why = Consumer.DEEPSPEED, lightning
    elif consumer is None and trainer:
        consumer, why = Consumer.TRANSFORMERS, trainer
    elif consumer is None:
        guess = consumer_for(document, folder)
        consumer, why = Consumer(guess.value), guess.why
        if launched and (consumer is Consumer.DEEPSPEED or is_of_accelerate(Path(name))):
            consumer, why = Consumer.ACCELERATE, launched
        elif consumer is Consumer.DEEPSPEED and lies and (made := maker_among(settings.scripts)):
            consumer, why = Consumer.ACCELERATE, made
        elif lies and (lightning := lightning_for(guess, Path(name))):
            consumer, why = Consumer.DEEPSPEED, lightning
    known = with_model(facts(settings, folder, consumer), settings, folder)
    asked = Settings(
        version=release[0],
        consumer=consumer,
        facts=replace(
            known,
            arguments=(*known.arguments, *given),
            schemas=schemas_for(document, settings, folder),
            lightning=bool(lightning),
            through_accelerate=bool(launched),
            script=own[1] if own is not None and own[0] is Consumer.DEEPSPEED else "",
            trains=not (lies and document.node_at(("optimizer",)) is None and is_for_inference(Path(name))),
            configures_checkpointing=lies and configures_checkpointing(Path(name)),
            accelerated=accelerated_for(Path(name), settings.scripts)
            if lies and consumer is Consumer.ACCELERATE
            else (),
        ),
        select=settings.select,
        ignore=settings.ignored_in(Path(name)),
    )
    original = document.text
    mending = mending or Mending()
    applied: tuple[tuple[Finding, Fix], ...] = ()
    if mending.wanted:
        result = fix_all(document, lambda text: mending.of(visible(text, check(text, asked))), unsafe=mending.unsafe)
        document, applied = result.document, result.applied
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
    release = release_of(settings, folder)[0]
    around = frameworks_for(folder, release) if consumer is not Consumer.DEEPSPEED else {}
    older = settings.version is None and folder is not None and release_for(folder).is_older
    memory = None if settings.gpu_memory is None else int(settings.gpu_memory * GIB)
    return Facts(
        world_size=settings.world_size,
        gpu_memory=memory,
        parameters=settings.parameters,
        hardware=settings.hardware,
        before=settings.before,
        arguments=behind_flag(settings.arguments) if settings.arguments else (),
        transformers=settings.transformers or around.get("transformers"),
        accelerate=settings.accelerate or around.get("accelerate"),
        trl=around.get("trl"),
        is_older=older,
    )
