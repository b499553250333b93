"""MG42x: gradient clipping moves into the config, where the engine does it on the averaged, unscaled gradients."""

from __future__ import annotations

import libcst as cst

from dsmigrate.codemod.carrying import carry
from dsmigrate.codemod.flow import argument
from dsmigrate.codemod.model import Idea, Kind
from dsmigrate.codemod.names import dotted
from dsmigrate.codemod.nodes import number
from dsmigrate.codemod.plan import Plan
from dsmigrate.codemod.role_names import CLIP_NORM, CLIP_VALUE, qualifies
from dsmigrate.codemod.steps.clip_hooks import (
    called_beside_step,
    looked_at_behind,
    tell_of_other_norms,
    unclipped_steps,
)
from dsmigrate.codemod.steps.clip_places import behind_step, clips_partial_sums, handed_on, is_plain, steps_in
from dsmigrate.codemod.steps.clip_tests import asks_for_limit
from dsmigrate.codemod.steps.found_inf import asked_before
from dsmigrate.codemod.steps.grad_norm import keep_norm, measured_norms
from dsmigrate.codemod.steps.parameters import covers_model, is_second_norm
from dsmigrate.codemod.steps.sites import mark_twins
from dsmigrate.codemod.tree import Node
from dsmigrate.codemod.values import Value, resolve

IDEAS = (
    Idea(
        "MG421",
        "clip_grad_norm_ becomes gradient_clipping",
        "The engine clips by the global norm, on averaged and unscaled gradients, right before the step.",
        "At ZeRO 1-3 clip_grad_norm_ sees no gradients and returns 0.0 without a word. The key is always written, "
        "because an absent gradient_clipping means 1.0 since DeepSpeed 0.19.3. The engine's norm is over what the optimizer owns: "
        "groups that leave a part of the model out are marked where the script shows it, and told of where it may be so.",
        "engine-semantics 7; deepspeed/runtime/constants.py, GRADIENT_CLIPPING_DEFAULT",
        Kind.CONVERTED,
    ),
    Idea(
        "MG422",
        "The gradient norm is still reported",
        "engine.get_global_grad_norm() gives the norm after the step at ZeRO 1-3; at ZeRO 0 it is taken before it.",
        "get_global_grad_norm() is None at ZeRO 0 in fp32, and valid only after step() elsewhere; of a skipped step it is the number inf, on no GPU.",
        "engine-semantics 7",
        Kind.CONVERTED,
    ),
    Idea(
        "MG423",
        "Clipping that DeepSpeed does not do",
        "Clipping by value, of some parameters only, by another norm, by a helper or through a function that is handed on "
        "works on p.grad, which is whole at ZeRO 0 only.",
        "The engine clips all parameters by their global 2-norm and nothing else, right before the step: a clip by the norm stays "
        "as well where gradients are looked at or changed behind it, and where it raises an error at a norm that is not finite.",
        "deepspeed/runtime/zero/stage_1_and_2.py, unscale_and_clip_grads",
        Kind.KEPT,
    ),
    Idea(
        "MG424",
        "A clipping limit that the config cannot follow",
        "The limit changes during training (a variable, option or item that is written again, the step, the learning rate) or is "
        "known only inside the loop; the script's own clip stays, at ZeRO 0.",
        "gradient_clipping is read once, when the engine is made.",
        "deepspeed/runtime/engine.py, gradient_clipping",
        Kind.KEPT,
    ),
    Idea(
        "MG427",
        "Scaled gradients were clipped",
        "clip_grad_norm_ ran on gradients that still carried the loss scale; the engine clips unscaled ones.",
        "Without scaler.unscale_ the norm is larger by the loss scale, so nearly every step was clipped, by far more than "
        "the limit says. That is mostly a bug of the script, but the training changes.",
        "torch.amp examples, gradient clipping",
        Kind.TODO,
    ),
    Idea(
        "MG426",
        "unscale_ stays where gradients are looked at",
        "Code between backward and step that reads or edits p.grad finds unscaled gradients, as before.",
        "At ZeRO stage 0 the scaler unscales where the script asks for it, or where apex amp did; a clipping engine would "
        "ask a second time, which is then without effect.",
        "deepspeed/runtime/engine.py, _take_model_step",
        Kind.KEPT,
    ),
    Idea(
        "MG425",
        "unscale_ goes",
        "The engine unscales the gradients before it clips them.",
        "Unscaling twice would divide twice.",
        "deepspeed/runtime/engine.py, _take_model_step",
        Kind.CONVERTED,
    ),
)


