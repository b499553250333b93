"""MG3xx: autocast regions, gradient scalers, apex amp and half-precision models, with the script's numerics kept."""

from __future__ import annotations

from dataclasses import dataclass

import libcst as cst
from packaging.version import Version

from dsmigrate.codemod.flow import argument
from dsmigrate.codemod.model import Idea, Kind
from dsmigrate.codemod.names import dotted
from dsmigrate.codemod.plan import Plan
from dsmigrate.codemod.roles import AUTOCAST_NAMES, PASS_METHODS, qualifies
from dsmigrate.codemod.steps.loop import _mark_twins, find_backward
from dsmigrate.codemod.tree import Node, Statement, descendants
from dsmigrate.codemod.values import carry, resolve

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
        "MG302",
        "The gradient scaler drives the engine",
        "The script's scaler keeps its scale, schedule and state, and lends them to the engine.",
        "DeepSpeed 0.19.8 scales fp16 torch_autocast losses by itself, but at ZeRO 1-3 its scale never falls after an "
        "overflow and clipping sees scaled gradients. With the script's own scaler the scale sequence, the skipped "
        "steps and the losses are those of DDP at every stage.",
        "measured against DeepSpeed 0.19.8, ZeRO 0-3",
        Kind.CONVERTED,
    ),
    Idea(
        "MG303",
        "scaler.update goes",
        "engine_step updates the scale.",
        "Updating twice would let the scale grow twice as fast.",
        "torch.amp.GradScaler.update",
        Kind.CONVERTED,
    ),
    Idea(
        "MG304",
        "apex amp becomes torch autocast",
        "amp.initialize and amp.scale_loss go; the engine runs the model under torch_autocast.",
        "DeepSpeed removed its amp section in 0.19.7. Opt level O1 is torch's autocast in spirit; the loss has to be "
        "computed inside an autocast region as well, which a person has to place.",
        "deepspeed/runtime/config.py, removed keys",
        Kind.TODO,
    ),
    Idea(
        "MG305",
        "A model in half precision",
        "model.half() and model.bfloat16() become the fp16 or bf16 section of the config.",
        "The engine keeps fp32 master weights for half-precision parameters, which plain DDP does not.",
        "deepspeed/runtime/engine.py, _configure_distributed_model",
        Kind.TODO,
    ),
    Idea(
        "MG306",
        "Evaluation outside autocast uses the module",
        "Where the script ran the model outside any autocast region, engine.module is called.",
        "With torch_autocast enabled the engine autocasts every forward, also outside a region.",
        "measured against DeepSpeed 0.19.8",
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
    Idea(
        "MG308",
        "Half-precision parameters, as asked for",
        "--precision fp16 or bf16 replaces autocast by half-precision parameters with fp32 master weights.",
        "Less memory and communication, but not the numerics of autocast (about 1e-2 relative in the loss).",
        "engine-semantics 2",
        Kind.TODO,
    ),
)

SCALER_CLASS = "EngineGradScaler"


@dataclass(frozen=True, slots=True)
class _Region:
    """One autocast: whether it is on and in which type, as source text or literals at the place of the engine."""

    enabled: str | bool
    dtype: str
    dtype_is_text: bool = False
    probe: str | None = None


def run(plan: Plan) -> None:
    """Convert precision; runs after the loop, which has found out whether a scaler is used."""
    _apex(plan)
    _half_model(plan)
    regions = _regions_around_engine(plan)
    if plan.options.precision != "keep":
        _half_as_asked(plan, regions)
    elif regions:
        _autocast(plan, regions)
    _scalers(plan, has_regions=bool(regions))


def _regions_around_engine(plan: Plan) -> list[tuple[Node, Statement]]:
    """Autocast expressions of ``with`` statements inside which the engine is called."""
    found: list[tuple[Node, Statement]] = []
    for statement in plan.tree.withs:
        node = statement.node
        assert isinstance(node, cst.With)
        for item in node.items:
            if "C" not in plan.tags(item.item) and not _may_be_autocast(item.item):
                continue
            if _engine_called_within(plan, statement):
                found.append((item.item, statement))
    return found


def _may_be_autocast(node: Node) -> bool:
    """A parameter or attribute that callers outside this file fill, by its name; or a factory such as get_autocast()."""
    text = dotted(node.func if isinstance(node, cst.Call) else node) or ""
    last = text.rpartition(".")[2].lower()
    return "autocast" in last or last in ("amp_context", "amp_ctx")


