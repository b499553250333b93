"""The learning rate over the run, and the class that is built."""

from __future__ import annotations

from collections.abc import Iterator

from dsmigrate.editing.derived import built_class, count_text, course, triad, type_facts
from dsmigrate.editing.derived.sizes import whole
from dsmigrate.editing.hover.here.subject import Subject
from dsmigrate.languages import say
from dsmigrate.rules.context import Context

_ABOUT_STEPS = frozenset({"warmup_num_steps", "total_num_steps"})
_ABOUT_RATE = frozenset({"warmup_min_lr", "warmup_max_lr", "warmup_type", "warmup_min_ratio", "cos_min_ratio", "lr"})


def lines(at: Subject) -> Iterator[str]:
    """Yield the class behind an optimizer type, the course of the rate, and steps as samples."""
    context, target, path = at.context, at.target, at.target.path
    facts = type_facts(context, "optimizer") if path[0] == "optimizer" else None
    if facts is not None and path in {("optimizer",), ("optimizer", "type")}:
        name = built_class(context, facts)
        if name:
            yield say("`{facts_name}` builds `{name}` here.", facts_name=facts.name, name=name)
    about = target.is_parameter and target.name in _ABOUT_RATE | _ABOUT_STEPS
    if about or path in {("scheduler",), ("scheduler", "type")}:
        shape = course(context)
        if shape:
            yield f"{say('The schedule sets it') if target.name == 'lr' else say('Learning rate')}: {shape}."
    if target.is_parameter and path[0] == "scheduler" and target.name in _ABOUT_STEPS:
        yield from _samples(context, ".".join(map(str, path)))


def _samples(context: Context, path: str) -> Iterator[str]:
    """Yield how many samples a number of optimizer steps sees; they are not micro-steps."""
    found, steps = triad(context), whole(context.number(path))
    if found is None or not steps or not found.fits:
        return
    total = whole(found.total)
    if total:
        yield say(
            "{steps} optimizer steps of {total} samples: {number} samples.",
            steps=steps,
            total=total,
            number=count_text(steps * total),
        )
    elif found.micro and found.steps and whole(found.steps):
        micro = whole(found.steps)
        yield say("{steps} optimizer steps, each of {micro} micro-batches on every rank.", steps=steps, micro=micro)
