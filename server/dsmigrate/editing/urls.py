"""Addresses of the pages of keys, types and codes."""

from __future__ import annotations

from dsmigrate.checking.formats import places
from dsmigrate.docs.keys import TOP_LEVEL, TYPE_PAGES, anchor
from dsmigrate.knowledge import Key, Knowledge, TypeFacts

DOCS = places.DOCS.removesuffix("/rules")


def url_for_key(key: Key, known: Knowledge) -> str:
    """Return the address of what ``docs/keys`` says about a key."""
    top = key.path.partition(".")[0].removesuffix("[]")
    section = known.key(top)
    page = top if section is not None and section.is_section else TOP_LEVEL
    return f"{DOCS}/keys/{page}.md#{anchor(key.path)}"


def url_for_type(facts: TypeFacts) -> str:
    """Return the address of what ``docs/keys`` says about an optimizer or scheduler type, and its parameters."""
    return f"{DOCS}/keys/{TYPE_PAGES[facts.kind]}.md#{facts.name.lower()}-{facts.kind}"


def url_for_code(code: str) -> str:
    """Return the address of the page of a rule (``DS401``) or of a migration code (``MG101``)."""
    return places.url(code) if code.startswith("DS") else f"{DOCS}/codes/{code}.md"
