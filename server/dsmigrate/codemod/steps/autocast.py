"""MG301, MG307: autocast regions stay, and the config switches torch_autocast on as they do."""

from __future__ import annotations

from dataclasses import dataclass

import libcst as cst

from dsmigrate.codemod import targets
from dsmigrate.codemod.carrying import carry
from dsmigrate.codemod.flow import argument
from dsmigrate.codemod.model import Idea, Kind
from dsmigrate.codemod.plan import Plan
from dsmigrate.codemod.role_names import AUTOCAST_NAMES, qualifies
from dsmigrate.codemod.steps.evaluation import evaluation, may_be_autocast
from dsmigrate.codemod.steps.made_regions import made_region
from dsmigrate.codemod.steps.reaching import calls_engine, runs_engine, serves_training, trains, under_no_grad
from dsmigrate.codemod.tree import Function, Node, Statement
from dsmigrate.codemod.values import resolve

IDEAS = (
    Idea(
        "MG301",
        "Autocast regions stay, and torch_autocast is switched on",
        "The engine runs the model under the same autocast; the region around the loss is kept.",
        "engine.forward switches a surrounding autocast region off unless the config has torch_autocast.enabled. The "
        "empty lower_precision_safe_modules keeps gradients reduced in fp32 as DDP did: measured equal at ZeRO 0-3.",
        "deepspeed/runtime/torch_autocast.py, autocast_if_enabled; engine-semantics 1-2",
        Kind.CONVERTED,
    ),
    Idea(
        "MG307",
        "An autocast region that cannot be carried to the config",
        "Whether it is on, or its type, is known only inside the loop.",
        "torch_autocast is read once, when the engine is made.",
        "deepspeed/runtime/engine.py",
        Kind.TODO,
    ),
)


@dataclass(frozen=True, slots=True)
class _Region:
    """One autocast: whether it is on and in which type, as source text or literals at the place of the engine."""

    enabled: str | bool
    dtype: str
    dtype_is_text: bool = False
    probe: str | None = None


def regions_around_engine(plan: Plan) -> list[tuple[Node, Statement]]:
    """Autocast expressions of ``with`` statements inside which the engine is called."""
    found: list[tuple[Node, Statement]] = []
    for statement in plan.tree.withs:
        node = statement.node
        assert isinstance(node, cst.With)
        for item in node.items:
            if "C" not in plan.tags(item.item) and not may_be_autocast(item.item):
                called = item.item.func if isinstance(item.item, cst.Call) else None
                if called is None or not _stands_for_autocast(plan, called, statement.function, _DEPTH):
                    continue
            if _engine_called_within(plan, statement):
                found.append((item.item, statement))
    return found


_DEPTH = 5


def _stands_for_autocast(plan: Plan, node: Node, function: Function, depth: int) -> bool:
    """Whether a variable may hold torch's autocast, or a partial of it: ``region = autocast if amp else nullcontext``."""
    if depth == 0:
        return False
    if isinstance(node, cst.IfExp):
        return any(_stands_for_autocast(plan, branch, function, depth - 1) for branch in (node.body, node.orelse))
    if isinstance(node, cst.Call):
        callee = plan.flow.callee(node)
        if callee is not None:
            values = plan.flow.by_place.get(plan.flow.returned(callee), ())
            return any(_stands_for_autocast(plan, b.value, b.function, depth - 1) for b in values)
        is_partial = "functools.partial" in plan.imports.names(node.func) and bool(node.args)
        return is_partial and _stands_for_autocast(plan, node.args[0].value, function, depth - 1)
    if not isinstance(node, cst.Name | cst.Attribute):
        return False
    if any("." in name for name in plan.imports.names(node) & AUTOCAST_NAMES):
        return True
    place = plan.flow.place(node, function)
    bindings = plan.flow.by_place.get(place, ()) if place is not None else ()
    return any(b.index is None and _stands_for_autocast(plan, b.value, b.function, depth - 1) for b in bindings)


def _engine_called_within(plan: Plan, statement: Statement) -> bool:
    """Whether the engine runs in a region: called there, or in what is called there for a training step."""
    inner = [c for c in plan.tree.calls if statement.order < plan.tree.statement(c).order <= statement.last_order]
    if any(calls_engine(plan, call) for call in inner):
        return True
    return _helps_to_train(plan, statement) and any(runs_engine(plan, call) for call in inner)


