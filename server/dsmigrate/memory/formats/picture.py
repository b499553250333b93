"""Stacked bars of memory per GPU, one for each estimate, as SVG, or as a page of HTML with the figures below."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape

from dsmigrate.memory.estimate import Estimate
from dsmigrate.memory.formats.sizes import KINDS, gib, size, used, verdict
from dsmigrate.memory.model import Place

_LEFT, _WIDTH, _BAR, _ROW, _TOP, _KEY = 280, 640, 22, 30, 40, 130
_SHARE = 3
"""How many times the room of a GPU a bar may be long before it is cut."""


def svg(estimates: list[Estimate]) -> str:
    """Return an SVG of the bars in one scale; a line marks what of a GPU can be used."""
    return "".join(_svg(estimates)) + "\n"


def html(estimates: list[Estimate], version: str) -> str:
    """Return a page of its own: the bars, and a table of their figures in GiB."""
    return "".join(_html(estimates, version))


def _svg(estimates: list[Estimate]) -> Iterator[str]:
    first = estimates[0]
    kinds, room = used(estimates), first.machine.room
    most = max((one.peak or 0 for one in estimates), default=0) or 1
    scale = min(most, _SHARE * room) if room else most
    rows = -(-len(kinds) // 6)
    width, height = _LEFT + _WIDTH + 100, _TOP + _ROW * len(estimates) + 20 * rows + 10
    title = f"Memory per GPU at the peak: {first.described.name}, {first.machine.ranks} GPUs"
    yield (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" '
        f'role="img" aria-label="{escape(title)}" font-family="sans-serif" font-size="13" fill="#333">'
    )
    yield f'<title>{escape(title)}</title><rect width="{width}" height="{height}" fill="#fff"/>'
    yield f'<text x="4" y="20" font-weight="bold">{escape(title)}</text>'
    for number, one in enumerate(estimates):
        yield from _bar(one, _TOP + number * _ROW, scale)
    if room and room <= scale:
        right, end = _LEFT + room / scale * _WIDTH, _TOP + _ROW * len(estimates)
        yield f'<line x1="{right:.1f}" y1="{_TOP - 6}" x2="{right:.1f}" y2="{end}" stroke="#c00"/>'
        yield f'<text x="{right + 4:.1f}" y="{_TOP - 8}" fill="#c00">{size(room)} can be used</text>'
    for number, (_, colour, name) in enumerate(kinds):
        left, top = 4 + number % 6 * _KEY, _TOP + _ROW * len(estimates) + 6 + number // 6 * 20
        yield f'<rect x="{left}" y="{top}" width="12" height="12" fill="{colour}"/>'
        yield f'<text x="{left + 17}" y="{top + 11}">{escape(name)}</text>'
    yield "</svg>"


def _bar(one: Estimate, top: int, scale: int) -> Iterator[str]:
    yield f'<text x="4" y="{top + 16}">{escape(one.name)}</text>'
    left, right = float(_LEFT), float(_LEFT + _WIDTH)
    for what, colour, name in KINDS:
        count = one.by_kind.get(what, 0)
        wide = min(count / scale * _WIDTH, right - left)
        if wide > 0:
            yield f'<rect x="{left:.2f}" y="{top}" width="{wide:.2f}" height="{_BAR}" fill="{colour}">'
            yield f"<title>{escape(name)}: {size(count)}</title></rect>"
            left += wide
    cut = "… " if (one.peak or 0) > scale else ""
    yield f'<text x="{left + 5:.1f}" y="{top + 16}">{cut}{size(one.peak)}</text>'


def _html(estimates: list[Estimate], version: str) -> Iterator[str]:
    first, kinds = estimates[0], used(estimates)
    yield '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
    yield f"<title>Memory of {escape(first.described.name)}</title>"
    yield "<style>body{font:14px sans-serif;margin:2em}td,th{padding:.2em .7em;text-align:right}"
    yield "td:first-child{text-align:left}table{border-collapse:collapse}tr{border-bottom:1px solid #ddd}"
    yield "</style></head><body>"
    parameters = first.described.model.parameters
    yield f"<p>{parameters:,} parameters ({escape(first.described.source)}), DeepSpeed {escape(version)}</p>"
    yield "".join(_svg(estimates))
    yield "<table><tr><th>GiB per GPU</th><th>total</th>"
    yield "".join(f"<th>{escape(name)}</th>" for _, _, name in kinds)
    yield "<th>host per node</th><th>NVMe per node</th><th></th></tr>"
    for one in estimates:
        cells = [gib(one.peak), *(gib(one.by_kind.get(what, 0)) for what, _, _ in kinds)]
        cells += [gib(one.on_node(Place.HOST)), gib(one.on_node(Place.NVME)), verdict(one)]
        yield f"<tr><td>{escape(one.name)}</td>" + "".join(f"<td>{escape(cell)}</td>" for cell in cells) + "</tr>"
    yield "</table>"
    yield "".join(f"<p>{escape(note)}</p>" for note in first.described.notes)
    yield "</body></html>\n"
