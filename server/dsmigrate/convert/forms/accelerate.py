"""Reads the YAML of ``accelerate launch`` as the config that Accelerate makes of it.

The launcher turns the file into environment variables, and ``DeepSpeedPlugin`` those into a config: facts in
``schemas/deepspeed/forms.toml``, judged against the packages in ``tests/e2e/test_convert.py``.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from dsmigrate.convert import codes, tree
from dsmigrate.convert.facts import MISSING, Field, accelerate, fields
from dsmigrate.convert.forms.fields import BadValueError, taken
from dsmigrate.convert.forms.fsdp import read_fsdp
from dsmigrate.convert.model import Config, ConvertError, Form, Kind, Note, Place, Settings
from dsmigrate.convert.precision import section_of
from dsmigrate.convert.yaml_tree import Entry, last, read
from dsmigrate.document import Path
from dsmigrate.knowledge import Consumer
from dsmigrate.languages import say

Load = Callable[[str], "Settings | None"]
"""Reads the config file that a form names; None where there is none."""
BLOCK = "deepspeed_config"
FILE = "deepspeed_config_file"
_PRECISIONS = ("no", "fp16", "bf16", "fp8")
_YAML_TYPE = "distributed_type"


def read_accelerate(text: str, load: Load, overrides: Config | None = None) -> Settings:
    """Return what a YAML text says; ``load`` reads the file of ``deepspeed_config_file``.

    ``overrides`` are values of the config that the caller gives, which may settle what FSDP leaves open. Raises
    ConvertError for text that is no YAML, and for a training that is neither DeepSpeed's nor FSDP's.
    """
    root = read(text)
    top = root.entries or ()
    kind, block = root.get(_YAML_TYPE), root.get(BLOCK)
    kind_of = str(kind.value) if kind is not None else ""
    if kind_of == "FSDP":
        return read_fsdp(text, root, overrides or {})
    if block is None and kind_of != "DEEPSPEED":
        message = (
            say("no DeepSpeed settings: it trains with {kind}", kind=kind_of)
            if kind_of
            else say("no DeepSpeed settings: there is neither deepspeed_config nor distributed_type in it")
        )
        raise ConvertError.at(message, text, kind.place.start if kind else 0)
    notes = [*_unknown_at_top(top), *_duplicates(top), *_duplicates((block and block.entries) or ())]
    if kind_of != "DEEPSPEED":
        place = kind.place if kind else block.place if block else None
        message = (
            say(
                "distributed_type is {kind}, so that Accelerate passes over deepspeed_config; write DEEPSPEED",
                kind=kind_of,
            )
            if kind_of
            else say("there is no distributed_type, at which Accelerate stops; write DEEPSPEED")
        )
        notes.append(Note(codes.NOT_DEEPSPEED, Kind.CHANGED, _YAML_TYPE, message, place))
    inner = (block and block.entries) or ()
    if block is not None and block.entries is None and block.value is not None:
        raise ConvertError.at(say("{name} is no mapping of keys to values", name=BLOCK), text, block.place.start)
    around = {entry.name: entry.value for entry in (*top, *inner) if _is_around(entry.name)}
    notes += _precision_notes(last(top, "mixed_precision"))
    named = last(inner, FILE)
    if named is not None and named.value not in (None, "none"):
        return replace(_by_file(text, named, root, notes, load), around=around)
    settings = _by_fields(text, inner, notes)
    return replace(_with_precision(settings, last(top, "mixed_precision")), around=around)


def of_arguments(text: str, given: tuple[Entry, ...]) -> Settings:
    """Return what arguments of ``accelerate launch`` say, which have the names of the YAML's keys."""
    precision = last(given, "mixed_precision")
    inner = tuple(entry for entry in given if entry.name in fields())
    settings = _by_fields(text, inner, _precision_notes(precision))
    around = {entry.name: entry.value for entry in given if _is_around(entry.name)}
    return replace(_with_precision(settings, precision), around=around)


