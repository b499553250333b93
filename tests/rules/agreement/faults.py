"""Faults of every kind, planted in a config: each changes it and says which key is to blame."""

from __future__ import annotations

import copy
import functools
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from dsmigrate.knowledge import Key, Knowledge, Status, TypeFacts

from . import slips
from .case import Config, Planted
from .plantings import plantings
from .valid import BATCH, params, value

OTHER_VALUES: dict[str, tuple[object, ...]] = {
    "boolean": (True, False),
    "integer": (3, 0, -1, 10**12),
    "number": (0.5, -2.5, 1e9),
    "string": ("zzz", "true", "false", "1", "1e-4", "5e8", "", "$VALUE"),
    "array": ([], [1], ["zzz"]),
    "object": ({}, {"zzz": 1}),
    "null": (None,),
}


@dataclass(frozen=True, slots=True)
class Bench:
    """What a fault is made with: chance, the knowledge of the release, and the config that it changes."""

    rng: random.Random
    known: Knowledge
    config: Config

    def put(self, path: str, content: object) -> str | None:
        """Put a value at a path and return where it is; None when something in between is no section.

        ``*`` becomes a name, the one that is there if there is one, and ``[]`` the first element.
        """
        place: Any = self.config
        names = path.replace("[]", ".0").split(".")
        for index, name in enumerate(names):
            if name == "*":
                names[index] = next(iter(place), "some") if isinstance(place, dict) else name
            last = index == len(names) - 1
            inner: object = [{}] if names[index + 1 : index + 2] == ["0"] else {}
            if isinstance(place, dict):
                place[names[index]] = content if last else place.get(names[index], inner)
                place = place[names[index]]
            elif isinstance(place, list) and place and name == "0":
                place = place[0]
            else:
                return None
        return ".".join(names)

    def get(self, path: str) -> Any:
        """Return the value at a path, None when there is none."""
        place: Any = self.config
        for name in path.replace("[]", ".0").split("."):
            if isinstance(place, list):
                place = place[0] if place and name == "0" else None
            else:
                place = place.get(next(iter(place), "") if name == "*" else name) if isinstance(place, dict) else None
        return place

    def section(self, path: str) -> Config:
        """Return the section at a path, made if need be."""
        if not isinstance(self.get(path), dict):
            self.put(path, {})
        found: Config = self.get(path)
        return found

    def here(self) -> list[Key]:
        """Return every key that has a fixed place in the release."""
        return _here(self.known)

    def leaf(self) -> Key:
        """Return a key that holds a value, by chance."""
        return self.rng.choice([key for key in self.here() if not key.is_section])


@functools.cache
def _every(known: Knowledge) -> list[Key]:
    return [key for path in known.every_path() if (key := known.key(path)) is not None]


@functools.cache
def _here(known: Knowledge) -> list[Key]:
    return [key for key in _every(known) if key.status in {Status.PRESENT, Status.DEPRECATED}]


Fault = Callable[[Bench], Planted | None]


def misspelled_key(bench: Bench) -> Planted | None:
    """A letter, the case or a dash is wrong."""
    kind = bench.rng.choice(sorted(slips.KINDS))
    key = bench.rng.choice(bench.here())
    slip = slips.misspelled(bench.rng, bench.known, key, kind)
    placed = slip and bench.put(slip.path, {} if key.is_section else value(bench.rng, key))
    return Planted(kind, (placed,), "keys") if placed else None


def misspelled_present_key(bench: Bench) -> Planted | None:
    """A key of the config is written wrongly, with its value."""
    found = [path for path in paths(bench.config) if not path.startswith(("optimizer.params", "scheduler.params"))]
    kind = bench.rng.choice(sorted(slips.KINDS))
    path = bench.rng.choice(found)
    section, _, old = path.rpartition(".")
    new = slips.KINDS[kind](bench.rng, old)
    if new == old or not new or slips.is_a_name(bench.known, section, new):
        return None
    place = bench.get(section) if section else bench.config
    place[new] = place.pop(old)
    blamed = f"{section}.{new}" if section else new
    return Planted(f"{kind} of a key in use", (blamed, path, section or blamed), "keys")


