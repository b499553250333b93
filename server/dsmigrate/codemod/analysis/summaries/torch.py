"""torch: processes and groups, modules, wrappers, optimizers, schedulers, scalers, loaders, files, regions."""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import replace

from dsmigrate.codemod.analysis.conditions import MAYBE, Literal, options_of
from dsmigrate.codemod.analysis.containers import REST, add_rest
from dsmigrate.codemod.analysis.copying import copied
from dsmigrate.codemod.analysis.events import Happening
from dsmigrate.codemod.analysis.library import call_unlisted, forward, of_torch
from dsmigrate.codemod.analysis.machine import RANK, Given, Machine
from dsmigrate.codemod.analysis.norms import is_second, norm_of, norms_in, powered, summed
from dsmigrate.codemod.analysis.roles import inside_of, is_module, is_tracked, role_of
from dsmigrate.codemod.analysis.state import choose
from dsmigrate.codemod.analysis.summaries.registry import (
    ALIASES,
    ATTRIBUTES,
    MAKERS,
    Call,
    Role,
    any_method,
    classes,
    function,
    method,
)
from dsmigrate.codemod.analysis.tensors import changed_in_place, lays_out, may_be_turned
from dsmigrate.codemod.analysis.values import (
    FALSE_VALUE,
    NONE,
    TRUE_VALUE,
    UNBOUND,
    Const,
    Expr,
    Kind,
    Lib,
    Obj,
    Tensor,
    TensorKind,
    Tup,
    Value,
    each,
    joined_tensor,
    may_vary,
)

DDP = "torch.nn.parallel.DistributedDataParallel"
ALIASES.update({
    "torch.nn.parallel.distributed.DistributedDataParallel": DDP,
    "torch.nn.parallel.data_parallel.DataParallel": "torch.nn.DataParallel",
    "torch.nn.parallel.DataParallel": "torch.nn.DataParallel",
    "torch.distributed.fsdp.fully_sharded_data_parallel.FullyShardedDataParallel": "torch.distributed.fsdp.FullyShardedDataParallel",
    "torch.cuda.amp.autocast_mode.autocast": "torch.cuda.amp.autocast",
    "torch.amp.autocast_mode.autocast": "torch.autocast",
    "torch.amp.autocast": "torch.autocast",
    "torch.cuda.amp.grad_scaler.GradScaler": "torch.cuda.amp.GradScaler",
    "torch.amp.grad_scaler.GradScaler": "torch.amp.GradScaler",
    "torch.GradScaler": "torch.amp.GradScaler",
    "torch.nn.utils.clip_grad.clip_grad_norm_": "torch.nn.utils.clip_grad_norm_",
    "torch.nn.utils.clip_grad.clip_grad_value_": "torch.nn.utils.clip_grad_value_",
    "torch.nn.utils.clip_grad_norm": "torch.nn.utils.clip_grad_norm_",
    "torch.utils.data.DistributedSampler": "torch.utils.data.distributed.DistributedSampler",
    "torch.autograd.grad_mode.no_grad": "torch.no_grad",
    "torch.distributed.distributed_c10d.get_rank": "torch.distributed.get_rank",
    "torch.nn.parameter.Parameter": "torch.nn.Parameter",
})  # fmt: skip
classes(Role.WRAPPER, [DDP])
classes(Role.REPLICAS, "torch.nn.DataParallel")
classes(Role.SHARDED, "torch.distributed.fsdp.FullyShardedDataParallel fairscale.nn.FullyShardedDataParallel")
classes(Role.SCHEDULER, "torch.optim.lr_scheduler.")  # before the optimizers, whose prefix they share
classes(Role.OPTIMIZER, "torch.optim. torch.distributed.optim.")
classes(
    Role.SCHEDULER,
    "torch.optim.lr_scheduler.LambdaLR torch.optim.lr_scheduler._LRScheduler torch.optim.lr_scheduler.LRScheduler",
)
classes(
    Role.SCALER,
    "torch.cuda.amp.GradScaler torch.amp.GradScaler torch.distributed.fsdp.sharded_grad_scaler.ShardedGradScaler",
)
classes(Role.LOADER, "torch.utils.data.DataLoader")
classes(Role.SAMPLER, "torch.utils.data.distributed.DistributedSampler torch.utils.data.RandomSampler torch.utils.data.SequentialSampler "
        "torch.utils.data.BatchSampler torch.utils.data.Sampler")  # fmt: skip
classes(Role.REGION, "torch.autocast torch.cuda.amp.autocast torch.cpu.amp.autocast torch.no_grad torch.enable_grad torch.inference_mode "
        "torch.set_grad_enabled torch.autograd.set_grad_enabled torch.autograd.profiler.profile torch.profiler.profile "
        "torch.profiler.record_function torch.autograd.detect_anomaly torch.autograd.set_detect_anomaly torch.cuda.device "
        "torch.cuda.stream torch.random.fork_rng torch.backends.cuda.sdp_kernel torch.nn.attention.sdpa_kernel "
        "torch.autograd.profiler.record_function torch.distributed.algorithms.join.Join torch.distributed.optim.PostLocalSGDOptimizer")  # fmt: skip
classes(Role.AVERAGED, "torch.optim.swa_utils.AveragedModel")
classes(Role.MODEL, "torch.nn.")
classes(
    Role.MODEL, "torch.nn.Module torch.nn.Sequential torch.nn.ModuleList torch.nn.ModuleDict torch.jit.ScriptModule"
)
classes(Role.OTHER, "torch.nn.Parameter torch.nn.ParameterList torch.nn.ParameterDict torch.nn.UninitializedParameter")


# -- processes and groups --------------------------------------------------------------------------------------------


@function("torch.distributed.init_process_group", "torch.distributed.distributed_c10d.init_process_group")
def _init(asked: Call) -> Value:
    what = {
        name: asked.get(index, name)
        for index, name in enumerate(("backend", "init_method", "timeout", "world_size", "rank", "store"))
    }
    asked.run.event(
        Happening.GROUP, asked.node, **{name: value for name, value in what.items() if value is not UNBOUND}
    )
    asked.run.put(asked.run.flags, "initialized", TRUE_VALUE)
    given = each(asked.run.settle(what["rank"]))
    asked.run.known_ranks |= {one for one in given if isinstance(one, Expr) and not may_vary(one)}
    return NONE


