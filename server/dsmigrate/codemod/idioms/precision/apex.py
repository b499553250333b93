"""NVIDIA apex's mixed precision becomes torch's autocast, with a scale for the losses that follows apex's rules."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from dataclasses import replace

from dsmigrate.codemod import targets
from dsmigrate.codemod.analysis.analysis import nearest_common, static_value
from dsmigrate.codemod.analysis.code import condition_said, flag_said, holds_by_default, said
from dsmigrate.codemod.analysis.conditions import FALSE, TRUE, Condition, both, either, literals_of, under
from dsmigrate.codemod.analysis.events import Block, BlockKind, Event, Happening
from dsmigrate.codemod.analysis.precision import AUTOCAST, type_of
from dsmigrate.codemod.analysis.training import Training
from dsmigrate.codemod.analysis.values import NONE, Const, Expr, Lib, Obj, Tensor, each
from dsmigrate.codemod.decision import Decision, Need, Setting
from dsmigrate.codemod.idioms.facts import Facts, by_place
from dsmigrate.codemod.model import Idea, Kind
from dsmigrate.codemod.program.edits import Edit, Enclose, Import, Insert, Remove, Replace, Unwrap
from dsmigrate.codemod.program.module import Module, Step
from dsmigrate.languages import told

IDEAS = (
    Idea(
        "MG304",
        "apex amp becomes torch autocast",
        "amp.initialize and amp.scale_loss go; the engine runs the model under torch_autocast, and scale_losses scales the loss.",
        "DeepSpeed removed its amp section in 0.19.7. Opt level O1 is torch's autocast in spirit; a loss that the model does not give "
        "itself is computed inside an autocast region as well, or the place is marked. O2 and O3 become DeepSpeed's fp16 section.",
        "deepspeed/runtime/config.py, removed keys; apex/amp/scaler.py",
        Kind.CONVERTED,
    ),
)


def apex(training: Training, facts: Facts) -> Iterator[Decision]:
    """The decisions about apex amp where it is made for this training."""
    made = [
        event
        for event in training.events(Happening.AMP)
        if "models" in event.what and (training.is_model(event["models"]) or training.is_optimizer(event["optimizers"]))
    ]
    if not made:
        return
    regions = {
        block.node: block
        for block in training.analysis.root.blocks()
        if block.kind is BlockKind.WITH and _scales(block)
    }
    for node, events in by_place(made).items():
        yield from _initialized(events[0], node)
    for block in regions.values():
        yield from _region(block)
    yield from _states(training)
    module, place = next(_places(regions.values()), (made[0].module, made[0].node))
    if facts.options.precision == "keep":
        yield from _precision(training, facts, made, module, place)


def _places(regions: Iterable[Block]) -> Iterator[tuple[Module, ast.AST]]:
    """The statements that are left of the regions."""
    for block in regions:
        if block.module is not None and block.node is not None:
            step = block.module.step(block.node)
            test = step.up.node if step.up is not None else None
            if isinstance(step.node, ast.With):
                loss = block.node.args[0] if isinstance(block.node, ast.Call) and block.node.args else None
                same = isinstance(test, ast.If) and loss is not None and _is_same(block.module, test, step.node, loss)
                yield block.module, test.orelse[0] if same and isinstance(test, ast.If) else step.node.body[0]


def _scales(block: Block) -> bool:
    return block.label is not None and any(
        isinstance(one, Obj) and one.made_by == "apex.amp.scale_loss" for one in each(block.label)
    )


def _initialized(event: Event, node: ast.AST) -> Iterator[Decision]:
    """``amp.initialize`` goes; ``a, b = amp.initialize(m, o)`` stays as what it gives where that has other names."""
    module, statement = event.module, event.module.step(node).node
    assert isinstance(node, ast.Call)
    given = ", ".join(
        module.text(argument)
        for argument in (*node.args, *(one.value for one in node.keywords))[: 1 if event["optimizers"] == NONE else 2]
    )
    same = isinstance(statement, ast.Expr) or (
        isinstance(statement, ast.Assign) and module.text(statement.targets[0]).strip("()[]") == given
    )
    edit: Edit = Remove(module, statement) if same else Replace(module, node, (given,))
    yield Decision(
        "MG304",
        Kind.CONVERTED,
        module,
        node,
        "amp.initialize removed",
        "DeepSpeed has no apex amp since 0.19.7",
        edits=(edit,),
    )


def _region(block: Block) -> Iterator[Decision]:
    """``with amp.scale_loss(loss, optimizer) as scaled:`` goes, and ``scaled`` is the loss."""
    module, call = block.module, block.node
    assert module is not None
    step = module.step(call) if call is not None else None
    node = step.node if step is not None else None
    loss = call.args[0] if isinstance(call, ast.Call) and call.args else None
    if not isinstance(node, ast.With) or len(node.items) > 1 or loss is None or call is None:
        yield Decision(
            "MG304",
            Kind.TODO,
            module,
            call or module.tree,
            "take amp.scale_loss out here: the engine scales the loss",
            "apex amp is not used any more",
        )
        return
    bound = node.items[0].optional_vars
    names = [
        one
        for one in ast.walk(node)
        if isinstance(one, ast.Name) and isinstance(bound, ast.Name) and one.id == bound.id and one is not bound
    ]
    assert step is not None
    twin = step.up.node if step.up is not None else None
    edits: tuple[Edit, ...] = (Unwrap(module, node), *(Replace(module, one, (loss,)) for one in names))
    if isinstance(twin, ast.If) and _is_same(module, twin, node, loss):
        edits = (Unwrap(module, twin, arm="orelse"),)
    yield Decision(
        "MG304", Kind.CONVERTED, module, node, "amp.scale_loss removed", "the engine scales the loss", edits=edits
    )


def _is_same(module: Module, test: ast.If, region: ast.With, loss: ast.expr) -> bool:
    """Whether the other arm of a test runs the same backward without apex."""
    if test.body != [region] or len(test.orelse) != 1 or len(region.body) != 1:
        return False
    one, other = region.body[0], test.orelse[0]
    bound = region.items[0].optional_vars
    if not isinstance(one, ast.Expr) or not isinstance(other, ast.Expr) or bound is None:
        return False
    return module.text(one).replace(module.text(bound), module.text(loss), 1) == module.text(other)


def _states(training: Training) -> Iterator[Decision]:
    for event in training.events(Happening.AMP):
        if "name" in event.what:
            message = (
                "apex amp is not set up any more and has no scalers: take this out"
                if event["name"] == Const("loss_scalers")
                else "take the state of the scaler that ds_compat.scale_losses gives: apex amp has none now"
            )
            yield Decision("MG304", Kind.TODO, event.module, event.node, message, "apex amp is not used any more")


def _precision(
    training: Training, facts: Facts, made: list[Event], module: Module, place: ast.AST
) -> Iterator[Decision]:
    """The config of the precision, and the scale of the losses."""
    site = facts.site
    assumed = {literal.atom: literal.holds for literal in literals_of(site.block.condition)}
    condition = under(either(*(event.condition for event in made)), assumed)
    given = made[0].what.get("arg_opt_level", NONE)
    level = next((static_value(training.analysis, one) for one in each(given)), None) or "O1"
    is_option = any(not isinstance(one, Const) for one in each(given))
    known = str(level)
    if is_option and level in {"O0", "O1"} and said(given, site.names) is not None:
        run, level, known = training.analysis.run, "O1", "O0 and O1"
        condition = both(condition, run.truth(run.compared(ast.Eq(), given, Const(level))))
    enabled = "" if condition is TRUE else flag_said(training.analysis.run, condition, site.names)
    by_default = holds_by_default(training.analysis, condition) is not False
    if enabled is None:
        yield Decision(
            "MG304",
            Kind.TODO,
            module,
            place,
            "say in ds_config.json when torch_autocast is on: apex amp is not used any more",
            "when is not known where the engine is made",
        )
        return
    if is_option:
        yield Decision(
            "MG304", Kind.KEPT, made[0].module, made[0].node, told("This fits opt_level {known}. For another one set the precision in ds_config.json.", known=known),
            "the level is an option", differs=True,
        )  # fmt: skip
    if level == "O0":
        return
    if level in {"O2", "O3"}:
        settings = {
            "fp16.enabled": Setting(None, static=by_default, code=enabled),
            "fp16.auto_cast": Setting(None, static=True),
        }
        yield Decision(
            "MG304", Kind.TODO, module, place, told("apex amp {level} became DeepSpeed's fp16 section: compute the loss in float32", level=level),
            "both keep fp32 master weights; their loss scales start and grow differently", config=settings,
        )  # fmt: skip
        return
    release = facts.options.target_version
    if not targets.holds("torch_autocast", release):
        yield Decision(
            "MG304", Kind.TODO, module, place, told("DeepSpeed {release} has nothing like apex amp: run model and loss inside torch.autocast, in bfloat16", release=release),
            "torch_autocast is right from 0.17.6 on",
        )  # fmt: skip
        return
    settings = {
        "torch_autocast.enabled": Setting(None, static=by_default, code=enabled), "torch_autocast.dtype": Setting(None, static="float16"),
        "torch_autocast.lower_precision_safe_modules": Setting(None, static=[]),
    }  # fmt: skip
    fixed = next(
        (said(one, site.names) for event in made if (one := event.what.get("arg_loss_scale", NONE)) != NONE), None
    )
    options = [f"enabled={enabled}"] if enabled else []
    line = f"ds_compat.scale_losses({', '.join([site.target, *options, *([f'scale={fixed}'] if fixed else [])])})"
    scaled = Decision(
        "MG304", Kind.CONVERTED, site.module, site.node, line, "the scale starts, falls and grows as apex's", config=settings, lines=(0, 0),
        edits=(Insert(site.module, site.node, ((line,),), after=True, rank=2),), parts=frozenset({"scale_losses"}),
    )  # fmt: skip
    looked_at = replace(
        scaled, kind=Kind.TODO, module=module, node=place, message="gradients carry the loss scale up to the step: what looks at them before must divide by it",
        reason="apex unscaled at the end of amp.scale_loss; the engine does in its step", lines=None,
    )  # fmt: skip
    scaling = [event for event in training.backwards if both(event.condition, condition) is not FALSE]
    if all("library" in event.what for event in scaling):  # ApexScaler, which has become one of the engine
        yield replace(
            scaled,
            message="apex amp → torch_autocast",
            reason="its scaler goes on, through the engine",
            edits=(),
            parts=frozenset(),
        )
    else:
        yield replace(scaled, excludes=frozenset({Need.WHOLE_GRADIENTS}), otherwise=looked_at)
    yield from _losses(training, condition, module, place)


def _losses(training: Training, condition: Condition, module: Module, place: ast.AST) -> Iterator[Decision]:
    """A loss that the model does not give itself is computed in a region, as apex patched every function of torch."""
    computed: dict[Step, list[Event]] = {}
    steps = {event: _loss(training, event) for event in training.backwards}
    for event, step in steps.items():
        if isinstance(step, Step):
            computed.setdefault(step, []).append(event)
    tests = {
        step: condition_said(_open(condition, nearest_common(events)), events[0].names)
        or _engines_own(training, events)
        for step, events in computed.items()
    }
    managers = {step: _managers_around(training, step) for step in tests}
    others = {type_of(one) for several in managers.values() for one in several} - {Lib("torch.float16")}
    if None in steps.values() or None in tests.values() or others:
        yield Decision(
            "MG304", Kind.TODO, module, place, "apex amp became torch_autocast: compute the loss inside torch.autocast too",
            "apex patched every function of torch; the engine's autocast ends with the model's forward",
        )  # fmt: skip
        return
    for step, events in computed.items():
        home, enabled = events[0].module, "" if tests[step] == "True" else f", enabled={tests[step]}"
        if enabled and managers[step]:  # which stays as it is where apex was not on
            enabled = f", enabled=torch.is_autocast_enabled() or {tests[step]}"
        yield Decision(
            "MG304", Kind.CONVERTED, home, step.node, "the loss is computed inside torch.autocast", "apex patched every function of torch",
            edits=(Enclose(home, step.node, f'with torch.autocast("cuda", dtype=torch.float16{enabled}):'),),
            imports=(Import(home, "torch"),), lines=(0, 0),
        )  # fmt: skip


def _engines_own(training: Training, events: list[Event]) -> str | None:
    """What the engine was told, where nothing else there says when apex was on."""
    engines = {training.engine_at(event) for event in events}
    engine = engines.pop() if len(engines) == 1 else None
    is_on = all(training.has_engine(event) for event in events)
    return f"{engine}.torch_autocast_enabled()" if engine is not None and is_on else None


def _managers_around(training: Training, step: Step) -> list[Obj]:
    """The autocast regions that a statement is in."""
    outer = (one.node for one in step.around() if isinstance(one.node, ast.With | ast.AsyncWith))
    nodes = {item.context_expr for one in outer for item in one.items}
    regions = (
        block for block in training.analysis.root.blocks() if block.kind is BlockKind.WITH and block.node in nodes
    )
    managers = (one for block in regions for one in each(block.label or NONE))
    return [one for one in managers if isinstance(one, Obj) and one.made_by in AUTOCAST]


def _open(condition: Condition, block: Block) -> Condition:
    """A condition as far as it is open within a block."""
    known = {literal.atom: literal.holds for around in block.around() for literal in literals_of(around.test)}
    return under(condition, known)


def _loss(training: Training, event: Event) -> Step | bool | None:
    """The statement that computes the loss of a backward; True where the model gives it; None where it is not one of its function."""
    calls = {call for one in each(event["loss"]) if isinstance(one, Tensor) for call in one.given}
    if any(isinstance(call.model, Obj | Expr) and training.is_wrapper(call.model) for call in calls):
        return True
    here = event.module.step(event.node)
    steps = {event.module.statements.get(call.node) for call in calls}
    step = steps.pop() if len(steps) == 1 else None
    return step if step is not None and step.function is here.function and isinstance(step.node, ast.Assign) else None
