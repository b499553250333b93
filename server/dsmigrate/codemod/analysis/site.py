"""Where the engine is made, what it is made of, and who else knew the wrapped model until then."""

from __future__ import annotations

import ast
import itertools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from dsmigrate.codemod.analysis.analysis import implies, paths_to, under, values_at
from dsmigrate.codemod.analysis.conditions import FALSE, Condition, both, decided, literals_of
from dsmigrate.codemod.analysis.events import Block, BlockKind, Event, Happening
from dsmigrate.codemod.analysis.machine import Moment
from dsmigrate.codemod.analysis.values import Const, Kind, Obj, Value, each
from dsmigrate.codemod.program.module import Module, Step

if TYPE_CHECKING:
    from dsmigrate.codemod.analysis.training import Training

Names = tuple[Mapping[str, Value], ...]


@dataclass(frozen=True, slots=True)
class Site:
    """Where the engine is made: behind ``node``, or in the place of the wrap ``wrap`` where the optimizer is there already.

    ``target`` is what is bound to the engine, ``model`` and ``optimizer`` what it is made of, as they are said there.
    ``number``: events up to that one come before the engine. ``unwrapped``: the statement that bound the wrapper to a
    name of its own, which goes.
    """

    module: Module
    node: ast.stmt
    target: str
    model: str
    optimizer: str
    names: Names
    number: int
    wrap: Event | None
    block: Block
    unwrapped: ast.stmt | None = None
    reads: tuple[ast.expr, ...] = ()
    """What reads that name before, and can read the plain model's instead."""
    aliases: tuple[str, ...] = ()
    """What else held the wrapped model and is read later: it has to be given the engine."""
    stale: frozenset[tuple[ast.AST | None, str]] = frozenset()
    """Names of functions that called this one: they go on holding the plain model."""
    left: tuple[str, ...] = ()
    """Things that hold the wrapped model and that no name leads to where the engine is made."""


def find_site(training: Training) -> Site | str:
    """The place behind the last of the wraps and the optimizer, in a block that every backward is in or comes through."""
    analysis = training.analysis
    made = [
        event
        for event in analysis.of(Happening.MADE)
        if event["role"] == Const("optimizer") and any(one in training.optimizers for one in each(event["what"]))
    ]
    if not made:
        return "the optimizer of the wrapped model is not made where it can be seen"
    last = max([*training.wraps, *made], key=lambda event: event.number)
    found = [_site_in(training, block, last, made) for block in _blocks(training, last)]
    sites = [one for one in found if isinstance(one, Site)]
    good = next((one for one in sites if _serves(training, one)), None)
    if good is None and sites:
        return "the training goes on with the plain model wherever the engine is made"
    return (
        good
        if good is not None
        else found[0]
        if found
        else "the wrap and the optimizer are made where no statement can stand behind both"
    )


def _site_in(training: Training, block: Block, last: Event, made: list[Event]) -> Site | str:
    """The place in a block; why there is none."""
    item = child_with(block, last)
    node = item.node
    if node is None:
        return "the wrap and the optimizer are made where no statement can stand behind both"
    module = item.module if item.module is not None else last.module
    step = _around_arms(training, module.step(node))
    if isinstance(step.node, ast.Return | ast.Raise):
        return "the wrap and the optimizer are made where no statement can stand behind both"
    moment = _moment(training, step.node, block)
    if moment is None:
        return "what is bound behind the wrap and the optimizer cannot be seen"
    number = last_number(step.node, moment)
    if min(event.number for event in training.backwards) <= number:
        return "the model is trained before both the wrap and the optimizer are made"
    target = next((path for path in _targets(training, moment.names) if _is_there(training, moment, path)), None)
    optimizer = next(
        (path for path in paths_to(moment.names, set(training.optimizers)) if _is_there(training, moment, path)), None
    )
    if target is None:
        return "no name leads to the wrapped model where the optimizer is there too"
    if optimizer is None:
        return "no name leads to the optimizer where the wrapped model is there too"
    wrap = _in_place(training, step.node, last, made)
    place, number = _behind_copies(training, step, moment, number)
    wrap = wrap if place is step.node else None
    site = Site(module, place, target, target, optimizer, moment.names, number, wrap, block)
    if wrap is not None:
        return replace(site, number=wrap.number)
    unwrapped, model, reads = _unwrapped(training, module, place, target, moment.names)
    aliases, stale, left = _holders(training, moment, module, place, target)
    return replace(site, unwrapped=unwrapped, model=model, reads=reads, aliases=aliases, stale=stale, left=left)


