"""Things of libraries: what calls, methods and attributes of them give, by the tables of ``summaries``."""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cache
from itertools import takewhile

from dsmigrate.codemod.analysis.classes import bases_of, is_closed, is_mapping, looked_up
from dsmigrate.codemod.analysis.conditions import TRUE, Condition, Literal, options_of
from dsmigrate.codemod.analysis.containers import CONFIGS, REST, container_method, is_hashable, settings_written
from dsmigrate.codemod.analysis.events import Block, BlockKind, Event, Happening
from dsmigrate.codemod.analysis.machine import Given, Machine
from dsmigrate.codemod.analysis.roles import held_by, inside_of, is_known, is_module, is_tracked, role_of
from dsmigrate.codemod.analysis.state import choose, filled
from dsmigrate.codemod.analysis.summaries.registry import (
    ALIASES,
    ANY_METHODS,
    ATTRIBUTES,
    CLASSES,
    FUNCTIONS,
    MAKERS,
    METHODS,
    PARALLEL,
    Call,
    Role,
    canonical,
    role_of_class,
)
from dsmigrate.codemod.analysis.tensors import (
    changed_in_place,
    is_turned,
    may_be_turned,
    tensor_attribute_written,
    tensor_method,
)
from dsmigrate.codemod.analysis.texts import begins, ends, kind_of_device
from dsmigrate.codemod.analysis.values import (
    NONE,
    UNBOUND,
    Bound,
    Choice,
    Const,
    Expr,
    Forward,
    Kind,
    Lib,
    Member,
    Obj,
    Super,
    Tensor,
    TensorKind,
    Thing,
    Tup,
    Value,
    each,
    joined_tensor,
    may_vary,
    option_of,
    owner,
)

# -- what things are -------------------------------------------------------------------------------------------------


# -- calls -----------------------------------------------------------------------------------------------------------


def library_name(name: str) -> Value:
    """What a name in a library is: a function or class by its name, or what is known of it as data."""
    name = canonical(name)
    if name == "os.environ":
        return Lib(name)
    if name == "sys.argv":
        return Expr("argv")
    if name in {"math.inf", "torch.inf"}:
        return Const(float("inf"))
    return Lib(name)


def opaque(run: Machine, function: Value, given_: Given, node: ast.AST, *, tag: str = "") -> Value:
    """What a call gives of which nothing is known; what it is given may come to anything there."""
    inputs = given_.all()
    holder = function.of if isinstance(function, Member) else function
    changed = run.shadows.get(holder) if isinstance(holder, Expr) else holder
    if isinstance(function, Member) and isinstance(changed, Obj) and role_of(changed) is None:
        settings_written(run, changed)  # ``config.merge_from_file(path)``
    for one in inputs:
        for option in each(one):
            if isinstance(option, Obj) and option.made_by in CONFIGS:
                settings_written(run, option)
    things = [one for value in (*inputs, holder) for one in run.things_in(value)]
    tracked = [one for one in things if is_tracked(run, one)]
    if tracked:
        read = {"read": Const(value=True)} if any(map(_is_of_file, things)) else {}
        run.event(
            Happening.OPAQUE,
            node,
            function=function,
            **read,
            **{f"thing{index}": one for index, one in enumerate(tracked)},
        )
    paths = [one for value in inputs for one in each(run.settle(value)) if _is_path(one)]
    if paths:
        note_file(run, "", paths, node)
    tensors = [one for one in things if isinstance(one, Tensor) and one.forwards]
    if tensors:
        return joined_tensor(tensors)
    made = run.unread(node, (*inputs, function), tag=tag)
    note_precision(run, made, given_, node)
    if "batch_size" in given_.named:
        run.sizes[made] = run.settle(given_.named["batch_size"])
    return made


def parameters_in(run: Machine, inputs: Sequence[Value]) -> Tup:
    """The parameters in what code that is not read makes an optimizer of: as such, or in models."""
    found: list[Value] = []
    for one in (one for value in inputs for one in run.things_in(value)):
        for held in (one, *held_by(run, one)) if isinstance(one, Expr) else (one,):
            if isinstance(held, Tensor) and held.kind is TensorKind.PARAMETER:
                found.append(held)
            elif isinstance(held, Obj | Expr) and is_module(run, held):
                inner = run.settle(inside_of(run, held))
                found += [
                    Tensor(TensorKind.PARAMETER, model, varies=False)
                    for model in each(inner)
                    if isinstance(model, Obj | Expr)
                ]
    return Tup(tuple(dict.fromkeys(found)))


