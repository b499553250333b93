"""Several models or optimizers that are trained in turns: an engine has one of each."""

from __future__ import annotations

from collections.abc import Iterator

from dsmigrate.codemod.analysis.analysis import exclusive, nearest_common, under
from dsmigrate.codemod.analysis.events import BlockKind, Event, Happening
from dsmigrate.codemod.analysis.processes import options_of
from dsmigrate.codemod.analysis.training import Training
from dsmigrate.codemod.analysis.values import Obj, Value
from dsmigrate.codemod.decision import Decision
from dsmigrate.codemod.idioms.facts import Facts
from dsmigrate.codemod.model import Idea, Kind
from dsmigrate.languages import told

IDEAS = (
    Idea(
        "MG901",
        "Several trained models",
        "Two wrapped models whose parameters are optimised need two engines; that is a decision for a person.",
        "A GAN alternates two losses over two optimizers. With an engine for each, the generator's loss runs through both, "
        "and its backward leaves gradients in the discriminator's engine too: at ZeRO 0 that engine raises (direct calls "
        "of backward are not supported), at ZeRO 1 the losses part without a word, at ZeRO 2 and 3 an assertion says that "
        "gradients are reduced twice. What trains as under DDP, at ZeRO 0 to 3, is to call the discriminator's bare module "
        "with frozen parameters in the generator's turn: `for p in d.parameters(): p.requires_grad = False`, then "
        "`d.module(fake)` instead of `d(fake)`, `g.backward(loss)`, `g.step()`, and True again. It drops the gradients that "
        "the generator's loss left in the discriminator, as a script does that calls its zero_grad before its next "
        "backward; whether yours does, and which loss belongs to which step, is what a person has to see. Models whose losses "
        "reach no parameters but their own (a detached input, or data alone) train as under DDP with an engine for each.",
        "tests/e2e/test_two_engines.py, on two processes with 0.19.8; https://github.com/deepspeedai/DeepSpeed/issues/582",
        Kind.REFUSED,
    ),
    Idea(
        "MG902",
        "Several optimizers",
        "More than one optimizer is stepped; an engine takes exactly one.",
        "Parameters of one model split over optimizers (Adam for embeddings, Muon for matrices) cannot be handed to "
        "deepspeed.initialize as they are.",
        "deepspeed/__init__.py, initialize(optimizer=...)",
        Kind.REFUSED,
    ),
)


def models(training: Training, facts: Facts) -> Iterator[Decision]:
    """Refuse where another model is trained in the same loop."""
    runs = training.runs or (training,)
    others = [run for other in facts.beside for run in other.runs or (other,)] + list(runs[1:])
    for other in others:
        if other is not runs[0] and _in_turns(runs[0], other):
            event = max(other.wraps[0], runs[0].wraps[0], key=lambda one: one.number)
            yield Decision(
                "MG901", Kind.REFUSED, event.module, event.node, told("one loop trains two models (the other is wrapped in line {line})", line=_other(event, runs[0], other)),
                "which loss belongs to which engine is a person's decision: see `dsmigrate explain MG901`",
            )  # fmt: skip
            return


def _other(event: Event, one: Training, other: Training) -> int:
    return next((wrap.line for wrap in (one.wraps[0], other.wraps[0]) if wrap is not event), event.line)


def _in_turns(one: Training, other: Training) -> bool:
    """Whether a loop trains both, and makes neither; of two that are made on other ways a rank has one."""
    if all(exclusive(wrap, second) for wrap in one.wraps for second in other.wraps):
        return False
    for first in one.backwards:
        for second in other.backwards:
            for block in nearest_common([first, second]).around():
                if block.kind is BlockKind.LOOP and not any(
                    under(wrap.block, block) for wrap in (*one.wraps, *other.wraps)
                ):
                    return True
    return False


def optimizers(training: Training, facts: Facts) -> Iterator[Decision]:  # noqa: ARG001 - an idiom's signature
    """Refuse where one run steps more than one optimizer."""
    made = {one: event for event in training.events(Happening.MADE) for one in _objects(event["what"])}
    stepped = [(event, set(_stepped(training, event))) for event in training.steps]
    scheduled = list(training.events(Happening.SCHEDULE))
    for event in training.steps:
        if any(one.node is event.node and exclusive(one, event) for one in scheduled):
            yield _refused(event, "what steps here is a schedule of the learning rate in one of its branches")
            return
    for index, (event, options) in enumerate(stepped):
        if any(_is_several(one, training) for one in options):
            yield _refused(event, "several optimizers are stepped in a loop")
            return
        for before, others in stepped[:index]:
            if options <= others or others <= options or exclusive(before, event):
                continue
            if any(_together(made, one, other, training) for one in options - others for other in others - options):
                yield _refused(
                    event, told("a second optimizer is stepped (the first in line {line})", line=before.line)
                )
                return


def _refused(event: Event, message: str) -> Decision:
    return Decision("MG902", Kind.REFUSED, event.module, event.node, message, "an engine takes exactly one optimizer")


def _objects(value: Value) -> Iterator[Obj]:
    yield from (one for _, one in options_of(value) if isinstance(one, Obj))


def _stepped(training: Training, event: Event) -> Iterator[Obj]:
    yield from (one for one in _objects(event["optimizer"]) if one in training.optimizers)


def _is_several(one: Obj, training: Training) -> bool:
    """Whether a place makes an optimizer at each turn of a loop that the model is not made in."""
    loops = one.loops - frozenset().union(*(wrapper.loops for wrapper in training.wrappers))
    return bool(loops) and not _is_made_again(one, training, loops)


def _is_made_again(one: Obj, training: Training, loops: frozenset[object]) -> bool:
    """Whether the loop that makes it holds its steps too: there is one at a time."""
    return all(
        any(block.node in loops for block in event.block.around())
        for event in training.steps
        if one in _stepped(training, event)
    )


def _together(made: dict[Obj, Event], one: Obj, other: Obj, training: Training) -> bool:
    """Whether one run may have both: neither made on other ways, nor by one text in two runs."""
    if one.node is other.node and one.context is not other.context and len(training.runs) > 1:
        return False
    return one not in made or other not in made or not exclusive(made[one], made[other])
