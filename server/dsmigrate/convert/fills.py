"""What a consumer puts in the place of "auto", worked out from what is known of its arguments.

The texts that ``schemas/deepspeed/consumers.toml`` gives as the source of a value are what the values are computed by.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from dsmigrate.convert.facts import transformers
from dsmigrate.knowledge import Auto

WORLD_SIZE = "world_size"
HIDDEN_SIZE = "hidden_size"


class NotKnownError(LookupError):
    """Nothing says what a value is; ``names`` are the arguments that would."""

    def __init__(self, *names: str) -> None:
        super().__init__(", ".join(names))
        self.names = names


@dataclass(frozen=True, slots=True)
class Known:
    """Arguments by the names of ``TrainingArguments``, and ``world_size`` (processes), ``hidden_size`` (elements).

    With ``defaults_hold`` an argument that is not there has its default.
    """

    arguments: Mapping[str, Any]
    defaults_hold: bool = False

    def get(self, *names: str) -> Any:  # noqa: ANN401 - arguments are of any type
        """Return the first argument that is known; raises NotKnownError."""
        for name in names:
            if self.arguments.get(name) is not None:
                return self.arguments[name]
        defaults: Mapping[str, Any] = transformers()["defaults"]
        if self.defaults_hold and names[0] in defaults:
            return defaults[names[0]]
        raise NotKnownError(names[0])

    def number(self, *names: str) -> Any:  # noqa: ANN401 - a number of either kind
        """Return the first argument that is known, if it is a number; raises NotKnownError."""
        value = self.get(*names)
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            raise NotKnownError(names[0])
        return value


Source = Callable[[Known, tuple[str, ...]], Any]


def value_of(auto: Auto, known: Known) -> Any:  # noqa: ANN401 - a value of the config
    """Return the value that takes the place of "auto"; raises NotKnownError with the arguments that are missing."""
    for pattern, source in _SOURCES.items():
        found = re.fullmatch(pattern, auto.english)
        if found:
            return source(known, (found[0], *found.groups()))
    raise NotKnownError(auto.source)


def has_meaning(text: str) -> bool:
    """Return whether a text of the facts is one that values are computed by."""
    return any(re.fullmatch(pattern, text) for pattern in _SOURCES)


def arguments_of(text: str) -> tuple[str, ...]:
    """Return the arguments of the Trainer that a value is taken from alone, as the facts name it."""
    single = re.fullmatch(r"TrainingArguments\.(\w+)", text)
    pair = re.fullmatch(r"\[TrainingArguments\.(\w+), TrainingArguments\.(\w+)\]", text)
    found = single or pair
    return found.groups() if found else ()


def _scalar(text: str) -> Any:  # noqa: ANN401 - a value of the config
    try:
        return json.loads(text)
    except ValueError:
        return text


def _total(known: Known) -> int:
    micro, accumulated = known.number("per_device_train_batch_size"), known.number("gradient_accumulation_steps")
    return int(known.number(WORLD_SIZE) * micro * accumulated)


def _steps(known: Known) -> int:
    steps = known.number("max_steps")
    if steps <= 0:
        raise NotKnownError("max_steps")
    return int(steps)


def _warmup(known: Known) -> int:
    is_ratio = "warmup_ratio" in known.arguments and not known.arguments.get("warmup_steps")
    asked = known.number("warmup_ratio" if is_ratio else "warmup_steps")
    return max(1, int(asked) if asked >= 1 or asked <= 0 else math.ceil(asked * _steps(known)))


def _either(known: Known, names: tuple[str, ...]) -> bool:
    precision = known.arguments.get("mixed_precision")
    if precision is not None and names[1] not in known.arguments:
        return bool(precision == names[1])
    if any(bool(known.arguments.get(name)) for name in names[2:]):
        return True
    other = {"fp16": "bf16", "bf16": "fp16"}.get(names[1], "")
    if names[1] not in known.arguments and known.arguments.get(other) is True:
        return False  # TrainingArguments refuses both
    return bool(known.get(names[1]))


def _precision(known: Known, names: tuple[str, ...]) -> bool:
    if "mixed_precision" in known.arguments:
        return bool(known.arguments["mixed_precision"] == names[1])
    return _either(known, (names[0], names[1]))


_SOURCES: Mapping[str, Source] = {
    r"0|true": lambda _, named: _scalar(named[0]),
    r"hidden_size squared": lambda known, _: known.number(HIDDEN_SIZE) ** 2,
    r"0\.9 × hidden_size squared": lambda known, _: int(0.9 * known.number(HIDDEN_SIZE) ** 2),
    r"10 × hidden_size": lambda known, _: 10 * known.number(HIDDEN_SIZE),
    r"TrainingArguments\.(\w+)": lambda known, named: known.number(named[1]),
    r"TrainingArguments\.(\w+) or (\w+)": _either,
    r"\[TrainingArguments\.(\w+), TrainingArguments\.(\w+)\]": lambda known, named: [
        known.number(name) for name in named[1:]
    ],
    r"world size × per_device_train_batch_size × gradient_accumulation_steps": lambda known, _: _total(known),
    r"TrainingArguments\.get_warmup_steps\(num_training_steps\), at least 1": lambda known, _: _warmup(known),
    r"the number of optimizer steps of the run": lambda known, _: _steps(known),
    r"the environment variable (\w+), else (?:the text )?(\w+)": lambda _, named: _scalar(named[2]),
    r"DeepSpeedPlugin\.(\w+), else (?:the text )?([\w.]+)": lambda _, named: _scalar(named[2]),
    r"DeepSpeedPlugin\.(\w+), else Accelerator\(\1=…\)": lambda known, named: known.number(named[1]),
    r"the batch size of the prepared data loaders, the smallest by default": lambda known, _: known.number(
        "per_device_train_batch_size"
    ),
    r"micro-batch × gradient accumulation steps × number of processes": lambda known, _: _total(known),
    r"DummyOptim\(lr=…\)": lambda known, _: known.number("learning_rate"),
    r"DummyOptim\((\w+)=…\)": lambda known, named: known.number(named[1]),
    r"the learning rate of the optimizer": lambda known, _: known.number("learning_rate"),
    r"DummyScheduler\(warmup_num_steps=…\), at least 1": lambda known, _: _warmup(known),
    r"DummyScheduler\(total_num_steps=…\) divided by the number of processes": lambda known, _: math.ceil(
        known.number("total_num_steps") / known.number(WORLD_SIZE)
    ),
    r'Accelerator\(mixed_precision="(\w+)"\)': _precision,
    r"infinity": lambda _, __: "auto",
}
"""What the texts of the facts mean, by the whole text."""
