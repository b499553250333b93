"""Other libraries that training scripts meet: timm, transformers, apex-like optimizers, loaders of graph libraries."""

from __future__ import annotations

from dsmigrate.codemod.analysis.conditions import FALSE, TRUE
from dsmigrate.codemod.analysis.events import Happening
from dsmigrate.codemod.analysis.library import forward, opaque, parameters_in, run_functions
from dsmigrate.codemod.analysis.machine import Given
from dsmigrate.codemod.analysis.summaries.registry import (
    ALIASES,
    CHOSEN,
    MAKERS,
    PARALLEL,
    Call,
    Role,
    classes,
    function,
    method,
)
from dsmigrate.codemod.analysis.values import (
    FALSE_VALUE,
    NONE,
    TRUE_VALUE,
    Const,
    Kind,
    Lib,
    Obj,
    Tup,
    Value,
)

ALIASES.update(
    {
        f"ultralytics.{path}.autocast": "torch.cuda.amp.autocast"
        for path in ("utils.torch_utils", "yolo.utils.torch_utils")
    }
)
classes(Role.OPTIMIZER, "timm.optim. transformers.AdamW transformers.optimization.AdamW transformers.Adafactor transformers.optimization.Adafactor "
        "torch_optimizer. bitsandbytes.optim. lion_pytorch.Lion lamb.Lamb prodigyopt.Prodigy dadaptation. muon.Muon adabelief_pytorch.AdaBelief "
        "ranger.Ranger sophia.SophiaG pytorch_transformers.AdamW pytorch_pretrained_bert.optimization.BertAdam pytorch_pretrained_bert.BertAdam "
        "madgrad.MADGRAD adan.Adan adan_pytorch.Adan schedulefree.")  # fmt: skip
classes(Role.SCHEDULER, "timm.scheduler. timm.scheduler.scheduler.Scheduler transformers.WarmupLinearSchedule pytorch_transformers.WarmupLinearSchedule "
        "warmup_scheduler.GradualWarmupScheduler")  # fmt: skip
classes(Role.LOADER, "torch_geometric.loader. torch_geometric.data.DataLoader dgl.dataloading.DataLoader dgl.dataloading.GraphDataLoader "
        "dgl.dataloading.NodeDataLoader dgl.dataloading.EdgeDataLoader torch_geometric.data.NeighborSampler monai.data.DataLoader "
        "monai.data.ThreadDataLoader")  # fmt: skip
classes(Role.AVERAGED, "timm.utils.ModelEma timm.utils.ModelEmaV2 timm.utils.ModelEmaV3 torch_ema.ExponentialMovingAverage ema_pytorch.EMA "
        "diffusers.training_utils.EMAModel")  # fmt: skip
classes(Role.MODEL, "timm.create_model timm.models.create_model timm.models.factory.create_model timm.models._factory.create_model "
        "torchvision.models.ResNet monai.networks.nets. timm.models.vision_transformer. timm.models.layers. timm.layers. "
        "transformers.PreTrainedModel torch_geometric.nn. dgl.nn. dgl.nn.pytorch. segmentation_models_pytorch.")  # fmt: skip
classes(Role.SAMPLER, "timm.data.RASampler timm.data.distributed_sampler.RepeatAugSampler")
ALIASES.update({f"ultralytics.utils.{name}": "tqdm.tqdm" for name in ("TQDM", "tqdm.TQDM")})
ALIASES.update({"transformers.optimization.get_scheduler": "transformers.get_scheduler"})


PARALLEL.update({
    "torch.distributed.rpc": "RPC", "torch.distributed.autograd": "distributed autograd", "torch.distributed.pipeline": "pipeline parallelism",
    "torch.distributed.pipelining": "pipeline parallelism", "torch.distributed.fsdp.fully_shard": "FSDP",
    "torch.distributed._composable.fsdp.fully_shard": "FSDP",
    "torch.distributed.tensor.parallel.parallelize_module": "tensor parallelism", "dgl.distributed": "dgl.distributed",
    "fairscale.optim.oss.OSS": "fairscale's OSS", "fairscale.nn.data_parallel.ShardedDataParallel": "fairscale's ShardedDataParallel",
    "horovod.torch": "Horovod", "bagua.torch_api": "Bagua", "colossalai.initialize": "ColossalAI",
})  # fmt: skip
classes(Role.FRAMEWORK, "accelerate.Accelerator accelerate.accelerator.Accelerator lightning.Trainer lightning.pytorch.Trainer pytorch_lightning.Trainer "
        "lightning.Fabric lightning.fabric.Fabric lightning_fabric.Fabric transformers.Trainer transformers.Seq2SeqTrainer mmengine.runner.Runner "
        "mmcv.runner.EpochBasedRunner composer.Trainer colossalai.booster.Booster")  # fmt: skip


