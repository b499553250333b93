"""MG301, MG307: autocast regions stay, and the config switches torch_autocast on as they do."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import libcst as cst

from dsmigrate.codemod import targets
from dsmigrate.codemod.carrying import carry
from dsmigrate.codemod.flow import argument
from dsmigrate.codemod.model import Idea, Kind
from dsmigrate.codemod.plan import Plan
from dsmigrate.codemod.steps.entered_regions import first_inside
from dsmigrate.codemod.steps.evaluation import evaluate_in_own_regions, evaluation
from dsmigrate.codemod.steps.forwards_beside import (
    Beside,
    forwards_beside,
    is_reached_without,
    is_training_forward,
    runs_apart,
)
from dsmigrate.codemod.steps.hidden_regions import hidden_regions
from dsmigrate.codemod.steps.reaching import leads_to_backward, runs_for_outputs, trains, under_no_grad
from dsmigrate.codemod.steps.region_types import guessed_type
from dsmigrate.codemod.steps.regions import Region, helps_to_train, resolve_region
from dsmigrate.codemod.steps.sites import find_backward
from dsmigrate.codemod.steps.unread_forwards import unread_forwards
from dsmigrate.codemod.tree import Node, Statement

IDEAS = (
    Idea(
        "MG301",
        "Autocast regions stay, and torch_autocast is switched on",
        "The engine runs the model under the same autocast; the region around the loss is kept.",
        "engine.forward switches a surrounding autocast region off unless the config has torch_autocast.enabled. The "
        "empty lower_precision_safe_modules keeps gradients reduced in fp32 as DDP did: measured equal at ZeRO 0-3.",
        "deepspeed/runtime/torch_autocast.py, autocast_if_enabled; engine-semantics 1-2",
        Kind.CONVERTED,
    ),
    Idea(
        "MG307",
        "An autocast region that cannot be carried to the config",
        "Whether it is on, or its type, is known only inside the loop; or a training forward ran outside of it; or autocast is "
        "switched on otherwise than around the model (`__enter__`, a stack, `torch.set_autocast_enabled`).",
        "torch_autocast is read once, when the engine is made, and holds for every forward.",
        "deepspeed/runtime/engine.py",
        Kind.TODO,
    ),
)


def autocast(plan: Plan, regions: list[tuple[Node, Statement]]) -> bool:
    """Switch ``torch_autocast`` on as the regions around the model do, or hand the region to the model itself.

    Returns whether a training step runs in one of them; around evaluations alone nothing is switched on.
    """
    if targets.holds("regions_left_alone", plan.options.target_version):
        _left_alone(plan, regions)
        return True
    training = _of_training(plan, regions) or _of_unseen_steps(plan, regions)
    setting = _setting(plan, training) if training else None
    if setting is not None:
        _to_config(plan, setting, training)
        _without_scaler(plan, setting, [item[1] for item in training])
    if setting is not None or not training:
        evaluate_in_own_regions(plan, [item for item in regions if item not in training], setting)
    if (
        setting is not None
        and setting.enabled is not False
        and targets.holds("torch_autocast", plan.options.target_version)
    ):
        evaluation(plan)
        unread_forwards(plan, [item[1] for item in training])
    return bool(training)


def _of_training(plan: Plan, regions: list[tuple[Node, Statement]]) -> list[tuple[Node, Statement]]:
    """The regions in which a step's forward runs; where no step is seen, all in which gradients are recorded."""
    recording = [item for item in regions if not under_no_grad(plan, first_inside(plan, item[1]))]
    training = [
        item
        for item in recording
        if trains(plan, first_inside(plan, item[1]).function) or leads_to_backward(plan, item[1])
    ]
    training = training or [item for item in recording if helps_to_train(plan, item[1])]
    return training or [item for item in recording if not _has_steps(plan)]


def _of_unseen_steps(plan: Plan, regions: list[tuple[Node, Statement]]) -> list[tuple[Node, Statement]]:
    """The regions that may be those of training, marked, where no forward pass of a step is seen anywhere."""
    if any(is_training_forward(plan, call) for call in plan.tree.calls):
        return []
    found = [item for item in regions if not runs_for_outputs(plan, first_inside(plan, item[1]))]
    for _, statement in found:
        plan.todo("MG307", statement, "torch_autocast follows this region, as if the training step ran in it; the call that does so is not seen",
                  "the engine switches the region off unless torch_autocast is enabled")  # fmt: skip
    return found


def _has_steps(plan: Plan) -> bool:
    return bool(find_backward(plan))