def _is_there(training: Training, moment: Moment, path: str) -> bool:
    """Whether a path already led there at a moment: what objects hold is known as it is at the end."""
    expression = ast.parse(path, mode="eval").body
    if not isinstance(expression, ast.Attribute):
        return True
    bases = values_at(training.analysis.run, moment.names, expression.value) or []
    return any(
        (base, expression.attr) in moment.optimizers or (base, expression.attr) in moment.holders
        for base in bases
        if isinstance(base, Obj)
    )


_EARLY = frozenset(
    {
        Happening.MADE,
        Happening.COPY,
        Happening.ACCESS,
        Happening.PARAMETERS,
        Happening.MODE,
        Happening.THAW,
        Happening.HOOK,
    }
)
"""What may come between the optimizer and the engine."""


def _behind_copies(training: Training, step: Step, moment: Moment, number: int) -> tuple[ast.stmt, int]:
    """The statement that copies the model as it is made, if nothing else is done with it before: the engine comes behind."""
    place: ast.stmt = step.node
    for following in step.body[step.index + 1 :]:
        inside = set(ast.walk(following))
        items = [item for item in moment.block.items if item.node in inside]
        events = [event for item in items for event in ((item,) if isinstance(item, Event) else item.events())]
        simple = isinstance(following, ast.Assign | ast.AnnAssign | ast.Expr | ast.For)
        if any(event.kind not in _EARLY for event in events) or not simple:
            break
        if any(event.kind is Happening.COPY and training.is_model(event["of"]) for event in events):
            place, number = following, max(event.number for event in events)
    return place, number


def _serves(training: Training, site: Site) -> bool:
    """Whether every backward finds the engine by a name, not the plain model that callers of the place go on holding."""
    for event in training.backwards:
        said = training.engine_at(event)
        if not _gets_out(training, site, event):
            return False
        if said is not None and is_engine_there(site, event, ast.parse(said, mode="eval").body) is False:
            return False
    return True


def _gets_out(training: Training, site: Site, event: Event) -> bool:
    """Whether an event can know the engine, if it is known to a function's own name alone where it is made."""
    call = next((block for block in site.block.around() if block.kind is BlockKind.CALL), None)
    function = site.module.step(site.node).function
    if call is None or function is None or "." in site.target or any("." in alias for alias in site.aliases):
        return True
    if under(event.block, call) or any(node is event.node for node in ast.walk(function)):
        return True
    given = () if call.result is None else training.analysis.run.things_in(call.result)
    return any(one in training.wrappers for one in given)


# -- the block ---------------------------------------------------------------------------------------------------------


def _blocks(training: Training, last: Event) -> Iterator[Block]:
    """The blocks that the engine may be made in, from the inside out: all backwards are in them, or behind."""
    inner = _made_in(last)
    for block in inner.around():
        if not all(_leads_to(block, event) for event in training.backwards):
            continue
        again = (  # a function that is called for other models too
            block.kind is BlockKind.CALL
            and isinstance(block.label, Obj)
            and _calls(training, block.label) > 1
            and not all(under(event.block, block) for event in training.backwards)
        )
        yield inner if again and inner is not block and last in training.wraps else block


def _around_arms(training: Training, step: Step) -> Step:
    """A statement, or the ``if`` around it that runs without a wrapper, of the same backwards, do not enter."""
    nodes = {event.node for event in training.backwards}
    alone = [one for one in training.events(Happening.BACKWARD) if one.node in nodes and one not in training.backwards]
    moments = training.analysis.run.moments
    while step.up is not None and isinstance(step.up.node, ast.If):
        ways = [moment.block.condition for (statement, _), moment in moments.items() if statement in step.body]
        if all(any(both(way, event.condition) is not FALSE for way in ways) for event in alone):
            break
        step = step.up
    return step


def _made_in(event: Event) -> Block:
    """The block in which a wrapper or an optimizer is made: of the script's own classes, that around the call of the class."""
    made = event["wrapper"] if event.kind is Happening.WRAP else event["what"]
    nodes = {one.node for one in each(made) if isinstance(one, Obj)}
    outer = [block.up for block in event.block.around() if block.node in nodes and block.up is not None]
    return outer[-1] if outer else event.block


def _calls(training: Training, function: Obj) -> int:
    """How many calls of a function there are."""
    return sum(
        block.kind is BlockKind.CALL and isinstance(block.label, Obj) and block.label.node is function.node
        for block in training.analysis.root.blocks()
    )


