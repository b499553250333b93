"""One self-contained page: no scripts, nothing that is loaded from elsewhere."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape

from dsmigrate.diff.changed import Outcome
from dsmigrate.diff.formats.picture import picture
from dsmigrate.diff.formats.places import line, place, url
from dsmigrate.diff.formats.text import value_text
from dsmigrate.diff.job import Compared
from dsmigrate.diff.model import Effect, Explained, Severity
from dsmigrate.languages import mark, say, spoken

_TITLES = {
    Severity.BREAKING: mark("Breaking"),
    Severity.WARNING: mark("Needs review"),
    Severity.INFO: mark("Other effects"),
}
_POLICY = "default-src 'none'; style-src 'unsafe-inline'"
_STYLE = """
:root { color-scheme: light dark; font: 15px/1.5 system-ui, sans-serif; }
body { max-width: 62rem; margin: 2rem auto; padding: 0 1rem; }
h2 { border-bottom: 1px solid #8886; padding-bottom: .3rem; overflow-wrap: anywhere; }
.verdict { font-weight: 600; }
.said { border-left: 4px solid #8888; padding: .1rem 0 .1rem .8rem; margin: 1rem 0; }
.breaking { border-color: #d1242f; } .warning { border-color: #bf8700; } .info { border-color: #0969da; }
.effects, .where, footer { opacity: .7; font-size: .87em; }
code, td { font-family: ui-monospace, monospace; overflow-wrap: anywhere; }
table { border-collapse: collapse; margin: .3rem 0; } td { padding: .1rem .6rem .1rem 0; vertical-align: top; }
.old { color: #c93c37; } .new { color: #2da44e; }
svg { max-width: 100%; height: auto; font: 12px system-ui, sans-serif; fill: currentColor; }
"""


def render(outcomes: Sequence[Outcome]) -> str:
    """Return the page. With known figures it shows memory per GPU before and after; without, no picture."""
    return "".join(f"{line}\n" for line in _page(outcomes))


def _page(outcomes: Sequence[Outcome]) -> Iterator[str]:
    yield "<!doctype html>"
    yield f'<html lang="{spoken()}"><head><meta charset="utf-8">'
    yield f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">'
    yield '<meta name="viewport" content="width=device-width, initial-scale=1">'
    yield f"<title>{_title(outcomes)}</title><style>{_STYLE}</style></head><body>"
    yield f"<h1>{say('What the change does')}</h1>"
    if not outcomes:
        yield f"<p>{say('No DeepSpeed config is changed.')}</p>"
    for outcome in outcomes:
        yield "<section>"
        yield f'<h2>{escape(outcome.title)} <small class="effects">{outcome.entry.status.value}</small></h2>'
        yield f'<p class="verdict">{_message(say("{text}.", text=outcome.verdict))}</p>'
        if outcome.compared is not None:
            yield from _compared(outcome.compared)
        yield "</section>"
    yield "</body></html>"


def _title(outcomes: Sequence[Outcome]) -> str:
    return escape(f"dsmigrate diff: {outcomes[0].title}" if len(outcomes) == 1 else "dsmigrate diff")


def _compared(compared: Compared) -> Iterator[str]:
    drawn = picture(compared)
    if drawn:
        yield drawn
    for severity, title in _TITLES.items():
        said = [item for item in compared.result.explained if item.severity is severity]
        if said:
            yield f"<h3>{say(title)}</h3>"
            for item in said:
                yield from _said(compared, item)
    quiet = [item for item in compared.result.explained if item.severity is Severity.NONE]
    if quiet:
        yield f"<details><summary>{say('{quiet} without effect', quiet=len(quiet))}</summary>"
        for item in quiet:
            yield from _said(compared, item)
        yield "</details>"
    old, new = compared.old.known.version, compared.new.known.version
    release = f"DeepSpeed {new}" if old == new else f"DeepSpeed {old} → {new}"
    who = say("{release}, read by {consumer}", release=release, consumer=compared.new.consumer.title)
    yield f"<footer>{escape(who)}</footer>"


def _said(compared: Compared, said: Explained) -> Iterator[str]:
    effects = "" if said.effects == (Effect.NONE,) else say(", ").join(say(effect.value) for effect in said.effects)
    yield f'<div class="said {said.severity.value}">'
    yield f'<div><a href="{url(said.code)}">{said.code}</a> <span class="effects">{effects}</span>'
    yield f"{_lines(compared, said)}</div>"
    yield f"<div>{_message(said.message)}</div>"
    changes = [(path, compared.result.changes[path]) for path in said.paths if path in compared.result.changes]
    if changes:
        yield "<table>"
        for path, change in changes:
            old, new = value_text(change.old, change.old_meant), value_text(change.new, change.new_meant)
            yield (
                f'<tr><td>{escape(path)}</td><td class="old">{escape(old)}</td><td>→</td>'
                f'<td class="new">{escape(new)}</td></tr>'
            )
        yield "</table>"
    if said.advice:
        yield f"<div>→ {_message(said.advice)}</div>"
    yield "</div>"


def _lines(compared: Compared, said: Explained) -> str:
    spots = zip((say("old"), say("new")), (compared.old, compared.new), place(compared, said), strict=True)
    found = ", ".join(
        say("{name} line {line}", name=name, line=line(view, spot)) for name, view, spot in spots if spot is not None
    )
    return f'<span class="where">{found}</span>' if found else ""


def _message(text: str) -> str:
    """Return a message as HTML, with what stands in backticks as code."""
    pieces = escape(text).split("`")
    if len(pieces) % 2 == 0:
        return "`".join(pieces)
    return "".join(f"<code>{piece}</code>" if number % 2 else piece for number, piece in enumerate(pieces))
