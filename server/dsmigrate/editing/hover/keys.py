"""What a hover says about a key and its value."""

from __future__ import annotations

from collections.abc import Iterator

from dsmigrate.docs.keys import history_line
from dsmigrate.editing.derived import unmet
from dsmigrate.editing.hover import here
from dsmigrate.editing.hover.footer import footer
from dsmigrate.editing.hover.target import Target
from dsmigrate.editing.hover.told import REFUSED, is_told
from dsmigrate.editing.hover.values import meaning
from dsmigrate.editing.markdown import flow
from dsmigrate.editing.urls import url_for_key
from dsmigrate.editing.view import View
from dsmigrate.knowledge import Event, Key, Status, wording
from dsmigrate.knowledge.bugs import bugs_of
from dsmigrate.languages import say

_MOST_BUGS = 3


def parts(view: View, target: Target, key: Key) -> Iterator[str]:
    """Yield the paragraphs about a key, most important first."""
    described = _described(view, key)
    yield meaning(target, described)
    status = wording.status_text(key)
    if status and not is_told(view, target, REFUSED):
        yield f"**{status}**"
    yield described.summary
    yield facts(described)
    yield here.here(view, target, described)
    yield from _names(key, described)
    yield flow(described.doc)
    if described.values and not target.is_type_name:
        yield "\n".join(f"- `{value}`: {what}" for value, what in described.values.items())
    if unmet(view.context, described, target.path) is None:
        yield wording.effective_text(described)
    yield from notes(described.when, described.trap, described.myth)
    yield known_bugs(view, described)
    yield history(described.history, gone=bool(described.until))
    yield related(described.related)
    yield footer(view, url_for_key(described, view.known))


def facts(key: Key) -> str:
    """Return the path of a key with its type, range, unit, default and age."""
    return f"`{key.path}` · {wording.facts_line(key)}"


def notes(when: str, trap: str, myth: str) -> Iterator[str]:
    """Yield when to change it, what goes wrong with it, and what is wrongly said of it."""
    labelled = ((say("When to change it."), when), (say("Trap."), trap), (say("Often said, but wrong."), myth))
    yield from (f"**{label}** {flow(text)}" for label, text in labelled if text)


def known_bugs(view: View, key: Key) -> str:
    """Return the bugs of the release that the key has a part in, a line each; "" for none."""
    found = bugs_of(key.path, view.known.version)
    if not found:
        return ""
    lines = [
        say("- {what} (`{bug}`; {cure})", what=bug.said, bug=bug.id, cure=bug.cure)
        if bug.cure
        else say("- {what} (`{bug}`)", what=bug.said, bug=bug.id)
        for bug in found[:_MOST_BUGS]
    ]
    if len(found) > _MOST_BUGS:
        lines.append(say("- {more} more: `dsmigrate explain {path}`", more=len(found) - _MOST_BUGS, path=key.path))
    return "\n".join([say("**Known bugs of DeepSpeed {version}**", version=view.known.version), "", *lines])


def history(events: tuple[Event, ...], *, gone: bool = False) -> str:
    """Return what happened in the releases; "" when a key was added and that was all."""
    if len(events) < 2 and not gone:
        return ""
    return "\n".join(["**History**", "", *(history_line(event) for event in events)])


def related(paths: tuple[str, ...]) -> str:
    """Return the keys to look at next."""
    return say("See also {paths}.", paths=say(", ").join(f"`{path}`" for path in paths)) if paths else ""


def _described(view: View, key: Key) -> Key:
    """Return the key that the text is about: that of the name which a key is another name of."""
    other = view.known.key(key.alias_of) if key.alias_of else None
    return key if other is None else other


def _names(key: Key, described: Key) -> Iterator[str]:
    if key.alias_of:
        yield say("`{path}` is another name of `{alias_of}`.", path=key.path, alias_of=key.alias_of)
    elif described.field:
        yield say("Also accepted as `{field}`.", field=described.field)
    if described.is_section and described.status in {Status.PRESENT, Status.DEPRECATED}:
        yield (
            say("Unknown keys in it are rejected.")
            if described.rejects_unknown_keys
            else say("Unknown keys in it are swallowed without a word.")
        )
