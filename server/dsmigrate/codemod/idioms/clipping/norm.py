"""``clip_grad_norm_`` of the model's gradients right before the step becomes ``gradient_clipping``."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from dsmigrate.codemod.analysis.analysis import parameters_of, static_value
from dsmigrate.codemod.analysis.code import condition_said, holds_by_default, said
from dsmigrate.codemod.analysis.conditions import TRUE, Condition, Literal, either, literals_of, under
from dsmigrate.codemod.analysis.machine import sources
from dsmigrate.codemod.analysis.events import Event, Happening
from dsmigrate.codemod.analysis.state import choose
from dsmigrate.codemod.analysis.training import Training
from dsmigrate.codemod.analysis.values import Const, Expr, Kind as ThingKind, Obj, Tensor, TensorKind, Value, each
from dsmigrate.codemod.decision import Decision, Setting
from dsmigrate.codemod.idioms.facts import Facts, constant, is_statement
from dsmigrate.codemod.model import Idea, Kind
from dsmigrate.codemod.program.edits import Edit, Insert, Remove, ReplaceStatement

IDEAS = (
    Idea(
        "MG421",
        "clip_grad_norm_ becomes gradient_clipping",
        "The engine clips by the global norm, on averaged and unscaled gradients, right before the step.",
        "At ZeRO 1-3 p.grad is not there for the script to clip.",
        "deepspeed/runtime/engine.py, _take_model_step",
        Kind.CONVERTED,
    ),
    Idea(
        "MG422",
        "The gradient norm is still reported",
        "grad_norm(engine) gives the norm behind the step.",
        "engine.get_global_grad_norm() is there behind step() at ZeRO 1-3; at ZeRO 0 it is kept before the step.",
        "deepspeed/runtime/engine.py, get_global_grad_norm",
        Kind.CONVERTED,
    ),
    Idea(
        "MG423",
        "Clipping that DeepSpeed does not do",
        "Clipping by value, of some parameters only, or by another norm works on p.grad, which is whole at ZeRO 0 only.",
        "The engine clips by the 2-norm of all gradients of the optimizer.",
        "deepspeed/runtime/config.py, gradient_clipping",
        Kind.KEPT,
    ),
    Idea(
        "MG424",
        "A clipping limit that the config cannot follow",
        "The limit changes during training, or is known only inside the loop; the script's own clip stays, at ZeRO 0.",
        "The engine reads gradient_clipping when it is made.",
        "deepspeed/runtime/engine.py, gradient_clipping",
        Kind.KEPT,
    ),
)


def clip(training: Training, facts: Facts) -> Iterator[Decision]:
    """The decisions about all clips of the training, and the limit that they come to."""
    clips = [event for event in training.events(Happening.CLIP) if _is_of(training, event)]
    found: list[tuple[Condition, Value]] = []
    kept = False
    for event in _one_each(clips):
        why = _why_not(training, facts, event)
        step = _step_behind(training, event)
        if why is not None or step is None:
            kept = True
            yield _stays(event, why or ("MG423", "no step follows it that is seen"))
            continue
        condition = _relative(event, step)
        found.append((condition, event["limit"]))
        yield _converted(facts, event, step)
    yield _limit(training, facts, found, clips, kept=kept)


def _is_of(training: Training, event: Event) -> bool:
    return bool(parameters_of(training.analysis.run, event["params"]) & training.models)


def _one_each(events: list[Event]) -> list[Event]:
    """One event for each place."""
    return list({event.node: event for event in reversed(events)}.values())[::-1]


def _why_not(training: Training, facts: Facts, event: Event) -> tuple[str, str] | None:
    """Why a clip cannot be the engine's: the code that says so, and a sentence."""
    if constant(event["by_value"]) is not False:
        return "MG423", "it clips each number by itself"
    if constant(event["norm"]) not in {2, 2.0}:
        return "MG423", "it uses another norm than the second"
    if not _is_whole(training, event["params"]):
        return "MG423", "it clips some parameters only"
    if said(event["limit"], facts.site.names) is None:
        return "MG424", "its limit is not known where the engine is made"
    return None


def _is_whole(training: Training, params: Value) -> bool:
    """Whether a value holds the gradients of the whole model."""
    for one in each(params):
        if not (isinstance(one, Obj) and one.kind is ThingKind.ITERATOR and one.made_by == "element"):
            return False
        tensors = [tensor for value in sources(one) for tensor in each(value)]
        if not all(isinstance(tensor, Tensor) and tensor.kind is TensorKind.PARAMETER and tensor.of in training.models for tensor in tensors):
            return False
    return True


def _step_behind(training: Training, event: Event) -> Event | None:
    """The step that follows a clip."""
    return next((step for step in training.steps if step.number > event.number), None)


def _relative(event: Event, step: Event) -> Condition:
    """Under which condition a clip comes before its step, where that is made."""
    assumed = {literal.atom: literal.holds for literal in literals_of(step.condition)}
    return under(event.condition, assumed)


def _stays(event: Event, why: tuple[str, str]) -> Decision:
    code, reason = why
    return Decision(
        code, Kind.KEPT, event.module, event.node, "your clip stays, at ZeRO 0", reason, stage=0,
        otherwise=Decision(code, Kind.TODO, event.module, event.node, "this clip finds no gradients at ZeRO 1-3", reason),
    )  # fmt: skip


