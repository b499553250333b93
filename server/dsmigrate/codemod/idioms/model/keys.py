"""Names of weights: a wrapped model's begin with ``module.``, the engine's do, a plain model's do not."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from dsmigrate.codemod.analysis.events import Event, Happening
from dsmigrate.codemod.analysis.roles import role_of
from dsmigrate.codemod.analysis.summaries.registry import Role
from dsmigrate.codemod.analysis.training import Training
from dsmigrate.codemod.analysis.values import Obj, each
from dsmigrate.codemod.decision import Decision
from dsmigrate.codemod.idioms.facts import Facts, constant
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
        yield from _changed(events[0], node, holder, before, after)


def _changed(
    event: Event, node: ast.Call, holder: ast.expr, before: set[bool], after: set[bool | None]
) -> Iterator[Decision]:
    module = event.module
    if event.kind is Happening.PARAMETERS:
        by_name = str(constant(event["name"])).startswith("named")
        if by_name and before != after and True in before and _matters(module, node):
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


def _matters(module: Module, node: ast.Call) -> bool:
    """Whether something asks more of the names than what they contain or how they end."""
    step = module.step(node).node
    up = {child: one for one in ast.walk(step) for child in ast.iter_child_nodes(one)}
    for one in ast.walk(step):
        if isinstance(one, ast.For | ast.comprehension) and node in ast.walk(one.iter):
            name = one.target.elts[0] if isinstance(one.target, ast.Tuple) and one.target.elts else one.target
            if not isinstance(name, ast.Name):
                return True
            uses = [
                use
                for use in ast.walk(step)
                if isinstance(use, ast.Name) and use.id == name.id and isinstance(use.ctx, ast.Load)
            ]
            return not all(_is_plain(use, up) for use in uses)
    holder = up.get(node)
    return not (isinstance(holder, ast.Call) and ast.unparse(holder.func) in {"list", "len"})


def _is_plain(use: ast.Name, up: dict[ast.AST, ast.AST]) -> bool:
    """``"bias" in name``, ``name.endswith(…)``, or a name that is shown."""
    match up.get(use):
        case ast.Compare(left=ast.Constant(value=str(text)), ops=[ast.In() | ast.NotIn()]):
            return not text.startswith("module")
        case ast.Compare(left=ast.Name(), ops=[ast.In() | ast.NotIn()], comparators=[found]):
            return found is use
        case ast.Attribute(attr="endswith") | ast.FormattedValue():
            return True
        case ast.Call(func=ast.Name(id="print")):
            return True
    return False
