"""Memory per GPU before and after, drawn: one bar for each side, one piece for each thing that takes memory."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from html import escape

from dsmigrate.diff.job import Compared
from dsmigrate.editing.view import View
from dsmigrate.languages import say
from dsmigrate.memory import Place, What, usage

_COLOURS = ("#4c78a8", "#f58518", "#54a24b", "#b279a2", "#eeca3b", "#9d755d", "#72b7b2", "#e45756", "#7f7f7f")
_LEFT, _WIDTH, _HEIGHT, _ROW = 70, 560, 26, 40
_LEGEND = 20
_UNITS = ((1 << 40, "TiB"), (1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB"))


def picture(compared: Compared) -> str:
    """Return an SVG of the memory per GPU on both sides, "" where it is not known for both."""
    old, new = figures(compared)
    return draw(old, new) if old and new else ""


def figures(compared: Compared) -> tuple[Mapping[str, int], Mapping[str, int]]:
    """Return bytes per GPU at the peak by what takes them, for both sides; empty where a part is not known."""
    return _figures(compared.old), _figures(compared.new)


def _figures(view: View) -> dict[str, int]:
    found = usage(view.context)
    if found is None or found.peak() is None:
        return {}
    parts = found.at_peak(Place.GPU)
    sizes = {say(what.value): sum(part.bytes or 0 for part in parts if part.what is what) for what in What}
    return {name: count for name, count in sizes.items() if count}


def draw(old: Mapping[str, int], new: Mapping[str, int]) -> str:
    """Return an SVG of two bars in one scale; pieces are in bytes, and those of one name have one colour."""
    return "".join(_svg(old, new))


def _svg(old: Mapping[str, int], new: Mapping[str, int]) -> Iterator[str]:
    names = list(dict.fromkeys((*old, *new)))
    colours = {name: _COLOURS[number % len(_COLOURS)] for number, name in enumerate(names)}
    largest = max(sum(old.values()), sum(new.values()), 1)
    height = 2 * _ROW + 10 + _LEGEND * len(names)
    width = _LEFT + _WIDTH + 90
    label = say(
        "Memory per GPU, without activations: {before} before, {after} after",
        before=size(sum(old.values())),
        after=size(sum(new.values())),
    )
    yield f'<svg viewBox="0 0 {width} {height}" width="{width}" role="img" aria-label="{escape(label)}">'
    yield f"<title>{escape(label)}</title>"
    for number, (side, parts) in enumerate(((say("before"), old), (say("after"), new))):
        top = number * _ROW + 4
        yield f'<text x="0" y="{top + 17}">{side}</text>'
        left = float(_LEFT)
        for name, count in parts.items():
            wide = count / largest * _WIDTH
            yield f'<rect x="{left:.2f}" y="{top}" width="{wide:.2f}" height="{_HEIGHT}" fill="{colours[name]}">'
            yield f"<title>{escape(name)}: {size(count)}</title></rect>"
            left += wide
        yield f'<text x="{left + 6:.2f}" y="{top + 17}">{size(sum(parts.values()))}</text>'
    for number, name in enumerate(names):
        top = 2 * _ROW + 10 + number * _LEGEND
        yield f'<rect x="{_LEFT}" y="{top}" width="12" height="12" fill="{colours[name]}"/>'
        text = f"{name}: {size(old.get(name, 0))} → {size(new.get(name, 0))}"
        yield f'<text x="{_LEFT + 18}" y="{top + 10}">{escape(text)}</text>'
    yield "</svg>"


def size(count: int) -> str:
    """Return bytes as text: "14.9 GiB"."""
    for unit, name in _UNITS:
        if count >= unit:
            return f"{count / unit:.1f} {name}"
    return f"{count} B"