def _engine_called_within(plan: Plan, statement: Statement) -> bool:
    for call in plan.tree.calls:
        inner = plan.tree.statement(call)
        if statement.order < inner.order <= statement.last_order and _calls_engine(plan, call):
            return True
    return False


def _calls_engine(plan: Plan, call: cst.Call) -> bool:
    func = call.func
    if isinstance(func, cst.Attribute) and func.attr.value in ("forward", "__call__"):
        func = func.value
    if isinstance(func, cst.Name | cst.Attribute | cst.Subscript):
        return any(tag[0] == "E" and tag[1:] in plan.group for tag in plan.tags(func))
    return False


def _autocast(plan: Plan, regions: list[tuple[Node, Statement]]) -> None:
    training = [item for item in regions if _trains(plan, item[1].function)] or regions
    resolved = [_resolve_region(plan, node, statement) for node, statement in training]
    first = next((r for r in resolved if r is not None), None)
    statement = training[0][1]
    if first is not None and first.probe is None:
        first = _under_conditions(plan, first, training)
    if first is None:
        plan.todo("MG307", statement, "set torch_autocast in the config: this region is known only here",
                  "the engine switches the region off unless torch_autocast is enabled")  # fmt: skip
        plan.config["torch_autocast"] = {"enabled": True, "dtype": "bfloat16", "lower_precision_safe_modules": []}
        return
    if len({(r.enabled, r.dtype) for r in resolved if r is not None}) > 1:
        plan.todo("MG307", statement, "several different autocast regions run the model; torch_autocast takes one",
                  "the engine uses one setting for every forward")  # fmt: skip
    section = {
        "enabled": first.enabled if isinstance(first.enabled, bool) else True,
        "dtype": first.dtype if not first.dtype_is_text else "bfloat16",
        "lower_precision_safe_modules": [],
    }
    plan.config["torch_autocast"] = section
    if first.probe is not None:
        plan.before_engine.extend(_probe_lines(first.probe))
        plan.facts["probe"] = True
    else:
        if not isinstance(first.enabled, bool):
            plan.set_at_run_time(("torch_autocast", "enabled"), f"bool({first.enabled})", statement)
        if first.dtype_is_text:
            plan.set_at_run_time(("torch_autocast", "dtype"), first.dtype, statement)
    for _, where in regions:
        plan.converted("MG301", where, "the region stays; the engine runs the model under torch_autocast",
                       "the engine would otherwise switch the region off")  # fmt: skip
    if Version(plan.options.target_version) < Version("0.17.2"):
        _inside_forward(plan, training[0][0], statement, first)
    else:
        _evaluation(plan)


def _inside_forward(plan: Plan, region: Node, statement: Statement, first: _Region) -> None:
    """Before torch_autocast existed (0.17.2): the region is entered inside the module's own forward."""
    plan.config.pop("torch_autocast", None)
    plan.before_engine.clear()
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
        plan.todo("MG301", statement, f"DeepSpeed {version} has no torch_autocast (new in 0.17.2): enter the region in the model's forward",
                  "the engine switches a surrounding region off")  # fmt: skip
        return
    assert plan.site is not None
    plan.facts["autocast_forward"] = context
    plan.converted("MG301", statement, "the model's own forward enters the region",
                   f"DeepSpeed {version} has no torch_autocast; the engine switches a surrounding region off")  # fmt: skip


def _half_as_asked(plan: Plan, regions: list[tuple[Node, Statement]]) -> None:
    """``--precision fp16`` and ``bf16``: half-precision parameters with fp32 master weights instead of autocast."""
    kind = plan.options.precision
    section: dict[str, object] = {"enabled": True}
    if kind == "fp16":
        section["auto_cast"] = True
    plan.config[kind] = section
    where = regions[0][1] if regions else plan.wraps[0].statement
    for _, statement in regions:
        plan.kept("MG308", statement, "this autocast region still covers the loss; the engine switches it off for the model",
                  "the parameters are half precision now")  # fmt: skip
    message = f"the parameters are {kind} now: " + (
        "cast the model's inputs to bfloat16, and compute the loss in float32"
        if kind == "bf16"
        else "inputs are cast by the engine; compute the loss in float32"
    )
    plan.todo("MG308", where, message, "asked for by --precision; not the numerics of the original")


