"""Plans the conversion of a tree: every step in its order, each with what the steps before it have found."""

from __future__ import annotations

from dataclasses import replace

from dsmigrate.codemod import launch
from dsmigrate.codemod.model import Options
from dsmigrate.codemod.plan import Plan
from dsmigrate.codemod.steps import (
    accumulation,
    apex,
    batch,
    checkpoint,
    checkpoint_load,
    clipping,
    comm_hooks,
    compiled,
    config_optimizer,
    copied_wrappers,
    definitions,
    engine,
    engine_names,
    evaluated_buffers,
    existing,
    fsdp,
    gradients,
    held_optimizers,
    inputs,
    late_parameters,
    loop,
    odd_parameters,
    optimizer,
    own_engine,
    own_weights,
    passing,
    past_wrap,
    precision,
    process_group,
    rank_forwards,
    rank_rates,
    redundancy,
    refusals,
    repeated,
    site,
    sites,
    stage3,
    starts_without,
    taken_gradients,
    unscaling,
    unwrap,
    visible_devices,
    weight_writes,
    wrap,
    wrapper_tests,
    written_buffers,
)


def with_stage_of(options: Options) -> Options:
    """A config that is there already has chosen the ZeRO stage, unless the person says another."""
    section = options.config.get("zero_optimization") if options.config is not None else None
    stage = section.get("stage") if isinstance(section, dict) else None
    if options.zero_stage is None and isinstance(stage, int) and not isinstance(stage, bool) and 0 <= stage <= 3:
        return replace(options, zero_stage=stage)
    return options


def concerns_us(plan: Plan) -> bool:
    """Whether there is something to convert; raises a refusal where the rest of the job is in another module."""
    backward = sites.find_backward(plan)
    if any("deepspeed.initialize" in plan.imports.names(call.func) for call in plan.tree.calls):
        # Converted already, by this tool or by hand: a loss that still runs its own backward makes the difference.
        runs = [*backward, *plan.facts["handed_backward"]]
        if not plan.roles.wraps or (runs and all(call.args for call in runs)):
            return False
    if plan.roles.wraps:
        return True
    starts = [call for call in plan.tree.calls if plan.imports.names(call.func) & process_group.INIT_NAMES]
    if starts and backward:
        refusals.check_kind(plan)
        raise plan.refuse(
            "MG912", backward[0], "a training loop is here, but the DistributedDataParallel wrap is not",
            "the wrap is in another module, or the script trains without DDP",
        )  # fmt: skip
    return False


def decide(plan: Plan) -> None:
    """Let every step decide and note its edits; raises ``RefusedError``."""
    _refuse(plan)
    site.choose(plan)
    own_engine.run(plan)
    redundancy.run(plan)
    batch.choose_stage(plan)
    process_group.run(plan)
    visible_devices.visible_devices(plan)
    wrap.run(plan)
    fsdp.run(plan)
    apex.detect_apex(plan)
    loop.run(plan)
    past_wrap.run(plan)
    precision.run(plan)
    clipping.run(plan)
    gradients.check_gradient_helpers(plan)
    clipping.unscale(plan)
    unwrap.run(plan)
    wrapper_tests.run(plan)
    copied_wrappers.run(plan)
    engine_names.run(plan)
    optimizer.run(plan)
    taken_gradients.taken_gradients(plan)
    accumulation.choose_accumulation(plan)
    unscaling.unscaled_gradients(plan)
    weight_writes.weight_writes(plan)
    late_parameters.run(plan)
    rank_rates.rank_rates(plan)
    checkpoint.run(plan)
    compiled.run(plan)
    repeated.run(plan)
    stage3.run(plan)
    rank_forwards.run(plan)
    own_weights.run(plan)
    batch.run(plan)
    comm_hooks.run(plan)
    config_optimizer.run(plan)
    existing.run(plan)
    for step in (written_buffers, evaluated_buffers, starts_without):
        step.run(plan)
    inputs.run(plan)
    launch.find_options(plan)
    definitions.run(plan)
    odd_parameters.run(plan)
    checkpoint_load.same_number(plan)
    redundancy.at_stage_zero(plan)
    engine.run(plan)
    passing.run(plan)


def _refuse(plan: Plan) -> None:
    """Raise ``RefusedError`` for what no engine can take over."""
    refusals.check(plan)
    held_optimizers.check(plan)
    if not sites.find_backward(plan):
        raise plan.refuse(
            "MG910", plan.roles.wraps[0].statement, "the model is wrapped here, but the training loop is in another module",
            "the loop has to be converted together with the wrap",
        )  # fmt: skip
