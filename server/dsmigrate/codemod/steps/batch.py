"""MG7xx: the values of the config that the script knows: batch size, ZeRO section, offload."""

from __future__ import annotations

import re
from typing import TypeAlias

import libcst as cst

from dsmigrate.codemod import targets
from dsmigrate.codemod.flow import argument
from dsmigrate.codemod.model import Idea, Kind
from dsmigrate.codemod.names import dotted
from dsmigrate.codemod.options import option_calls, option_default, option_name
from dsmigrate.codemod.plan import Plan
from dsmigrate.codemod.steps.sites import find_backward
from dsmigrate.codemod.tree import Function, Node, Statement, descendants
from dsmigrate.codemod.values import resolve

IDEAS = (
    Idea(
        "MG701",
        "The micro-batch size follows the script",
        "train_micro_batch_size_per_gpu is the batch size of the training loader, from the same option or literal.",
        "The script keeps its own DataLoader and sampler; the number tells DeepSpeed the batch geometry, which it uses "
        "for throughput figures. The same command line means the same training.",
        "deepspeed/runtime/config.py, _batch_assertion",
        Kind.CONVERTED,
    ),
    Idea(
        "MG702",
        "The micro-batch size is not readable from the script",
        "train_micro_batch_size_per_gpu is 1 in the config; put the real one there for correct throughput figures.",
        "With the script's own loader the number does not change the training.",
        "deepspeed/runtime/engine.py, tput_timer",
        Kind.KEPT,
    ),
    Idea(
        "MG703",
        "The ZeRO stage",
        "What is partitioned over the ranks: nothing (0), optimizer state (1), gradients too (2), parameters too (3).",
        "Stages 0 to 3 give the same losses in fp32; they differ in memory and communication. Up to 0.13.1 stages 1 to 3 "
        "let the optimizer step once before the training, so that for these releases the config gets stage 0.",
        "deepspeed/runtime/zero/config.py; stage_1_and_2.py and stage3.py, initialize_optimizer_states",
        Kind.CONVERTED,
    ),
    Idea(
        "MG704",
        "The existing config says something else",
        "A key of the given config contradicts what the script does.",
        "With --config the script is fitted to a config that is there; contradictions are reported, never resolved.",
        "dsmigrate migrate --config",
        Kind.TODO,
    ),
    Idea(
        "MG705",
        "ZeRO stage 3 partitions the parameters",
        "Weights read outside forward are empty at stage 3 unless gathered.",
        "state_dict() has shapes (0,), deepcopy of the module fails, averaged copies need GatheredParameters.",
        "engine-semantics 16",
        Kind.TODO,
    ),
    Idea(
        "MG706",
        "A frozen group of parameters",
        "A parameter group without a single trainable parameter fails at ZeRO 1 and 2.",
        "IndexError in the partitioning; leave such groups out of the optimizer.",
        "engine-semantics 8",
        Kind.TODO,
    ),
)

_LOADER = re.compile(r"(?:^|\.)(?:DataLoader|NeighborLoader|PrefetchLoader|MultiEpochsDataLoader|NeighborSampler|"
                     r"GraphDataLoader|DataLoaderX|FastDataLoader|StatefulDataLoader|LinkNeighborLoader|HGTLoader)$")  # fmt: skip


def run(plan: Plan) -> None:
    """Fill the parts of the config that follow from the script and the options."""
    _micro_batch(plan)
    _zero(plan)


def _micro_batch(plan: Plan) -> None:
    plan.config.setdefault("train_micro_batch_size_per_gpu", 1)
    node, function, statement, reason = _batch_size(plan)
    where = statement if statement is not None else plan.wraps[0].statement
    if node is not None and function is not None:
        value = resolve(plan, node, function)
        static = value.static if isinstance(value.static, int) and not isinstance(value.static, bool) else None
        if static is None and isinstance(value.static, float) and value.static.is_integer():
            static = int(value.static)
        if static is not None and static > 0:
            plan.config["train_micro_batch_size_per_gpu"] = static
        if value.expression is not None:
            plan.set_at_run_time(("train_micro_batch_size_per_gpu",), value.expression, where)
        if value.expression is not None or (static is not None and not value.is_default):
            shown = value.expression if value.expression is not None else str(static)
            plan.converted("MG701", where, f"train_micro_batch_size_per_gpu = {shown}", reason)
            return
    written = plan.config["train_micro_batch_size_per_gpu"]
    plan.kept("MG702", where, f"train_micro_batch_size_per_gpu is {written} in the config: the loader's batch size is not readable here",
              "the script's own loader decides; the number only matters for throughput figures")  # fmt: skip