def note_precision(run: Machine, made: Value, given: Given, node: ast.AST) -> None:
    """Note that something is made in a type of numbers: a layer, or a model that is read from a file."""
    value = next((given.named[name] for name in ("dtype", "torch_dtype") if name in given.named), NONE)
    if value != NONE:
        run.event(Happening.PRECISION, node, of=made, name=Const("dtype"), value=run.settle(value))


def _is_of_file(value: object) -> bool:
    """Whether a value was read from a checkpoint."""
    return isinstance(value, Expr) and (value.op == "loaded" or any(map(_is_of_file, value.args)))


def call_library(run: Machine, name: str, given: Given, node: ast.AST) -> Value:
    """Call a function or class of a library."""
    name = canonical(name)
    kind = next((kind for start, kind in PARALLEL.items() if name == start or name.startswith(f"{start}.")), None)
    if kind is not None:
        run.event(Happening.PARALLEL, node, name=Const(kind), function=Lib(name))
    if name.startswith("ds_compat."):
        run.event(Happening.PART, node, name=Const(name.partition(".")[2]))
    handler = FUNCTIONS.get(name)
    if handler is not None:
        return handler(Call(run, name, given, node))
    of_class, _, method = name.rpartition(".")
    instance = run.settle(given.args[0]) if given.args else NONE
    if isinstance(instance, Obj) and instance.kind is Kind.INSTANCE and of_class in map(canonical, bases_of(instance)):
        return _of_base(run, instance, of_class, method, Given(given.args[1:], given.named, given.more), node)
    return call_unlisted(run, name, given, node)


def call_unlisted(run: Machine, name: str, given: Given, node: ast.AST) -> Value:
    """Call a function or class of a library of which no table says what it does."""
    role = role_of_class(name)
    if role is not None:
        made = run.make(Kind.LIBRARY, node, made_by=name)
        made_by_library(run, made, name, given, node)
        return made
    head = name.split(".", maxsplit=1)[0]
    if head == "torch":
        return of_torch(run, name, given, node)
    if head in _HARMLESS:
        return _of_data(run, name, given, node)
    run_functions(run, given, node)
    run.handed.add(node)
    return opaque(run, Lib(name), given, node)


_HARMLESS = frozenset(
    [
        "os",
        "sys",
        "time",
        "math",
        "random",
        "numpy",
        "np",
        "logging",
        "json",
        "yaml",
        "re",
        "shutil",
        "datetime",
        "collections",
        "itertools",
        "string",
        "warnings",
        "glob",
        "pathlib",
        "tempfile",
        "socket",
        "subprocess",
        "platform",
        "psutil",
        "tqdm",
        "rich",
        "pprint",
        "pickle",
        "csv",
        "hashlib",
        "uuid",
        "inspect",
        "textwrap",
        "types",
        "typing",
        "operator",
        "io",
        "gc",
        "traceback",
        "struct",
        "base64",
        "zipfile",
        "tarfile",
        "urllib",
        "requests",
        "PIL",
        "cv2",
        "scipy",
        "sklearn",
        "pandas",
        "matplotlib",
        "tensorboardX",
        "wandb",
        "mlflow",
        "visdom",
        "tabulate",
        "prettytable",
        "easydict",
        "yacs",
        "omegaconf",
        "hydra",
        "ruamel",
        "toml",
        "termcolor",
        "colorama",
        "nltk",
        "sacrebleu",
        "rouge",
        "pycocotools",
        "lmdb",
        "h5py",
        "soundfile",
        "librosa",
        "imageio",
        "skimage",
        "editdistance",
        "builtins",
        "abc",
        "enum",
        "threading",
        "queue",
        "signal",
        "contextlib",
        "copy",
        "dataclasses",
        "functools",
        "unittest",
    ]
)
"""Libraries whose functions do nothing to a model, an optimizer or a loss that they are given."""