def misplaced_key(bench: Bench) -> Planted | None:
    """A key lies in another section, or at the top."""
    sections = ("", *(key.path for key in bench.here() if key.is_section and bench.known.children(key.path)))
    key = bench.rng.choice([key for key in bench.here() if key.name != "*"])
    slip = slips.misplaced(bench.rng, bench.known, key, sections)
    placed = slip and bench.put(slip.path, {} if key.is_section else value(bench.rng, key))
    return Planted(slips.PARENT, (placed,), "keys") if placed else None


def unknown_key(bench: Bench) -> Planted | None:
    """A key that means nothing at all."""
    section = bench.rng.choice(["", *(key.path for key in bench.here() if key.is_section)])
    placed = bench.put(f"{section}.zzz_unknown" if section else "zzz_unknown", 1)
    return Planted("unknown key", (placed,), "keys") if placed else None


def removed_key(bench: Bench) -> Planted | None:
    """A key of an earlier release."""
    gone = [key for key in _every(bench.known) if key.status in {Status.REJECTED, Status.NO_LONGER}]
    if not gone:
        return None
    key = bench.rng.choice(gone)
    content = {"enabled": False} if key.is_section else value(bench.rng, key)
    placed = bench.put(key.path, content)
    return Planted("removed key", _around(placed), "keys") if placed else None


def newer_key(bench: Bench) -> Planted | None:
    """A key of a later release."""
    later = [key for key in _every(bench.known) if key.status is Status.NOT_YET]
    if not later:
        return None
    key = bench.rng.choice(later)
    placed = bench.put(key.path, {} if key.is_section else value(bench.rng, key))
    return Planted("newer key", _around(placed), "keys") if placed else None


def deprecated_key(bench: Bench) -> Planted | None:
    """A deprecated key, often with its successor beside it."""
    old = [key for key in bench.here() if key.status is Status.DEPRECATED and key.successors]
    if not old:
        return None
    key = bench.rng.choice(old)
    bench.put(key.path, bench.rng.random() < 0.8)
    named = [key.path, *key.successors]
    if bench.rng.random() < 0.7:
        successor = bench.known.key(bench.rng.choice(key.successors))
        if successor is not None:
            bench.put(successor.path, {"device": "cpu"} if successor.is_section else value(bench.rng, successor))
    return Planted("deprecated key", tuple(named), "keys")


def alias_twice(bench: Bench) -> Planted | None:
    """Both spellings of a key."""
    both = [(key.path, f"{key.parent}.{key.field}") for key in bench.here() if key.field]
    both += [(key.alias_of, key.path) for key in bench.here() if key.alias_of]
    names = bench.rng.choice(both)
    for path in names:
        key = bench.known.key(path)
        if key is None or not bench.put(path, {} if "object" in key.type else value(bench.rng, key)):
            return None
    return Planted("both spellings", names, "keys")


def wrong_type(bench: Bench) -> Planted | None:
    """A value of another JSON type."""
    key = bench.leaf()
    others = [kind for kind in OTHER_VALUES if kind not in key.type]
    if not others or not key.type:
        return None
    kind = bench.rng.choice(others)
    placed = bench.put(key.path, copy.deepcopy(bench.rng.choice(OTHER_VALUES[kind])))
    return Planted("wrong type", (placed,), "types") if placed else None


def wrong_number(bench: Bench) -> Planted | None:
    """A number outside its range, or a negative or broken one where there is no range."""
    numbers = [key for key in bench.here() if {"integer", "number"} & set(key.type)]
    key = bench.rng.choice(numbers)
    low = key.minimum if key.minimum is not None else key.exclusive_minimum
    high = key.maximum if key.maximum is not None else key.exclusive_maximum
    far = [0, -1, -5, 2.5, 10**20]
    far += [low - 1, low] if low is not None else []
    far += [high + 1, high] if high is not None else []
    placed = bench.put(key.path, bench.rng.choice(far))
    return Planted("out of range", (placed,), "types") if placed else None


