"""What knows of the wrapper: ``.module`` before the engine exists, tests of its class, choices by whether it is there."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from dsmigrate.codemod.analysis.analysis import held_at, implies, library_name, wrappers
from dsmigrate.codemod.analysis.conditions import TRUE
from dsmigrate.codemod.analysis.events import Event, Happening
from dsmigrate.codemod.analysis.roles import inside_of
from dsmigrate.codemod.analysis.summaries.registry import Role, canonical, role_of_class
from dsmigrate.codemod.analysis.training import Training
from dsmigrate.codemod.analysis.values import Expr, Lib, Obj, Tup, Value, each
from dsmigrate.codemod.decision import Decision
from dsmigrate.codemod.idioms.facts import Facts, constant, is_statement
from dsmigrate.codemod.model import Idea, Kind
from dsmigrate.codemod.program.edits import Edit, Import, Insert, Remove, Replace, ReplaceStatement, Template, Unwrap
from dsmigrate.codemod.program.module import Module
from dsmigrate.languages import told

IDEAS = (
    Idea(
        "MG501",
        ".module before the engine exists",
        "The model is not wrapped yet at this point of the converted script; .module goes.",
        "The engine is made behind the optimizer; until then the name holds the model itself.",
        "deepspeed/__init__.py, initialize",
        Kind.CONVERTED,
    ),
    Idea(
        "MG502",
        "isinstance(model, DistributedDataParallel) asks for the engine",
        "Unwrap helpers that test for DDP test for deepspeed.DeepSpeedEngine.",
        "An engine is no DistributedDataParallel; a helper that asks for that would hand the engine on.",
        "deepspeed/__init__.py, DeepSpeedEngine",
        Kind.CONVERTED,
    ),
    Idea(
        "MG503",
        "Unwrapping that depended on a flag",
        "`model.module if distributed else model` becomes `model.module`: the engine is there on both branches.",
        "In the other branch the script used the plain model, which is engine.module now.",
        "deepspeed/runtime/engine.py, module",
        Kind.CONVERTED,
    ),
    Idea(
        "MG504",
        ".module of a value that may or may not be wrapped",
        "getattr(model, 'module', model) works for the engine and for the plain module.",
        "The function is called with both.",
        "torch.nn.Module",
        Kind.CONVERTED,
    ),
    Idea(
        "MG505",
        "Modes of the wrapper",
        "engine.train() and engine.eval() return nothing, engine.training is always True.",
        "What they give is taken from engine.module.",
        "deepspeed/runtime/engine.py, train, eval",
        Kind.CONVERTED,
    ),
)


def unwrap(training: Training, facts: Facts) -> Iterator[Decision]:  # noqa: ARG001 - an idiom's signature
    """The decisions about ``.module``: it goes where the plain model is, and stays where the engine is."""
    places: dict[ast.AST, list[Event]] = {}
    for event in training.events(Happening.ACCESS):
        if constant(event["name"]) == "module":
            places.setdefault(event.node, []).append(event)
    for node, events in places.items():
        holder = _holder(node)
        if (
            holder is None
            or _is_guarded(training, events[0].module, node)
            or not any(training.is_wrapped(one["of"]) or training.is_copy(one["of"]) for one in events)
        ):
            continue
        there = {_is_engine(training, one, holder) for one in events}
        event = events[0]
        if there == {False}:
            yield _without(training, events, holder)
        elif there == {True}:
            if isinstance(node, ast.Attribute):
                yield from _chosen(training, event, node)
                yield from _always(training, event, node)
        else:
            yield Decision(
                "MG504", Kind.CONVERTED, event.module, node, f'{_text(event, node)} → getattr({event.module.text(holder)}, "module", …)',
                "this runs with the engine and with the plain model",
                edits=(Replace(event.module, node, ("getattr(", holder, ', "module", ', holder, ")")),),
            )  # fmt: skip


def _is_guarded(training: Training, module: Module, node: ast.AST) -> bool:
    """Whether a test of what the model is decides about ``.module`` there."""
    step = module.step(node)
    tests = [one.test for one in ast.walk(step.node) if isinstance(one, ast.IfExp) and node in ast.walk(one.body)]
    tests += [one.node.test for one in step.around() if isinstance(one.node, ast.If) and one.function is step.function]
    return any(_asks_for_wrapper(training, test) for test in tests)


def _always(training: Training, event: Event, node: ast.Attribute) -> Iterator[Decision]:
    """``if distributed: raw = model.module``, which has to be done in every run now."""
    module = event.module
    step = module.step(node)
    outer = step.up.node if step.up is not None else None
    if (
        not isinstance(outer, ast.If)
        or outer.orelse
        or outer.body != [step.node]
        or all(wrap.condition is TRUE for wrap in training.wraps)
    ):
        return
    if not isinstance(step.node, ast.Assign) or step.node.value is not node or event.block.test.varies:
        return
    if any(implies(wrap.condition, event.block.test) for wrap in training.wraps):
        yield Decision(
            "MG503", Kind.CONVERTED, module, outer, told("{code}, whatever the flag says", code=module.text(step.node)), "the engine is always there",
            edits=(Unwrap(module, outer),),
        )  # fmt: skip


def _holder(node: ast.AST) -> ast.expr | None:
    """What ``.module`` is taken from; None where nothing has to be done, as there is a default."""
    if isinstance(node, ast.Attribute):
        return node.value
    is_getattr = isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and len(node.args) == 2
    return node.args[0] if isinstance(node, ast.Call) and is_getattr else None


def _is_engine(training: Training, event: Event, holder: ast.expr) -> bool | None:
    """Whether something with ``.module`` is there: the engine, or a model that stays wrapped."""
    if training.is_copy(event["of"]):
        return False
    return training.has_engine(event, holder) if training.is_wrapped(event["of"]) else True


def _text(event: Event, node: ast.AST) -> str:
    return event.module.text(node) if isinstance(node, ast.expr) else ""


def _without(training: Training, events: list[Event], holder: ast.expr) -> Decision:
    module, node = events[0].module, events[0].node
    statement = module.step(node).node
    edits: tuple[Edit, ...] = (Replace(module, node, (holder,)),)
    if isinstance(statement, ast.Assign) and isinstance(node, ast.expr) and len(statement.targets) == 1:
        target = statement.targets[0]
        left = ast.unparse(statement.value).replace(ast.unparse(node), ast.unparse(holder), 1)
        is_held = statement.value is node and all(_holds(training, one, target) for one in events)
        if ast.unparse(target) == left or is_held:
            edits = (Remove(module, statement),)
    return Decision(
        "MG501",
        Kind.CONVERTED,
        module,
        node,
        f"{_text(events[0], node)} → {module.text(holder)}",
        "it is the plain model here",
        edits=edits,
    )


def _holds(training: Training, event: Event, target: ast.expr) -> bool:
    """Whether something holds the model already that is in the wrapper."""
    run = training.analysis.run
    held = held_at(run, event.names, target)
    return (
        held is not None
        and bool(wrappers(event["of"]))
        and all([run.settle(inside_of(run, one))] == held for one in wrappers(event["of"]))
    )


def _asks_for_wrapper(training: Training, test: ast.expr) -> bool:
    """Whether a test looks at the model itself, and so holds for the engine too where it should."""
    inside = set(ast.walk(test))
    return any(
        event.node in inside or any(block.node in inside for block in event.block.around())
        for event in training.events(Happening.KIND_TEST)
    )


def _chosen(training: Training, event: Event, node: ast.Attribute) -> Iterator[Decision]:
    """``model.module if distributed else model``, as an expression or as a statement."""
    module = event.module
    step = module.step(node)
    plain = ast.dump(node.value)
    for sub in ast.walk(step.node):
        if (
            isinstance(sub, ast.IfExp)
            and not _asks_for_wrapper(training, sub.test)
            and {ast.dump(sub.body), ast.dump(sub.orelse)} == {ast.dump(node), plain}
        ):
            yield Decision(
                "MG503", Kind.CONVERTED, module, sub, f"{module.text(sub)} → {module.text(node)}", "the engine is always there",
                edits=(Replace(module, sub, (sub.body if ast.dump(sub.body) == ast.dump(node) else sub.orelse,)),),
            )  # fmt: skip
            return
    outer = step.up.node if step.up is not None else None
    if (
        isinstance(outer, ast.If)
        and len(outer.body) == len(outer.orelse) == 1
        and not _asks_for_wrapper(training, outer.test)
    ):
        one, other = outer.body[0], outer.orelse[0]
        if (
            isinstance(one, ast.Assign)
            and isinstance(other, ast.Assign)
            and ast.dump(one.targets[0]) == ast.dump(other.targets[0])
        ):
            if {ast.dump(one.value), ast.dump(other.value)} == {ast.dump(node), plain}:
                kept = one if ast.dump(one.value) == ast.dump(node) else other
                yield Decision(
                    "MG503", Kind.CONVERTED, module, outer, told("{code}, whatever the flag says", code=module.text(kept)), "the engine is always there",
                    edits=(ReplaceStatement(module, outer, ((module.text(kept),),)),),
                )  # fmt: skip


def kind_tests(training: Training, facts: Facts) -> Iterator[Decision]:  # noqa: ARG001 - an idiom's signature
    """The decisions about ``isinstance(model, DistributedDataParallel)``, ``type(model) is …`` and the like."""
    places: dict[ast.AST, list[Event]] = {}
    for event in training.events(Happening.KIND_TEST):
        places.setdefault(event.node, []).append(event)
    for node, events in places.items():
        event = events[0]
        if all(_is_another(training, one) for event in events for one in each(event["of"])):
            continue
        both = event.module.path != training.analysis.project.entry or any(
            one not in training.wrappers and not training.is_copy(one)
            for event in events
            for one in wrappers(event["of"])
        )
        edits: list[Edit] = []
        kinds = _kinds_asked(event.module, node)
        for kind in kinds:
            if _is_wrapper_class(library_name(kind, event.names)):
                alone = kind in (node.args[1:] if isinstance(node, ast.Call) else ())
                code: Template = (_ENGINE,)
                if both:
                    code = ("(", kind, f", {_ENGINE})") if alone else (kind, f", {_ENGINE}")
                edits.append(Replace(event.module, kind, code))
        edits = edits or _of_library(event, node) or _about(training, event, node, kinds) or _by_text(event, node)
        if edits:
            yield Decision(
                "MG502", Kind.CONVERTED, event.module, node, told("this asks for {engine}", engine=_ENGINE), "the engine takes the wrapper's place",
                edits=tuple(edits), imports=(Import(event.module, "deepspeed"),), suits_all=both,
            )  # fmt: skip


_ENGINE = "deepspeed.DeepSpeedEngine"


def _is_wrapper_class(name: str | None) -> bool:
    return name is not None and role_of_class(canonical(name)) is Role.WRAPPER


def _of_library(event: Event, node: ast.AST) -> list[Edit]:
    """A function of a library that knows the wrappers: the engine is asked for beside it."""
    if not isinstance(node, ast.Call) or len(node.args) != 1:
        return []
    if not any(map(_is_wrapper_class, _classes(event["kinds"]))):
        return []
    return [Replace(event.module, node, ("(", node, " or isinstance(", node.args[0], f", {_ENGINE}))"))]


def _about(training: Training, event: Event, node: ast.AST, kinds: list[ast.expr]) -> list[Edit]:
    """A test by classes that are collected elsewhere, or joined by ``|``: the engine's is asked for beside them."""
    asked = node.args[1] if isinstance(node, ast.Call) and len(node.args) > 1 else None
    compared = asked or next(iter(kinds), None)
    if compared is None or isinstance(compared, ast.Tuple | ast.List | ast.Set):
        return []
    values = [event["kinds"]] if asked is not None else training.values_at(event, compared)
    if not any(_is_wrapper_class(name) for value in values for name in _classes(value)):
        return []
    star = "" if asked is not None else "*"
    return [Replace(event.module, compared, (f"({star}", compared, f", {_ENGINE})"))]


