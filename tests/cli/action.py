"""The GitHub Action, and the pipelines of the documentation."""

from __future__ import annotations

from typing import Any

from ruamel.yaml import YAML

from tests.diff.repository import ROOT


def action() -> dict[str, Any]:
    loaded = YAML(typ="safe").load((ROOT / "action.yml").read_text(encoding="utf-8"))
    assert isinstance(loaded, dict)
    return loaded


def documented(title: str) -> str:
    """Return the YAML that the documentation has under a title."""
    page = (ROOT / "docs/diff-in-git.md").read_text(encoding="utf-8")
    return page.partition(f"\n## {title}\n")[2].partition("```yaml\n")[2].partition("```")[0]
