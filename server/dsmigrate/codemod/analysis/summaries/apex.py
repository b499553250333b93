"""NVIDIA's apex: its wrapper, its mixed precision, its optimizers."""

from __future__ import annotations

from dsmigrate.codemod.analysis.events import Happening
from dsmigrate.codemod.analysis.summaries.registry import Call, Role, classes, function
from dsmigrate.codemod.analysis.values import NONE, Const, Kind, Obj, Tensor, TensorKind, Tup, Value, each

classes(Role.WRAPPER, "apex.parallel.DistributedDataParallel apex.parallel.distributed.DistributedDataParallel")
classes(Role.OPTIMIZER, "apex.optimizers.FusedAdam apex.optimizers.FusedLAMB apex.optimizers.FusedSGD apex.optimizers.FusedNovoGrad "
        "apex.optimizers.FusedAdagrad apex.parallel.LARC.LARC apex.parallel.LARC apex.contrib.optimizers.FP16_Optimizer")  # fmt: skip
classes(
    Role.MODEL,
    "apex.normalization.FusedLayerNorm apex.parallel.SyncBatchNorm apex.normalization.fused_layer_norm.FusedLayerNorm",
)
classes(Role.REGION, "apex.amp.disable_casts")


@function("apex.amp.initialize")
def _initialize(asked: Call) -> Value:
    run = asked.run
    models, optimizers = run.settle(asked.get(0, "models", NONE)), run.settle(asked.get(1, "optimizers", NONE))
    what = {name: value for name, value in asked.given.named.items() if name not in {"models", "optimizers"}}
    level = asked.get(3, "opt_level")
    run.event(
        Happening.AMP,
        asked.node,
        models=models,
        optimizers=optimizers,
        **{f"arg_{k}": v for k, v in (what | {"opt_level": level}).items()},
    )
    return models if optimizers == NONE else Tup((models, optimizers))


@function("apex.amp.scale_loss")
def _scale_loss(asked: Call) -> Value:
    made = asked.run.make(Kind.LIBRARY, asked.node, made_by="apex.amp.scale_loss")
    loss = asked.run.settle(asked.get(0, "loss", NONE))
    asked.run.put(made, "loss", loss)
    asked.run.put(made, "optimizer", asked.get(1, "optimizers", NONE))
    return made


@function("apex.amp.master_params")
def _master_params(asked: Call) -> Value:
    run = asked.run
    optimizer = run.settle(asked.get(0, "optimizer", NONE))
    owners = [
        tensor.of
        for one in each(optimizer)
        if isinstance(one, Obj)
        for tensor in run.things_in(one.get("params", NONE))
        if isinstance(tensor, Tensor) and tensor.of is not None
    ]
    value = Tensor(TensorKind.PARAMETER, owners[0] if owners else None, varies=False)
    return run.iterator(asked.node, "element", value, masters_of=optimizer)


@function("apex.amp.state_dict")
def _state_dict(asked: Call) -> Value:
    asked.run.event(Happening.AMP, asked.node, name=Const("state_dict"))
    return asked.run.unread(asked.node)


@function("apex.amp.load_state_dict")
def _load_state_dict(asked: Call) -> Value:
    asked.run.event(Happening.AMP, asked.node, name=Const("load_state_dict"))
    return NONE


@function("apex.amp._amp_state.loss_scalers.__getitem__")
def _scaler(asked: Call) -> Value:
    asked.run.event(Happening.AMP, asked.node, name=Const("loss_scalers"))
    return asked.run.unread(asked.node)