def _setting(plan: Plan, training: list[tuple[Node, Statement]]) -> Region | None:
    """What ``torch_autocast`` is to be set to, from the regions of training; None when that is left to the person."""
    resolved = [resolve_region(plan, node, statement) for node, statement in training]
    first = next((r for r in resolved if r is not None), None)
    statement = training[0][1]
    beside = () if first is None or first.enabled is False else forwards_beside(plan, [item[1] for item in training])
    if first is not None and beside:
        first = _under_conditions(plan, first, beside)
    if first is None:
        if not targets.holds("torch_autocast", plan.options.target_version):
            _left_to_the_person(plan, statement)
            return None
        kind = _guess(plan, training)
        plan.todo("MG307", statement, f"torch_autocast is on in {kind} in the config: set it as this region is, which is known only here",
                  "the engine switches the region off unless torch_autocast is enabled, and runs the model as the config says")  # fmt: skip
        return None
    if len({(r.enabled, r.dtype) for r in resolved if r is not None}) > 1:
        plan.todo("MG307", statement, "several different autocast regions run the model; torch_autocast takes one",
                  "the engine uses one setting for every forward")  # fmt: skip
    elif any(r is None for r in resolved):
        where = next(item[1] for item, r in zip(training, resolved, strict=True) if r is None)
        plan.todo("MG307", where, "torch_autocast follows another region; whether it is that of this one is known only here",
                  "the engine uses one setting for every forward")  # fmt: skip
    return first


def _guess(plan: Plan, regions: list[tuple[Node, Statement]]) -> str:
    """Switch ``torch_autocast`` on in the likely type, beside a todo; gives that type."""
    kind = guessed_type(plan, regions)
    plan.config["torch_autocast"] = {"enabled": True, "dtype": kind, "lower_precision_safe_modules": []}
    _without_scaler(plan, Region(enabled=True, dtype=kind), [item[1] for item in regions])
    return kind


def autocast_elsewhere(plan: Plan) -> bool:
    """Mark autocast that may reach the engine in another way than by a region around it; says whether training may run so."""
    if targets.holds("regions_left_alone", plan.options.target_version):
        return False
    hidden = hidden_regions(plan)
    training = [item for item in hidden if not under_no_grad(plan, item[1])]
    right = targets.holds("torch_autocast", plan.options.target_version)
    kind = _guess(plan, training) if training and right else ""
    for item in hidden:
        if item not in training:
            plan.todo("MG307", item[1], "if this runs the model under autocast, call the engine's module: the engine switches the region off",
                      "the engine runs every forward as torch_autocast says")  # fmt: skip
        elif not right:
            _left_to_the_person(plan, item[1])
        else:
            plan.todo("MG307", item[1], f"torch_autocast is on in {kind} in the config, for every forward: see that the model runs so by this use of "
                      "autocast, which is not followed, and switch it off there if not",
                      "the engine switches autocast around its forward off unless torch_autocast is enabled")  # fmt: skip
    return bool(training)


def _under_conditions(plan: Plan, region: Region, beside: Sequence[Beside]) -> Region | None:
    """A region that stands in some branches only is on under their conditions; None if these cannot be carried."""
    for forward in beside:
        if not forward.is_apart:
            plan.todo("MG307", forward.statement, "this forward ran outside of autocast; the engine runs every forward under torch_autocast",
                      "the engine uses one setting for every forward")  # fmt: skip
    conditions = list(dict.fromkeys(forward.condition for forward in beside if forward.is_apart))
    if None in conditions:
        return None
    texts = [text for text in conditions if text is not None]
    if not texts:
        return region
    enabled = " and ".join(f"({text})" if len(texts) > 1 and " or " in text else text for text in texts)
    if region.probe is not None:
        return replace(region, condition=enabled)
    if isinstance(region.enabled, str):
        enabled = f"({enabled})" if " or " in enabled else enabled
        enabled = f"{enabled} and ({region.enabled})"
    return replace(region, enabled=enabled)


def _to_config(plan: Plan, first: Region, training: list[tuple[Node, Statement]]) -> None:
    node, statement = training[0]
    plan.config["torch_autocast"] = {
        "enabled": first.enabled if isinstance(first.enabled, bool) else True,
        "dtype": first.dtype if not first.dtype_is_text else "bfloat16",
        "lower_precision_safe_modules": [],
    }
    # Beside apex amp, whose switch stands among the run-time values already: either of them is enough.
    apex = next((value for value in plan.runtime if value.path == ("torch_autocast", "enabled")), None)
    if apex is not None and (first.probe is not None or first.enabled is True):
        plan.runtime.remove(apex)
    also = f" or {apex.expression}" if apex is not None else ""
    if first.probe is not None:
        plan.before_engine.extend(_probe_lines(first, also))
        plan.facts["probe"] = True
    else:
        if not isinstance(first.enabled, bool):
            plan.set_at_run_time(("torch_autocast", "enabled"), f"bool({first.enabled}){also}", statement)
        if first.dtype_is_text:
            plan.set_at_run_time(("torch_autocast", "dtype"), first.dtype, statement)
    if first.enabled is False:
        for _, where in training:
            plan.kept("MG301", where, "the region stays: it is off, and so is torch_autocast",
                      "the engine runs the model as the region does")  # fmt: skip
        return
    for _, where in training:
        plan.converted("MG301", where, "the region stays; the engine runs the model under torch_autocast",
                       "the engine would otherwise switch the region off")  # fmt: skip
    if not targets.holds("torch_autocast", plan.options.target_version):
        _inside_forward(plan, node, statement, first)


