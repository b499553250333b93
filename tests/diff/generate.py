"""Pairs of configs: edits that DeepSpeed cannot see, and edits that it may."""

from __future__ import annotations

import copy
import json
import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from dsmigrate.knowledge import MISSING, Key, Knowledge, Status, knowledge

Config = dict[str, Any]
Path = tuple[str, ...]
BASES: tuple[Config, ...] = (
    {"train_batch_size": 8},
    {"train_batch_size": 16, "gradient_accumulation_steps": 2, "bf16": {"enabled": True}},
    {"train_micro_batch_size_per_gpu": 4, "fp16": {"enabled": True, "loss_scale": 0, "initial_scale_power": 12}},
    {
        "train_micro_batch_size_per_gpu": 2,
        "gradient_accumulation_steps": 4,
        "optimizer": {"type": "AdamW", "params": {"lr": 1e-4, "betas": [0.9, 0.95], "weight_decay": 0.1}},
        "scheduler": {"type": "WarmupLR", "params": {"warmup_max_lr": 1e-4, "warmup_num_steps": 100}},
        "zero_optimization": {"stage": 2, "overlap_comm": True, "reduce_bucket_size": 5e8},
        "bf16": {"enabled": True},
        "gradient_clipping": 1.0,
    },
    {
        "train_batch_size": 32,
        "train_micro_batch_size_per_gpu": 4,
        "optimizer": {"type": "Adam", "params": {"lr": 3e-4}},
        "scheduler": {
            "type": "WarmupDecayLR",
            "params": {"warmup_min_lr": 0, "warmup_max_lr": 3e-4, "warmup_num_steps": 10, "total_num_steps": 1000},
        },
        "zero_optimization": {
            "stage": 3,
            "offload_optimizer": {"device": "cpu", "pin_memory": True},
            "offload_param": {"device": "cpu"},
            "stage3_prefetch_bucket_size": 1e7,
            "stage3_max_live_parameters": 1e9,
            "sub_group_size": 1e9,
        },
        "fp16": {"enabled": True},
        "steps_per_print": 100,
        "wall_clock_breakdown": False,
    },
    {
        "train_batch_size": 8,
        "zero_optimization": {"stage": 1, "cpu_offload": True},
        "activation_checkpointing": {"partition_activations": True, "number_checkpoints": 4},
        "flops_profiler": {"enabled": True, "profile_step": 5},
        "tensorboard": {"enabled": False, "output_path": "logs"},
        "csv_monitor": {"enabled": True, "job_name": "run"},
        "checkpoint": {"tag_validation": "Ignore"},
        "aio": {"queue_depth": 16},
    },
    {
        "train_batch_size": 8,
        "zero_optimization": {"stage": 3, "offload_param": {"device": "nvme", "nvme_path": "/nvme/x"}},
        "communication_data_type": "fp32",
        "data_types": {"grad_accum_dtype": "fp32"},
        "comms_logger": {"enabled": True, "verbose": True},
        "compile": {"deepcompile": True},
        "torch_autocast": {"enabled": True, "dtype": "bfloat16"},
        "data_efficiency": {"enabled": True, "seed": 7, "data_sampling": {"num_workers": 2}},
    },
)
"""Configs that DeepSpeed accepts, which pairs start from."""

_SKIPPED = frozenset({"aio.use_gds", "tensor_parallel.dtype", "tensor_parallel.tp.tp_group", "tensor_parallel.tp.mpu"})
"""Keys that no value fits on a machine without CUDA, or in JSON at all."""
_OPTIMIZERS = ("AdamW", "Adam", "adamw", "SGD", "Lion", "Adagrad", "Lamb")
_SCHEDULERS = ("WarmupLR", "WarmupDecayLR", "WarmupCosineLR", "LRRangeTest", "OneCycle")


@dataclass(frozen=True, slots=True)
class Generated:
    """Two texts; ``neutral`` says that every edit between them is one that DeepSpeed cannot see."""

    old: str
    new: str
    neutral: bool