@function("torch.distributed.destroy_process_group")
def _destroy(asked: Call) -> Value:
    asked.run.event(Happening.GROUP_GONE, asked.node)
    return NONE


@function(
    "torch.distributed.is_available", "torch.distributed.is_nccl_available", "torch.distributed.is_gloo_available"
)
def _available(asked: Call) -> Value:  # noqa: ARG001
    return TRUE_VALUE


@function("torch.distributed.is_initialized")
def _initialized(asked: Call) -> Value:
    return asked.run.settle(asked.run.flags.at("initialized"))


@function("torch.distributed.is_torchelastic_launched")
def _elastic(asked: Call) -> Value:  # noqa: ARG001
    return Expr("launched")


@function("torch.distributed.get_rank")
def _rank(asked: Call) -> Value:  # noqa: ARG001
    return RANK


@function("torch.distributed.get_world_size")
def _world_size(asked: Call) -> Value:  # noqa: ARG001
    return Expr("world_size")


@function("torch.distributed.get_node_local_rank")
def _local_rank(asked: Call) -> Value:  # noqa: ARG001
    return Expr("local_rank", varies=True)


_COLLECTIVES = [
    "barrier",
    "all_reduce",
    "all_gather",
    "broadcast",
    "reduce",
    "reduce_scatter",
    "gather",
    "scatter",
    "all_to_all",
    "all_gather_object",
    "gather_object",
    "broadcast_object_list",
    "scatter_object_list",
    "all_gather_into_tensor",
    "reduce_scatter_tensor",
    "all_to_all_single",
    "monitored_barrier",
    "_all_gather_base",
    "all_reduce_coalesced",
]


@function(*(f"torch.distributed.{name}" for name in _COLLECTIVES))
def collective(asked: Call) -> Value:
    """A collective: what it writes is the same on all ranks afterwards."""
    run = asked.run
    name = asked.name.rpartition(".")[2]
    run.event(Happening.COLLECTIVE, asked.node, name=Const(name), of=asked.get(0, "tensor", NONE))
    for value in asked.given.args[:1]:
        for one in each(run.settle(value)):
            if isinstance(one, Tensor) and one.kind is TensorKind.GRADIENT:
                run.event(Happening.GRADIENT_WRITE, asked.node, of=one, name=Const(name))
            if isinstance(one, Obj) and one.kind is Kind.LIST:
                for key, item in tuple(one.fields.items()):
                    run.put(one, key, _same(item))
    if name in {"all_reduce", "broadcast", "reduce"} and isinstance(asked.node, ast.Call) and asked.node.args:
        _rebind(run, asked.node.args[0])
    return run.make(Kind.LIBRARY, asked.node, made_by="torch.distributed.Work")


def _same(value: Value) -> Value:
    if isinstance(value, Tensor):
        return replace(value, varies=False)
    if isinstance(value, Expr) and value.varies:
        return Expr("reduced", *value.args, loops=value.loops)
    return value


def _rebind(run: Machine, node: ast.expr) -> None:
    """A tensor that is written in place is another value from here on, under the name that it has."""
    if isinstance(node, ast.Name | ast.Attribute | ast.Subscript):
        before = run.value(node)
        after = _same(before)
        if after != before and not (isinstance(before, Tensor) and before.kind is not TensorKind.DATA):
            run.bind(node, after)


@function("torch.cuda.set_device", "torch.accelerator.set_device_index", "torch.accelerator.set_device_idx")
def _set_device(asked: Call) -> Value:
    asked.run.event(Happening.DEVICE, asked.node, device=asked.get(0, "device"))
    return NONE


@function("torch.cuda.is_available", "torch.accelerator.is_available")
def _cuda(asked: Call) -> Value:  # noqa: ARG001
    return Expr("cuda")


@function("torch.cuda.is_bf16_supported")
def _bf16(asked: Call) -> Value:  # noqa: ARG001
    return Expr("bf16")


@function("torch.cuda.device_count", "torch.accelerator.device_count")
def _device_count(asked: Call) -> Value:  # noqa: ARG001
    return Expr("device_count")


@function("torch.cuda.current_device", "torch.accelerator.current_device_index", "torch.accelerator.current_device_idx")
def _current_device(asked: Call) -> Value:  # noqa: ARG001
    return Expr("device", varies=True)


@function("torch.device")
def _device(asked: Call) -> Value:
    args = tuple(value if isinstance(value, Const | Expr) else Expr("some") for value in asked.given.args)
    return Expr("torch.device", *args)


@function(
    "torch.manual_seed",
    "torch.random.manual_seed",
    "transformers.set_seed",
    "accelerate.utils.set_seed",
    "pytorch_lightning.seed_everything",
)
def _seed(asked: Call) -> Value:
    asked.run.event(Happening.SEED, asked.node, value=asked.run.settle(asked.get(0, "seed", NONE)))
    return NONE


@function("torch.cuda.manual_seed", "torch.cuda.manual_seed_all", "torch.cuda.empty_cache", "torch.cuda.synchronize",
          "torch.set_num_threads", "torch.cuda.reset_peak_memory_stats", "torch.set_printoptions", "torch.backends.cudnn.flags",
          "torch.set_float32_matmul_precision", "torch.use_deterministic_algorithms",
          "torch.multiprocessing.set_sharing_strategy", "torch.cuda.init", "torch.cuda.set_rng_state", "torch.set_rng_state")  # fmt: skip
def _nothing(asked: Call) -> Value:  # noqa: ARG001
    return NONE


@function("torch.set_default_dtype", "torch.set_default_tensor_type", "torch.set_autocast_enabled", "torch.set_autocast_gpu_dtype",
          "torch.set_default_device", "torch.set_autocast_dtype", "torch.set_autocast_cpu_enabled")  # fmt: skip