_FoundSize: TypeAlias = tuple[Node | None, Function | None, Statement | None, str]


def _batch_size(plan: Plan) -> _FoundSize:
    """The batch-size expression of the loader that feeds the training loop, where it stands, and what it is."""
    candidates: list[tuple[int, cst.Call, Node]] = []
    training = {plan.function_of(call) for call in find_backward(plan)}
    for call in plan.tree.calls:
        if not _LOADER.search(dotted(call.func) or ""):
            continue
        size = argument(call, 1, "batch_size") or _in_keywords(plan, call)
        if size is None or dotted(size) == "None":
            continue
        statement = plan.tree.statement(call)
        score = 0
        text = _bound_name(statement).lower()
        context = f"{text} {statement.function.name.lower()}"
        if "train" in context:
            score += 4
        if re.search(r"val|test|eval|valid|dev|query|sample", context):
            score -= 4
        if statement.function in training:
            score += 2
        sampler = argument(call, None, "sampler")
        shuffle = argument(call, None, "shuffle")
        if sampler is not None or (shuffle is not None and dotted(shuffle) == "True"):
            score += 1
        candidates.append((score, call, size))
    if candidates:
        best = max(candidates, key=lambda item: item[0])
        statement = plan.tree.statement(best[1])
        return best[2], statement.function, statement, "the training loader's batch size"
    return *_by_name(plan), "an option of that name; the loader that it goes to is not seen here"


def _in_keywords(plan: Plan, call: cst.Call) -> Node | None:
    """The batch size in what a loader gets as ``**kwargs``: a dictionary that is written out in the same function."""
    function = plan.function_of(call)
    for arg in call.args:
        place = plan.flow.place(arg.value, function) if arg.star == "**" else None
        for binding in plan.flow.by_place.get(place, ()) if place is not None else ():
            value = binding.value
            if binding.function is not function:
                continue
            if isinstance(value, cst.Call) and dotted(value.func) == "dict":
                found = argument(value, None, "batch_size")
                if found is not None:
                    return found
            elif isinstance(value, cst.Dict):
                for element in value.elements:
                    if isinstance(element, cst.DictElement) and isinstance(element.key, cst.SimpleString):
                        if element.key.evaluated_value == "batch_size":
                            return element.value
    return None


def _bound_name(statement: Statement) -> str:
    node = statement.node
    if isinstance(node, cst.Assign):
        return dotted(node.targets[0].target) or ""
    return ""


def _by_name(plan: Plan) -> tuple[Node | None, Function | None, Statement | None]:
    """``args.batch_size`` or a variable of that name, where no loader is made in this file."""
    for call in option_calls(plan):
        name = option_name(call)
        if name in ("batch_size", "batchsize", "micro_batch_size", "train_batch_size", "batch_size_per_gpu",
                    "per_gpu_train_batch_size", "batch"):  # fmt: skip
            default = option_default(plan, name)
            if isinstance(default, int):
                statement = plan.tree.statement(call)
                for use in plan.tree.statements:
                    if isinstance(use.node, cst.BaseCompoundStatement):
                        continue
                    for sub in descendants(use.node):
                        if (
                            isinstance(sub, cst.Attribute)
                            and sub.attr.value == name
                            and isinstance(sub.value, cst.Name)
                        ):
                            return sub, use.function, statement
                return None, None, None
    for statement in plan.tree.top.statements:
        node = statement.node
        if isinstance(node, cst.Assign) and dotted(node.targets[0].target) in ("batch_size", "device_batch_size",
                                                                               "micro_batch_size", "BATCH_SIZE"):  # fmt: skip
            return node.targets[0].target, plan.tree.top, statement
    return None, None, None


_PARAMETERS = 3
"""The ZeRO stage that partitions the parameters."""


def choose_stage(plan: Plan) -> None:
    """Stage 0 for releases whose ZeRO lets the optimizer step once before the training; runs before all that asks for it."""
    release = plan.options.target_version
    if not targets.holds("update_at_start", release) or plan.zero_stage == 0:
        return
    assert plan.site is not None
    where = plan.site.anchor
    message = (
        f"in DeepSpeed {release} ZeRO lets the optimizer step once, with gradients of zero, when the engine is made"
    )
    reason = (
        "Adam's bias correction begins at its second step, weight decay and momentum act once more; 0.13.2 is right"
    )
    if plan.options.offload == "none":
        plan.needs_stage_zero("MG703", where, message, reason)
    else:
        plan.todo("MG703", where, f"{message}; offload works with ZeRO only", reason)