_UNSCALED = "leave_loss_unscaled"
_UNSCALED_HELPER = f'''def {_UNSCALED}(engine):
    """The script scales no loss under float16 autocast; the engine would, by a scaler of its own."""
    if engine.zero_optimization():
        engine.optimizer.torch_autocast_gradscaler = None
    else:
        engine.torch_autocast_z0_gradscaler = None
'''


def _without_scaler(plan: Plan, setting: Region, training: list[Statement]) -> None:
    """Keep the engine from scaling a loss that the script computes in half precision and does not scale."""
    may_be_half = setting.dtype == "float16" or setting.dtype_is_text or setting.probe is not None
    if "torch_autocast" not in plan.config or setting.enabled is False or not may_be_half:
        return
    flag = setting.enabled if isinstance(setting.enabled, str) else ""
    if plan.site is None or all(
        is_reached_without(statement, flag) or runs_apart(plan, statement, training)
        for statement in plan.facts.get("unscaled_backward", ())
    ):
        return
    plan.helpers.append(_UNSCALED_HELPER)
    plan.after_engine.insert(0, f"{_UNSCALED}({plan.site.target})")
    plan.converted("MG301", training[0], "a loss without a gradient scaler stays without one",
                   "under float16 autocast the engine makes a scaler, whose scale never falls at ZeRO 1-3")  # fmt: skip


def _left_alone(plan: Plan, regions: list[tuple[Node, Statement]]) -> None:
    """Before there was torch_autocast the engine ran the model in whatever region it was called in."""
    plan.facts["regions_left_alone"] = True
    for _, where in regions:
        plan.kept("MG301", where, "the region stays, and the model runs in it",
                  f"DeepSpeed {plan.options.target_version} leaves a surrounding region as it is; 0.17.2 and later switch it off")  # fmt: skip


def _inside_forward(plan: Plan, region: Node, statement: Statement, first: Region) -> None:
    """Where torch_autocast trains wrongly: the region is entered inside the module's own forward."""
    plan.config.pop("torch_autocast", None)
    plan.before_engine[:] = [line for line in plan.before_engine if line.startswith("from ")]  # for the context
    plan.runtime = [value for value in plan.runtime if value.path[0] != "torch_autocast"]
    version = plan.options.target_version
    context = first.probe or carry(plan, region, statement.function)
    if context is None and isinstance(region, cst.Call):
        device = argument(region, 0, "device_type")
        kind = "torch.float16" if first.dtype == "float16" else "torch.bfloat16"
        plan.need("torch")
        where = plan.code(device) if device is not None and not first.dtype_is_text else '"cuda"'
        enabled = first.enabled if isinstance(first.enabled, str) else str(first.enabled)
        context = f"torch.autocast({where}, dtype={kind}, enabled={enabled})" if not first.dtype_is_text else None
    if context is None or first.condition is not None or plan.facts.get("scaler_used"):
        _left_to_the_person(plan, statement)
        return
    assert plan.site is not None
    plan.facts["autocast_forward"] = context
    plan.converted("MG301", statement, "the model's own forward enters the region",
                   f"DeepSpeed {version} has no torch_autocast that is right; the engine switches a surrounding region off")  # fmt: skip


def _left_to_the_person(plan: Plan, statement: Statement) -> None:
    version = plan.options.target_version
    plan.todo("MG301", statement, f"DeepSpeed {version} has no torch_autocast that is right (0.17.6 has): enter the region in the model's forward",
              "the engine switches a surrounding region off")  # fmt: skip


def _probe_lines(region: Region, also: str) -> list[str]:
    is_on = "torch.is_autocast_enabled(deepspeed.get_accelerator().device_name())"
    if region.condition is not None:
        is_on = f"{is_on} and bool({region.condition})"
    return [
        f"with {region.probe}:",
        '    ds_config["torch_autocast"] = {',
        f'        "enabled": {is_on}{also},',
        '        "dtype": str(torch.get_autocast_dtype(deepspeed.get_accelerator().device_name())),',
        '        "lower_precision_safe_modules": [],',
        "    }",
    ]