def of_torch(run: Machine, name: str, given: Given, node: ast.AST) -> Value:
    """A function of torch that is in no table: arithmetic on tensors, or a number about the machine."""
    things = [one for value in given.all() for one in run.things_in(value)]
    tensors = [one for one in things if isinstance(one, Tensor)]
    run_functions(run, given, node)
    out = run.settle(given.named.get("out", NONE))
    if name.endswith("_") or out != NONE:
        written = out if out != NONE else run.settle(given.args[0]) if given.args else NONE
        for one in run.things_in(written) if tensors else ():
            changed_in_place(run, one, node, name.rpartition(".")[2], given.all())
    if tensors:
        made = joined_tensor(tensors)
        made = replace(made, turned=is_turned(made, name, given))
        of_layers = name.startswith("torch.nn.functional.")
        return replace(made, given=frozenset((Forward(node, run.context, Lib(name)),))) if of_layers else made
    tracked = [one for one in things if is_tracked(run, one)]
    if tracked:
        return opaque(run, Lib(name), given, node)
    if name.startswith(
        (
            "torch.cuda.",
            "torch.accelerator.",
            "torch.xpu.",
            "torch.mps.",
            "torch.backends.",
            "torch.version",
            "torch.utils.",
            "torch.distributed.",
            "torch.nn.init.",
        )
    ):
        return run.unread(node, given.all())
    random = name.rpartition(".")[2].startswith("rand")
    made = Tensor(turned=any(map(may_be_turned, given.all())))
    made = Tensor(
        varies=random or any(map(may_vary, given.all())),
        scalar=_has_no_dimensions(run, name, given),
        turned=is_turned(made, name, given),
    )
    if given.named.get("device", NONE) != NONE:  # made where it is needed
        run.event(Happening.MOVED, node, of=made)
    return made


def _has_no_dimensions(run: Machine, name: str, given: Given) -> bool:
    """``torch.tensor(0.5)``, ``torch.ones([])``."""
    first = run.settle(given.args[0]) if given.args else NONE
    if name == "torch.tensor":
        return isinstance(first, Const) and isinstance(first.value, int | float)
    nothing = (
        first == Tup(()) or first == Const(()) or (isinstance(first, Obj) and first.kind is Kind.LIST and not first.own)
    )
    return nothing and name.rpartition(".")[2] in {"ones", "zeros", "empty", "full", "rand", "randn"}


def _of_data(run: Machine, name: str, given: Given, node: ast.AST) -> Value:
    """A function of a library that only deals with data."""
    run_functions(run, given, node)
    values = given.all()
    if name in _OF_FILES:
        note_file(run, name, values, node)
    tensors = [one for value in values for one in run.things_in(value) if isinstance(one, Tensor)]
    head = name.split(".", maxsplit=1)[0]
    if head in {"time", "random", "uuid", "socket", "datetime"}:
        return run.unread(node, values, varies=True)
    if tensors:
        return Expr(
            "number",
            joined_tensor(tensors),
            node,
            varies=any(one.varies for one in tensors),
            loops=frozenset(run.loops),
        )
    if (
        all(isinstance(value, Const | Expr | Lib) for value in values)
        and not given.more
        and head in {"os", "math", "re", "pathlib"}
    ):
        return Expr("call", name, *values)
    return run.unread(node, values)


_OF_FILES = frozenset(
    [
        *(f"shutil.{name}" for name in ("copyfile", "copy", "copy2", "move")),
        *(f"os.{name}" for name in ("remove", "unlink", "rename", "replace")),
    ]
)


def _is_path(value: Value) -> bool:
    """Whether a value may be a path of a file: worked out as one, or text with an ending."""
    if isinstance(value, Const):
        return isinstance(value.value, str) and bool(_ENDING.search(value.value))
    return isinstance(value, Expr) and value.op in {"path", "arg", "setting", "text", "+", "/"}


_ENDING = re.compile(r"\.\w{1,8}$")


@cache
def _described() -> frozenset[str]:
    """The packages of which summaries speak, and Python's own."""
    return frozenset(name.partition(".")[0] for name in (*FUNCTIONS, *CLASSES, *ALIASES)) | sys.stdlib_module_names


def is_unread(value: Value) -> bool:
    """Whether a value is a name of a module that is not read, which may hold anything: ``from settings import AMP``."""
    return isinstance(value, Lib) and "." in value.name and value.name.partition(".")[0] not in _described()


def note_file(run: Machine, name: str, paths: Sequence[Value], node: ast.AST) -> None:
    """Note what happens to files: by a function of a library, a method of a path, or "" for what is not read."""
    run.event(
        Happening.FILE,
        node,
        name=Const(name),
        **{f"path{index}": run.settle(path) for index, path in enumerate(paths)},
    )


def run_functions(run: Machine, given: Given, node: ast.AST) -> None:
    """Run the functions of the script that an unread call is given: it may call them, so that none ends the run.

    One that trains a model of before is called for each batch.
    """
    functions = [one for value in given.all() for one in each(run.settle(value)) if _may_be_called(run, one)]
    if not functions:
        return
    ahead = len(run.stops)
    mark, at = run.state.mark(), len(run.block.items)

    def turn() -> Condition:
        for one in functions:
            run.call(one, Given(more=(run.unread(node, tag="given"),)), node)
        return TRUE

    turn()
    done = [event for item in run.block.items[at:] for event in ([item] if isinstance(item, Event) else item.events())]
    if not any(event.kind is Happening.WRAP for event in done) and any(
        event.kind is Happening.BACKWARD and all(block.kind is not BlockKind.LOOP for block in _up_to(run, event))
        for event in done
    ):
        run.state.undo(mark)
        del run.block.items[at:]
        run.loop(node, NONE, turn, lambda: TRUE)
    del run.stops[ahead:]