def _classes(value: object) -> Iterator[str]:
    """The classes of libraries in a value, through containers and ``|``."""
    for one in each(value) if isinstance(value, Value) else ():
        if isinstance(one, Lib):
            yield one.name
        for inner in (
            one.items
            if isinstance(one, Tup)
            else one.args
            if isinstance(one, Expr)
            else one.own.values()
            if isinstance(one, Obj)
            else ()
        ):
            yield from _classes(inner)


def _by_text(event: Event, node: ast.AST) -> list[Edit]:
    """``type(model).__name__ == "DistributedDataParallel"`` and the like: the engine is asked for by its class."""
    module = event.module
    of = (
        node.args[0]
        if isinstance(node, ast.Call) and len(node.args) == 1
        else node.value
        if isinstance(node, ast.Attribute)
        else None
    )
    if of is None:
        return []

    def names_it(one: ast.AST) -> bool:
        if isinstance(one, ast.Attribute) and one.attr == "__name__":
            return _is_wrapper_class(library_name(one.value, event.names))
        return isinstance(one, ast.Constant) and isinstance(one.value, str) and one.value.endswith("DataParallel")

    tests = [
        one
        for one in ast.walk(module.step(node).node)
        if isinstance(one, ast.Compare | ast.Call)
        and one is not node
        and node in (inside := set(ast.walk(one)))
        and any(map(names_it, inside))
    ]
    test = min(tests, key=lambda one: sum(1 for _ in ast.walk(one)), default=None)
    if test is None:
        return []
    negated = isinstance(test, ast.Compare) and isinstance(test.ops[0], ast.NotEq | ast.NotIn | ast.IsNot)
    word = "and not" if negated else "or"
    return [Replace(module, test, ("(", test, f" {word} isinstance({module.text(of)}, {_ENGINE}))"))]