def unlisted_value(bench: Bench) -> Planted | None:
    """A value outside a closed list, often a near miss."""
    listed = [key for key in bench.here() if key.enum]
    key = bench.rng.choice(listed)
    one = bench.rng.choice(key.enum)
    near = [slips.typo(bench.rng, one), one.swapcase(), f"{one} "] if isinstance(one, str) and one else [17, -1]
    placed = bench.put(key.path, bench.rng.choice([*near, "zzz"]))
    return Planted("bad value", (placed,), "types") if placed else None


def null(bench: Bench) -> Planted | None:
    """A null."""
    placed = bench.put(bench.rng.choice(bench.here()).path, None)
    return Planted("null", (placed,), "types") if placed else None


def no_section(bench: Bench) -> Planted | None:
    """A section that is a switch, a number, a text or a list."""
    key = bench.rng.choice([key for key in bench.here() if key.is_section])
    content: object = bench.rng.choice((True, False, 1, 0, "zzz", "auto", [], [{}], ""))
    placed = bench.put(key.path, content)
    return Planted("section is no object", (placed,), "types") if placed else None


def auto(bench: Bench) -> Planted | None:
    """An "auto" that nobody fills."""
    placed = bench.put(bench.rng.choice(bench.here()).path, "auto")
    return Planted('"auto"', (placed,), "consumer") if placed else None


def example(bench: Bench) -> Planted | None:
    """A bad example of a rule, laid over the config."""
    planting = bench.rng.choice(plantings(bench.known.version))
    if planting.blames(*BATCH):
        for name in BATCH:
            bench.config.pop(name, None)
    for name, content in planting.config.items():
        if name not in BATCH or planting.blames(*BATCH):
            below = None if name in {"optimizer", "scheduler"} else bench.config.get(name)
            bench.config[name] = laid_over(below, content)
    return Planted("example of a rule", planting.paths, planting.family)


def laid_over(below: object, above: object) -> object:
    """Return a value with another one over it: objects are merged, anything else is replaced."""
    if not isinstance(below, dict) or not isinstance(above, dict):
        return copy.deepcopy(above)
    return {name: laid_over(below.get(name), above.get(name, below.get(name))) for name in {**below, **above}}


def batch(bench: Bench) -> Planted | None:
    """Batch keys that do not fit, are missing, or are no positive numbers."""
    for name in BATCH:
        if bench.rng.random() < 0.3:
            bench.config.pop(name, None)
        if bench.rng.random() < 0.4:
            bench.config[name] = bench.rng.choice((1, 3, 5, 7, 16, 17, 0, -4, 2.5, True, "8", None, "auto"))
    if bench.rng.random() < 0.15:
        bench.config["sequence_parallel_size"] = bench.rng.choice((1, 2, 3, 0, -1, "2"))
    return Planted("batch keys", (*BATCH, "sequence_parallel_size"), "batch")


def combined(kind: str, family: str, *choices: Config) -> Fault:
    """Return the fault that mixes values of several keys, each left out, or one of what is given, by chance."""

    def plant(bench: Bench) -> Planted | None:
        chosen = bench.rng.choice(choices)
        for path, contents in chosen.items():
            if bench.rng.random() < 0.9 and not bench.put(path, copy.deepcopy(bench.rng.choice(contents))):
                return None
        return Planted(kind, tuple(chosen), family)

    return plant