def run(plan: Plan) -> None:
    """Convert every clip; ``gradient_clipping`` ends up in the config in any case."""
    plan.config.setdefault("gradient_clipping", 0.0)
    norms = [call for call in plan.tree.calls if qualifies(plan.imports, call.func, CLIP_NORM)]
    measured = measured_norms(plan)
    for call, statement, engine in measured:
        plan.handled.add(call)
        keep_norm(plan, call, statement, engine)
    norms = [call for call in norms if not _comes_late(plan, call)]
    ours = [call for call in norms if covers_model(plan, call)]
    _other_kinds(plan, [call for call in norms if call not in ours])
    handed = handed_on(plan)
    for statement in handed:
        plan.needs_full_gradients(
            "MG423", statement, "the clip function is a value here, and its calls stay", "p.grad is None at ZeRO 1-3"
        )
    late = [call for call in ours if looked_at_behind(plan, call)]
    stops = [call for call in ours if _stops(call)]
    if ours and not late and not stops and not handed and len(ours) == len(norms):
        _to_config(plan, ours)
    else:
        why = "the gradients are looked at or changed behind this clip" if late else "two kinds of clipping are mixed"
        why = "this clip stops the script at a norm that is not finite" if stops else why
        for call in ours:
            plan.handled.add(call)
            plan.needs_full_gradients("MG423", call, f"{why}, so that the script's own stays",
                                      "the engine clips in the step, after all of that")  # fmt: skip
    if engine_clips(plan):
        _other_places(plan, ours)
    clipped = ours if engine_clips(plan) else []
    tell_of_other_norms(
        plan, [*(call for call, _, _ in measured), *clipped], [call for call in ours if call not in clipped]
    )


def _stops(call: cst.Call) -> bool:
    """Whether a clip raises an error at a norm that is not finite, which the engine does not: it goes on, or skips the step."""
    error = argument(call, 3, "error_if_nonfinite")
    return error is not None and dotted(error) != "False"


_OF_SOME = (
    "the parameters clipped here are not shown to be all of the model's",
    "the engine clips all of them together",
)
_OF_ANOTHER_NORM = ("the limit here is that of another norm", "the engine clips by the second norm")


def _other_kinds(plan: Plan, partial: list[cst.Call]) -> None:
    """Keep what the engine does not do: clips by value, of some parameters, and methods of other wrappers."""
    for call in plan.tree.calls:
        if qualifies(plan.imports, call.func, CLIP_VALUE):
            plan.handled.add(call)
            plan.needs_full_gradients(
                "MG423", call, "gradients are clipped by value", "the engine clips by the global norm only"
            )
    for call in partial:
        plan.handled.add(call)
        said, why = _OF_SOME if is_second_norm(call) else _OF_ANOTHER_NORM
        plan.needs_full_gradients("MG423", call, said, why)
    for call in plan.tree.calls:
        if _is_method(plan, call):
            plan.todo("MG424", call, "clip_grad_norm_ of the wrapped model is not a method of the engine; use the config",
                      "the engine clips by gradient_clipping")  # fmt: skip


def _comes_late(plan: Plan, call: cst.Call) -> bool:
    """Keep a clip that comes behind the step: it is no clip of that step, and none of the engine's."""
    late, sure = behind_step(plan, call)
    if not late:
        return False
    plan.handled.add(call)
    if not sure:
        plan.needs_full_gradients("MG423", call, "this clip comes behind the step, on what is added up for the next one",
                                  "the engine clips in the step, and nowhere else")  # fmt: skip
    elif is_plain(plan, call):
        plan.kept("MG423", call, "this clip comes behind the step, which was not clipped and is not clipped now",
                  "the engine has cleared the gradients by then")  # fmt: skip
    else:
        plan.todo("MG410", call, "the norm is taken behind the step, which has cleared the gradients: use the engine's gradient norm",
                  "engine.step() zeroes the gradients")  # fmt: skip
    return True


def _other_places(plan: Plan, clips: list[cst.Call]) -> None:
    """Mark clips that are not the engine's: it clips right before each step, and nowhere else."""
    for step in unclipped_steps(plan, clips):
        plan.todo("MG424", step, "the script did not clip before this step; the engine clips before every step",
                  "gradient_clipping is one number for all steps: let it be 0.0 where only this path runs")  # fmt: skip
    for call in clips:
        if not called_beside_step(plan, call):
            plan.todo("MG424", call, "this clip stands in a function that is not called right where the step is; the engine clips before each step",
                      "clipping at other times than before each step is not the same")  # fmt: skip
    _partial_sums(plan, clips, "the engine clips once, before the step")


