"""Estimates for the terminal: a table of variants with bars, or the parts of one config."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from rich import box
from rich.console import Console, ConsoleOptions, Group, RenderableType
from rich.measure import Measurement
from rich.table import Table
from rich.text import Text

from dsmigrate.memory.activations import Checkpointing, Loss
from dsmigrate.memory.estimate import Estimate
from dsmigrate.memory.formats.sizes import KINDS, gib, size, used, verdict
from dsmigrate.memory.model import Part, Place, Surety, What, When
from dsmigrate.memory.shape import Described

_BAR = 48
_WIDEST = 1000
_WHEN = {
    When.ALWAYS: "always",
    When.FORWARD: "forward, backward",
    When.LOSS: "loss",
    When.BACKWARD: "backward",
    When.STEP: "step",
}
_LOSS = {
    Loss.UPCAST: "in fp32 over all logits, as Transformers computes it",
    Loss.SHIFTED: "in fp32 over a shifted copy of the logits, as Transformers before 4.46",
    Loss.PLAIN: "by torch's cross_entropy of the logits as they are",
    Loss.CHUNKED: "of all logits in chunks of fp32",
    Loss.FUSED: "fused with the head, so that all logits are never there",
}


def render(estimates: list[Estimate], version: str, *, alone: bool) -> RenderableType:
    """Return what ``dsmigrate memory`` prints: of one config all parts, of variants a row each."""
    first = estimates[0]
    body = [_parts(first), _summary(first)] if alone else [_Variants(estimates), Text(), *_bars(estimates)]
    return Group(*_head(first, version), *_rejected(first, version), Text(), *body, Text(), *_notes(first))


def _rejected(one: Estimate, version: str) -> Iterator[Text]:
    if one.rejected:
        yield Text()
        yield Text(f"DeepSpeed {version} rejects this config; these are the sizes it would have otherwise.", "bold red")
    for finding in one.rejected:
        yield Text(f"{finding.code}: {finding.message}", "red")


def _head(one: Estimate, version: str) -> Iterator[Text]:
    model, machine, work = one.described, one.machine, one.work
    yield Text(f"{model.name}: {counted(model)} ({model.source})", "bold")
    gpus = (
        f"{machine.nodes} × {machine.gpus} GPUs"
        if machine.nodes > 1
        else f"{machine.gpus} GPU{'s'[: machine.gpus > 1]}"
    )
    memory = "" if machine.gpu is None else f" of {size(machine.gpu)}, {size(machine.reserved)} of it left free"
    yield Text(f"{gpus}{memory}; DeepSpeed {version}")
    if model.shape is not None:
        kept = {Checkpointing.NONE: "no activation checkpointing", Checkpointing.FULL: "every block checkpointed"}
        said = kept.get(work.checkpointing, "every block checkpointed, to the host")
        tokens = work.tokens(model.shape)
        yield Text(f"micro-batch {work.micro_batch}, {tokens} tokens, {said}, {work.attention.value} attention")
    yield from assumed_loss(one)


def counted(model: Described) -> str:
    """Return how many parameters there are, and how many of them train."""
    found = model.model
    return f"{found.elements:,} parameters" + (f", of which {found.parameters:,} train" if found.frozen else "")


def assumed_loss(one: Estimate) -> Iterator[Text]:
    """Yield how the loss is taken to be computed, for a model that makes logits."""
    shape = one.described.shape
    if shape is not None and shape.vocabulary:
        kind = one.work.computed(shape)
        yield Text(f"loss {_LOSS[kind]} (--loss {kind.value})")


class _Variants:
    """The table of variants, without the kinds of parts where the terminal is too narrow for them."""

    def __init__(self, estimates: list[Estimate]) -> None:
        self._estimates = estimates

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[RenderableType]:
        whole = _variants(self._estimates, used(self._estimates))
        wide = Measurement.get(console, options.update(width=_WIDEST), whole).maximum
        yield whole if wide <= options.max_width else _variants(self._estimates, [])


def _variants(estimates: list[Estimate], kinds: list[tuple[What, str, str]]) -> Table:
    title = "GiB per GPU at the peak; host and NVMe per node"
    table = Table(title=title, title_justify="left", pad_edge=False, box=box.SIMPLE_HEAD)
    table.add_column("", no_wrap=True)
    table.add_column("total", justify="right", style="bold")
    table.add_column("at", no_wrap=True)
    for _, colour, name in kinds:
        table.add_column(name, justify="right", header_style=colour, no_wrap=True)
    for name in ("host", "NVMe"):
        table.add_column(name, justify="right")
    table.add_column("sent per step", justify="right", no_wrap=True)
    if estimates[0].machine.gpu is not None:
        table.add_column("", no_wrap=True)
        table.add_column("most samples", justify="right", no_wrap=True)
    for one in estimates:
        row: list[Any] = [one.name, gib(one.peak), one.moment]
        row += [gib(one.by_kind.get(what, 0)) for what, _, _ in kinds]
        row += [gib(one.on_node(Place.HOST)), gib(one.on_node(Place.NVME)), _sent(one)]
        if one.machine.gpu is not None:
            row += [Text(verdict(one), "green" if one.fits else "red"), _batch(one)]
        table.add_row(*row)
    return table


def _bars(estimates: list[Estimate]) -> Iterator[Text]:
    """Yield a bar for each variant, in one scale, each kind of part in its colour and with its first letter."""
    room = estimates[0].machine.room
    most = max(one.peak or 0 for one in estimates) or 1
    wide = max(len(one.name) for one in estimates)
    scale = min(most, 3 * room) if room else most
    for one in estimates:
        line = Text(f"{one.name:<{wide}} ")
        drawn = 0
        for what, colour, name in KINDS:
            end = min(_BAR, round((sum(_until(one, name)) + one.by_kind.get(what, 0)) / scale * _BAR))
            line.append(name[0] * max(0, end - drawn), f"black on {colour}")
            drawn = max(drawn, end)
        cut = "…" if (one.peak or 0) > scale else ""
        line.append(f"{cut} {size(one.peak)}")
        yield line
    legend = Text(" " * (wide + 1))
    for _, colour, name in used(estimates):
        legend.append(name[0], f"black on {colour}")
        legend.append(f" {name}  ")
    yield legend


def _until(one: Estimate, name: str) -> Iterator[int]:
    """Yield the bytes of the kinds that stand before one in a bar."""
    for what, _, other in KINDS:
        if other == name:
            return
        yield one.by_kind.get(what, 0)


def _parts(one: Estimate) -> Table:
    table = Table(title=f"{one.name}: memory of one rank", title_justify="left", pad_edge=False, box=box.SIMPLE_HEAD)
    for name, kind in (("where", "left"), ("what", "left"), ("when", "left"), ("size", "right"), ("", "left")):
        table.add_column(name, justify="right" if kind == "right" else "left", no_wrap=name != "")
    for place in Place:
        for part in one.usage.select(place):
            table.add_row(place.value, part.what.value, _WHEN[part.when], _measure(part), part.says)
    return table


def _measure(part: Part) -> str:
    sure = {Surety.EXACT: "", Surety.BOUND: "at most ", Surety.ESTIMATE: "about "}[part.surety]
    return sure + size(part.bytes)


def _summary(one: Estimate) -> Table:
    table = Table(box=None, show_header=False, pad_edge=False)
    free = "" if one.machine.room is None else f" of {size(one.machine.room)} that can be used"
    table.add_row(
        f"GPU at the peak ({one.moment})",
        Text(f"{size(one.peak)}{free}  ") + Text(verdict(one), "green" if one.fits else "red"),
    )
    for place in (Place.HOST, Place.NVME):
        if one.on_node(place):
            pinned = sum(part.bytes or 0 for part in one.usage.select(place) if part.pinned) * one.machine.gpus
            locked = f", {size(pinned)} of it page-locked" if pinned else ""
            table.add_row(f"{place.value} of a node", f"{size(one.on_node(place))}{locked}")
    elements = "" if one.model.frozen else f" ({one.traffic.formula()} elements)"
    table.add_row("sent per step and GPU", size(one.sent) + elements)
    for transfer in one.traffic.transfers:
        g = one.traffic.steps
        times = "each micro-batch" if transfer.rounds else "once a step"
        count = "" if g is None else f"{size(transfer.sent(one.model, g, one.machine.ranks))}, "
        inside = f" among {transfer.group} GPUs" if transfer.group else ""
        table.add_row("", f"{transfer.collective.value} of {transfer.what}{inside}: {count}{times}")
    if one.largest_micro_batch is not None:
        table.add_row("largest micro-batch", f"about {one.largest_micro_batch}")
    return table


def _notes(one: Estimate) -> Iterator[Text]:
    for note in one.described.notes:
        yield Text(f"· {note}")
    if one.assumes:
        yield Text(f"· Taken for granted: {'; '.join(one.assumes)}.")
    if one.described.shape is None:
        yield Text("· Activations are not counted: the shape of the model is not known.")
    yield Text(
        "· Model states, buckets and traffic follow the source of the release and are measured against its engines; "
        "gathered parameters, copies and activations are estimates, counted as if all were held at once."
    )


def _sent(one: Estimate) -> str:
    if one.machine.ranks == 1:
        return ""
    return size(one.sent) + ("" if one.model.frozen else f" ({one.traffic.formula()})")


def _batch(one: Estimate) -> str:
    return "" if one.largest_micro_batch is None or "host" in one.lacks else str(one.largest_micro_batch or "")
