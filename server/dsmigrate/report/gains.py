"""What a conversion changes in memory and traffic: a sentence each, for any number of parameters and of GPUs."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from dsmigrate.codemod.model import Accumulation
from dsmigrate.document import parse
from dsmigrate.editing.view import View
from dsmigrate.languages import say
from dsmigrate.memory import STATES, Place, text, traffic, usage
from dsmigrate.rules import Settings
from dsmigrate.rules.context import Context


def gains(config: Mapping[str, Any], training: Accumulation, release: str) -> Iterator[str]:
    """Memory of the model states and elements sent, under DDP and with a config."""
    before, after = (_context(config, training, stage, release) for stage in (0, None))
    states = [_states(context) for context in (before, after)]
    if None not in states and states[0] != states[1]:
        yield say("memory per GPU (weights, gradients, optimizer states): {after} bytes, DDP {before}; "
                  "Ψ parameters, N GPUs",
                  before=states[0], after=states[1])  # fmt: skip
    each = 1 if not (training.accumulates and training.sends_each) else training.micro_batches
    sent = ["2gΨ" if each is None else f"{2 * each}Ψ", _sent(after)]  # an all-reduce, counted as two passes
    if None in sent:
        return
    if sent[0] == sent[1]:
        yield say("sent per GPU and step: {after} elements, as under DDP", after=sent[1])
    else:
        where = say("; g micro-batches") if "g" in f"{sent[0]}{sent[1]}" else ""
        yield say("sent per GPU and step: {after} elements, DDP {before}", before=sent[0], after=sent[1]) + where


def _context(config: Mapping[str, Any], training: Accumulation, stage: int | None, release: str) -> Context:
    made = json.loads(json.dumps(config))
    if training.optimizer:
        made["optimizer"] = {"type": training.optimizer, "params": dict(training.params)}
    made["gradient_accumulation_steps"] = training.micro_batches or ("auto" if training.accumulates else 1)
    made.setdefault("train_micro_batch_size_per_gpu", 1)  # without any batch size the windows are not known either
    if stage is not None:
        made["zero_optimization"] = {"stage": stage}
    return View(parse(json.dumps(made)), Settings(version=release)).context


def _states(context: Context) -> str | None:
    """Bytes of the model states of a GPU; None for an optimizer of which nobody knows what it keeps for a parameter."""
    kind = context.type_of("optimizer")
    found = None if kind is None or kind.states is None else usage(context)
    return None if found is None else text(found.select(Place.GPU, STATES))


def _sent(context: Context) -> str | None:
    found = traffic(context)
    return None if found is None else found.formula()
