"""The script's gradient scaler keeps its scale and schedule; the engine asks it."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from dsmigrate.codemod import targets
from dsmigrate.codemod.analysis.analysis import held_at
from dsmigrate.codemod.analysis.code import condition_said
from dsmigrate.codemod.analysis.conditions import TRUE, either
from dsmigrate.codemod.analysis.events import Event, Happening
from dsmigrate.codemod.analysis.machine import Moment
from dsmigrate.codemod.analysis.precision import precision_at
from dsmigrate.codemod.analysis.training import Training
from dsmigrate.codemod.analysis.values import FALSE_VALUE, NONE, UNBOUND, Choice, Lib, Obj, Value, each, forwards_in
from dsmigrate.codemod.decision import Decision, Need
from dsmigrate.codemod.idioms.facts import Facts, by_place, constant, is_statement
from dsmigrate.codemod.idioms.scaled import for_scaled
from dsmigrate.codemod.model import Idea, Kind
from dsmigrate.codemod.program.edits import Edit, Import, Insert, Remove, Replace, Template
from dsmigrate.languages import told

IDEAS = (
    Idea(
        "MG302",
        "The gradient scaler drives the engine",
        "The script's scaler keeps its scale, schedule and state; use_grad_scaler makes the engine scale and skip by it.",
        "DeepSpeed's own scale under torch_autocast does not follow the script's, and never falls at ZeRO 1-3 (0.19.8). Where the "
        "script trains in float16 without a scaler, a scaler that is off keeps DeepSpeed from scaling.",
        "deepspeed/runtime/engine.py, torch_autocast_z0_gradscaler",
        Kind.CONVERTED,
    ),
    Idea(
        "MG303",
        "scaler.update without a step",
        "The script updates its scale also where it takes no step; the engine finds infinities in its step only.",
        "Without a step the scaler has recorded nothing, and update() raises. Take the step in any case: one with gradients that are "
        "not finite is skipped.",
        "torch/amp/grad_scaler.py, update",
        Kind.TODO,
    ),
    Idea(
        "MG425",
        "unscale_ goes",
        "The engine unscales the gradients before it clips them.",
        "A second unscaling would divide them again. What unscale_ has found (_found_inf_per_device) is known behind the step only.",
        "torch/amp/grad_scaler.py, unscale_",
        Kind.CONVERTED,
    ),
    Idea(
        "MG426",
        "unscale_ stays where gradients are looked at",
        "Code between backward and step that reads or edits p.grad finds unscaled gradients, as before.",
        "At ZeRO stage 0 the scaler unscales where the script asks for it; the engine does not ask a second time.",
        "deepspeed/runtime/engine.py, _take_model_step",
        Kind.KEPT,
    ),
)


def scaler(training: Training, facts: Facts) -> Iterator[Decision]:
    """The decisions about the scalers of the training."""
    scalers = _scalers(training)
    for node, events in by_place(_of(training, Happening.SCALE, scalers)).items():
        yield from _scaled(node, events)
    for node, events in by_place(_of(training, Happening.UNSCALE, scalers)).items():
        yield from _unscaled(facts, node, events)
    for event in _of(training, Happening.SCALER_UPDATE, scalers):
        if any(there.unscaled for there in facts.gradients.at(event)):
            yield Decision(
                "MG303", Kind.TODO, event.module, event.node, "the scale is updated here without a step, too: step in any case",
                "a step whose gradients are not finite is skipped by itself",
            )  # fmt: skip
            break
    for event in training.events(Happening.ACCESS):
        if any(one in scalers for one in each(event["of"])) and constant(event["name"]) in {
            "_found_inf_per_device",
            "_check_inf_per_device",
        }:
            yield Decision(
                "MG425", Kind.TODO, event.module, event.node, "infinities are found in the step now: compare get_scale() before and after update()",
                "the engine unscales within its step",
            )  # fmt: skip
    if facts.options.precision == "keep":  # else DeepSpeed scales by itself
        yield from _taught(training, scalers) if scalers else _untaught(training, facts)


def _scalers(training: Training) -> set[Value]:
    """The scalers that a loss or a step of the training goes through; not those of libraries that step by themselves."""
    steps = (event for event in training.steps if "library" not in event.what)
    return {one for event in steps for one in each(event.what.get("scaler", NONE)) if isinstance(one, Obj)}


def _of(training: Training, kind: Happening, scalers: set[Value]) -> Iterator[Event]:
    for event in training.events(kind):
        if "library" not in event.what and any(one in scalers for one in each(event["scaler"])):
            yield event


def _scaled(node: ast.AST, events: list[Event]) -> Iterator[Decision]:
    """``scaler.scale(loss)`` is the loss: the engine scales it."""
    module = events[0].module
    if not isinstance(node, ast.Call) or not (node.args or node.keywords):
        yield Decision(
            "MG302",
            Kind.TODO,
            module,
            node,
            "take the loss itself here: the engine scales it",
            "how it is written hides the loss",
        )
        return
    loss = node.args[0] if node.args else node.keywords[0].value
    statement = module.step(node).node
    same = (
        isinstance(statement, ast.Assign)
        and statement.value is node
        and module.text(statement.targets[0]) == module.text(loss)
    )
    edit: Edit = Remove(module, statement) if same else Replace(module, node, (loss,))
    yield Decision(
        "MG302", Kind.CONVERTED, module, node, f"{module.text(node)} → {module.text(loss)}", "the engine scales the loss", edits=(edit,),
    )  # fmt: skip


def _unscaled(facts: Facts, node: ast.AST, events: list[Event]) -> Iterator[Decision]:
    """``scaler.unscale_(optimizer)`` goes, but at ZeRO 0 where the gradients are looked at behind it."""
    event = events[0]
    module = event.module
    if not any(facts.training.is_optimizer(one["optimizer"]) for one in events):
        return
    stays = Decision("MG426", Kind.KEPT, module, node, "unscale_ stays, at ZeRO 0", "code after it reads the gradients")
    if is_statement(event):
        statement = module.step(node).node
        yield Decision(
            "MG425", Kind.CONVERTED, module, node, told("{code} removed", code=module.text(statement)), "the engine unscales before it clips",
            edits=(Remove(module, statement),), excludes=frozenset({Need.WHOLE_GRADIENTS}), otherwise=stays,
        )  # fmt: skip
    else:
        yield Decision(
            "MG425",
            Kind.TODO,
            module,
            node,
            "take unscale_ out here: the engine unscales before it clips",
            "it would divide twice",
        )


def _taught(training: Training, scalers: set[Value]) -> Iterator[Decision]:
    """The line that lets the engine ask the scaler, behind both."""
    made = [event for event in training.events(Happening.MADE) if any(one in scalers for one in each(event["what"]))]
    if made and all(event.what.get("enabled") == FALSE_VALUE for event in made) and not _is_half(training):
        return
    where = made[0] if made else training.steps[0]
    if len(scalers) > 1 and len({event.node for event in made}) > 1 and not _are_apart(made):
        yield Decision(
            "MG302",
            Kind.TODO,
            where.module,
            where.node,
            "the engine asks one scaler: several are used here",
            "whose scale counts is not clear",
        )
        return
    place = training.place_with(scalers)
    lines = (
        None
        if place is None
        else _lines(training, place[0], place[2], scalers, f"ds_compat.use_grad_scaler({place[1]}, {place[2]})")
    )
    if place is None or lines is None:
        yield Decision(
            "MG302", Kind.TODO, where.module, where.node, "call ds_compat.use_grad_scaler(engine, scaler) where both are there", "no name leads to both",
            parts=frozenset({"use_grad_scaler"}),
        )  # fmt: skip
        return
    moment = place[0]
    lines, plain = for_scaled(training, made, lines, moment)
    if plain is not None:
        yield Decision(
            "MG302", Kind.TODO, plain.module, plain.node, "this step does not use the scaler: call use_grad_scaler only in runs that do",
            "a scaler takes each step once between two updates",
        )  # fmt: skip
    yield Decision(
        "MG302", Kind.CONVERTED, moment.module, moment.node, "".join(map(str, lines[-1])).strip(), "the scaler keeps its scale and schedule",
        edits=(Insert(moment.module, moment.node, lines, after=True, rank=2),), parts=frozenset({"use_grad_scaler"}), lines=(0, 0),
    )  # fmt: skip


def _lines(
    training: Training, moment: Moment, name: str, scalers: set[Value], line: str
) -> tuple[Template, ...] | None:
    """A line about a scaler, under a test where there may be none."""
    names = moment.names
    is_bound = isinstance(moment.node, ast.Assign) and name in map(ast.unparse, moment.node.targets)
    found = held_at(training.analysis.run, names, ast.parse(name, mode="eval").body) or []
    ways = [one for held in found for one in (held.options if isinstance(held, Choice) else ((TRUE, held),))]
    if not is_bound and any(one is UNBOUND for _, one in ways):  # on some ways nothing is bound to the name
        test = condition_said(either(*(condition for condition, one in ways if one in scalers)), names)
        holder, _, attribute = name.rpartition(".")
        if test is None and holder:
            test = f'hasattr({holder}, "{attribute}")'
        return None if test is None else ((f"if {test}:",), (f"    {line}",))
    if any(one == NONE for _, one in ways):
        return (f"if {name} is not None:",), (f"    {line}",)
    return ((line,),)


def _are_apart(made: list[Event]) -> bool:
    """Whether scalers are made on ways of which a run takes one."""
    return len({event.block.node for event in made}) == 1


def _is_half(training: Training) -> bool:
    """Whether the training runs in float16, for which DeepSpeed scales by itself."""
    nodes = {(forward.node, forward.context) for event in training.backwards for forward in forwards_in(event["loss"])}
    for event in training.events(Happening.FORWARD):
        if (event.node, event.context) in nodes and training.is_wrapper(event["model"]):
            dtype = precision_at(training.analysis, event).dtype
            if dtype is not None and any(
                one == Lib("torch.float16") or not isinstance(one, Lib) for one in each(dtype)
            ):
                return True
    return False


def _untaught(training: Training, facts: Facts) -> Iterator[Decision]:
    """A training in float16 without a scaler: DeepSpeed's own stays off."""
    if (
        any("scaler" in event.what for event in training.steps)
        or any(True for _ in training.events(Happening.AMP))
        or not _is_half(training)
    ):
        return
    site = facts.site
    if not targets.holds("scaler_at_zero_0", facts.options.target_version):
        return
    line = f"ds_compat.use_grad_scaler({site.target}, torch.amp.GradScaler(enabled=False))"
    yield Decision(
        "MG302", Kind.CONVERTED, site.module, site.node, line, "the loss is not scaled, as before: DeepSpeed would, in float16",
        edits=(Insert(site.module, site.node, ((line,),), after=True, rank=2),), imports=(Import(site.module, "torch"),),
        parts=frozenset({"use_grad_scaler"}), lines=(0, 0),
    )  # fmt: skip