def _up_to(run: Machine, event: Event) -> Iterator[Block]:
    """The blocks around an event, from the inside out, up to where the run is now."""
    return takewhile(lambda block: block is not run.block, event.block.around())


def _may_be_called(run: Machine, value: Value) -> bool:
    function = value.function if isinstance(value, Bound) else value
    if isinstance(function, Obj) and function.kind is Kind.FUNCTION:
        return all(frame.node is not function.node for frame in run.frames)
    return isinstance(function, Obj) and function.kind is Kind.PARTIAL


def call_object(run: Machine, of: Obj, given: Given, node: ast.AST) -> Value:
    """Call an object: a model's forward, or ``__call__``."""
    role = role_of(of)
    if of.kind is Kind.INSTANCE and of.cls is not None:
        own = looked_up(of.cls, "__call__")
        if own is not None and isinstance(own[0], Obj):
            return run.call(Bound(own[0], of), given, node)
    if role in {Role.MODEL, Role.WRAPPER, Role.REPLICAS, Role.ENGINE, Role.SHARDED, Role.AVERAGED}:
        return forward(run, of, "", given, node)
    handler = METHODS.get((role, "__call__")) if role is not None else None
    if handler is not None:
        return handler(Call(run, "__call__", given, node), of)
    if of.kind is Kind.LIBRARY and of.made_by == "element":
        return run.unread(node, given.all())
    run_functions(run, given, node)
    run.handed.add(node)
    return opaque(run, of, given, node)


def forward(run: Machine, of: Thing, name: str, given: Given, node: ast.AST) -> Value:
    """A forward of a model, by a call of it (``name`` is "") or by another method; its source is run where it is read."""
    outermost = not run.in_forward or role_of(of) in {Role.WRAPPER, Role.ENGINE}
    inner = inside_of(run, of)
    made = Forward(node, run.context, of)
    if outermost:
        run.event(Happening.FORWARD, node, model=of, method=Const(name), inputs=Tup(given.all()))
    if outermost:
        given = Given(
            tuple(map(_of_rank, given.args)), {key: _of_rank(value) for key, value in given.named.items()}, given.more
        )
    run.in_forward += 1
    try:
        found = _forward_of_source(run, inner, name, given, node) if isinstance(inner, Obj) else None
    finally:
        run.in_forward -= 1
    if found is None:
        found = _of_unread_layer(run, given)
    return tagged(run, found, made, node) if outermost else found


def _of_unread_layer(run: Machine, given: Given) -> Tensor:
    """What the forward of a library's module gives."""
    found = joined_tensor([one for value in given.all() for one in run.things_in(value) if isinstance(one, Tensor)])
    return Tensor(forwards=frozenset() if found.detached else found.forwards, scaler=found.scaler, varies=True)


def _of_rank(value: Value) -> Value:
    """What a model is given out of something unread that is gone over: each rank has its own of it."""

    def is_item(one: object) -> bool:
        return isinstance(one, Expr) and (one.op == "each" or any(map(is_item, one.args)))

    return (
        Expr(value.op, *value.args, varies=True, loops=value.loops)
        if isinstance(value, Expr) and not value.varies and is_item(value)
        else value
    )


def _forward_of_source(run: Machine, of: Obj, name: str, given: Given, node: ast.AST) -> Value | None:
    if of.kind is Kind.INSTANCE and of.cls is not None:
        found = looked_up(of.cls, name or "forward")
        if found is not None and isinstance(found[0], Obj) and found[0].kind is Kind.FUNCTION:
            return run.call_function(found[0], given.behind(of), node)
        return None
    if of.made_by == "torch.nn.Sequential":
        value: Value = given.get(0, "input", Tensor())
        for index in range(sum(isinstance(key, int) for key in of.fields)):
            value = run.call(of.at(index), Given((value,)), node)
        return value
    return None


