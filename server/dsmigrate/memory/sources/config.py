"""A model's ``config.json`` with the defaults of its family behind it."""

from __future__ import annotations

import functools
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from dsmigrate.files.reading import read
from dsmigrate.files.text import SourceError
from dsmigrate.memory.sources.errors import ModelError
from dsmigrate.schemas_location import schema_toml

_LARGEST_FILE = 16 << 20
_LARGEST_NUMBER = 10**9
_MOST_LAYERS = 10_000


@functools.cache
def families() -> Mapping[str, Mapping[str, Any]]:
    """Return how each ``model_type`` is built (schemas/models/families.toml)."""
    return schema_toml("models/families.toml")


class ModelConfig:
    """The values of a ``config.json``; what it leaves out has the default of the family, as in the library."""

    def __init__(self, values: Mapping[str, Any], where: str) -> None:
        """Take the values of a file; ``where`` names it. Raises ModelError where the family is not known."""
        self.where = where
        self.values = values
        self.type = values.get("model_type")
        if not isinstance(self.type, str) or self.type not in families():
            known = ", ".join(sorted(families()))
            raise ModelError(
                f"{where}: the architecture of model_type {self.type!r} is not known; known: {known}. "
                "Give the number of parameters with --params, or the .safetensors files"
            )
        self.family = families()[self.type]
        self._keys: Mapping[str, str] = self.family.get("keys", {})
        self._defaults: Mapping[str, Any] = self.family.get("defaults", {})

    @property
    def kind(self) -> str:
        """The family that heads and embeddings are those of: ``like``, or the type itself."""
        return str(self.family.get("like", self.type))

    def value(self, name: str) -> Any:  # noqa: ANN401 - whatever the file holds
        """Return the value under the family's name of a key, or the usual one; the default where neither is there."""
        own = self._keys.get(name, name)
        for key in (own, name):
            if key in self.values:
                return self.values[key]
        return self._defaults.get(own)

    def count(self, name: str, otherwise: int | None = None) -> int:
        """Return a whole number from 0 on; raises ModelError for anything else, and where there is none."""
        found = self.value(name)
        if found is None and otherwise is not None:
            return otherwise
        most = _MOST_LAYERS if "layers" in name else _LARGEST_NUMBER
        if isinstance(found, bool) or not isinstance(found, int) or not 0 <= found <= most:
            key = self._keys.get(name, name)
            raise ModelError(f"{self.where}: {key} {found!r} is not a whole number from 0 to {most}")
        return found

    def positive(self, name: str, otherwise: int | None = None) -> int:
        """Return a whole number from 1 on; raises ModelError for anything else."""
        found = self.count(name, otherwise)
        if not found:
            raise ModelError(f"{self.where}: {self._keys.get(name, name)} is 0")
        return found

    def flag(self, name: str) -> bool:
        """Return a switch of the config."""
        return bool(self.value(name))

    def trait(self, name: str) -> bool:
        """Return a trait of the family: a constant, or the switch of the config that it names."""
        found = self.family.get(name, False)
        return self.flag(found) if isinstance(found, str) else bool(found)

    def drops(self) -> bool:
        """Return whether dropout keeps masks."""
        name = self.family.get("dropout")
        rate = self.value(name) if name else 0
        return isinstance(rate, (int, float)) and rate > 0

    @property
    def activation(self) -> str:
        """The function of the MLP, by the name that the library gives it; "" where the config does not say."""
        names = ("hidden_act", "activation_function", "hidden_activation", "activation", "dense_act_fn")
        return next((str(found) for name in names if (found := self.value(name)) is not None), "")

    @property
    def labels(self) -> int:
        """The classes of a classifying head."""
        names = self.value("id2label")
        return len(names) if isinstance(names, Mapping) and names else self.count("num_labels", 2)

    @property
    def task(self) -> str:
        """What follows the name of the model in ``architectures``: "ForCausalLM"; "" where there is none."""
        found = self.values.get("architectures")
        first = found[0] if isinstance(found, list) and found and isinstance(found[0], str) else ""
        for task in TASKS:
            if first.endswith(task):
                return task
        if first:
            raise ModelError(
                f"{self.where}: architectures[0] {first!r} ends in none of {', '.join(TASKS)}; "
                "give the number of parameters with --params"
            )
        return ""


TASKS = (
    "ForCausalLM",
    "LMHeadModel",
    "ForConditionalGeneration",
    "ForMaskedLM",
    "ForPreTraining",
    "ForSequenceClassification",
    "ForTokenClassification",
    "ForQuestionAnswering",
    "ForImageClassification",
    "EncoderModel",
    "Model",
)
"""The endings of class names whose heads are known."""


def base_of(values: Mapping[str, Any]) -> str:
    """Return how ``quantization_config`` keeps the weights, as a name of ``memory.trained.BASES``."""
    found = values.get("quantization_config")
    if not isinstance(found, Mapping):
        return "16bit"
    if found.get("load_in_4bit") or found.get("bits") == 4:
        return "4bit-double" if found.get("bnb_4bit_use_double_quant") else "4bit"
    return "8bit" if found.get("load_in_8bit") or found.get("bits") == 8 else "16bit"


def load(file: Path) -> Mapping[str, Any]:
    """Return the object of a JSON file; raises ModelError with the place of what is wrong."""
    try:
        found = json.loads(read(file, _LARGEST_FILE).decode("utf-8-sig"))
    except SourceError as error:
        raise ModelError(f"{file}: {error.message}") from None
    except UnicodeDecodeError as error:
        raise ModelError(f"{file}: not UTF-8 text at byte {error.start}") from None
    except json.JSONDecodeError as error:
        raise ModelError(f"{file}:{error.lineno}:{error.colno}: not JSON: {error.msg}") from None
    except (RecursionError, ValueError):
        raise ModelError(f"{file}: nested too deeply, or a number too long") from None
    if not isinstance(found, dict):
        raise ModelError(f"{file}: an object is expected, this is {type(found).__name__}")
    return found
