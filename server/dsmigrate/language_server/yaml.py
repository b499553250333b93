"""The YAML of ``accelerate launch`` as a config: DeepSpeed's keys, at the places where the file has them."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dsmigrate.checking.recognise import is_accelerate
from dsmigrate.language_server import views
from dsmigrate.language_server.recognition import Kind

if TYPE_CHECKING:
    from dsmigrate.editing.view import View
    from dsmigrate.language_server.documents import OpenDocument
    from dsmigrate.language_server.session import Session
    from dsmigrate.rules import Finding


@dataclass(frozen=True, slots=True)
class Yaml:
    """What a file says: its configs, and what the form and the rules find in them; ``error`` is why it cannot be read.

    ``line`` is that of the error, from 1, None where it is not about a line.
    """

    views: tuple[View, ...] = ()
    findings: tuple[Finding, ...] = field(default=())
    error: str = ""
    line: int | None = None


def yaml_of(session: Session, document: OpenDocument) -> Yaml | None:
    """Return what an open YAML file says of DeepSpeed; None for one that says nothing, and where we are turned off."""
    if document.kind is not Kind.YAML or not session.settings(document).enable:
        return None
    key = ("yaml", session.generation)
    if key not in document.memory:
        document.memory[key] = (
            _read(session, document) if is_accelerate(document.text.encode(errors="replace")) else None
        )
    found: Any = document.memory[key]
    return found if isinstance(found, Yaml) else None


def _read(session: Session, document: OpenDocument) -> Yaml:
    from dsmigrate.checking.forms import findings_in, parts_in_file, view_of, without_tree  # noqa: PLC0415 - what few files need
    from dsmigrate.checking.suppression import visible_in_text  # noqa: PLC0415
    from dsmigrate.convert.model import ConvertError, Form  # noqa: PLC0415
    from dsmigrate.rules.run import in_order  # noqa: PLC0415

    settings = session.settings(document)
    check = views.asked_for(settings, document.folder)
    file = document.path
    try:
        parts = list(parts_in_file(Form.ACCELERATE, document.text, file))
    except ConvertError as error:
        return Yaml(error=error.message, line=error.line or None)
    name = file or Path(document.name)
    made = []
    found: list[Finding] = []
    for part in parts:
        found += findings_in(part, check, name)
        if part.document.root is not None:
            made.append(view_of(part, document.folder, check, check.version or "", name))
            found += made[-1].findings
    return Yaml(tuple(made), tuple(visible_in_text(without_tree(document.text), in_order(found))))