def tagged(run: Machine, value: Value, made: Forward, node: ast.AST, depth: int = 0) -> Value:
    """What a forward gives, with the forward noted in every tensor of it."""
    match value:
        case Tensor():
            return replace(value, forwards=value.forwards | {made}, given=frozenset((made,)))
        case Tup():
            return Tup(tuple(tagged(run, item, made, node, depth) for item in value.items))
        case Obj(kind=Kind.LIST | Kind.DICT | Kind.INSTANCE) if depth < 4 and role_of(value) is None:
            for key, item in tuple(value.fields.items()):
                run.put(value, key, tagged(run, item, made, node, depth + 1))
            return value
        case Expr(op="unknown" | "field" | "item" | "call"):
            return Tensor(forwards=frozenset((made,)), given=frozenset((made,)))
    if not isinstance(value, Const | Obj | Lib | Bound | Member | Super | Expr):
        options = getattr(value, "options", None)
        if options is not None:
            return choose((condition, tagged(run, option, made, node, depth)) for condition, option in options)
    return value


# -- methods and attributes ------------------------------------------------------------------------------------------


def library_method(run: Machine, of: Value, name: str, given: Given, node: ast.AST) -> Value:
    """Call a method that no source of the script defines."""
    of = run.settle(of)
    asked = Call(run, name, given, node)
    if name in {"is_file", "unlink"} and isinstance(of, Const | Expr):
        note_file(run, name, [of], node)
    match of:
        case Tensor():
            return tensor_method(run, of, name, given, node)
        case Super():
            return _of_super(run, of, name, given, node)
        case Obj(kind=Kind.LIST | Kind.DICT | Kind.SET):
            return container_method(run, of, name, given, node)
        case Obj():
            role = role_of(of)
            handler = METHODS.get((role, name)) if role is not None else None
            if handler is None:
                handler = METHODS.get((Role.OTHER, f"{of.made_by}.{name}"))
            if handler is not None:
                return handler(asked, of)
            if role in {Role.MODEL, Role.WRAPPER, Role.REPLICAS, Role.ENGINE, Role.AVERAGED}:
                if name in ANY_METHODS:
                    return ANY_METHODS[name](asked, of)
                return forward(run, of, name, given, node)
            if of.has(name):
                return run.call(of.at(name), given, node)
            if of.kind is Kind.ITERATOR:
                return _of_iterator(run, of, name, given, node)
            if of.kind is Kind.INSTANCE and name in ANY_METHODS and not is_closed(of):
                return ANY_METHODS[name](asked, of)
        case Lib():
            return call_library(run, f"{of.name}.{name}", given, node)
        case Const():
            return _of_constant(run, of, name, given, node)
        case Tup():
            return run.unread(node, [of, *given.all()])
        case Expr():
            run.note_use(of, name)
            if name in ANY_METHODS:
                return ANY_METHODS[name](asked, of)
            weight = unread_weight(run, of) if name.endswith("_") and not name.startswith("_") else of
            if weight is not of:  # in place, as torch calls such methods
                changed_in_place(run, weight, node, name, given.all())
                return of
            if name in _PURE and all(isinstance(value, Const | Expr | Lib) for value in given.all()):
                known = _told(of, name, given.args)
                return Expr("method", of, name, *given.args) if known is None else Const(known)
            if is_known(run, of):
                return forward(run, of, name, given, node)
    run_functions(run, given, node)
    run.handed.add(node)
    return opaque(run, Member(of, name), given, node)


_PURE = frozenset(
    [
        "split",
        "lower",
        "upper",
        "strip",
        "lstrip",
        "rstrip",
        "startswith",
        "endswith",
        "replace",
        "format",
        "join",
        "get",
        "title",
        "rsplit",
        "partition",
        "rpartition",
        "index",
        "count",
        "isdigit",
        "zfill",
        "joinpath",
        "with_name",
        "with_suffix",
        "resolve",
        "absolute",
        "expanduser",
        "as_posix",
        "is_file",
        "is_dir",
        "exists",
        "keys",
        "values",
        "items",
    ]
)


def _told(text: Expr, name: str, asked: Sequence[Value]) -> bool | None:
    """Whether a text begins or ends in a way, where its known parts tell."""
    match name, asked:
        case "startswith", [Const(value=str(start))]:
            return begins(text, start)
        case "endswith", [Const(value=str(end))]:
            return ends(text, end)
    return None