SWITCH = (True, True, False)
STAGES = (0, 1, 2, 3)
DEVICES = ("none", "cpu", "nvme")
TYPES = ("Adam", "AdamW", "Lion", "Muon", "SGD", "Lamb", "Adagrad", "OneBitAdam", "RMSprop")
precision = combined(
    "precision",
    "precision",
    {"fp16.enabled": SWITCH, "bf16.enabled": SWITCH},
    {"fp16.enabled": SWITCH, "fp16.loss_scale": (0, -1, 1, 128, True, "0"), "fp16.loss_scale_window": (0, 1000, -1)},
    {"fp16.enabled": SWITCH, "fp16.min_loss_scale": (0, 1, -1, True), "fp16.initial_scale_power": (0, 16, -1, 200)},
    {"fp16.enabled": SWITCH, "fp16.fp16_master_weights_and_grads": SWITCH, "zero_optimization.stage": STAGES},
    {
        "bf16.enabled": SWITCH,
        "bf16.bf16_master_weights_and_grads": SWITCH,
        "bf16.bf16_optimizer_states": SWITCH,
        "zero_optimization.stage": STAGES,
        "zero_optimization.offload_optimizer.device": DEVICES,
    },
    {
        "bf16.enabled": SWITCH,
        "data_types.grad_accum_dtype": ("fp32", "bf16", "fp16"),
        "zero_optimization.stage": STAGES,
    },
    {"bf16.enabled": SWITCH, "fp16.enabled": (False,), "data_types.param_dtype": ("bf16", "fp16", "fp32", "zzz")},
    {"torch_autocast.enabled": SWITCH, "torch_autocast.dtype": ("bfloat16", "fp8", "float16"), "bf16.enabled": SWITCH},
    {"torch_autocast.enabled": SWITCH, "zero_optimization.zero_quantized_weights": SWITCH},
    {"communication_data_type": ("fp16", "BF16", "fp8", "float32"), "gradient_allreduce_op": ("mean", "sum", "max")},
)
zero = combined(
    "ZeRO",
    "zero",
    {"zero_optimization.stage": (*STAGES, 4, -1, "2", True), "zero_optimization.legacy_stage1": SWITCH},
    {"zero_optimization.stage": STAGES, "zero_optimization.compute_grad_norm": (False,), "gradient_clipping": (0, 1.0)},
    {"zero_optimization.stage": STAGES, "zero_optimization.allgather_bucket_size": (3, 4, 0, -2)},
    {"zero_optimization.stage": STAGES, "prescale_gradients": SWITCH, "gradient_predivide_factor": (1.0, 2.0, 0)},
    {
        "zero_optimization.stage": STAGES,
        "zero_optimization.reduce_scatter": SWITCH,
        "prescale_gradients": SWITCH,
        "gradient_allreduce_op": ("mean", "sum"),
    },
    {
        "zero_optimization.stage": STAGES,
        "zero_optimization.zero_quantized_gradients": SWITCH,
        "zero_optimization.reduce_scatter": SWITCH,
    },
    {"zero_optimization.stage": STAGES, "zero_optimization.zero_hpz_partition_size": (1, 2, 8, 0)},
    {
        "zero_optimization.stage": STAGES,
        "managed_gradient_accumulation": (False,),
        "zero_optimization.overlap_comm": SWITCH,
    },
    {"zero_optimization.stage": STAGES, "zero_optimization.elastic_checkpoint": SWITCH},
    {"zero_optimization": (True, False, None, {}), "zero_allow_untested_optimizer": SWITCH},
    {"zero_optimization.stage": STAGES, "zero_optimization.leaf_module.classes": ([], ["zzz"], "zzz", [1])},
)
offload = combined(
    "offload",
    "offload",
    {
        "zero_optimization.stage": STAGES,
        "zero_optimization.offload_optimizer.device": (*DEVICES, "gpu"),
        "zero_optimization.offload_optimizer.nvme_path": ("/local_nvme", None),
        "optimizer.type": TYPES,
    },
    {
        "zero_optimization.stage": STAGES,
        "zero_optimization.offload_optimizer.device": DEVICES,
        "zero_optimization.offload_optimizer.ratio": (0, 0.5, 1, 1.5),
    },
    {
        "zero_optimization.stage": STAGES,
        "zero_optimization.offload_param.device": (*DEVICES, "CPU"),
        "zero_optimization.offload_param.nvme_path": ("/local_nvme", None, 3),
    },
    {
        "zero_optimization.stage": STAGES,
        "zero_optimization.offload_optimizer.device": DEVICES,
        "zero_optimization.zenflow.select_strategy": ("auto", "step", "epoch", "zzz"),
        "zero_optimization.zenflow.select_interval": ("auto", 4, "zzz"),
        "zero_optimization.zenflow.update_interval": ("auto", 4, 0, 8),
        "zero_optimization.zenflow.topk_ratio": (0.1, 0.0, 1.0),
    },
    {"zero_optimization.stage": STAGES, "zero_optimization.cpu_offload": SWITCH},
    {"zero_optimization.cpu_offload": SWITCH, "zero_optimization.offload_optimizer": ({}, {"device": "cpu"})},
    {"zero_force_ds_cpu_optimizer": SWITCH, "zero_optimization.offload_optimizer.device": DEVICES},
    {"aio.block_size": (0, 1048576, "1M"), "aio.queue_depth": (0, 8)},
)


