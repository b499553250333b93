"""What a hover says about a key that a JSON Schema of the project describes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from dsmigrate.document import Path
from dsmigrate.editing.markdown import code
from dsmigrate.editing.view import View
from dsmigrate.knowledge.wording import json_text
from dsmigrate.languages import say


def parts(view: View, path: Path) -> Iterator[str]:
    """Yield what schemas say of a member: title, description, type, values, default."""
    for schema in view.settings.facts.schemas:
        facts = schema.described(path)
        if facts is None:
            continue
        yield from (str(facts[name]) for name in ("title", "description") if facts.get(name))
        kind = facts.get("type")
        if kind:
            yield say("Type: {kind}.", kind=" | ".join(map(str, kind)) if isinstance(kind, list) else str(kind))
        listed: Any = facts.get("enum")
        if isinstance(listed, list) and listed:
            yield say("One of {values}.", values=say(", ").join(code(json_text(value)) for value in listed))
        if "default" in facts:
            yield say("Default: {default}.", default=code(json_text(facts["default"])))
        yield say("From {schema}.", schema=code(schema.name))
