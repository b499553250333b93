"""MG4xx: backward, step, zero_grad and gradient accumulation.

A loop that is proven to run exactly one backward per step becomes the plain engine loop. Everything else (windows,
tails, inner micro-loops, several losses) keeps its shape under ``managed_gradient_accumulation: false``, where the
engine steps exactly when the script says so and does not divide the loss: measured exact at ZeRO 0-3.
"""

from __future__ import annotations

from dataclasses import dataclass

import libcst as cst
from packaging.version import Version

from dsmigrate.codemod.model import Idea, Kind
from dsmigrate.codemod.names import dotted
from dsmigrate.codemod.plan import Plan
from dsmigrate.codemod.steps.refusals import stepped_optimizer
from dsmigrate.codemod.tree import Function, Node, Statement, descendants

IDEAS = (
    Idea(
        "MG401",
        "loss.backward() becomes engine.backward(loss)",
        "The engine runs backward and averages the gradients.",
        "loss.backward() fails at ZeRO 0 and bypasses loss scaling; engine.backward works at every stage.",
        "engine-semantics 5; ddp-idioms trap 9",
        Kind.CONVERTED,
    ),
    Idea(
        "MG402",
        "optimizer.step() becomes engine.step()",
        "The engine clips, steps the optimizer and zeroes the gradients.",
        "Stepping the optimizer directly bypasses the engine: no clipping at ZeRO 0, no partitioned update.",
        "engine-semantics 10",
        Kind.CONVERTED,
    ),
    Idea(
        "MG403",
        "zero_grad goes",
        "engine.step() zeroes the gradients itself.",
        "A zero_grad beside the step, or before the first backward of a step, clears what is already clear.",
        "deepspeed/runtime/engine.py, _take_model_step",
        Kind.CONVERTED,
    ),
    Idea(
        "MG404",
        "Accumulation keeps the script's own windows",
        "managed_gradient_accumulation is false: the engine steps where the script steps, and the script's own division "
        "of the loss stays.",
        "DeepSpeed's managed accumulation counts micro-batches over the whole run and knows no last partial window; a "
        "window counted per epoch is the same only if the loader's length is a multiple of it, which no file shows. "
        "Unmanaged accumulation is exact for every shape of loop.",
        "engine-semantics 3 and 4; DeepSpeed 0.19.4, managed_gradient_accumulation",
        Kind.KEPT,
    ),
    Idea(
        "MG405",
        "no_sync goes",
        "Skipping DDP's gradient exchange has no place in the engine; it asserts at ZeRO 2 and 3.",
        "With ZeRO gradients are partitioned as they arrive; the sums are the same.",
        "engine-semantics 5; https://github.com/deepspeedai/DeepSpeed/issues/6793",
        Kind.CONVERTED,
    ),
    Idea(
        "MG406",
        "The end of a window is marked by hand",
        "The engine is told by set_gradient_accumulation_boundary which backward ends a window.",
        "managed_gradient_accumulation is new in 0.19.4; and without management gradients are averaged inside step(), too "
        "late for code that looks at p.grad before it.",
        "engine-semantics 3",
        Kind.CONVERTED,
    ),
    Idea(
        "MG407",
        "The script never zeroes its gradients",
        "engine.step() zeroes them after every step; under DDP they kept adding up.",
        "That is nearly always a bug of the original, but the training changes.",
        "deepspeed/runtime/engine.py, _take_model_step",
        Kind.TODO,
    ),
    Idea(
        "MG408",
        "zero_grad that throws gradients away",
        "A zero_grad away from the step drops what has been accumulated; it goes to the engine's optimizer.",
        "At ZeRO 1-3 gradients live in the engine, not in p.grad, so the client optimizer's zero_grad would miss them.",
        "engine-semantics 11",
        Kind.CONVERTED,
    ),
    Idea(
        "MG410",
        "Gradients are read after the step",
        "engine.step() has zeroed the gradients by then; under DDP they were still there.",
        "engine.get_global_grad_norm() gives the norm after the step; anything else has to be read before it, at ZeRO 0.",
        "deepspeed/runtime/engine.py, _take_model_step",
        Kind.TODO,
    ),
    Idea(
        "MG409",
        "Gradients are read or edited",
        "p.grad between backward and step holds the averaged gradient only at ZeRO 0.",
        "At ZeRO 1-3 p.grad is None after backward: an edit or a custom clip would silently do nothing. The config is "
        "given ZeRO stage 0, where the script's own code works as before.",
        "engine-semantics 7; ddp-idioms trap 6",
        Kind.KEPT,
    ),
)


