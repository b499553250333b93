"""The standard library: built-in functions, the environment, options of the command line, paths, copies, processes."""

from __future__ import annotations

import ast
import builtins
import collections
import functools
import numbers
import posixpath
import types
from collections.abc import Callable
from types import ModuleType
from typing import Any

from dsmigrate.codemod.analysis.classes import bases_of, is_closed, looked_up
from dsmigrate.codemod.analysis.conditions import (
    FALSE,
    LARGEST,
    MAYBE,
    TRUE,
    Condition,
    Literal,
    both,
    either,
    negate,
    options_of,
)
from dsmigrate.codemod.analysis.containers import CONFIGS, extended, from_items, length, settings_written
from dsmigrate.codemod.analysis.copying import copied
from dsmigrate.codemod.analysis.events import BlockKind, Happening
from dsmigrate.codemod.analysis.expressions import from_condition
from dsmigrate.codemod.analysis.library import note_file, run_functions, what_is_entered
from dsmigrate.codemod.analysis.machine import Given, Machine, Stop
from dsmigrate.codemod.analysis.norms import norms_in, summed
from dsmigrate.codemod.analysis.picks import with_test
from dsmigrate.codemod.analysis.roles import is_tracked, role_of
from dsmigrate.codemod.analysis.state import choose
from dsmigrate.codemod.analysis.summaries.registry import (
    TESTS,
    Call,
    Role,
    canonical,
    classes,
    function,
    method,
    role_of_class,
)
from dsmigrate.codemod.analysis.values import (
    FALSE_VALUE,
    NONE,
    TRUE_VALUE,
    UNBOUND,
    Bound,
    Choice,
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
from dsmigrate.codemod.program.project import ROOT

RANKS = {
    "RANK": "rank", "LOCAL_RANK": "local_rank", "WORLD_SIZE": "world_size", "SLURM_PROCID": "rank", "SLURM_LOCALID": "local_rank",
    "SLURM_NTASKS": "world_size", "OMPI_COMM_WORLD_RANK": "rank", "OMPI_COMM_WORLD_LOCAL_RANK": "local_rank",
    "OMPI_COMM_WORLD_SIZE": "world_size", "PMI_RANK": "rank", "PMI_SIZE": "world_size", "MV2_COMM_WORLD_LOCAL_RANK": "local_rank",
    "MPI_LOCALRANKID": "local_rank",
}  # fmt: skip
_OF_EACH_RANK = frozenset(name for name, what in RANKS.items() if what != "world_size") | {
    "GROUP_RANK",
    "NODE_RANK",
    "SLURM_NODEID",
}

classes(Role.REGION, "contextlib.nullcontext contextlib.suppress contextlib.ExitStack contextlib.redirect_stdout")
classes(Role.PARSER, "argparse.ArgumentParser configargparse.ArgumentParser configargparse.ArgParser")


def environment(run: Machine, key: Value, default: Value = UNBOUND) -> Value:
    """A variable of the environment."""
    if not isinstance(key, Const):
        return Expr("env", key if isinstance(key, Expr) else "?")
    written = run.flags.get(("env", key.value))
    found = Expr("env", key.value, varies=key.value in _OF_EACH_RANK)
    if written is not None:
        return run.settle(written)
    if default is UNBOUND or default == NONE:
        return found
    return Expr(
        "env",
        key.value,
        default if isinstance(default, Const | Expr) else "?",
        varies=key.value in _OF_EACH_RANK or may_vary(default),
    )


# -- built-in functions ----------------------------------------------------------------------------------------------


@function("builtins.isinstance", "builtins.issubclass")
def _isinstance(asked: Call) -> Value:
    run = asked.run
    of, kinds = run.settle(asked.get(0, "obj")), run.settle(asked.get(1, "cls"))
    names = _classes_in(kinds)
    options: list[tuple[Condition, Value]] = list(of.options) if isinstance(of, Choice) else [(TRUE, of)]
    found: list[Condition] = []
    for condition, option in options:
        if option is UNBOUND:
            continue
        known = _is_class_of(option, names) if asked.name == "builtins.issubclass" else _is_of(option, names)
        if known is None:
            atom = Expr("isinstance", option if isinstance(option, Expr | Const | Obj) else "?", kinds, varies=False)
            found.append(both(condition, Literal(atom)))
        elif known:
            found.append(condition)
    _note_test(asked, of, kinds)
    return from_condition(either(*found))


@function("ultralytics.utils.torch_utils.is_parallel", "ultralytics.yolo.utils.torch_utils.is_parallel")
def _is_parallel(asked: Call) -> Value:
    """Functions of libraries that ask whether a model is wrapped."""
    kinds = Tup((Lib("torch.nn.parallel.DistributedDataParallel"), Lib("torch.nn.DataParallel")))
    return _isinstance(Call(asked.run, asked.name, Given((asked.get(0, "model"), kinds)), asked.node))


def _note_test(asked: Call, of: Value, kinds: Value) -> None:
    wrappers = {Role.WRAPPER, Role.REPLICAS, Role.SHARDED, Role.ENGINE}
    about = any(role_of_class(canonical(one.name)) in wrappers for one in _classes_in(kinds) if isinstance(one, Lib))
    if about or any(role_of(one) in wrappers for one in each(of)):
        things = [one for one in each(of) if is_tracked(asked.run, one)]
        if things or about:
            asked.run.event(Happening.KIND_TEST, asked.node, of=of, kinds=kinds)


def _classes_in(kinds: Value) -> list[Value]:
    found: list[Value] = []
    for one in each(kinds):
        if isinstance(one, Tup):
            found.extend(inner for item in one.items for inner in _classes_in(item))
        else:
            found.append(one)
    return found


_SHELVES: dict[str, tuple[ModuleType, ...]] = {
    "builtins": (builtins,), "types": (types,), "collections": (collections, collections.abc), "collections.abc": (collections.abc,),
    "typing": (collections.abc, collections), "numbers": (numbers,),
}  # fmt: skip


def _class_named(name: str) -> type | None:
    """The class of Python itself that a qualified name stands for."""
    shelf, _, last = name.rpartition(".")
    found = next((getattr(one, last) for one in _SHELVES.get(shelf, ()) if hasattr(one, last)), None)
    return found if isinstance(found, type) else None


def _has_all(cls: Obj, name: str) -> bool:
    """Whether a class of the script has what an abstract class of Python asks for: ``__call__``, ``__iter__``."""
    asked = getattr(_class_named(name), "__abstractmethods__", ())
    is_module = any(base == "torch.nn.Module" for base in bases_of(cls))
    return bool(asked) and all(looked_up(cls, one) or (is_module and one == "__call__") for one in asked)


def _is_plain_of(plain: type, names: set[str], *, unsure: bool) -> bool | None:
    """Whether plain data is of one of some classes; of what may be a tuple of classes, as in ``six``, that is not known."""
    if any(cls is not None and issubclass(plain, cls) for cls in map(_class_named, names)):
        return True
    unread = (name for name in names if _class_named(name) is None and not name.startswith(("torch.", "numpy.")))
    return None if unsure or any(name.rpartition(".")[2].islower() for name in unread) else False


def _type_of_code(of: Value) -> type | None:
    """The type of a class, function, method or module; None for any other value."""
    if isinstance(of, Bound):
        return types.MethodType
    if isinstance(of, Lib):
        return None if role_of_class(canonical(of.name)) is None else type
    return _TYPES_OF_CODE.get(of.kind) if isinstance(of, Obj) else None


_TYPES_OF_CODE = {
    Kind.CLASS: type, Kind.FUNCTION: types.FunctionType, Kind.PARTIAL: functools.partial, Kind.MODULE: types.ModuleType,
}  # fmt: skip


def _is_class_of(of: Value, kinds: list[Value]) -> bool | None:
    """Whether a class is, or comes from, one of some classes."""
    names = {canonical(one.name) for one in kinds if isinstance(one, Lib)}
    if isinstance(of, Lib):
        return True if canonical(of.name) in names else None
    if not isinstance(of, Obj) or of.kind is not Kind.CLASS:
        return None
    if any(one in of.data["order"] for one in kinds) or names & {canonical(name) for name in bases_of(of)}:
        return True
    return False if is_closed(of) else None


def _is_of(of: Value, kinds: list[Value]) -> bool | None:
    names = {canonical(one.name) for one in kinds if isinstance(one, Lib)}
    code = _type_of_code(of)
    if code is not None:
        asked = [_class_named(name) for name in names]
        if any(cls is not None and issubclass(code, cls) for cls in asked):
            return True
        return False if len(names) == len(kinds) and None not in asked else None  # a metaclass may answer
    unsure = any(isinstance(one, Expr) for one in kinds)
    if isinstance(of, Const):
        return _is_plain_of(type(of.value), names, unsure=unsure)
    if isinstance(of, Tup):
        return _is_plain_of(tuple, names, unsure=unsure)
    if isinstance(of, Tensor):
        if names & {"torch.Tensor", "torch.FloatTensor"}:
            return True
        return None
    if isinstance(of, Obj):
        plain = {Kind.LIST: list, Kind.DICT: collections.OrderedDict, Kind.SET: set}.get(of.kind)
        if of.data.get("is_sorted"):
            plain = list
        if plain is not None:
            return _is_plain_of(plain, names, unsure=unsure)
        if of.kind is Kind.INSTANCE and of.cls is not None:
            if any(one in of.cls.data["order"] for one in kinds):
                return True
            if names & {canonical(name) for name in bases_of(of)} or any(_has_all(of.cls, name) for name in names):
                return True
            return False if is_closed(of) else None
        if of.kind is Kind.LIBRARY:
            if canonical(of.made_by) in names:
                return True
            if "torch.nn.Module" in names and role_of_class(of.made_by) in {
                Role.MODEL,
                Role.WRAPPER,
                Role.REPLICAS,
                Role.ENGINE,
            }:
                return True
            if "torch.optim.Optimizer" in names and role_of_class(of.made_by) is Role.OPTIMIZER:
                return True
            if role_of_class(of.made_by) in {Role.WRAPPER, Role.REPLICAS, Role.ENGINE, Role.SCALER}:
                return False
            return (
                None if role_of_class(of.made_by) is None or not names else (False if names & _WRAPPER_NAMES else None)
            )
        return False
    if isinstance(of, Expr) and names and names <= _WRAPPER_NAMES:
        return False  # a wrapper is made by its class; what is not read may be one, which the script would not ask then
    return None


_WRAPPER_NAMES = frozenset(
    [
        "torch.nn.parallel.DistributedDataParallel",
        "torch.nn.DataParallel",
        "apex.parallel.DistributedDataParallel",
        "torch.distributed.fsdp.FullyShardedDataParallel",
        "deepspeed.DeepSpeedEngine",
    ]
)


@function("builtins.hasattr")
def _hasattr(asked: Call) -> Value:
    run = asked.run
    of, name = run.settle(asked.get(0, "obj")), asked.get(1, "name")
    if not isinstance(name, Const):
        return run.unread(asked.node, asked.given.all())
    found: list[Condition] = []
    options = of.options if isinstance(of, Choice) else ((TRUE, of),)
    for condition, option in options:
        has = _has(option, str(name.value))
        if has is None:
            found.append(both(condition, _there(option, str(name.value))))
        elif has:
            found.append(condition)
    if any(role_of(option) in {Role.WRAPPER, Role.REPLICAS, Role.ENGINE, Role.MODEL} for _, option in options):
        run.event(Happening.KIND_TEST, asked.node, of=of, kinds=name)
    return from_condition(either(*found))


def _there(of: Value, name: str) -> Condition:
    """That an object has an attribute of which nothing is known."""
    return Literal(Expr("hasattr", of, name)) if isinstance(of, Expr | Obj) else MAYBE


TESTS["builtins.isinstance"] = lambda of, kinds: _is_of(of, _classes_in(kinds))
TESTS["builtins.hasattr"] = lambda of, name: _has(of, str(name.value)) if isinstance(name, Const) else None


def _has(of: Value, name: str) -> bool | None:
    if isinstance(of, Obj):
        if of.has(name) and not isinstance(of.at(name), Choice):
            return True
        if of.kind is Kind.NAMESPACE and isinstance(parser := of.data.get("parser"), Obj):
            option = parser.data.get("options", {}).get(name, {})
            defaults = option.get("default", parser.data["arguments"]["named"].get("argument_default"))
            always = option.get("condition") is TRUE and defaults != Lib("argparse.SUPPRESS")
            return True if always else None
        role = role_of(of)
        if role in {Role.WRAPPER, Role.REPLICAS, Role.ENGINE}:
            if name == "module":
                return True
            if role is not Role.ENGINE:
                return name in _MODULE_API
        if of.cls is not None:
            found = looked_up(of.cls, name)
            if found is not None and isinstance(found[0], Obj | Const | Tup):
                return True
            getter = looked_up(of.cls, "__getattr__")  # that of torch.nn.Module gives what was assigned
            if is_closed(of) and not of.data.get("open") and (getter is None or isinstance(getter[0], Lib)):
                if role is Role.MODEL and name in _MODULE_API:
                    return True
                return None if of.has(name) else False
        if role is Role.MODEL and name == "module":
            return False
        if of.made_by.startswith("torch.optim.") and role is Role.OPTIMIZER:
            return name in _OPTIMIZER_API
    if isinstance(of, Expr) and name == "module":
        return False
    return None


_MODULE_API = frozenset(
    [
        "parameters",
        "state_dict",
        "load_state_dict",
        "train",
        "eval",
        "forward",
        "named_parameters",
        "buffers",
        "modules",
        "to",
        "cuda",
        "training",
    ]
)


_OPTIMIZER_API = frozenset(
    ["param_groups", "state", "defaults", "step", "zero_grad", "state_dict", "load_state_dict", "add_param_group"]
)


@function("builtins.getattr")
def _getattr(asked: Call) -> Value:
    run = asked.run
    of, name, default = asked.get(0, "obj"), run.settle(asked.get(1, "name")), asked.get(2, "default")
    if isinstance(name, Choice):
        return choose(
            (condition, _getattr(Call(run, asked.name, Given((of, option, *asked.given.args[2:])), asked.node)))
            for condition, option in options_of(name)
        )
    if isinstance(name, Expr) and isinstance(of, Lib):
        return Expr("getattr", of, name)
    if isinstance(name, Expr) and isinstance(whole := run.settle(of), Expr) and whole.op == "unknown":
        return Expr("part", whole, name)
    if not isinstance(name, Const):
        return run.unread(asked.node, asked.given.all())
    if default is UNBOUND:
        return run.attribute(of, str(name.value), asked.node)
    found: list[tuple[Condition, Value]] = []
    of = run.settle(of)
    for condition, option in of.options if isinstance(of, Choice) else ((TRUE, of),):
        has = _has(option, str(name.value))
        if has is None and isinstance(option, Obj) and option.kind is Kind.NAMESPACE:
            found.append((condition, run.attribute(option, str(name.value), asked.node)))
        elif has is None:
            there = _there(option, str(name.value))
            found += [
                (both(condition, there), run.attribute(option, str(name.value), asked.node)),
                (both(condition, negate(there)), default),
            ]
        else:
            found.append((condition, run.attribute(option, str(name.value), asked.node) if has else default))
    return choose(found)


@function("builtins.setattr")
def _setattr(asked: Call) -> Value:
    name = asked.run.settle(asked.get(1, "name"))
    if isinstance(name, Const) and isinstance(name.value, str):
        asked.run.set_attribute(asked.get(0, "obj"), name.value, asked.get(2, "value"), asked.node)
    elif all(isinstance(value, Const | Expr) for value in each(asked.get(2, "value"))):
        for one in each(asked.get(0, "obj")):
            if isinstance(one, Obj) and one.kind in {Kind.MODULE, Kind.INSTANCE, Kind.NAMESPACE, Kind.CLASS}:
                one.data["open"] = True
                settings_written(asked.run, one)
    return NONE


@function("builtins.delattr", "builtins.print", "builtins.input", "builtins.breakpoint", "builtins.help")
def _none(asked: Call) -> Value:  # noqa: ARG001
    return NONE


@function("builtins.exec")
def _exec(asked: Call) -> Value:
    given = asked.run.settle(asked.get(1, "globals", NONE))
    if given == NONE or (isinstance(given, Obj) and given.kind is Kind.MODULE):
        settings_written(asked.run, given if isinstance(given, Obj) else asked.run.frame.top)
        return NONE
    return asked.run.unread(asked.node, asked.given.all())


@function("sys.modules.__getitem__")
def _loaded_module(asked: Call) -> Value:
    top = asked.run.frame.top
    return top if asked.run.settle(asked.given.args[0]) == top.get("__name__") else asked.run.unread(asked.node)


@function("builtins.len")
def _len(asked: Call) -> Value:
    of = asked.run.settle(asked.get(0, "obj"))
    if isinstance(of, Choice):
        return choose((condition, length(asked.run, option)) for condition, option in options_of(of))
    if isinstance(of, Obj) and of.kind is Kind.INSTANCE and of.cls is not None:
        found = looked_up(of.cls, "__len__")
        if found is not None and isinstance(found[0], Obj):
            return asked.run.call(Bound(found[0], of), Given(), asked.node)
    return length(asked.run, of)


@function("builtins.enumerate", "builtins.zip", "builtins.reversed", "builtins.range", "builtins.map", "itertools.chain",
          "itertools.islice", "itertools.cycle", "itertools.product")  # fmt: skip
def _iterator(asked: Call) -> Value:
    name = asked.name.rpartition(".")[2]
    of = asked.given.args
    if name == "enumerate":
        of = (asked.get(0, "iterable"), asked.get(1, "start", Const(0)))
    elif name in {"islice", "cycle"}:
        name, of = "iter", of[:1]
    elif name == "chain":
        made = asked.run.make(Kind.LIST, asked.node, open=False)
        for one in of:
            extended(asked.run, made, one, asked.node)
        return made
    if not of:
        return asked.run.unread(asked.node, asked.given.all())
    return asked.run.iterator(asked.node, name, *of)


@function("tqdm.trange", "tqdm.auto.trange", "tqdm.autonotebook.trange", "tqdm.notebook.trange", "tqdm.std.trange")
def _shown_range(asked: Call) -> Value:
    return asked.run.iterator(asked.node, "range", *asked.given.args)


@function(
    "builtins.iter",
    "tqdm.tqdm",
    "tqdm.auto.tqdm",
    "tqdm.notebook.tqdm",
    "tqdm.tqdm_notebook",
    "tqdm.autonotebook.tqdm",
    "rich.progress.track",
    "builtins.sorted",
)
def _through(asked: Call) -> Value:
    if not asked.given.args and "iterable" not in asked.given.named:
        return asked.run.make(Kind.LIBRARY, asked.node, made_by="tqdm.bar")
    of = asked.run.settle(asked.get(0, "iterable"))
    if "key" in asked.given.named and isinstance(of, Obj):
        asked.run.call(asked.given.named["key"], Given((asked.run.element(of, asked.node),)), asked.node)
    if isinstance(of, Obj) and of.kind is Kind.INSTANCE and of.cls is not None:
        found = looked_up(of.cls, "__iter__")
        if found is not None and asked.name == "builtins.iter" and isinstance(found[0], Obj):
            return asked.run.call(Bound(found[0], of), Given(), asked.node)
    made = asked.run.iterator(asked.node, "iter", of)
    if asked.name == "builtins.sorted":
        made.data["is_sorted"] = True
    return made


@function("builtins.next")
def _next(asked: Call) -> Value:
    of = asked.run.settle(asked.get(0, "iterator"))
    if isinstance(of, Obj) and of.kind is Kind.INSTANCE and of.cls is not None:
        method_found = looked_up(of.cls, "__next__")
        if method_found is not None and isinstance(method_found[0], Obj):
            return asked.run.call(Bound(method_found[0], of), Given(), asked.node)
    return asked.run.element(of, asked.node)


@function("builtins.filter")
def _filter(asked: Call) -> Value:
    of = asked.get(1, "iterable")
    run = asked.run
    test, element = run.settle(asked.get(0, "function")), run.element(of, asked.node)
    passed = run.truth(run.call(test, Given((element,)), asked.node)) if test != NONE else TRUE
    return run.iterator(asked.node, "element", with_test(element, passed), tag="filter")


@function("builtins.list", "builtins.set", "builtins.frozenset", "collections.deque")
def _list(asked: Call) -> Value:
    kind = Kind.SET if "set" in asked.name else Kind.LIST
    return from_items(asked.run, asked.node, kind, asked.get(0, "iterable", UNBOUND) if asked.given.args else None)


@function("builtins.tuple")
def _tuple(asked: Call) -> Value:
    if not asked.given.args:
        return Tup(())
    items = asked.run.exact_items(asked.given.args[0])
    return Tup(tuple(items)) if items is not None else from_items(asked.run, asked.node, Kind.LIST, asked.given.args[0])


@function("builtins.dict", "collections.OrderedDict", "collections.Counter", "types.SimpleNamespace", "easydict.EasyDict",
          "addict.Dict", "argparse.Namespace")  # fmt: skip
def _dict(asked: Call) -> Value:
    run = asked.run
    last = asked.name.rpartition(".")[2]
    if last in {"SimpleNamespace", "Namespace"}:
        options = [
            one for one in map(run.settle, asked.given.more) if isinstance(one, Obj) and one.made_by == "argparse"
        ]
        if len(options) == 1 and len(asked.given.more) == 1:  # SimpleNamespace(**vars(args))
            made = copied(run, options[0], asked.node, deep=False)
            assert isinstance(made, Obj)
        else:
            made = run.make(Kind.NAMESPACE, asked.node, made_by=asked.name)
            if asked.given.more:
                made.data["open"] = True
        for name, value in asked.given.named.items():
            run.put(made, name, value)
        return made
    source = asked.given.args[0] if asked.given.args else None
    made = from_items(run, asked.node, Kind.DICT, source, dict(asked.given.named))
    if last == "Counter":
        made.data["open"] = True
    return made


@function(*CONFIGS)
def _config(asked: Call) -> Value:
    """A tree of settings: what is written to it are defaults, once a method of it, or what is not read, has had it."""
    return asked.run.make(Kind.NAMESPACE, asked.node, made_by=asked.name, open=True)


@method(Role.OTHER, *(f"{name}.{way}" for name in CONFIGS for way in ("clone", "copy")))
def _config_copied(asked: Call, of: Value) -> Value:
    return copied(asked.run, of, asked.node)


@function("collections.defaultdict")
def _defaultdict(asked: Call) -> Value:
    made = from_items(asked.run, asked.node, Kind.DICT, asked.given.args[1] if len(asked.given.args) > 1 else None)
    made.data["default"] = asked.given.args[0] if asked.given.args else None
    return made


_WORKED_OUT: dict[str, Callable[..., Any]] = {
    "int": int, "float": float, "str": str, "bool": bool, "abs": abs, "round": round, "max": max, "min": min,
    "pow": pow, "repr": repr, "chr": chr, "ord": ord,
}  # fmt: skip


@function("builtins.int", "builtins.float", "builtins.str", "builtins.bool", "builtins.abs", "builtins.round", "builtins.max",
          "builtins.min", "builtins.sum", "builtins.pow", "builtins.divmod", "builtins.repr", "builtins.hash", "builtins.chr", "builtins.ord",
          "builtins.any", "builtins.all", "builtins.bytes", "builtins.complex", "builtins.format", "builtins.hex", "builtins.bin")  # fmt: skip
def _number(asked: Call) -> Value:
    run = asked.run
    name = asked.name.rpartition(".")[2]
    args = [run.settle(value) for value in asked.given.args]
    if len(args) == 1 and isinstance(args[0], Choice) and name not in {"any", "all", "sum", "max", "min"}:
        return choose(
            (condition, _number(Call(run, asked.name, Given((option,)), asked.node)))
            for condition, option in args[0].options
            if option is not UNBOUND
        )
    if args and all(isinstance(value, Const) for value in args) and not asked.given.named:
        work = _WORKED_OUT.get(name)
        if work is not None:
            try:
                found = work(*(value.value for value in args if isinstance(value, Const)))
            except Exception:  # noqa: BLE001 - of whatever it is
                return Expr(name, *args)
            if not isinstance(found, str) or len(found) < 4096:
                return Const(found)
    if name in {"any", "all"} and len(args) == 1:
        items = run.exact_items(args[0])
        if items is not None and len(items) <= LARGEST:
            return from_condition((either if name == "any" else both)(*map(run.truth, items)))
    if name == "bool" and len(args) == 1:
        return from_condition(run.truth(args[0]))
    tensors = [one for value in args for one in run.things_in(value) if isinstance(one, Tensor)]
    if tensors:
        norm = summed(norms_in(run, args[0])) if name == "sum" else args[0] if name in {"float", "abs"} else None
        if norm is not None and all(
            isinstance(one, Tensor) and one.kind in {TensorKind.NORM, TensorKind.EACH_NORM} for one in each(norm)
        ):
            return norm
        if name in {"sum", "abs", "max", "min", "round"}:
            return joined_tensor(tensors)
        return Expr(
            "number",
            joined_tensor(tensors),
            asked.node,
            varies=any(one.varies for one in tensors),
            loops=frozenset(run.loops),
        )
    if name in {"any", "all", "sum"}:
        return run.unread(asked.node, asked.given.all())
    if (
        name in {"int", "str", "float"}
        and len(args) == 1
        and isinstance(args[0], Expr)
        and args[0].op in {"rank", "local_rank", "world_size", "env", "arg"}
    ):
        return args[0] if name == "int" else Expr(name, args[0])
    if name in {"max", "min"} and any(isinstance(value, Obj) for value in args):
        return run.element(args[0], asked.node) if len(args) == 1 else run.unread(asked.node, args)
    if all(isinstance(value, Const | Expr) for value in args) and args:
        return Expr(name, *args)
    return run.unread(asked.node, asked.given.all())


@function("builtins.callable")
def _callable(asked: Call) -> Value:
    of = asked.run.settle(asked.get(0, "obj"))
    if isinstance(of, Obj) and of.kind in {Kind.FUNCTION, Kind.CLASS}:
        return TRUE_VALUE
    if isinstance(of, Const):
        return FALSE_VALUE
    return asked.run.unread(asked.node)


@function("builtins.type")
def _type(asked: Call) -> Value:
    of = asked.run.settle(asked.get(0, "obj"))
    _note_test(asked, of, NONE)
    return choose((condition, _class_of(asked, option)) for condition, option in options_of(of))


def _class_of(asked: Call, of: Value) -> Value:
    if isinstance(of, Obj):
        if of.cls is not None:
            return of.cls
        if of.made_by:
            return Lib(of.made_by)
    return asked.run.unread(asked.node, (of,))


@function("builtins.vars", "builtins.globals", "builtins.locals", "builtins.dir")
def _vars(asked: Call) -> Value:
    run = asked.run
    name = asked.name.rpartition(".")[2]
    source: Obj | None = None
    if name == "globals" or (name == "locals" and run.frame.names is None):
        return run.frame.top if name == "globals" else run.frame.obj
    if name == "locals":
        source = run.frame.obj
    elif asked.given.args:
        of = run.settle(asked.given.args[0])
        if isinstance(of, Obj) and of.kind is Kind.NAMESPACE:
            return of
        source = of if isinstance(of, Obj) else None
    if source is None:
        return run.unread(asked.node, asked.given.all())
    made = run.make(Kind.DICT, asked.node, open=True)
    for key, value in tuple(source.fields.items()):
        if isinstance(key, str):
            run.put(made, key, value)
    return made


@function("builtins.exit", "builtins.quit", "sys.exit", "os._exit", "os.abort")
def _exit(asked: Call) -> Value:
    code = asked.run.settle(asked.get(0, "status", NONE))
    asked.run.event(Happening.EXIT, asked.node)
    is_error = asked.name == "os.abort" or (isinstance(code, Const) and code.value not in {None, 0})
    asked.run.stops.append(Stop(TRUE, is_error))
    return NONE


@function("builtins.super")
def _super(asked: Call) -> Value:
    return asked.run.unread(asked.node)


@function("builtins.open", "io.open", "gzip.open", "codecs.open")
def _open(asked: Call) -> Value:
    _note_paths(asked, asked.given.args[:1])
    note_file(asked.run, asked.name, [asked.get(0, "file")], asked.node)
    made = asked.run.make(Kind.LIBRARY, asked.node, made_by="open")
    asked.run.put(made, "path", asked.get(0, "file"))
    asked.run.put(made, "mode", asked.get(1, "mode", Const("r")))
    return made


@function("io.BytesIO", "io.StringIO")
def _buffer(asked: Call) -> Value:
    return asked.run.make(Kind.LIBRARY, asked.node, made_by=asked.name)


# -- functions of functions ------------------------------------------------------------------------------------------


@function("functools.partial", "functools.partialmethod")
def _partial(asked: Call) -> Value:
    first, *args = asked.given.args
    made = asked.run.make(Kind.PARTIAL, asked.node)
    asked.run.keep(made, first, Given(tuple(args), asked.given.named, asked.given.more))
    return made


@function("functools.wraps", "functools.lru_cache", "functools.cache", "functools.singledispatch", "typing.cast", "functools.update_wrapper",
          "functools.total_ordering")  # fmt: skip
def _decorator(asked: Call) -> Value:
    if asked.name == "typing.cast":
        return asked.get(1, "value")
    if asked.name == "functools.wraps":
        return Lib("functools.wraps.wrapped")
    first = asked.given.args[0] if asked.given.args else NONE
    return first if isinstance(first, Obj | Bound) else Lib("functools.wraps.wrapped")


@function("atexit.register", "signal.signal")
def _registered(asked: Call) -> Value:
    """What is called at some time, or never."""
    run, node = asked.run, asked.node
    registered = asked.get(*((0, "func") if asked.name == "atexit.register" else (1, "handler")))

    def called() -> Value:
        run_functions(run, Given((registered,)), node)
        return NONE

    run.values_of([(MAYBE, called), (MAYBE, lambda: NONE)], node)
    return registered


@function("functools.wraps.wrapped")
def _wrapped(asked: Call) -> Value:
    return asked.get(0, "function")


@function("functools.reduce")
def _reduce(asked: Call) -> Value:
    one = asked.run.element(asked.get(1, "sequence"), asked.node)
    return asked.run.call(asked.get(0, "function"), Given((one, one)), asked.node)


@function("copy.deepcopy", "copy.copy")
def _copied(asked: Call) -> Value:
    run = asked.run
    of = run.settle(asked.get(0, "x"))
    for one in each(of):
        if is_tracked(run, one):
            run.event(Happening.COPY, asked.node, of=one, name=Const(asked.name))
    return copied(run, of, asked.node, deep=asked.name == "copy.deepcopy")


# -- options of the command line -------------------------------------------------------------------------------------


@method(Role.PARSER, "add_argument", "add", "add_arg")
def _add_argument(asked: Call, of: Value) -> Value:
    if not isinstance(of, Obj):
        return NONE
    flags = [value.value for value in asked.given.args if isinstance(value, Const) and isinstance(value.value, str)]
    dest = asked.given.named.get("dest")
    name = (
        dest.value
        if isinstance(dest, Const)
        else next((flag for flag in flags if flag.startswith("--")), flags[0] if flags else "")
    )
    name = str(name).lstrip("-").replace("-", "_")
    parser = of.data.get("parser", of)
    options = parser.data.setdefault("options", {})
    condition = both(*asked.run.conditions)
    first = options.get(name)
    if (
        first
        and first["flags"]
        and first["node"] is not asked.node
        and both(first["condition"], condition) is not FALSE
    ):
        first["flags"] = list(dict.fromkeys((*first["flags"], *flags)))  # whose default and type argparse takes
        return NONE
    options[name] = {
        "flags": flags, "node": asked.node, "module": asked.run.frame.module, "condition": condition, **asked.given.named,
    }  # fmt: skip
    return NONE


@method(Role.PARSER, "add_argument_group", "add_mutually_exclusive_group", "add_parser", "add_subparsers")
def _group(asked: Call, of: Value) -> Value:
    made = asked.run.make(Kind.LIBRARY, asked.node, made_by="argparse.ArgumentParser")
    if isinstance(of, Obj) and asked.name in {"add_argument_group", "add_mutually_exclusive_group"}:
        made.data["parser"] = of.data.get("parser", of)
    else:
        made.data["under"] = of.data.get("under", of) if isinstance(of, Obj) else of
    return made


@method(Role.PARSER, "set_defaults")
def _set_defaults(asked: Call, of: Value) -> Value:
    if isinstance(of, Obj):
        options = of.data.get("parser", of).data.setdefault("options", {})
        for name, value in asked.given.named.items():
            made = {
                "flags": [],
                "node": asked.node,
                "module": asked.run.frame.module,
                "condition": both(*asked.run.conditions),
            }
            options.setdefault(name, made)["default"] = value
    return NONE


@method(Role.PARSER, "parse_args", "parse_known_args", "parse_intermixed_args", "parse_args_into_dataclasses")
def _parse_args(asked: Call, of: Value) -> Value:
    run = asked.run
    if asked.name == "parse_args_into_dataclasses":
        return run.unread(asked.node)
    told = run.settle(asked.get(0, "args", NONE))
    made = run.make(Kind.NAMESPACE, asked.node, made_by="argparse", parser=of)
    made.data["told"] = isinstance(told, Obj) and told.kind is Kind.LIST  # not by the command line
    if asked.name == "parse_known_args":
        return Tup((made, run.unread(asked.node, tag="rest")))
    return made


# -- the environment, paths, processes -------------------------------------------------------------------------------


@function("os.getenv", "os.environ.get", "os.environ.setdefault", "os.environ.pop")
def _getenv(asked: Call) -> Value:
    if asked.name == "os.environ.setdefault":
        asked.run.event(
            Happening.ENVIRONMENT,
            asked.node,
            name=asked.get(0, "key"),
            value=asked.get(1, "default"),
            default=TRUE_VALUE,
        )
    return environment(asked.run, asked.run.settle(asked.get(0, "key")), asked.get(1, "default"))


@function("os.environ.__getitem__", "os.environb.get")
def _environ(asked: Call) -> Value:
    key = asked.run.settle(asked.get(0, "key"))
    if isinstance(key, Const) and ("env", key.value) not in asked.run.flags.fields:
        asked.run.asked.add(str(key.value))
    return environment(asked.run, key)


@function("os.environ.__setitem__")
def _set_environ(asked: Call) -> Value:
    run, (key, value) = asked.run, asked.given.args
    if isinstance(key, Const):
        run.event(Happening.ENVIRONMENT, asked.node, name=key, value=value)
        run.flags.own.setdefault(("env", key.value), environment(run, key))
        run.put(run.flags, ("env", key.value), value)
    return NONE


@function("os.environ.update", "os.putenv")
def _environ_update(asked: Call) -> Value:
    run = asked.run
    given = asked.given.args[0] if asked.given.args else NONE
    pairs = dict(asked.given.named)
    if isinstance(given, Obj) and given.kind is Kind.DICT:
        pairs |= {key: value for key, value in given.fields.items() if isinstance(key, str)}
    for name, value in pairs.items():
        run.event(Happening.ENVIRONMENT, asked.node, name=Const(name), value=value)
        run.flags.own.setdefault(("env", name), environment(run, Const(name)))
        run.put(run.flags, ("env", name), value)
    return NONE


@function("sys.path.append", "sys.path.insert", "sys.path.extend", "site.addsitedir")
def _sys_path(asked: Call) -> Value:
    run = asked.run
    value = run.settle(asked.given.args[-1]) if asked.given.args else NONE
    items = list(each(value))
    if isinstance(value, Obj) and value.kind is Kind.LIST:
        items = list(value.fields.values())
    for one in items:
        if isinstance(one, Const) and isinstance(one.value, str):
            text = one.value if one.value.startswith("/") else ROOT + one.value
            run.project.add_base(posixpath.normpath(text))
        run.event(Happening.SYS_PATH, asked.node, path=one)
    return NONE


def _path_function(name: str, given: tuple[Value, ...], work: object) -> Value:
    if all(isinstance(value, Const) and isinstance(value.value, str) for value in given):
        try:
            return Const(work(*(value.value for value in given if isinstance(value, Const))))  # type: ignore[operator]
        except Exception:  # noqa: BLE001 - of whatever it is
            return Expr("path", name, *given)
    parts = tuple(value if isinstance(value, Const | Expr) else Expr("some") for value in given)
    return Expr("path", name, *parts)


@function("os.path.join", "os.path.dirname", "os.path.basename", "os.path.abspath", "os.path.realpath", "os.path.normpath",
          "os.path.expanduser", "os.path.splitext", "os.path.split", "os.path.relpath")  # fmt: skip
def _path(asked: Call) -> Value:
    name = asked.name.rpartition(".")[2]
    args = tuple(asked.run.settle(value) for value in asked.given.args)
    _note_paths(asked, args)
    at = next((index for index, value in enumerate(args) if isinstance(value, Choice)), None)
    if at is not None:
        return choose(
            (condition, _path(Call(asked.run, asked.name, Given((*args[:at], option, *args[at + 1 :])), asked.node)))
            for condition, option in options_of(args[at])
        )
    if name in {"abspath", "realpath"} and isinstance(args[0], Const) and isinstance(args[0].value, str):
        text = args[0].value
        return Const(posixpath.normpath(text)) if text.startswith("/") else Expr("path", name, args[0])
    if name in {"splitext", "split"}:
        found = _path_function(name, args, getattr(posixpath, name))
        if isinstance(found, Const):
            return Tup((Const(found.value[0]), Const(found.value[1])))
        return found
    if name == "relpath":
        return Expr("path", name, *(value if isinstance(value, Const | Expr) else Expr("some") for value in args))
    return _path_function(name, args, getattr(posixpath, name))


def _note_paths(asked: Call, args: tuple[Value, ...]) -> None:
    """Note options that are taken for paths; one that was not given stops the script there."""
    names = [one.args[0] for one in args if isinstance(one, Expr) and one.op == "arg" and isinstance(one.args[0], str)]
    asked.run.paths += [(name, both(*asked.run.conditions)) for name in names]


@function("pathlib.Path", "pathlib.PurePath", "pathlib.PosixPath", "os.fspath", "builtins.str.join")
def _pathlib(asked: Call) -> Value:
    args = tuple(asked.run.settle(value) for value in asked.given.args)
    if len(args) == 1:
        return args[0]
    return _path_function("join", args, posixpath.join) if args else Const(".")


@function(
    "os.path.exists",
    "os.path.isfile",
    "os.path.isdir",
    "os.path.islink",
    "os.path.lexists",
    "os.path.getmtime",
    "os.path.getsize",
)
def _exists(asked: Call) -> Value:
    path = asked.run.settle(asked.get(0, "path"))
    if asked.name == "os.path.isfile":
        note_file(asked.run, asked.name, [path], asked.node)
    return Expr(
        "exists",
        asked.name.rpartition(".")[2],
        path if isinstance(path, Const | Expr) else "?",
        loops=frozenset(asked.run.loops),
    )


@function("os.makedirs", "os.mkdir", "os.listdir")
def _folder(asked: Call) -> Value:
    _note_paths(asked, tuple(asked.run.settle(value) for value in asked.given.args[:1]))
    return asked.run.unread(asked.node, asked.given.args)


@function("os.getcwd", "os.path.curdir")
def _cwd(asked: Call) -> Value:  # noqa: ARG001
    return Expr("cwd")


@function("torch.multiprocessing.spawn", "torch.multiprocessing.start_processes", "torch.multiprocessing.spawn.spawn")
def _spawn(asked: Call) -> Value:
    run = asked.run
    given = run.settle(asked.get(1, "args", Tup(())))
    args = run.exact_items(given) or []
    more = () if run.exact_items(given) is not None else (given,)
    first = Expr("process", asked.node, varies=True)
    run.event(
        Happening.SPAWN, asked.node, function=asked.get(0, "fn"), count=asked.get(2, "nprocs", Const(1)), args=given,
        join=asked.get(3, "join", TRUE_VALUE), name=Const(asked.name), method=asked.get(5, "start_method", Const("spawn")),
    )  # fmt: skip
    ahead = len(run.stops)
    with run.inside(BlockKind.SPAWNED, asked.node, asked.get(0, "fn")):
        run.call(asked.get(0, "fn"), Given((first, *args), {}, more), asked.node)
    del run.stops[ahead:]
    return NONE


MADE_FOR_A_START = ("Queue", "JoinableQueue", "SimpleQueue", "Lock", "RLock", "Event", "Barrier", "Semaphore", "BoundedSemaphore",
                    "Condition")  # fmt: skip
"""What multiprocessing makes for one way to start processes: it cannot be handed to one that is started otherwise."""


@function("multiprocessing.get_context", "torch.multiprocessing.get_context")
def _context(asked: Call) -> Value:
    method = asked.run.settle(asked.get(0, "method", NONE))
    is_default = method in (NONE, Const("fork"))
    return Lib(asked.name.rpartition(".")[0] if is_default else "multiprocessing.context.SpawnContext")


@function(*(f"torch.multiprocessing.{name}" for name in MADE_FOR_A_START))
def _made_for_a_start(asked: Call) -> Value:
    return asked.run.unread(asked.node, asked.given.all())


@function("multiprocessing.set_start_method", "torch.multiprocessing.set_start_method")
def _start_method(asked: Call) -> Value:
    run = asked.run
    run.event(Happening.ACCESS, asked.node, of=Lib("multiprocessing"), name=Const("set_start_method"),
              value=run.settle(asked.get(0, "method", NONE)))  # fmt: skip
    return NONE


@function(
    "multiprocessing.Process",
    "torch.multiprocessing.Process",
    "multiprocessing.context.Process",
    "multiprocessing.context.SpawnContext.Process",
    "threading.Thread",
)
def _process(asked: Call) -> Value:
    run = asked.run
    target = asked.get(1, "target", NONE)
    made = run.make(Kind.LIBRARY, asked.node, made_by=asked.name)
    if target == NONE:
        return made
    given = run.settle(asked.get(3, "args", Tup(())))
    named = run.settle(asked.get(4, "kwargs", NONE))
    args = run.exact_items(given)
    words = (
        {key: value for key, value in named.fields.items() if isinstance(key, str)} if isinstance(named, Obj) else {}
    )
    if not asked.name.endswith("Thread"):
        numbers = [one for one in (*(args or ()), *words.values()) if isinstance(one, Expr) and one.op == "index"
                   and len(one.args) == 2 and isinstance(one.args[1], Const | Expr)]  # fmt: skip
        run.event(
            Happening.SPAWN, asked.node, function=target, count=numbers[0].args[1] if numbers else run.unread(asked.node),
            args=given, name=Const(asked.name),
        )  # fmt: skip
        args = None if args is None else [_of_process(asked, one) for one in args]
        words = {key: _of_process(asked, one) for key, one in words.items()}
    ahead = len(run.stops)
    with run.inside(BlockKind.SPAWNED, asked.node, target):
        run.call(target, Given(tuple(args or ()), words, () if args is not None else (given,)), asked.node)
    del run.stops[ahead:]
    return made


def _of_process(asked: Call, value: Value) -> Value:
    """What a process of a loop is given: the loop's number is the process's own."""
    if isinstance(value, Expr) and value.loops & frozenset(asked.run.loops):
        return Expr("process", asked.node, *(() if value.op == "index" else (value,)), varies=True)
    return value


@function("fire.Fire", "typer.run", "absl.app.run", "click.command", "hydra.main", "torch.distributed.elastic.multiprocessing.errors.record",
          "torch.distributed.run.main")  # fmt: skip
def _runner(asked: Call) -> Value:
    run = asked.run
    first = run.settle(asked.given.args[0]) if asked.given.args else NONE
    if asked.name in {"fire.Fire", "typer.run", "absl.app.run"}:
        for one in each(first):
            if isinstance(one, Obj) and one.kind is Kind.FUNCTION:
                return run.call(one, Given(more=(run.unread(asked.node, tag="command line"),)), asked.node)
        return run.unread(asked.node, asked.given.all())
    return first if isinstance(first, Obj) else Lib("functools.wraps.wrapped")


@function("dataclasses.dataclass", "attr.s", "attrs.define", "attr.define")
def _dataclass(asked: Call) -> Value:
    first = asked.given.args[0] if asked.given.args else None
    if isinstance(first, Obj):
        first.data["dataclass"] = True
        return first
    return asked.run.make(Kind.LIBRARY, asked.node, made_by="dataclasses.dataclass")


@function("dataclasses.field", "attr.ib", "attrs.field", "attr.field")
def _field(asked: Call) -> Value:
    made = asked.run.make(Kind.LIBRARY, asked.node, made_by="dataclasses.field")
    for name, value in asked.given.named.items():
        if name in {"default", "default_factory", "factory"}:
            made.fields["default_factory" if name == "factory" else name] = value
    return made


@function("dataclasses.asdict", "dataclasses.replace", "dataclasses.astuple")
def _asdict(asked: Call) -> Value:
    of = asked.run.settle(asked.get(0, "obj"))
    if asked.name.endswith("replace"):
        return of
    made = asked.run.make(Kind.DICT, asked.node, open=not isinstance(of, Obj))
    if isinstance(of, Obj):
        for key, value in tuple(of.fields.items()):
            if isinstance(key, str):
                asked.run.put(made, key, value)
    return made


@function("operator.attrgetter", "operator.itemgetter")
def _getter(asked: Call) -> Value:
    return asked.run.unread(asked.node)


@method(Role.REGION, "__enter__")
def _entered(asked: Call, of: Value) -> Value:
    by_hand = (
        isinstance(asked.node, ast.Call)
        and isinstance(asked.node.func, ast.Attribute)
        and asked.node.func.attr == "__enter__"
    )
    if by_hand:
        asked.run.event(Happening.PRECISION, asked.node, manager=of, name=Const("__enter__"))
    return of


@method(Role.REGION, "enter_context")
def _enter_context(asked: Call, of: Value) -> Value:  # noqa: ARG001
    manager = asked.get(0, "cm")
    asked.run.event(Happening.PRECISION, asked.node, manager=manager, name=Const("enter_context"))
    return what_is_entered(asked.run, manager, asked.node)


@function("importlib.import_module", "builtins.__import__")
def _import_module(asked: Call) -> Value:
    name = asked.run.settle(asked.get(0, "name"))
    package = asked.run.settle(asked.get(1, "package", Const("")))
    if isinstance(name, Const) and isinstance(name.value, str):
        dotted = name.value
        if dotted.startswith(".") and isinstance(package, Const):
            dotted = f"{package.value}{dotted}"
        return asked.run.imported(dotted)
    return asked.run.unread(asked.node, asked.given.all())