_WHOLE = frozenset({BlockKind.CALL, BlockKind.ENTRY, BlockKind.SPAWNED, BlockKind.MODULE})
"""Blocks at the end of which what was bound in them is bound on all ways through them."""


def _leads_to(block: Block, event: Event) -> bool:
    """Whether an event is in a block, or behind one that all ways to it come through."""
    if under(event.block, block):
        return True
    return (block.kind in _WHOLE or _is_rest(block) or _is_uncaught(block)) and implies(
        event.condition, block.condition
    )


def _is_uncaught(block: Block) -> bool:
    """Whether a block is that of a ``try`` which nobody goes on from after an error."""
    return block.kind is BlockKind.TRY and isinstance(block.node, ast.Try) and not block.node.handlers


def _is_rest(block: Block) -> bool:
    """Whether a branch is what follows a statement that some ways leave by: ``if not ready: return``."""
    if block.kind is not BlockKind.BRANCH or block.module is None or not isinstance(block.node, ast.stmt):
        return False
    first = next((item.node for item in block.items if item.node is not None), None)
    try:
        return first is not None and all(step.node is not block.node for step in block.module.step(first).around())
    except KeyError:
        return False


def child_with(block: Block, event: Event) -> Block | Event:
    """The item of a block that an event is in."""
    item: Block | Event = event
    for one in event.block.around():
        if one is block:
            return item
        item = one
    return item


def _moment(training: Training, node: ast.stmt, block: Block) -> Moment | None:
    """What was so right behind a statement, in the run of its function that the block is of."""
    found = [moment for (statement, _), moment in training.analysis.run.moments.items() if statement is node]
    exact = [moment for moment in found if moment.block is block]
    return (exact or found)[-1] if found else None


def last_number(node: ast.stmt, moment: Moment) -> int:
    """The number of the last event of a statement, in the run of it that a moment is of."""
    inside = set(ast.walk(node))
    numbers = [
        event.number
        for item in moment.block.items
        if item.node in inside and not (isinstance(item, Block) and item.is_rest)
        for event in ((item,) if isinstance(item, Event) else item.events())
    ]
    return max(numbers, default=0)


# -- names -------------------------------------------------------------------------------------------------------------


def _targets(training: Training, names: Names) -> list[str]:
    """What leads to the wrapped model; what a wrap was bound to comes first."""
    bound = {
        ast.unparse(target)
        for event in training.wraps
        if isinstance(statement := event.module.step(event.node).node, ast.Assign)
        for target in statement.targets
    }
    return sorted(paths_to(names, set(training.wrappers)), key=lambda path: (path not in bound, path.count(".")))


def _in_place(training: Training, node: ast.stmt, last: Event, made: list[Event]) -> Event | None:
    """The wrap that the engine takes the place of: the one wrap there is, behind the optimizer, by itself, on all ways."""
    if last not in training.wraps or len({event.node for event in training.wraps}) != 1:
        return None
    if any(event.number > last.number for event in made) or last.module.step(last.node).node is not node:
        return None
    return last if isinstance(node, ast.Assign | ast.AnnAssign) and node.value is last.node else None


def _unwrapped(
    training: Training, module: Module, node: ast.stmt, target: str, names: Names
) -> tuple[ast.stmt | None, str, tuple[ast.expr, ...]]:
    """The statement ``ddp = DDP(net)`` that can go, ``net``, and what reads ``ddp`` until the engine is bound to it."""
    kept: tuple[None, str, tuple[ast.expr, ...]] = (None, target, ())
    wraps = {event.node for event in training.wraps}
    wrap = next(iter(wraps))
    if len(wraps) != 1 or training.wraps[0].module is not module:
        return kept
    own, site = module.step(wrap), module.step(node)
    model = wrapped_model(wrap)
    if not isinstance(own.node, ast.Assign) or own.node.value is not wrap or own.body is not site.body or model is None:
        return kept
    said = ast.unparse(model)
    if (
        [ast.unparse(one) for one in own.node.targets] != [target]
        or said == target
        or said not in paths_to(names, set(training.models))
    ):
        return kept
    between = [sub for one in own.body[own.index + 1 : site.index + 1] for sub in ast.walk(one)]
    if any(isinstance(one, ast.FunctionDef | ast.Lambda | ast.ClassDef) for one in between):
        return kept
    if _read_elsewhere(training, between, target, at_module=own.function is None):
        return kept
    uses = [one for one in between if isinstance(one, ast.Name | ast.Attribute) and ast.unparse(one) == target]
    return kept if any(not isinstance(one.ctx, ast.Load) for one in uses) else (own.node, said, tuple(uses))


