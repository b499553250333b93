"""A recommendation for the terminal: the choice, the others in order, the config, and what to do if."""

from __future__ import annotations

import json
from collections.abc import Iterator

from rich import box
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from dsmigrate.knowledge import knowledge
from dsmigrate.memory.activations import Checkpointing
from dsmigrate.memory.formats.sizes import size
from dsmigrate.memory.formats.text import assumed_loss, counted
from dsmigrate.memory.model import Place
from dsmigrate.recommend.choose import ALIKE, Candidate, Recommendation
from dsmigrate.recommend.decisions import topics
from dsmigrate.recommend.reasons import advice, lacking, notes, reasons


def render(found: Recommendation, *, config: bool, topics_too: bool) -> RenderableType:
    """Return what ``dsmigrate recommend`` prints; ``config`` where the config is not written to a file."""
    return Group(*_lines(found, config=config, topics_too=topics_too))


def _lines(found: Recommendation, *, config: bool, topics_too: bool) -> Iterator[RenderableType]:
    request, chosen = found.request, found.chosen
    model, machine = request.described, request.machine
    yield Text(f"{model.name}: {counted(model)} ({model.source})", "bold")
    gpus = f"{machine.nodes} × {machine.gpus}" if machine.nodes > 1 else str(machine.gpus)
    each = f" of {size(machine.gpu)}" if machine.gpu else ""
    many = "s" if machine.ranks > 1 else ""
    yield Text(f"{gpus} GPU{many}{each}, {request.link}; DeepSpeed {found.version}, read by {request.consumer.value}")
    yield from assumed_loss(next(one.estimate for one in (*found.fitting, *found.failing)))
    yield Text()
    if chosen is None:
        yield Text("Nothing fits.", "bold red")
        for line in advice(found):
            yield Text(f"· {line}")
    else:
        size_, steps = chosen.estimate.work.micro_batch, chosen.estimate.traffic.steps
        yield Text(f"{title(chosen)}; micro-batch {size_}, accumulation {steps}", "bold green")
        for line in reasons(chosen):
            yield Text(f"· {line}")
        yield Text()
        yield _others(found, chosen)
    for one in found.failing:
        yield Text.assemble((f"✗ {one.variant.name}", "red"), f": {lacking(one)}")
    yield Text()
    if chosen is not None and config:
        yield Text(json.dumps(chosen.config, indent=2))
        yield Text()
    for line in notes(found):
        yield Text(f"· {line}")
    if chosen is not None and topics_too:
        yield from _topics(found, chosen)


def title(one: Candidate) -> str:
    """Return a candidate in words: "ZeRO-2 with activation checkpointing"."""
    kept = {Checkpointing.FULL: " with activation checkpointing", Checkpointing.HOST: " with checkpoints on the host"}
    return one.variant.name + kept.get(one.checkpointing, "")


def _others(found: Recommendation, chosen: Candidate) -> Table:
    heading = f"What fits, fastest first; times within {ALIKE - 1:.0%} count as the same"
    if chosen.variant.is_plain and any(not one.variant.is_plain for one in found.fitting):
        heading += "; last, what is faster but changes script or numbers"
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, title=heading, title_justify="left")
    table.add_column("", no_wrap=True)
    for name in ("time", "batch", "GPU", "host", "NVMe", "most samples"):
        table.add_column(name, justify="right", no_wrap=True)
    for one in found.fitting:
        places = [size(held) if (held := one.estimate.on_node(place)) else "" for place in (Place.HOST, Place.NVME)]
        most = "" if one.estimate.largest_micro_batch is None else str(one.estimate.largest_micro_batch)
        times = f"{one.seconds.total / chosen.seconds.total:.2f}×"
        batch = f"{one.estimate.work.micro_batch} × {one.estimate.traffic.steps}"
        table.add_row(title(one), times, batch, size(one.estimate.peak), *places, most)
    return table


def _topics(found: Recommendation, chosen: Candidate) -> Iterator[Text]:
    for topic in topics(chosen.variant, found.request.half, knowledge(found.version)):
        yield Text()
        yield Text(topic.title, "bold")
        for number, step in enumerate(topic.steps, 1):
            line = Text(f" {number}. {step.text}")
            for count, (key, url) in enumerate(step.links):
                line.append(" " if not count else ", ")
                line.append(key, f"cyan link {url}")
            yield line
