"""The workflows of the repository: their schema, what they may do, what they use, what a release is made of."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from tests.diff.repository import ROOT

WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))

each = pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)


def loaded(path: Path) -> dict[str, Any]:
    found: dict[str, Any] = YAML(typ="safe").load(path)
    return found


def steps(path: Path) -> list[dict[str, Any]]:
    return [step for job in loaded(path)["jobs"].values() for step in job.get("steps", ())]


@pytest.mark.broad
@each
def test_a_workflow_follows_the_schema(path: Path) -> None:
    command = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", "vendor.github-workflows", str(path)]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stdout + ran.stderr


@each
def test_what_a_workflow_uses_is_pinned_by_the_id_of_a_commit_and_named_by_its_version(path: Path) -> None:
    used = re.findall(r"uses: (.*)", path.read_text(encoding="utf-8"))
    assert used
    for one in used:
        assert re.fullmatch(r"[\w-]+/[\w-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+", one) or one.startswith("./"), one


@each
def test_a_workflow_has_no_right_that_it_does_not_name_and_no_secret(path: Path) -> None:
    found = loaded(path)
    assert found["permissions"] in ({}, {"contents": "read"})
    assert "secrets." not in path.read_text(encoding="utf-8")
    for step in steps(path):
        assert "${{" not in step.get("run", "")
        if step.get("uses", "").startswith("actions/checkout@"):
            assert step["with"]["persist-credentials"] is False


def test_nothing_is_published_before_all_tests_have_passed_and_everything_has_its_attestations() -> None:
    jobs = loaded(ROOT / ".github/workflows/release.yml")["jobs"]
    needed = {
        name: [job["needs"]] if isinstance(job.get("needs"), str) else job.get("needs", [])
        for name, job in jobs.items()
    }
    assert jobs["test"]["uses"] == "./.github/workflows/ci.yml"
    assert (needed["attest"], needed["pypi"], needed["github"]) == (["build", "test"], ["attest"], ["pypi"])
    attested = [step["with"] for step in jobs["attest"]["steps"] if step["uses"].startswith("actions/attest@")]
    provenance = [one["subject-path"].split() for one in attested if "sbom-path" not in one]
    parts = {one["subject-path"]: one["sbom-path"] for one in attested if "sbom-path" in one}
    assert provenance == [["out/pypi/*", "out/dsmigrate.vsix"]]
    assert parts == {"out/pypi/*": "out/dsmigrate.cdx.json", "out/dsmigrate.vsix": "out/dsmigrate-vscode.cdx.json"}
    build = "\n".join(step.get("run", "") for step in jobs["build"]["steps"])
    for file in ("out/pypi", "dsmigrate.cdx.json", "dsmigrate.vsix", "dsmigrate-vscode.cdx.json"):
        assert file in build
    rights = {name: job["permissions"] for name, job in jobs.items()}
    assert rights["build"] == {"contents": "read"}  # it runs what the package indexes hold
    assert rights["attest"] == {"attestations": "write", "id-token": "write"}
    assert rights["pypi"] == {"id-token": "write"}
    assert rights["github"] == {"contents": "write"}
    assert jobs["pypi"]["environment"]["name"] == "pypi"


def test_the_tests_of_a_workflow_are_those_of_ci() -> None:
    assert steps(ROOT / ".github/workflows/ci.yml")[-1]["run"] == "bash .ci/run"