def _partial_sums(plan: Plan, clips: list[cst.Call], now: str) -> None:
    for call in clips:
        if clips_partial_sums(plan, call):
            plan.todo("MG424", call, f"this clips at every micro-batch, not once per optimizer step; {now}",
                      "clipping a partial sum is not the same as clipping the sum")  # fmt: skip


def engine_clips(plan: Plan) -> bool:
    """Whether the config has a limit for the gradients' norm, now or when the script runs."""
    in_config = bool(plan.config.get("gradient_clipping"))
    return in_config or any(value.path == ("gradient_clipping",) for value in plan.runtime)


def unscale(plan: Plan) -> None:
    """``unscale_`` goes, unless code that looks at whole gradients before the step needs it (ZeRO 0, no engine clipping)."""
    for call in plan.tree.calls:
        func = call.func
        if not isinstance(func, cst.Attribute) or func.attr.value != "unscale_" or not _is_scaler(plan, func.value):
            continue
        statement = plan.tree.statement(call)
        if not isinstance(statement.node, cst.Expr):
            continue
        if plan.facts.get("full_gradients") and plan.options.precision == "keep":
            plan.kept("MG426", statement, "unscale_ stays: the code after it looks at whole gradients",
                      "at ZeRO stage 0 the scaler unscales once, here")  # fmt: skip
            unscale_once(plan)
            continue
        plan.edits.remove(statement.node)
        plan.handled.add(call)
        mark_twins(plan, statement)
        plan.converted("MG425", statement, "unscale_ removed", "the engine unscales before it clips")
        asked_before(plan)


_ONCE = '''
    engine_is_stepping = False

    def unscale_(self, optimizer):
        """Once per step, by the script; the clipping engine asks again within its step, without effect."""
        try:
            super().unscale_(optimizer)
        except RuntimeError:
            if not self.engine_is_stepping:
                raise
'''


def unscale_once(plan: Plan) -> None:
    """Let the scaler be asked twice: by the script before it looks at gradients, and by the engine before it clips."""
    if not engine_clips(plan) and not plan.facts.get("keep_norm"):  # keep_grad_norm asks too
        return
    for index, helper in enumerate(plan.helpers):
        if helper.startswith("class EngineGradScaler") and "def unscale_" not in helper:
            stepping = "        self.engine_is_stepping = True\n        engine.step()\n        self.engine_is_stepping = False\n"
            plan.helpers[index] = helper.replace("        engine.step()\n", stepping).rstrip("\n") + "\n" + _ONCE


def _is_scaler(plan: Plan, node: Node) -> bool:
    return plan.roles.is_scaler(node) or "scaler" in (dotted(node) or "").lower()


def _is_method(plan: Plan, call: cst.Call) -> bool:
    func = call.func
    return (
        isinstance(func, cst.Attribute)
        and func.attr.value == "clip_grad_norm_"
        and plan.is_ours(func.value)
        and not qualifies(plan.imports, func, CLIP_NORM)
    )


