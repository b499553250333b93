"""SARIF: against the official schema and the validator of its authors, which come from npm."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from dsmigrate.checking.formats import sarif
from dsmigrate.checking.job import Checked, check_bytes
from dsmigrate.rules import every_rule
from dsmigrate.settings.check import CheckSettings
from tests.rules.examples import marked
from tests.schemas.servers import installed

pytestmark = pytest.mark.node
OFFLINE = {"HTTP_PROXY": "http://127.0.0.1:9", "HTTPS_PROXY": "http://127.0.0.1:9"}
"""Or the validator looks whether each page that a rule names can be reached, a note to it that takes a minute."""


@pytest.fixture(scope="session")
def multitool() -> Path:
    try:
        return installed.modules() / "@microsoft"
    except installed.NotInstallableError as error:
        pytest.skip(str(error))


def every_example() -> list[Checked]:
    """Each bad example of each rule as a file of its own, and a file that cannot be read."""
    checked = []
    for rule in every_rule():
        for number, example in enumerate(rule.examples):
            settings = CheckSettings(version=example.version, consumer=example.consumer)
            name = f"conf dir/{rule.code}-{number}.json"
            checked.append(check_bytes(name, marked(example.config).text.encode(), None, settings))
    return [*checked, check_bytes("broken.json", b'{"a": "\xe9"}', None, CheckSettings())]


def log() -> dict[str, Any]:
    found = json.loads(sarif.render(every_example()))
    assert isinstance(found, dict)
    return found


def test_the_log_is_what_the_official_schema_asks_for(multitool: Path) -> None:
    [schema] = (multitool / "sarif-multitool-linux").glob("sarif-2.1.0.json")
    jsonschema.Draft7Validator(json.loads(schema.read_bytes())).validate(log())


def test_the_validator_of_the_standards_authors_has_nothing_to_say(multitool: Path, tmp_path: Path) -> None:
    file = tmp_path / "log.sarif"
    file.write_text(json.dumps(log()), encoding="utf-8")
    tool = multitool / "sarif-multitool-linux" / "Sarif.Multitool"
    tool.chmod(0o755)  # npm leaves out the script that would do it
    answer = subprocess.run(
        [str(tool), "validate", str(file), "--output", str(tmp_path / "said.sarif"), "--level", "Error"],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "DOTNET_SYSTEM_GLOBALIZATION_INVARIANT": "1", **OFFLINE},
    )
    said = json.loads((tmp_path / "said.sarif").read_text(encoding="utf-8-sig"))
    results = [result for run in said["runs"] for result in run.get("results", [])]
    assert [result["message"] for result in results] == [], answer.stdout[-2000:]


def test_every_result_names_its_rule_and_a_place_in_the_file() -> None:
    [run] = log()["runs"]
    rules = [rule["id"] for rule in run["tool"]["driver"]["rules"]]
    assert len(run["results"]) >= len(rules)
    for result in run["results"]:
        assert rules[result["ruleIndex"]] == result["ruleId"]
        region = result["locations"][0]["physicalLocation"]["region"]
        assert 1 <= region["startLine"] <= region["endLine"]
    assert run["invocations"][0]["executionSuccessful"] is False
    assert "broken.json" in json.dumps(run["invocations"])
