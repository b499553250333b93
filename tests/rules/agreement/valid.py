"""Configs that are meant to be valid: keys of all sections, with values as the knowledge describes them."""

from __future__ import annotations

import copy
import functools
import random
from collections.abc import Sequence

from dsmigrate.facts.sources import read
from dsmigrate.knowledge import Key, Knowledge, Parameter, TypeFacts
from tests.schemas.support import FOLDER

from .case import Config

WORLDS = (1, 1, 2, 3, 4, 8)
OWN_OPTIMIZERS = ("Adam", "AdamW", "adamw", "Lion", "Lamb", "Muon", "Adagrad")
OWN_SCHEDULERS = ("WarmupLR", "WarmupDecayLR", "WarmupCosineLR", "OneCycle", "LRRangeTest")
BATCH = ("train_batch_size", "train_micro_batch_size_per_gpu", "gradient_accumulation_steps")
HANDLED = {"bf16", "bfloat16", "fp16", "torch_autocast", "optimizer", "scheduler", "zero_optimization", *BATCH}
"""Keys of the top level that are not drawn like the others."""
FREE = "some"
"""A name where names are free."""
SELDOM = ("enabled", "autotp_size", "use_gds", "super_offload", "zenflow", "deepcompile", "dtype", "mpu", "tp_group")
"""Names of keys that one process on a CPU can seldom live with, or that no config can set."""


def valid(rng: random.Random, known: Knowledge) -> tuple[Config, int]:
    """Return a config and the number of processes it is written for."""
    world = rng.choice(WORLDS)
    config = batch(rng, world)
    if rng.random() < 0.15:
        config |= copy.deepcopy(rng.choice(starters()))
        return config, world
    if rng.random() < 0.8:
        config["zero_optimization"] = zero(rng, known)
    mode = rng.choice(("bf16", "fp16", "bfloat16", "torch_autocast", "", ""))
    if mode:
        config[mode] = section(rng, known, "bf16" if mode == "bfloat16" else mode) | {"enabled": rng.random() < 0.8}
    if rng.random() < 0.6:
        config["optimizer"] = optimizer(rng, known)
        if rng.random() < 0.8:
            config["zero_allow_untested_optimizer"] = True
    if rng.random() < 0.4:
        config["scheduler"] = scheduler(rng, known)
    for key in known.children():
        if key.name not in HANDLED and rng.random() < (0.12 if key.is_section else 0.08):
            config[key.name] = section(rng, known, key.path) if key.is_section else value(rng, key)
    return config, world


@functools.cache
def starters() -> Sequence[Config]:
    """Return the starters for whole files that plain DeepSpeed reads, without their batch keys."""
    found = [snippet["config"] for snippet in read(FOLDER).snippets["files"].values() if "consumer" not in snippet]
    return [{name: value for name, value in config.items() if name not in BATCH} for config in found]


def batch(rng: random.Random, world: int) -> Config:
    """Return batch keys that fit the number of processes."""
    micro, steps = rng.choice((1, 2, 4, 8)), rng.choice((1, 1, 2, 4, 16))
    every = dict(zip(BATCH, (micro * steps * world, micro, steps), strict=True))
    forms = (BATCH, BATCH[:1], BATCH[1:2], BATCH[1:], BATCH[:2], (BATCH[0], BATCH[2]))
    return {name: every[name] for name in rng.choice(forms)}


def zero(rng: random.Random, known: Knowledge) -> Config:
    """Return a ZeRO section."""
    config: Config = {"stage": rng.choice((0, 1, 2, 2, 3, 3))} if rng.random() < 0.95 else {}
    config |= {name: value for name, value in section(rng, known, "zero_optimization").items() if name != "stage"}
    for offload in ("offload_optimizer", "offload_param"):
        if offload in config:
            config[offload] = {"device": rng.choice(("cpu", "cpu", "none", "nvme"))} | config[offload]
            if config[offload]["device"] == "nvme" and rng.random() < 0.9:
                config[offload]["nvme_path"] = "/local_nvme"
    return config