@dataclass(slots=True)
class _Sites:
    backward: list[cst.Call]
    steps: list[cst.Call]
    zeroes: list[Statement]


def find_backward(plan: Plan) -> list[cst.Call]:
    """Every call that runs backward for the trained model: ``x.backward()``, also through a scaler or an optimizer."""
    found: list[cst.Call] | None = plan.facts.get("backward")
    if found is not None:
        return found
    found = []
    for call in plan.tree.calls:
        func = call.func
        if not isinstance(func, cst.Attribute) or func.attr.value != "backward":
            continue
        base = func.value
        if isinstance(base, cst.Call) and isinstance(base.func, cst.Name) and base.func.value == "super":
            continue
        if dotted(base) in ("torch.autograd", "autograd", "ctx"):
            continue
        function = plan.function_of(call)
        if function.name in ("backward", "setup_context") and function.class_seen is not None:
            if any("Function" in b for b in function.class_seen.bases):
                continue
        found.append(call)
    plan.facts["backward"] = found
    return found


def find_steps(plan: Plan) -> list[cst.Call]:
    """Every call that steps the trained optimizer."""
    return [call for call in plan.tree.calls if stepped_optimizer(plan, call) is not None]


def run(plan: Plan) -> None:
    """Convert the loop; the config says which kind of accumulation the engine has to do."""
    sites = _Sites(find_backward(plan), find_steps(plan), _find_zeroes(plan))
    if not sites.steps:
        raise plan.refuse("MG910", sites.backward[0] if sites.backward else plan.wraps[0].statement,
                          "the optimizer is stepped in another module", "half a conversion would not train")  # fmt: skip
    for call in (*sites.backward, *sites.steps):
        if plan.site is not None and plan.function_of(call) is plan.site.function and plan.is_before_engine(call):
            raise plan.refuse("MG913", call, "backward or step runs before model and optimizer are both there for an engine",
                              "the engine has to exist before it is used")  # fmt: skip
    for call in sites.backward:
        _retained(plan, call, sites)
        _backward(plan, call)
    for call in sites.steps:
        _step(plan, call)
    managed = _is_one_to_one(plan, sites)
    plan.facts["managed"] = managed
    _no_sync(plan)
    _zero_grads(plan, sites, managed=managed)
    if not managed:
        _unmanaged(plan, sites)
    _gradient_access(plan)
    plan.facts["sites"] = sites


def check_gradient_helpers(plan: Plan) -> None:
    """Look for hidden gradient work between backward and step; runs after clipping has taken its own calls away."""
    _gradient_helpers(plan, plan.facts["sites"])


def _retained(plan: Plan, call: cst.Call, sites: _Sites) -> None:
    keeps = any(
        a.keyword is not None and a.keyword.value == "retain_graph" and dotted(a.value) != "False" for a in call.args
    )
    if keeps and len(sites.backward) > 1:
        raise plan.refuse(
            "MG905", call, "several backward passes share a graph (retain_graph=True)",
            "the engine reduces gradients during each of them",
        )  # fmt: skip


def _loss_of(plan: Plan, call: cst.Call) -> Node:
    """The loss expression of a backward call: through ``scaler.scale(loss)`` and ``optimizer.backward(loss)``."""
    assert isinstance(call.func, cst.Attribute)
    base = call.func.value
    if plan.roles.is_optimizer(base) and call.args:
        return call.args[0].value
    if isinstance(base, cst.Call) and isinstance(base.func, cst.Attribute) and base.func.attr.value == "scale":
        if base.args:
            return base.args[0].value
    return base