def _is_another(training: Training, value: Value) -> bool:
    """Whether a value is the wrapper of another model."""
    return bool(list(wrappers(value))) and not training.is_wrapped(value) and not training.is_copy(value)


def _kinds_asked(module: Module, node: ast.AST) -> list[ast.expr]:
    """The classes that a test names."""
    if isinstance(node, ast.Call) and len(node.args) > 1:
        kinds = node.args[1]
        return list(kinds.elts) if isinstance(kinds, ast.Tuple | ast.List) else [kinds]
    for compared in ast.walk(module.step(node).node):
        if isinstance(compared, ast.Compare) and node in (compared.left, *compared.comparators):
            sides = [one for one in (compared.left, *compared.comparators) if one is not node]
            return [
                kind
                for side in sides
                for kind in (side.elts if isinstance(side, ast.Tuple | ast.List | ast.Set) else [side])
            ]
    return []


def modes(training: Training, facts: Facts) -> Iterator[Decision]:
    """The decisions about what ``train()``, ``eval()`` and ``training`` give."""
    seen: set[ast.AST] = set()
    for event in training.events(Happening.MODE, Happening.ACCESS):
        node = event.node
        if node in seen or not training.is_wrapper(event["of"]) or training.is_before(event):
            continue
        is_training = event.kind is Happening.ACCESS and constant(event["name"]) == "training"
        taken = event.kind is Happening.MODE and isinstance(node, ast.Call) and not is_statement(event)
        holder = node.value if isinstance(node, ast.Attribute) else node.func.value if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) else None  # fmt: skip
        if holder is None or not (is_training or taken):
            continue
        seen.add(node)
        if is_training:
            yield Decision(
                "MG505", Kind.CONVERTED, event.module, node, "training → module.training", "engine.training is always True",
                edits=(Replace(event.module, node, (holder, ".module.training")),),
            )  # fmt: skip
        else:
            yield from _taken_mode(event, holder, facts)


