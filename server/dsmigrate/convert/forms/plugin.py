"""Reads and writes ``DeepSpeedPlugin(...)``: Accelerate's settings in a script, which is never run."""

from __future__ import annotations

import difflib
from dataclasses import replace
from typing import Any

from dsmigrate.convert import codes, tree
from dsmigrate.convert.facts import MISSING, Field, fields
from dsmigrate.convert.forms.accelerate import Load, meant, unused
from dsmigrate.convert.forms.around import LAUNCH, around_notes, carry
from dsmigrate.convert.forms.call_edits import edited, spelled_call
from dsmigrate.convert.forms.fields import BadValueError, taken
from dsmigrate.convert.forms.named import config_of
from dsmigrate.convert.model import Config, ConvertError, Form, Kind, Note, Place, Settings, Target, Written
from dsmigrate.convert.precision import section_of
from dsmigrate.convert.python_calls import EXPRESSION, Argument, Call, Script, script_of
from dsmigrate.document import Path
from dsmigrate.knowledge import Consumer, Knowledge
from dsmigrate.knowledge.wording import json_text
from dsmigrate.languages import mark, say

NAME = "DeepSpeedPlugin"
_CONFIG = "hf_ds_config"
_AROUND = {"zero3_init_flag": "zero3_init_flag", "transformer_moe_cls_names": "deepspeed_moe_layer_cls_names"}
_LEFT_OUT_THERE = mark(
    '{name} does nothing beside {config}, which leaves the key out; only an "auto" there is filled from it'
)
_SAID_THERE = mark('{name} does nothing beside {config}, which says {value}; only an "auto" there is filled from it')
_POSITIONAL = (
    _CONFIG,
    "gradient_accumulation_steps",
    "gradient_clipping",
    "zero_stage",
    "is_train_batch_min",
    "offload_optimizer_device",
    "offload_param_device",
    "offload_optimizer_nvme_path",
    "offload_param_nvme_path",
    "zero3_init_flag",
    "zero3_save_16bit_model",
    "transformer_moe_cls_names",
    "enable_msamp",
    "msamp_opt_level",
)
"""The arguments in the order of the class's fields (accelerate/utils/dataclasses.py:DeepSpeedPlugin)."""


def plugin_call(script: Script, line: int | None = None) -> Call:
    """Return the call of a script that makes the plugin; raises ConvertError for none, or several without ``line``."""
    return chosen(script, script.calls(NAME, positional=_POSITIONAL), NAME, line)


def chosen(script: Script, found: list[Call], name: str, line: int | None) -> Call:
    """Return the one call of ``found``, or that on ``line`` (from 1); raises ConvertError."""
    if line is not None:
        found = script.on_line(found, line)
    if not found:
        message = (
            say("there is no {name}(...) in the script", name=name)
            if line is None
            else say("there is no {name}(...) on line {line}", name=name, line=line)
        )
        raise ConvertError(message, line or 0)
    if len(found) > 1:
        shown = say(", ").join(str(script.line_of(call)) for call in found)
        raise ConvertError(
            say("the script has several {name}(...), on the lines {lines}; choose with --line", name=name, lines=shown)
        )
    return found[0]


def read_plugin(text: str, load: Load, line: int | None = None) -> Settings:
    """Return what the plugin of a script starts DeepSpeed with; raises ConvertError where there is none."""
    script = script_of(text)
    call = plugin_call(script, line)
    config = call.arguments.get(_CONFIG)
    if config is not None and config.value is not None and config.value != "none":
        settings = _with_config(call, config_of(script, config, load, Consumer.ACCELERATE))
    else:
        settings = _of_fields(script, call)
    settings = replace(settings, form=Form.PLUGIN, consumer=Consumer.ACCELERATE, text=text)
    return _beside(script, replace(settings, is_whole=settings.is_whole and call.is_whole), call)


def call_place(settings: Settings) -> Place:
    """Return the place for what has none of its own: the call."""
    calls = script_of(settings.text).calls(NAME, positional=_POSITIONAL)
    if not calls:
        return Place(0, 0, 0, len(settings.text))
    return Place(calls[0].start, calls[0].start + len(NAME), calls[0].start, calls[0].end)


