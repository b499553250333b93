"""Reads and writes ``TrainingArguments(...)``: the Trainer's arguments, with the config that they name."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from dsmigrate.convert.facts import transformers
from dsmigrate.convert.forms.accelerate import Load
from dsmigrate.convert.forms.around import LAUNCH, around_notes
from dsmigrate.convert.forms.call_edits import edited, spelled_call
from dsmigrate.convert.forms.named import config_of
from dsmigrate.convert.forms.plugin import chosen
from dsmigrate.convert.model import Config, ConvertError, Form, Note, Settings, Target, Written
from dsmigrate.convert.python_calls import EXPRESSION, Call, Script
from dsmigrate.knowledge import Consumer
from dsmigrate.languages import mark, say

NAME = "TrainingArguments"
_NAMES = (NAME, "Seq2SeqTrainingArguments", "SFTConfig", "DPOConfig", "GRPOConfig")
_SAME_DEFAULTS = frozenset({NAME, "Seq2SeqTrainingArguments"})
_CONFIG = "deepspeed"


def arguments_call(script: Script, line: int | None = None) -> Call:
    """Return the call of a script that makes the Trainer's arguments: that which names a config, else the one."""
    found = script.calls_with(_CONFIG) or script.calls(*_NAMES)
    return chosen(script, found, NAME, line)


def read_transformers(text: str, load: Load, line: int | None = None) -> Settings:
    """Return what the arguments of a script and their config say; raises ConvertError where there are none."""
    script = Script(text)
    call = arguments_call(script, line)
    config = call.arguments.get(_CONFIG)
    if config is None or config.value is None:
        message = say("{name}(...) names no config: there is no deepspeed= in it", name=call.name)
        raise ConvertError.at(message, text, call.start)
    settings = config_of(script, config, load, Consumer.TRANSFORMERS)
    known, holds = known_arguments(script, call)
    return replace(
        settings,
        form=Form.TRANSFORMERS,
        consumer=Consumer.TRANSFORMERS,
        text=text,
        arguments={**settings.arguments, **known},
        defaults_hold=holds,
    )


def known_arguments(script: Script, call: Call) -> tuple[dict[str, Any], bool]:
    """Return the arguments that fill "auto" as far as they are literals, and whether all others have their defaults.

    An argument that is an expression is not known, and has no default either. Classes of other libraries, and those
    of the script itself, may have other defaults than ``TrainingArguments``.
    """
    names = {*transformers()["defaults"], "warmup_ratio"}
    given = {name: argument for name, argument in call.arguments.items() if name in names}
    known = {name: argument.value for name, argument in given.items() if argument.value is not EXPRESSION}
    has_defaults = call.name in _SAME_DEFAULTS and call.name not in script.classes
    return known, has_defaults and call.is_whole and len(known) == len(given)


def write_transformers(
    settings: Settings, config: Config, arguments: Mapping[str, Any], target: Target, notes: list[Note]
) -> Written:
    """Return a script with the Trainer's arguments and the config, or the target's with those of its call changed.

    With ``carrying`` "file" the config is a file of its own, which the arguments name.
    """
    there = target.there
    carried = {**LAUNCH, "num_processes": mark("torchrun --nproc_per_node, or accelerate launch, says it")}
    notes = [*notes, *around_notes(settings, carried)]
    wanted: dict[str, Any] = {**arguments, _CONFIG: target.name if target.carrying == "file" else config}
    if there is not None and there.strip():
        script = Script(there)
        text = edited(script, arguments_call(script, target.line), wanted, owned=())
        return Written(text, tuple(notes))
    text = f"from transformers import TrainingArguments\n\ntraining_args = {spelled_call(NAME, wanted)}\n"
    return Written(text, tuple(notes))