def _helps_to_train(plan: Plan, statement: Statement) -> bool:
    return serves_training(plan, statement.function) and not under_no_grad(plan, statement)


def autocast(plan: Plan, regions: list[tuple[Node, Statement]]) -> None:
    """Switch ``torch_autocast`` on as the regions around the model do, or hand the region to the model itself."""
    if targets.holds("regions_left_alone", plan.options.target_version):
        _left_alone(plan, regions)
        return
    training = [item for item in regions if trains(plan, item[1].function)]
    training = training or [item for item in regions if _helps_to_train(plan, item[1])] or regions
    training = [item for item in training if not under_no_grad(plan, item[1])] or training
    resolved = [_resolve_region(plan, node, statement) for node, statement in training]
    first = next((r for r in resolved if r is not None), None)
    statement = training[0][1]
    if first is not None and first.probe is None:
        first = _under_conditions(plan, first, training)
    if first is None and not targets.holds("torch_autocast", plan.options.target_version):
        _left_to_the_person(plan, statement)
        return
    if first is None:
        plan.todo("MG307", statement, "torch_autocast is on in bfloat16 in the config: set it as this region is, which is known only here",
                  "the engine switches the region off unless torch_autocast is enabled, and runs the model as the config says")  # fmt: skip
        plan.config["torch_autocast"] = {"enabled": True, "dtype": "bfloat16", "lower_precision_safe_modules": []}
        return
    if len({(r.enabled, r.dtype) for r in resolved if r is not None}) > 1:
        plan.todo("MG307", statement, "several different autocast regions run the model; torch_autocast takes one",
                  "the engine uses one setting for every forward")  # fmt: skip
    elif any(r is None for r in resolved):
        where = next(item[1] for item, r in zip(training, resolved, strict=True) if r is None)
        plan.todo("MG307", where, "torch_autocast follows another region; whether it is that of this one is known only here",
                  "the engine uses one setting for every forward")  # fmt: skip
    section = {
        "enabled": first.enabled if isinstance(first.enabled, bool) else True,
        "dtype": first.dtype if not first.dtype_is_text else "bfloat16",
        "lower_precision_safe_modules": [],
    }
    plan.config["torch_autocast"] = section
    # Beside apex amp, whose switch stands among the run-time values already: either of them is enough.
    apex = next((value for value in plan.runtime if value.path == ("torch_autocast", "enabled")), None)
    if apex is not None and (first.probe is not None or first.enabled is True):
        plan.runtime.remove(apex)
    also = f" or {apex.expression}" if apex is not None else ""
    if first.probe is not None:
        plan.before_engine.extend(_probe_lines(first.probe, also))
        plan.facts["probe"] = True
    else:
        if not isinstance(first.enabled, bool):
            plan.set_at_run_time(("torch_autocast", "enabled"), f"bool({first.enabled}){also}", statement)
        if first.dtype_is_text:
            plan.set_at_run_time(("torch_autocast", "dtype"), first.dtype, statement)
    if first.enabled is False:
        for _, where in regions:
            plan.kept("MG301", where, "the region stays: it is off, and so is torch_autocast",
                      "the engine runs the model as the region does")  # fmt: skip
        return
    for _, where in regions:
        plan.converted("MG301", where, "the region stays; the engine runs the model under torch_autocast",
                       "the engine would otherwise switch the region off")  # fmt: skip
    if not targets.holds("torch_autocast", plan.options.target_version):
        _inside_forward(plan, training[0][0], statement, first)
    else:
        evaluation(plan)


def _left_alone(plan: Plan, regions: list[tuple[Node, Statement]]) -> None:
    """Before there was torch_autocast the engine ran the model in whatever region it was called in."""
    plan.facts["regions_left_alone"] = True
    for _, where in regions:
        plan.kept("MG301", where, "the region stays, and the model runs in it",
                  f"DeepSpeed {plan.options.target_version} leaves a surrounding region as it is; 0.17.2 and later switch it off")  # fmt: skip