def optimizer(bench: Bench) -> Planted | None:
    """A type or a parameter that is wrong, or missing."""
    every = bench.known.every_optimizer()
    return _typed(bench, "optimizer", bench.rng.choice(every))


def scheduler(bench: Bench) -> Planted | None:
    """A type or a parameter that is wrong, or missing."""
    every = bench.known.every_scheduler()
    return _typed(bench, "scheduler", bench.rng.choice(every))


def _typed(bench: Bench, part: str, facts: TypeFacts) -> Planted:
    rng = bench.rng
    content: Config = {"type": facts.name, "params": params(rng, facts)}
    bench.put(part, content)
    names = sorted(facts.parameters)
    blamed = [f"{part}.type", f"{part}.params", part]
    way = rng.randrange(9)
    if way == 0:
        content["type"] = rng.choice((slips.typo(rng, facts.name), facts.name.swapcase(), "zzz", 3, None, "auto", ""))
    elif way == 1:
        content["params"]["zzz_unknown"] = 1
        blamed.append(f"{part}.params.zzz_unknown")
    elif way == 2 and names:
        name = slips.typo(rng, rng.choice(names))
        content["params"][name] = 0.1
        blamed.append(f"{part}.params.{name}")
    elif way in {3, 4} and names:
        name = rng.choice(names)
        parameter = facts.parameters[name]
        others = [one for kind, some in OTHER_VALUES.items() if kind not in parameter.type for one in some]
        content["params"][name] = copy.deepcopy(rng.choice(others) if way == 3 else rng.choice((-1, 0, 2, 1e6, -0.5)))
        blamed.append(f"{part}.params.{name}")
    elif way == 5:
        content["params"] = rng.choice((None, [], "auto", 3, {}))
    elif way == 6:
        content.pop(rng.choice(("type", "params")))
    elif way == 7:
        content["params"]["max_grad_norm" if part == "optimizer" else "warmup_num_steps"] = rng.choice((0, 1, 1.0, -1))
        blamed += [f"{part}.params.max_grad_norm", f"{part}.params.warmup_num_steps"]
    else:
        bench.put("zero_optimization.stage", rng.choice(STAGES))
        if rng.random() < 0.5:
            bench.config.pop("zero_allow_untested_optimizer", None)
        blamed += ["zero_optimization.stage", "zero_allow_untested_optimizer"]
    return Planted(f"{part} {_WAYS[way]}", tuple(blamed), part)


_WAYS = (
    "type",
    "unknown parameter",
    "misspelled parameter",
    "parameter type",
    "parameter range",
    "params is no object",
    "without type or params",
    "special parameter",
    "under ZeRO",
)


def parameter_auto(bench: Bench) -> Planted | None:
    """An "auto" in params."""
    part = bench.rng.choice(("optimizer", "scheduler"))
    content: Any = bench.get(f"{part}.params")
    if not isinstance(content, dict) or not content:
        return None
    name = bench.rng.choice(sorted(content))
    content[name] = "auto"
    return Planted('"auto" parameter', (f"{part}.params.{name}",), "consumer")


def _around(path: str) -> tuple[str, ...]:
    parts = path.split(".")
    return tuple(".".join(parts[:length]) for length in range(len(parts), 0, -1))


def paths(config: Config, before: str = "") -> Iterator[str]:
    """Yield the dotted path of every member that is not in a list."""
    for name, content in config.items():
        yield before + name
        if isinstance(content, dict):
            yield from paths(content, f"{before}{name}.")


FAULTS: tuple[Fault, ...] = (
    misspelled_key,
    misspelled_present_key,
    misplaced_key,
    unknown_key,
    removed_key,
    newer_key,
    deprecated_key,
    alias_twice,
    wrong_type,
    wrong_type,
    wrong_number,
    unlisted_value,
    null,
    no_section,
    auto,
    example,
    example,
    example,
    batch,
    precision,
    zero,
    offload,
    optimizer,
    scheduler,
    parameter_auto,
)