def _values(call: Call) -> tuple[dict[str, Any], dict[Path, str], list[Note]]:
    """Return the fields that a call gives, the expressions among them, and what is wrong with others."""
    values: dict[str, Any] = {}
    unknown: dict[Path, str] = {}
    notes: list[Note] = []
    for argument in call.arguments.values():
        one = fields().get(argument.name)
        if one is None:
            if argument.name not in _POSITIONAL:
                notes.append(_unknown(argument))
        elif argument.value is EXPRESSION:
            values[one.name] = 1
            unknown[one.path] = argument.text
        elif argument.value is not None:
            try:
                values[one.name] = taken(one, argument.value)
            except BadValueError as error:
                notes.append(Note(codes.BAD_VALUE, Kind.CHANGED, one.name, str(error), argument.place))
    return values, unknown, notes


def _unknown(argument: Argument) -> Note:
    near = difflib.get_close_matches(argument.name, _POSITIONAL, n=1)
    message = say("{plugin} has no argument {name}", plugin=NAME, name=argument.name)
    message = meant(message, near[0]) if near else message
    return Note(codes.REFUSED_KEY, Kind.CHANGED, argument.name, message, argument.place)


def _of_fields(script: Script, call: Call) -> Settings:
    values, unknown, notes = _values(call)
    config: Config = {"train_batch_size": "auto", "train_micro_batch_size_per_gpu": "auto"}
    places: dict[Path, Place] = {}
    for one in fields().values():
        argument = call.arguments.get(one.name)
        value = values.get(one.name, one.absent)
        if value is MISSING:
            continue
        if one.needs and values.get(one.needs) != one.only_for:
            if argument is not None:
                notes.append(Note(codes.PATH_UNUSED, Kind.LOST, one.name, unused(one), argument.place))
            unknown.pop(one.path, None)
            continue
        if one.name == "gradient_clipping" and value == 0:
            message = say(
                "Accelerate leaves gradient_clipping 0 out, so that DeepSpeed takes its default: 1.0 since 0.19.3"
            )
            place = argument.place if argument else None
            notes.append(Note(codes.CLIPPING_LEFT_OUT, Kind.CHANGED, one.name, message, place))
            continue
        tree.put(config, one.path, value)
        if argument is not None:
            places[one.path] = argument.place
    settings = Settings(Form.PLUGIN, Consumer.ACCELERATE, config, places=places, unknown=unknown, text=script.text)
    return settings.noting(*notes)


def _with_config(call: Call, found: Settings) -> Settings:
    """Fill "auto" of the config from the arguments; where it has a value, that one counts."""
    values, unknown, notes = _values(call)
    config, places = tree.copied(found.config), dict(found.places)
    hidden = dict(found.unknown)
    for name, value in values.items():
        one: Field = fields()[name]
        there = tree.get(config, one.path)
        place = call.arguments[name].place
        if there == "auto":
            tree.put(config, one.path, value)
            places[one.path] = place
            if one.path in unknown:
                hidden[one.path] = unknown[one.path]
        elif there is tree.MISSING or there != value:
            message = (
                say(_LEFT_OUT_THERE, name=name, config=_CONFIG)
                if there is tree.MISSING
                else say(_SAID_THERE, name=name, config=_CONFIG, value=json_text(there))
            )
            notes.append(Note(codes.ARGUMENT_IGNORED, Kind.LOST, name, message, place))
    return replace(found, config=config, places=places, unknown=hidden).noting(*notes)


def _beside(script: Script, settings: Settings, call: Call) -> Settings:
    """Add what the script says around the plugin: its own arguments, and those of ``Accelerator``."""
    around: dict[str, Any] = {}
    for name, known_as in _AROUND.items():
        argument = call.arguments.get(name)
        if argument is not None and argument.value not in (EXPRESSION, None):
            around[known_as] = argument.value
    arguments: dict[str, Any] = {}
    config, places = settings.config, dict(settings.places)
    makers = script.calls("Accelerator")
    if len(makers) == 1:
        steps, kind = makers[0].arguments.get("gradient_accumulation_steps"), makers[0].arguments.get("mixed_precision")
        if steps is not None and isinstance(steps.value, int):
            arguments["gradient_accumulation_steps"] = steps.value
        elif steps is None and makers[0].is_whole:
            arguments["gradient_accumulation_steps"] = 1
        if kind is not None and kind.value in {"fp16", "bf16", "fp8", "no"}:
            arguments["mixed_precision"] = kind.value
            section = {"fp16": "fp16", "bf16": "bf16", "fp8": "bf16"}.get(kind.value)
            if section is not None and section not in config:
                config = {**config, section: section_of(section)}
                places[section, "enabled"] = kind.place
            settings = _contradicted(settings, kind, section)
    return replace(settings, config=config, places=places, around=around, arguments={**settings.arguments, **arguments})


