"""The curves of both runs as an SVG: loss, gradient norm and learning rate over the optimizer steps."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from html import escape

from dsmigrate.verify.formats import words
from dsmigrate.verify.model import Comparison, Step

_WIDTH, _LEFT, _RIGHT = 720, 84, 16
_PANEL, _GAP, _TOP = 150, 42, 40
_TICKS = 4
_ORIGINAL, _CONVERTED, _FIRST = "#4c78a8", "#e45756", "#bf8700"
_PANELS: tuple[tuple[str, Callable[[Step], float | None]], ...] = (
    ("loss", lambda step: step.loss),
    ("gradient norm before clipping", lambda step: step.norm),
    ("learning rate (first group)", lambda step: step.rates[0] if step.rates else None),
)


def picture(comparison: Comparison, title: str) -> str:
    """Return the SVG; a dashed line marks the step at which the runs part."""
    return "".join(_svg(comparison, title))


def _svg(comparison: Comparison, title: str) -> Iterator[str]:
    height = _TOP + len(_PANELS) * (_PANEL + _GAP)
    label = escape(f"{title}: {words.headline(comparison)}", quote=True)
    yield f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}" width="{_WIDTH}" role="img" '
    yield f'aria-label="{label}" font-family="system-ui, sans-serif" font-size="12" fill="currentColor">'
    yield f"<title>{label}</title>"
    for left, colour, dash, name in (
        (_LEFT, _ORIGINAL, "", "original"),
        (_LEFT + 110, _CONVERTED, "6 4", "conversion"),
    ):
        yield f'<line x1="{left}" y1="14" x2="{left + 28}" y2="14" stroke="{colour}" stroke-width="2.5" '
        yield f'stroke-dasharray="{dash}"/><text x="{left + 34}" y="18">{name}</text>'
    for index, (name, of) in enumerate(_PANELS):
        yield from _panel(comparison, name, of, _TOP + index * (_PANEL + _GAP))
    yield "</svg>"


def _panel(comparison: Comparison, name: str, of: Callable[[Step], float | None], top: int) -> Iterator[str]:
    curves = [[(step.index + 1, of(step)) for step in run.steps] for run in (comparison.original, comparison.converted)]
    points = [(x, y) for curve in curves for x, y in curve if y is not None and math.isfinite(y)]
    yield f'<text x="{_LEFT}" y="{top + 4}" font-weight="600">{escape(name)}</text>'
    if not points:
        yield f'<text x="{_LEFT}" y="{top + 24}">not known</text>'
        return
    low, high = min(y for _, y in points), max(y for _, y in points)
    if low == high:
        low, high = low - (abs(low) or 1.0) / 2, high + (abs(high) or 1.0) / 2
    last = max(x for x, _ in points)

    def place(x: float, y: float) -> tuple[float, float]:
        across = (x - 1) / max(last - 1, 1)
        return _LEFT + across * (_WIDTH - _LEFT - _RIGHT), top + 12 + (high - y) / (high - low) * (_PANEL - 12)

    for tick in range(_TICKS + 1):
        value = low + (high - low) * tick / _TICKS
        y = place(1, value)[1]
        yield f'<line x1="{_LEFT}" y1="{y:.1f}" x2="{_WIDTH - _RIGHT}" y2="{y:.1f}" stroke="currentColor" '
        yield 'opacity=".15"/>'
        yield f'<text x="{_LEFT - 6}" y="{y + 4:.1f}" text-anchor="end" opacity=".7">{value:.4g}</text>'
    for step in sorted({1, last, *range(1, last, max(last // 8, 1))}):
        x = place(step, low)[0]
        yield f'<text x="{x:.1f}" y="{top + _PANEL + 16}" text-anchor="middle" opacity=".7">{step}</text>'
    first = comparison.first
    if first is not None and first.step is not None:
        x = place(first.step + 1, low)[0]
        yield f'<line x1="{x:.1f}" y1="{top + 12}" x2="{x:.1f}" y2="{top + _PANEL}" stroke="{_FIRST}" '
        yield 'stroke-dasharray="3 3"/>'
    for curve, colour, dash, width in zip(curves, (_ORIGINAL, _CONVERTED), ("", "6 4"), (3.5, 1.8), strict=True):
        yield from _line(curve, place, colour, dash, width)


def _line(
    curve: Sequence[tuple[int, float | None]],
    place: Callable[[float, float], tuple[float, float]],
    colour: str,
    dash: str,
    width: float,
) -> Iterator[str]:
    """Yield a curve with gaps where it has no value, and a dot where a piece is a single point."""
    piece: list[tuple[float, float]] = []
    for x, y in (*curve, (0, None)):
        if y is not None and math.isfinite(y):
            piece.append(place(x, y))
            continue
        if len(piece) == 1:
            yield f'<circle cx="{piece[0][0]:.1f}" cy="{piece[0][1]:.1f}" r="2.5" fill="{colour}"/>'
        elif piece:
            path = " ".join(f"{px:.1f},{py:.1f}" for px, py in piece)
            yield f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="{width}" '
            yield f'stroke-dasharray="{dash}" stroke-linejoin="round"/>'
        piece = []
