"""The values that the Trainer compares with its arguments written as "auto", so that they stand in one place."""

from __future__ import annotations

from collections.abc import Iterator

from dsmigrate.document import EditError, Path, PathError, parse_path, render_path
from dsmigrate.editing.actions.draft import put, started, why_not
from dsmigrate.editing.actions.judging import settled
from dsmigrate.editing.actions.model import REWRITE, Action, Feature, Here, Outcome
from dsmigrate.editing.view import View
from dsmigrate.knowledge import Consumer
from dsmigrate.languages import say

NAME = "use-auto"
_AUTO = "auto"


def _offer(view: View, here: Here) -> Iterator[Action]:
    found = dict(_literals(view))
    if not found:
        return
    reason = why_not(view.document)
    if here.path in found and len(found) > 1:
        title = say(
            'Write "auto" for `{render_path}`: {found}', render_path=render_path(here.path[-1:]), found=found[here.path]
        )
        yield Action(title, REWRITE, (NAME, render_path(here.path)), disabled=reason)
    title = say(
        'Write "auto" for every value that has to match an argument of the {consumer} ({found})',
        consumer=view.consumer.title,
        found=len(found),
    )
    yield Action(title, REWRITE, (NAME, ""), disabled=reason)


def _literals(view: View) -> Iterator[tuple[Path, str]]:
    """Yield the paths of literal values that the consumer insists on, with what it compares them to."""
    if view.consumer is Consumer.DEEPSPEED:
        return  # which compares nothing
    for entry in view.context.entries:
        node = entry.node
        if node is None or node.start in view.context.unknown or node.value() in (_AUTO, None):
            continue
        auto = view.known.auto(entry.path, view.consumer)
        if auto is not None and auto.must_match:
            yield entry.path, auto.source


def _carry_out(view: View, name: str) -> Outcome:
    try:
        wanted = parse_path(name)
        steps = [
            put(
                path,
                _AUTO,
                say("`{render_path}` is taken from {source}.", render_path=render_path(path), source=source),
            )
            for path, source in _literals(view)
            if not name or path == wanted
        ]
        return settled(view.settings, started(view.document, view.context.unknown).after(steps))
    except (EditError, PathError) as error:
        return Outcome(left=(str(error),))


FEATURE = Feature(NAME, REWRITE, _offer, _carry_out, (str,))
