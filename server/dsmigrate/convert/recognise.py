"""Which form a text is in."""

from __future__ import annotations

import re
from pathlib import PurePath

from dsmigrate.checking.recognise import YAML
from dsmigrate.convert.model import ConvertError, Form
from dsmigrate.convert.python_calls import script_of
from dsmigrate.editing.python import literals
from dsmigrate.languages import say

SCRIPTS = frozenset({".py", ".pyw"})
_ACCELERATE = re.compile(
    r"(?m)^[\"']?(?:distributed_type|deepspeed_config|compute_environment|fsdp_config)[\"']?[ \t]*:"
)
_PYTHON = re.compile(r"(?m)^(?:from \w[\w.]* import |import \w|\w+ *= *(?:\w+\(|\{)|(?:def|class) \w)")


def form_of(name: str, text: str) -> Form:
    """Return the form of a file, by its name where that tells, and by what it holds.

    Raises ConvertError for a script without any settings of DeepSpeed.
    """
    suffix = PurePath(name).suffix.lower()
    if suffix in YAML or (suffix not in SCRIPTS and _ACCELERATE.search(text)):
        return Form.ACCELERATE
    if suffix in SCRIPTS or (not suffix and not text.lstrip().startswith(("{", "#", "/")) and _PYTHON.search(text)):
        return _form_of_script(text)
    return Form.DEEPSPEED


def is_plain_accelerate(name: str, text: str) -> bool:
    """Return whether a file is a script with ``Accelerator(...)`` whose settings of DeepSpeed are elsewhere."""
    if PurePath(name).suffix.lower() not in SCRIPTS or "Accelerator(" not in text:
        return False
    try:
        form_of(name, text)
    except ConvertError as error:
        return not error.line and bool(script_of(text).calls("Accelerator"))
    return False


def _form_of_script(text: str) -> Form:
    script = script_of(text)
    if script.calls("DeepSpeedPlugin"):
        return Form.PLUGIN
    if any("Arguments" in call.name or call.name.endswith("Config") for call in script.calls_with("deepspeed")):
        return Form.TRANSFORMERS
    if literals(text):
        return Form.DICT
    raise ConvertError(
        say(
            "the script has no settings of DeepSpeed that are written out: no DeepSpeedPlugin(...), no "
            "TrainingArguments(deepspeed=...), and no dictionary that is given to DeepSpeed or named as its config"
        )
    )