def _of_constant(run: Machine, of: Const, name: str, given: Given, node: ast.AST) -> Value:
    if not given.named and not given.more:
        for index, value in enumerate(given.args):
            if isinstance(value, Choice) and all(isinstance(one, Const | Expr | Lib) for one in each(value)):
                before, after = given.args[:index], given.args[index + 1 :]
                return choose(
                    (condition, _of_constant(run, of, name, Given((*before, one, *after)), node))
                    for condition, one in options_of(value)
                )
    plain = [value for value in given.args if isinstance(value, Const)]
    if (
        isinstance(of.value, str | int | float | bytes)
        and len(plain) == len(given.args)
        and not given.named
        and not given.more
    ):
        try:
            found = getattr(of.value, name)(*(value.value for value in plain))
        except Exception:  # noqa: BLE001 - of whatever it is
            return run.unread(node, given.all())
        if isinstance(found, list) and all(isinstance(one, str) for one in found):
            made = run.make(Kind.LIST, node, open=False)
            for index, one in enumerate(found[:64]):
                run.put(made, index, Const(one))
            return made
        if isinstance(found, str | int | float | bool | bytes | tuple | type(None)):
            return Const(found)
    if all(isinstance(value, Const | Expr | Lib) for value in given.all()):
        return Expr("method", of, name, *given.args)
    return run.unread(node, given.all())


def _of_iterator(run: Machine, of: Obj, name: str, given: Given, node: ast.AST) -> Value:
    if name in {"next", "__next__", "send"}:
        return run.element(of, node)
    if name in {"set_description", "set_postfix", "update", "close", "write", "refresh"}:
        return NONE
    if name in {"keys", "values", "items", "copy"}:
        return of
    return run.unread(node, given.all())


def _of_super(run: Machine, of: Super, name: str, given: Given, node: ast.AST) -> Value:
    """``super().method(…)`` where the next class in line is a library's."""
    instance = of.instance
    if not isinstance(instance, Obj) or instance.cls is None:
        return NONE
    line = instance.cls.data["order"]
    behind = line[line.index(of.cls) + 1 :] if of.cls in line else line
    base = next((one.name for one in behind if isinstance(one, Lib)), None)
    return _of_base(run, instance, base, name, given, node)


def _of_base(run: Machine, instance: Obj, base: str | None, name: str, given: Given, node: ast.AST) -> Value:
    """A method that a library's class gives to an instance of a class of the script."""
    if name == "__init__":
        if base is not None:
            made_by_library(run, instance, base, given, node)
        return NONE
    if name == "__setattr__" and len(given.args) == 2 and isinstance(given.args[0], Const):
        run.put(instance, given.args[0].value, given.args[1])
        return NONE
    if name == "__getattr__" and given.args and isinstance(given.args[0], Const):
        return run.settle(instance.get(given.args[0].value, Expr("field", instance, given.args[0].value)))
    role = role_of(instance)
    if role is Role.MODEL and name == "forward":
        return _of_unread_layer(run, given)
    handler = METHODS.get((role, name)) if role is not None else None
    if handler is not None:
        return handler(Call(run, name, given, node), instance)
    if role is Role.MODEL and name in ANY_METHODS:
        return ANY_METHODS[name](Call(run, name, given, node), instance)
    return run.unread(node, given.all())


def made_by_library(run: Machine, made: Obj, name: str, given: Given, node: ast.AST) -> None:
    """Note what a class of a library keeps of what it is made with."""
    name = canonical(name)
    role = role_of_class(name)
    made.data.setdefault("arguments", {})
    made.data["arguments"] = {"args": given.args, "named": dict(given.named)}
    if role is Role.MODEL:
        note_precision(run, made, given, node)
    if is_mapping(made):
        kept = [one for value in given.args for one in each(run.settle(value)) if isinstance(one, Obj)]
        for key, value in [pair for one in kept if one.kind is Kind.DICT for pair in one.fields.items()]:
            if isinstance(key, str):
                run.put(made, ("item", key), value)
        for key, value in given.named.items():
            run.put(made, ("item", key), value)
    maker = MAKERS.get(role) if role is not None else None
    if maker is not None:
        maker(Call(run, name, given, node), made)