def scaler_of(plan: Plan, call: cst.Call) -> Node | None:
    """The gradient scaler that a backward or step call goes through, or None."""
    assert isinstance(call.func, cst.Attribute)
    base = call.func.value
    if isinstance(base, cst.Call) and isinstance(base.func, cst.Attribute) and base.func.attr.value == "scale":
        if plan.roles.is_scaler(base.func.value) or _scaler_named(base.func.value):
            return base.func.value
    if call.func.attr.value == "step" and call.args and (plan.roles.is_scaler(base) or _scaler_named(base)):
        return base
    return None


def _scaler_named(node: Node) -> bool:
    text = (dotted(node) or "").lower()
    return "scaler" in text


def _backward(plan: Plan, call: cst.Call) -> None:
    engine = plan.engine_in(call)
    statement = plan.tree.statement(call)
    if engine is None:
        raise plan.refuse(
            "MG913", call, "backward runs where neither the model nor its holder can be named",
            "the engine has to run it",
        )  # fmt: skip
    loss = _loss_of(plan, call)
    scaler = scaler_of(plan, call) if plan.options.precision == "keep" else None
    own_scaler = f"{engine}.amp_scaler" if scaler is None and plan.facts.get("amp_scaler") else None
    extra = [arg for arg in call.args if arg.keyword is not None and arg.keyword.value == "retain_graph"]
    is_optimizer_backward = plan.roles.is_optimizer(call.func.value)  # type: ignore[attr-defined]
    retain = f", retain_graph={plan.code(extra[0].value)}" if extra and dotted(extra[0].value) != "False" else ""

    def edit(updated: Node) -> Node:
        assert isinstance(updated, cst.Call)
        assert isinstance(updated.func, cst.Attribute)
        base: Node = updated.func.value
        if is_optimizer_backward:
            value = updated.args[0].value
        elif loss is not call.func.value:  # type: ignore[attr-defined]
            assert isinstance(base, cst.Call)
            value = base.args[0].value
        else:
            value = base  # type: ignore[assignment]
        value = _bare_parentheses(value)
        keep = [
            arg.with_changes(comma=cst.MaybeSentinel.DEFAULT)
            for arg in updated.args
            if arg.keyword is not None and arg.keyword.value == "retain_graph" and retain
        ]
        arguments = [cst.Arg(value), *keep]
        if scaler is not None:
            assert isinstance(base, cst.Call)
            assert isinstance(base.func, cst.Attribute)
            arguments.insert(0, cst.Arg(cst.parse_expression(engine)))
            return cst.Call(cst.Attribute(base.func.value, cst.Name("engine_backward")), arguments)
        if own_scaler is not None:
            arguments.insert(0, cst.Arg(cst.parse_expression(engine)))
            return cst.Call(cst.parse_expression(f"{own_scaler}.engine_backward"), arguments)
        return cst.Call(cst.Attribute(cst.parse_expression(engine), cst.Name("backward")), arguments)

    plan.edits.replace(call, edit)
    plan.handled.add(call)
    if scaler is not None:
        plan.facts["scaler_used"] = True
    _mark_twins(plan, statement)
    shown = plan.code(scaler) if scaler is not None else own_scaler
    target = f"{shown}.engine_backward({engine}, …)" if shown is not None else f"{engine}.backward(…)"
    plan.converted("MG401", statement, f"{_short(plan.code(call))} → {target}", "the engine averages the gradients")


def _bare_parentheses(value: cst.BaseExpression) -> cst.BaseExpression:
    if getattr(value, "lpar", ()) and not isinstance(value, cst.Tuple | cst.GeneratorExp | cst.NamedExpr):
        if "\n" not in cst.Module([]).code_for_node(value):
            return value.with_changes(lpar=(), rpar=())
    return value