def _precision(asked: Call) -> Value:
    asked.run.event(Happening.PRECISION, asked.node, name=Const(asked.name), value=asked.get(0, "value", NONE))
    return NONE


@function("torch.set_grad_enabled", "torch.autograd.set_grad_enabled", "torch.autograd.set_detect_anomaly")
def _set_grad(asked: Call) -> Value:
    return asked.run.make(Kind.LIBRARY, asked.node, made_by=asked.name)


@function("torch.randint")
def _randint(asked: Call) -> Value:
    """Random numbers; a list of them are as a rule the places of a batch's samples."""
    size = asked.run.settle(asked.get(1 if len(asked.given.args) < 3 else 2, "size", NONE))
    if isinstance(size, Tup) and len(size.items) == 1:
        asked.run.event(Happening.BATCH, asked.node, loader=NONE, size=size.items[0])
    return Tensor(varies=True)


# -- making things ---------------------------------------------------------------------------------------------------


def _make_wrapper(asked: Call, made: Obj) -> None:
    run = asked.run
    module = run.settle(asked.get(0, "module", NONE))
    known = list(each(module))
    run.known_models.update(one for one in known if isinstance(one, Expr))
    run.put(made, "module", module)
    run.event(Happening.WRAP, asked.node, wrapper=made, module=module, **_named(asked, _WRAPPER_ARGUMENTS))


_WRAPPER_ARGUMENTS = ("module", "device_ids", "output_device", "dim", "broadcast_buffers", "process_group", "bucket_cap_mb",
                      "find_unused_parameters", "check_reduction", "gradient_as_bucket_view", "static_graph")  # fmt: skip


def _named(asked: Call, names: tuple[str, ...]) -> dict[str, Value]:
    """Every argument of a call by its name, but the first."""
    found = dict(zip(names[1:], asked.given.args[1:], strict=False))
    found |= {name: value for name, value in asked.given.named.items() if name != names[0]}
    return {f"arg_{name}": value for name, value in found.items()}


def _make_optimizer(asked: Call, made: Obj) -> None:
    run = asked.run
    given = run.settle(asked.get(0, "params", NONE))
    if given == NONE:
        given = asked.given.args[0] if asked.given.args else NONE
    if given == NONE:
        given = next(
            (
                value
                for value in asked.given.named.values()
                if any(role_of(one) is Role.OPTIMIZER for one in each(value))
            ),
            NONE,
        )
    if any(
        role_of(one) is Role.OPTIMIZER for one in each(given)
    ):  # one around another, as Lookahead is: it has the other's
        given = choose(
            (condition, one.get("params", NONE) if isinstance(one, Obj) and role_of(one) is Role.OPTIMIZER else one)
            for condition, one in options_of(given)
        )
    run.put(made, "params", given)
    for one in run.things_in(given):
        if isinstance(one, Expr):
            run.known_models.update(held for held in run.held.get(one, ()) if isinstance(held, Expr))
        elif isinstance(one, Tensor) and one.kind is TensorKind.PARAMETER and isinstance(one.of, Expr):
            run.known_models.add(one.of)
    groups = run.make(Kind.LIST, asked.node, tag="groups", groups_of=made)
    group = run.make(Kind.DICT, asked.node, tag="group", group_of=made, open=True)
    run.put(group, "params", _parameters_of_groups(run, given, asked.node))
    run.put(groups, REST, group)
    run.put(made, "param_groups", groups)
    run.event(
        Happening.MADE,
        asked.node,
        what=made,
        role=Const("optimizer"),
        params=given,
        arguments=Tup(tuple(asked.given.args[1:])),
        **{f"arg_{name}": value for name, value in asked.given.named.items() if name != "params"},
    )


def _parameters_of_groups(run: Machine, given: Value, node: ast.AST) -> Value:
    made = run.make(Kind.LIST, node, tag="params", open=True)
    tensors = [one for one in run.things_in(given) if isinstance(one, Tensor)]
    if tensors:
        run.put(made, REST, choose((MAYBE, one) for one in tensors))
    return made


def _make_scheduler(asked: Call, made: Obj) -> None:
    asked.run.put(made, "optimizer", asked.get(0, "optimizer", NONE))
    asked.run.event(
        Happening.MADE, asked.node, what=made, role=Const("scheduler"), optimizer=asked.get(0, "optimizer", NONE)
    )


def _make_scaler(asked: Call, made: Obj) -> None:
    shift = 1 if asked.name == "torch.amp.GradScaler" else 0
    for index, name in enumerate(("init_scale", "growth_factor", "backoff_factor", "growth_interval", "enabled")):
        value = asked.get(index + shift, name)
        if value is not UNBOUND:
            asked.run.put(made, name, value)
    asked.run.event(
        Happening.MADE, asked.node, what=made, role=Const("scaler"), enabled=asked.get(4 + shift, "enabled", TRUE_VALUE)
    )


def _make_loader(asked: Call, made: Obj) -> None:
    for index, name in enumerate(("dataset", "batch_size", "shuffle", "sampler", "batch_sampler")):
        asked.run.put(made, name, asked.get(index, name, Const(1) if name == "batch_size" else NONE))
    asked.run.event(Happening.MADE, asked.node, what=made, role=Const("loader"), batch_size=asked.get(1, "batch_size", Const(1)),
                    batch_sampler=asked.get(4, "batch_sampler", NONE))  # fmt: skip


def _make_model(asked: Call, made: Obj) -> None:
    run = asked.run
    if asked.name in {"torch.nn.Sequential", "torch.nn.ModuleList", "torch.nn.ModuleDict"}:
        items = list(asked.given.args)
        if asked.name != "torch.nn.Sequential" or (len(items) == 1 and not isinstance(items[0], Obj)):
            source = run.settle(items[0]) if items else NONE
            if isinstance(source, Obj) and source.kind is Kind.DICT:
                for key, value in tuple(source.fields.items()):
                    run.put(made, key, value)
                return
            found = run.exact_items(source)
            items = found if found is not None else []
            if found is None and isinstance(source, Obj):
                for value in source.fields.values():
                    run.put(made, REST, value)
        for index, value in enumerate(items):
            run.put(made, index, value)
        for value in asked.given.more:  # Sequential(*base.children())
            for one in run.things_in(value):
                if is_module(run, one):
                    add_rest(run, made, one)
        return
    if asked.given.more or any(isinstance(one, Expr) for one in asked.given.all()):
        return