def attribute_of_object(run: Machine, of: Obj, name: str, node: ast.AST) -> Value:
    """An attribute of an object of a library, or one that no class of the script defines."""
    role = role_of(of)
    handler = ATTRIBUTES.get((role, name)) if role is not None else None
    if handler is not None:
        return run.settle(handler(run, of, node))
    found = of.get(name)
    if found is not None:
        return run.settle(found)
    if of.kind is Kind.NAMESPACE and of.made_by not in CONFIGS:
        return option_of(of, name)
    if name == "__class__" and role in {Role.WRAPPER, Role.REPLICAS, Role.ENGINE}:
        run.event(Happening.KIND_TEST, node, of=of, kinds=NONE)
        return Lib(of.made_by)
    if role is Role.WRAPPER:
        run.event(Happening.ACCESS, node, of=of, name=Const(name))
    if name in _WEIGHTS and of.made_by.startswith("torch.nn.") and role is Role.MODEL:
        return _weight(of, name)
    if of.kind is Kind.DICT and not hasattr(dict, name):  # an EasyDict, to which a file may bring keys
        rest = of.get(REST, UNBOUND)
        return run.settle(rest) if any(is_tracked(run, one) for one in each(rest)) else Expr("field", of, name)
    if of.kind in {Kind.LIST, Kind.DICT, Kind.SET, Kind.ITERATOR, Kind.GENERATOR, Kind.PARTIAL} or role is not None:
        return Member(of, name)
    if is_mapping(of) and not hasattr(dict, name):  # its attributes are its items, or nothing would be there
        return item_of(run, of, Const(name), node)
    if of.kind is Kind.INSTANCE and not is_closed(of):
        return Member(of, name)
    return Expr("field", of, name)


def attribute_of_symbol(run: Machine, of: Expr, name: str) -> Value:
    """An attribute of something that is not read."""
    run.note_use(of, name)
    if name in _WEIGHTS and of.op in {"part", "field"} and is_tracked(run, owner(of)):
        return _weight(of, name)
    if of.op == "torch.device" and name == "type" and of.args:
        kind = kind_of_device(of.args[0])
        if kind is not None:
            return Const(kind)
    return Expr("field", of, name)


_WEIGHTS = frozenset({"weight", "bias", "in_proj_weight", "in_proj_bias"})
"""What layers call their parameters."""


def _weight(of: Obj | Expr, name: str) -> Tensor:
    """One parameter of a layer."""
    return Tensor(TensorKind.PARAMETER, of, varies=False, picked=Literal(Expr("called", name)))


def unread_weight(run: Machine, of: Value) -> Value:
    """A parameter of a model that is not read, where something is an attribute of one; else what it is."""
    whole = owner(of) if isinstance(of, Expr) and of.op == "field" else NONE
    if isinstance(whole, Obj | Expr) and is_tracked(run, whole):
        return Tensor(TensorKind.PARAMETER, whole, varies=False)
    return of


def attribute_written(run: Machine, of: Obj | Expr | Tensor, name: str, value: Value, node: ast.AST) -> None:
    """Note what an assignment to an attribute brings about."""
    if isinstance(of, Tensor):
        tensor_attribute_written(run, of, name, value, node)
        return
    if name == "data":
        changed_in_place(run, unread_weight(run, of), node, name, [value])
    role = role_of(of)
    if role in {Role.WRAPPER, Role.ENGINE}:
        run.event(Happening.ACCESS, node, of=of, name=Const(name), value=value)
    if name == "require_backward_grad_sync":
        run.event(Happening.SYNC, node, of=of, value=value)
    elif isinstance(of, Obj) and name in of.data.get("buffers", ()):
        before = Tensor(TensorKind.BUFFER, of, varies=False)
        run.event(Happening.BUFFER_WRITE, node, of=before, name=Const(name), varies=Const(may_vary(value)))
    if role is Role.OPTIMIZER and name in {"param_groups", "state"}:
        run.event(Happening.RATE_WRITE, node, of=of, key=Const(name), value=value)
    elif role is Role.OPTIMIZER and name == "step":
        run.event(Happening.HOOK, node, of=of, name=Const(name), hook=value)


def item_of(run: Machine, of: Value, key: Value, node: ast.AST) -> Value:
    """An item of an object of a library, or of something that is not read."""
    if isinstance(of, Lib) and f"{of.name}.__getitem__" in FUNCTIONS:
        return call_library(run, f"{of.name}.__getitem__", Given((key,)), node)
    if isinstance(of, Obj):
        if isinstance(key, Const) and is_hashable(key.value) and of.has(("item", key.value)):
            return run.settle(filled(of.at(("item", key.value)), Expr("item", of, key.value)))
        if is_mapping(of) and of.data.get("open") and isinstance(key, Const) and of.has(key.value):
            return run.settle(of.at(key.value))
        if (
            of.kind is Kind.LIBRARY
            and of.made_by.startswith("torch.nn.")
            and isinstance(key, Const)
            and of.has(key.value)
        ):
            return run.settle(of.at(key.value))
        if role_of(of) is Role.MODEL:
            return Expr("part", of, key if isinstance(key, Const | Expr) else "?")
        if of.kind is Kind.CLASS:
            return Expr("member", of, key) if not isinstance(key, Tup) else of
    if isinstance(of, Lib):
        return (
            Expr("item", of, key if isinstance(key, Const | Expr) else "?") if not of.name.startswith("typing") else of
        )
    if isinstance(key, Const):
        try:
            hash(key.value)
        except TypeError:
            return run.unread(node, [of, key])
        return Expr("item", of, key.value, varies=may_vary(of))
    if isinstance(key, Expr) and isinstance(of, Expr):
        return Expr("item", of, key)
    return run.unread(node, [of, key])


