"""Writes the YAML of ``accelerate launch``: fields, or the name of a config file."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from dsmigrate.convert import codes
from dsmigrate.convert.facts import accelerate, fields
from dsmigrate.convert.forms.accelerate import BLOCK, FILE
from dsmigrate.convert.forms.around import around_notes, carry
from dsmigrate.convert.model import Config, Kind, Note, Settings, Target, Written
from dsmigrate.convert.yaml_text import fresh, merged
from dsmigrate.knowledge import Knowledge
from dsmigrate.languages import mark, say

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
_STAND_INS = {
    "optimizer": mark(
        "Accelerate makes the optimizer of the file: pass accelerate.utils.DummyOptim to prepare instead of an "
        "optimizer, which raises ValueError"
    ),
    "scheduler": mark(
        "Accelerate makes the scheduler of the file: pass accelerate.utils.DummyScheduler to prepare instead of a "
        "scheduler, which raises ValueError"
    ),
}
"""What changes for a script whose config is a file, by the section."""


def write_fields(settings: Settings, config: Config, known: Knowledge, there: str | None) -> Written:
    """Return a YAML file whose fields say what ``config`` does, as far as there are fields."""
    carried = carry(settings, config, known, in_yaml=True)
    block: dict[str, object] = dict(carried.values)
    top = {"mixed_precision": carried.precision} if carried.precision else {}
    return _written(settings, block, top, there, tuple(carried.notes))


def write_by_file(settings: Settings, config: Config, target: Target, fields: Written | None) -> Written:
    """Return a YAML file that names the config file of ``target``; what the file says may not stand in the YAML.

    ``fields`` are those that it is written instead of, as they lose something; None where the file was asked for.
    """
    notes = [
        Note(codes.STAND_INS, Kind.TOLD, section, say(message), settings.places.get((section,)))
        for section, message in _STAND_INS.items()
        if section in config
    ]
    if fields is not None:
        count = len({note.key for note in fields.notes if note.kind is not Kind.TOLD})
        message = say("the YAML names {name}: {count} of its keys have no field", name=target.name, count=count)
        notes.insert(0, Note(codes.CARRIED_WHOLE, Kind.TOLD, FILE, message))
    return replace(_written(settings, {FILE: target.name}, {}, target.there, tuple(notes)), names_file=True)


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