def _read_elsewhere(training: Training, between: list[ast.AST], target: str, *, at_module: bool) -> bool:
    """Whether functions that run in some statements read a name that is not only known there."""
    name = target.rpartition(".")[2]
    if name == target and not at_module:
        return False
    inside = set(between)
    called = [
        block for block in training.analysis.root.blocks() if block.kind is BlockKind.CALL and block.node in inside
    ]
    functions = {
        one.label.node
        for block in called
        for one in block.blocks()
        if one.kind is BlockKind.CALL and isinstance(one.label, Obj)
    }
    return any(
        name in {getattr(sub, "attr", None), getattr(sub, "id", None)}
        for node in functions
        if node is not None
        for sub in ast.walk(node)
    )


def wrapped_model(node: ast.AST) -> ast.expr | None:
    """The model in the call of a wrapper."""
    if not isinstance(node, ast.Call):
        return None
    args, named = spread(node)
    first = args[0] if args else named.get("module")
    return None if isinstance(first, ast.Starred) else first


def spread(call: ast.Call) -> tuple[list[ast.expr], dict[str, ast.expr]]:
    """The arguments of a call, those in displays that are written out at the call too: ``f(*(x,), **{"k": y})``."""
    args: list[ast.expr] = []
    for arg in call.args:
        inner = arg.value if isinstance(arg, ast.Starred) else None
        args += inner.elts if isinstance(inner, ast.Tuple | ast.List) else [arg]
    named: dict[str, ast.expr] = {}
    for keyword in call.keywords:
        if keyword.arg is not None:
            named[keyword.arg] = keyword.value
        elif isinstance(keyword.value, ast.Dict):
            for key, value in zip(keyword.value.keys, keyword.value.values, strict=True):
                if isinstance(key, ast.Constant) and isinstance(key.value, str):
                    named[key.value] = value
    return args, named


# -- who else holds the wrapped model ----------------------------------------------------------------------------------


def _holders(
    training: Training, moment: Moment, module: Module, node: ast.stmt, target: str
) -> tuple[tuple[str, ...], frozenset[tuple[ast.AST | None, str]], tuple[str, ...]]:
    """What has to be given the engine, whose names stay with the plain model, and what no name leads to."""
    aliases: list[str] = []
    stale: set[tuple[ast.AST | None, str]] = set()
    left: list[str] = []
    function = module.step(node).function
    for (obj, key), value in moment.holders.items():
        if not training.is_wrapper(value):
            continue
        if not isinstance(key, str):
            path = paths_to(moment.names, {obj}) if obj.kind in {Kind.LIST, Kind.DICT} and isinstance(key, int) else []
            if path:
                aliases.append(f"{path[0]}[{key}]")
            continue
        if obj.kind in {Kind.FRAME, Kind.MODULE}:
            home = obj.node if obj.kind is Kind.FRAME else None
            if key == target and (home is function or (home is None and function is None)):
                continue
            if home is function:
                if _read_later(module, node, function, key):
                    aliases.append(key)
            else:
                stale.add((home, key))
        elif obj.kind in {Kind.INSTANCE, Kind.NAMESPACE, Kind.DICT}:
            paths = paths_to(moment.names, {obj})
            said = [f'{path}["{key}"]' if obj.kind is Kind.DICT else f"{path}.{key}" for path in paths]
            if target in said:
                continue
            if said:
                aliases.append(said[0])
            elif obj.cls is not None and "of" not in obj.own and _needs_engine(training, moment, obj):
                left.append(str(obj.cls.data["name"]))
    return tuple(dict.fromkeys(aliases)), frozenset(stale), tuple(dict.fromkeys(left))


def _needs_engine(training: Training, moment: Moment, holder: Obj) -> bool:
    """Whether the wrapped model is asked behind a place for more than the plain one gives, where a name leads to its holder."""
    for event in training.events(*_OF_WRAPPER):
        if event.number > moment.number and any(holder in scope.values() for scope in event.names):
            name = event.what.get("name")
            if not (isinstance(name, Const) and name.value in _ALIKE) and any(
                training.is_wrapped(value) for value in event.what.values()
            ):
                return True
    return False


