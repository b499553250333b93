"""Takes the DDP wrap away, whatever form it has, and leaves the raw model where it was."""

from __future__ import annotations

import libcst as cst

from dsmigrate.codemod.model import Kind
from dsmigrate.codemod.names import dotted
from dsmigrate.codemod.plan import Plan
from dsmigrate.codemod.role_names import DATA_PARALLEL_NAMES, qualifies
from dsmigrate.codemod.roles import Wrap
from dsmigrate.codemod.steps.early_copies import spread_lines
from dsmigrate.codemod.tree import Node, descendants

# Keywords of torch's and apex's DDP that only tune its reducer or follow from the device.
_DROPPED = {
    "device_ids": "the engine uses the device of LOCAL_RANK",
    "output_device": "the engine uses the device of LOCAL_RANK",
    "dim": "unused for one device per process",
    "find_unused_parameters": "unused parameters do not stop the engine (ignore_unused_parameters)",
    "bucket_cap_mb": "it sizes DDP's buckets; ZeRO has reduce_bucket_size",
    "gradient_as_bucket_view": "it is about DDP's buckets",
    "static_graph": "it is about DDP's reducer",
    "check_reduction": "it was already without effect in DDP",
    "init_sync": "initialize broadcasts the parameters",
    "delay_allreduce": "it is about apex's reducer",
    "message_size": "it is about apex's reducer",
    "gradient_average": "the engine averages too",
    "gradient_predivide_factor": "it is about apex's reducer",
    "allreduce_always_fp32": "it is about apex's reducer",
    "retain_allreduce_buffers": "it is about apex's reducer",
    "num_allreduce_streams": "it is about apex's reducer",
    "allreduce_communicators": "it is about apex's reducer",
    "prof": "it is about apex's reducer",
    "shared_param": "it is about apex's reducer",
    "device_mesh": "None unless tensor parallelism is used",
}


def run(plan: Plan) -> None:
    """Unwrap every DDP and DataParallel construction of the trained model."""
    for wrap in plan.wraps:
        _unwrap(plan, wrap)
    for wrap in plan.kept_wraps:
        plan.kept("MG105", wrap.statement, "this model is not trained by the optimizer; its DDP wrap stays",
                  "an engine needs an optimizer")  # fmt: skip
    for call in plan.roles.data_parallel:
        if call.args and call not in plan.handled:
            _drop_data_parallel(plan, call)


def _unwrap(plan: Plan, wrap: Wrap) -> None:
    statement = wrap.statement
    assert wrap.model is not None
    _keywords(plan, wrap)
    site = plan.site
    assert site is not None
    plan.handled.add(wrap.call)
    model = wrap.model
    plan.edits.replace(wrap.call, _inner)
    node = statement.node
    if site.replaces is statement:
        if plan.code(model) == site.target:
            plan.edits.remove(node)
        site.model = plan.code(model) if not isinstance(model, cst.Name) else model.value
        if not isinstance(model, cst.Name | cst.Attribute):
            plan.facts["model_first"] = f"{site.target} = {plan.code(model)}"
            site.model = site.target
    else:
        _leave_model(plan, wrap)
    _left_out_of_ddp(plan, wrap)
    plan.converted(
        "MG101",
        statement,
        f"{plan.code(wrap.call.func)}(…) → the model itself; deepspeed.initialize wraps it",
        "the engine replaces the DDP wrapper",
    )


def _leave_model(plan: Plan, wrap: Wrap) -> None:
    """What stays in the place of a wrap where the engine is made further down: at most rank 0's weights for all ranks."""
    node, model = wrap.statement.node, wrap.model
    if isinstance(node, cst.Return) and node.value is wrap.call and isinstance(model, cst.Name | cst.Attribute):
        spread = spread_lines(plan, wrap, plan.code(model))
        if spread:
            plan.edits.insert_before(wrap.statement.line_node, *spread)
    if not isinstance(node, cst.Assign) or model is None:
        return
    target = plan.code(node.targets[0].target)
    if len(node.targets) == 1 and node.value is wrap.call:
        texts = {plan.code(model)}
        spread = spread_lines(plan, wrap, target)
    elif isinstance(node.value, cst.IfExp):  # `model = DDP(model) if distributed else model`
        branches = (node.value.body, node.value.orelse)
        texts = {plan.code(model) if branch is wrap.call else plan.code(branch) for branch in branches}
        lines = spread_lines(plan, wrap, target) if wrap.call in branches else []
        test = plan.code(node.value.test)
        test = test if node.value.body is wrap.call else f"not ({test})"
        spread = [f"if {test}:", *(f"    {line}" for line in lines)] if lines else []
    else:
        return
    if texts == {target}:
        plan.edits.substitute(node, *spread)
    elif spread:
        plan.edits.insert_after(wrap.statement.line_node, *spread)


