"""The server in a real Neovim and a real Emacs, without a screen: diagnostics, hover, completion, a fix applied."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.editors
HERE = Path(__file__).parent
SERVER = f"{sys.executable} -m dsmigrate.language_server.main"
CONFIG = """{
  "train_batch_size": 8,
  "zero_optimization": {
    "stage": 2,
    "overlap_com": true
  },
  "complete_here": 1
}
"""
FIXED = CONFIG.replace("overlap_com", "overlap_comm")


def drive(program: str, arguments: list[str], folder: Path) -> dict[str, Any]:
    """Return what an editor saw of a config in ``folder``."""
    found = shutil.which(program)
    assert found, f"{program} is not installed; tests/run.sh installs it"
    (folder / "ds_config.json").write_text(CONFIG, encoding="utf-8")
    environment = {
        **os.environ,
        "HOME": str(folder / "home"),
        "DSMIGRATE_SERVER": SERVER,
        "DSMIGRATE_FILE": str(folder / "ds_config.json"),
        "PYTHONPATH": os.pathsep.join(path for path in sys.path if path),
    }
    (folder / "home").mkdir()
    run = subprocess.run(
        [found, *arguments], cwd=folder, env=environment, capture_output=True, text=True, timeout=600, check=False
    )
    lines = [line for line in run.stdout.splitlines() if line.startswith("{")]
    assert lines, run.stdout + run.stderr
    seen: dict[str, Any] = json.loads(lines[-1])
    assert "error" not in seen, seen["error"]
    return seen


def check(seen: dict[str, Any]) -> None:
    """Expect of any editor what it must have seen."""
    assert all(seen["steps"].values()), seen["steps"]
    assert "ZeRO" in seen["hover"]
    assert "gradient_clipping" in seen["completion"]
    assert seen["actions"]
    assert seen["text"] == FIXED


def test_neovim(tmp_path: Path) -> None:
    script = f"luafile {HERE / 'neovim.lua'}"
    seen = drive("nvim", ["--headless", "-u", "NONE", "-i", "NONE", "-n", "-c", script, "ds_config.json"], tmp_path)
    check(seen)
    unknown = next(item for item in seen["diagnostics"] if "overlap_com`" in item["message"])
    assert (unknown["line"], unknown["column"]) == (4, 4)


def test_emacs(tmp_path: Path) -> None:
    seen = drive("emacs", ["-Q", "--batch", "-l", str(HERE / "emacs.el")], tmp_path)
    check(seen)
    assert any("overlap_com`" in text for text in seen["diagnostics"])


def snippet(editor: str) -> str:
    """Return the snippet that the documentation gives for an editor."""
    page = (HERE.parents[2] / "docs" / "language-server.md").read_text(encoding="utf-8")
    return page.split(f"<!-- run: {editor} -->\n```", 1)[1].partition("\n")[2].partition("\n```")[0]


def with_server(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Put the server on the path under the name that the documentation uses."""
    server = folder / "bin" / "deepspeed-language-server"
    server.parent.mkdir()
    server.write_text(f'#!/bin/sh\nexec {SERVER} "$@"\n', encoding="utf-8")
    server.chmod(0o755)
    monkeypatch.setenv("PATH", f"{server.parent}{os.pathsep}{os.environ['PATH']}")


def test_the_snippet_for_neovim(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with_server(tmp_path, monkeypatch)
    (tmp_path / "snippet.lua").write_text(snippet("neovim"), encoding="utf-8")
    look = (
        "lua vim.wait(120000, function() return #vim.diagnostic.get(0) > 0 end, 20); "
        "io.stdout:write(vim.json.encode({ steps = {}, count = #vim.diagnostic.get(0) }) .. '\\n')"
    )
    commands = ["-c", f"luafile {tmp_path / 'snippet.lua'}", "-c", "edit ds_config.json", "-c", "set filetype=json"]
    seen = drive(
        "nvim", ["--headless", "-u", "NONE", "-i", "NONE", "-n", *commands, "-c", look, "-c", "qall!"], tmp_path
    )
    assert seen["count"] >= 1


@pytest.mark.parametrize("client", ["eglot", "lsp-mode"])
def test_the_snippets_for_emacs(client: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with_server(tmp_path, monkeypatch)
    (tmp_path / "snippet.el").write_text(snippet(client), encoding="utf-8")
    monkeypatch.setenv("DSMIGRATE_SNIPPET", str(tmp_path / "snippet.el"))
    seen = drive("emacs", ["-Q", "--batch", "-l", str(HERE / f"snippet-{client}.el")], tmp_path)
    assert any("overlap_com`" in text for text in seen["diagnostics"]), seen