def pairs(count: int, seed: int, bases: Sequence[Config] = BASES) -> Iterator[Generated]:
    """Yield pairs: half of them of neutral edits alone."""
    for number in range(count):
        chance = random.Random(f"{seed}-{number}")  # noqa: S311 - pairs, not secrets
        old = copy.deepcopy(chance.choice(bases))
        for _ in range(chance.randrange(3)):
            mutate(old, chance)
        new = copy.deepcopy(old)
        neutral = chance.random() < 0.5
        for _ in range(chance.randrange(1, 5)):
            if neutral or chance.random() < 0.4:
                neutralize(new, chance)
            else:
                mutate(new, chance)
        yield Generated(json.dumps(old, indent=2), written(new, chance), neutral)


def written(config: Config, chance: random.Random) -> str:
    """Return a config as text: keys in any order, some layout, now and then with Hjson's liberties."""
    shuffled = _shuffled(config, chance)
    text = json.dumps(shuffled, indent=chance.choice([None, 2, 4]))
    return f"# tuned\n{text}\n" if chance.random() < 0.2 else text


def mutate(config: Config, chance: random.Random) -> None:
    """Make an edit that DeepSpeed may see."""
    chance.choice([_set_key, _set_key, _set_key, _remove, _change, _optimizer, _scheduler, _parameter])(config, chance)


def neutralize(config: Config, chance: random.Random) -> None:
    """Make an edit that DeepSpeed cannot see."""
    chance.choice(NEUTRAL)(config, chance)


def leaves(config: Config, path: Path = ()) -> Iterator[tuple[Path, Any]]:
    """Yield every value that is no object, with its path."""
    for name, value in config.items():
        if isinstance(value, dict):
            yield from leaves(value, (*path, name))
        else:
            yield (*path, name), value


def spell_numbers(config: Config, chance: random.Random) -> None:
    """Write a number otherwise: quoted or as a switch where DeepSpeed converts, a float for a whole number."""
    known = knowledge()
    every = [(path, value) for path, value in leaves(config) if isinstance(value, (int, float))]
    if not every:
        return
    path, value = chance.choice(every)
    key = known.key(path)
    if isinstance(value, bool):
        if key is not None and key.is_checked and key.type == ("boolean",):
            _put(config, path, chance.choice([int(value), str(value).lower(), "yes" if value else "no"]))
        return
    checked = key is not None and key.is_checked and "string" not in key.type and not key.enum
    if checked and isinstance(value, int) and chance.random() < 0.5:
        _put(config, path, str(value))
    elif float(value).is_integer() and abs(value) < 1e15:
        _put(config, path, float(value) if isinstance(value, int) else int(value))


def write_default(config: Config, chance: random.Random) -> None:
    """Write out the default of a key that is left out, in a section that is there."""
    known = knowledge()
    wanted = [
        key
        for key in _keys(known)
        if key.default is not MISSING
        and not (key.default is None and "null" not in key.type)
        and _get(config, tuple(key.path.split("."))) is MISSING
        and not _other_name(config, key)
        and (not key.parent or isinstance(_get(config, tuple(key.parent.split("."))), dict))
    ]
    if wanted:
        key = chance.choice(wanted)
        _put(config, tuple(key.path.split(".")), copy.deepcopy(key.default))


def drop_default(config: Config, chance: random.Random) -> None:
    """Leave out a key that has its default, if the section keeps other keys."""
    known = knowledge()
    every = []
    for path, value in leaves(config):
        key = known.key(path)
        around = _get(config, path[:-1]) if len(path) > 1 else config
        if key is None or key.status is not Status.PRESENT or key.alias_of or "params" in path:
            continue
        if key.default is not MISSING and value == key.default and isinstance(around, dict) and len(around) > 1:
            every.append(path)
    if every:
        _pop(config, chance.choice(every))


