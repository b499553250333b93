"""What becomes of "auto": it gets its value where nobody would fill it, and stands where the Trainer does."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from dsmigrate.convert import codes, tree
from dsmigrate.convert.facts import transformers
from dsmigrate.convert.fills import Known, NotKnownError, value_of
from dsmigrate.convert.model import Config, ConvertError, Kind, Note, Settings
from dsmigrate.document import Path, render_path
from dsmigrate.document.numbers import whole
from dsmigrate.document.positions import LineIndex
from dsmigrate.knowledge import Auto, AutoEffect, Consumer, Knowledge
from dsmigrate.knowledge.wording import json_text
from dsmigrate.languages import mark, say

_TOTAL = ("train_batch_size",)
_MICRO = ("train_micro_batch_size_per_gpu",)
_STEPS = ("gradient_accumulation_steps",)
_BATCH_ARGUMENTS: dict[Path, str] = {_MICRO: "per_device_train_batch_size", _STEPS: "gradient_accumulation_steps"}
_TOTAL_STEPS: Path = ("scheduler", "params", "total_num_steps")
_SAID = {"hidden_size": mark("hidden_size of the model"), "world_size": "--world-size"}


@dataclass(frozen=True, slots=True)
class Settled:
    """A config without an "auto" that its reader would not fill, and what became of each."""

    config: Config
    notes: tuple[Note, ...]


def settle(settings: Settings, known: Knowledge, target: Consumer, given: Mapping[str, Any]) -> Settled:
    """Return the config with every "auto" and expression resolved that ``target`` does not fill.

    ``given`` holds ``world_size`` and ``hidden_size`` where they are known. Raises ConvertError that names every key
    for which no value is known.
    """
    config = tree.copied(settings.config)
    notes: list[Note] = []
    missing: dict[str, tuple[str, ...]] = {}
    said = Known({**_from_config(config), **settings.arguments, **given}, settings.defaults_hold)
    for path in tree.autos(config):
        if _is_filled(known.auto(path, target), config):
            continue
        try:
            notes.append(_resolve(config, path, known.auto(path, settings.consumer), said, settings))
        except NotKnownError as error:
            missing[render_path(path)] = error.names
    missing |= {render_path(path): (text,) for path, text in settings.unknown.items() if _stands(config, path)}
    if missing and ("train_batch_size" in missing) and _computed(config):
        del missing["train_batch_size"]
        tree.drop(config, _TOTAL)
        notes.append(_left_out(_TOTAL, say("DeepSpeed computes it from the two other keys"), settings))
    if missing:
        raise _incomplete(missing, settings)
    return Settled(config, tuple(notes))


def with_values(settings: Settings, known: Knowledge, target: Consumer, given: Mapping[str, Any]) -> Settings:
    """Return the settings with a value for every "auto" that ``target`` would fill from something else.

    What the source's consumer fills in is known from its arguments; what is not known stays "auto".
    """
    if target in {settings.consumer, Consumer.DEEPSPEED}:
        return settings
    config = tree.copied(settings.config)
    said = Known({**_from_config(config), **settings.arguments, **given}, settings.defaults_hold)
    notes: list[Note] = []
    for path in tree.autos(config):
        auto, other = known.auto(path, settings.consumer), known.auto(path, target)
        if auto is None or auto.effect is not AutoEffect.FILLED or auto.overwrites or path == _TOTAL:
            continue
        if other is not None and other.english == auto.english:
            continue
        with contextlib.suppress(NotKnownError):
            notes.append(_resolve(config, path, auto, said, settings))
    return replace(settings, config=config).noting(*notes)


def _from_config(config: Config) -> dict[str, Any]:
    """Return the arguments that values of the config already tell."""
    asked = {**_BATCH_ARGUMENTS, _TOTAL_STEPS: "max_steps"}
    values = {name: tree.get(config, path, None) for path, name in asked.items()}
    return {name: value for name, value in values.items() if isinstance(value, int) and not isinstance(value, bool)}


def _stands(config: Config, path: Path) -> bool:
    return tree.get(config, path) is not tree.MISSING


def _computed(config: Config) -> bool:
    """Return whether DeepSpeed computes the whole batch, as the micro-batch has a value."""
    return isinstance(tree.get(config, _MICRO), int)


def _is_filled(auto: Auto | None, config: Config) -> bool:
    if auto is None or auto.effect not in {AutoEffect.FILLED, AutoEffect.VALUE}:
        return False
    return not (auto.unless and auto.unless in config)


def _resolve(config: Config, path: Path, auto: Auto | None, said: Known, settings: Settings) -> Note:
    """Put a value in the place of one "auto", or take it out; raises NotKnownError."""
    if auto is not None and auto.effect is AutoEffect.DEFAULT:
        tree.drop(config, path)
        return _left_out(path, say("DeepSpeed drops the word and takes the default"), settings)
    if auto is None or auto.effect is not AutoEffect.FILLED:
        raise NotKnownError
    if auto.overwrites:
        tree.drop(config, path)
        why = say("{consumer} writes it, and DeepSpeed has a default", consumer=settings.consumer.title)
        return _left_out(path, why, settings)
    if path[-1] == "nvme_path":
        if tree.get(config, (*path[:-1], "device"), "none") == "nvme":
            raise NotKnownError
        tree.drop(config, path)
        return _left_out(path, say("only the device nvme has a path"), settings)
    value = value_of(auto, said)
    tree.put(config, path, value)
    key, shown = render_path(path), json_text(value)
    message = say('{key} is {value} in the place of "auto", from {source}', key=key, value=shown, source=auto.source)
    return Note(codes.RESOLVED, Kind.TOLD, key, message, settings.places.get(path))


def _left_out(path: Path, why: str, settings: Settings) -> Note:
    message = say('{key} was "auto" and is left out: {why}', key=render_path(path), why=why)
    return Note(codes.LEFT_TO_DEEPSPEED, Kind.TOLD, render_path(path), message, settings.places.get(path))


def _incomplete(missing: Mapping[str, tuple[str, ...]], settings: Settings) -> ConvertError:
    """Return the error for keys without a value, each with what would tell it and the line it stands on."""
    lines = LineIndex(settings.text)
    shown = []
    for key, names in missing.items():
        place = _place(settings, key)
        where = say("{key} (line {line})", key=key, line=lines.line_of(place) + 1) if place is not None else key
        shown.append(say("{key}: {names}", key=where, names=_names(names)) if names else where)
    count = len(shown)
    place = next((place for key in missing if (place := _place(settings, key)) is not None), None)
    message = say(
        '{count} {en_values} "auto" or an expression, and nothing says what {en_they}; give --set KEY=VALUE, or '
        "--arguments with the script or its arguments:{lines}",
        count=count,
        lines="".join(f"\n  {line}" for line in shown),
        en_values="value is" if count == 1 else "values are",
        en_they="it is" if count == 1 else "they are",
    )
    return ConvertError(message) if place is None else ConvertError.at(message, settings.text, place)


def _names(names: Iterable[str]) -> str:
    return say(", ").join(say(_SAID[name]) if name in _SAID else name for name in names)


def _place(settings: Settings, key: str) -> int | None:
    return next((place.key_start for path, place in settings.places.items() if render_path(path) == key), None)


def introduce(
    settings: Settings, known: Knowledge, given: Mapping[str, Any]
) -> tuple[Config, dict[str, Any], list[Note]]:
    """Return the config with "auto" where the Trainer compares a value with an argument, and those arguments.

    Values that no argument can say stay, with a note: the Trainer stops unless its own value is the same.
    """
    config = tree.copied(settings.config)
    arguments = {
        name: value for name, value in settings.arguments.items() if name not in {"mixed_precision", "total_num_steps"}
    }
    said: dict[str, Any] = {}
    notes: list[Note] = []
    _complete_batch(config, given)
    for path, value in tree.leaves(settings.config):
        auto = known.auto(path, Consumer.TRANSFORMERS)
        if auto is not None and auto.overwrites and not (auto.unless and auto.unless in config):
            notes.append(_overwritten(path, value, auto, settings))
            continue
        if path == _TOTAL or value == "auto" or auto is None or not auto.must_match or value is None:
            continue
        taken = _as_arguments(path, value, auto.english)
        key, place = render_path(path), settings.places.get(path)
        other = next((name for name, one in (taken or {}).items() if said.get(name, one) != one), None)
        if other is not None:
            message = say(
                "{key} {value} stays, and the Trainer stops at it: it takes this value from {other}, which is "
                "{said} for another key",
                key=key,
                value=json_text(value),
                other=other,
                said=repr(said[other]),
            )
            notes.append(Note(codes.MUST_MATCH, Kind.CHANGED, key, message, place))
            continue
        if taken is None:
            message = say(
                "{key} {value} stays: no argument says it, and the Trainer stops at another value",
                key=key,
                value=json_text(value),
            )
            notes.append(Note(codes.MUST_MATCH, Kind.CHANGED, key, message, place))
            continue
        tree.put(config, path, "auto")
        said |= taken
        source = say(", ").join(f"{name}={value!r}" for name, value in taken.items()) or say("its default")
        message = say('{key} becomes "auto", filled from {source}', key=key, source=source)
        notes.append(Note(codes.INTRODUCED, Kind.TOLD, key, message, place))
    arguments |= said
    _total_batch(settings, config, arguments, notes)
    return config, arguments, notes


def _overwritten(path: Path, value: object, auto: Auto, settings: Settings) -> Note:
    key = render_path(path)
    message = say(
        "{key} {value}: the Trainer writes {source} in its place", key=key, value=json_text(value), source=auto.source
    )
    return Note(codes.OVERWRITTEN, Kind.TOLD, key, message, settings.places.get(path))


def _complete_batch(config: Config, given: Mapping[str, Any]) -> None:
    """Work the micro-batch out, where the other two batch keys and the number of processes tell it."""
    world, total = given.get("world_size"), tree.get(config, _TOTAL, None)
    steps = tree.get(config, _STEPS, 1)
    if (
        not isinstance(world, int)
        or not isinstance(total, int)
        or not isinstance(steps, int)
        or _stands(config, _MICRO)
    ):
        return
    if world * steps and total % (world * steps) == 0:
        config["train_micro_batch_size_per_gpu"] = total // (world * steps)


def _total_batch(settings: Settings, config: Config, arguments: dict[str, Any], notes: list[Note]) -> None:
    """Make the whole batch "auto": the Trainer computes it from the micro-batch."""
    micro = tree.get(config, _MICRO, None)
    if isinstance(micro, int):
        arguments["per_device_train_batch_size"] = whole(micro)
        config["train_micro_batch_size_per_gpu"] = "auto"
    total = tree.get(config, _TOTAL)
    if not isinstance(total, int):
        return
    place = settings.places.get(_TOTAL)
    if "per_device_train_batch_size" in arguments:
        config["train_batch_size"] = "auto"
        message = say('train_batch_size becomes "auto": the Trainer computes it')
        notes.append(Note(codes.INTRODUCED, Kind.TOLD, "train_batch_size", message, place))
        return
    message = say(
        "train_batch_size {total} stays, and the Trainer stops unless per_device_train_batch_size × "
        "gradient_accumulation_steps × processes is the same; --world-size N works the first one out",
        total=total,
    )
    notes.append(Note(codes.MUST_MATCH, Kind.CHANGED, "train_batch_size", message, place))


def _as_arguments(path: Path, value: object, source: str) -> dict[str, Any] | None:
    """Return the arguments of the Trainer that fill a key with ``value``; None when none do."""
    from dsmigrate.convert.fills import arguments_of  # noqa: PLC0415 - beside its use

    names = arguments_of(source)
    if len(names) == 1 and _is_number(value):
        is_whole = isinstance(transformers()["defaults"].get(names[0]), int)
        return {names[0]: whole(value) if is_whole and isinstance(value, int) else value}
    if len(names) == 2 and isinstance(value, list) and len(value) == 2 and all(map(_is_number, value)):
        return dict(zip(names, value, strict=True))
    if path[-1] == "enabled" and isinstance(value, bool):
        return {str(path[0]): True} if value else {}
    if path[-1] == "total_num_steps" and isinstance(value, int) and value > 0:
        return {"max_steps": whole(value)}
    if path[-1] == "warmup_num_steps" and isinstance(value, int) and value > 0:
        return {"warmup_steps": whole(value)}
    return None


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)