def item_written(run: Machine, of: Obj | Expr | Tensor, key: Value, value: Value, node: ast.AST) -> None:
    """Note what an assignment to an item brings about: of a group of an optimizer, of a tensor."""
    if isinstance(of, Tensor):
        changed_in_place(run, of, node, "[]", [value])
    elif isinstance(of, Expr) and of.op == "field" and of.args[1] == "data":
        changed_in_place(run, unread_weight(run, of), node, "[]", [value])
    elif isinstance(of, Obj) and of.data.get("group_of") is not None:
        run.event(Happening.RATE_WRITE, node, of=of.data["group_of"], key=key, value=value)
    elif isinstance(of, Obj) and of.data.get("state_of") is not None:
        run.event(Happening.OPAQUE, node, function=Const("optimizer.state[…] = …"), thing0=of.data["state_of"])


def contained_in(key: Value, of: Value) -> Value | None:
    """Whether something is in an object of a library; None where nothing is known."""
    if of == Lib("os.environ") and isinstance(key, Const):
        return Expr("is set", key.value, varies=False)
    return None


def operated_library(symbol: str, left: Value, right: Value) -> Value | None:
    """What an operator gives of objects of libraries: paths that are joined; None where nothing is known."""
    if symbol == "%" and isinstance(left, Const) and isinstance(left.value, str):
        return Expr("text", left, "%", right if isinstance(right, Const | Expr | Tup) else "?", varies=may_vary(right))
    return None


def what_is_entered(run: Machine, manager: Value, node: ast.AST) -> Value:
    """What a region of a library gives to ``as``."""
    for one in each(manager):
        role = role_of(one)
        handler = METHODS.get((role, "__enter__")) if role is not None else None
        if handler is not None and isinstance(one, Obj):
            return handler(Call(run, "__enter__", Given(), node), one)
        if isinstance(one, Obj) and one.made_by == "apex.amp.scale_loss":
            return one.value_of("loss", NONE)
    return manager


# -- decorators ------------------------------------------------------------------------------------------------------


def decorated(run: Machine, decorator: Value, value: Value, node: ast.AST) -> Value:
    """What a decorator makes of a function or a class; one that is not read is taken to leave it as it is."""
    decorator = run.settle(decorator)
    match decorator:
        case Lib(name=name):
            last = name.rpartition(".")[2]
            if isinstance(value, Obj):
                if last in {"staticmethod", "classmethod", "property", "cached_property", "abstractproperty"}:
                    value.data["role"] = {"staticmethod": "static", "classmethod": "class"}.get(last, "property")
                elif last == "dataclass":
                    value.data["dataclass"] = True
                elif role_of_class(canonical(name)) is Role.REGION:
                    value.data["regions"] = (
                        *value.data.get("regions", ()),
                        run.make(Kind.LIBRARY, node, made_by=canonical(name)),
                    )
                elif name.partition(".")[0] not in sys.stdlib_module_names | {"torch"}:
                    value.data["decorated"] = True
            return value
        case Expr(op="field"):
            held = decorator.args[0]
            if (
                isinstance(held, Obj)
                and held.kind is Kind.FUNCTION
                and decorator.args[1] == "setter"
                and isinstance(value, Obj)
            ):
                held.data["setter"] = value
                return held
            return value
        case Obj(kind=Kind.LIBRARY) if role_of(decorator) is Role.REGION and isinstance(value, Obj):
            value.data["regions"] = (*value.data.get("regions", ()), decorator)
            return value
        case Obj(kind=Kind.LIBRARY, made_by="dataclasses.dataclass") if isinstance(value, Obj):
            value.data["dataclass"] = True
            return value
        case Obj(kind=Kind.FUNCTION | Kind.CLASS) | Bound() | Obj(kind=Kind.INSTANCE) | Obj(kind=Kind.PARTIAL):
            if isinstance(value, Obj) and decorator.kind is Kind.CLASS if isinstance(decorator, Obj) else False:
                return run.call(decorator, Given((value,)), node)
            found = run.call(decorator, Given((value,)), node)
            return value if found == NONE else found
        case Expr(op="unknown") if isinstance(value, Obj):
            value.data["decorated"] = True
    return value
