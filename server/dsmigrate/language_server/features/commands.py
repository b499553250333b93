"""Commands: explain a word, tell and change release, consumer and world size without a restart."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from pygls.exceptions import JsonRpcInvalidParams

from dsmigrate.language_server.asking import asked_of
from dsmigrate.language_server.features.lifecycle import settings_changed
from dsmigrate.language_server.settings import kebab, settings_for

if TYPE_CHECKING:
    from dsmigrate.language_server.session import Session
    from dsmigrate.language_server.wire import Data

_TEMPORARY = ("deepspeed-version", "consumer", "world-size", "gpu-memory", "parameters", "hardware", "before")
"""Settings that can be changed for a session."""


def explain(session: Session, arguments: Sequence[Any]) -> Data:
    """Return Markdown about a code, a key, an optimizer or scheduler type, or a parameter of one.

    The arguments are the word and, if it is to be for the release of a config, its address. An unknown word gives
    ``error`` with what is near.
    """
    from dsmigrate.explain import markdown  # noqa: PLC0415 - the pages are not needed before
    from dsmigrate.explain.subject import NothingToExplainError, find  # noqa: PLC0415
    from dsmigrate.knowledge import knowledge  # noqa: PLC0415

    word = _text(arguments, 0)
    asked = asked_of(session, _text(arguments, 1)) if len(arguments) > 1 else None
    known = asked.view.known if asked is not None else knowledge(session.settings_in(None).check.version)
    try:
        return {"markdown": markdown.text(find(word or None, known), known)}
    except NothingToExplainError as error:
        return {"error": str(error)}


def status(session: Session, arguments: Sequence[Any]) -> Data | None:
    """Return what a config is taken for: release and consumer with the reason for each, facts, and what it comes to.

    The argument is the address of an open document; the answer is None for one that is no config.
    """
    from dsmigrate.editing.summary import summary  # noqa: PLC0415

    asked = asked_of(session, _text(arguments, 0))
    if asked is None:
        return None
    view = asked.view
    facts = view.settings.facts
    worst: dict[str, int] = {}
    for finding in view.findings:
        worst[finding.severity.value] = worst.get(finding.severity.value, 0) + 1
    return {
        "deepspeedVersion": view.known.version,
        "whyVersion": view.why_version,
        "consumer": view.consumer.value,
        "whyConsumer": view.why_consumer,
        "worldSize": facts.world_size,
        "stage": view.context.stage,
        "summary": summary(view),
        "findings": worst,
        "changed": dict(session.changed),
    }


def change(session: Session, arguments: Sequence[Any]) -> Data:
    """Change a setting for this session; None takes the change back. Returns all that is changed.

    The arguments are the name (``worldSize`` or ``world-size``) and the value. Raises JsonRpcInvalidParams for a
    setting that is not one of these, and a value that is not allowed.
    """
    name = kebab(_text(arguments, 0))
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


def _text(arguments: Sequence[Any], index: int) -> str:
    value = arguments[index] if index < len(arguments) else ""
    if not isinstance(value, str):
        raise JsonRpcInvalidParams(f"argument {index + 1} is no text: {value!r}")
    return value
