"""Commands: explain a word, tell and change release, consumer and world size without a restart."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from lsprotocol import types
from pygls.exceptions import JsonRpcInvalidParams

from dsmigrate.language_server.asking import asked_at, asked_of, configs_in
from dsmigrate.language_server.features.lifecycle import settings_changed
from dsmigrate.language_server.settings import kebab, settings_for

if TYPE_CHECKING:
    from dsmigrate.language_server.session import Session
    from dsmigrate.language_server.wire import Data

_TEMPORARY = ("deepspeed-version", "consumer", "world-size", "gpu-memory", "parameters", "hardware", "before")
"""Settings that can be changed for a session."""

_UNITS = ("line", "character")


def explain(session: Session, arguments: Sequence[Any]) -> Data:
    """Return Markdown about a code, a key, an optimizer or scheduler type, or a parameter of one.

    The arguments are the word and, if it is to be for the release of a config, its address; without a word a third one,
    a position, asks about the key there. Answers ``markdown`` and the ``word``; an unknown one gives ``error`` with
    what is near.
    """
    from dsmigrate.explain import markdown  # noqa: PLC0415 - the pages are not needed before
    from dsmigrate.explain.subject import NothingToExplainError, find  # noqa: PLC0415
    from dsmigrate.knowledge import knowledge  # noqa: PLC0415

    word = text(arguments, 0)
    asked = next(iter(configs_in(session, text(arguments, 1))), None) if len(arguments) > 1 else None
    if not word and len(arguments) > 2:
        word = _word_at(session, text(arguments, 1), arguments[2])
        if not word:
            return {"error": "there is no key here"}
    known = asked.view.known if asked is not None else knowledge(session.settings_in(None).check.version)
    try:
        return {"markdown": markdown.text(find(word or None, known), known), "word": word}
    except NothingToExplainError as error:
        return {"error": str(error)}


def status(session: Session, arguments: Sequence[Any]) -> Data | None:
    """Return what a config is taken for: release and consumer with the reason for each, facts, and what it comes to.

    The argument is the address of an open document; the answer is None for one that is no config.
    """
    from dsmigrate.editing.summary import details, summary  # noqa: PLC0415

    asked = configs_in(session, text(arguments, 0))
    if not asked:
        return None
    view = asked[0].view
    facts = view.settings.facts
    worst: dict[str, int] = {}
    for finding in view.findings:
        worst[finding.severity.value] = worst.get(finding.severity.value, 0) + 1
    return {
        "deepspeedVersion": view.known.version,
        "whyVersion": view.why_version,
        "consumer": view.consumer.value,
        "consumerTitle": view.consumer.title,
        "whyConsumer": view.why_consumer,
        "worldSize": facts.world_size,
        "stage": view.context.stage,
        "summary": summary(view),
        "details": [list(detail) for detail in details(view)],
        "findings": worst,
        "changed": dict(session.changed),
    }


def change(session: Session, arguments: Sequence[Any]) -> Data:
    """Change a setting for this session; None takes the change back. Returns all that is changed.

    The arguments are the name (``worldSize`` or ``world-size``) and the value. Raises JsonRpcInvalidParams for a
    setting that is not one of these, and a value that is not allowed.
    """
    name = kebab(text(arguments, 0))
    value = arguments[1] if len(arguments) > 1 else None
    if name not in _TEMPORARY:
        raise JsonRpcInvalidParams(f"{name!r} cannot be changed here; can be: {', '.join(_TEMPORARY)}")
    if value is None:
        session.changed.pop(name, None)
    else:
        errors = settings_for(None, ({name: value},)).errors
        if errors:
            raise JsonRpcInvalidParams(errors[0])
        session.changed[name] = value
    settings_changed(session)
    return dict(session.changed)


def upgrade(session: Session, arguments: Sequence[Any]) -> Data | None:
    """Return what takes a config to the newest release; None for a document that is no config.

    The arguments are the address of an open document and, where it does not show, the release it was written for.
    Answers ``from`` and ``to``, the ``edits``, the text ``after`` them, what they do (``done``), and what is ``left``
    for the person.
    """
    from dsmigrate.document import apply  # noqa: PLC0415
    from dsmigrate.editing import actions  # noqa: PLC0415
    from dsmigrate.editing.actions.upgrade_config import before  # noqa: PLC0415
    from dsmigrate.knowledge import knowledge  # noqa: PLC0415

    asked = asked_of(session, text(arguments, 0))
    if asked is None:
        return None
    view, newest = asked.view, knowledge().version
    try:
        origin = knowledge(text(arguments, 1)).version if len(arguments) > 1 else before(view)
    except ValueError as error:
        raise JsonRpcInvalidParams(str(error)) from None
    outcome = actions.upgrade(
        view.document, origin, newest, view.consumer, facts=view.settings.facts, unknown=view.context.unknown
    )
    return {
        "from": origin,
        "to": newest,
        "edits": asked.edits(outcome.edits),
        "after": apply(view.document.text, outcome.edits),
        "done": list(outcome.done),
        "left": list(outcome.left),
    }


def _word_at(session: Session, uri: str, position: Any) -> str:  # noqa: ANN401 - whatever the client sends
    """Return what can be explained at a position: the path of a key, or the name of a type; "" for nothing."""
    from dsmigrate.document import render_path  # noqa: PLC0415
    from dsmigrate.editing.hover.target import target_at  # noqa: PLC0415

    if not isinstance(position, dict) or not all(isinstance(position.get(unit), int) for unit in _UNITS):
        raise JsonRpcInvalidParams(f"argument 3 is no position: {position!r}")
    found = asked_at(session, uri, types.Position(*(position[unit] for unit in _UNITS)))
    target = None if found is None else target_at(found[0].view, found[1])
    if target is None:
        return ""
    if target.is_type_name and target.value is not None:
        return f"{target.path[0]}.{target.value.value()}"
    return target.key.path if target.key is not None else render_path(target.path)


def text(arguments: Sequence[Any], index: int) -> str:
    """Return an argument of a command that is a text, "" where it is not given; raises JsonRpcInvalidParams."""
    value = arguments[index] if index < len(arguments) else ""
    if not isinstance(value, str):
        raise JsonRpcInvalidParams(f"argument {index + 1} is no text: {value!r}")
    return value
