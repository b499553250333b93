"""One self-contained page: verdicts, causes and curves; no scripts, nothing that is loaded from elsewhere."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from html import escape

from dsmigrate.verify.formats import text, words
from dsmigrate.verify.formats.picture import picture
from dsmigrate.verify.model import Comparison, Verification

_POLICY = "default-src 'none'; style-src 'unsafe-inline'"
_STYLE = """
:root { color-scheme: light dark; font: 15px/1.5 system-ui, sans-serif; }
body { max-width: 62rem; margin: 2rem auto; padding: 0 1rem; }
h2 { border-bottom: 1px solid #8886; padding-bottom: .3rem; overflow-wrap: anywhere; }
.agrees { color: #2da44e; } .parts, .crashed, .hung, .timed_out { color: #d1242f; } .unrepeatable { color: #9a6700; }
table { border-collapse: collapse; margin: 1rem 0; font-variant-numeric: tabular-nums; }
caption { text-align: left; font-weight: 600; } th, td { padding: .2rem .6rem; text-align: right; }
th { border-bottom: 1px solid #8886; } th:first-child, td:first-child { text-align: left; }
pre { overflow-x: auto; font: 13px/1.4 ui-monospace, monospace; }
svg { max-width: 100%; height: auto; }
"""


def render(verification: Verification) -> str:
    """Return the page."""
    return "".join(f"{line}\n" for line in _page(verification))


def svg(verification: Verification) -> str:
    """Return the curves alone, of the first verdict that is not good, else of the first."""
    verdicts = verification.verdicts
    shown = next((verdict for verdict in verdicts if not verdict.comparison.agrees), verdicts[0])
    return picture(shown.comparison, words.title(verification, shown)) + "\n"


def _page(verification: Verification) -> Iterator[str]:
    yield "<!doctype html>"
    yield '<html lang="en"><head><meta charset="utf-8">'
    yield f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">'
    yield '<meta name="viewport" content="width=device-width, initial-scale=1">'
    yield f"<title>dsmigrate verify: {escape(words.pair(verification))}</title><style>{_STYLE}</style></head><body>"
    yield f"<h1>{escape(words.pair(verification))}</h1><p>{escape(verification.device)}</p>"
    for verdict in verification.verdicts:
        comparison = verdict.comparison
        found = words.status(comparison)
        yield f"<section><h2>{escape(words.title(verification, verdict))}</h2>"
        yield f'<p class="{found}"><b>{escape(words.headline(comparison))}</b></p>'
        if comparison.converted.steps:
            yield picture(comparison, words.title(verification, verdict))
        yield from _differences(comparison)
        yield from _steps(comparison)
        yield f"<pre>{escape(chr(10).join(words.plain(text.rest(verdict))))}</pre></section>"
    if verification.original_resumed is not None:
        yield f"<p>The original, {escape(words.resume_line(verification.original_resumed))}</p>"
    yield "</body></html>"


def _differences(comparison: Comparison) -> Iterator[str]:
    heads = ("quantity", "step", "original", "conversion", "relative difference", "allowed")
    found = comparison.differences or comparison.excused
    if found:
        yield from _table("What parts" if comparison.differences else "What parts as the original does", heads, (
            (
                one.quantity,
                "the end" if one.step is None else str(one.step + 1),
                *words.values(one),
                words.exponent(one.error) if math.isfinite(one.error) else "",
                words.exponent(one.allowed),
            )
            for one in found
        ))  # fmt: skip


def _steps(comparison: Comparison) -> Iterator[str]:
    if comparison.differences and comparison.converted.steps:
        heads = ("step", *(f"{name}, {run}" for name in words.COLUMNS for run in ("original", "conversion")))
        rows = ((str(row.step), *(cell for pair in row.cells for cell in pair)) for row in words.rows(comparison))
        yield from _table("Around the first difference", heads, rows)


def _table(caption: str, heads: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    yield f"<table><caption>{escape(caption)}</caption><thead><tr>"
    yield "".join(f'<th scope="col">{escape(head)}</th>' for head in heads)
    yield "</tr></thead><tbody>"
    yield from ("<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in rows)
    yield "</tbody></table>"