def _make_framework(asked: Call, made: Obj) -> None:
    asked.run.event(Happening.MADE, asked.node, what=made, role=Const("framework"))


MAKERS[Role.FRAMEWORK] = _make_framework


@function("timm.optim.create_optimizer", "timm.optim.create_optimizer_v2", "timm.optim.optim_factory.create_optimizer",
          "timm.optim.optim_factory.create_optimizer_v2", "timm.optim.create_optimizer_v2")  # fmt: skip
def _timm_optimizer(asked: Call) -> Value:
    run = asked.run
    is_old = asked.name.endswith("create_optimizer")
    model = run.settle(asked.get(1, "model", NONE) if is_old else asked.get(0, "model_or_params", NONE))
    made = run.make(Kind.LIBRARY, asked.node, made_by=f"timm.optim.{CHOSEN}")
    MAKERS[Role.OPTIMIZER](Call(run, made.made_by, Given((parameters_in(run, (model,)),)), asked.node), made)
    options = asked.get(0, "args", NONE)
    run.put(
        made,
        "chosen",
        run.attribute(options, "opt", asked.node) if options != NONE and is_old else asked.get(1, "opt", NONE),
    )
    return made


@function(
    "timm.scheduler.create_scheduler",
    "timm.scheduler.create_scheduler_v2",
    "timm.scheduler.scheduler_factory.create_scheduler",
)
def _timm_scheduler(asked: Call) -> Value:
    run = asked.run
    optimizer = (
        asked.get(1, "optimizer", NONE) if asked.name.endswith("create_scheduler") else asked.get(0, "optimizer", NONE)
    )
    made = run.make(Kind.LIBRARY, asked.node, made_by="timm.scheduler.Unnamed")
    run.put(made, "optimizer", optimizer)
    run.event(Happening.MADE, asked.node, what=made, role=Const("scheduler"), optimizer=optimizer)
    return Tup((made, run.unread(asked.node, tag="epochs")))


@function("hydra.utils.instantiate", "hydra.utils.call", "hydra_zen.instantiate")
def _instantiate(asked: Call) -> Value:
    """What a config names is called: its code is not read."""
    run_functions(asked.run, asked.given, asked.node)
    asked.run.handed.add(asked.node)
    return opaque(asked.run, Lib(asked.name), asked.given, asked.node)


_SCHEDULES = ("get_linear_schedule_with_warmup", "get_cosine_schedule_with_warmup", "get_scheduler", "get_constant_schedule",
              "get_constant_schedule_with_warmup", "get_polynomial_decay_schedule_with_warmup",
              "get_cosine_with_hard_restarts_schedule_with_warmup", "get_inverse_sqrt_schedule")  # fmt: skip


@function(
    *(
        f"{package}.{name}"
        for package in ("transformers", "transformers.optimization", "diffusers.optimization")
        for name in _SCHEDULES
    )
)
def _schedule(asked: Call) -> Value:
    run = asked.run
    index = 1 if asked.name.endswith("get_scheduler") else 0
    made = run.make(Kind.LIBRARY, asked.node, made_by="torch.optim.lr_scheduler.LambdaLR")
    optimizer = asked.get(index, "optimizer", NONE)
    run.put(made, "optimizer", optimizer)
    run.event(Happening.MADE, asked.node, what=made, role=Const("scheduler"), optimizer=optimizer)
    return made


@function("timm.utils.dispatch_clip_grad", "timm.utils.clip_grad.dispatch_clip_grad")
def _dispatch_clip(asked: Call) -> Value:
    run = asked.run
    mode = run.settle(asked.get(2, "mode", Const("norm")))
    run.event(
        Happening.CLIP, asked.node, params=run.settle(asked.get(0, "parameters", NONE)), limit=asked.get(1, "value", NONE),
        norm=Const(2.0), by_value=Const(mode == Const("value")), mode=mode,
    )  # fmt: skip
    return NONE


