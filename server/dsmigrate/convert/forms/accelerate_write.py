"""Writes the YAML of ``accelerate launch``: fields, or the name of a config file."""

from __future__ import annotations

from typing import Any

from dsmigrate.convert import codes
from dsmigrate.convert.facts import accelerate, fields
from dsmigrate.convert.forms.accelerate import BLOCK, FILE
from dsmigrate.convert.forms.around import around_notes, carry
from dsmigrate.convert.model import Config, Kind, Note, Settings, Written
from dsmigrate.convert.yaml_text import fresh, merged
from dsmigrate.knowledge import Knowledge
from dsmigrate.languages import say

_ORDER = (
    "compute_environment",
    "debug",
    BLOCK,
    "distributed_type",
    "downcast_bf16",
    "enable_cpu_affinity",
    "gpu_ids",
    "machine_rank",
    "main_process_ip",
    "main_process_port",
    "main_training_function",
    "mixed_precision",
    "num_machines",
    "num_processes",
    "rdzv_backend",
    "same_network",
    "use_cpu",
)
_DEFAULTS: dict[str, Any] = {
    "compute_environment": "LOCAL_MACHINE",
    "debug": False,
    "machine_rank": 0,
    "main_training_function": "main",
    "num_machines": 1,
    "use_cpu": False,
}


def write_fields(settings: Settings, config: Config, known: Knowledge, there: str | None) -> Written:
    """Return a YAML file whose fields say what ``config`` does, as far as there are fields."""
    carried = carry(settings, config, known, in_yaml=True)
    block: dict[str, object] = dict(carried.values)
    top = {"mixed_precision": carried.precision} if carried.precision else {}
    return _written(settings, block, top, there, tuple(carried.notes))


def write_by_file(settings: Settings, name: str, there: str | None) -> Written:
    """Return a YAML file that names the config file ``name``; what the file says may not stand in the YAML."""
    return _written(settings, {FILE: name}, {}, there, ())


def _written(
    settings: Settings, block: dict[str, object], top: dict[str, Any], there: str | None, notes: tuple[Note, ...]
) -> Written:
    inside = accelerate()["around"]
    block |= {name: value for name, value in settings.around.items() if name in inside and value is not None}
    outside = {name: value for name, value in settings.around.items() if name in _ORDER and value is not None}
    outside |= {"distributed_type": "DEEPSPEED", **top}
    if not top:
        outside.pop("mixed_precision", None)
    kept = tuple(note for note in around_notes(settings, dict.fromkeys((*inside, *_ORDER), "")))
    if there is not None and there.strip():
        gone = {"": {"fsdp_config"}, BLOCK: {*fields(), FILE} - set(block)}
        if not top:
            gone[""].add("mixed_precision")
        return Written(merged(there, {**outside, BLOCK: block}, gone), (*notes, *kept))
    whole = {**_DEFAULTS, **outside, BLOCK: block}
    text = fresh({name: whole[name] for name in _ORDER if name in whole})
    if "num_processes" not in whole:
        message = say("num_processes is not known: give --world-size here, or --num_processes to accelerate launch")
        kept = (*kept, Note(codes.AROUND_LOST, Kind.TOLD, "num_processes", message))
    return Written(text, (*notes, *kept))
