"""Writing down what a key means that is left out, or that says "auto" where DeepSpeed drops it."""

from __future__ import annotations

from collections.abc import Iterator

from dsmigrate.document import EditError, Path, PathError, parse_path, render_path
from dsmigrate.editing.actions.defaults import decisive
from dsmigrate.editing.actions.draft import put, started, why_not
from dsmigrate.editing.actions.judging import settled
from dsmigrate.editing.actions.model import REWRITE, Action, Feature, Here, Outcome
from dsmigrate.editing.view import View
from dsmigrate.knowledge import MISSING, AutoEffect
from dsmigrate.knowledge.wording import json_text
from dsmigrate.languages import say
from dsmigrate.rules.consumer._shared import is_effective

NAME = "write-default"
_AUTO = "auto"


def _offer(view: View, here: Here) -> Iterator[Action]:
    found = dict([*_absent(view, here.section), *_dropped(view, here.path)])
    reason = why_not(view.document) if found else ""
    for path, default in found.items():
        title = say(
            "Write `{render_path}: {default}`, which is the default",
            render_path=render_path(path[-1:]),
            default=json_text(default),
        )
        yield Action(title, REWRITE, (NAME, render_path(path)), disabled=reason)


def _absent(view: View, section: Path) -> Iterator[tuple[Path, object]]:
    """Yield the decisive keys that a section leaves out, where they have an effect, with their defaults."""
    if view.context.root is None or not view.whole:
        return
    key = view.known.key(section) if section else None
    if section and (key is None or not key.is_section or key.alias_of is not None):
        return
    for child in decisive(view.known.version, key.path if key else ""):
        auto = child.auto(view.consumer)
        taken = auto.must_match or auto.overwrites  # the consumer has a value of its own for it
        if child.default in (None, MISSING) or taken or view.context.has(child.path):
            continue
        path = (*section, child.name)
        if is_effective(view.context, child, path):
            yield path, child.default


def _dropped(view: View, path: Path) -> Iterator[tuple[Path, object]]:
    """Yield the key at a path with its default, when it says "auto" and DeepSpeed drops that."""
    node = view.document.node_at(path) if path else None
    key = view.known.key(path) if node is not None and node.value() == _AUTO else None
    if key is None or key.is_section or key.default in (None, MISSING):
        return
    if key.auto(view.consumer).effect is AutoEffect.DEFAULT:
        yield path, key.default


def _carry_out(view: View, name: str) -> Outcome:
    try:
        path = parse_path(name)
        found = dict([*_absent(view, path[:-1]), *_dropped(view, path)])
        if path not in found:
            return Outcome(left=(say("`{name}` is no default that could be written.", name=name),))
        told = say("`{name}` says {found}, which it meant before.", name=name, found=json_text(found[path]))
        return settled(
            view.settings, started(view.document, view.context.unknown).after([put(path, found[path], told)])
        )
    except (EditError, PathError) as error:
        return Outcome(left=(str(error),))


FEATURE = Feature(NAME, REWRITE, _offer, _carry_out, (str,))
