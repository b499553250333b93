"""What a training script, or a file of arguments, says of the values that fill "auto"."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path as FilePath
from pathlib import PurePath
from typing import Any

from dsmigrate.checking.arguments import of_launches, of_started, written
from dsmigrate.convert import tree
from dsmigrate.convert.facts import transformers
from dsmigrate.convert.forms.deepspeed import places_of
from dsmigrate.convert.forms.transformers import arguments_call, known_arguments
from dsmigrate.convert.model import ConvertError
from dsmigrate.convert.python_calls import Call, Script
from dsmigrate.convert.yaml_tree import read as read_yaml
from dsmigrate.document import Path, parse
from dsmigrate.document.numbers import spelled
from dsmigrate.knowledge.elsewhere import only_of_trainer
from dsmigrate.languages import say
from dsmigrate.launchers.regions import kind_of
from dsmigrate.rules import Arguments as Given
from dsmigrate.rules.model import is_true

_MORE = frozenset({"world_size", "hidden_size", "total_num_steps", "mixed_precision", "warmup_ratio"})
"""Names that fill "auto" beside the arguments with a default."""
_SWITCHES = {"": True, "true": True, "false": False, "yes": True, "no": False}
"""How HfArgumentParser reads a switch, a flag alone too."""


@dataclass(frozen=True, slots=True)
class Arguments:
    """Values by the names of ``TrainingArguments``.

    ``defaults_hold`` says that what is not there has its default, ``of_trainer`` that they are those of the Trainer,
    which then is who fills "auto", whoever starts the script. ``place`` is where they were found, unasked.
    """

    values: dict[str, Any]
    defaults_hold: bool = False
    of_trainer: bool = False
    place: str = ""


def read_arguments(name: str, text: str) -> Arguments:
    """Return what a file says: a script (``.py``), the launch line of a shell script, YAML (``.yaml``), or JSON.

    Raises ConvertError for other text.
    """
    if name.endswith(".py"):
        return _of_script(Script(text), of_started(FilePath(name)))
    if kind_of(PurePath(name).name, text.partition("\n")[0]) == "shell":
        return _of_launches(name, text)
    if name.endswith((".yaml", ".yml")):
        root = read_yaml(text)
        value: object = root.value
        texts: dict[Path, str] = {(one.name,): text[one.place.start : one.place.end] for one in root.entries or ()}
    else:
        document = parse(text)
        for problem in document.problems:
            if problem.is_fatal:
                raise ConvertError.at(problem.message, text, problem.start)
        value = document.value()
        texts = {path: text[at.start : at.end] for path, at in places_of(document).items()}
    if not isinstance(value, dict):
        raise ConvertError(say("the arguments are no mapping of names to values"), 1, 1)
    tree.with_spelling(value, texts.items())
    known = names()
    return Arguments({key: item for key, item in value.items() if key in known}, defaults_hold=True)


def names() -> frozenset[str]:
    """Return the names of all arguments that fill "auto"."""
    return _MORE.union(transformers()["defaults"])


def all_say(trainings: Sequence[Given], *, of_trainer: bool) -> Arguments:
    """Return the values that all of some trainings are given alike."""
    known = names()
    first, *others = (_texts(one, known) for one in trainings)
    alike = {name: text for name, text in first.items() if all(name in one and one[name] == text for one in others)}
    values = {name: _typed(name, text) for name, text in alike.items() if text is not None}
    is_all = all(one == values.keys() for one in (first.keys(), *(one.keys() for one in others)))
    whole = of_trainer and is_all and all(one.whole for one in trainings)
    places = ", ".join(one.place for one in trainings)
    return Arguments(values, defaults_hold=whole, of_trainer=of_trainer, place=places)


def _of_launches(name: str, text: str) -> Arguments:
    """Return the arguments of the one launch line that gives any, or of several that give the same."""
    known = names()
    launches = [one for one in of_launches(text, name) if not known.isdisjoint((*one.values, *one.defaults))]
    if not launches:
        raise ConvertError(say('no command gives an argument that fills "auto"'))
    found = [_of_flags(one) for one in launches]
    if any(one != found[0] for one in found):
        places = say(", ").join(one.place for one in launches)
        raise ConvertError(say("commands with different arguments: {places}; give those of one as text", places=places))
    return found[0]


def _of_flags(given: Given) -> Arguments:
    """Return the values of flags as HfArgumentParser takes them; a script may have other defaults than Transformers."""
    texts = _texts(given, names())
    values = {name: _typed(name, text) for name, text in texts.items() if text is not None}
    holds = given.whole and None not in texts.values()
    of_trainer = given.whole or not only_of_trainer().isdisjoint(given.values)
    return Arguments(values, defaults_hold=holds, of_trainer=of_trainer)


def _texts(given: Given, known: frozenset[str]) -> dict[str, str | None]:
    """Return what a training is given of the names that are known, and the defaults of its script."""
    found = {name: given.given(name) for name in known}
    return {name: one.text for name, one in found.items() if one is not None}


def _typed(name: str, text: str) -> Any:  # noqa: ANN401 - a value of any type
    """Return what the text of an argument stands for; a flag without one is a switch."""
    if isinstance(transformers()["defaults"].get(name), bool):
        return is_true(text)
    if text.lower() in _SWITCHES:
        return _SWITCHES[text.lower()]
    for kind in (int, float):
        with contextlib.suppress(ValueError):
            return spelled(kind(text), text)
    return text


def of_json(text: str) -> Any:  # noqa: ANN401 - any JSON
    """Return JSON as Python, its numbers with their texts; raises ValueError for other text."""
    return json.loads(
        text,
        parse_int=lambda one: spelled(int(one), one),
        parse_float=lambda one: spelled(float(one), one),
    )


def of_text(text: str) -> Arguments:
    """Return what JSON or flags on the command line say; raises ConvertError for text that is neither."""
    if text.lstrip().startswith("-"):
        return _of_flags(written(text))
    try:
        value = of_json(text)
    except ValueError as error:
        raise ConvertError(say("the arguments are no JSON: {error}", error=error)) from None
    if not isinstance(value, dict):
        raise ConvertError(say("the arguments are no JSON object"))
    return Arguments(value)


def _of_script(script: Script, started: Given) -> Arguments:
    found: dict[str, Any] = {}
    try:
        call = arguments_call(script)
    except ConvertError:
        call = None
    if call is not None:
        known, holds = known_arguments(script, call)
        return Arguments(known, defaults_hold=holds, of_trainer=not script.calls("Accelerator"))
    if started.whole:
        return _of_flags(started)
    _take(
        found, script.calls("Accelerator"), {name: name for name in ("gradient_accumulation_steps", "mixed_precision")}
    )
    makers = script.calls("Accelerator")
    if len(makers) == 1 and makers[0].is_whole and "gradient_accumulation_steps" not in makers[0].arguments:
        found["gradient_accumulation_steps"] = 1
    optimizers = {"lr": "learning_rate", "weight_decay": "weight_decay"}
    _take(found, script.calls("DummyOptim", positional=("params", "lr", "weight_decay")), optimizers)
    steps = {"total_num_steps": "total_num_steps", "warmup_num_steps": "warmup_steps"}
    _take(found, script.calls("DummyScheduler", positional=("optimizer", "total_num_steps", "warmup_num_steps")), steps)
    sizes = [call.arguments["batch_size"].value for call in script.calls_with("batch_size") if "Loader" in call.name]
    if sizes and all(isinstance(size, int) for size in sizes):
        found["per_device_train_batch_size"] = min(sizes)
    return Arguments(found)


def _take(found: dict[str, Any], calls: list[Call], names: dict[str, str]) -> None:
    """Take literals from the one call there is; of several none, as they may differ."""
    if len(calls) != 1:
        return
    for name, known_as in names.items():
        argument = calls[0].arguments.get(name)
        if argument is not None and isinstance(argument.value, (int, float, str)):
            found[known_as] = argument.value