def _make_averaged(asked: Call, made: Obj) -> None:
    model = asked.get(0, "model", NONE)
    asked.run.put(made, "of", model)
    for name in ("module", "ema"):  # as torch and timm call what they have copied
        asked.run.put(made, name, copied(asked.run, model, asked.node))
    asked.run.event(Happening.COPY, asked.node, of=asked.get(0, "model", NONE), name=Const(asked.name))


def _make_region(asked: Call, made: Obj) -> None:
    for index, value in enumerate(asked.given.args):
        asked.run.put(made, index, value)
    for name, value in asked.given.named.items():
        asked.run.put(made, name, value)


def _make_sampler(asked: Call, made: Obj) -> None:
    for name, value in asked.given.named.items():
        asked.run.put(made, name, value)
    if asked.name == "torch.utils.data.BatchSampler":
        asked.run.put(made, "batch_size", asked.get(1, "batch_size", NONE))


MAKERS.update(
    {
        Role.WRAPPER: _make_wrapper,
        Role.REPLICAS: _make_wrapper,
        Role.SHARDED: _make_wrapper,
        Role.OPTIMIZER: _make_optimizer,
        Role.SCHEDULER: _make_scheduler,
        Role.SCALER: _make_scaler,
        Role.LOADER: _make_loader,
        Role.MODEL: _make_model,
        Role.AVERAGED: _make_averaged,
        Role.REGION: _make_region,
        Role.SAMPLER: _make_sampler,
    }
)


_COMPLEX = frozenset(
    ["cfloat", "cdouble", "chalf", "complex32", "complex64", "complex128", "view_as_complex", "complex", "polar"]
)


def _written_type(part: ast.AST) -> str | None:
    """The type of numbers that a part of an expression speaks of: of a tensor that is made there."""
    if not isinstance(part, ast.Attribute):
        return None
    return (
        "complex64"
        if part.attr in _COMPLEX
        else part.attr
        if f"torch.{part.attr}" in _DTYPES and part.attr not in _CASTS - {"bfloat16"}
        else None
    )


@function("torch.nn.Parameter")
def _parameter(asked: Call) -> Value:
    run = asked.run
    owner = run.frame.first if isinstance(run.frame.first, Obj) else None
    data = run.settle(asked.get(0, "data", NONE))
    scalar = isinstance(data, Tensor) and data.scalar
    made = Tensor(TensorKind.PARAMETER, owner, varies=False, scalar=scalar, turned=may_be_turned(data))
    dtype = next((word for part in ast.walk(asked.node) if (word := _written_type(part))), None)
    if dtype is not None:
        run.event(Happening.PRECISION, asked.node, of=made, name=Const("dtype"), value=Lib(f"torch.{dtype}"))
    run.event(Happening.MADE, asked.node, what=made, role=Const("parameter"), late=Const(run.in_forward > 0),
              trained=asked.get(1, "requires_grad", TRUE_VALUE))  # fmt: skip
    return made


@function("torch.compile", "torch.nn.SyncBatchNorm.convert_sync_batchnorm", "apex.parallel.convert_syncbn_model", "torch.nn.utils.weight_norm",
          "torch.nn.utils.spectral_norm", "torch.nn.utils.parametrizations.weight_norm", "torch.nn.utils.parametrizations.spectral_norm",
          "torch.nn.utils.remove_weight_norm", "torch.jit.optimize_for_inference")  # fmt: skip
def _same_model(asked: Call) -> Value:
    first = asked.get(0, "model", asked.get(0, "module", NONE))
    if asked.name == "torch.compile":
        if first == NONE:
            return Lib("functools.wraps.wrapped")
        asked.run.event(Happening.COMPILED, asked.node, model=first, **_named(asked, ("model",)))
    if "sync" in asked.name:
        asked.run.event(Happening.ACCESS, asked.node, of=first, name=Const("sync_batchnorm"))
    return first


@function(
    "torch.jit.script",
    "torch.jit.trace",
    "torch.jit.freeze",
    "torch.export.export",
    "torch.fx.symbolic_trace",
    "torch.onnx.export",
)
def _scripted(asked: Call) -> Value:
    first = asked.run.settle(asked.get(0, "obj", NONE))
    if not any(is_tracked(asked.run, one) for one in each(first)):
        return first
    made = asked.run.make(Kind.LIBRARY, asked.node, made_by="torch.jit.ScriptModule")
    asked.run.put(made, "of", first)
    asked.run.event(Happening.COPY, asked.node, of=first, name=Const(asked.name))
    return made


# -- modules ---------------------------------------------------------------------------------------------------------

_MODULES = (Role.MODEL, Role.WRAPPER, Role.REPLICAS, Role.ENGINE, Role.SHARDED, Role.AVERAGED)


def _module_method(*names: str) -> Callable[[Callable[[Call, Value], Value]], Callable[[Call, Value], Value]]:
    """A method of modules, also of what is not read."""

    def note(handler: Callable[[Call, Value], Value]) -> Callable[[Call, Value], Value]:
        method(_MODULES, *names)(handler)
        any_method(*names)(handler)
        return handler

    return note


def owner_of(run: Machine, of: Value) -> Value:
    """The model whose parameters a wrapper's or a model's are."""
    return inside_of(run, of) if isinstance(of, Obj) else of


def _tensors(asked: Call, of: Value, kind: TensorKind, *, named: bool) -> Value:
    run = asked.run
    owner = owner_of(run, of)
    found = [Tensor(kind, one, varies=False) for one in each(owner) if isinstance(one, Obj | Expr)]
    value = choose((MAYBE, one) for one in found) if found else Tensor(kind, varies=False)
    run.event(Happening.PARAMETERS, asked.node, of=of, name=Const(asked.name))
    return run.iterator(asked.node, "named" if named else "element", value, tag=asked.name)


