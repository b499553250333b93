"""MG9xx: what is not converted, with the reason and the line. Silence would be worse than a refusal."""

from __future__ import annotations

import itertools

import libcst as cst

from dsmigrate.codemod.makers import is_inside_optimizer
from dsmigrate.codemod.model import Idea, Kind
from dsmigrate.codemod.names import dotted
from dsmigrate.codemod.plan import Plan
from dsmigrate.codemod.tree import Node, Statement, descendants

IDEAS = (
    Idea(
        "MG900",
        "The file cannot be read",
        "Binary or undecodable content, invalid Python (Python 2 included), or nesting no parser survives.",
        "The message names the line. The file is left as it is.",
        "Python's own parser",
        Kind.REFUSED,
    ),
    Idea(
        "MG999",
        "dsmigrate's own audit failed",
        "The result would not compile, or would use an undefined name; the file is left as it is.",
        "Every result is compiled and compared with the original by pyflakes before it is shown.",
        "dsmigrate's audit",
        Kind.REFUSED,
    ),
    Idea(
        "MG901",
        "Several trained models",
        "Two wrapped models whose parameters are optimised need two engines; that is a decision for a person.",
        "A GAN alternates two losses over two optimizers. With an engine for each, the generator's loss runs through both, "
        "and its backward leaves gradients in the discriminator's engine too: at ZeRO 0 that engine raises (direct calls "
        "of backward are not supported), at ZeRO 1 the losses part without a word, at ZeRO 2 and 3 an assertion says that "
        "gradients are reduced twice. What trains as under DDP, at ZeRO 0 to 3, is to call the discriminator's bare module "
        "with frozen parameters in the generator's turn: `for p in d.parameters(): p.requires_grad = False`, then "
        "`d.module(fake)` instead of `d(fake)`, `g.backward(loss)`, `g.step()`, and True again. It drops the gradients that "
        "the generator's loss left in the discriminator, as a script does that calls its zero_grad before its next "
        "backward; whether yours does, and which loss belongs to which step, is what a person has to see. Models whose losses "
        "reach no parameters but their own (a detached input, or data alone) train as under DDP with an engine for each.",
        "tests/e2e/test_two_engines.py, on two processes with 0.19.8; https://github.com/deepspeedai/DeepSpeed/issues/582",
        Kind.REFUSED,
    ),
    Idea(
        "MG902",
        "Several optimizers",
        "More than one optimizer is stepped; an engine takes exactly one.",
        "Parameters of one model split over optimizers (Adam for embeddings, Muon for matrices) cannot be handed to "
        "deepspeed.initialize as they are.",
        "deepspeed/__init__.py, initialize(optimizer=...)",
        Kind.REFUSED,
    ),
    Idea(
        "MG903",
        "Another kind of distributed training",
        "RPC, DistributedOptimizer, Join, FSDP, sparse gradients and dgl.distributed have no counterpart in a DeepSpeed "
        "engine, or replace it; nor have most of DDP's communication hooks.",
        "These change how gradients travel or where parameters live. Removing them would change the training. Hooks that "
        "only round gradients are converted (MG309), ZeroRedundancyOptimizer is too (MG610), unless it has a process group "
        "of its own, steps inside of DDP's communication (overlap_with_ddp) or has a subclass. PowerSGD, post-local SGD, "
        "quantisation and hooks of the script's own stay refused; the message names what DeepSpeed has nearest.",
        "torch.distributed documentation",
        Kind.REFUSED,
    ),
    Idea(
        "MG904",
        "The script runs DeepSpeed already",
        "deepspeed.initialize is called on this path; there is nothing left to convert automatically.",
        "A script with a DeepSpeed branch beside a DDP branch was already migrated by somebody; converting the other "
        "branch would give two engines. Where the function is only handed on (`make = deepspeed.initialize` under an "
        "option), the DDP branch is converted and the place is marked.",
        "deepspeed.initialize",
        Kind.REFUSED,
    ),
    Idea(
        "MG905",
        "Backwards over a shared graph",
        "Several backward passes per step keep the graph alive (retain_graph=True), or build a graph of gradients "
        "(create_graph=True), or start from something that is not known to be a tensor.",
        "The engine reduces gradients while backward runs; a second pass over the same graph is not supported at every "
        "ZeRO stage, and gradients of gradients are not there at all.",
        "deepspeed/runtime/engine.py, backward",
        Kind.REFUSED,
    ),
    Idea(
        "MG906",
        "An optimizer step with a closure",
        "optimizer.step(closure) evaluates the model inside the optimizer; the engine's step takes no closure.",
        "LBFGS and similar optimizers evaluate the loss several times per step.",
        "deepspeed/runtime/engine.py, step",
        Kind.REFUSED,
    ),
    Idea(
        "MG907",
        "Another training framework drives the loop",
        "Accelerate, Lightning, Fabric or a Transformers Trainer own backward and step here; they have their own "
        "DeepSpeed integration.",
        "Turn DeepSpeed on in that framework's configuration instead of rewriting the loop.",
        "https://huggingface.co/docs/accelerate/usage_guides/deepspeed",
        Kind.REFUSED,
    ),
    Idea(
        "MG910",
        "The training loop is in another module",
        "The model is wrapped here, but backward and step happen in a module that this file imports.",
        "One file is converted at a time; half a conversion would not train. Convert the modules together.",
        "ddp-idioms: 22 % of real scripts",
        Kind.REFUSED,
    ),
    Idea(
        "MG911",
        "Model and optimizer do not meet",
        "The optimizer of the wrapped model is made in another module or never named beside the model.",
        "deepspeed.initialize needs both in one place.",
        "deepspeed/__init__.py, initialize",
        Kind.REFUSED,
    ),
    Idea(
        "MG912",
        "The model is wrapped in another module",
        "A training loop is here, but the DistributedDataParallel wrap is not.",
        "One file is converted at a time; convert the module that wraps together with this one.",
        "ddp-idioms: wrap and backward share a function in only 28 % of real scripts",
        Kind.REFUSED,
    ),
    Idea(
        "MG913",
        "The engine cannot be named where backward runs",
        "backward or step is called in a function that receives neither the model nor anything that holds it.",
        "Guessing which engine to call would be wrong sooner or later.",
        "dsmigrate's own rule: what cannot be proven is not rewritten",
        Kind.REFUSED,
    ),
)

