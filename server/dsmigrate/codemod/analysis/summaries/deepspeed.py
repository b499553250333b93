"""DeepSpeed itself: how a converted script is read."""

from __future__ import annotations

from dsmigrate.codemod.analysis.conditions import either, options_of
from dsmigrate.codemod.analysis.events import Happening
from dsmigrate.codemod.analysis.expressions import from_condition
from dsmigrate.codemod.analysis.library import call_library
from dsmigrate.codemod.analysis.machine import Given
from dsmigrate.codemod.analysis.roles import is_known, role_of
from dsmigrate.codemod.analysis.summaries.registry import FUNCTIONS, Call, Role, classes, function, method
from dsmigrate.codemod.analysis.values import NONE, TRUE_VALUE, Const, Expr, Kind, Obj, Tensor, Tup, Value, each

ENGINE = "deepspeed.DeepSpeedEngine"
classes(Role.ENGINE, [ENGINE])
classes(Role.OPTIMIZER, "deepspeed.ops.adam.FusedAdam deepspeed.ops.adam.DeepSpeedCPUAdam deepspeed.ops.lamb.FusedLamb "
        "deepspeed.ops.lion.FusedLion deepspeed.ops.adagrad.DeepSpeedCPUAdagrad")  # fmt: skip
classes(Role.REGION, "deepspeed.zero.Init deepspeed.zero.GatheredParameters")


@function("deepspeed.init_distributed", "deepspeed.comm.init_distributed")
def _init_distributed(asked: Call) -> Value:
    names = ("dist_backend", "auto_mpi_discovery", "distributed_port", "verbose", "timeout", "init_method", "dist_init_required",
             "config", "rank", "world_size")  # fmt: skip
    what = {
        name: value
        for index, name in enumerate(names)
        if not isinstance(value := asked.get(index, name, NONE), type(NONE)) or value != NONE
    }
    asked.run.event(Happening.GROUP, asked.node, **what)
    asked.run.put(asked.run.flags, "initialized", TRUE_VALUE)
    return NONE


@function("deepspeed.initialize")
def _initialize(asked: Call) -> Value:
    run = asked.run
    model = run.settle(asked.get(1, "model", NONE))
    optimizer = run.settle(asked.get(2, "optimizer", NONE))
    if optimizer == NONE and asked.get(3, "model_parameters", NONE) != NONE:  # that of the config
        optimizer = call_library(run, "torch.optim.SGD", Given((asked.get(3, "model_parameters", NONE),)), asked.node)
    engine = run.make(Kind.LIBRARY, asked.node, made_by=ENGINE)
    run.known_models.update(one for one in each(model) if isinstance(one, Expr))
    run.put(engine, "module", model)
    run.put(engine, "optimizer", optimizer)
    run.put(engine, "basic_optimizer", optimizer)
    run.event(
        Happening.WRAP,
        asked.node,
        wrapper=engine,
        module=model,
        optimizer=optimizer,
        config=asked.get(9, "config", NONE),
    )
    run.put(run.flags, "initialized", TRUE_VALUE)
    return Tup((engine, optimizer, run.unread(asked.node, tag="loader"), asked.get(6, "lr_scheduler", NONE)))


@method(Role.ENGINE, "backward")
def _backward(asked: Call, of: Value) -> Value:
    asked.run.event(Happening.BACKWARD, asked.node, loss=asked.run.settle(asked.get(0, "loss", NONE)), engine=of)
    return asked.get(0, "loss", NONE)


@method(Role.ENGINE, "step")
def _step(asked: Call, of: Value) -> Value:
    optimizer = of.get("optimizer", NONE) if isinstance(of, Obj) else NONE
    asked.run.event(Happening.STEP, asked.node, optimizer=optimizer, engine=of)
    return NONE


@method(Role.ENGINE, "set_gradient_accumulation_boundary", "destroy")
def _told(asked: Call, of: Value) -> Value:  # noqa: ARG001
    return NONE


@method(Role.ENGINE, "torch_autocast_enabled")
def _setting(asked: Call, of: Value) -> Value:  # noqa: ARG001
    return asked.run.unread(asked.node)


# -- what converted scripts take from ds_compat ----------------------------------------------------------------------


@function("ds_compat.load_config")
def _load_config(asked: Call) -> Value:
    return asked.run.unread(asked.node, asked.given.all())


@function("ds_compat.save_checkpoint", "ds_compat.load_checkpoint")
def _checkpoint(asked: Call) -> Value:
    name = f"torch.{asked.name.rpartition('.')[2].removesuffix('_checkpoint')}"
    return FUNCTIONS[name](Call(asked.run, name, asked.given, asked.node))


COLLECTIVE = ("gather_checkpoint", "write_checkpoint", "broadcast_buffers", "broadcast_buffers_each_forward",
              "broadcast_model", "send_odd_parameters")  # fmt: skip
"""The parts of ``ds_compat`` that wait for all ranks wherever they are called."""


@function(*(f"ds_compat.{name}" for name in COLLECTIVE))
def _broadcast(asked: Call) -> Value:
    asked.run.event(
        Happening.COLLECTIVE, asked.node, name=Const(asked.name.rpartition(".")[2]), of=asked.get(0, "engine", NONE)
    )
    return NONE


@function("ds_compat.keep_torch_checkpoints", "ds_compat.keep_directories", "ds_compat.copy_checkpoint",
          "ds_compat.remove_checkpoint", "ds_compat.keep_grad_norm", "ds_compat.refresh_masters", "ds_compat.set_rank_environment",
          "ds_compat.parameter_groups", "ds_compat.use_own_adagrad", "ds_compat.enter_in_forward")  # fmt: skip
def _taught(asked: Call) -> Value:
    return asked.run.unread(asked.node)


@function("ds_compat.is_engine")
def _is_engine(asked: Call) -> Value:
    run = asked.run
    model = run.settle(asked.get(0, "model", NONE))
    if any(role_of(one) is Role.ENGINE for one in run.wrappers) and any(
        isinstance(one, Expr) and not is_known(run, one) for one in each(model)
    ):
        return run.unread(asked.node)
    return from_condition(either(*(condition for condition, one in options_of(model) if role_of(one) is Role.ENGINE)))


@function("ds_compat.use_grad_scaler")
def _use_scaler(asked: Call) -> Value:
    asked.run.event(
        Happening.SCALE, asked.node, scaler=asked.get(1, "scaler", NONE), engine=asked.get(0, "engine", NONE)
    )
    return NONE


@function("ds_compat.scale_losses")
def _scale_losses(asked: Call) -> Value:
    made = asked.run.make(Kind.LIBRARY, asked.node, made_by="torch.amp.GradScaler")
    asked.run.event(Happening.SCALE, asked.node, scaler=made, engine=asked.get(0, "engine", NONE))
    return made


@function("ds_compat.grad_norm")
def _grad_norm(asked: Call) -> Value:  # noqa: ARG001
    return Tensor(varies=False)


@function("ds_compat.drop_gradients")
def _drop(asked: Call) -> Value:
    asked.run.event(Happening.ZERO_GRAD, asked.node, of=asked.get(0, "engine", NONE))
    return NONE


@function("ds_compat.copy_of_module")
def _copy(asked: Call) -> Value:
    return FUNCTIONS["copy.deepcopy"](Call(asked.run, "copy.deepcopy", asked.given, asked.node))


@function("ds_compat.EngineScaler")
def _engine_scaler(asked: Call) -> Value:
    made = asked.run.make(Kind.LIBRARY, asked.node, made_by="timm.utils.NativeScaler")
    asked.run.put(made, "engine", asked.get(0, "engine", NONE))
    return made
