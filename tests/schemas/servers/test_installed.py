"""The packages from npm: exact versions, no addresses, and nothing of them inside the repository."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tests.schemas.support import ROOT

from . import installed


def test_every_version_is_exact_and_no_address_is_named() -> None:
    text = installed.LIST.read_text(encoding="utf-8")
    versions = json.loads(text)["dependencies"]
    assert all(re.fullmatch(r"\d+\.\d+\.\d+", version) for version in versions.values()), versions
    assert "://" not in text
    assert not list(installed.LIST.parent.glob("*lock*"))
    assert not (installed.LIST.parent / "node_modules").exists()


def test_without_node_the_reason_is_told(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(installed.NotInstallableError, match="Node"):
        installed.modules()


def test_a_failed_installation_leaves_nothing_behind(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    tools = tmp_path / "tools"
    tools.mkdir()
    for name, code in (("node", 0), ("npm", 1)):
        (tools / name).write_text(f"#!/bin/sh\necho no such registry >&2\nexit {code}\n", encoding="utf-8")
        (tools / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{tools}:/usr/bin:/bin")
    monkeypatch.setenv("DSMIGRATE_NODE_MODULES", str(tmp_path / "cache"))
    with pytest.raises(installed.NotInstallableError, match="no such registry"):
        installed.modules()
    assert list((tmp_path / "cache").iterdir()) == []


@pytest.mark.node
def test_the_packages_are_installed_outside_of_the_repository(node_modules: Path) -> None:
    assert not node_modules.is_relative_to(ROOT)
    for name, version in json.loads(installed.LIST.read_text(encoding="utf-8"))["dependencies"].items():
        content = json.loads((node_modules / name / "package.json").read_text(encoding="utf-8"))
        assert content["version"] == version
