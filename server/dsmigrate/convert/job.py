"""A conversion from beginning to end: read, settle, write, and read the result again."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from dsmigrate.checking.evidence import release_for
from dsmigrate.checking.job import facts as facts_of
from dsmigrate.convert import codes, tree
from dsmigrate.convert.arguments import Arguments
from dsmigrate.convert.arguments import names as argument_names
from dsmigrate.convert.autos import introduce, settle, with_values
from dsmigrate.convert.forms.accelerate import FILE
from dsmigrate.convert.forms.deepspeed import read_deepspeed
from dsmigrate.convert.model import Config, ConvertError, Form, Kind, Note, Settings, Target, Written
from dsmigrate.convert.precision import with_precision
from dsmigrate.convert.reading import Input, document_of, hidden, load_config, read
from dsmigrate.convert.recognise import form_of
from dsmigrate.document import Document, PathError, parse, parse_path, render_path
from dsmigrate.files.text import SourceError, decode
from dsmigrate.knowledge import Consumer, Knowledge, knowledge
from dsmigrate.languages import say
from dsmigrate.rules import Facts, Finding, Severity, check
from dsmigrate.rules import Settings as RuleSettings
from dsmigrate.settings.check import CheckSettings

CARRYING = ("auto", "fields", "whole", "file")
DEFAULT_NAME = Target().name


@dataclass(frozen=True, slots=True)
class Request:
    """What is asked for.

    Attributes:
        name: the source as messages call it, which also tells its form.
        data: its bytes.
        target: the form to write.
        source: the form to read; None is recognised.
        folder: where files that the source names lie, and evidence about release and reader.
        settings: release, consumer of the target, number of processes: what ``check`` is asked, too.
        given: values by the path of a config, or by the name of an argument.
        arguments: what is known of the arguments that fill "auto".
        into: how the target is written.
        line: the line, from 1, of the place in a script that is the source.
    """

    name: str
    data: bytes
    target: Form
    source: Form | None = None
    folder: Path | None = None
    settings: CheckSettings = field(default_factory=CheckSettings)
    given: Mapping[str, Any] = field(default_factory=dict)
    arguments: Arguments = field(default_factory=lambda: Arguments({}))
    into: Target = field(default_factory=Target)
    line: int | None = None


@dataclass(frozen=True, slots=True)
class Converted:
    """The result: the target's text, what it says, and what is to be said about it.

    ``findings`` are those of the rules about the result, with places in ``document``; ``read`` is the source.
    """

    read: Settings
    written: Written
    config: Config
    consumer: Consumer
    version: str
    document: Document
    findings: tuple[Finding, ...]
    arguments: Mapping[str, Any] = field(default_factory=dict)

    @property
    def notes(self) -> tuple[Note, ...]:
        """Every note, in the order of losses first."""
        order = list(Kind)
        found = dict.fromkeys((*self.read.notes, *self.written.notes))
        return tuple(sorted(found, key=lambda note: order.index(note.kind)))

    @property
    def is_complete(self) -> bool:
        """Whether everything was carried over, and no rule says that the result is refused."""
        lost = any(note.kind is not Kind.TOLD for note in self.notes)
        return not lost and not any(finding.severity is Severity.ERROR for finding in self.findings)


def convert(request: Request) -> Converted:
    """Return the conversion; raises ConvertError, with the place, for what cannot be read or lacks values."""
    text = text_of(request.name, request.data)
    form = request.source or form_of(request.name, text)
    overrides, arguments = _given(request)
    settings = _spelled(read(form, Input(text, request.folder, request.line, overrides=_nested(overrides))))
    version = request.settings.version or release_for(request.folder or Path()).value
    known = knowledge(version)
    settings = _overridden(settings, overrides, arguments, request.arguments)
    if request.settings.world_size is not None:
        settings = replace(settings, around={**settings.around, "num_processes": request.settings.world_size})
    given = _sizes(settings, arguments)
    consumer = request.settings.consumer or request.target.consumer
    settings = with_precision(settings, known, consumer)
    if request.target not in {Form.DEEPSPEED, Form.DICT}:  # a config itself carries "auto" for whoever reads it
        settings = with_values(settings, known, consumer, given)
    config, written, made = _write(settings, known, consumer, request, given)
    document, findings = validated(request, written, consumer, known, config)
    return Converted(settings, written, config, consumer, known.version, document, findings, made)


def _spelled(settings: Settings) -> Settings:
    """Return the settings with the texts that their numbers were written as."""
    config = tree.copied(settings.config)
    tree.with_spelling(config, ((path, settings.text[at.start : at.end]) for path, at in settings.places.items()))
    return replace(settings, config=config)


def text_of(name: str, data: bytes) -> str:
    """Return the text of a source; raises ConvertError for bytes that are none."""
    try:
        if name.endswith((".py", ".pyw")):
            return decode(data).text
        return data.decode("utf-8-sig" if name.endswith((".yaml", ".yml")) else "utf-8")
    except SourceError as error:
        raise ConvertError(error.message, error.line, 1) from None
    except UnicodeDecodeError as error:
        message = say(
            "byte 0x{data} at offset {start} is not valid UTF-8; save the file as UTF-8",
            data=f"{data[error.start]:02x}",
            start=error.start,
        )
        raise ConvertError(message, data[: error.start].count(b"\n") + 1, 1) from None


def _given(request: Request) -> tuple[dict[tuple[str | int, ...], Any], dict[str, Any]]:
    """Return the values that are given for paths of the config, and those of arguments."""
    overrides: dict[tuple[str | int, ...], Any] = {}
    arguments: dict[str, Any] = {}
    known = knowledge()
    names = argument_names()
    for name, value in request.given.items():
        if name in names and known.key(name) is None:
            arguments[name] = value
            continue
        try:
            path = parse_path(name)
        except PathError as error:
            raise ConvertError(f"--set {name}: {error}") from None
        if not path or not all(isinstance(part, str) for part in path):
            raise ConvertError(say("--set {name}: this is no path of keys", name=name))
        overrides[path] = value
    return overrides, arguments


def _nested(overrides: Mapping[tuple[str | int, ...], Any]) -> Config:
    config: Config = {}
    for path, value in overrides.items():
        tree.put(config, path, value)
    return config


def _overridden(
    settings: Settings,
    overrides: Mapping[tuple[str | int, ...], Any],
    arguments: Mapping[str, Any],
    known: Arguments,
) -> Settings:
    config = tree.copied(settings.config)
    for path, value in overrides.items():
        tree.put(config, path, value)
    unknown = {path: text for path, text in settings.unknown.items() if path not in overrides}
    return replace(
        settings,
        consumer=Consumer.TRANSFORMERS if known.of_trainer and _may_be_of_trainer(settings) else settings.consumer,
        config=config,
        unknown=unknown,
        arguments={**settings.arguments, **known.values, **arguments},
        defaults_hold=settings.defaults_hold or known.defaults_hold,
    )


def _may_be_of_trainer(settings: Settings) -> bool:
    """Return whether the Trainer may hand the settings on: a file, and what a launcher reads, belong to any script.

    A dictionary or a plugin of a script belongs to who is called with it.
    """
    return settings.form in {Form.DEEPSPEED, Form.ACCELERATE}


def _sizes(settings: Settings, arguments: Mapping[str, Any]) -> dict[str, Any]:
    sizes = {name: arguments[name] for name in ("hidden_size", "world_size") if name in arguments}
    world = settings.around.get("num_processes")
    if isinstance(world, int) and not isinstance(world, bool) and world > 0:
        sizes.setdefault("world_size", world)
    return sizes


def _write(
    settings: Settings, known: Knowledge, consumer: Consumer, request: Request, given: Mapping[str, Any]
) -> tuple[Config, Written, Mapping[str, Any]]:
    target, into = request.target, request.into
    if target in {Form.ACCELERATE, Form.PLUGIN}:
        return *_to_accelerate(settings, known, consumer, request, given), {}
    settled = settle(settings, known, consumer, given)
    if target is Form.TRANSFORMERS:
        from dsmigrate.convert.forms.transformers import write_transformers  # noqa: PLC0415 - forms are used alone

        config, arguments, introduced = introduce(replace(settings, config=settled.config), known, given)
        written = write_transformers(settings, config, arguments, into, [*settled.notes, *introduced])
        return config, written, arguments
    from dsmigrate.convert.forms.around import LAUNCH, around_notes  # noqa: PLC0415

    notes = (*settled.notes, *around_notes(settings, LAUNCH))
    if target is Form.DICT:
        from dsmigrate.convert.forms.literal import write_dict  # noqa: PLC0415

        return settled.config, Written(write_dict(settled.config, into.there, into.line), notes), {}
    from dsmigrate.convert.forms.deepspeed import write_deepspeed  # noqa: PLC0415

    there = settings.text if into.there is None and settings.form is Form.DEEPSPEED else into.there
    return settled.config, Written(write_deepspeed(settled.config, there), notes), {}


def _to_accelerate(
    settings: Settings, known: Knowledge, consumer: Consumer, request: Request, given: Mapping[str, Any]
) -> tuple[Config, Written]:
    from dsmigrate.convert.forms.accelerate_write import write_by_file, write_fields  # noqa: PLC0415

    into = request.into
    carrying = into.carrying
    if request.target is Form.ACCELERATE:
        if carrying == "whole":
            raise ConvertError(
                say("a YAML file of Accelerate holds fields, or the name of a config: --carry fields or file")
            )
        fields = None if carrying == "file" else write_fields(settings, settings.config, known, into.there)
        if fields is not None and (carrying == "fields" or not _keeps_more(settings, fields)):
            return settings.config, fields
        try:
            config = settle(settings, known, consumer, given).config
        except ConvertError:
            if carrying == "file":
                raise
            config = settings.config  # the rules say of which "auto" the file needs a value
        written = write_by_file(settings, config, into, fields)
        return config, replace(written, notes=(*written.notes, *_not_in_file(settings, config, request)))
    from dsmigrate.convert.forms.plugin import write_plugin  # noqa: PLC0415

    config = settings.config
    notes: tuple[Note, ...] = ()
    if carrying != "fields":
        try:
            settled = settle(settings, known, consumer, given)
            config, notes = settled.config, settled.notes
        except ConvertError:
            if carrying != "auto":
                raise
            carrying = "fields"
    written = write_plugin(settings, config, known, replace(into, carrying=carrying))
    return config, replace(written, notes=(*notes, *written.notes))


def _keeps_more(settings: Settings, fields: Written) -> bool:
    """Return whether a config file says to Accelerate what its fields would lose.

    It refuses a file without ZeRO, and no file holds the expressions of a script.
    """
    may_be_file = "zero_optimization" in settings.config and not settings.unknown
    return may_be_file and any(note.kind is not Kind.TOLD for note in fields.notes)


def _not_in_file(settings: Settings, config: Config, request: Request) -> Iterator[Note]:
    """Yield what the file that a target names does not say of a config: all of it where there is no such file."""
    name = request.into.name
    is_source = settings.form is Form.DEEPSPEED and Path(name) == Path(request.name)
    found = read_deepspeed(settings.text, settings.consumer) if is_source else load_config(name, request.folder)
    if found is None:
        message = say("{name} is not there: --to deepspeed --output {name} writes it", name=name)
        yield Note(codes.NO_FILE, Kind.CHANGED, FILE, message)
        return
    for path, value in tree.leaves(config):
        if path and not tree.same(tree.get(found.config, path), value):
            key = render_path(path)
            message = say(
                "{name} must say {key} {value}: the YAML names it", name=name, key=key, value=tree.dumped(value)
            )
            yield Note(codes.CARRIED_WHOLE, Kind.CHANGED, key, message, settings.places.get(path))


def validated(
    request: Request, written: Written, consumer: Consumer, known: Knowledge, config: Config
) -> tuple[Document, tuple[Finding, ...]]:
    """Read a result again, and return its document with what the rules say of it.

    Raises ConvertError, which is an error of ours, where a form that carries everything reads back as something else.
    """
    folder, text = request.folder, written.text
    if (written.names_file or request.into.carrying == "file") and request.target is not Form.DEEPSPEED:
        document = parse(json.dumps(config, indent=2, default=str))  # of the file that the form names
        return document, _findings(document, request, known, consumer, ())
    result = read(request.target, Input(text, folder, request.into.line, consumer=consumer))
    is_whole = request.target in {Form.DEEPSPEED, Form.DICT} and not result.unknown
    if is_whole and not tree.same(result.config, config):
        raise ConvertError(say("what was written reads back as something else; please report this"))
    document = parse(text) if request.target is Form.DEEPSPEED else document_of(result)
    return document, _findings(document, request, known, consumer, hidden(result))


def _findings(
    document: Document, request: Request, known: Knowledge, consumer: Consumer, unknown: tuple[tuple[int, int], ...]
) -> tuple[Finding, ...]:
    facts: Facts = facts_of(request.settings)
    asked = RuleSettings(version=known.version, consumer=consumer, facts=facts)
    found = check(document, asked, unknown=frozenset(start for start, _ in unknown))
    return tuple(one for one in found if one.severity in {Severity.ERROR, Severity.WARNING})