@_module_method("parameters", "named_parameters")
def _parameters(asked: Call, of: Value) -> Value:
    asked.run.known_models.update(one for one in each(of) if isinstance(one, Expr))  # nothing else is asked for them
    return _tensors(asked, of, TensorKind.PARAMETER, named=asked.name.startswith("named"))


@_module_method("buffers", "named_buffers")
def _buffers(asked: Call, of: Value) -> Value:
    return _tensors(asked, of, TensorKind.BUFFER, named=asked.name.startswith("named"))


@_module_method("modules", "named_modules", "children", "named_children", "get_submodule")
def _parts(asked: Call, of: Value) -> Value:
    run = asked.run
    owner = owner_of(run, of)
    part: Value = Expr("part", next((one for one in each(owner) if isinstance(one, Obj | Expr)), NONE), asked.node)
    run.known_models.add(part)
    if asked.name == "get_submodule":
        return part
    return run.iterator(asked.node, "named" if asked.name.startswith("named") else "element", part, tag=asked.name)


@_module_method("state_dict")
def _state_dict(asked: Call, of: Value) -> Value:
    run = asked.run
    run.event(Happening.STATE, asked.node, of=of)
    made = run.make(Kind.DICT, asked.node, tag="state", open=True, state_dict_of=of)
    owner = next((one for one in each(owner_of(run, of)) if isinstance(one, Obj | Expr)), None)
    run.put(made, REST, Tensor(TensorKind.WEIGHT, owner, varies=False))
    return made


@_module_method("load_state_dict")
def _load_state_dict(asked: Call, of: Value) -> Value:
    run = asked.run
    run.event(Happening.RESTORE, asked.node, of=of, content=asked.get(0, "state_dict", NONE))
    return run.unread(asked.node, tag="keys")


@_module_method("train", "eval")
def _mode(asked: Call, of: Value) -> Value:
    mode = asked.get(0, "mode", TRUE_VALUE) if asked.name == "train" else FALSE_VALUE
    asked.run.event(Happening.MODE, asked.node, of=of, mode=mode)
    return of


@_module_method(
    "to", "cuda", "cpu", "float", "share_memory", "to_empty", "xpu", "npu", "double", "half", "bfloat16", "type"
)
def _moved(asked: Call, of: Value) -> Value:
    given = asked.given.all()
    kinds = [value for value in given if any(isinstance(one, Lib) and one.name in _DTYPES for one in each(value))]
    name = asked.name
    if isinstance(of, Obj) and name in {"to", "cuda", "cpu", "xpu", "npu"}:
        asked.run.event(Happening.PLACED, asked.node, of=of, device=asked.get(0, "device", Const(name)))
    if not any(is_module(asked.run, one) for one in each(of)):
        asked.run.event(Happening.MOVED, asked.node, of=of)
    if lays_out(asked.get(None, "memory_format", NONE)):
        asked.run.event(Happening.ACCESS, asked.node, of=of, name=Const("memory_format"))
    kind = asked.given.named.get("dtype", kinds[0] if kinds and name in {"to", "type"} else None)
    kind = Lib(f"torch.{name}") if name in _CASTS else kind
    if kind is not None:
        asked.run.event(Happening.PRECISION, asked.node, of=of, name=Const("dtype"), value=asked.run.settle(kind))
    return of


_CASTS = frozenset(["half", "bfloat16", "double", "float"])
_DTYPES = frozenset(
    ["torch.float16", "torch.half", "torch.bfloat16", "torch.float64", "torch.double", "torch.float32", "torch.float"]
)


@_module_method("reset_parameters")
def _reset(asked: Call, of: Value) -> Value:
    for one in each(of):
        if isinstance(one, Obj | Expr):
            asked.run.event(
                Happening.WEIGHT_WRITE,
                asked.node,
                of=Tensor(TensorKind.PARAMETER, one, varies=False),
                name=Const("reset_parameters"),
            )
    return NONE


@_module_method("requires_grad_")
def _requires_grad(asked: Call, of: Value) -> Value:
    asked.run.event(Happening.THAW, asked.node, of=of, value=asked.get(0, "requires_grad", TRUE_VALUE))
    return of


@_module_method("zero_grad")
def _zero_grad(asked: Call, of: Value) -> Value:
    asked.run.event(Happening.ZERO_GRAD, asked.node, of=of)
    return NONE


@_module_method("apply")
def _apply(asked: Call, of: Value) -> Value:
    run = asked.run
    part = Expr("part", next((one for one in each(owner_of(run, of)) if isinstance(one, Obj | Expr)), NONE), asked.node)
    run.known_models.add(part)
    run.call(asked.get(0, "fn", NONE), Given((part,)), asked.node)
    return of


@method(_MODULES, "register_buffer")
def _register_buffer(asked: Call, of: Value) -> Value:
    name = asked.run.settle(asked.get(0, "name"))
    if isinstance(of, Obj) and isinstance(name, Const):
        value = asked.run.settle(asked.get(1, "tensor", NONE))
        asked.run.put(of, name.value, Tensor(TensorKind.BUFFER, of, varies=may_vary(value)) if value != NONE else NONE)
        persistent = asked.get(2, "persistent", TRUE_VALUE)
        of.data.setdefault("buffers", {})[name.value] = persistent
    return NONE


@method(_MODULES, "register_parameter")
def _register_parameter(asked: Call, of: Value) -> Value:
    name = asked.run.settle(asked.get(0, "name"))
    if isinstance(of, Obj) and isinstance(name, Const):
        asked.run.put(
            of, name.value, Tensor(TensorKind.PARAMETER, of, varies=False) if asked.get(1, "param") != NONE else NONE
        )
    return NONE


