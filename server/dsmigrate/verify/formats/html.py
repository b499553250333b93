"""One self-contained page: verdicts, causes and curves; no scripts, nothing that is loaded from elsewhere."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape

from dsmigrate.verify.formats import text, words
from dsmigrate.verify.formats.picture import picture
from dsmigrate.verify.model import Verification

_POLICY = "default-src 'none'; style-src 'unsafe-inline'"
_STYLE = """
:root { color-scheme: light dark; font: 15px/1.5 system-ui, sans-serif; }
body { max-width: 62rem; margin: 2rem auto; padding: 0 1rem; }
h2 { border-bottom: 1px solid #8886; padding-bottom: .3rem; overflow-wrap: anywhere; }
.agrees { color: #2da44e; } .parts, .crashed, .timed_out { color: #d1242f; }
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
        one = Verification(verification.original, verification.converted, verification.device, (verdict,))
        lines = ["".join(piece for piece, _ in line) for line in text.render(one)][1:]
        yield f"<pre>{escape(chr(10).join(lines))}</pre></section>"
    if verification.original_resumed is not None:
        yield f"<p>The original, {escape(words.resume_line(verification.original_resumed))}</p>"
    yield "</body></html>"