def _short(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= 60 else text[:57] + "…"


def _mark_twins(plan: Plan, statement: Statement) -> None:
    """An ``if amp: … else: …`` may become two equal branches: then one is enough."""
    for outer in statement.enclosing():
        if isinstance(outer.node, cst.If) and isinstance(outer.node.orelse, cst.Else):
            plan.edits.twins.add(outer.node)


def _step(plan: Plan, call: cst.Call) -> None:
    statement = plan.tree.statement(call)
    engine = plan.engine_in(call)
    if engine is None:
        raise plan.refuse(
            "MG913", call, "the optimizer is stepped where neither the model nor its holder can be named",
            "the engine has to step",
        )  # fmt: skip
    scaler = scaler_of(plan, call) if plan.options.precision == "keep" else None
    text = step_text(plan, plan.code(scaler) if scaler is not None else None, engine)
    if not isinstance(statement.node, cst.Expr):
        plan.todo("MG402", statement, "the value of the optimizer's step is used; engine.step() returns None",
                  "the engine's step has no result")  # fmt: skip
    plan.edits.replace(call, text)
    plan.handled.add(call)
    _mark_twins(plan, statement)
    plan.converted("MG402", statement, f"{_short(plan.code(call))} → {text}", "the engine clips, steps and zeroes")


def step_text(plan: Plan, scaler: str | None, engine: str) -> str:
    """The call that steps the engine, through the script's scaler or the one that replaces apex amp."""
    if scaler is None and plan.facts.get("amp_scaler"):
        scaler = f"{engine}.amp_scaler"
    return f"{scaler}.engine_step({engine})" if scaler is not None else f"{engine}.step()"


# -- how often -----------------------------------------------------------------------------------------------------


def _path(statement: Statement) -> tuple[tuple[Node, str], ...]:
    """The branches that lead to a statement, outermost first; ``with`` blocks do not matter."""
    found: list[tuple[Node, str]] = []
    branch = statement.branch
    for outer in statement.enclosing():
        if not isinstance(outer.node, cst.With):
            found.append((outer.node, branch))
        branch = outer.branch
    return tuple(reversed(found))


def _is_one_to_one(plan: Plan, sites: _Sites) -> bool:
    """Whether every step is preceded by exactly one backward, whatever path the loop takes."""
    functions = {plan.function_of(call) for call in (*sites.backward, *sites.steps)}
    for function in functions:
        backs = [plan.tree.statement(c) for c in sites.backward if plan.function_of(c) is function]
        steps = [plan.tree.statement(c) for c in sites.steps if plan.function_of(c) is function]
        if not backs or not steps:
            return False
        if not _balanced(plan, function, backs, steps):
            return False
    return True


def _balanced(plan: Plan, function: Function, backs: list[Statement], steps: list[Statement]) -> bool:
    block = _innermost_loop(backs[0])
    for statement in (*backs, *steps):
        if _innermost_loop(statement) is not block:
            return False
    order = sorted((*[(s.order, "b") for s in backs], *[(s.order, "s") for s in steps]))
    first, last = order[0][0], order[-1][0]
    # Leaving early between backward and step would leave a gradient behind.
    for statement in function.statements:
        if first < statement.order < last and isinstance(statement.node, cst.Continue | cst.Break | cst.Return):
            return False
    counts = _count(plan, block if block is not None else function.node, function, set(backs), set(steps))
    return counts == {("b", "s")}


def _innermost_loop(statement: Statement) -> Node | None:
    for outer in statement.enclosing():
        if isinstance(outer.node, cst.For | cst.While):
            return outer.node
    return None


def _count(
    plan: Plan, owner: Node, function: Function, backs: set[Statement], steps: set[Statement]
) -> set[tuple[str, ...]]:
    """The possible sequences of backwards and steps in one run of a block (paths without either are left out)."""
    table: dict[Node, list[Statement]] = {}
    for statement in function.statements:
        table.setdefault(statement.block, []).append(statement)

    def block(node: Node | None) -> set[tuple[str, ...]]:
        result: set[tuple[str, ...]] = {()}
        for statement in table.get(node, ()) if node is not None else ():
            parts = one(statement)
            result = {left + right for left in result for right in parts}
            if len(result) > 64 or any(len(item) > 6 for item in result):
                return {("many",)}
        return result

    def one(statement: Statement) -> set[tuple[str, ...]]:
        node = statement.node
        if statement in backs:
            return {("b",)}
        if statement in steps:
            return {("s",)}
        if isinstance(node, cst.If):
            orelse = node.orelse
            other = (
                one(plan.tree.statement_of[orelse])
                if isinstance(orelse, cst.If)
                else block(orelse.body)
                if orelse is not None
                else {()}
            )
            return block(node.body) | other
        if isinstance(node, cst.With):
            return block(node.body)
        if isinstance(node, cst.Try | cst.TryStar):
            return block(node.body)
        if isinstance(node, cst.For | cst.While):
            inner = block(node.body)
            return {()} if inner == {()} else {("many",)}
        return {()}

    body = owner.body if isinstance(owner, cst.For | cst.While | cst.FunctionDef) else owner
    return {path for path in block(body) if path} if body in table else set()


# -- zero_grad -----------------------------------------------------------------------------------------------------


def _find_zeroes(plan: Plan) -> list[Statement]:
    found = []
    for call in plan.tree.calls:
        func = call.func
        if not isinstance(func, cst.Attribute) or func.attr.value != "zero_grad":
            continue
        if plan.roles.is_optimizer(func.value) or plan.is_ours(func.value):
            statement = plan.tree.statement(call)
            if isinstance(statement.node, cst.Expr) and statement.node.value is call:
                found.append(statement)
    found.extend(statement for statement in plan.tree.statements if _is_none_loop(plan, statement))
    return sorted(found, key=lambda s: s.order)


def _is_none_loop(plan: Plan, statement: Statement) -> bool:
    """``for p in model.parameters(): p.grad = None``."""
    node = statement.node
    if not isinstance(node, cst.For) or not isinstance(node.iter, cst.Call):
        return False
    func = node.iter.func
    if not isinstance(func, cst.Attribute) or func.attr.value != "parameters" or not plan.is_ours(func.value):
        return False
    inner = plan.tree.statements[statement.order + 1 : statement.last_order + 1]
    return (
        len(inner) == 1
        and isinstance(inner[0].node, cst.Assign)
        and plan.code(inner[0].node).replace(" ", "") == f"{plan.code(node.target)}.grad=None"
    )


def _zero_grads(plan: Plan, sites: _Sites, *, managed: bool) -> None:
    if not sites.zeroes:
        plan.todo("MG407", sites.steps[0], "nothing in this file zeroes the gradients; engine.step() does after every step",
                  "under DDP the gradients of all steps would add up")  # fmt: skip
        return
    step_paths = {_path(plan.tree.statement(call)) for call in sites.steps}
    step_functions = {plan.function_of(call) for call in sites.steps}
    for statement in sites.zeroes:
        beside_step = any(_path(statement)[: len(p)] == p or p[: len(_path(statement))] == _path(statement)
                          for p in step_paths) and statement.function in step_functions  # fmt: skip
        if managed or (beside_step and _clears_nothing(plan, statement, sites)):
            plan.edits.remove(statement.node)
            _mark_twins(plan, statement)
            plan.converted("MG403", statement, f"{_short(plan.code(statement.node))} removed",
                           "engine.step() zeroes the gradients")  # fmt: skip
            continue
        engine = plan.engine_name(statement.function)
        before = (
            plan.site is not None
            and statement.function is plan.site.function
            and (statement.order <= plan.site.order or _innermost_loop(statement) is None)
        )
        if before or engine is None:
            plan.edits.remove(statement.node)
            plan.converted(
                "MG403", statement, f"{_short(plan.code(statement.node))} removed", "there is no gradient yet"
            )
            continue
        plan.edits.substitute(statement.node, f"drop_gradients({engine})")
        if _DROP_HELPER not in plan.helpers:
            plan.helpers.append(_DROP_HELPER)
        plan.converted("MG408", statement, f"{_short(plan.code(statement.node))} → drop_gradients({engine})",
                       "gradients live in the engine's optimizer")  # fmt: skip


_DROP_HELPER = '''def drop_gradients(engine):
    """What optimizer.zero_grad() did for gradients that were not stepped yet, at every ZeRO stage."""
    engine.optimizer.zero_grad()
    if engine.zero_optimization_stage() == 2:
        engine.optimizer.all_grad_tensors.clear()
'''


def _clears_nothing(plan: Plan, zero: Statement, sites: _Sites) -> bool:
    """Whether a zero_grad stands beside a step (same branch), so that the engine has just cleared everything."""
    path = _path(zero)
    for call in sites.steps:
        step = plan.tree.statement(call)
        if step.function is zero.function and _path(step) == path:
            return True
        # Twins: the step in both branches of an `if`, zero_grad behind it.
        if step.function is zero.function and _path(step)[: len(path)] == path and zero.order > step.order:
            deeper = _path(step)[len(path) :]
            if all(isinstance(node, cst.If) and _is_twin(plan, node, sites) for node, _ in deeper):
                return True
    return False


def _is_twin(plan: Plan, node: Node, sites: _Sites) -> bool:
    statement = plan.tree.statement_of[node]
    branches = {
        _path(plan.tree.statement(call))[len(_path(statement))][1]
        for call in sites.steps
        if statement.order < plan.tree.statement(call).order <= statement.last_order
        and len(_path(plan.tree.statement(call))) > len(_path(statement))
    }
    return {"body", "orelse"} <= branches


# -- accumulation --------------------------------------------------------------------------------------------------


def _no_sync(plan: Plan) -> None:
    for statement in plan.tree.withs:
        node = statement.node
        assert isinstance(node, cst.With)
        hits = [item for item in node.items if _is_no_sync(plan, item.item)]
        if not hits:
            continue
        if len(hits) == len(node.items):
            plan.edits.dissolve(node)
        else:
            for item in hits:
                plan.edits.replace(item.item, "contextlib.nullcontext()")
                plan.need("contextlib")
        _mark_twins(plan, statement)
        plan.converted(
            "MG405", statement, "no_sync removed", "the engine exchanges gradients itself; the sums are the same"
        )
    for statement in plan.tree.statements:
        node = statement.node
        if not isinstance(node, cst.Assign) or len(node.targets) != 1:
            continue
        target = node.targets[0].target
        if (
            isinstance(target, cst.Attribute)
            and target.attr.value == "require_backward_grad_sync"
            and plan.is_ours(target.value)
        ):
            plan.edits.remove(node)
            plan.converted("MG405", statement, "require_backward_grad_sync removed", "it switches DDP's reducer")
        elif _is_no_sync(plan, node.value) or _is_no_sync_function(plan, node.value):
            called = isinstance(_plain_branch(node.value), cst.Call)
            plan.need("contextlib")
            plan.edits.replace(node.value, "contextlib.nullcontext()" if called else "contextlib.nullcontext")
            plan.converted("MG405", statement, "no_sync removed", "the engine exchanges gradients itself")
    for call in plan.tree.calls:
        func = call.func
        if isinstance(func, cst.Attribute) and func.attr.value == "enter_context" and call.args:
            if _is_no_sync(plan, call.args[0].value):
                statement = plan.tree.statement(call)
                if isinstance(statement.node, cst.Expr):
                    plan.edits.remove(statement.node)
                    plan.converted("MG405", statement, "no_sync removed", "the engine exchanges gradients itself")


def _is_no_sync(plan: Plan, node: Node) -> bool:
    if isinstance(node, cst.IfExp):
        return _is_no_sync(plan, node.body) or _is_no_sync(plan, node.orelse)
    return isinstance(node, cst.Call) and isinstance(node.func, cst.Attribute) and node.func.attr.value == "no_sync"


def _is_no_sync_function(plan: Plan, node: Node) -> bool:
    if isinstance(node, cst.IfExp):
        return _is_no_sync_function(plan, node.body) or _is_no_sync_function(plan, node.orelse)
    return isinstance(node, cst.Attribute) and node.attr.value == "no_sync"


def _plain_branch(node: Node) -> Node:
    return _plain_branch(node.body) if isinstance(node, cst.IfExp) else node


def _unmanaged(plan: Plan, sites: _Sites) -> None:
    where = plan.tree.statement(sites.steps[0])
    plan.facts["unmanaged_at"] = where


def choose_accumulation(plan: Plan) -> None:
    """Unmanaged accumulation, or windows marked by hand where that is not there or whole gradients are needed.

    Without management the engine averages inside step(), so that at ZeRO 0 p.grad is still this rank's own between
    backward and step; with a marked boundary the averaging happens in the last backward of the window, as in DDP.
    """
    where: Statement | None = plan.facts.get("unmanaged_at")
    if where is None:
        return
    exists = Version(plan.options.target_version) >= Version("0.19.4")
    if exists and not plan.facts.get("full_gradients"):
        plan.config["managed_gradient_accumulation"] = False
        plan.kept(
            "MG404",
            where,
            "the script's own accumulation stays: managed_gradient_accumulation is false and the loss is divided here",
            "the engine steps where the script steps; exact at ZeRO 0-3, partial windows included",
        )
        return
    sites: _Sites = plan.facts["sites"]
    marks = [_boundary(plan, call, sites) for call in sites.backward]
    if all(mark is not None for mark in marks):
        for call, mark in zip(sites.backward, marks, strict=True):
            engine = plan.engine_in(call)
            statement = plan.tree.statement(call)
            plan.edits.insert_before(statement.line_node, f"{engine}.set_gradient_accumulation_boundary({mark})")
            plan.converted("MG406", statement, f"the window ends where {mark}",
                           "the engine averages gradients in the last backward of a window")  # fmt: skip
        return
    if exists:
        plan.config["managed_gradient_accumulation"] = False
    plan.todo(
        "MG406",
        where,
        "call set_gradient_accumulation_boundary(True or False) on the engine before each backward",
        "managed_gradient_accumulation is new in 0.19.4"
        if not exists
        else "without it gradients are averaged inside step(), too late for code that looks at them",
    )


def _boundary(plan: Plan, call: cst.Call, sites: _Sites) -> str | None:
    """The condition under which a backward is the last of its window, as source text; None if it cannot be told."""
    statement = plan.tree.statement(call)
    path = _path(statement)
    for step_call in sites.steps:
        step = plan.tree.statement(step_call)
        if step.function is not statement.function or step.order < statement.order:
            continue
        other = _path(step)
        common = 0
        while common < min(len(path), len(other)) and path[common] == other[common]:
            common += 1
        mine, its = path[common:], other[common:]
        if all(isinstance(n, cst.If) and b == "body" for n, b in its) and all(isinstance(n, cst.If) for n, _ in mine):
            tests = [plan.code(n.test) for n, _ in its if isinstance(n, cst.If)]
            if any(_changes_between(plan, statement, step, n.test) for n, _ in its if isinstance(n, cst.If)):
                return None
            return " and ".join(f"({t})" if " or " in t and len(tests) > 1 else t for t in tests) or "True"
        if not its and len(mine) == 1 and isinstance(mine[0][0], cst.For):
            loop = mine[0][0]
            if isinstance(loop.iter, cst.Call) and dotted(loop.iter.func) == "range" and len(loop.iter.args) == 1:
                return f"{plan.code(loop.target)} == {plan.code(loop.iter.args[0].value)} - 1"
    return None


def _changes_between(plan: Plan, first: Statement, last: Statement, test: Node) -> bool:
    """Whether anything that a gate's test reads may get another value between backward and gate."""
    read = {dotted(sub) for sub in descendants(test) if isinstance(sub, cst.Name | cst.Attribute)} - {None}
    attributes = any(
        text is not None and "." in text and text.split(".")[0] == first.function.self_name for text in read
    )
    for statement in plan.statements_between(first, last):
        node = statement.node
        targets: list[Node] = []
        if isinstance(node, cst.Assign):
            targets = [t.target for t in node.targets]
        elif isinstance(node, cst.AugAssign | cst.AnnAssign):
            targets = [node.target]
        if any(dotted(t) in read for t in targets):
            return True
        if not attributes or isinstance(node, cst.BaseCompoundStatement):
            continue
        for sub in descendants(node):
            if (
                isinstance(sub, cst.Call)
                and isinstance(sub.func, cst.Attribute)
                and dotted(sub.func.value) == first.function.self_name
            ):
                return True
    return False


# -- gradients -----------------------------------------------------------------------------------------------------


def _gradient_access(plan: Plan) -> None:
    """Reads and edits of ``p.grad`` work at ZeRO 0 only."""
    for statement in plan.tree.statements:
        node = statement.node
        if isinstance(node, cst.BaseCompoundStatement) or plan.edits.is_removed(node):
            continue
        if any(plan.edits.is_removed(outer.node) for outer in statement.enclosing()):
            continue
        if statement.function.class_seen is not None and _in_optimizer_class(statement.function):
            continue
        for sub in descendants(node):
            if isinstance(sub, cst.Attribute) and sub.attr.value == "grad" and not _is_module_grad(sub):
                if _after_step(plan, statement):
                    plan.todo("MG410", statement, "p.grad is read after the step, which has cleared it: use the engine's gradient norm",
                              "engine.step() zeroes the gradients")  # fmt: skip
                else:
                    plan.needs_full_gradients(
                        "MG409",
                        statement,
                        "p.grad is read or changed here",
                        "p.grad is None after backward at ZeRO 1-3",
                    )
                break


def _after_step(plan: Plan, statement: Statement) -> bool:
    """Whether the last thing that happened to the gradients before a statement of the loop was a step."""
    marks = [(plan.tree.statement(call).order, "b", call) for call in find_backward(plan)]
    marks += [(plan.tree.statement(call).order, "s", call) for call in find_steps(plan)]
    before = [m for m in marks if m[0] < statement.order and plan.function_of(m[2]) is statement.function]
    return bool(before) and max(before, key=lambda m: m[0])[1] == "s"


def _gradient_helpers(plan: Plan, sites: _Sites) -> None:
    """Calls between backward and step that are named for gradients, or are methods of the model: they may touch p.grad."""
    spans: list[tuple[Function, int, int]] = []
    for call in sites.steps:
        step = plan.tree.statement(call)
        before = [
            plan.tree.statement(c).order
            for c in sites.backward
            if plan.function_of(c) is step.function and plan.tree.statement(c).order < step.order
        ]
        if before:
            spans.append((step.function, max(before), step.order))
    for call in plan.tree.calls:
        statement = plan.tree.statement(call)
        if call in plan.handled or plan.edits.is_removed(statement.node) or statement.node in plan.edits.statements:
            continue
        if not any(f is statement.function and a < statement.order < b for f, a, b in spans):
            continue
        func = call.func
        last = (dotted(func) or "").rpartition(".")[2]
        is_method = isinstance(func, cst.Attribute) and plan.is_ours(func.value)
        named = "grad" in last.lower() and last not in (
            "zero_grad",
            "no_grad",
            "set_grad_enabled",
            "enable_grad",
            "is_grad_enabled",
        )
        if plan.flow.callee(call) is not None and named:
            continue  # the helper is in this file: its own statements are looked at
        if named or (is_method and last not in _HARMLESS):
            plan.needs_full_gradients(
                "MG409",
                statement,
                f"{_short(dotted(func) or last)} runs between backward and step and may work on gradients",
                "p.grad is None after backward at ZeRO 1-3",
            )


_HARMLESS = frozenset({
    "train", "eval", "parameters", "named_parameters", "modules", "named_modules", "children", "state_dict", "item",
    "zero_grad", "module", "size", "log", "log_dict", "buffers", "backward", "step",
})  # fmt: skip


def _in_optimizer_class(function: Function) -> bool:
    cls = function.class_seen
    return cls is not None and any("Optim" in base or base in ("LARS", "SGD", "Adam", "AdamW") for base in cls.bases)


def _is_module_grad(node: cst.Attribute) -> bool:
    """``torch.autograd.grad`` and gradients of inputs (``x.grad`` of a tensor that requires grad) are other things."""
    return dotted(node.value) in ("torch.autograd", "autograd", "torch")