def whole(settings: Settings) -> Place:
    """Return the place for what has none of its own: the block of DeepSpeed, else the first character."""
    try:
        block = read(settings.text).get(BLOCK)
    except ConvertError:
        block = None
    return block.place if block is not None else Place(0, min(1, len(settings.text)), 0, len(settings.text))


def _is_around(name: str) -> bool:
    facts = accelerate()
    return name in facts["around"] or (name in facts["top"] and name not in {BLOCK, "fsdp_config"})


def _by_fields(text: str, inner: tuple[Entry, ...], notes: list[Note]) -> Settings:
    config: Config = {"train_batch_size": "auto", "train_micro_batch_size_per_gpu": "auto"}
    places: dict[Path, Place] = {}
    values: dict[str, Any] = {}
    known = fields()
    for entry in inner:
        found = known.get(entry.name)
        if found is None:
            if entry.name not in accelerate()["around"] and entry.name != FILE:
                notes.append(_unknown_in_block(entry, inner))
            continue
        try:
            values[entry.name] = taken(found, entry.value)
        except BadValueError as error:
            notes.append(Note(codes.BAD_VALUE, Kind.CHANGED, entry.name, str(error), entry.place))
            continue
        places[found.path] = entry.place
    for found in known.values():
        _write(config, found, values, places, notes)
    settings = Settings(Form.ACCELERATE, Consumer.ACCELERATE, config, places=places, text=text)
    return settings.noting(*notes)


def _write(config: Config, found: Field, values: dict[str, Any], places: dict[Path, Place], notes: list[Note]) -> None:
    """Write one field into the config, as the plugin does."""
    value = values.get(found.name, found.absent)
    place = places.get(found.path)
    if value is None:  # a key without a value is one that is left out
        value = found.absent
    if value is MISSING:
        return
    if found.lost_in_yaml and values.get(found.needs) == found.only_for:
        message = say(
            "the launcher of accelerate {release} never hands {name} on: nvme_path becomes the text none. Give it as "
            "DeepSpeedPlugin({name}=...), or name a config file with {file}",
            release=accelerate()["version"],
            name=found.name,
            file=FILE,
        )
        notes.append(Note(codes.NVME_PATH_LOST, Kind.CHANGED, found.name, message, place))
    elif found.needs and values.get(found.needs) != found.only_for:
        notes.append(Note(codes.PATH_UNUSED, Kind.LOST, found.name, unused(found), place))
        places.pop(found.path, None)
        return
    if found.name == "gradient_clipping" and value == 0:
        message = say(
            "Accelerate leaves gradient_clipping out where it is 0, so that DeepSpeed takes its default: 1.0 since "
            "0.19.3. Only a config file can switch clipping off"
        )
        notes.append(Note(codes.CLIPPING_LEFT_OUT, Kind.CHANGED, found.name, message, place))
        places.pop(found.path, None)
        return
    tree.put(config, found.path, value)


def unused(found: Field) -> str:
    """Return what is said of a path for a device that is another one."""
    return say(
        "{name} counts for {needs}: {only_for} alone, and is not written",
        name=found.name,
        needs=found.needs,
        only_for=found.only_for,
    )


def _with_precision(settings: Settings, entry: Entry | None) -> Settings:
    """Add the section of the precision that the launcher asks for."""
    kind = str(entry.value).lower() if entry is not None else ""
    if entry is None or kind not in {"fp16", "bf16", "fp8"}:
        return settings
    section = "fp16" if kind == "fp16" else "bf16"
    config = tree.copied(settings.config)
    config[section] = section_of(section)
    places = {**settings.places, (section, "enabled"): entry.place}
    return replace(settings, config=config, places=places)


