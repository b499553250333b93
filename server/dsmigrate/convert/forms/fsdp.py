"""Reads Accelerate's FSDP as ZeRO-3, where it shards everything; for the rest it says no."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from dsmigrate.convert import codes, tree
from dsmigrate.convert.facts import accelerate, fsdp
from dsmigrate.convert.model import Config, ConvertError, Form, Kind, Note, Place, Settings
from dsmigrate.convert.yaml_tree import Entry, last
from dsmigrate.document import Path
from dsmigrate.knowledge import Consumer
from dsmigrate.languages import say

BLOCK = "fsdp_config"
_STAGE = ("zero_optimization", "stage")
_STRATEGIES = ("fsdp_reshard_after_forward", "fsdp_sharding_strategy")


def read_fsdp(text: str, root: Entry, overrides: Config) -> Settings:
    """Return the ZeRO-3 config that does what an FSDP block asks for.

    Raises ConvertError for a sharding that is not ZeRO-3's, unless ``overrides`` name the stage to take.
    """
    block = root.get(BLOCK)
    if block is not None and block.entries is None and block.value is not None:
        raise ConvertError.at(say("{name} is no mapping of keys to values", name=BLOCK), text, block.place.start)
    inner = tuple(_full_name(entry) for entry in (block and block.entries) or ())
    version = _value(inner, "fsdp_version", 1)
    strategy, place = _strategy(inner, version)
    config: Config = {"train_batch_size": "auto", "train_micro_batch_size_per_gpu": "auto"}
    config |= {"gradient_accumulation_steps": "auto", "gradient_clipping": "auto", "zero_optimization": {"stage": 3}}
    places: dict[Path, Place] = {_STAGE: place} if place is not None else {}
    notes: list[Note] = []
    if strategy not in fsdp()["sharded"]:
        asked = tree.get(overrides, _STAGE)
        near = fsdp()["near"].get(strategy)
        why = say(near) if near is not None else say("this strategy is not known")
        if asked is tree.MISSING:
            message = say(
                "{strategy} is not ZeRO-3: {why}. --set zero_optimization.stage=N takes a stage in its place",
                strategy=strategy,
                why=why,
            )
            raise ConvertError.at(message, text, place.start if place else 0)
        message = say(
            "{strategy} is not stage {asked}, which was asked for: {why}", strategy=strategy, asked=asked, why=why
        )
        notes.append(Note(codes.FSDP_LOST, Kind.CHANGED, "fsdp_reshard_after_forward", message, place))
    _offload(inner, config, places)
    _saving(inner, config, places, notes)
    notes += _others(inner)
    if "gradient_clipping" not in overrides:
        message = say(
            "FSDP clips where the script calls clip_grad_norm_; DeepSpeed's engine clips itself, at 1.0 unless "
            "gradient_clipping says something else"
        )
        notes.append(Note(codes.FSDP_LOST, Kind.CHANGED, "gradient_clipping", message))
    precision = root.get("mixed_precision")
    if precision is not None and str(precision.value).lower() in {"fp16", "bf16"}:
        kind = str(precision.value).lower()
        config[kind] = {"enabled": True}
        places[kind, "enabled"] = precision.place
    top = accelerate()["top"]
    around = {entry.name: entry.value for entry in root.entries or () if entry.name in top and entry.name != BLOCK}
    around["distributed_type"] = "DEEPSPEED"
    if _value(inner, "fsdp_cpu_ram_efficient_loading", default=False) is True:
        around["zero3_init_flag"] = True
    settings = Settings(Form.ACCELERATE, Consumer.ACCELERATE, config, around=around, places=places, text=text)
    return settings.noting(*notes)


def _full_name(entry: Entry) -> Entry:
    """Return an entry under the name that the launcher gives it: the prefix may be left out."""
    return entry if entry.name.startswith("fsdp") else replace(entry, name=f"fsdp_{entry.name}")


def _strategy(inner: tuple[Entry, ...], version: object) -> tuple[str, Place | None]:
    """Return the sharding as text, and where it stands; the default shards everything."""
    for name in _STRATEGIES:
        entry = last(inner, name)
        if entry is not None and entry.value is not None:
            text = str(entry.value)
            return (text.lower() if str(version) == "2" or isinstance(entry.value, bool) else text.upper()), entry.place
    return "FULL_SHARD", None


def _offload(inner: tuple[Entry, ...], config: Config, places: dict[Path, Place]) -> None:
    """FSDP keeps weights, gradients and the optimizer's states on the host, and steps there."""
    entry = last(inner, "fsdp_offload_params")
    if entry is not None and str(entry.value).lower() in {"true", "1"}:
        for section in ("offload_param", "offload_optimizer"):
            tree.put(config, ("zero_optimization", section, "device"), "cpu")
            places["zero_optimization", section, "device"] = entry.place


def _saving(inner: tuple[Entry, ...], config: Config, places: dict[Path, Place], notes: list[Note]) -> None:
    entry = last(inner, "fsdp_state_dict_type")
    if entry is None:
        return
    path = ("zero_optimization", "stage3_gather_16bit_weights_on_model_save")
    gathered = str(entry.value).upper() == "FULL_STATE_DICT"
    tree.put(config, path, gathered)
    places[path] = entry.place
    if not gathered:
        message = say(
            "{value}: DeepSpeed's checkpoints are sharded, in a format of its own; zero_to_fp32.py joins one",
            value=entry.value,
        )
        notes.append(Note(codes.FSDP_TOLD, Kind.TOLD, entry.name, message, entry.place))


def _others(inner: tuple[Entry, ...]) -> list[Note]:
    facts = fsdp()
    carried = {"fsdp_version", "fsdp_offload_params", "fsdp_state_dict_type", "fsdp_cpu_ram_efficient_loading"}
    notes: list[Note] = []
    for entry in inner:
        if entry.name in carried or entry.name in _STRATEGIES:
            continue
        lost = facts["lost"].get(entry.name)
        if lost is None and entry.name in facts["told"]:
            message = say(facts["told"][entry.name])
            notes.append(Note(codes.FSDP_TOLD, Kind.TOLD, entry.name, message, entry.place))
        elif lost is None:
            message = say("{name} has no counterpart in DeepSpeed", name=entry.name)
            notes.append(Note(codes.FSDP_LOST, Kind.LOST, entry.name, message, entry.place))
        elif entry.value is not None and entry.value not in lost["harmless"]:
            notes.append(Note(codes.FSDP_LOST, Kind.LOST, entry.name, say(lost["message"]), entry.place))
    return notes


def _value(inner: tuple[Entry, ...], name: str, default: Any) -> Any:  # noqa: ANN401 - whatever stands there
    entry = last(inner, name)
    return default if entry is None or entry.value is None else entry.value