def _to_config(plan: Plan, calls: list[cst.Call]) -> None:
    limits = [argument(call, 1, "max_norm") for call in calls]
    if any(limit is None for limit in limits):
        plan.todo("MG424", calls[0], "the clipping limit cannot be read here", "gradient_clipping is set in the config")
        return
    values: list[tuple[Value, str | None]] = []
    for call, limit in zip(calls, limits, strict=True):
        assert limit is not None
        value = resolve(plan, limit, plan.function_of(call))
        guard, fine = _guard(plan, call, limit)
        if not fine or value.is_default or (not value.known and value.expression is None):
            for each in calls:
                plan.handled.add(each)
                plan.needs_full_gradients(
                    "MG424",
                    each,
                    f"the clipping limit {plan.code(limit)} is known only here, so the script's own clip stays",
                    "the engine reads gradient_clipping once, when it is made",
                )
            return
        values.append((value, guard))
    texts = {(v.static, v.expression) for v, _ in values}
    if len(texts) > 1:
        for call in calls:
            plan.todo("MG424", call, "several clipping limits are used; the config takes one", "gradient_clipping is one number")  # fmt: skip
        return
    value = values[0][0]
    guards = {guard for _, guard in values}
    guard = guards.pop() if len(guards) == 1 else None
    static = value.static if isinstance(value.static, int | float) and not isinstance(value.static, bool) else 0.0
    expression = value.expression
    written = number(cst.parse_expression(expression)) if expression is not None else None
    if written is not None:  # the caller's argument is a plain number
        static, expression = written, None
    plan.config["gradient_clipping"] = float(max(static, 0.0))
    if guard is not None:
        expression = f"({expression if expression is not None else static}) if {guard} else 0.0"
    elif expression is not None:
        expression = f"{expression} or 0.0" if _is_simple(expression) else f"({expression}) or 0.0"
    if expression is not None:
        plan.set_at_run_time(("gradient_clipping",), expression, calls[0])
    if plan.facts.get("scaler_used") and plan.options.precision == "keep" and not _unscales(plan):
        plan.todo("MG427", calls[0], "the script clipped scaled gradients (no unscale_ before it); the engine clips unscaled ones",
                  "with a live scaler the limit was in effect smaller by the loss scale")  # fmt: skip
    for call in calls:
        _drop(plan, call)
    shown = value.expression if written is None and value.expression else repr(float(static))
    why = "the engine clips by the global norm right before the step"
    if written is None and value.expression and not all(_is_asked(plan, call) for call in calls):
        why += "; a limit of 0 switches its clipping off, where clip_grad_norm_ made every gradient 0"
    elif value.expression is None and value.static is None:
        why = "no limit is given anywhere, and the engine clips nothing at 0"
    for call in calls:
        plan.converted("MG421", call, f"clip_grad_norm_ → gradient_clipping = {shown}", why)


def _is_asked(plan: Plan, call: cst.Call) -> bool:
    """Whether a test around the clip keeps a limit of 0 from it; ``is not None`` does not."""
    limit = argument(call, 1, "max_norm")
    tests = [outer.node.test for outer in plan.tree.statement(call).enclosing() if isinstance(outer.node, cst.If)]
    return limit is not None and any(asks_for_limit(plan, test, limit, zero=True) for test in tests)


def _unscales(plan: Plan) -> bool:
    return any(isinstance(c.func, cst.Attribute) and c.func.attr.value == "unscale_" for c in plan.tree.calls)


def _is_simple(text: str) -> bool:
    return text.replace(".", "").replace("_", "").isalnum()


def _guard(plan: Plan, call: cst.Call, limit: Node) -> tuple[str | None, bool]:
    """The condition under which the clip runs, beyond those of the step, carried to the engine; and whether it can be."""
    statement = plan.tree.statement(call)
    around = {outer.node for step in steps_in(plan, statement.function) for outer in step.enclosing()}
    conditions: list[str] = []
    branch = statement.branch
    for outer in statement.enclosing():
        node = outer.node
        if isinstance(node, cst.If) and node not in around and not _covers_both(plan, node):
            if not asks_for_limit(plan, node.test, limit) or branch != "body":
                text = carry(plan, node.test, statement.function)
                if text is None:
                    return None, _is_precision_twin(plan, node)
                conditions.append(text if branch == "body" else f"not ({text})")
        branch = outer.branch
    return (" and ".join(f"({c})" if " " in c else c for c in reversed(conditions)) or None), True


def _is_precision_twin(plan: Plan, node: cst.If) -> bool:
    return "scaler" in plan.code(node.test).lower()


def _covers_both(plan: Plan, node: cst.If) -> bool:
    """Whether both branches of an ``if`` clip, so that it does not decide whether to clip."""
    statement = plan.tree.statement_of[node]
    branches = set()
    for other in plan.tree.calls:
        if qualifies(plan.imports, other.func, CLIP_NORM):
            inner = plan.tree.statement(other)
            if statement.order < inner.order <= statement.last_order:
                branch = inner.branch
                for outer in inner.enclosing():
                    if outer is statement:
                        break
                    branch = outer.branch
                branches.add(branch)
    return {"body", "orelse"} <= branches


def _drop(plan: Plan, call: cst.Call) -> None:
    statement = plan.tree.statement(call)
    node = statement.node
    plan.handled.add(call)
    if isinstance(node, cst.Expr) and node.value is call:
        plan.edits.remove(node)
        mark_twins(plan, statement)
        return
    engine = plan.engine_in(call)
    if engine is None:
        return
    keep_norm(plan, call, statement, engine)
