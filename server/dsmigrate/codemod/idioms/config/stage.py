"""The ZeRO stage that fits the script."""

from __future__ import annotations

from collections.abc import Iterator

from dsmigrate.codemod import targets
from dsmigrate.codemod.analysis.events import Happening
from dsmigrate.codemod.analysis.training import Training
from dsmigrate.codemod.analysis.values import Obj
from dsmigrate.codemod.decision import Decision, Setting
from dsmigrate.codemod.idioms.facts import Facts
from dsmigrate.codemod.model import Idea, Kind
from dsmigrate.codemod.program.edits import Insert, line_range
from dsmigrate.codemod.program.module import Module
from dsmigrate.languages import told

IDEAS = (
    Idea(
        "MG604",
        "Optimizer offload with the script's optimizer",
        "zero_force_ds_cpu_optimizer is false, so that the script's own optimizer steps on the CPU.",
        "DeepSpeed otherwise insists on its DeepSpeedCPUAdam.",
        "deepspeed/runtime/engine.py, zero_force_ds_cpu_optimizer",
        Kind.CONVERTED,
    ),
    Idea(
        "MG703",
        "The ZeRO stage",
        "What is partitioned over the ranks: nothing (0), optimizer state (1), gradients too (2), parameters too (3).",
        "Stage 2 by default; stage 1 where the script accumulates or used no_sync, as stage 2 sends gradients at every backward; "
        "stage 0 where something needs whole gradients or states, if need be under the option that asks for it.",
        "deepspeed/runtime/zero/config.py",
        Kind.CONVERTED,
    ),
)
_KEEPS = {
    0: "nothing is partitioned, as under DDP.",
    1: "each GPU keeps 1/N of the optimizer state.",
    2: "each GPU keeps 1/N of optimizer state and gradients.",
    3: "each GPU keeps 1/N of optimizer state, gradients and parameters.",
}


def windows(training: Training, facts: Facts) -> bool:
    """Whether gradients of several backwards come together before a step, or the script kept DDP from exchanging them."""
    return facts.accumulates or any(training.is_model(event["of"]) for event in training.events(Happening.SYNC))


def preferred(training: Training, facts: Facts) -> int:
    """The stage for a script of which no decision asks for a lower one."""
    return 1 if windows(training, facts) else 2


def stage(training: Training, facts: Facts, number: int, setting: Setting, cause: Decision | None = None) -> Decision:
    """What is said of the highest stage that was settled, with the settings that come with it.

    ``cause``: the decision that allows no higher one.
    """
    site = facts.site
    if setting.code:
        message: str = told("ZeRO stage: {code}", code=setting.code)
    elif number == 2 and windows(training, facts):
        message = "ZeRO-2 sends gradients at every backward; --zero-stage 1 sends them once a step."
    else:
        skips = number == 3 or (number and facts.options.precision != "bf16")
        more = " A step with inf or NaN is skipped." if skips else ""
        message = told("ZeRO-{number}: {keeps}{more}", number=number, keeps=_KEEPS[number], more=more)
    chosen = facts.options.chosen_for
    why = (
        told("the fastest that fits {chosen}, by an estimate: see `dsmigrate recommend`", chosen=chosen)
        if chosen
        else told("{place}: {message}", place=_place(cause, site.module), message=cause.message)
        if cause is not None
        else ("the ranks share what each held whole" if number else "each rank holds everything")
    )
    return Decision(
        "MG703", Kind.CONVERTED, site.module, site.node, message, why, config=_section(training, facts, number, setting),
        differs=bool(number) or cause is not None, lines=(0, 0),
    )  # fmt: skip


def _place(decision: Decision, module: Module) -> str:
    """Where a decision's statement stands, for somebody who reads of a module."""
    line = line_range(decision.node)[0]
    return told("line {line}", line=line) if decision.module is module else f"{decision.module.path}:{line}"


def offload(facts: Facts, number: int) -> Iterator[Decision]:
    """What is said of the offload that was asked for."""
    site = facts.site
    if facts.options.offload != "none" and number:
        yield Decision(
            "MG604", Kind.CONVERTED, site.module, site.node, "zero_force_ds_cpu_optimizer: false", "your optimizer steps the parts that are offloaded",
            config={"zero_force_ds_cpu_optimizer": Setting(None, static=False)}, lines=(0, 0),
        )  # fmt: skip
    elif facts.options.offload != "none":
        yield Decision(
            "MG604", Kind.TODO, site.module, site.node, "offload needs ZeRO 1 or higher: nothing is offloaded at stage 0",
            "stage 0 partitions nothing", lines=(0, 0),
        )  # fmt: skip


def _section(training: Training, facts: Facts, number: int, setting: Setting) -> dict[str, Setting]:
    options = facts.options
    found = {"zero_optimization.stage": setting}
    if options.offload != "none" and number:
        device: dict[str, object] = {"device": options.offload}
        if options.offload == "nvme" and options.nvme_path:
            device["nvme_path"] = options.nvme_path
        found["zero_optimization.offload_optimizer"] = Setting(None, static=device)
        if number == 3:
            found["zero_optimization.offload_param"] = Setting(None, static=dict(device))
    regions = any(
        block.label is not None and isinstance(block.label, Obj) and "autocast" in block.label.made_by
        for block in training.analysis.root.blocks()
    )
    if number == 3 and regions:  # with DeepSpeed's own Linear for ZeRO 3 losses under autocast are up to 7e-4 off
        found["zero_optimization.memory_efficient_linear"] = Setting(None, static=False)
    return found | {
        f"zero_optimization.{key}": Setting(None, static=value) for key, value in options.chosen_sizes.items()
    }


def first_update(training: Training, facts: Facts) -> Iterator[Decision]:  # noqa: ARG001 - an idiom's signature
    """Undo the step that the optimizer makes when the engine is made: ZeRO's up to 0.13.1, half-precision sections' at ZeRO 0."""
    if facts.options.precision == "keep" and not targets.holds("update_at_start", facts.options.target_version):
        return
    site = facts.site
    line = f"ds_compat.forget_first_step({site.target})"
    yield Decision(
        "MG703", Kind.CONVERTED, site.module, site.node, line, "the optimizer steps once, with zero gradients, when the engine is made",
        edits=(Insert(site.module, site.node, ((line,),), after=True, rank=0),), lines=(0, 0),
    )  # fmt: skip
