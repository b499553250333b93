"""Where configs enter DeepSpeed: the functions from which the walk starts."""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Iterable
from pathlib import Path
from types import FunctionType, ModuleType

from dsmigrate.derivation.child.importer import ENTRY, READERS
from dsmigrate.derivation.child.record import Record
from dsmigrate.derivation.child.values import Arguments, Item, Struct, Values, join, structs
from dsmigrate.derivation.child.walk import WalkError, walk

ROOT = Item("")
ENGINES = (("deepspeed.runtime.engine", "DeepSpeedEngine"), ("deepspeed.runtime.pipe.engine", "PipelineEngine"))
HANDED_OVER: tuple[tuple[str, str, str, tuple[str, ...] | Item], ...] = (
    (
        "deepspeed.runtime.data_pipeline.data_routing.basic_layer",
        "RandomLayerTokenDrop.init_config",
        "config",
        ("data_efficiency_config", "data_routing", "random_ltd"),
    ),
    (
        "deepspeed.module_inject.autotp_config",
        "AutoTPConfig.from_dict",
        "config_dict",
        Item("tensor_parallel.partition_config"),
    ),
)
"""Functions that get a part of the config through the user's model or through a free-form field: module, name,
parameter, and the part, as a path or as what the config object has of it."""


ONLY_PASS_ON = frozenset(
    {
        "deepspeed.runtime.hybrid_engine",
        "deepspeed.runtime.pipe.dualpipev",
        "deepspeed.runtime.superoffload.superoffload_stage3",
        "deepspeed.runtime.zero.mics",
        "deepspeed.runtime.zero.parameter_offload",
        "deepspeed.runtime.zero.stage3",
    }
)
"""Modules that get the whole config and do nothing with it but make a DeepSpeedConfig of it."""


def walk_all(record: Record) -> None:
    """Walk DeepSpeedConfig first: it names the keys; then everything that reads them at run time."""
    kind = load("deepspeed.runtime.config").DeepSpeedConfig
    config = Struct(kind=kind)
    walk(kind.__init__, Arguments(((config,), (ROOT,))), record)
    for receiver, path in record.handed_over:
        raise WalkError(f"DeepSpeedConfig gives {receiver} {path or 'the config'}, and its module is none of READERS")
    kinds = [getattr(load(module), name) for module, name in ENGINES]
    record.built.update(kinds)
    walk(load(ENTRY).initialize, Arguments(named={"config": (ROOT,)}), record)
    engine = Struct()
    for kind in kinds:
        engine = walk_engine(kind, config, record)
    given: dict[str, Values] = {"engine": (engine,), "ds_config": (ROOT,), "deepspeed_config": (ROOT,)}
    for function, name in functions_with(given, record.root):
        walk(function, Arguments(named={name: given[name]}), record)
    for module, name, parameter, part in HANDED_OVER:
        if exists(module, record.root):
            values = (part,) if isinstance(part, Item) else within(config, part)
            walk(find(load(module), name), Arguments(((Struct(),),), {parameter: values}), record)
    for receiver, path in record.handed_over:
        if not path and receiver.rpartition(".")[0] not in ONLY_PASS_ON:
            raise WalkError(f"{receiver} gets the whole config, and its module is none of READERS or ONLY_PASS_ON")


def load(module: str) -> ModuleType:
    """Import a module of the release; an error names it."""
    try:
        return importlib.import_module(module)
    except Exception as error:
        raise ImportError(f"{module} cannot be run: {type(error).__name__}: {error}") from error


def walk_engine(kind: type, config: Struct, record: Record) -> Struct:
    """Walk every method of an engine, which reads the rest from the config object it holds."""
    made = Struct(kind=kind, entries={"_config": (config,), "config": (ROOT,)})
    for method in list(vars(kind).values()):
        walk(getattr(method, "__func__", method), Arguments(((made,),)), record)
    return made


def functions_with(names: Iterable[str], root: Path) -> list[tuple[FunctionType, str]]:
    """Return the functions of the readers that have a parameter of one of these names, and its name."""
    found = []
    for module in sorted(READERS - {ENTRY, *(name for name, _ in ENGINES)}):
        for value in vars(load(module)).values() if exists(module, root) else ():
            if isinstance(value, FunctionType) and value.__module__ == module:
                has = inspect.signature(value).parameters
                found += [(value, name) for name in names if name in has]
    return found


def exists(module: str, root: Path) -> bool:
    """Return whether the release has a module."""
    return root.joinpath(*module.split(".")).with_suffix(".py").is_file()


def find(module: ModuleType, name: str) -> object:
    """Return a function of a module by its dotted name.

    Raises AttributeError when the module lacks it: its keys would be gone without a word.
    """
    found: object = module
    for part in name.split("."):
        found = getattr(found, part)
    return getattr(found, "__func__", found)


def within(config: Struct, names: tuple[str, ...]) -> Values:
    """Return what the config object has under an attribute and the keys below it."""
    found: Values = (config,)
    for name in names:
        found = join(*(owner.entries.get(name, ()) for owner in structs(found)))
    return found
