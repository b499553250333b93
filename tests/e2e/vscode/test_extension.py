"""The VS Code extension: built from this checkout, installed in the real VS Code, driven in its host and its window."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import warnings
import zipfile
from pathlib import Path
from typing import Any

import pytest

EXTENSION = Path(__file__).parents[3] / "vscode-extension"
VSIX = EXTENSION / "dsmigrate.vsix"
PROFILES = ("main", "private", "uv", "features", "untrusted", "python")

pytestmark = [
    pytest.mark.vscode,
    pytest.mark.xdist_group("vscode"),
    pytest.mark.skipif(shutil.which("npm") is None, reason="npm is not installed"),
]


def run(*command: str, limit: float = 1800) -> subprocess.CompletedProcess[str]:
    """Run a program in the extension's folder; its output is both streams."""
    environment = {**os.environ, "DSMIGRATE_TEST_PYTHON": sys.executable, "PYTHON": sys.executable}
    return subprocess.run(
        command,
        cwd=EXTENSION,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=limit,
        check=False,
    )


@pytest.fixture(scope="session")
def vsix() -> Path:
    """The extension as it is published, built as CONTRIBUTING.md says."""
    is_set_up = (EXTENSION / "node_modules" / ".package-lock.json").exists()
    set_up = [] if is_set_up else [["npm", "ci", "--no-audit"]]
    for command in (*set_up, ["npm", "run", "package"], ["npm", "run", "test:build"]):
        done = run(*command)
        assert done.returncode == 0, done.stdout
    return VSIX


@pytest.fixture(scope="session")
def vscode(vsix: Path) -> Path:  # noqa: ARG001 - npm has to be done first
    """Where the real VS Code is installed."""
    done = run("npm", "run", "--silent", "test:install")
    assert done.returncode == 0, done.stdout
    return Path(json.loads(done.stdout.splitlines()[-1])["root"])


@pytest.mark.usefixtures("vsix")
@pytest.mark.parametrize("script", ["lint", "licenses -- --check"])
def test_its_sources_are_clean(script: str) -> None:
    done = run("npm", "run", *script.split())
    assert done.returncode == 0, done.stdout


def test_what_is_published_holds_what_belongs_and_nothing_else(vsix: Path) -> None:
    with zipfile.ZipFile(vsix) as archive:
        names = {name.removeprefix("extension/") for name in archive.namelist() if name.startswith("extension/")}
    assert {"dist/extension.js", "dist/client.js", "package.json", "LICENSE.txt", "THIRD_PARTY.md"} <= names
    assert any(name.startswith("bundled/dsmigrate-") and name.endswith(".whl") for name in names)
    allowed = ("dist/", "bundled/", "media/", "l10n/")
    files = {"package.json", "LICENSE.txt", "THIRD_PARTY.md", "readme.md", "changelog.md"}
    strange = {name for name in names if not name.startswith(allowed)} - files
    assert {name for name in strange if not name.startswith("package.nls")} == set()
    assert not {name for name in names if name.endswith((".map", ".ts", ".svg"))}


@pytest.mark.usefixtures("vsix")
def test_the_wheel_says_that_the_package_has_types() -> None:
    (wheel,) = (EXTENSION / "bundled").glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        assert {"dsmigrate/py.typed", "dsmigrate/schemas/output/verify.schema.json"} <= set(archive.namelist())


@pytest.mark.usefixtures("vsix")
def test_what_it_is_built_with_has_no_grave_holes() -> None:
    done = run("npm", "audit", "--json")
    report: dict[str, Any] = json.JSONDecoder().raw_decode(done.stdout, done.stdout.index("{"))[0]
    if "metadata" not in report:
        pytest.skip("the package index answers no audits")
    found = report["metadata"]["vulnerabilities"]
    assert (found["high"], found["critical"]) == (0, 0), done.stdout


@pytest.mark.usefixtures("vsix")
def test_the_signs_of_a_config_are_those_of_the_server() -> None:
    done = run(sys.executable, "scripts/signs.py", "--check")
    assert done.returncode == 0, "run vscode-extension/scripts/signs.py"


def test_the_lock_file_names_no_address() -> None:
    assert '"resolved"' not in (EXTENSION / "package-lock.json").read_text("utf-8")


def in_profiles(*profiles: str) -> dict[str, Any]:
    """Run the suites of some profiles, or of all, in the extension host: how each ended, and all that was said."""
    done = run("node", "test/host.mjs", *profiles)
    runs = json.loads((EXTENSION / "out" / "host.json").read_text("utf-8"))
    return {"said": done.stdout, **{entry["profile"]: entry for entry in runs}}


def faults(runs: dict[str, Any], profile: str) -> list[str]:
    """Return what failed in a profile; a profile that did not run at all is a fault too."""
    entry = runs.get(profile)
    if entry is None or "error" in entry or not entry["tests"]:
        return [runs["said"]]
    return [f"{test['title']}\n{test.get('error')}" for test in entry["tests"] if test["state"] == "failed"]


TRIES = 3
"""An editor on a busy machine loses a key or an answer now and then; a fault fails each time."""


def once_more(first: object) -> None:
    """Say what failed before it is tried again."""
    warnings.warn(f"tried once more after\n{first}", stacklevel=2)


@pytest.fixture(scope="session")
def in_host(vscode: Path) -> dict[str, Any]:  # noqa: ARG001 - it has to be there
    """How the suites of each profile ended."""
    return in_profiles()


@pytest.mark.parametrize("profile", PROFILES)
def test_in_the_extension_host(in_host: dict[str, Any], profile: str) -> None:
    failed = faults(in_host, profile)
    for _ in range(1, TRIES):
        if failed:
            once_more("\n".join(failed))
            failed = faults(in_profiles(profile), profile)
    assert failed == []


def themes_that_failed() -> list[str]:
    """Return the themes of the last run in which a scene failed."""
    scenes = json.loads((EXTENSION / "out" / "ui.json").read_text("utf-8"))
    return list(dict.fromkeys(scene["theme"] for scene in scenes if "error" in scene))


@pytest.mark.usefixtures("vscode")
def test_in_the_window() -> None:
    themes = os.environ.get("DSMIGRATE_THEMES", "").split()  # none: all of them
    done = run("node", "test/ui.mjs", *themes)
    for _ in range(1, TRIES):
        if done.returncode:
            once_more(done.stdout)
            done = run("node", "test/ui.mjs", *(themes_that_failed() or themes))
    assert done.returncode == 0, done.stdout
