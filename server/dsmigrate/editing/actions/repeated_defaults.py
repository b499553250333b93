"""Taking out the keys that say what their absence says, for the whole file or for one section."""

from __future__ import annotations

from collections.abc import Iterator

from dsmigrate.document import EditError, Object, Path, PathError, parse_path, render_path
from dsmigrate.editing.actions.defaults import has_moved, repeats
from dsmigrate.editing.actions.draft import remove, started, why_not
from dsmigrate.editing.actions.judging import settled
from dsmigrate.editing.actions.model import REWRITE, Action, Feature, Here, Outcome
from dsmigrate.editing.view import View
from dsmigrate.knowledge import AutoEffect, Consumer, Key, Status
from dsmigrate.languages import say
from dsmigrate.rules.context import TYPED, Entry

NAME = "remove-defaults"
SWITCHES = frozenset({"enabled", "stage", "device"})
"""Keys that say what their section is: without them the rest of it would be a riddle."""
ZERO = "zero_optimization"
_KEPT = frozenset({f"{ZERO}.stage3_gather_16bit_weights_on_model_save"})
"""Keys whose default, written down, is an answer that people and rules look for."""


def _offer(view: View, here: Here) -> Iterator[Action]:
    found = plan(view)
    if not found:
        return
    reason = why_not(view.document)
    section = here.section
    inside = [path for path in found if section and path[: len(section)] == section]
    if inside and len(inside) < len(found):
        title = say(
            "Remove what equals its default in `{render_path}` ({count})",
            render_path=render_path(section),
            count=_count(view, inside),
        )
        yield Action(title, REWRITE, (NAME, render_path(section)), disabled=reason)
    title = say("Remove what equals its default in this file ({count})", count=_count(view, found))
    yield Action(title, REWRITE, (NAME, ""), disabled=reason)


def _count(view: View, paths: list[Path] | tuple[Path, ...]) -> str:
    count = sum(max(_leaves(view, path), 1) for path in paths)
    return say("1 key") if count == 1 else say("{count} keys", count=count)


def _leaves(view: View, path: Path) -> int:
    node = view.document.node_at(path)
    return sum(_leaves(view, (*path, member.name or "")) or 1 for member in node) if isinstance(node, Object) else 0


def plan(view: View) -> tuple[Path, ...]:
    """Return the paths of the members to take out: keys, and sections of which nothing would be left."""
    memory = view.context.memory
    if NAME not in memory:
        memory[NAME] = tuple(_plan(view))
    found = memory[NAME]
    return found if isinstance(found, tuple) else ()


def _plan(view: View) -> Iterator[Path]:
    entries = {entry.path: entry for entry in view.context.entries}
    going = {path for path, entry in entries.items() if _repeats(view, entry)}
    staying = (entry.key for path, entry in entries.items() if path not in going and entry.key is not None)
    conditions = {path for key in staying for path in key.effective_when}
    going = {path for path in going if _canonical(entries[path]) not in conditions}
    comments = [start for start, _ in view.document.comments] if going else []
    for path, entry in reversed(entries.items()):  # what is inside comes before what is around it
        commented = any(entry.member.start <= start < entry.member.end for start in comments)
        if isinstance(entry.node, Object) and not commented and _goes(view, entry, entry.node, going):
            going.add(path)
    for path, entry in entries.items():
        if path in going and path[:-1] not in going and (len(path) == 1 or entry.name not in SWITCHES):
            yield path


def _canonical(entry: Entry) -> str:
    return "" if entry.key is None else entry.key.path


def _repeats(view: View, entry: Entry) -> bool:
    """Return whether an entry is a value that can be left out without anybody noticing."""
    key, node = entry.key, entry.node
    if key is None or node is None or key.is_section or not repeats(node.value(), key):
        return False
    if key.status is not Status.PRESENT or key.path in _KEPT:
        return False
    if "*" in key.path or "[]" in key.path or key.required_when is not None or not key.is_read_by_config:
        return False
    if has_moved(key) or node.start in view.context.unknown or view.context.entry(key.path) != entry:
        return False
    return not _is_filled(view, key)


def _is_filled(view: View, key: Key) -> bool:
    """Return whether the consumer compares the key with a value of its own, or fills it."""
    return view.consumer is not Consumer.DEEPSPEED and key.auto(view.consumer).effect is AutoEffect.FILLED


def _goes(view: View, entry: Entry, node: Object, going: set[Path]) -> bool:
    """Return whether a section may go with all that is in it: it holds nothing else, and none is the same as empty."""
    key = entry.key
    if key is None or not key.is_section or key.counts_empty or key.path in TYPED or not len(node) or key.alias_of:
        return False
    if view.consumer is not Consumer.DEEPSPEED and (key.path == ZERO or _is_added(view, key)):
        return False
    return all((*entry.path, member.name or "") in going for member in node)


def _is_added(view: View, section: Key) -> bool:
    """Return whether the consumer makes a section of its own where there is none."""
    return any(key.auto(view.consumer).adds_section for key in view.known.children(section.path))


def _carry_out(view: View, section: str) -> Outcome:
    try:
        around = parse_path(section)
        steps = [
            remove(path, say("`{render_path}` is left out: its default is the same.", render_path=render_path(path)))
            for path in plan(view)
            if path[: len(around)] == around
        ]
        return settled(view.settings, started(view.document, view.context.unknown).after(steps))
    except (EditError, PathError) as error:
        return Outcome(left=(str(error),))


FEATURE = Feature(NAME, REWRITE, _offer, _carry_out, (str,))