_OTHER_KINDS = {
    "torch.distributed.rpc": "RPC",
    "torch.distributed.optim.DistributedOptimizer": "DistributedOptimizer",
    "torch.distributed.algorithms.join.Join": "Join (uneven inputs)",
    "torch.distributed.algorithms.Join": "Join (uneven inputs)",
    "torch.distributed.fsdp.FullyShardedDataParallel": "FSDP",
    "torch.distributed.fsdp.fully_shard": "FSDP",
    "torch.distributed._composable.fsdp.fully_shard": "FSDP",
    "torch.distributed.autograd": "distributed autograd",
    "torch.distributed.pipeline": "pipeline parallelism",
    "torch.distributed.tensor.parallel.parallelize_module": "tensor parallelism",
    "dgl.distributed": "dgl.distributed",
    "fairscale.optim.oss.OSS": "fairscale's OSS",
    "fairscale.nn.data_parallel.ShardedDataParallel": "fairscale's ShardedDataParallel",
    "horovod.torch": "Horovod",
    "bagua.torch_api": "Bagua",
}
_FRAMEWORKS = ("accelerate.Accelerator", "lightning", "pytorch_lightning", "lightning_fabric", "transformers.Trainer",
               "mmengine", "mmcv.runner", "colossalai", "composer.Trainer")  # fmt: skip


def check(plan: Plan) -> None:
    """Raise ``RefusedError`` for the first construct that rules a conversion out."""
    _already_deepspeed(plan)
    for call in plan.tree.calls:
        statement = plan.tree.statement(call)
        _other_kind(plan, call, statement)
        _hooks(plan, call, statement)
        _backward_forms(plan, call, statement)
    _several_optimizers(plan)


