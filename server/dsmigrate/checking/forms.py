"""Checks what is no config file: YAML and arguments of ``accelerate launch``, plugins and dictionaries in scripts.

Each gives parts: a document whose keys are DeepSpeed's and whose places are those of the file.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from dsmigrate.checking.arguments import (
    STRATEGY,
    accelerated_for,
    arguments_for,
    clips,
    of_call,
    of_maker,
    started_by,
)
from dsmigrate.checking.evidence import consumer_for
from dsmigrate.checking.job import Checked, Mending, facts, release_of
from dsmigrate.checking.launched import is_launcher, launches
from dsmigrate.checking.suppression import visible_in_text
from dsmigrate.convert.codes import NOT_DEEPSPEED
from dsmigrate.convert.job import text_of
from dsmigrate.convert.model import ConvertError, Form, Place, Settings
from dsmigrate.convert.overlay import overlay
from dsmigrate.convert.python_calls import script_of
from dsmigrate.convert.reading import Input, hidden, read, spelled_out, whole_of
from dsmigrate.convert.recognise import form_of, is_plain_accelerate
from dsmigrate.convert.rules import findings_of
from dsmigrate.document import Document, apply
from dsmigrate.document.reading import Tree
from dsmigrate.document.shapes import ContainerShape
from dsmigrate.document.textedits import TextEdit
from dsmigrate.editing.python import NOT_OF_PYTHON, Literal, as_python, literals
from dsmigrate.editing.view import View
from dsmigrate.knowledge import Consumer
from dsmigrate.languages import mark, say
from dsmigrate.rules import Accelerated, Arguments, Finding, Fix
from dsmigrate.rules import Settings as RuleSettings
from dsmigrate.rules.fixing import fix_all, with_few_fixes
from dsmigrate.rules.run import in_order
from dsmigrate.settings.check import CheckSettings

_FSDP = re.compile(r"(?m)^distributed_type:[ \t]*[\"']?FSDP")
_NAMED = "deepspeed_config_file"


@dataclass(frozen=True, slots=True)
class Part:
    """One config of a file, with who reads it; ``found`` is what its form says for itself.

    ``world_size`` counts the processes that the file starts, None where it does not say.
    """

    document: Document
    consumer: Consumer
    why: str
    unknown: tuple[tuple[int, int], ...] = ()
    is_whole: bool = True
    found: tuple[Finding, ...] = ()
    world_size: int | None = None
    is_dict: bool = False
    arguments: tuple[Arguments, ...] = ()
    lightning: bool = False
    through_accelerate: bool = False
    clips: bool | None = None
    launched: bool = False
    accelerates: bool = False
    """Whether it is given to Accelerate in a script."""


def check_form(
    name: str, data: bytes, folder: Path | None, settings: CheckSettings, mending: Mending
) -> Checked | None:
    """Check a script, a YAML file or a launcher; None for a file that is none of them."""
    try:
        text = text_of(name, data)
        release = release_of(settings, folder)
        if is_plain_accelerate(name, text):
            why = say("it makes an `Accelerator`, and is held against the configs that are named with it")
            return Checked(name, without_tree(text), (), *release, Consumer.ACCELERATE, why, text)
        form = None if is_launcher(name, text) else form_of(name, text)
        if form is Form.DEEPSPEED:
            return None
        original = text
        applied: list[tuple[Finding, Fix]] = []
        if mending.wanted and form is not None and form.is_script:
            text, applied = _mended(text, folder, settings, release[0], mending)
        elif mending.wanted and form is not None:
            text, applied = _mended_fields(text, Path(name), folder, settings, mending)
        file = None if folder is None else Path(name)
        parts = list(_launched(name, text, file) if form is None else parts_in_file(form, text, file))
        found = [finding for part in parts for finding in _found(part, folder, settings, release[0], Path(name))]
    except ConvertError as error:
        return Checked(name, None, error=_said(error))
    document = without_tree(text)
    return Checked(
        name=name,
        document=document,
        findings=tuple(visible_in_text(document, in_order(found))),
        version=release[0],
        why_version=release[1],
        consumer=parts[0].consumer if parts else Consumer.ACCELERATE,
        why_consumer=parts[0].why if parts else "",
        original=original,
        fixed=tuple(applied),
    )


def parts_in_file(form: Form, text: str, file: Path | None) -> Iterator[Part]:
    """Yield every config of a text with what launch lines around its file give besides; ``parts_of`` without a file."""
    for part in parts_of(form, text, None if file is None else file.parent):
        if form is Form.ACCELERATE and file is not None:
            yield replace(_with_arguments(part, file), clips=clips(file), launched=True)
        else:
            yield part


def _launched(name: str, text: str, file: Path | None) -> Iterator[Part]:
    """Yield what the launch lines of a text say; raises ConvertError if none says anything of DeepSpeed."""
    empty = True
    for launch in launches(name, text):
        empty = False
        why = say("the arguments of accelerate launch in line {line}", line=launch.line)
        part = _part(launch.settings, why, with_config=True, place=launch.place)
        if launch.started is not None and file is not None:
            place = f"{file.name}:{launch.line}"
            given, trainer = started_by(launch.started, place, file, launch.variables)
            if trainer:
                part = replace(part, consumer=Consumer.TRANSFORMERS, arguments=(given,), through_accelerate=True)
            part = replace(part, clips=clips(file))
        yield part
    if empty:
        raise ConvertError(say("no line in it starts accelerate launch --use_deepspeed with settings of DeepSpeed"))


def _with_arguments(part: Part, file: Path) -> Part:
    """Return the part of a YAML file with what launch lines give besides it, read by the Trainer if they say so."""
    given, why = arguments_for(file)
    if not why:
        return part
    return replace(part, consumer=Consumer.TRANSFORMERS, why=why, arguments=given, through_accelerate=True)


def _said(error: ConvertError) -> str:
    return say("line {line}: {message}", line=error.line, message=error.message) if error.line else error.message


def parts_of(form: Form, text: str, folder: Path | None) -> Iterator[Part]:
    """Yield every config of a text; raises ConvertError for one that cannot be read."""
    if form is Form.ACCELERATE:
        if _FSDP.search(text):
            raise ConvertError(say("it trains with FSDP: there are no DeepSpeed settings in it to check"))
        settings = read(form, Input(text, folder))
        trains = all(note.code != NOT_DEEPSPEED for note in settings.notes)
        yield _part(settings, say(_WHY[form]), with_config=trains and _NAMED not in text)
        return
    script = script_of(text)
    yielded: set[int] = set()
    for call in script.calls("DeepSpeedPlugin"):
        config = call.arguments.get("hf_ds_config")
        if config is not None:
            yielded.add(script.value_start(config.place))
        try:
            settings = read(Form.PLUGIN, Input(text, folder, script.line_of(call)))
        except ConvertError:
            continue  # a config that nobody can follow: an expression
        yield replace(_part(settings, say(_WHY[Form.PLUGIN]), with_config=config is None), accelerates=True)
    trainers = {script.value_start(call.arguments["deepspeed"].place): call for call in script.calls_with("deepspeed")}
    given = [call.arguments["config"] for call in script.calls(STRATEGY) if "config" in call.arguments]
    lightning = {script.value_start(argument.place) for argument in given}
    for literal in literals(text):
        part = _dictionary(literal, folder, accelerate=literal.start in yielded, trainer=literal.start in trainers)
        if literal.start in trainers:
            call = trainers[literal.start]
            place = say("line {line}", line=script.line_of(call))
            part = replace(part, arguments=(of_call(script, call, place),))
        if literal.start in lightning:
            part = replace(part, consumer=Consumer.DEEPSPEED, why=say("it is given to Lightning"), lightning=True)
        yield part


def _part(settings: Settings, why: str, *, with_config: bool, place: Place | None = None) -> Part:
    place = place or whole_of(settings)
    if not with_config:
        settings = replace(settings, config={}, unknown={})
    processes = str(settings.around.get("num_processes"))
    return Part(
        document=overlay(spelled_out(settings), place) if with_config else without_tree(settings.text),
        consumer=settings.consumer,
        why=why,
        unknown=hidden(settings),
        is_whole=settings.is_whole and with_config,
        found=tuple(findings_of(settings.notes, place)),
        world_size=int(processes) or None if processes.isdecimal() else None,
    )


def _dictionary(literal: Literal, folder: Path | None, *, accelerate: bool, trainer: bool) -> Part:
    if accelerate:
        consumer, why = Consumer.ACCELERATE, say(_WHY[Form.PLUGIN])
    elif trainer:
        consumer, why = Consumer.TRANSFORMERS, say(_WHY[Form.TRANSFORMERS])
    else:
        guess = consumer_for(literal.document, folder)
        consumer, why = Consumer(guess.value), guess.why
    unknown = tuple(literal.masked.unknown)
    return Part(literal.document, consumer, why, unknown, literal.is_whole, is_dict=True, accelerates=accelerate)


def findings_in(part: Part, settings: CheckSettings, file: Path) -> Iterator[Finding]:
    """Yield what the form of a part says for itself, as far as the settings take it."""
    ignored = settings.ignored_in(file)
    for finding in part.found:
        selected = not settings.select or finding.code.startswith(settings.select)
        if selected and not (ignored and finding.code.startswith(ignored)):
            yield finding


def view_of(part: Part, folder: Path | None, settings: CheckSettings, release: str, file: Path) -> View:
    """Return a part as the settings, and what lies around its file, have it."""
    known = facts(settings, folder, part.consumer)
    if known.world_size is None:
        known = replace(known, world_size=part.world_size)
    known = replace(
        known,
        arguments=(*known.arguments, *part.arguments),
        accelerated=_accelerated(part, settings, file),
        launched=part.launched,
        lightning=part.lightning,
        through_accelerate=part.through_accelerate,
        clips=part.clips,
    )
    ignored = settings.ignored_in(file)
    apart = (*ignored, *NOT_OF_PYTHON) if part.is_dict else ignored
    asked = RuleSettings(release, part.consumer, known, settings.select, apart)
    return View(
        part.document,
        asked,
        why_consumer=part.why,
        folder=folder,
        unknown=part.unknown,
        whole=part.is_whole,
        overlaid=not part.is_dict,
    )


def _accelerated(part: Part, settings: CheckSettings, file: Path) -> tuple[Accelerated, ...]:
    """Return what scripts with Accelerate say beside a part; for a part of a script what that one says."""
    if part.consumer is not Consumer.ACCELERATE or not file.is_file():
        return ()
    if part.launched:
        return accelerated_for(file, settings.scripts)
    return tuple(replace(one, holds_config=True) for one in of_maker(file)) if part.accelerates else ()


def _found(part: Part, folder: Path | None, settings: CheckSettings, release: str, file: Path) -> Iterator[Finding]:
    yield from findings_in(part, settings, file)
    if part.document.root is None:
        return
    view = view_of(part, folder, settings, release, file)
    for finding in with_few_fixes(part.document.text, view.findings):
        fixes = tuple(_as_python(fix) for fix in finding.proposed) if part.is_dict else ()
        yield replace(finding, proposed=fixes)


def _as_python(fix: Fix) -> Fix:
    def edits() -> tuple[TextEdit, ...]:
        return tuple(TextEdit(edit.start, edit.end, as_python(edit.text)) for edit in fix.edits)

    return Fix(fix.title, edits, fix.safe)


def _mended(
    text: str, folder: Path | None, settings: CheckSettings, release: str, mending: Mending
) -> tuple[str, list[tuple[Finding, Fix]]]:
    """Return the script with the fixes made in its dictionaries, one after the other, as they move each other."""
    applied: list[tuple[Finding, Fix]] = []
    for index in range(len(literals(text))):
        found = literals(text)[index]
        if found.masked.unknown or not found.is_whole:
            continue  # what a finding rests on may be an expression
        consumer = settings.consumer or Consumer(consumer_for(found.document, folder).value)
        apart = (*settings.ignore, *NOT_OF_PYTHON)
        asked = RuleSettings(release, consumer, facts(settings, folder, consumer), settings.select, apart)
        plain = without_tree(text)

        def visible(document: Document, asked: RuleSettings = asked, plain: Document = plain) -> list[Finding]:
            return mending.of(visible_in_text(plain, View(document, asked).findings))

        result = fix_all(found.document, visible, unsafe=mending.unsafe)
        edits = [TextEdit(edit.start, edit.end, as_python(edit.text)) for edit in result.edits]
        text = apply(text, edits)
        applied += result.applied
    return text, applied


def _mended_fields(
    text: str, file: Path, folder: Path | None, settings: CheckSettings, mending: Mending
) -> tuple[str, list[tuple[Finding, Fix]]]:
    """Return the YAML with the fixes of what its form says for itself."""
    found = [
        finding for part in parts_of(Form.ACCELERATE, text, folder) for finding in findings_in(part, settings, file)
    ]
    wanted = mending.of(visible_in_text(without_tree(text), found))
    applied = [(finding, fix) for finding in wanted for fix in finding.fixes[:1] if fix.safe or mending.unsafe]
    return apply(text, [edit for _, fix in applied for edit in fix.edits]), applied


def without_tree(text: str) -> Document:
    """Return a document without a tree, for its lines."""
    top = ContainerShape(is_object=False)
    top.width = len(text)
    return Document(text, Tree(top, divisible=False))


def side_of(name: str, data: bytes, folder: Path | None) -> Part | None:
    """Return the one config of a script or YAML file, as a side of a comparison; None for other files.

    Raises ConvertError for several, and for one that cannot be read.
    """
    text = text_of(name, data)
    form = form_of(name, text)
    if form is Form.DEEPSPEED:
        return None
    settings = read(form, Input(text, folder))
    return _part(settings, say(_WHY[form]), with_config=True)


_WHY = {
    Form.ACCELERATE: mark("the form of the file"),
    Form.PLUGIN: mark("it is given to DeepSpeedPlugin"),
    Form.TRANSFORMERS: mark("it is given to the Trainer's arguments"),
    Form.DICT: mark("the dictionary of a script"),
}