_LEFT_OUT = ("_ddp_params_and_buffers_to_ignore", "_set_params_and_buffers_to_ignore_for_model")
"""By which a model tells DDP to leave parameters alone: experts and shards that differ from rank to rank."""


def _left_out_of_ddp(plan: Plan, wrap: Wrap) -> None:
    """The engine broadcasts and averages every parameter, also those that the script keeps away from DDP."""
    for statement in plan.tree.statements:
        if isinstance(statement.node, cst.BaseCompoundStatement):
            continue
        if any(isinstance(sub, cst.Attribute) and sub.attr.value in _LEFT_OUT for sub in descendants(statement.node)):
            file = plan.part_of(statement).path
            where = f" at {file}:{statement.line}" if file and statement.function.top is not wrap.function.top else ""
            plan.todo("MG114", wrap.statement, f"DDP was told{where} to leave some parameters alone; the engine sends rank 0's to all "
                      "ranks and averages their gradients", "experts or shards that differ by rank would become one")  # fmt: skip
            return


def _inner(call: Node) -> Node:
    """The edited model argument of an edited DDP call."""
    assert isinstance(call, cst.Call)
    for arg in call.args:
        if (arg.keyword is None and not arg.star) or (arg.keyword is not None and arg.keyword.value == "module"):
            return arg.value
    raise AssertionError("a wrap has a model")


def _keywords(plan: Plan, wrap: Wrap) -> None:
    dropped: list[str] = []
    for position, arg in enumerate(wrap.call.args):
        if arg.keyword is None:
            if position > 0 or arg.star:
                dropped.append(arg.star + plan.code(arg.value))
            continue
        name = arg.keyword.value
        if name in ("module", "broadcast_buffers"):
            continue
        if name == "process_group":
            if dotted(arg.value) != "None":
                raise plan.refuse(
                    "MG903",
                    wrap.statement,
                    "DDP averages over a process group of its own",
                    "an engine without a model-parallel unit averages over all ranks",
                )
        elif name == "gradient_average" and dotted(arg.value) != "True":
            plan.todo("MG116", wrap.statement, "gradients were summed over the ranks; the engine averages them: multiply the loss by the "
                      "number of ranks, or the learning rate where that is the same", "gradient_average of apex's DDP is not True")  # fmt: skip
        elif name == "mixed_precision":
            plan.todo(
                "MG106",
                wrap.statement,
                "DDP's own mixed_precision policy is dropped; choose bf16 or torch_autocast in the config",
                "native DDP mixed precision casts parameters for the forward pass",
            )
        else:
            dropped.append(name if name in _DROPPED else f"{name}={plan.code(arg.value)}")
    if dropped:
        reasons = "; ".join(dict.fromkeys(_DROPPED[name] for name in dropped if name in _DROPPED))
        plan.note(
            "MG103", Kind.CONVERTED, wrap.statement, f"dropped: {', '.join(dropped)}", reasons or "DDP's own arguments"
        )


def _drop_data_parallel(plan: Plan, call: cst.Call) -> None:
    if not qualifies(plan.imports, call.func, DATA_PARALLEL_NAMES):
        return
    statement = plan.tree.statement(call)
    tags = plan.tags(call.args[0].value)
    concerns = any(tag[0] in "ER" for tag in tags) or _is_part_of_model(plan, call.args[0].value)
    if not concerns:
        return
    plan.handled.add(call)
    plan.edits.replace(call, _inner)
    node = statement.node
    if (
        isinstance(node, cst.Assign)
        and len(node.targets) == 1
        and node.value is call
        and plan.code(node.targets[0].target) == plan.code(call.args[0].value)
    ):
        plan.edits.remove(node)
    plan.converted("MG102", statement, "DataParallel → the plain model",
                   "one process per device under DeepSpeed; start more processes instead")  # fmt: skip


def _is_part_of_model(plan: Plan, node: Node) -> bool:
    while isinstance(node, cst.Attribute):
        node = node.value
        if any(tag[0] in "ER" for tag in plan.tags(node)):
            return True
    return False
