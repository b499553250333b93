"""MG704: fits the script to a DeepSpeed config that is there already (``--config``)."""

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy
from typing import Any

from dsmigrate.codemod.model import Idea, Kind
from dsmigrate.codemod.plan import Plan
from dsmigrate.codemod.tree import Statement

IDEAS = (
    Idea(
        "MG709",
        "A key that the given config lacks is added",
        "With --config, what the script needs and the config does not say is added to it.",
        "An absent gradient_clipping, for one, means 1.0 since DeepSpeed 0.19.3.",
        "dsmigrate migrate --config",
        Kind.CONVERTED,
    ),
)
_BATCH = ("train_micro_batch_size_per_gpu", "gradient_accumulation_steps")


def run(plan: Plan) -> None:
    """Merge the values of the script into the given config; contradictions are reported, the config's value stays."""
    given = plan.options.config
    if given is None:
        return
    assert plan.site is not None
    where = plan.site.anchor
    merged: dict[str, Any] = deepcopy(dict(given))
    _ours_win(plan, merged, where)
    run_time = {value.path for value in plan.runtime}
    for key, value in plan.config.items():
        if key in _BATCH and "train_batch_size" in merged and key not in merged:
            continue
        _merge(plan, merged, (key,), value, where, run_time)
    for section in ("fp16", "bf16"):
        given_section = given.get(section)
        if isinstance(given_section, Mapping) and given_section.get("enabled") is True and section not in plan.config:
            plan.todo("MG704", where, f"{section} is on in the config, but the script trains float32 parameters",
                      "half-precision parameters have other numerics; turn it off or ask for --precision")  # fmt: skip
    plan.config = merged


def _ours_win(plan: Plan, merged: dict[str, Any], where: Statement) -> None:
    """Sections that the script's own objects replace: DeepSpeed would ignore them without a word."""
    for section, owner in (("optimizer", "optimizer"), ("scheduler", "learning-rate schedule")):
        if section in merged:
            plan.todo("MG704", where, f"the config's {section} section is not used: the script's own {owner} is kept; remove it",
                      f"a client {section} wins over the config silently, or both would run")  # fmt: skip


def _merge(
    plan: Plan,
    into: dict[str, Any],
    path: tuple[str, ...],
    value: Any,
    where: Statement,
    run_time: set[tuple[str, ...]],
) -> None:
    key, name = path[-1], ".".join(path)
    if key not in into or into[key] == "auto" or into[key] is None:
        into[key] = deepcopy(value)
        plan.note(
            "MG709", Kind.CONVERTED, where, f"{name} = {value!r} is added to the config", "the script needs it said"
        )
        return
    present = into[key]
    if isinstance(value, dict) and isinstance(present, Mapping):
        nested = dict(present)
        into[key] = nested
        for inner, inner_value in value.items():
            _merge(plan, nested, (*path, inner), inner_value, where, run_time)
        return
    if path in run_time or any(p[: len(path)] == path for p in run_time):
        if present != value:
            plan.kept("MG704", where, f"{name}: the config says {present!r}, the script sets it from its own options",
                      "the command line keeps deciding")  # fmt: skip
        return
    if present != value and not _same_number(present, value):
        plan.todo("MG704", where, f"{name} is {present!r} in the config, but the script does {value!r}",
                  "the config's value is kept")  # fmt: skip


def _same_number(left: Any, right: Any) -> bool:
    numbers = (int, float)
    return (
        isinstance(left, numbers)
        and isinstance(right, numbers)
        and not isinstance(left, bool)
        and float(left) == float(right)
    )
