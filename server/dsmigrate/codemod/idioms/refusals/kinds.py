"""Other ways to train on several processes than DistributedDataParallel, and DeepSpeed that is there already."""

from __future__ import annotations

from collections.abc import Iterator

from dsmigrate.codemod.analysis.conditions import FALSE, TRUE, both
from dsmigrate.codemod.analysis.events import BlockKind, Event, Happening
from dsmigrate.codemod.analysis.roles import role_of
from dsmigrate.codemod.analysis.summaries.registry import Role
from dsmigrate.codemod.analysis.training import Training
from dsmigrate.codemod.analysis.values import NONE, TRUE_VALUE, Const, Lib, Obj, Value, each
from dsmigrate.codemod.decision import Decision
from dsmigrate.codemod.idioms.facts import Facts
from dsmigrate.codemod.model import Idea, Kind
from dsmigrate.languages import told

IDEAS = (
    Idea(
        "MG113",
        "A branch with FSDP or the like stays",
        "A script that offers FSDP beside DDP keeps that branch; the engine must not be made from a sharded model.",
        "FSDP shards the parameters itself; deepspeed.initialize behind it would average and step what is sharded already. "
        "What ZeRO stage 3 does is what FSDP does: choose the stage in the config instead.",
        "torch.distributed.fsdp; deepspeed/__init__.py, initialize",
        Kind.TODO,
    ),
    Idea(
        "MG903",
        "Another kind of distributed training",
        "RPC, DistributedOptimizer, Join, FSDP, sparse gradients and dgl.distributed have no counterpart in a DeepSpeed "
        "engine, or replace it; nor have most of DDP's communication hooks.",
        "These change how gradients travel or where parameters live. Removing them would change the training. Hooks that "
        "only round gradients are converted (MG309), ZeroRedundancyOptimizer is too (MG610). PowerSGD, post-local SGD, "
        "quantisation and hooks of the script's own stay refused; the message names what DeepSpeed has nearest.",
        "torch.distributed documentation",
        Kind.REFUSED,
    ),
    Idea(
        "MG904",
        "The script runs DeepSpeed already",
        "deepspeed.initialize is called on this path; there is nothing left to convert automatically.",
        "A script with a DeepSpeed branch beside a DDP branch was already migrated by somebody; converting the other "
        "branch would give two engines.",
        "deepspeed.initialize",
        Kind.REFUSED,
    ),
)
OPTIMIZERS = {
    "torch.distributed.optim.DistributedOptimizer": "DistributedOptimizer",
    "torch.distributed.optim.PostLocalSGDOptimizer": "post-local SGD",
    "torch.optim.SparseAdam": "SparseAdam",
    "apex.parallel.LARC.LARC": "apex's LARC, which is no torch optimizer,",
    "apex.parallel.LARC": "apex's LARC, which is no torch optimizer,",
}
_SPARSE = frozenset({"torch.nn.Embedding", "torch.nn.EmbeddingBag"})
_GONE = "removed from DeepSpeed in 0.19.8"


def kinds(training: Training, facts: Facts) -> Iterator[Decision]:
    """A decision for each other kind of distributed training that is reached."""
    for event in training.events(Happening.PARALLEL):
        yield from _beside(training, event, str(_text(event["name"])))
    for event in training.events(Happening.WRAP):
        roles = {role_of(one) for one in each(event["wrapper"]) if isinstance(one, Obj)}
        if Role.SHARDED in roles and training.is_model(event["module"]):
            yield from _beside(training, event, "FSDP")
        if Role.ENGINE in roles:
            yield Decision(
                "MG904", Kind.REFUSED, event.module, event.node, "deepspeed.initialize is called here already", "a second conversion would make a second engine",
            )  # fmt: skip
    yield from _uneven(training)
    yield from _sparse(training)
    for event in training.wraps:
        group = event.what.get("arg_process_group", NONE)
        if group not in {NONE, Lib("torch.distributed.group.WORLD")}:
            yield _refused(event, "DDP averages over a process group of its own", "an engine averages over all ranks")
    del facts


def _text(value: Value) -> object:
    return value.value if isinstance(value, Const) else value


def _refused(event: Event, message: str, reason: str) -> Decision:
    return Decision("MG903", Kind.REFUSED, event.module, event.node, message, reason)


def _beside(training: Training, event: Event, what: str) -> Iterator[Decision]:
    """Refused where it is there with DDP; a branch of its own is marked, as the engine is made there too."""
    if not all(both(event.condition, wrap.condition) is FALSE for wrap in training.wraps):
        yield _refused(event, told("{what} is used here", what=what), "the engine has no counterpart to it")
        return
    site = training.site
    if not isinstance(site, str) and both(site.block.condition, event.condition) is FALSE:
        return
    yield Decision(
        "MG113", Kind.TODO, event.module, event.node, told("take this branch out: the engine cannot be made from what {what} has made; ZeRO 3 shards too", what=what),
        "only the DDP branch is converted",
    )  # fmt: skip


def _uneven(training: Training) -> Iterator[Decision]:
    """DDP's join, which lets ranks run out of data."""
    for block in training.analysis.root.blocks():
        if (
            block.kind is BlockKind.WITH
            and block.label is not None
            and block.node is not None
            and block.module is not None
        ):
            if any(
                isinstance(one, Obj) and one.made_by in {"join", "torch.distributed.algorithms.join.Join"}
                for one in each(block.label)
            ):
                yield Decision(
                    "MG903", Kind.REFUSED, block.module, block.node, "Join handles uneven inputs here", "the engine needs as many steps on each rank",
                )  # fmt: skip
                return


def _sparse(training: Training) -> Iterator[Decision]:
    """Sparse gradients, by the layer that makes them or the optimizer for them; optimizers that work over RPC."""
    for event in training.events(Happening.MADE):
        if event["role"] == Const("optimizer"):
            for one in each(event["what"]):
                if (
                    isinstance(one, Obj)
                    and one.made_by in OPTIMIZERS
                    and len(training.optimizers) > 1
                    and event.condition is not TRUE
                ):
                    yield Decision(
                        "MG903", Kind.TODO, event.module, event.node, told("{what}: this choice raises an error now", what=OPTIMIZERS[one.made_by].removesuffix(",")),
                        "deepspeed.initialize does not take it",
                    )  # fmt: skip
                elif isinstance(one, Obj) and one.made_by in OPTIMIZERS:
                    yield _refused(
                        event,
                        told("{what} steps the model", what=OPTIMIZERS[one.made_by]),
                        "the engine has no counterpart to it",
                    )
    for layer in _layers(training):
        if layer.module is not None and layer.node is not None:
            yield Decision("MG903", Kind.REFUSED, layer.module, layer.node, "sparse gradients are used here", _GONE)
            return


def _layers(training: Training) -> Iterator[Obj]:
    """The layers of the model with sparse gradients."""
    seen: set[Obj] = set()
    pending = [one for one in training.models if isinstance(one, Obj)]
    while pending:
        one = pending.pop()
        if one in seen:
            continue
        seen.add(one)
        if one.made_by in _SPARSE and one.data.get("arguments", {}).get("named", {}).get("sparse") == TRUE_VALUE:
            yield one
        pending += [inner for value in one.own.values() for inner in each(value) if isinstance(inner, Obj)]
