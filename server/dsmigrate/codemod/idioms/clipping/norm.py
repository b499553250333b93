"""``clip_grad_norm_`` of the model's gradients right before the step becomes ``gradient_clipping``."""

from __future__ import annotations

from collections.abc import Iterator
from math import inf

from dsmigrate.codemod import targets
from dsmigrate.codemod.analysis.analysis import static_value
from dsmigrate.codemod.analysis.code import holds_by_default, said
from dsmigrate.codemod.analysis.events import Event, Happening
from dsmigrate.codemod.analysis.holdings import holds_all
from dsmigrate.codemod.analysis.training import Training
from dsmigrate.codemod.analysis.values import Choice, Const, Value
from dsmigrate.codemod.decision import Decision, Need, Setting
from dsmigrate.codemod.idioms.clips import Clip, clips_of, is_behind, is_scaled, limit_code, limit_of, other_modes
from dsmigrate.codemod.idioms.facts import Facts, is_statement
from dsmigrate.codemod.model import Idea, Kind
from dsmigrate.codemod.program.edits import Edit, Remove, ReplaceStatement

IDEAS = (
    Idea(
        "MG421",
        "clip_grad_norm_ becomes gradient_clipping",
        "The engine clips by the global norm, on averaged and unscaled gradients, right before the step.",
        "At ZeRO 1-3 clip_grad_norm_ sees no gradients and returns 0.0 without a word. The key is always written, because an absent "
        "gradient_clipping means 1.0 since DeepSpeed 0.19.3. The engine's norm is over what the optimizer owns.",
        "deepspeed/runtime/engine.py, _take_model_step",
        Kind.CONVERTED,
    ),
    Idea(
        "MG423",
        "Clipping that DeepSpeed does not do",
        "Clipping by value, of some parameters only, or by another norm works on p.grad, which is whole at ZeRO 0 only.",
        "The engine clips by the 2-norm of all gradients of the optimizer, right before the step.",
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
    Idea(
        "MG427",
        "Scaled gradients were clipped",
        "clip_grad_norm_ ran on gradients that still carried the loss scale; the engine clips unscaled ones.",
        "Without scaler.unscale_ the norm is larger by the loss scale, so nearly every step was clipped, by far more than the "
        "limit says. That is mostly a bug of the script, but the training changes.",
        "torch.amp examples, gradient clipping",
        Kind.TODO,
    ),
)


def clip(training: Training, facts: Facts) -> Iterator[Decision]:
    """The decisions about all clips of the training, and the limit that they come to."""
    found = clips_of(training, facts)
    limit = _limit(training, facts, found)
    places: dict[object, list[Clip]] = {}
    for one in found:
        places.setdefault(one.event.node, []).append(one)
    for several in places.values():
        if all(is_behind(facts, one) for one in several):
            yield _late(several[0].event)
        else:
            yield from _place(several, limit)
    yield from _scaled(training, facts, found)
    if limit is not None:
        yield limit
        yield from _reversed(facts, found)
        yield from _owned(training, found)
    else:
        site = facts.site
        yield Decision(
            "MG421", Kind.CONVERTED, site.module, site.node, "gradient_clipping: 0.0", "DeepSpeed's own default is 1.0",
            config={"gradient_clipping": Setting(None, static=0.0)}, lines=(0, 0),
        )  # fmt: skip


def _late(event: Event) -> Decision:
    if is_statement(event):
        return Decision(
            "MG423",
            Kind.KEPT,
            event.module,
            event.node,
            "this clip comes after the step: no step is clipped, as before",
            "the step has used the gradients",
        )
    return Decision(
        "MG410", Kind.TODO, event.module, event.node, "this norm is taken after the step, which has cleared the gradients: take it before",
        "engine.step() zeroes the gradients",
    )  # fmt: skip


def _reversed(facts: Facts, found: list[Clip]) -> Iterator[Decision]:
    """Mark a clip where the release multiplies by the wrong quotient at ZeRO 0."""
    event = found[0].event
    if targets.holds("clipping_reversed", facts.options.target_version) and facts.options.zero_stage == 0:
        yield Decision(
            "MG424", Kind.TODO, event.module, event.node, "DeepSpeed 0.13.2 clips the wrong way round at ZeRO 0: take another stage or release",
            "small gradients grow there, large ones stay",
        )  # fmt: skip


def _place(several: list[Clip], limit: Decision | None) -> Iterator[Decision]:
    """What becomes of the place of a clip."""
    one = several[0]
    why = next((clip.why for clip in several if clip.why is not None), None)
    if limit is None or why is not None:
        yield _stays(one.event, why or ("MG424", "the script clips in several ways, and the engine in one"))
    elif not one.is_library and is_statement(one.event):  # where what it gives is taken: see measured.py
        yield _gone(one.event)


def _stays(event: Event, why: tuple[str, str]) -> Decision:
    code, reason = why
    return Decision(
        code, Kind.KEPT, event.module, event.node, "your clip stays, at ZeRO 0", reason, stage=0, needs=frozenset({Need.WHOLE_GRADIENTS}),
        otherwise=Decision(code, Kind.TODO, event.module, event.node, "this clip finds no gradients at ZeRO 1-3", reason),
    )  # fmt: skip


def _gone(event: Event) -> Decision:
    module = event.module
    statement = module.step(event.node).node
    mode = other_modes(event)
    edit: Edit = ReplaceStatement(module, statement, (mode,)) if mode else Remove(module, statement)
    message = f"clip → gradient_clipping = {module.text(limit_code(event))}" + (
        "; other modes than norm stop" if mode else ""
    )
    return Decision(
        "MG421", Kind.CONVERTED, module, event.node, message, "the engine clips right before the step", edits=(edit,)
    )


def _scaled(training: Training, facts: Facts, found: list[Clip]) -> Iterator[Decision]:
    for one in found:
        if not one.is_library and one.why is None and is_scaled(training, facts, one):
            yield Decision(
                "MG427", Kind.TODO, one.event.module, one.event.node, "you clipped scaled gradients; the engine clips unscaled ones: check the limit",
                "scaler.unscale_ is missing before the clip", differs=True,
            )  # fmt: skip
            return


def _owned(training: Training, found: list[Clip]) -> Iterator[Decision]:
    """Mark where the optimizer has some of the parameters only, and the clip is over all."""
    made = [
        event
        for event in training.events(Happening.MADE)
        if training.is_optimizer(event["what"]) and event["role"] == Const("optimizer")
    ]
    frozen = any(
        training.is_model(event["of"]) or training.holds_parameters(event["of"])
        for event in training.events(Happening.THAW)
    )
    if frozen or not made or not all(holds_all(training, event["params"]) is False for event in made):
        return
    event = found[0].event
    if all(one.why is None and holds_all(training, one.event["params"]) for one in found):
        yield Decision(
            "MG421", Kind.TODO, event.module, event.node, "the engine's norm is over the optimizer's parameters only, yours was over all: check the limit",
            "the optimizer has a part of the model",
        )  # fmt: skip


def _limit(training: Training, facts: Facts, found: list[Clip]) -> Decision | None:
    """The setting that the clips come to; None where there is none, or where the engine cannot follow."""
    value = limit_of(training, facts, found)
    if value is None:
        return None
    code = said(value, facts.site.names)
    static = _by_default(training, value)
    number = (
        float(static)
        if isinstance(static, int | float) and not isinstance(static, bool) and abs(static) != inf
        else 0.0
    )
    event = found[0].event
    return Decision(
        "MG421", Kind.CONVERTED, event.module, event.node, f"gradient_clipping: {code}", "the limit of the script",
        config={"gradient_clipping": Setting(value, static=number, code="" if isinstance(value, Const) else code or "")}, lines=(0, 0),
    )  # fmt: skip


def _by_default(training: Training, value: Value) -> object:
    """What a limit is where no option is given."""
    if isinstance(value, Choice):
        for condition, option in value.options:
            if holds_by_default(training.analysis, condition):
                return static_value(training.analysis, option)
    return static_value(training.analysis, value)
