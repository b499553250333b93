"""Which class an optimizer type builds, and which parameters that class takes."""

from __future__ import annotations

import enum
import re

from dsmigrate.knowledge import Parameter, TypeFacts
from dsmigrate.rules.context import Context
from dsmigrate.rules.precision._shared import mode
from dsmigrate.rules.typed import built_type, given, written_type


class Build(enum.Enum):
    """Whose class is built."""

    FUSED = "DeepSpeed's own class"
    CPU = "DeepSpeed's class for the CPU"
    TORCH = "the class of torch"


def build_of(context: Context, facts: TypeFacts) -> Build | None:
    """Return whose class the type becomes with the offload and ``torch_adam`` of the file; None when that is open."""
    if facts.torch or (facts.name.startswith("Mu") and not facts.takes_anything):
        return Build.TORCH
    if "torch_adam" in facts.parameters and given(context, "optimizer").get("torch_adam"):
        return Build.TORCH
    device = context.device("offload_optimizer")
    if device is None:
        return None
    if any(build.startswith("DeepSpeedCPU") for build in facts.builds) and device != "none":
        return Build.CPU
    return (
        Build.TORCH if any(build.startswith("torch") and "without" in build for build in facts.builds) else Build.FUSED
    )


def class_name(context: Context, facts: TypeFacts) -> str:
    """Return the name of the class that the type becomes, as messages show it."""
    build = build_of(context, facts)
    for built in facts.builds:
        name = built.split(" ")[0].rstrip(",")
        if build is Build.CPU and name.startswith("DeepSpeedCPU"):
            return f"`{name}`"
        if build is Build.TORCH and name.startswith("torch.optim"):
            return f"`{name}`" if not decays_like_l2(context, facts) else "`torch.optim.Adam`"
        if build is Build.FUSED and name.startswith("Fused"):
            return f"`{name}`"
    return f"`{facts.name}`"


def decays_like_l2(context: Context, facts: TypeFacts) -> bool:
    """Return whether the type is Adam with its decay in the gradient, which ``adam_w_mode`` false makes of it."""
    return facts.name == "Adam" and not given(context, "optimizer").get("adam_w_mode", True)


def refusal(context: Context, facts: TypeFacts, parameter: Parameter, value: object) -> str | None:
    """Return what becomes of a parameter that the built class does not take: "TypeError", "RuntimeError", "ignored".

    None when it takes it, or when that is open.
    """
    if not parameter.only_with:
        return None
    needs, _, otherwise = parameter.only_with.partition(";")
    met = _met(context, facts, needs)
    if met is not False:
        return None
    if "RuntimeError" in otherwise:
        return "RuntimeError" if value is not None and bool(value) else None
    return "TypeError" if "TypeError" in otherwise else "ignored"


def _met(context: Context, facts: TypeFacts, needs: str) -> bool | None:
    """Return whether the condition of ``Parameter.only_with`` holds; None for one that is not about the class."""
    build = build_of(context, facts)
    if build is None:
        return None
    if re.match(r"`torch_adam` left false", needs):
        return build is not Build.TORCH
    if re.match(r"`torch_adam` true and `adam_w_mode` false", needs):
        return build is Build.TORCH and decays_like_l2(context, facts)
    if re.match(r"`torch_adam` true", needs) or re.match(r"the torch class", needs):
        return build is Build.TORCH
    if re.match(r"`zero_optimization.offload_optimizer`", needs):
        return context.device("offload_optimizer") in {"cpu", "nvme"}
    if re.match(r"the fused class|FusedLion", needs):
        return build is Build.FUSED
    return None


def optimizer(context: Context) -> TypeFacts | None:
    """Return the optimizer type that the release builds for the file."""
    return built_type(context, "optimizer")


_RATES = frozenset({"lr", "muon_lr", "adam_lr"})
_UNTIL_THE_SCHEDULE = frozenset({"WarmupDecayLR", "OneCycle", "LRRangeTest", "WarmupLR"})


def is_read(context: Context, facts: TypeFacts, name: str) -> bool:
    """Return whether the optimizer looks at a number at all, before a schedule puts another in its place."""
    if name == "dampening" and "momentum" in facts.parameters:
        return bool(given(context, "optimizer").get("momentum"))
    return not (name in _RATES and build_of(context, facts) is Build.FUSED and _is_replaced(context))


def _is_replaced(context: Context) -> bool:
    """Return whether a schedule has a rate of its own for the first step; 16-bit modes without ZeRO take one before."""
    if context.stage == 0 and mode(context) != "fp32":
        return False
    schedule = written_type(context, "scheduler")
    own = schedule != "WarmupLR" or given(context, "scheduler").get("warmup_max_lr") is not None
    return schedule in _UNTIL_THE_SCHEDULE and own


def switch_stops(context: Context, facts: TypeFacts, name: str) -> bool:
    """Return whether a text at a switch ends in a `TypeError`; elsewhere it counts as true."""
    if name in {"differentiable", "bias_correction"}:
        return name == "differentiable" or build_of(context, facts) is Build.CPU
    on_cpu = context.device("offload_optimizer") in {"cpu", "nvme"} and not given(context, "optimizer").get(
        "torch_adam"
    )
    return name == "adam_w_mode" and on_cpu and facts.name != "AdamW"


_OWN_DECAY = frozenset({"Adafactor", "SparseAdam", "Rprop", "LBFGS"})
"""Classes of torch that do not add their decay to the gradient, or have none."""


def adds_decay(context: Context, facts: TypeFacts, name: str) -> bool:
    """Return whether a decay is added to the gradient by torch, on the CPU for certain."""
    coupled = (facts.torch and facts.name not in _OWN_DECAY) or decays_like_l2(context, facts)
    apart = given(context, "optimizer").get("decoupled_weight_decay")
    on_cpu = context.stage != 0 and context.device("offload_optimizer") in {"cpu", "nvme"}
    return name == "weight_decay" and build_of(context, facts) is Build.TORCH and coupled and on_cpu and not apart


def fails_on_text(context: Context, facts: TypeFacts, parameter: Parameter, text: str) -> bool:
    """Return whether a text at a parameter that the class takes stops it, when it is built or in its first step."""
    if "boolean" in parameter.type:
        return switch_stops(context, facts, parameter.name)
    if "string" in parameter.type:
        return bool(parameter.enum) and text not in parameter.enum
    return is_read(context, facts, parameter.name)