def _inside_forward(plan: Plan, region: Node, statement: Statement, first: _Region) -> None:
    """Where torch_autocast trains wrongly: the region is entered inside the module's own forward."""
    plan.config.pop("torch_autocast", None)
    plan.before_engine[:] = [line for line in plan.before_engine if line.startswith("from ")]  # for the context
    plan.runtime = [value for value in plan.runtime if value.path[0] != "torch_autocast"]
    version = plan.options.target_version
    context = first.probe or carry(plan, region, statement.function)
    if context is None and isinstance(region, cst.Call):
        device = argument(region, 0, "device_type")
        kind = "torch.float16" if first.dtype == "float16" else "torch.bfloat16"
        plan.need("torch")
        where = plan.code(device) if device is not None and not first.dtype_is_text else '"cuda"'
        enabled = first.enabled if isinstance(first.enabled, str) else str(first.enabled)
        context = f"torch.autocast({where}, dtype={kind}, enabled={enabled})" if not first.dtype_is_text else None
    if context is None or plan.facts.get("scaler_used"):
        _left_to_the_person(plan, statement)
        return
    assert plan.site is not None
    plan.facts["autocast_forward"] = context
    plan.converted("MG301", statement, "the model's own forward enters the region",
                   f"DeepSpeed {version} has no torch_autocast that is right; the engine switches a surrounding region off")  # fmt: skip


def _left_to_the_person(plan: Plan, statement: Statement) -> None:
    version = plan.options.target_version
    plan.todo("MG301", statement, f"DeepSpeed {version} has no torch_autocast that is right (0.17.6 has): enter the region in the model's forward",
              "the engine switches a surrounding region off")  # fmt: skip


def _under_conditions(plan: Plan, region: _Region, training: list[tuple[Node, Statement]]) -> _Region | None:
    """A region that stands in one branch only is on under that branch's condition; None if that cannot be carried."""
    statement = training[0][1]
    outside = [
        plan.tree.statement(call)
        for call in plan.tree.calls
        if calls_engine(plan, call)
        and plan.function_of(call) is statement.function
        and not any(w.order < plan.tree.statement(call).order <= w.last_order for _, w in training)
        and not under_no_grad(plan, plan.tree.statement(call))
    ]
    conditions: list[str] = []
    branch = statement.branch
    for outer in statement.enclosing():
        node = outer.node
        if isinstance(node, cst.If) and outside:
            if len({_branch_within(s, outer) for s in (*[w for _, w in training], *outside)}) > 1:
                text = carry(plan, node.test, statement.function)
                if text is None:
                    return None
                conditions.append(text if branch == "body" else f"not ({text})")
        branch = outer.branch
    if not conditions:
        return region
    enabled = " and ".join(f"({c})" if " and " in c or " or " in c else c for c in reversed(conditions))
    if isinstance(region.enabled, str):
        enabled = f"{enabled} and ({region.enabled})"
    elif not region.enabled:
        return region
    return _Region(enabled, region.dtype, region.dtype_is_text)


def _branch_within(statement: Statement, outer: Statement) -> str | None:
    """By which branch of a compound statement another one is reached; None if it stands outside."""
    if not outer.order < statement.order <= outer.last_order:
        return None
    branch = statement.branch
    for enclosing in statement.enclosing():
        if enclosing is outer:
            return branch
        branch = enclosing.branch
    return None


def _probe_lines(context: str, also: str) -> list[str]:
    return [
        f"with {context}:",
        '    ds_config["torch_autocast"] = {',
        f'        "enabled": torch.is_autocast_enabled(deepspeed.get_accelerator().device_name()){also},',
        '        "dtype": str(torch.get_autocast_dtype(deepspeed.get_accelerator().device_name())),',
        '        "lower_precision_safe_modules": [],',
        "    }",
    ]