def _already_deepspeed(plan: Plan) -> None:
    for call in plan.tree.calls:
        names = plan.imports.names(call.func)
        if "deepspeed.initialize" in names:
            raise plan.refuse(
                "MG904",
                call,
                "the script calls deepspeed.initialize already",
                "a second conversion would make a second engine",
            )
    plan.facts["own_engines"] = [
        statement for node, statement in _handed_on(plan) if "deepspeed.initialize" in plan.imports.names(node)
    ]


def _handed_on(plan: Plan) -> list[tuple[Node, Statement]]:
    """Values that are assigned, returned or given to a call by their name alone."""
    found: list[tuple[Node, Statement]] = [
        (statement.node.value, statement)
        for statement in plan.tree.statements
        if isinstance(statement.node, cst.Assign | cst.Return) and statement.node.value is not None
    ]
    found += [(arg.value, plan.tree.statement(call)) for call in plan.tree.calls for arg in call.args]
    found += [
        (side, where) for node, where in found if isinstance(node, cst.IfExp) for side in (node.body, node.orelse)
    ]
    return [(node, where) for node, where in found if isinstance(node, cst.Name | cst.Attribute)]


def check_kind(plan: Plan) -> None:
    """Raise ``RefusedError`` where the script trains in another distributed way (FSDP, RPC, Horovod)."""
    for call in plan.tree.calls:
        _other_kind(plan, call, plan.tree.statement(call))


def _other_kind(plan: Plan, call: cst.Call, statement: Statement) -> None:
    for name in plan.imports.names(call.func):
        for prefix, what in _OTHER_KINDS.items():
            if name == prefix or name.startswith(prefix + "."):
                if what == "FSDP" and plan.roles.wraps:
                    # A script that offers both keeps its FSDP branch; only the DDP branch is converted.
                    plan.facts.setdefault("fsdp", []).append(statement)
                    continue
                raise plan.refuse(
                    "MG903", statement, f"{what} is used here", f"{name} has no counterpart in the engine"
                )
        if any(name == f or name.startswith(f + ".") for f in _FRAMEWORKS) and _drives_backward(plan, name):
            raise plan.refuse(
                "MG907", statement, f"{name.partition('.')[0]} drives the training", "it has its own DeepSpeed switch"
            )


def _drives_backward(plan: Plan, name: str) -> bool:
    if name.startswith(("accelerate.", "lightning_fabric")):
        return any(
            isinstance(c.func, cst.Attribute) and c.func.attr.value == "backward" and c.args for c in plan.tree.calls
        )
    return name.endswith("Trainer") and not any(_is_loss_backward(c) for c in plan.tree.calls)


def _is_loss_backward(call: cst.Call) -> bool:
    return isinstance(call.func, cst.Attribute) and call.func.attr.value == "backward" and not call.args


def _hooks(plan: Plan, call: cst.Call, statement: Statement) -> None:
    func = call.func
    if not isinstance(func, cst.Attribute):
        return
    name = func.attr.value
    if name == "join" and plan.is_model_like(func.value) and isinstance(plan.tree.parent.get(call), cst.WithItem):
        raise plan.refuse("MG903", statement, "DDP's join() handles uneven inputs here", "the engine needs even inputs")
    if name == "SparseAdam" or _has_true_keyword(call, "sparse"):
        if any("Embedding" in n or "SparseAdam" in n for n in plan.imports.names(func)):
            raise plan.refuse("MG903", statement, "sparse gradients are used here", "removed from DeepSpeed in 0.19.8")


def _has_true_keyword(call: cst.Call, name: str) -> bool:
    return any(
        arg.keyword is not None and arg.keyword.value == name and dotted(arg.value) == "True" for arg in call.args
    )