@function(
    "timm.models.model_parameters", "timm.models.helpers.model_parameters", "timm.models._manipulate.model_parameters"
)
def _model_parameters(asked: Call) -> Value:
    """All of them; timm's scripts leave the head out where they clip in AGC's way."""
    run = asked.run
    if run.settle(asked.get(1, "exclude_head", FALSE_VALUE)) == TRUE_VALUE:
        return run.unread(asked.node, asked.given.all())
    return run.call(run.attribute(asked.get(0, "model"), "parameters", asked.node), Given(), asked.node)


@function(
    "timm.utils.NativeScaler", "timm.utils.cuda.NativeScaler", "timm.utils.ApexScaler", "timm.utils.cuda.ApexScaler"
)
def _native_scaler(asked: Call) -> Value:
    made = asked.run.make(Kind.LIBRARY, asked.node, made_by="timm.utils.NativeScaler")
    asked.run.event(Happening.MADE, asked.node, what=made, role=Const("scaler"), enabled=TRUE_VALUE, library=TRUE_VALUE)
    return made


classes(Role.SCALER, "timm.utils.NativeScaler")


@method(Role.SCALER, "__call__")
def _native_scaler_call(asked: Call, of: Value) -> Value:
    run = asked.run
    loss, optimizer = run.settle(asked.get(0, "loss", NONE)), run.settle(asked.get(1, "optimizer", NONE))
    update = asked.get(6, "need_update", TRUE_VALUE)
    engine = {"engine": of.fields["engine"]} if isinstance(of, Obj) and "engine" in of.fields else {}
    run.event(Happening.SCALE, asked.node, scaler=of, loss=loss, library=TRUE_VALUE)
    run.event(
        Happening.BACKWARD,
        asked.node,
        loss=loss,
        scaler=of,
        create_graph=asked.get(5, "create_graph", FALSE_VALUE),
        library=TRUE_VALUE,
        **engine,
    )

    def stepped() -> None:
        limit = asked.get(2, "clip_grad", NONE)
        if limit != NONE:
            run.event(Happening.UNSCALE, asked.node, scaler=of, optimizer=optimizer, library=TRUE_VALUE)
            run.event(Happening.CLIP, asked.node, params=run.settle(asked.get(4, "parameters", NONE)), limit=limit,
                      norm=Const(2.0), by_value=FALSE_VALUE, mode=asked.get(3, "clip_mode", Const("norm")), library=TRUE_VALUE)  # fmt: skip
        run.event(Happening.STEP, asked.node, optimizer=optimizer, scaler=of, library=TRUE_VALUE, **engine)
        run.event(Happening.SCALER_UPDATE, asked.node, scaler=of, library=TRUE_VALUE)

    condition = run.holds(run.truth(update))
    if condition is TRUE:
        stepped()
    elif condition is not FALSE:
        with run.assuming(condition, asked.node):
            stepped()
    return NONE


@method(Role.AVERAGED, "__call__")
def _averaged_forward(asked: Call, of: Value) -> Value:
    return forward(asked.run, of, "", asked.given, asked.node) if isinstance(of, Obj) else NONE


@function("fvcore.common.checkpoint.Checkpointer", "detectron2.checkpoint.DetectionCheckpointer")
def _checkpointer(asked: Call) -> Value:
    """What loads files into a model, and saves it: the one in DistributedDataParallel, which it looks for."""
    model = asked.run.settle(asked.get(0, "model", NONE))
    asked.run.event(Happening.RESTORE, asked.node, of=model, content=NONE, library=TRUE_VALUE)
    return asked.run.unread(asked.node, asked.given.all())


@function(
    "timm.models.load_checkpoint",
    "timm.models.helpers.load_checkpoint",
    "timm.models.resume_checkpoint",
    "timm.models.helpers.resume_checkpoint",
)
def _timm_load(asked: Call) -> Value:
    """A checkpoint that is put into a model, and into an optimizer."""
    asked.run.event(
        Happening.RESTORE,
        asked.node,
        of=asked.run.settle(asked.get(0, "model", NONE)),
        content=NONE,
        library=Const(value=True),
    )
    optimizer = asked.run.settle(asked.get(2, "optimizer", NONE))
    if asked.name.endswith("resume_checkpoint") and optimizer != NONE:
        asked.run.event(Happening.RESTORE, asked.node, of=optimizer, content=NONE, library=Const(value=True))
    return asked.run.unread(asked.node, tag="loaded")
