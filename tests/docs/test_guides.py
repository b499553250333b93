"""The configs of the guides, their links, and their languages. What they say to type is typed in ``tests/e2e``."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from dsmigrate.cli.app import run
from tests.guides import FOLDER, Block, blocks, guides

CONFIGS = [
    pytest.param(block, id=f"{path.stem}:{block.file}")
    for path in guides()
    for block in blocks(path)
    if block.language == "json" and block.file
]
PAGES = sorted(FOLDER.rglob("*.md"))
TRANSLATIONS = sorted(folder for folder in FOLDER.iterdir() if folder.is_dir())
_LINK = re.compile(r"\]\(([^)#]+)(?:#[^)]*)?\)")


@pytest.mark.parametrize("block", CONFIGS)
def test_a_config_has_the_faults_it_is_shown_for_and_no_others(
    block: Block, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "ds_config.json"
    path.write_text(block.text)
    run(["check", str(path), "--format", "json", *block.options])
    report = json.loads(capsys.readouterr().out)
    found = {
        (item["code"], item["message"])
        for item in report["files"][0]["diagnostics"]
        if item["severity"] in {"error", "warning"}
    }
    assert sorted({code for code, _ in found}) == block.codes, found


def test_every_config_is_named() -> None:
    for path in guides():
        assert all(block.file for block in blocks(path) if block.language in {"json", "python", "yaml"}), path


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(FOLDER)))
def test_every_link_leads_somewhere(page: Path) -> None:
    links = [link for link in _LINK.findall(page.read_text(encoding="utf-8")) if "://" not in link]
    assert [link for link in links if not (page.parent / link).exists()] == []


@pytest.mark.parametrize("folder", [FOLDER, *TRANSLATIONS], ids=lambda folder: folder.name)
def test_the_index_names_every_guide(folder: Path) -> None:
    listed = set(_LINK.findall((folder / "README.md").read_text(encoding="utf-8")))
    assert {path.name for path in guides()} <= listed


@pytest.mark.parametrize("folder", TRANSLATIONS, ids=lambda folder: folder.name)
@pytest.mark.parametrize("path", guides(), ids=lambda path: path.stem)
def test_a_translation_has_the_same_blocks(path: Path, folder: Path) -> None:
    def fixed(page: Path) -> list[tuple[str, tuple[str, ...], str]]:
        return [
            (block.language, block.words, block.text if block.language != "text" or block.words else "")
            for block in blocks(page)
        ]

    assert fixed(folder / path.name) == fixed(path)
