"""Faults of the optimizer and of the scheduler: their types and parameters."""

from __future__ import annotations

import copy
from typing import Any

from dsmigrate.knowledge import TypeFacts

from . import slips
from .bench import OTHER_VALUES, Bench
from .case import Config, Planted
from .combinations import STAGES
from .valid import params


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