@method(_MODULES, "add_module", "register_module", "append")
def _add_module(asked: Call, of: Value) -> Value:
    name = asked.run.settle(asked.get(0, "name"))
    if isinstance(of, Obj):
        if asked.name == "append":
            count = sum(isinstance(key, int) for key in of.fields)
            if of.turn == asked.run.turn:
                asked.run.put(of, count, name)
            else:
                add_rest(asked.run, of, name)
        elif isinstance(name, Const):
            asked.run.put(of, name.value, asked.get(1, "module"))
    return of if asked.name == "append" else NONE


@_module_method("register_forward_hook", "register_forward_pre_hook", "register_full_backward_hook", "register_backward_hook",
                "register_comm_hook", "register_state_dict_post_hook", "register_load_state_dict_post_hook", "_register_state_dict_hook",
                "_register_load_state_dict_pre_hook", "register_full_backward_pre_hook", "register_load_state_dict_pre_hook")  # fmt: skip
def _hook(asked: Call, of: Value) -> Value:
    is_comm = "comm" in asked.name
    first = asked.get(1 if is_comm else 0, "hook", NONE)
    state = {"state": asked.get(0, "state", NONE)} if is_comm else {}
    asked.run.event(Happening.HOOK, asked.node, of=of, name=Const(asked.name), hook=asked.run.settle(first), **state)
    if "comm" not in asked.name and "state_dict" not in asked.name:
        asked.run.call(
            first,
            Given((of, asked.run.unread(asked.node, tag="input"), asked.run.unread(asked.node, tag="output"))),
            asked.node,
        )
    return asked.run.unread(asked.node, tag="handle")


@method(Role.WRAPPER, "_set_static_graph")
def _tuned(asked: Call, of: Value) -> Value:  # noqa: ARG001
    return NONE


@method((Role.WRAPPER,), "_register_builtin_comm_hook")
def _builtin_hook(asked: Call, of: Value) -> Value:
    kind = asked.run.settle(asked.get(0, "comm_hook_type", NONE))
    asked.run.event(Happening.HOOK, asked.node, of=of, name=Const("register_comm_hook"), hook=kind, state=NONE)
    return NONE


@function("torch.distributed.algorithms.ddp_comm_hooks.register_ddp_comm_hook")
def _ddp_hook(asked: Call) -> Value:
    kind, of = asked.run.settle(asked.get(0, "comm_hook_type", NONE)), asked.run.settle(asked.get(1, "model", NONE))
    asked.run.event(
        Happening.HOOK,
        asked.node,
        of=of,
        name=Const("register_comm_hook"),
        hook=kind,
        state=asked.get(2, "state", NONE),
    )
    return NONE


@method((Role.WRAPPER, Role.ENGINE, Role.SHARDED), "no_sync")
def _no_sync(asked: Call, of: Value) -> Value:
    asked.run.event(Happening.SYNC, asked.node, of=of, value=Const("no_sync"))
    return asked.run.make(Kind.LIBRARY, asked.node, made_by="no_sync")


@method((Role.WRAPPER,), "join")
def _join(asked: Call, of: Value) -> Value:
    asked.run.event(Happening.OPAQUE, asked.node, function=Const("join"), thing0=of)
    return asked.run.make(Kind.LIBRARY, asked.node, made_by="join")


@method(_MODULES, "compile")
def _compile(asked: Call, of: Value) -> Value:
    asked.run.event(Happening.COMPILED, asked.node, model=of, name=Const("compile"))
    return NONE


@method(_MODULES, "forward")
def _forward(asked: Call, of: Value) -> Value:
    return forward(asked.run, of, "forward", asked.given, asked.node) if isinstance(of, Obj) else NONE


@method((Role.AVERAGED,), "update_parameters", "update", "update_attr")
def _update_average(asked: Call, of: Value) -> Value:
    asked.run.event(Happening.WEIGHT_READ, asked.node, of=asked.get(0, "model", NONE), name=Const(asked.name), into=of)
    return NONE


# -- optimizers, schedulers, scalers ---------------------------------------------------------------------------------


@method(Role.OPTIMIZER, "step")
def step(asked: Call, of: Value) -> Value:
    """A step of an optimizer."""
    asked.run.event(Happening.STEP, asked.node, optimizer=of, closure=asked.get(0, "closure", NONE))
    return NONE


@method(Role.OPTIMIZER, "zero_grad")
def zero_grad(asked: Call, of: Value) -> Value:
    """Gradients are thrown away."""
    asked.run.event(Happening.ZERO_GRAD, asked.node, of=of)
    return NONE


@method((Role.OPTIMIZER, Role.SCHEDULER, Role.SCALER), "state_dict")
def _own_state(asked: Call, of: Value) -> Value:
    run = asked.run
    run.event(Happening.STATE, asked.node, of=of)
    return run.make(Kind.DICT, asked.node, tag="state", open=True, state_dict_of=of)


@method((Role.OPTIMIZER, Role.SCHEDULER, Role.SCALER), "load_state_dict")
def _own_load(asked: Call, of: Value) -> Value:
    asked.run.event(Happening.RESTORE, asked.node, of=of, content=asked.get(0, "state_dict", NONE))
    return NONE


@method(Role.OPTIMIZER, "add_param_group")
def _add_group(asked: Call, of: Value) -> Value:
    asked.run.event(Happening.OPAQUE, asked.node, function=Const("add_param_group"), thing0=of)
    return NONE


@method(Role.OPTIMIZER, "register_step_pre_hook", "register_step_post_hook", "consolidate_state_dict")
def _optimizer_hook(asked: Call, of: Value) -> Value:
    asked.run.event(Happening.HOOK, asked.node, of=of, name=Const(asked.name), hook=asked.get(0, "hook", NONE))
    return NONE


@method(Role.SCHEDULER, "step", "step_update", "step_ReduceLROnPlateau")
def _schedule(asked: Call, of: Value) -> Value:
    asked.run.event(Happening.SCHEDULE, asked.node, scheduler=of, metric=asked.get(0, "metrics", NONE))
    return NONE


@method(Role.SCHEDULER, "get_last_lr", "get_lr")
def _rates(asked: Call, of: Value) -> Value:
    made = asked.run.make(Kind.LIST, asked.node, open=True)
    asked.run.put(made, REST, Expr("rate", of if isinstance(of, Obj) else "?", loops=frozenset(asked.run.loops)))
    return made