def use_other_name(config: Config, chance: random.Random) -> None:
    """Write a key under its other name: ``prefetch_bucket_size``, ``bfloat16``."""
    known = knowledge()
    every = []
    for path, _ in leaves(config):
        key = known.key(path)
        if key is not None and key.field and path[-1] == key.name:
            every.append((path, (*path[:-1], key.field)))
    if "bf16" in config and "bfloat16" not in config:
        every.append((("bf16",), ("bfloat16",)))
    if every:
        path, renamed = chance.choice(every)
        if _get(config, renamed) is MISSING:
            _put(config, renamed, _pop(config, path))


def use_old_offload(config: Config, chance: random.Random) -> None:
    """Write offload to the CPU as its deprecated switch, the switch as what DeepSpeed makes of it, or that it is off.

    Off is what it is without the switch as well.
    """
    zero = config.get("zero_optimization")
    if not isinstance(zero, dict):
        return
    for old, new in (("cpu_offload", "offload_optimizer"), ("cpu_offload_param", "offload_param")):
        if zero.get(new) == {"device": "cpu"} and old not in zero:
            zero.pop(new)
            zero[old] = True
            return
        if zero.get(old) is True and new not in zero:
            zero.pop(old)
            zero[new] = {"device": "cpu"}
            return
        if new not in zero and old not in zero and chance.random() < 0.3:
            zero[old] = False
            return


def add_unknown(config: Config, chance: random.Random) -> None:
    """Add a key that nobody reads, at the top or in a section that swallows it."""
    places = [("",)] + [(name,) for name in ("activation_checkpointing", "aio", "checkpoint") if name in config]
    place = chance.choice(places)
    name = chance.choice(["_comment", "gradient_cliping", "my_setting", "lr_scheduler"])
    section = config if place == ("",) else config[place[0]]
    if isinstance(section, dict):
        section[name] = chance.choice([1, "text", {"enabled": True}])


def add_empty_section(config: Config, chance: random.Random) -> None:
    """Add a section without a key, where it means nothing."""
    known = knowledge()
    every = [
        key.path
        for key in _keys(known, sections=True)
        if "." not in key.path and not key.acts_by_presence and not key.alias_of and key.path not in config
    ]
    name = chance.choice(every)
    if not (name == "bf16" and "bfloat16" in config):
        config[name] = {}


NEUTRAL: tuple[Callable[[Config, random.Random], None], ...] = (
    spell_numbers,
    spell_numbers,
    write_default,
    write_default,
    drop_default,
    use_other_name,
    use_old_offload,
    add_unknown,
    add_empty_section,
)
"""The edits that DeepSpeed cannot see; the order of keys is shuffled in any case."""


def _set_key(config: Config, chance: random.Random) -> None:
    key = chance.choice(_keys(knowledge()))
    path = tuple(key.path.split("."))
    if _is_open(config, path[:-1]):
        _put(config, path, a_value(key, chance))


def _change(config: Config, chance: random.Random) -> None:
    every = [(path, key) for path, _ in leaves(config) if (key := knowledge().key(path)) is not None]
    if every:
        path, key = chance.choice(every)
        _put(config, path, a_value(key, chance))


def _remove(config: Config, chance: random.Random) -> None:
    every = [path for path, _ in leaves(config)]
    if len(every) > 1:
        _pop(config, chance.choice(every))


def _optimizer(config: Config, chance: random.Random) -> None:
    section = config.setdefault("optimizer", {})
    if isinstance(section, dict):
        section["type"] = chance.choice(_OPTIMIZERS)


def _scheduler(config: Config, chance: random.Random) -> None:
    section = config.setdefault("scheduler", {})
    if isinstance(section, dict):
        section["type"] = chance.choice(_SCHEDULERS)
        section.setdefault("params", {})