def _taken_mode(event: Event, holder: ast.expr, facts: Facts) -> Iterator[Decision]:
    """``model = model.train()``: the call stays, what it gave is the model."""
    del facts
    module, node = event.module, event.node
    assert isinstance(node, ast.Call)
    statement = module.step(node).node
    if (
        isinstance(statement, ast.Assign)
        and statement.value is node
        and ast.dump(statement.targets[0]).replace("Store()", "Load()") == ast.dump(holder)
    ):
        yield Decision(
            "MG505", Kind.CONVERTED, module, node, f"{module.text(statement)} → {module.text(node)}", "engine.train() returns nothing",
            edits=(ReplaceStatement(module, statement, ((node,),)),),
        )  # fmt: skip
    elif isinstance(statement, ast.Assign | ast.AnnAssign | ast.Return) and statement.value is node:
        yield Decision(
            "MG505", Kind.CONVERTED, module, node, told("{code} stands by itself", code=module.text(node)), "it returns nothing for the engine",
            edits=(Insert(module, statement, ((module.text(node),),)), Replace(module, node, (holder,))),
        )  # fmt: skip
    else:
        yield Decision(
            "MG505",
            Kind.TODO,
            module,
            node,
            told(
                "{code} returns nothing for the engine: use {code_2}",
                code=module.text(node),
                code_2=module.text(holder),
            ),
        )