@method(Role.SCALER, "scale")
def _scale(asked: Call, of: Value) -> Value:
    loss = asked.run.settle(asked.get(0, "outputs", NONE))
    asked.run.event(Happening.SCALE, asked.node, scaler=of, loss=loss)
    tensors = [one for one in asked.run.things_in(loss) if isinstance(one, Tensor)]
    made = joined_tensor(tensors) if tensors else Tensor()
    scaler = of if isinstance(of, Obj) else None
    return Tensor(made.kind, made.of, made.forwards, scaler, varies=made.varies, factors=made.factors)


@method(Role.SCALER, "step")
def _scaler_step(asked: Call, of: Value) -> Value:
    run = asked.run
    optimizer = run.settle(asked.get(0, "optimizer", NONE))
    run.event(Happening.STEP, asked.node, optimizer=optimizer, scaler=of, closure=asked.get(1, "closure", NONE))
    return run.unread(asked.node)


@method(Role.SCALER, "unscale_")
def _unscale(asked: Call, of: Value) -> Value:
    asked.run.event(Happening.UNSCALE, asked.node, scaler=of, optimizer=asked.get(0, "optimizer", NONE))
    return NONE


@method(Role.SCALER, "_found_inf_per_device", "_check_inf_per_device")
def _infinities(asked: Call, of: Value) -> Value:
    asked.run.event(Happening.ACCESS, asked.node, of=of, name=Const(asked.name))
    return asked.run.unread(asked.node)


@method(Role.SCALER, "update")
def _update(asked: Call, of: Value) -> Value:
    asked.run.event(Happening.SCALER_UPDATE, asked.node, scaler=of)
    return NONE


@method(Role.SCALER, "get_scale", "is_enabled", "get_growth_factor", "get_backoff_factor", "get_growth_interval")
def _about_scaler(asked: Call, of: Value) -> Value:
    if asked.name == "is_enabled" and isinstance(of, Obj):
        return of.value_of("enabled", TRUE_VALUE)
    return Expr("scaler", of if isinstance(of, Obj) else "?", asked.name, loops=frozenset(asked.run.loops))


# -- attributes ------------------------------------------------------------------------------------------------------


def _wrapped_module(run: Machine, of: Obj, node: ast.AST) -> Value:
    run.event(Happening.ACCESS, node, of=of, name=Const("module"))
    return of.value_of("module", NONE)


def _optimizer_state(run: Machine, of: Obj, node: ast.AST) -> Value:
    run.event(Happening.ACCESS, node, of=of, name=Const("state"))
    return run.make(Kind.DICT, node, tag="state", state_of=of, open=True)


def _training(run: Machine, of: Obj, node: ast.AST) -> Value:
    run.event(Happening.ACCESS, node, of=of, name=Const("training"))
    return Expr("training", of, loops=frozenset(run.loops))


ATTRIBUTES.update(
    {
        (Role.WRAPPER, "module"): _wrapped_module,
        (Role.REPLICAS, "module"): _wrapped_module,
        (Role.SHARDED, "module"): _wrapped_module,
        (Role.ENGINE, "module"): _wrapped_module,
        (Role.OPTIMIZER, "state"): _optimizer_state,
        (Role.WRAPPER, "training"): _training,
        (Role.ENGINE, "training"): _training,
        (Role.MODEL, "training"): lambda run, of, node: Expr("training", of, loops=frozenset(run.loops)),  # noqa: ARG005
    }
)


# -- gradients, files ------------------------------------------------------------------------------------------------


@function("torch.nn.utils.clip_grad_norm_", "torch.nn.utils.clip_grad_value_")
def clip(asked: Call) -> Value:
    """Gradients are clipped: by their norm, or each by itself."""
    run = asked.run
    by_value = asked.name.endswith("value_")
    what = {
        "params": run.settle(asked.get(0, "parameters", NONE)),
        "limit": run.settle(asked.get(1, "clip_value" if by_value else "max_norm", NONE)),
        "norm": asked.get(2, "norm_type", Const(2.0)) if not by_value else NONE,
        "by_value": Const(by_value),
        "raises": asked.get(3, "error_if_nonfinite", FALSE_VALUE) if not by_value else FALSE_VALUE,
    }
    run.event(Happening.CLIP, asked.node, **what)
    return NONE if by_value else total_norm(run, what["params"])


def total_norm(run: Machine, parameters: Value) -> Value:
    """The norm of the gradients of some parameters."""
    tensors = norms_in(run, parameters)
    gradients = tuple(
        replace(one, kind=TensorKind.GRADIENT)
        for one in tensors
        if one.kind in {TensorKind.PARAMETER, TensorKind.GRADIENT}
    )
    each_norm = norm_of(gradients) if len(gradients) == len(tensors) else None
    found = norm_of(norms_in(run, each_norm)) if each_norm is not None else None
    return Tensor(varies=False) if found is None else found


@function("torch.nn.utils.get_total_norm")
def _total(asked: Call) -> Value:
    second = is_second(asked.get(1, "norm_type", Const(2.0)))
    return total_norm(asked.run, asked.get(0, "tensors", NONE)) if second else Tensor(varies=False)


@function("torch.norm", "torch.linalg.norm", "torch.linalg.vector_norm", "torch._foreach_norm")
def _norm(asked: Call) -> Value:
    of = asked.run.settle(asked.get(0, "tensors" if "_foreach" in asked.name else "input", asked.get(0, "x", NONE)))
    if is_second(asked.get(1, "ord" if "linalg" in asked.name or "_foreach" in asked.name else "p", Const(2))):
        found = norm_of(norms_in(asked.run, of))
        if found is not None:
            return found
    return of_torch(asked.run, asked.name, asked.given, asked.node)