_ALIKE = frozenset({"apply", "buffers", "children", "modules", "parameters", "training"})
"""What a plain model gives as its wrapper does: no names with ``module.``."""
_OF_WRAPPER = (
    Happening.FORWARD, Happening.BACKWARD, Happening.STATE, Happening.RESTORE, Happening.SAVE, Happening.COPY, Happening.SYNC,
    Happening.COMPILED, Happening.HOOK, Happening.OPAQUE, Happening.ZERO_GRAD, Happening.ACCESS, Happening.KIND_TEST, Happening.PARAMETERS,
)  # fmt: skip


def _read_later(module: Module, node: ast.stmt, function: ast.AST | None, name: str) -> bool:
    """Whether a name is read behind a statement, or in a function around which that stands."""
    end = getattr(node, "end_lineno", 0)
    steps = list(module.step(node).around())
    loops = [step.node.lineno for step in steps if isinstance(step.node, ast.For | ast.While | ast.AsyncFor)]
    start = min([*loops, end]) if loops else end
    for one in ast.walk(function if function is not None else module.tree):
        if isinstance(one, ast.Name) and one.id == name and isinstance(one.ctx, ast.Load):
            if one.lineno > start or module.step(one).function is not function:
                return True
    return False


# -- whether the engine is there ---------------------------------------------------------------------------------------


def is_engine_there(site: Site, event: Event, expression: ast.expr | None = None) -> bool | None:
    """Whether what leads to the wrapped model at an event leads to the engine; None where it may be the plain model too.

    ``expression`` is how the event says it: names of functions that called the one which makes the engine hold the plain
    model behind it too.
    """
    if event.number <= site.number:
        return False
    assumed = {literal.atom: literal.holds for literal in literals_of(event.condition)}
    known = decided(_way_to(site.block, event), assumed)
    if (
        known is not False
        and expression is not None
        and _is_stale(site, event.names, event.block, event.module.step(event.node).function, expression)
    ):
        return False
    return known


def _way_to(block: Block, event: Event) -> Condition:
    """What has to hold for something behind a block to have come through it."""
    outer = set(event.block.around())
    inner = list(itertools.takewhile(lambda one: one not in outer, block.around()))
    is_caught = any(one.kind is BlockKind.TRY for one in inner)
    return both(*(one.test for one in inner if is_caught or not one.is_only_way))


def _is_stale(site: Site, names: Names, block: Block, function: ast.AST | None, expression: ast.expr) -> bool:
    root: ast.AST = expression
    while isinstance(root, ast.Attribute | ast.Subscript):
        root = root.value
    if not site.stale or not isinstance(root, ast.Name):
        return False
    scope = next((scope for scope in names if root.id in scope), None)
    if scope is None:
        return False
    home = function if scope is names[0] else None
    if (home, root.id) in site.stale:
        return True
    if home is site.module.step(site.node).function and root.id in {site.target, *site.aliases}:
        return False
    call = next((one for one in block.around() if home is not None and is_call_of(one, home)), None)
    if call is None or not isinstance(call.label, Obj) or not isinstance(call.node, ast.Call):
        return False
    given = argument(call.label, call.node, root.id)
    if given is None or call.up is None or call.module is None:
        return False
    return _is_stale(site, call.names, call.up, call.module.step(call.node).function, given)


def is_call_of(block: Block, function: ast.AST) -> bool:
    """Whether a block is a run of a function; the body of a loop over a generator is in the generator's."""
    return block.kind is BlockKind.CALL and isinstance(block.label, Obj) and block.label.node is function


def argument(function: Obj, call: ast.Call, name: str) -> ast.expr | None:
    """The expression that a call gives for a parameter."""
    node = function.node
    assert isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
    args, by_name = spread(call)
    named = by_name.get(name)
    positional = [arg.arg for arg in (*node.args.posonlyargs, *node.args.args)]
    if named is not None or name not in positional:
        return named
    index = positional.index(name) - (function.data["owner"] is not None and function.data.get("role") != "static")
    return args[index] if 0 <= index < len(args) and not isinstance(args[index], ast.Starred) else None


def holders_said(site: Site) -> Iterator[str]:
    """The lines that give the engine to what else held the wrapped model."""
    for alias in site.aliases:
        yield f"{alias} = {site.target}"


__all__ = [
    "Site",
    "child_with",
    "find_site",
    "holders_said",
    "is_call_of",
    "is_engine_there",
    "last_number",
    "spread",
    "wrapped_model",
]