def _parameter(config: Config, chance: random.Random) -> None:
    name = chance.choice(["optimizer", "scheduler"])
    section = config.get(name)
    if not isinstance(section, dict) or not isinstance(section.get("type"), str):
        return
    look = knowledge().optimizer if name == "optimizer" else knowledge().scheduler
    facts = look(section["type"])
    params = section.setdefault("params", {})
    if facts is None or not isinstance(params, dict):
        return
    parameter = chance.choice(list(facts.parameters.values()))
    if parameter.default is not MISSING and chance.random() < 0.4:
        params[parameter.name] = copy.deepcopy(parameter.default)
    elif "number" in parameter.type:
        params[parameter.name] = chance.choice([0.1, 0.01, 1e-3, 1])
    elif "integer" in parameter.type:
        params[parameter.name] = chance.choice([1, 2, 100, 1000])
    elif "boolean" in parameter.type:
        params[parameter.name] = chance.choice([True, False])


def a_value(key: Key, chance: random.Random) -> Any:
    """Return some value that a key may take."""
    if key.enum:
        value = chance.choice(key.enum)
        return value.upper() if key.ignores_case and isinstance(value, str) and chance.random() < 0.3 else value
    kind = chance.choice([kind for kind in key.type if kind not in {"null", "object"}] or ["object"])
    if kind == "boolean":
        return chance.choice([True, False])
    if kind in {"integer", "number"}:
        return _a_number(key, kind, chance)
    if kind == "string":
        return chance.choice(["one", "/local/two", "three/"])
    if kind == "array":
        return chance.choice([[], ["a"], ["a", "b"]]) if "string" in key.items else []
    return {}


def _a_number(key: Key, kind: str, chance: random.Random) -> Any:
    default = key.default if isinstance(key.default, (int, float)) and key.default is not True else 4
    if kind == "integer":
        value = chance.choice([1, 2, 8, int(default), int(default) * 2])
        return max(value, int(key.minimum or 0), 1 if key.exclusive_minimum == 0 else 0)
    high = key.maximum if key.maximum is not None else key.exclusive_maximum
    return chance.choice([0.25, 0.5, 0.75]) if high is not None else chance.choice([0.5, 1.0, 2, float(default)])


def _keys(known: Knowledge, *, sections: bool = False) -> list[Key]:
    found = []
    for path in known.every_path():
        key = known.key(path)
        if key is None or key.status is not Status.PRESENT or key.alias_of or key.is_section is not sections:
            continue
        if "*" not in path and "[]" not in path and path not in _SKIPPED and not path.startswith(("optimizer", "sch")):
            found.append(key)
    return found


def _other_name(config: Config, key: Key) -> bool:
    """Return whether a config says a key under another name, or with a section under another name."""
    first = key.path.partition(".")[0]
    if first == "bf16" and "bfloat16" in config:
        return True
    around = _get(config, tuple(key.parent.split("."))) if key.parent else config
    if isinstance(around, dict) and key.field and key.field in around:
        return True
    if key.path.startswith("tensor_parallel.tp"):
        return "tensor_parallel" in config
    deprecated = {"offload_optimizer": "cpu_offload", "offload_param": "cpu_offload_param"}
    zero = config.get("zero_optimization")
    named = key.path.split(".")[1] if "." in key.path else ""
    return isinstance(zero, dict) and named in deprecated and deprecated[named] in zero


def _is_open(config: Config, path: Path) -> bool:
    place: Any = config
    for name in path:
        place = place.get(name, {})
        if not isinstance(place, dict):
            return False
    return True


def _get(config: Config, path: Path) -> Any:
    place: Any = config
    for name in path:
        if not isinstance(place, dict) or name not in place:
            return MISSING
        place = place[name]
    return place


def _put(config: Config, path: Path, value: Any) -> None:
    place = config
    for name in path[:-1]:
        place = place.setdefault(name, {})
    place[path[-1]] = value


def _pop(config: Config, path: Path) -> Any:
    place = config
    for name in path[:-1]:
        place = place[name]
    return place.pop(path[-1])


def _shuffled(value: Any, chance: random.Random) -> Any:
    if not isinstance(value, dict):
        return value
    names = list(value)
    chance.shuffle(names)
    return {name: _shuffled(value[name], chance) for name in names}