def _under_conditions(plan: Plan, region: _Region, training: list[tuple[Node, Statement]]) -> _Region | None:
    """A region that stands in one branch only is on under that branch's condition; None if that cannot be carried."""
    statement = training[0][1]
    outside = [
        plan.tree.statement(call)
        for call in plan.tree.calls
        if _calls_engine(plan, call)
        and plan.function_of(call) is statement.function
        and not any(w.order < plan.tree.statement(call).order <= w.last_order for _, w in training)
        and not _under_no_grad(plan, plan.tree.statement(call))
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


def _probe_lines(context: str) -> list[str]:
    return [
        f"with {context}:",
        '    ds_config["torch_autocast"] = {',
        '        "enabled": torch.is_autocast_enabled(deepspeed.get_accelerator().device_name()),',
        '        "dtype": str(torch.get_autocast_dtype(deepspeed.get_accelerator().device_name())),',
        '        "lower_precision_safe_modules": [],',
        "    }",
    ]


def _trains(plan: Plan, function: object) -> bool:
    return any(plan.function_of(call) is function for call in find_backward(plan))


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
    if text is None:
        return None
    plan.need("torch")
    return _Region(enabled=True, dtype="bfloat16", probe=text)


def _autocast_call(plan: Plan, node: Node) -> cst.Call | None:
    return node if isinstance(node, cst.Call) and qualifies(plan.imports, node.func, AUTOCAST_NAMES) else None


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


def _evaluation(plan: Plan) -> None:
    """Forward passes that ran outside any autocast region keep their precision through ``engine.module``."""
    training = {plan.function_of(call) for call in find_backward(plan)}
    for call in plan.tree.calls:
        statement = plan.tree.statement(call)
        if _is_outside_evaluation(plan, call):
            for arg in call.args:
                if (
                    isinstance(arg.value, cst.Name | cst.Attribute)
                    and plan.is_engine(arg.value)
                    and not _in_region(plan, statement)
                ):
                    plan.edits.replace(arg.value, f"{plan.code(arg.value)}.module")
                    plan.converted("MG306", statement, f"{plan.code(arg.value)} → its module: evaluated outside autocast",
                                   "the engine autocasts every forward once torch_autocast is enabled")  # fmt: skip
            continue
        if not _calls_engine(plan, call) or plan.is_before_engine(call):
            continue
        if _in_region(plan, statement) or (statement.function in training and not _under_no_grad(plan, statement)):
            continue
        if not _under_no_grad(plan, statement) and statement.function in training:
            continue
        func = call.func
        tags = plan.tags(func)
        if any(tag[0] == "N" for tag in tags) or not isinstance(func, cst.Name | cst.Attribute):
            continue
        if not plan.is_engine(func):
            continue
        if _may_be_raw(plan, func):
            plan.edits.replace(func, f'getattr({plan.code(func)}, "module", {plan.code(func)})')
        else:
            plan.edits.replace(func, f"{plan.code(func)}.module")
        plan.converted("MG306", statement, f"{plan.code(func)}(…) → the engine's module: this forward ran outside autocast",
                       "the engine autocasts every forward once torch_autocast is enabled")  # fmt: skip


def _is_outside_evaluation(plan: Plan, call: cst.Call) -> bool:
    """Whether a call runs an evaluation that another module defines."""
    last = (dotted(call.func) or "").rpartition(".")[2].lower()
    words = ("evaluate", "validate", "validation", "eval_", "test_model", "run_eval", "estimate_loss")
    return plan.flow.callee(call) is None and any(word in last for word in words)


def _in_region(plan: Plan, statement: Statement) -> bool:
    return any(
        isinstance(outer.node, cst.With)
        and any("C" in plan.tags(i.item) or _may_be_autocast(i.item) for i in outer.node.items)
        for outer in (statement, *statement.enclosing())
    )


def _may_be_raw(plan: Plan, node: Node) -> bool:
    """Whether a parameter is handed both wrapped and other models by its callers."""
    function = plan.function_of(node)
    if not isinstance(node, cst.Name) or node.value not in function.params:
        return False
    for binding in plan.flow.by_place.get(("v", id(function), node.value), ()):
        tags = plan.roles.of(binding.value, binding.function)
        if not any(tag[0] == "E" for tag in tags):
            return True
    return False


def _under_no_grad(plan: Plan, statement: Statement) -> bool:
    for outer in (statement, *statement.enclosing()):
        if isinstance(outer.node, cst.With) and any(
            "no_grad" in plan.code(i.item) or "inference_mode" in plan.code(i.item) for i in outer.node.items
        ):
            return True
    node = statement.function.node
    return isinstance(node, cst.FunctionDef) and any(
        "no_grad" in plan.code(d.decorator) or "inference_mode" in plan.code(d.decorator) for d in node.decorators
    )


# -- scalers -------------------------------------------------------------------------------------------------------


def _scalers(plan: Plan, *, has_regions: bool) -> None:
    for call in plan.tree.calls:
        func = call.func
        if not isinstance(func, cst.Attribute) or func.attr.value != "update" or call.args:
            continue
        if not (plan.roles.is_scaler(func.value) or "scaler" in (dotted(func.value) or "").lower()):
            continue
        statement = plan.tree.statement(call)
        if isinstance(statement.node, cst.Expr):
            plan.edits.remove(statement.node)
            _mark_twins(plan, statement)
            plan.converted("MG303", statement, "scaler.update removed", "engine_step updates the scale")
    if not plan.roles.scalers:
        if plan.facts.get("scaler_used"):
            raise plan.refuse(
                "MG910", plan.facts.get("first_scaler", plan.wraps[0].statement),
                "the gradient scaler is made in another module", "it has to become an EngineGradScaler there",
            )  # fmt: skip
        return
    if not plan.facts.get("scaler_used") or plan.options.precision != "keep":
        return
    names = sorted(
        name for call in plan.roles.scalers for name in plan.imports.names(call.func) if name.startswith("torch.")
    )
    plan.need("torch")
    plan.helpers.append(_scaler_class(names[0] if names else "torch.cuda.amp.GradScaler"))
    for call in plan.roles.scalers:
        plan.edits.replace(call.func, SCALER_CLASS)
        plan.converted("MG302", call, f"{plan.code(call.func)} → {SCALER_CLASS}, which lends its scale to the engine",
                       "DeepSpeed 0.19.8's own fp16 autocast scale never falls at ZeRO 1-3")  # fmt: skip
    if not has_regions:
        plan.todo("MG302", plan.roles.scalers[0], "a gradient scaler is used, but no autocast region around the model was found",
                  "loss scaling needs torch_autocast with dtype float16 in the config to have an effect")  # fmt: skip
        plan.config["torch_autocast"] = {"enabled": False, "dtype": "float16", "lower_precision_safe_modules": []}


def _scaler_class(base: str) -> str:
    return f'''class {SCALER_CLASS}({base}):
    """A gradient scaler that lends its scale to a DeepSpeed engine: the same steps are skipped at ZeRO 0-3."""

    def engine_backward(self, engine, loss, **kwargs):
        if engine.zero_optimization():
            engine.optimizer.torch_autocast_gradscaler = None
            engine.optimizer.override_loss_scale(self.get_scale())
        else:
            engine.torch_autocast_z0_gradscaler = self
        engine.backward(loss, **kwargs)

    def engine_step(self, engine):
        engine.step()
        if not engine.zero_optimization() or not self.is_enabled():
            return
        state = self.state_dict()
        if engine.optimizer.overflow:
            state["scale"] *= state["backoff_factor"]
            state["_growth_tracker"] = 0
        else:
            state["_growth_tracker"] += 1
            if state["_growth_tracker"] >= state["growth_interval"]:
                state["scale"] *= state["growth_factor"]
                state["_growth_tracker"] = 0
        self.load_state_dict(state)
'''


# -- apex and half -------------------------------------------------------------------------------------------------


def detect_apex(plan: Plan) -> None:
    """Find apex amp before the loop is converted: with it the loss needs a scaler that the script does not have."""
    calls = [c for c in plan.tree.calls if any(n.endswith("amp.initialize") for n in plan.imports.names(c.func))]
    if not calls:
        return
    level = argument(calls[0], None, "opt_level")
    literal = level.evaluated_value if isinstance(level, cst.SimpleString) else None
    plan.facts["apex"] = calls
    plan.facts["apex_level"] = str(literal) if literal is not None else (None if level is not None else "O1")
    if plan.options.precision == "keep" and plan.facts["apex_level"] in (None, "O1"):
        plan.facts["amp_scaler"] = True


def _apex(plan: Plan) -> None:
    initialised: list[cst.Call] = plan.facts.get("apex", [])
    scaled = [
        statement
        for statement in plan.tree.withs
        if any(
            isinstance(item.item, cst.Call)
            and any(n.endswith("amp.scale_loss") for n in plan.imports.names(item.item.func))
            for item in statement.node.items  # type: ignore[attr-defined]
        )
    ]
    for statement in scaled:
        _dissolve_scale_loss(plan, statement)
    for call in initialised:
        _apex_initialize(plan, call, scaled)
    if initialised:
        _drop_import_attempts(plan)
        _amp_state(plan)


def _is_passed_on(plan: Plan, name: str) -> bool:
    """Whether a name is handed to a function or assigned as a value somewhere."""
    for call in plan.tree.calls:
        if any(dotted(arg.value) == name for arg in call.args):
            return True
    return any(dotted(binding.value) == name for binding in plan.flow.bindings)


def _amp_state(plan: Plan) -> None:
    """``amp.state_dict()`` and ``amp.load_state_dict(…)`` become those of the scaler that replaces apex."""
    for call in plan.tree.calls:
        func = call.func
        if not any(n.startswith("apex.amp.") or n == "apex.amp" for n in plan.imports.names(func)):
            continue
        last = (dotted(func) or "").rpartition(".")[2]
        if last in ("initialize", "scale_loss", "master_params"):
            continue
        engine = plan.engine_in(call)
        if last in ("state_dict", "load_state_dict") and engine is not None and plan.facts.get("amp_scaler"):
            if not plan.is_before_engine(call):
                plan.edits.replace(func, f"{engine}.amp_scaler.{last}")
                plan.converted(
                    "MG304", call, f"amp.{last} → {engine}.amp_scaler.{last}", "the scaler replaces apex amp"
                )
                continue
        plan.todo("MG304", call, f"amp.{last} does nothing without amp.initialize", "apex amp is not used any more")


def _drop_import_attempts(plan: Plan) -> None:
    """``try: from apex import amp`` with nothing else in it goes as a whole."""
    for statement in plan.tree.statements:
        node = statement.node
        if not isinstance(node, cst.Try) or node.orelse is not None or node.finalbody is not None:
            continue
        inner = plan.tree.statements[statement.order + 1 : statement.last_order + 1]
        tried = [s for s in inner if s.branch == "body" and s.up is statement]
        if len(tried) != 1 or not isinstance(tried[0].node, cst.ImportFrom) or dotted(tried[0].node.module) != "apex":
            continue
        if _is_passed_on(plan, "amp"):
            continue
        others = [s.node for s in inner if s is not tried[0]]
        if all(
            isinstance(o, cst.Raise | cst.Pass) or (isinstance(o, cst.Expr) and isinstance(o.value, cst.Call))
            for o in others
        ):
            plan.edits.remove(node)
            plan.converted("MG304", statement, "the attempt to import apex removed", "apex amp is not used any more")
            for part in inner:
                plan.converted("MG304", part, "the attempt to import apex removed", "apex amp is not used any more")


def _apex_initialize(plan: Plan, call: cst.Call, scaled: list[Statement]) -> None:
    statement = plan.tree.statement(call)
    texts = [
        text
        for outer in statement.enclosing()
        if isinstance(outer.node, cst.If) and (text := carry(plan, outer.node.test, statement.function)) is not None
    ]
    condition = f"bool({' and '.join(texts)})" if texts else None
    if isinstance(statement.node, cst.Assign | cst.Expr):
        plan.edits.remove(statement.node)
    plan.converted("MG304", statement, "amp.initialize removed", "DeepSpeed has no apex amp since 0.19.7")
    level = plan.facts["apex_level"]
    if level == "O0" or plan.options.precision != "keep":
        return
    node = argument(call, None, "opt_level")
    shown = plan.code(node) if node is not None else '"O1"'
    where = scaled[0] if scaled else statement
    if (
        where is not statement
        and where.up is not None
        and isinstance(where.up.node, cst.If)
        and where.up.node.orelse is not None
    ):
        where = where.up
    if level in ("O2", "O3"):
        plan.config["fp16"] = {"enabled": True, "auto_cast": True}
        if condition is not None:
            plan.set_at_run_time(("fp16", "enabled"), condition, statement)
        plan.todo("MG304", where, f"apex amp {shown} became DeepSpeed's fp16 section: compute the loss in float32",
                  "both keep fp32 master weights; their loss scales start and grow differently")  # fmt: skip
        return
    plan.config["torch_autocast"] = {"enabled": True, "dtype": "float16", "lower_precision_safe_modules": []}
    if condition is not None:
        plan.set_at_run_time(("torch_autocast", "enabled"), condition, statement)
    plan.need("torch")
    plan.helpers.append(_scaler_class("torch.amp.GradScaler"))
    assert plan.site is not None
    enabled = f", enabled={condition}" if condition is not None else ""
    plan.after_engine.append(f'{plan.site.target}.amp_scaler = {SCALER_CLASS}("cuda"{enabled})')
    plan.todo(
        "MG304",
        where,
        f"apex amp ({shown}) became torch_autocast: compute the loss inside torch.autocast too",
        "apex amp patched every torch function; the engine autocasts the model's forward only",
    )


def _dissolve_scale_loss(plan: Plan, statement: Statement) -> None:
    node = statement.node
    assert isinstance(node, cst.With)
    item = next(i for i in node.items if isinstance(i.item, cst.Call))
    call = item.item
    assert isinstance(call, cst.Call)
    loss = call.args[0].value
    if item.asname is not None and isinstance(item.asname.name, cst.Name):
        scaled = item.asname.name.value
        inner = plan.tree.statements[statement.order + 1 : statement.last_order + 1]
        for stmt in inner:
            if isinstance(stmt.node, cst.BaseCompoundStatement):
                continue
            _rename(plan, stmt.node, scaled, loss)
    plan.edits.dissolve(node)
    _mark_twins(plan, statement)
    plan.converted("MG304", statement, "amp.scale_loss removed", "the engine scales the loss where that is needed")


def _rename(plan: Plan, node: Node, old: str, new: Node) -> None:
    for sub in descendants(node):
        if isinstance(sub, cst.Name) and sub.value == old and not isinstance(plan.tree.parent.get(sub), cst.Attribute):
            plan.edits.replace(sub, lambda _: new)
        elif isinstance(sub, cst.Attribute) and isinstance(sub.value, cst.Name) and sub.value.value == old:
            plan.edits.replace(sub.value, lambda _: new)


def _half_model(plan: Plan) -> None:
    for call in plan.tree.calls:
        func = call.func
        if not isinstance(func, cst.Attribute) or func.attr.value not in ("half", "bfloat16") or call.args:
            continue
        if not makes_model(plan, call):
            continue
        statement = plan.tree.statement(call)
        if plan.is_engine(func.value) or _in_evaluation(statement):
            continue
        outer_call = plan.tree.parent.get(call)
        if isinstance(outer_call, cst.Attribute) and outer_call.attr.value == "float":
            continue
        section = "fp16" if func.attr.value == "half" else "bf16"
        conditions = [
            carry(plan, outer.node.test, statement.function)
            for outer in statement.enclosing()
            if isinstance(outer.node, cst.If)
        ]
        plan.config[section] = {"enabled": True}
        texts = [text for text in conditions if text is not None]
        if texts:
            plan.set_at_run_time((section, "enabled"), f"bool({' and '.join(texts)})", statement)
        plan.todo("MG305", statement, f"the model is {func.attr.value} here: the config enables {section}, with fp32 master weights",
                  "plain DDP updated the half-precision weights themselves")  # fmt: skip


def makes_model(plan: Plan, call: cst.Call) -> bool:
    """Whether a cast is part of the expression that makes, moves or wraps the whole trained model."""
    assert isinstance(call.func, cst.Attribute)
    if isinstance(call.func.value, cst.Name | cst.Attribute) and plan.is_ours(call.func.value):
        return True
    node: Node = call
    while True:
        parent = plan.tree.parent.get(node)
        above = plan.tree.parent.get(parent) if parent is not None else None
        if isinstance(parent, cst.Attribute) and parent.attr.value in PASS_METHODS and isinstance(above, cst.Call):
            node = above
            continue
        break
    if any(wrap.model is node for wrap in plan.wraps):
        return True
    return any(
        binding.value is node
        and binding.index is None
        and plan.roles.env.get(binding.place, set()) & {f"R{k}" for k in plan.group}
        for binding in plan.flow.bindings
    )


def _in_evaluation(statement: Statement) -> bool:
    name = statement.function.name.lower()
    return any(word in name for word in ("eval", "valid", "test", "infer", "predict", "export"))