def _converted(facts: Facts, event: Event, step: Event) -> Decision:
    module = event.module
    statement = module.step(event.node).node
    message = f"clip_grad_norm_ → gradient_clipping = {module.text(_limit_node(event))}"
    if is_statement(event):
        edits: tuple[Edit, ...] = (Remove(module, statement),)
        return Decision("MG421", Kind.CONVERTED, module, event.node, message, "the engine clips right before the step", edits=edits)
    engine = facts.engine(step)
    if isinstance(statement, ast.Assign) and statement.value is event.node and engine is not None and step.module is module:
        target = module.text(statement.targets[0])
        found = _norm_behind(event, step, target, engine)
        if found is not None:
            return Decision(
                "MG422", Kind.CONVERTED, module, event.node, f"{message}; {target} = ds_compat.grad_norm({engine}) behind the step",
                "the engine clips within its step", edits=found, parts=frozenset({"grad_norm", "keep_grad_norm"}),
            )  # fmt: skip
    return _stays(event, ("MG422", "what it gives is used before the step"))


def _norm_behind(event: Event, step: Event, target: str, engine: str) -> tuple[Edit, ...] | None:
    """The norm is taken behind the step, under the condition of the clip; None where it is needed before."""
    module = event.module
    own, place = module.step(event.node), module.step(step.node)
    line = f"{target} = ds_compat.grad_norm({engine})"
    outer = own.up
    if outer is not None and isinstance(outer.node, ast.If) and outer.node not in {one.node for one in place.around()}:
        if _reads_between(outer.body, outer.index, place.index if place.body is outer.body else None, target):
            return None
        test = outer.node.test
        return (Remove(module, own.node), Insert(module, place.node, (("if ", test, ":"), (f"    {line}",)), after=True))
    if place.body is not own.body:
        return None if _reads_between(own.body, own.index, None, target) else (Remove(module, own.node), Insert(module, place.node, ((line,),), after=True))
    between = own.body[own.index + 1 : place.index]
    if not any(_reads(one, target) for one in between):
        return (Remove(module, own.node), Insert(module, place.node, ((line,),), after=True))
    if any(isinstance(sub, _LEAVES) for one in between for sub in ast.walk(one)) or not isinstance(place.node, ast.Expr):
        return None
    # What looks at the norm stands between clip and step: the step goes where the clip was.
    return (ReplaceStatement(module, own.node, ((f"{engine}.step()",), (line,))), Remove(module, place.node))


_LEAVES = (ast.Break, ast.Continue, ast.Return, ast.Raise)


def _reads_between(body: list[ast.stmt], index: int, end: int | None, target: str) -> bool:
    return any(_reads(one, target) for one in body[index + 1 : end])


def _reads(node: ast.AST, target: str) -> bool:
    return any(isinstance(sub, ast.Name | ast.Attribute) and ast.unparse(sub) == target and isinstance(sub.ctx, ast.Load) for sub in ast.walk(node))


def _limit_node(event: Event) -> ast.expr:
    node = event.node
    assert isinstance(node, ast.Call)
    if len(node.args) > 1:
        return node.args[1]
    return next((keyword.value for keyword in node.keywords if keyword.arg in {"max_norm", "clip_value", "value"}), node)


def _limit(training: Training, facts: Facts, found: list[tuple[Condition, Value]], clips: list[Event], *, kept: bool) -> Decision:
    """The setting: what the clips come to, 0.0 where there is none or where they stay."""
    site = facts.site
    node: ast.AST = clips[0].node if clips else site.node
    module = clips[0].module if clips else site.module
    if not found or kept:
        return Decision(
            "MG421", Kind.CONVERTED, module, node, "gradient_clipping: 0.0", "the script does not clip; DeepSpeed's default is 1.0",
            config={"gradient_clipping": Setting(None, static=0.0)}, lines=(0, 0),
        )  # fmt: skip
    value, code = _together(found, facts)
    static = static_value(training.analysis, value)
    condition = either(*(one for one, _ in found))
    if holds_by_default(training.analysis, condition) is False:
        static = 0.0
    number = float(static) if isinstance(static, int | float) and not isinstance(static, bool) else 0.0
    return Decision(
        "MG421", Kind.CONVERTED, module, node, f"gradient_clipping: {code or number}", "the limit of the script",
        config={"gradient_clipping": Setting(value, static=number, code="" if isinstance(value, Const) else code)}, lines=(0, 0),
    )  # fmt: skip


def _together(found: list[tuple[Condition, Value]], facts: Facts) -> tuple[Value, str]:
    """One limit for all clips, and the expression that gives it."""
    names = facts.site.names
    values = {value for _, value in found}
    condition = either(*(one for one, _ in found))
    if len(values) == 1:
        value = next(iter(values))
        code = said(value, names) or ""
        if condition is TRUE or _is_about(condition, value):
            return value, code
        test = condition_said(condition, names)
        if test is not None:
            return Expr("limit", value), f"{code} if {test} else 0.0"
        return value, code
    value = choose(found)
    return value, said(value, names) or ""


def _is_about(condition: Condition, limit: Value) -> bool:
    """Whether a condition only asks whether there is a limit: ``if clip:``, ``if clip > 0``, ``if clip is not None``."""
    if not isinstance(condition, Literal):
        return False
    atom = condition.atom
    if atom == limit:
        return condition.holds
    if atom.op in {"<", "<="} and atom.args == (Const(0), limit) or atom.op == "<" and atom.args == (Const(0.0), limit):
        return condition.holds
    return not condition.holds and atom.op in {"==", "is"} and atom.args[0] == limit and atom.args[1] in {Const(0), Const(0.0), Const(None)}