@function(
    "torch.stack",
    "torch.cat",
    "torch.hstack",
    "torch.tensor",
    "torch.as_tensor",
    "torch.sum",
    "torch.sqrt",
    "torch.square",
    "torch.pow",
    "math.sqrt",
)
def _of_norms(asked: Call) -> Value:
    norms = norms_in(asked.run, asked.run.settle(asked.get(0, "tensors", NONE)))
    if (
        norms
        and len({(one.kind, one.power) for one in norms}) == 1
        and norms[0].kind in {TensorKind.NORM, TensorKind.EACH_NORM}
    ):
        found: Value | None
        match asked.name.rpartition(".")[2]:
            case "sum":
                found = summed(norms)
            case "sqrt" | "square" | "pow" as name:
                power = asked.get(1, "exponent") if name == "pow" else Const(0.5 if name == "sqrt" else 2)
                powers = [powered(one, power) for one in norms]
                found = choose((MAYBE, one) for one in powers if one is not None) if None not in powers else None
            case _:
                found = choose((MAYBE, one) for one in norms)
        if found is not None:
            return found
    return call_unlisted(asked.run, asked.name, asked.given, asked.node)


@function("torch.autograd.backward")
def _backward(asked: Call) -> Value:
    run = asked.run
    names = ("grad_tensors", "retain_graph", "create_graph", "grad_variables", "inputs")
    given = {name: value for index, name in enumerate(names, 1) if (value := asked.get(index, name, NONE)) != NONE}
    if "grad_tensors" in given:
        given["gradient"] = given.pop("grad_tensors")
    run.event(
        Happening.BACKWARD,
        asked.node,
        loss=run.settle(asked.get(0, "tensors", NONE)),
        function=Const(asked.name),
        **given,
    )
    return NONE


@function("torch.autograd.grad", "torch.func.grad", "torch.func.vmap", "torch.func.functional_call")
def _grad(asked: Call) -> Value:
    run = asked.run
    outputs = run.settle(asked.get(0, "outputs", NONE))
    run.event(
        Happening.GRADIENT, asked.node, outputs=outputs, inputs=asked.get(1, "inputs", NONE),
        create_graph=asked.get(4, "create_graph", FALSE_VALUE) if asked.name == "torch.autograd.grad" else TRUE_VALUE,
    )  # fmt: skip
    tensors = [one for one in run.things_in(outputs) if isinstance(one, Tensor)]
    return joined_tensor(tensors) if tensors else Tensor()


@function("torch.save")
def _save(asked: Call) -> Value:
    run = asked.run
    run.event(Happening.SAVE, asked.node, content=asked.get(0, "obj", NONE), path=run.settle(asked.get(1, "f", NONE)))
    return NONE


@function("torch.load", "torch.hub.load_state_dict_from_url", "torch.utils.model_zoo.load_url")
def _load(asked: Call) -> Value:
    run = asked.run
    path = run.settle(asked.get(0, "f", NONE))
    run.event(Happening.READ, asked.node, path=path)
    return Expr("loaded", path if isinstance(path, Const | Expr) else "?", asked.node, loops=frozenset(run.loops))


@function("torch.utils.checkpoint.checkpoint", "torch.utils.checkpoint.checkpoint_sequential")
def _checkpointed(asked: Call) -> Value:
    first, *rest = asked.given.args
    named = {
        name: value
        for name, value in asked.given.named.items()
        if name not in {"use_reentrant", "preserve_rng_state", "context_fn"}
    }
    return asked.run.call(first, Given(tuple(rest), named), asked.node)


@function("torch.utils.data.random_split", "torch.utils.data.Subset")
def _data(asked: Call) -> Value:
    return asked.run.unread(asked.node, asked.given.args)


@function("torch.cuda.amp.custom_fwd", "torch.cuda.amp.custom_bwd", "torch.jit.ignore", "torch.jit.unused", "torch.jit.export",
          "torch._dynamo.disable", "torch.compiler.disable", "torch.no_grad.decorated")  # fmt: skip
def _transparent(asked: Call) -> Value:
    first = asked.given.args[0] if asked.given.args else NONE
    return first if isinstance(first, Obj) else Lib("functools.wraps.wrapped")


@function("torch.utils.tensorboard.SummaryWriter")
def _writer(asked: Call) -> Value:
    return asked.run.make(Kind.LIBRARY, asked.node, made_by="torch.utils.tensorboard.SummaryWriter")


_BY_TYPE = {"ALLREDUCE": "allreduce_hook", "FP16_COMPRESS": "fp16_compress_hook", "BF16_COMPRESS": "bf16_compress_hook"}


@function("torch.distributed.algorithms.ddp_comm_hooks.register_ddp_comm_hook")
def _registered(asked: Call) -> Value:
    """A communication hook that is chosen by its name."""
    kind = asked.run.settle(asked.get(0, "comm_hook_type", NONE))
    name = kind.name.rpartition(".")[2] if isinstance(kind, Lib) else ""
    hook = Lib(f"torch.distributed.algorithms.ddp_comm_hooks.default_hooks.{_BY_TYPE.get(name, name)}")
    asked.run.event(
        Happening.HOOK,
        asked.node,
        of=asked.run.settle(asked.get(1, "model", NONE)),
        name=Const("register_comm_hook"),
        hook=hook,
        state=asked.get(2, "state", NONE),
    )
    return NONE


@function("torch.nn.utils.vector_to_parameters", "torch.nn.utils.convert_parameters.vector_to_parameters")
def _into_parameters(asked: Call) -> Value:
    for one in asked.run.things_in(asked.run.settle(asked.get(1, "parameters", NONE))):
        changed_in_place(asked.run, one, asked.node, "vector_to_parameters")
    return NONE


@_module_method("get_parameter")
def _one_parameter(_asked: Call, of: Value) -> Value:
    owner = next((one for one in each(of) if isinstance(one, Obj | Expr)), None)
    return Tensor(TensorKind.PARAMETER, owner, varies=False, picked=Literal(Expr("called", "?")))


@any_method("set_epoch")
@method(Role.SAMPLER, "set_epoch")
def _set_epoch(asked: Call, of: Value) -> Value:
    asked.run.event(Happening.EPOCH, asked.node, of=of, epoch=asked.get(0, "epoch", NONE))
    return NONE