def _backward_forms(plan: Plan, call: cst.Call, statement: Statement) -> None:
    func = call.func
    names = plan.imports.names(func)
    if "torch.autograd.backward" in names:
        raise plan.refuse(
            "MG905", statement, "torch.autograd.backward is called directly", "the engine has no such call"
        )
    if "torch.autograd.grad" in names and _has_true_keyword(call, "create_graph"):
        raise plan.refuse(
            "MG905", statement, "gradients of gradients are taken (torch.autograd.grad with create_graph=True)",
            "the engine's hooks do not support it",
        )  # fmt: skip
    if not isinstance(func, cst.Attribute):
        return
    if func.attr.value == "backward" and _has_true_keyword(call, "create_graph"):
        raise plan.refuse(
            "MG905", statement, "backward(create_graph=True) builds a graph of gradients", "engine.backward cannot"
        )
    if func.attr.value == "backward" and any(a.keyword is not None and a.keyword.value == "inputs" for a in call.args):
        raise plan.refuse("MG905", statement, "backward is run for given inputs", "engine.backward cannot")
    if func.attr.value == "step" and stepped_optimizer(plan, call) is not None and plan.roles.is_optimizer(func.value):
        closure = [arg for arg in call.args if arg.keyword is None or arg.keyword.value == "closure"]
        if closure and dotted(closure[0].value) != "None":
            raise plan.refuse(
                "MG906", statement, "optimizer.step takes a closure here", "the engine's step evaluates no closure"
            )


def _several_optimizers(plan: Plan) -> None:
    components: dict[str, str] = {}

    def find(key: str) -> str:
        components.setdefault(key, key)
        while components[key] != key:
            key = components[key]
        return key

    for tags in plan.roles.env.values():
        opts = sorted(tag for tag in tags if tag[0] == "O")
        for left, right in itertools.pairwise(opts):
            components[find(left)] = find(right)
    stepped: dict[str, Statement] = {}
    for call in plan.tree.calls:
        target = stepped_optimizer(plan, call)
        if target is None:
            continue
        statement = plan.tree.statement(call)
        if _loops_over_many(target, statement):
            raise plan.refuse(
                "MG902", statement, "several optimizers are stepped in a loop", "an engine takes exactly one optimizer"
            )
        for tag in plan.tags(target):
            if tag[0] == "O":
                stepped.setdefault(find(tag), statement)
    if len(stepped) > 1:
        first, second = sorted(stepped.values(), key=lambda s: s.order)[:2]
        raise plan.refuse(
            "MG902",
            second,
            f"a second optimizer is stepped (the first in line {first.line})",
            "an engine takes exactly one optimizer; for two models that are trained in turns see `dsmigrate explain MG901`",
        )


def _loops_over_many(target: Node, statement: Statement) -> bool:
    for outer in statement.enclosing():
        if isinstance(outer.node, cst.For) and isinstance(target, cst.Name):
            if target.value in {n.value for n in _names(outer.node.target)}:
                iterable = outer.node.iter
                single = isinstance(iterable, cst.List | cst.Tuple) and len(iterable.elements) == 1
                return not single
    return False


def _names(node: Node) -> list[cst.Name]:
    return [sub for sub in descendants(node) if isinstance(sub, cst.Name)]


def stepped_optimizer(plan: Plan, call: cst.Call) -> Node | None:
    """The optimizer expression that a call steps (``opt.step()`` or ``scaler.step(opt)``), or None."""
    func = call.func
    if not isinstance(func, cst.Attribute) or func.attr.value != "step":
        return None
    if is_inside_optimizer(plan.roles, plan.function_of(call)):
        return None
    if call.args and (plan.roles.is_scaler(func.value) or _is_scaler_by_name(plan, call)):
        return call.args[0].value
    if plan.roles.is_optimizer(func.value) and not plan.roles.is_scheduler(func.value):
        return func.value
    return None


def _is_scaler_by_name(plan: Plan, call: cst.Call) -> bool:
    """``scaler.step(optimizer)`` where the scaler came by a way that is not followed."""
    assert isinstance(call.func, cst.Attribute)
    name = (dotted(call.func.value) or "").lower()
    return "scaler" in name and plan.flow.callee(call) is None and plan.roles.is_optimizer(call.args[0].value)
