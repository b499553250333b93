from __future__ import annotations

import json

import jsonschema
import pytest

from dsmigrate.codemod.model import Kind, Status
from dsmigrate.report.json import document, render
from dsmigrate.report.view import Report
from dsmigrate.schemas_location import schema_file
from tests.report.samples import BROKEN, CONVERTED, REFUSED, UNCHANGED, entry

SCHEMA = json.loads(schema_file("output/migrate.schema.json").read_text(encoding="utf-8"))
REPORTS = {
    "nothing": Report(()),
    "unchanged": Report((entry(UNCHANGED),)),
    "mixed": Report(tuple(map(entry, (BROKEN, UNCHANGED, REFUSED, CONVERTED))), ("src/train.py",)),
}


def test_the_schema_is_a_schema() -> None:
    jsonschema.Draft7Validator.check_schema(SCHEMA)


@pytest.mark.parametrize("name", REPORTS)
def test_what_is_printed_follows_the_schema(name: str) -> None:
    jsonschema.Draft7Validator(SCHEMA).validate(json.loads(render(REPORTS[name])))


def test_the_schema_knows_every_status_and_kind() -> None:
    file, change = SCHEMA["definitions"]["file"], SCHEMA["definitions"]["change"]
    assert file["properties"]["status"]["enum"] == [status.value for status in Status]
    assert change["properties"]["kind"]["enum"] == [kind.value for kind in Kind]


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("version",), 2),
        (("files", 3, "status"), "done"),
        (("files", 3, "changes", 0, "line"), 0),
        (("files", 3, "changes", 0, "code"), "DS101"),
        (("files", 2, "diff"), "--- a\n"),
        (("summary",), {}),
    ],
)
def test_the_schema_rejects_what_is_not_the_contract(path: tuple[str | int, ...], value: object) -> None:
    broken = json.loads(render(REPORTS["mixed"]))
    place = broken
    for step in path[:-1]:
        place = place[step]
    place[path[-1]] = value
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.Draft7Validator(SCHEMA).validate(broken)


def test_the_top_carries_config_and_launch_of_the_first_converted_file() -> None:
    found = document(REPORTS["mixed"])
    assert found["config"] == {"train_micro_batch_size_per_gpu": 8, "zero_optimization": {"stage": 2}}
    assert found["config_path"] == "src/ds_config.json"
    assert found["launch"] == "torchrun --nproc_per_node=2 src/train.py"
    assert found["files"][3]["launch_commands"][1] == "deepspeed src/train.py"
    assert found["files"][2]["config"] is None
    assert found["written"] == ["src/train.py"]


def test_files_keep_their_order_and_changes_their_fields() -> None:
    found = document(REPORTS["mixed"])
    assert [file["path"] for file in found["files"]] == ["old.py", "utils.py", "gan.py", "src/train.py"]
    assert found["files"][2]["changes"] == [
        {
            "code": "MG901",
            "kind": "refused",
            "line": 77,
            "end_line": 80,
            "message": "two models are trained",
            "reason": "one engine trains one model",
        }
    ]


def test_the_summary_counts_files_and_decisions() -> None:
    assert document(REPORTS["mixed"])["summary"] == {
        "files": 4,
        "files_converted": 0,
        "files_converted_with_todos": 1,
        "files_unchanged": 1,
        "files_refused": 1,
        "files_error": 1,
        "changes_converted": 2,
        "changes_kept": 1,
        "changes_todo": 1,
        "changes_refused": 2,
    }
