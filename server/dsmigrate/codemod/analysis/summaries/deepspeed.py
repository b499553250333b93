"""DeepSpeed itself: how a converted script is read."""

from __future__ import annotations

from dsmigrate.codemod.analysis.events import Happening
from dsmigrate.codemod.analysis.summaries.registry import Call, Role, classes, function, method
from dsmigrate.codemod.analysis.values import NONE, TRUE_VALUE, Kind, Obj, Tup, Value

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
    engine = run.make(Kind.LIBRARY, asked.node, made_by=ENGINE)
    run.put(engine, "module", model)
    run.put(engine, "optimizer", optimizer)
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
