from __future__ import annotations

import re
from pathlib import Path

from dsmigrate.codemod.catalogue import ideas
from dsmigrate.editing.urls import DOCS, url_for_code, url_for_key, url_for_type
from dsmigrate.knowledge import knowledge
from dsmigrate.rules import every_rule

PAGES = Path(__file__).resolve().parents[2] / "docs"
_HEADING = re.compile(r"^#+ (.*)$", re.MULTILINE)


def anchors(page: Path) -> set[str]:
    """The anchors that GitHub gives the headings of a page."""
    headings = (heading.lower().replace(" ", "-") for heading in _HEADING.findall(page.read_text(encoding="utf-8")))
    return {"".join(char for char in heading if char.isalnum() or char in "-_") for heading in headings}


def leads_nowhere(urls: list[str]) -> list[str]:
    wrong = []
    known: dict[str, set[str]] = {}
    for url in urls:
        name, _, anchor = url.removeprefix(f"{DOCS}/").partition("#")
        if not (PAGES / name).is_file() or (anchor and anchor not in known.setdefault(name, anchors(PAGES / name))):
            wrong.append(url)
    return wrong


def test_every_key_has_a_page_and_a_heading() -> None:
    known = knowledge()
    keys = [key for path in known.every_path() if (key := known.key(path)) is not None]
    urls = [url_for_key(key, known) for key in keys]
    assert leads_nowhere(urls) == []
    assert len(urls) > 400


def test_every_type_has_a_page_and_a_heading() -> None:
    known = knowledge()
    urls = [url_for_type(facts) for facts in (*known.every_optimizer(), *known.every_scheduler())]
    assert leads_nowhere(urls) == []
    assert len(urls) > 30


def test_every_code_has_a_page() -> None:
    assert (
        leads_nowhere(
            [url_for_code(code) for code in (*(rule.code for rule in every_rule()), *(idea.code for idea in ideas()))]
        )
        == []
    )


def test_addresses_are_spelled_out() -> None:
    key = knowledge().key("zero_optimization.stage")
    assert key is not None
    assert url_for_key(key, knowledge()) == f"{DOCS}/keys/zero_optimization.md#zero_optimizationstage"
    assert url_for_code("DS401") == f"{DOCS}/rules/DS401.md"
    assert url_for_code("MG101") == f"{DOCS}/codes/MG101.md"
