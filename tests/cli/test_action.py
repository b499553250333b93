"""What the GitHub Action is made of: its inputs, its scripts, what it installs, and how the documentation uses it."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from ruamel.yaml import YAML

from tests.cli.action import action, documented
from tests.diff.repository import ROOT, environment


@pytest.mark.broad
@pytest.mark.parametrize(
    ("schema", "text"),
    [
        ("github-actions", (ROOT / "action.yml").read_text(encoding="utf-8")),
        ("github-workflows", documented("GitHub Actions")),
        ("gitlab-ci", documented("GitLab CI")),
    ],
)
def test_the_action_and_the_documented_pipelines_follow_the_schemas_of_their_hosts(
    tmp_path: Path, schema: str, text: str
) -> None:
    file = tmp_path / "file.yml"
    file.write_text(text, encoding="utf-8")
    more = ["--data-transform", "gitlab-ci"] if schema == "gitlab-ci" else []
    command = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", f"vendor.{schema}", *more, str(file)]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    file.write_text(text.replace("\nruns:", "\nrun:").replace("\njobs:", "\njob:").replace("script:", "scripts:"))
    assert subprocess.run(command, capture_output=True, check=False).returncode == 1


def test_the_documented_workflow_may_only_read_and_comment_and_pins_what_it_uses() -> None:
    workflow = YAML(typ="safe").load(documented("GitHub Actions"))
    assert set(workflow["on"]) == {"pull_request"}
    assert workflow["permissions"] == {"contents": "read", "pull-requests": "write"}
    (job,) = workflow["jobs"].values()
    assert "permissions" not in job
    checkout, ours = job["steps"]
    assert re.fullmatch(r"actions/checkout@[0-9a-f]{40}", checkout["uses"])
    assert checkout["with"] == {"fetch-depth": 0, "persist-credentials": False}
    assert set(ours["with"]) <= set(action()["inputs"])
    assert "secrets." not in documented("GitHub Actions")


@pytest.mark.skipif(shutil.which("bash") is None, reason="the action is a bash script")
def test_the_scripts_of_the_action_are_bash() -> None:
    for step in action()["runs"]["steps"]:
        assert step["shell"] == "bash"
        assert step["run"].startswith("set -euo pipefail\n")
        subprocess.run(["bash", "-n"], input=step["run"], text=True, check=True)


def test_every_input_of_the_action_reaches_a_step_and_every_variable_is_set() -> None:
    made = action()
    used = "\n".join(value for step in made["runs"]["steps"] for value in step["env"].values())
    assert set(re.findall(r"inputs\.([a-z-]+)", used)) == set(made["inputs"])
    for step in made["runs"]["steps"]:
        asked = set(re.findall(r"\$\{?([A-Z_]+)", step["run"]))
        assert asked <= set(step["env"]) | {"RUNNER_TEMP", "GITHUB_ENV", "DSMIGRATE_PYTHON"}


@pytest.mark.skipif(shutil.which("bash") is None, reason="the action is a bash script")
def test_the_step_that_installs_makes_an_environment_of_its_own_from_pins_alone(tmp_path: Path) -> None:
    """Python is a script that writes down what it is asked for; the package index is left alone."""
    log, runner = tmp_path / "log", tmp_path / "runner temp"
    runner.mkdir()
    python = tmp_path / "python"
    python.write_text(
        f'#!/bin/sh\necho "$*" >> "{log}"\n'
        f'if [ "$3" = venv ]; then mkdir -p "$4/bin" && cp "{python}" "$4/bin/python"; fi\n',
        encoding="utf-8",
    )
    python.chmod(0o755)
    step = action()["runs"]["steps"][0]
    variables = {
        "PYTHON": str(python),
        "ACTION": str(ROOT),
        "RUNNER_TEMP": str(runner),
        "GITHUB_ENV": str(tmp_path / "e"),
    }
    ran = subprocess.run(
        ["bash", "--noprofile", "--norc", "-eo", "pipefail"],
        input=step["run"],
        env={**environment(), **variables},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    made, pinned, own = log.read_text(encoding="utf-8").splitlines()
    home = runner / "dsmigrate"
    assert made == f"-I -m venv {home}"
    assert "--require-hashes --only-binary :all: --no-deps -r" in pinned
    assert pinned.endswith(".ci/action-requirements.txt")
    assert (ROOT / ".ci" / "action-requirements.txt").is_file()
    assert own.endswith(f"--no-deps --no-build-isolation {ROOT}")
    assert all(line.startswith("-I -m pip install") for line in (pinned, own))
    assert (tmp_path / "e").read_text(encoding="utf-8") == f"DSMIGRATE_PYTHON={home}/bin/python\n"


def test_the_action_uses_no_other_action_and_puts_no_input_into_a_script() -> None:
    for step in action()["runs"]["steps"]:
        assert "uses" not in step
        assert "${{" not in step["run"]


def test_the_action_installs_what_the_package_needs_each_pinned_by_a_hash() -> None:
    text = (ROOT / ".ci/action-requirements.txt").read_text(encoding="utf-8")
    pinned = dict(re.findall(r"^([a-z0-9-]+)==([^ ]+)", text, re.MULTILINE))
    asked = re.search(
        r"^dependencies = \[\n(.*?)^\]", (ROOT / "pyproject.toml").read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL
    )
    assert asked is not None
    assert set(re.findall(r'"([a-z0-9-]+)[>=;]', asked[1])) <= set(pinned)
    for entry in re.split(r"\n(?=[a-z])", text.partition("\nattrs")[2])[1:]:
        assert "--hash=sha256:" in entry
