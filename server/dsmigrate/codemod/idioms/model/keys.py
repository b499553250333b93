"""Names of weights: a wrapped model's begin with ``module.``, the engine's do, a plain model's do not."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field

from dsmigrate.codemod.analysis.analysis import values_at
from dsmigrate.codemod.analysis.events import BlockKind, Event, Happening
from dsmigrate.codemod.analysis.roles import role_of
from dsmigrate.codemod.analysis.site import argument
from dsmigrate.codemod.analysis.summaries.registry import Role
from dsmigrate.codemod.analysis.training import Training
from dsmigrate.codemod.analysis.values import Kind as Of
from dsmigrate.codemod.analysis.values import Obj, each
from dsmigrate.codemod.decision import Decision
from dsmigrate.codemod.idioms.facts import Facts, by_place, constant, given_at
from dsmigrate.codemod.model import Idea, Kind
from dsmigrate.codemod.program.edits import Edit, Replace
from dsmigrate.codemod.program.module import Module

IDEAS = (
    Idea(
        "MG508",
        "Names of weights keep the prefix that DDP gave them",
        "Before the engine is made, state_dict and load_state_dict of a model that was wrapped there put `module.` before the "
        "names, or take it off; other uses of such names are marked.",
        "The wrapper's names begin with `module.`, and so do those of its files. The plain model's do not: a file would not fit, "
        "or, with strict=False, nothing of it would be loaded.",
        "torch.nn.Module.load_state_dict; measured against torch 2.13",
        Kind.CONVERTED,
    ),
)
_PREFIX = "module."


def keys(training: Training, facts: Facts) -> Iterator[Decision]:  # noqa: ARG001 - an idiom's signature
    """The decisions about places that give or take weights by name."""
    places: dict[ast.AST, list[Event]] = {}
    plain: set[ast.AST] = set()
    alone: dict[ast.AST, set[bool]] = {}
    for event in training.events(Happening.STATE, Happening.RESTORE, Happening.PARAMETERS):
        if training.is_plain_copy(event["of"]):
            plain.add(event.node)
        if (
            isinstance(event.node, ast.Call)
            and isinstance(event.node.func, ast.Attribute)
            and "library" not in event.what
        ):
            if training.is_model(event["of"]) or training.is_wrapped(event["of"]) or training.is_copy(event["of"]):
                places.setdefault(event.node, []).append(event)
            elif event.kind is Happening.STATE and training.is_alone(event):
                roles = [role_of(one) for one in each(event["of"]) if isinstance(one, Obj)]
                alone.setdefault(event.node, set()).add(Role.REPLICAS in roles)
    for node, events in places.items():
        assert isinstance(node, ast.Call)
        assert isinstance(node.func, ast.Attribute)
        holder = node.func.value
        before = {training.is_wrapped(event["of"]) or training.is_copy(event["of"]) for event in events}
        after = {not training.is_copy(event["of"]) and training.says_engine(event, holder) for event in events}
        before |= alone.get(node, set())
        if node in plain:  # on other ways
            before |= {False}
            after |= {False}
        yield from _changed(training, events[0], node, holder, before, after)
    yield from _of_libraries(training)


def _of_libraries(training: Training) -> Iterator[Decision]:
    """What a library loads into a model goes to the one in DistributedDataParallel, and knows of no other wrapper."""
    loads = (event for event in training.events(Happening.RESTORE) if "library" in event.what)
    for node, events in by_place(event for event in loads if training.is_wrapped(event["of"])).items():
        module, given = events[0].module, given_at(node, 0, "model") if isinstance(node, ast.Call) else None
        found = {training.says_engine(event, given) for event in events} if given is not None else {False}
        if given is None or found == {False}:
            continue
        text = module.text(given)
        code = (given, ".module") if found == {True} else ("getattr(", given, ', "module", ', given, ")")
        yield Decision(
            "MG508", Kind.CONVERTED, module, node, f"{text} → {text}.module", "the library looks for DistributedDataParallel alone",
            edits=(Replace(module, given, code),),
        )  # fmt: skip


def _changed(
    training: Training, event: Event, node: ast.Call, holder: ast.expr, before: set[bool], after: set[bool | None]
) -> Iterator[Decision]:
    module = event.module
    if event.kind is Happening.PARAMETERS:
        by_name = str(constant(event["name"])).startswith("named")
        if by_name and before != after and True in before and _matters(training, event):
            shown = isinstance(module.step(node).node, ast.Expr)  # in a log, as nothing is kept of them
            said = (
                "the names shown here have no 'module.' any more"
                if shown
                else "these names have no 'module.' any more: check what compares them"
            )
            yield Decision("MG508", Kind.KEPT if shown else Kind.TODO, module, node, said, differs=shown)
        return
    if before == after or (len(before) > 1 and after == {True}):
        if len(before) > 1 and event.kind is Happening.STATE:
            yield Decision(
                "MG508", Kind.KEPT, module, node, "names of weights begin with 'module.' in runs that were not wrapped, too",
                "every run has an engine", differs=True,
            )  # fmt: skip
    elif after == {True}:
        yield Decision(
            "MG508", Kind.CONVERTED, module, node, f"{module.text(holder)} → {module.text(holder)}.module", "names without 'module.', as before",
            edits=(Replace(module, holder, (holder, ".module")),),
        )  # fmt: skip
    elif after == {False} and len(before) > 1 and event.kind is Happening.STATE:
        yield Decision(
            "MG508", Kind.KEPT, module, node, "names of weights begin with 'module.' in no run here", "the copy is of the plain model in every run",
            differs=True,
        )  # fmt: skip
    elif after == {False}:
        yield Decision(
            "MG508", Kind.CONVERTED, module, node, "names of weights keep their 'module.'", "the wrapper put it before them",
            edits=_renamed(event, node),
        )  # fmt: skip
    else:
        yield Decision(
            "MG508", Kind.TODO, module, node, "some runs come here with the plain model: its names have no 'module.'"
        )


def _renamed(event: Event, node: ast.Call) -> tuple[Edit, ...]:
    items = ".items()}"
    if event.kind is Happening.STATE:
        return (Replace(event.module, node, (f'{{f"{_PREFIX}{{name}}": weight for name, weight in ', node, items)),)
    given = node.args[0] if node.args else next((one.value for one in node.keywords if one.arg == "state_dict"), None)
    if given is None:
        return ()
    return (
        Replace(event.module, given, (f'{{name.removeprefix("{_PREFIX}"): weight for name, weight in ', given, items)),
    )


def _matters(training: Training, event: Event) -> bool:
    """Whether something asks more of the names than what they contain or how they end."""
    assert isinstance(event.node, ast.expr)
    return _Names(training, event).matter(event.module, event.node)


@dataclass(eq=False)
class _Names:
    """The uses of the names that ``named_parameters()`` gives, through the functions that they are handed to."""

    training: Training
    event: Event
    seen: set[tuple[ast.AST, str]] = field(default_factory=set)

    def matter(self, module: Module, node: ast.expr) -> bool:
        """Whether it matters what the names that something goes over begin with."""
        step = module.step(node).node
        up = {child: one for one in ast.walk(step) for child in ast.iter_child_nodes(one)}
        match up.get(node):
            case ast.For() | ast.comprehension() as over:
                return self._of_loop(module, step, over)
            case ast.Attribute(attr="items") as asked if isinstance(call := up.get(asked), ast.Call):
                return self.matter(module, call)
            case ast.Attribute(attr="values") | ast.Subscript(ctx=ast.Store()):
                return False
            case ast.Call(func=ast.Name(id="dict" | "list" | "sorted" | "OrderedDict" | "tuple")) as made:
                return self.matter(module, made)
            case ast.Call(func=ast.Name(id="len")):
                return False
            case ast.Assign(targets=[ast.Name(id=name)], value=value) if value is node:
                function = module.step(node).function
                return self._of_name(module, function if function is not None else module.tree, name)
            case ast.Call() as call if call.func is not node:
                return self._handed(call, node)
            case ast.keyword() as said if isinstance(call := up.get(said), ast.Call):
                return self._handed(call, node)
        return not isinstance(step, ast.Expr) or step.value is not node

    def _of_loop(self, module: Module, step: ast.AST, over: ast.For | ast.comprehension) -> bool:
        name = over.target.elts[0] if isinstance(over.target, ast.Tuple) and over.target.elts else over.target
        if not isinstance(name, ast.Name):
            return True
        return not self._is_only_searched(module, over if isinstance(over, ast.For) else step, name.id)

    def _is_only_searched(self, module: Module, scope: ast.AST, name: str) -> bool:
        """Whether nothing asks more of one name of a weight, as a variable holds it, than what it contains or how it ends."""
        up = {child: one for one in ast.walk(scope) for child in ast.iter_child_nodes(one)}
        uses = [
            use for use in ast.walk(scope)
            if isinstance(use, ast.Name) and use.id == name and isinstance(use.ctx, ast.Load)
        ]  # fmt: skip
        return all(
            _is_plain(use, up)
            or self._is_in_nothing(module, use, up)
            or self._is_kept(module, use, up)
            or self._is_tested(use, up)
            for use in uses
        )

    def _is_tested(self, use: ast.Name, up: dict[ast.AST, ast.AST]) -> bool:
        """``exclude(name)``, a function of the script that only searches it."""
        call = up.get(use)
        if not isinstance(call, ast.Call) or call.func is use:
            return False
        functions = self._called(call)
        for function in functions:
            taken = function.node
            if not isinstance(taken, ast.FunctionDef | ast.Lambda):
                return False
            held = _parameter(function, taken, call, use)
            if held is None or (taken, held) in self.seen:
                return False
            self.seen.add((taken, held))
            if not self._is_only_searched(function.data["frame"].module, taken, held):
                return False
            self.seen.discard((taken, held))
        return bool(functions)

    def _called(self, call: ast.Call) -> set[Obj]:
        """The functions of the script that a call runs."""
        run = self.training.analysis.run
        blocks = (block for block in run.root.blocks() if block.kind is BlockKind.CALL and block.node is call)
        named = values_at(run, self.event.names, call.func) or ()  # a call in which nothing happens leaves no block
        labels = [block.label for block in blocks] or named
        return {one for one in labels if isinstance(one, Obj) and one.kind is Of.FUNCTION}

    def _of_name(self, module: Module, scope: ast.AST, name: str) -> bool:
        """Whether it matters in the uses of a name that holds them."""
        uses = [one for one in ast.walk(scope) if isinstance(one, ast.Name) and one.id == name]
        if (scope, name) in self.seen or sum(isinstance(one.ctx, ast.Store) for one in uses) > 1:
            return True
        self.seen.add((scope, name))
        return any(self.matter(module, use) for use in uses if isinstance(use.ctx, ast.Load))

    def _handed(self, call: ast.Call, node: ast.expr) -> bool:
        """Whether it matters in the functions that a call runs."""
        labels = self._called(call)
        for function in labels:
            taken = function.node
            if not isinstance(taken, ast.FunctionDef | ast.AsyncFunctionDef):
                return True
            held = _parameter(function, taken, call, node)
            if held is None or self._of_name(function.data["frame"].module, taken, held):
                return True
        return not labels

    def _is_kept(self, module: Module, use: ast.Name, up: dict[ast.AST, ast.AST]) -> bool:
        """``weights[name] = …``, where what the dictionary has by name does not matter."""
        match up.get(use):
            case ast.Subscript(value=ast.Name(id=name), slice=found, ctx=ast.Store()) if found is use:
                function = module.step(use).function
                return not self._of_name(module, function if function is not None else module.tree, name)
        return False

    def _is_in_nothing(self, module: Module, use: ast.Name, up: dict[ast.AST, ast.AST]) -> bool:
        """``name in skipped``, where nothing is skipped."""
        match up.get(use):
            case ast.Compare(left=ast.Name(), ops=[ast.In() | ast.NotIn()], comparators=[found]) if found is not use:
                run = self.training.analysis.run
                held = values_at(run, self.event.names, found) if module is self.event.module else None
                return bool(held) and all(run.exact_items(one) == [] for one in held or ())
        return False


def _is_plain(use: ast.Name, up: dict[ast.AST, ast.AST]) -> bool:
    """``"bias" in name``, ``name.endswith(…)``, or a name that is shown."""
    match up.get(use):
        case ast.Compare(left=ast.Constant(value=str(text)), ops=[ast.In() | ast.NotIn()]):
            return text not in _PREFIX and not any(text.startswith(_PREFIX[at:]) for at in range(len(_PREFIX)))
        case ast.Compare(left=ast.Name(), ops=[ast.In() | ast.NotIn()], comparators=[found]):
            return found is use
        case ast.Attribute(attr="endswith") | ast.FormattedValue():
            return True
        case ast.Call(func=ast.Name(id="print")):
            return True
    return False


def _parameter(
    function: Obj, taken: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda, call: ast.Call, given: ast.expr
) -> str | None:
    """The parameter of a function that an argument of a call is bound to."""
    names = [arg.arg for arg in (*taken.args.posonlyargs, *taken.args.args, *taken.args.kwonlyargs)]
    return next((name for name in names if argument(function, call, name) is given), None)
