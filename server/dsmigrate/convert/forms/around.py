"""What stands around a config, and how fields of Accelerate carry one: shared by its YAML and its plugin."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from dsmigrate.convert import codes, tree
from dsmigrate.convert.facts import MISSING, Field, fields
from dsmigrate.convert.forms.fields import DEVICES
from dsmigrate.convert.model import Config, ConvertError, Form, Kind, Note, Settings
from dsmigrate.document import Path, render_path
from dsmigrate.document.numbers import whole
from dsmigrate.knowledge import Knowledge
from dsmigrate.knowledge.wording import json_text
from dsmigrate.languages import mark, say

_CLIPPING = ("gradient_clipping",)
_STEPS = ("gradient_accumulation_steps",)
_BATCH = {("train_batch_size",), ("train_micro_batch_size_per_gpu",)}
_OF_BATCH = {
    True: mark("{key} {value}: Accelerate takes it from the other two batch keys"),
    False: mark("{key} {value}: Accelerate takes it from the batch size of the data loader"),
}
"""What is said of the whole batch, and of the micro-batch."""
_PRECISIONS = ("fp16", "bf16")
_ON = frozenset({"true", "1", "1.0", "yes", "on", "y", "t"})
_OFF = frozenset({"false", "0", "0.0", "no", "off", "n", "f", "none"})
"""What pydantic reads as a switch, as text."""


@dataclass(slots=True)
class Carried:
    """What fields say: their values, the mixed precision ("" leaves it to the script), and what is not carried."""

    values: dict[str, Any] = field(default_factory=dict)
    precision: str = ""
    notes: list[Note] = field(default_factory=list)

    @property
    def loses(self) -> bool:
        """Whether something is lost or changed that a whole config would keep."""
        return any(note.kind is not Kind.TOLD for note in self.notes)


def carry(settings: Settings, config: Config, known: Knowledge, *, in_yaml: bool) -> Carried:
    """Return the fields of Accelerate that say what ``config`` does."""
    result = Carried()
    by_path: dict[Path, Field] = {one.path: one for one in fields().values()}
    left = {path: value for path, value in tree.leaves(config) if path and value != {}}
    _expressions(settings, left, by_path, result)
    for path, value in list(left.items()):
        one = by_path.get(path)
        if one is None or path in {_CLIPPING, _STEPS}:
            continue
        if one.type == "integer" and isinstance(value, str) and value.isdecimal():
            value = int(value)  # noqa: PLW2901 - DeepSpeed takes the text for the number, and so do the fields
        if _fits(one.type, value):
            if one.needs and tree.get(config, (*path[:-1], "device"), "none") != one.only_for:
                if value is None:
                    left.pop(path)
                continue
            result.values[one.name] = whole(value) if one.type == "integer" and isinstance(value, int) else value
            left.pop(path)
            if in_yaml and one.lost_in_yaml and settings.form is not Form.ACCELERATE:
                message = say(
                    "{key} stands in the YAML, but accelerate's launcher drops it; give it as "
                    "DeepSpeedPlugin({name}=...), or use --carry file",
                    key=render_path(path),
                    name=one.name,
                )
                result.notes.append(_note(codes.NVME_PATH_LOST, Kind.CHANGED, path, message, settings))
        elif value == "auto":
            left.pop(path)
            if one.absent is MISSING:
                result.notes.append(_lost(path, value, settings))
    result.values.setdefault("zero_stage", 0 if tree.get(config, ("zero_optimization", "stage")) is tree.MISSING else 2)
    _steps(config, left, result)
    _clipping(settings, config, left, known, result)
    _precision(settings, config, result)
    result.notes += [_of_rest(path, value, settings) for path, value in left.items() if path[0] not in _PRECISIONS]
    ordered = [name for name in fields() if name in result.values]
    result.values = {name: result.values[name] for name in ordered}
    return result


def _expressions(settings: Settings, left: dict[Path, Any], by_path: Mapping[Path, Field], result: Carried) -> None:
    """Take out what is an expression; raises ConvertError where a field would need its value."""
    for path, text in settings.unknown.items():
        if path not in left:
            continue
        key, place = render_path(path), settings.places.get(path)
        if path in by_path or path[0] in _PRECISIONS:
            message = say("{key} is the expression {text}; say what it is: --set {key}=VALUE", key=key, text=text)
            raise ConvertError.at(message, settings.text, place.start if place else 0)
        del left[path]
        message = say("{key} is the expression {text}, and has no field in Accelerate", key=key, text=text)
        result.notes.append(_note(codes.EXPRESSION, Kind.LOST, path, message, settings))


def _fits(kind: str, value: object) -> bool:
    if kind == "boolean":
        return isinstance(value, bool)
    if kind == "device":
        return value in DEVICES
    if kind == "integer":
        return isinstance(value, int) and not isinstance(value, bool)
    if kind == "number":
        return isinstance(value, (int, float)) and not isinstance(value, bool)
    return isinstance(value, str) and value != "auto"


def _steps(config: Config, left: dict[Path, Any], result: Carried) -> None:
    value = tree.get(config, _STEPS, 1)
    if isinstance(value, int) and not isinstance(value, bool):
        result.values["gradient_accumulation_steps"] = whole(value)
        left.pop(_STEPS, None)
    elif value == "auto":
        left.pop(_STEPS, None)


def _clipping(settings: Settings, config: Config, left: dict[Path, Any], known: Knowledge, result: Carried) -> None:
    """Carry the clipping that counts: fields that leave it out clip at 1.0, and 0 is left out by them."""
    written = tree.get(config, _CLIPPING, None)
    default = known.default("gradient_clipping")
    value = default if written is None else written
    if not isinstance(value, (int, float)) or isinstance(value, bool):
        if value == "auto":
            left.pop(_CLIPPING, None)
        return
    left.pop(_CLIPPING, None)
    if value == 0 and default != 0:
        message = say(
            "gradient_clipping 0 switches clipping off, which fields of Accelerate cannot say: it leaves a 0 out, and "
            "DeepSpeed then clips at {default}; a whole config can (--carry file, or whole)",
            default=default,
        )
        result.notes.append(_note(codes.CLIPPING_OFF, Kind.CHANGED, _CLIPPING, message, settings))
        return
    result.values["gradient_clipping"] = value


def _precision(settings: Settings, config: Config, result: Carried) -> None:
    """Say the precision as ``mixed_precision``, whose sections Accelerate writes in its own way."""
    on = [name for name in _PRECISIONS if _is_on(tree.get(config, (name, "enabled"), default=False))]
    auto = [name for name in _PRECISIONS if tree.get(config, (name, "enabled"), None) == "auto"]
    result.precision = on[0] if on else "" if auto or not settings.precision_is_known else "no"
    for name in _PRECISIONS:
        section = config.get(name)
        if not isinstance(section, dict):
            continue
        if name not in on and not (name in auto and not on):
            switch = section.get("enabled", False)
            if switch != "auto" and str(switch).lower() not in _OFF:
                result.notes.append(_lost((name, "enabled"), switch, settings))
            if len(section) > 1:
                message = say("{name} is off, and is left out with its keys", name=name)
                result.notes.append(_note(codes.PRECISION_SECTION, Kind.TOLD, (name,), message, settings))
            continue
        for path, value in tree.leaves(section, (name,)):
            if path == (name, "enabled"):
                continue
            if path == ("fp16", "auto_cast") and value is True:
                continue
            message = say(
                "{key} {value} has no field; mixed_precision makes a section of its own",
                key=render_path(path),
                value=json_text(value),
            )
            result.notes.append(_note(codes.NO_PLACE, Kind.LOST, path, message, settings))
        if name == "fp16" and name in on and section.get("auto_cast") is not True and "auto_cast" not in section:
            message = say("mixed_precision fp16 switches fp16.auto_cast on as well: inputs are cast to half precision")
            result.notes.append(_note(codes.PRECISION_SECTION, Kind.CHANGED, (name,), message, settings))


def _is_on(value: object) -> bool:
    """Return whether DeepSpeed takes a switch of a checked section for on: it reads the texts as well."""
    return str(value).lower() in _ON


def _of_rest(path: Path, value: object, settings: Settings) -> Note:
    key, shown = render_path(path), json_text(value)
    if path in _BATCH:
        sentence = _OF_BATCH[path[0] == "train_batch_size"]
        message = say(sentence, key=key, value=shown)
        kind = Kind.TOLD if value == "auto" or path == ("train_batch_size",) else Kind.CHANGED
        return _note(codes.FILLED_ELSEWHERE, kind, path, message, settings)
    if path == ("steps_per_print",):
        message = say("steps_per_print {value}: Accelerate switches these lines off", value=shown)
        return _note(codes.OVERWRITTEN, Kind.TOLD, path, message, settings)
    if path == ("zero_allow_untested_optimizer",) and value is True and "optimizer" not in settings.config:
        message = say("zero_allow_untested_optimizer: Accelerate writes true where the script has the optimizer")
        return _note(codes.OVERWRITTEN, Kind.TOLD, path, message, settings)
    return _lost(path, value, settings)


def _lost(path: Path, value: object, settings: Settings) -> Note:
    message = say("{key} {value} has no field in Accelerate", key=render_path(path), value=json_text(value))
    return _note(codes.NO_PLACE, Kind.LOST, path, message, settings)


def _note(code: str, kind: Kind, path: Path, message: str, settings: Settings) -> Note:
    return Note(code, kind, render_path(path), message, settings.places.get(path))


def around_notes(settings: Settings, carried: Mapping[str, str]) -> list[Note]:
    """Return a note for what stands around the config and is not among ``carried``, with what says it there.

    ``carried`` maps names to what the target says instead; "" is carried without a word.
    """
    notes = []
    for name, value in settings.around.items():
        if name in _QUIET or value in (None, "", {}, []):
            continue
        hint = carried.get(name)
        if hint == "":
            continue
        message = say("{name} {value} is no setting of DeepSpeed", name=name, value=json_text(value))
        if hint:
            message = say("{said}; {hint}", said=message, hint=say(hint))
        notes.append(Note(codes.AROUND_LOST, Kind.TOLD, name, message))
    return notes


_QUIET = frozenset(
    {
        "compute_environment",
        "distributed_type",
        "debug",
        "downcast_bf16",
        "main_training_function",
        "rdzv_backend",
        "same_network",
        "use_cpu",
        "tpu_env",
        "tpu_use_cluster",
        "tpu_use_sudo",
        "mixed_precision",
        "fp16",
    }
)
"""What says nothing about a training with DeepSpeed, or is carried by the config itself."""
LAUNCH = {
    "num_processes": mark("deepspeed --num_gpus, or torchrun --nproc_per_node, says it"),
    "num_machines": mark("deepspeed --num_nodes says it"),
    "machine_rank": mark("deepspeed --node_rank says it, with --no_ssh"),
    "main_process_ip": mark("deepspeed --master_addr says it"),
    "main_process_port": mark("deepspeed --master_port says it"),
    "gpu_ids": mark("deepspeed --include localhost:0,1 says it"),
    "deepspeed_hostfile": mark("deepspeed --hostfile says it"),
    "deepspeed_inclusion_filter": mark("deepspeed --include says it"),
    "deepspeed_exclusion_filter": mark("deepspeed --exclude says it"),
    "deepspeed_multinode_launcher": mark("deepspeed --launcher says it"),
    "deepspeed_moe_layer_cls_names": mark(
        "deepspeed.utils.set_z3_leaf_modules says it, or zero_optimization.leaf_module"
    ),
    "zero3_init_flag": mark("deepspeed.zero.Init around the making of the model says it"),
}
"""What of a launch says the same without Accelerate."""
