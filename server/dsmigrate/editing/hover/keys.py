"""What a hover says about a key and its value."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from dsmigrate.editing.hover import here
from dsmigrate.editing.hover.budget import Note, sentences, within
from dsmigrate.editing.hover.footer import footer, related
from dsmigrate.editing.hover.links import Links
from dsmigrate.editing.hover.target import Target
from dsmigrate.editing.hover.told import REFUSED, is_told
from dsmigrate.editing.hover.values import meaning
from dsmigrate.editing.urls import url_for_key
from dsmigrate.editing.view import View
from dsmigrate.knowledge import Key, wording
from dsmigrate.knowledge.bugs import Bug, bugs_of
from dsmigrate.languages import say


def parts(view: View, links: Links, target: Target, key: Key) -> Iterator[str]:
    """Yield the paragraphs about a key, most important first; its page has the rest."""
    described = _described(view, key)
    yield from within(_said(view, target, key, described), _notes(view, target, described))
    yield related(view, links, described.related, described.path)
    yield footer(view, links, described.path, url_for_key(described, view.known))


def _said(view: View, target: Target, key: Key, described: Key) -> Iterator[str]:
    yield meaning(target.value, described)
    status = wording.status_text(key)
    if status and not is_told(view, target, REFUSED):
        yield f"**{status}**"
    yield described.summary
    yield f"`{described.path}` · {wording.facts_line(described, oldest=False)}"
    if key.alias_of:
        yield say("`{path}` is another name of `{alias_of}`.", path=key.path, alias_of=key.alias_of)


def _notes(view: View, target: Target, key: Key) -> Iterator[Note]:
    """Yield what goes wrong with a key in the release at hand, what it does in this file, and its trap."""
    bugs = bugs_of(key.path, view.known.version)
    if bugs:
        yield _bug(bugs, view.known.version)
    yield here.here(view, target, key)
    yield trap(key.trap)


def _bug(bugs: Sequence[Bug], version: str) -> Note:
    """Return the first of the bugs of a release; the page has all."""
    bug = bugs[0]
    label = (
        say("Known bug of DeepSpeed {version}.", version=version)
        if len(bugs) == 1
        else say("Known bug of DeepSpeed {version}, 1 of {count}.", version=version, count=len(bugs))
    )
    what = f"{bug.said[0].upper()}{bug.said[1:]}"
    told = say("{what} ({cure}).", what=what, cure=bug.cure) if bug.cure else say("{what}.", what=what)
    named = say("`{bug}`: {cure}.", bug=bug.id, cure=bug.cure) if bug.cure else say("{what}.", what=f"`{bug.id}`")
    return Note(label, [told], named)


def trap(text: str) -> Note:
    """Return what goes wrong with a key, type or parameter."""
    return Note(say("Trap."), sentences(text))


def _described(view: View, key: Key) -> Key:
    """Return the key that the text is about: that of the name which a key is another name of."""
    other = view.known.key(key.alias_of) if key.alias_of else None
    return key if other is None else other