def _contradicted(settings: Settings, kind: Argument, section: str | None) -> Settings:
    other = {"fp16": "bf16", "bf16": "fp16"}.get(section or "")
    if other is None or tree.get(settings.config, (other, "enabled"), default=False) is not True:
        return settings
    message = say(
        "mixed_precision {kind} stands beside a config that switches {other} on, at which Accelerate stops",
        kind=kind.value,
        other=other,
    )
    return settings.noting(Note(codes.BOTH_PRECISIONS, Kind.CHANGED, "mixed_precision", message, kind.place))


def write_plugin(settings: Settings, config: Config, known: Knowledge, target: Target) -> Written:
    """Return a script that makes the plugin, or the target's with the arguments of its plugin changed.

    With ``carrying`` "auto" that are fields where they lose nothing, else the whole config as a dictionary.
    """
    carrying, there = target.carrying, target.there
    result = carry(settings, config, known, in_yaml=False)
    notes = result.notes
    if carrying == "auto" and result.loses:
        carrying = "whole"
        count = len({note.key for note in notes if note.kind is not Kind.TOLD})
        message = say(
            "the config is written whole: {count} of its keys have no argument of {plugin}", count=count, plugin=NAME
        )
        notes = [Note(codes.CARRIED_WHOLE, Kind.TOLD, _CONFIG, message)]
    wanted: dict[str, Any] = dict(result.values)
    precision = result.precision
    if carrying in {"whole", "file"}:
        notes = [note for note in notes if note.code == codes.CARRIED_WHOLE]
        wanted = {_CONFIG: target.name if carrying == "file" else config}
        precision = ""
    for own, known_as in _AROUND.items():
        if settings.around.get(known_as) is not None:
            wanted[own] = settings.around[known_as]
    carried = {**LAUNCH, **dict.fromkeys(_AROUND.values(), "")}
    carried |= {"num_processes": mark("accelerate launch --num_processes says it")}
    notes = [*notes, *around_notes(settings, carried)]
    if there is not None and there.strip():
        script = Script(there)
        text = edited(script, plugin_call(script, target.line), wanted, owned=(*fields(), _CONFIG, *_AROUND))
        if precision:
            text, more = _precision_of(text, precision)
            notes += more
        return Written(text, tuple(notes))
    accelerator: dict[str, object] = {"mixed_precision": precision} if precision else {}
    steps = wanted.get("gradient_accumulation_steps", tree.get(config, ("gradient_accumulation_steps",), None))
    if isinstance(steps, int) and steps != 1:
        accelerator["gradient_accumulation_steps"] = steps
    maker = "".join(f"{key}={value!r}, " for key, value in accelerator.items())
    text = (
        "from accelerate import Accelerator, DeepSpeedPlugin\n\n"
        f"deepspeed_plugin = {spelled_call(NAME, wanted)}\n"
        f"accelerator = Accelerator({maker}deepspeed_plugin=deepspeed_plugin)\n"
    )
    return Written(text, tuple(notes))


def _precision_of(text: str, precision: str) -> tuple[str, list[Note]]:
    """Set the mixed precision of the script's ``Accelerator``; a note where that is not to be seen."""
    script = Script(text)
    makers = script.calls("Accelerator")
    if len(makers) != 1:
        message = say("give the script's Accelerator mixed_precision={precision}", precision=repr(precision))
        return text, [Note(codes.PRECISION_SECTION, Kind.CHANGED, "mixed_precision", message)]
    there = makers[0].arguments.get("mixed_precision")
    if there is not None and there.value is EXPRESSION:
        message = say(
            "mixed_precision is the expression {text}; the config says {precision}",
            text=there.text,
            precision=repr(precision),
        )
        return text, [Note(codes.PRECISION_SECTION, Kind.CHANGED, "mixed_precision", message)]
    if there is None and precision == "no":
        return text, []
    return edited(script, makers[0], {"mixed_precision": precision}, owned=("mixed_precision",)), []