def _by_file(text: str, named: Entry, root: Entry, notes: list[Note], load: Load) -> Settings:
    excluded = accelerate()["excluded_by_file"]
    block, precision = root.get(BLOCK), root.get("mixed_precision")
    inner = (block and block.entries) or ()
    for entry in (*inner, *((precision,) if precision is not None else ())):
        if entry.name in excluded:
            message = say(
                "Accelerate 0.16 and later stop when {name} stands beside {file}: what it says belongs into that file",
                name=entry.name,
                file=FILE,
            )
            notes.append(Note(codes.BESIDE_FILE, Kind.CHANGED, entry.name, message, entry.place))
        elif not _is_around(entry.name) and entry.name != FILE:
            notes.append(_unknown_in_block(entry, inner))
    found = load(str(named.value))
    if found is None:
        message = say(
            "{file} names {path}, which is not there; paths count from where the launch is started",
            file=FILE,
            path=named.value,
        )
        notes.append(Note(codes.NO_FILE, Kind.CHANGED, FILE, message, named.place))
        found = Settings(Form.DEEPSPEED, Consumer.ACCELERATE, {})
    places: dict[Path, Place] = {(name,): named.place for name in found.config}
    inside = tuple(replace(note, place=named.place) for note in found.notes)
    settings = Settings(Form.ACCELERATE, Consumer.ACCELERATE, found.config, places=places, text=text)
    return settings.noting(*notes, *inside)


def _precision_notes(entry: Entry | None) -> list[Note]:
    if entry is None or entry.value is None:
        return []
    if isinstance(entry.value, bool):
        message = say("YAML reads this as false, on which Accelerate stops; write 'no' in quotes")
        written = Note(codes.PRECISION_IS_FALSE, Kind.CHANGED, "mixed_precision", message, entry.place)
        return [replace(written, meant="'no'", is_value=True)]
    if str(entry.value).lower() not in _PRECISIONS:
        message = say(
            "mixed_precision {value} does not exist; Accelerate takes {known}",
            value=repr(entry.value),
            known=say(", ").join(_PRECISIONS),
        )
        return [Note(codes.BAD_VALUE, Kind.CHANGED, "mixed_precision", message, entry.place)]
    return []


def _unknown_at_top(top: tuple[Entry, ...]) -> list[Note]:
    known = accelerate()["top"]
    notes = []
    for entry in top:
        if entry.name not in known:
            inside = entry.name in fields() or entry.name in accelerate()["around"] or entry.name == FILE
            near = difflib.get_close_matches(entry.name, known, n=1)
            message = say("Accelerate refuses a file with the unknown key {name}", name=entry.name)
            if inside:
                message = say("{said}; it belongs into {block}", said=message, block=BLOCK)
            elif near:
                message = meant(message, near[0])
            better = near[0] if near and not inside and near[0] not in {other.name for other in top} else ""
            notes.append(Note(codes.REFUSED_KEY, Kind.CHANGED, entry.name, message, entry.place, better))
    return notes


def _unknown_in_block(entry: Entry, inner: tuple[Entry, ...]) -> Note:
    known = [*fields(), *accelerate()["around"], FILE]
    near = difflib.get_close_matches(entry.name, known, n=1)
    message = say("Accelerate does nothing with {name} in {block}", name=entry.name, block=BLOCK)
    message = (
        meant(message, near[0])
        if near
        else say("{said}; keys of DeepSpeed's own belong into a {file}", said=message, file=FILE)
    )
    better = near[0] if near and near[0] not in {other.name for other in inner} else ""
    return Note(codes.UNKNOWN_KEY, Kind.LOST, entry.name, message, entry.place, better)


def meant(said: str, near: str) -> str:
    """Return a sentence with the name that was meant, perhaps."""
    return say("{said}; did you mean {near}?", said=said, near=near)


def _duplicates(entries: tuple[Entry, ...]) -> list[Note]:
    seen: set[str] = set()
    notes = []
    for entry in entries:
        if entry.name in seen:
            message = say("{name} is given twice; YAML takes the last one without a word", name=entry.name)
            notes.append(Note(codes.DUPLICATE, Kind.CHANGED, entry.name, message, entry.place))
        seen.add(entry.name)
    return notes