def _zero(plan: Plan) -> None:
    stage = plan.zero_stage
    section: dict[str, object] = {"stage": stage}
    if plan.options.offload != "none" and stage >= 1:
        offload: dict[str, object] = {"device": plan.options.offload}
        if plan.options.offload == "nvme" and plan.options.nvme_path:
            offload["nvme_path"] = plan.options.nvme_path
        section["offload_optimizer"] = offload
        if stage == 3:
            section["offload_param"] = dict(offload)
        plan.config["zero_force_ds_cpu_optimizer"] = False
        plan.note("MG604", Kind.CONVERTED, plan.wraps[0].statement, "zero_force_ds_cpu_optimizer: false",
                  "the script's own optimizer steps on the CPU")  # fmt: skip
    if stage == _PARAMETERS and ("torch_autocast" in plan.config or plan.facts.get("regions_left_alone")):
        # With DeepSpeed's own Linear for ZeRO 3 the losses under autocast are up to 7e-4 off.
        section["memory_efficient_linear"] = False
    plan.config["zero_optimization"] = section | dict(plan.options.chosen_sizes)
    if plan.site is not None:
        chosen = plan.options.chosen_for
        why = f"; this is the fastest that fits {chosen}, by an estimate: see `dsmigrate recommend`" if chosen else ""
        reason = f"stages 0 to 3 give the same losses while gradients are finite (1 and 2 skip steps where they are not); they differ in memory and communication{why}"
        if targets.holds("update_at_start", plan.options.target_version):
            reason = f"stages 1 to 3 update once more than stage 0, and differ in memory and communication{why}"
        plan.converted("MG703", plan.site.anchor, f"ZeRO stage {stage}: {_PARTITIONED[stage]}", reason)
    _clips_the_wrong_way(plan)
    _frozen_groups(plan)


def _clips_the_wrong_way(plan: Plan) -> None:
    release = plan.options.target_version
    clips = plan.config.get("gradient_clipping") or any(value.path == ("gradient_clipping",) for value in plan.runtime)
    if clips and plan.site is not None and plan.zero_stage == 0 and targets.holds("clipping_reversed", release):
        plan.todo("MG424", plan.site.anchor, f"DeepSpeed {release} clips the wrong way round at ZeRO 0: take 0.13.3",
                  "small gradients grow to the limit, and large ones stay")  # fmt: skip


_PARTITIONED = {
    0: "nothing is partitioned, as under DDP",
    1: "the optimizer state is partitioned over the ranks",
    2: "optimizer state and gradients are partitioned over the ranks",
    3: "optimizer state, gradients and parameters are partitioned over the ranks",
}


def _frozen_groups(plan: Plan) -> None:
    """Parameters that are frozen as a whole and still form a group of the optimizer."""
    frozen = _frozen(plan)
    if not frozen or plan.zero_stage not in (1, 2):
        return
    for site in plan.roles.optimizers:
        if site.call is None or not site.call.args:
            continue
        groups = site.call.args[0].value
        if not isinstance(groups, cst.List):
            continue
        for element in groups.elements:
            text = plan.code(element.value)
            hit = next(
                (name for name in frozen if re.search(rf"\b{re.escape(name)}\.parameters\(\)\s*[,}}]", text)), None
            )
            if hit is not None and "requires_grad" not in text:
                plan.todo("MG706", site.statement, f"the group of {hit} is frozen as a whole: leave it out of the optimizer",
                          "a group without a trainable parameter is an IndexError at ZeRO 1 and 2")  # fmt: skip


def _frozen(plan: Plan) -> set[str]:
    found: set[str] = set()
    for call in plan.tree.calls:
        func = call.func
        if isinstance(func, cst.Attribute) and func.attr.value == "requires_grad_" and call.args:
            if dotted(call.args[0].value) == "False":
                found.add(plan.code(func.value))
    for statement in plan.tree.statements:
        node = statement.node
        if isinstance(node, cst.Assign) and isinstance(node.targets[0].target, cst.Attribute):
            if node.targets[0].target.attr.value == "requires_grad" and dotted(node.value) == "False":
                loop = next((o.node for o in statement.enclosing() if isinstance(o.node, cst.For)), None)
                if loop is not None and statement.up is not None and statement.up.node is loop:
                    iterated = loop.iter
                    if isinstance(iterated, cst.Call) and isinstance(iterated.func, cst.Attribute):
                        found.add(plan.code(iterated.func.value))
    return found