def _resolve_region(plan: Plan, node: Node, statement: Statement) -> _Region | None:
    call = _autocast_call(plan, node)
    if call is not None:
        return _from_call(plan, call, plan.function_of(call))
    function = statement.function
    place = plan.flow.place(node, function)
    bindings = plan.flow.by_place.get(place, ()) if place is not None else ()
    # A parameter: follow it to its callers.
    seen = 0
    while bindings and all(b.kind == "argument" for b in bindings) and seen < 4:
        values = {plan.code(b.value) for b in bindings}
        if len(values) != 1:
            break
        node, function = bindings[0].value, bindings[0].function
        place = plan.flow.place(node, function)
        bindings = plan.flow.by_place.get(place, ()) if place is not None else ()
        seen += 1
    if len(bindings) == 1:
        value = bindings[0].value
        direct = _autocast_call(plan, value)
        if direct is not None:
            return _from_call(plan, direct, bindings[0].function)
        if isinstance(value, cst.IfExp):
            return _from_choice(plan, value, bindings[0].function)
    text = carry(plan, node, function)
    if text is None and isinstance(node, cst.Call) and not node.args:
        text = carry(plan, node.func, function)
        text = f"{text}()" if text is not None else None
    text = text or made_region(plan, node, statement.function)
    if text is None:
        return None
    plan.need("torch")
    return _Region(enabled=True, dtype="bfloat16", probe=text)


def _autocast_call(plan: Plan, node: Node) -> cst.Call | None:
    if not isinstance(node, cst.Call) or not qualifies(plan.imports, node.func, AUTOCAST_NAMES):
        return None
    if isinstance(node.func, cst.Name) and not any(
        "." in name for name in plan.imports.names(node.func) & AUTOCAST_NAMES
    ):
        place = plan.flow.place(node.func, plan.function_of(node))
        if place is not None and plan.flow.by_place.get(place):
            return None  # a variable or parameter of that name: what it makes is what it was given
    return node


def _from_choice(plan: Plan, node: cst.IfExp, function: object) -> _Region | None:
    """``nullcontext() if cpu else autocast(…)``, in either order."""
    for branch, negated in ((node.body, False), (node.orelse, True)):
        call = _autocast_call(plan, branch)
        if call is None:
            continue
        inner = _from_call(plan, call, function)
        test = carry(plan, node.test, function)  # type: ignore[arg-type]
        if inner is None or test is None:
            return None
        condition = f"not ({test})" if negated else test
        if isinstance(inner.enabled, str):
            condition = f"({condition}) and ({inner.enabled})"
        elif not inner.enabled:
            return inner
        return _Region(condition, inner.dtype, inner.dtype_is_text)
    return None


_DTYPES = {
    "torch.float16": "float16", "torch.half": "float16", "torch.bfloat16": "bfloat16", "torch.float32": "float32",
    "torch.float": "float32",
}  # fmt: skip


def _from_call(plan: Plan, call: cst.Call, function: object) -> _Region | None:
    names = plan.imports.names(call.func)
    legacy = any(".cuda.amp." in name for name in names)
    on_cpu = any(".cpu.amp." in name for name in names)
    if legacy or on_cpu:
        enabled_node, dtype_node = argument(call, 0, "enabled"), argument(call, 1, "dtype")
        device = "cpu" if on_cpu else "cuda"
        device_text: str | None = None
    else:
        device_node = argument(call, 0, "device_type")
        dtype_node, enabled_node = argument(call, 1, "dtype"), argument(call, 2, "enabled")
        device = device_node.evaluated_value if isinstance(device_node, cst.SimpleString) else "cuda"  # type: ignore[assignment]
        device_text = (
            None if device_node is None or isinstance(device_node, cst.SimpleString) else plan.code(device_node)
        )
        if device_node is None and not call.args:
            device = "cuda"
    enabled: str | bool = True
    if enabled_node is not None:
        value = resolve(plan, enabled_node, function)  # type: ignore[arg-type]
        if value.known and value.expression is None and not value.is_default:
            enabled = bool(value.static)
        elif value.expression is not None:
            enabled = value.expression
        else:
            return None
    if dtype_node is None:
        if device_text is not None:
            return _Region(enabled, '"float16" if torch.cuda.is_available() else "bfloat16"', dtype_is_text=True)
        return _Region(enabled, "bfloat16" if device == "cpu" else "float16")
    full = plan.imports.names(dtype_node) & set(_DTYPES)
    if full:
        return _Region(enabled, _DTYPES[full.pop()])
    text = carry(plan, dtype_node, function)  # type: ignore[arg-type]
    if text is None:
        return None
    if text in _DTYPES:
        return _Region(enabled, _DTYPES[text])
    return _Region(enabled, f"str({text})", dtype_is_text=True)