def section(rng: random.Random, known: Knowledge, path: str) -> Config:
    """Return some keys of a section with values; sections inside it are seldom there."""
    share = rng.choice((0.1, 0.2, 0.4))
    config: Config = {}
    for key in known.children(path):
        if key.required_when is not None:
            wanted = rng.random() < 0.95
        elif key.name in SELDOM:
            wanted = rng.random() < 0.03
        elif key.is_section:
            wanted = rng.random() < share / 2
        else:
            wanted = rng.random() < share and key.status.value == "present"
        if wanted:
            name = key.field if key.field and rng.random() < 0.2 else key.name
            name = FREE if name == "*" else name
            config[name] = section(rng, known, key.path) if key.is_section and _holds_keys(key) else value(rng, key)
    return config


def _holds_keys(key: Key) -> bool:
    return "object" in key.type


def value(rng: random.Random, key: Key) -> object:
    """Return a value that a key takes, as far as its facts go."""
    if key.suggestions and rng.random() < 0.3:
        return copy.deepcopy(rng.choice(key.suggestions)["value"])
    if key.enum:
        return rng.choice(key.enum)
    kind = rng.choice([kind for kind in key.type if kind != "null"] or ["null"])
    return typed(rng, kind, key)


def typed(rng: random.Random, kind: str, facts: Key | Parameter) -> object:
    """Return a value of a JSON type within the range of a key or parameter."""
    if kind == "boolean":
        return rng.random() < 0.5
    if kind in {"integer", "number"}:
        return number(rng, kind, facts)
    if kind == "string":
        return rng.choice(("some", "out", "x"))
    if kind == "array":
        return [typed(rng, facts.items[0] if facts.items else "string", _PLAIN) for _ in range(rng.randint(0, 2))]
    return {} if kind == "object" else None


def number(rng: random.Random, kind: str, facts: Key | Parameter) -> object:
    """Return a number within the range, whole when an integer is wanted."""
    low = facts.minimum if facts.minimum is not None else facts.exclusive_minimum
    high = facts.maximum if facts.maximum is not None else facts.exclusive_maximum
    if kind == "number":
        top = high if high is not None else (low or 0) + 1
        return round((low or 0) + (top - (low or 0)) * rng.uniform(0.1, 0.9), 3)
    start = int(low or 0) + (0 if facts.exclusive_minimum is None else 1)
    if isinstance(facts.default, int) and not isinstance(facts.default, bool) and rng.random() < 0.5:
        return facts.default
    return start + rng.choice((0, 1, 2, 8, 1000) if high is None else (0, int(high) - start))


_PLAIN = Parameter("", ())


def optimizer(rng: random.Random, known: Knowledge) -> Config:
    """Return an optimizer section of a type that the release builds."""
    every = known.optimizers()
    name = rng.choice(OWN_OPTIMIZERS if rng.random() < 0.8 else [facts.name for facts in every])
    facts = known.optimizer(name)
    config: Config = {"type": name}
    if facts is not None and (rng.random() < 0.95):
        config["params"] = params(rng, facts)
    return config


def scheduler(rng: random.Random, known: Knowledge) -> Config:
    """Return a scheduler section of a type that the release builds."""
    every = known.schedulers()
    name = rng.choice(OWN_SCHEDULERS if rng.random() < 0.85 else [facts.name for facts in every])
    facts = known.scheduler(name)
    return {"type": name, "params": params(rng, facts) if facts else {}}


def params(rng: random.Random, facts: TypeFacts) -> Config:
    """Return the parameters of a type that are required, and some others."""
    config: Config = {}
    for name, parameter in facts.parameters.items():
        wanted = parameter.required or name == "lr" or (not parameter.only_with and rng.random() < 0.25)
        if wanted and parameter.type:
            config[name] = parameter_value(rng, parameter)
    return config


def parameter_value(rng: random.Random, parameter: Parameter) -> object:
    """Return a value that a parameter takes."""
    if parameter.name in {"lr", "warmup_max_lr", "cycle_max_lr"}:
        return 1e-3
    if parameter.suggestions and rng.random() < 0.5:
        return copy.deepcopy(rng.choice(parameter.suggestions)["value"])
    if parameter.enum:
        return rng.choice(parameter.enum)
    if parameter.default is not None and parameter.default and rng.random() < 0.7:
        return copy.deepcopy(parameter.default)
    if parameter.name in {"betas", "coeffs"}:
        return [0.9, 0.99]
    return typed(rng, rng.choice([kind for kind in parameter.type if kind != "null"] or ["null"]), parameter)
