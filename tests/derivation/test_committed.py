"""What is committed under schemas/deepspeed/derived, looked at without the sources it comes from."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from dsmigrate.derivation import store
from dsmigrate.derivation.checkout import Checkout
from dsmigrate.derivation.release import Release
from dsmigrate.schemas_location import schema_file

CHECKOUT = Checkout(schema_file("deepspeed/releases.json").parent)
RELEASES = CHECKOUT.releases()
FACTS = CHECKOUT.stored(RELEASES)
NEWEST = FACTS[RELEASES[-1]]
JSON_TYPES = {"boolean", "integer", "number", "string", "array", "object", "null"}
FIELDS = {
    "type", "items", "enum", "ignoreCase", "default", "minimum", "exclusiveMinimum", "maximum", "exclusiveMaximum",
    "field", "aliasOf", "deprecated", "replacedBy", "rejected", "table", "validated", "unknownKeys", "source",
}  # fmt: skip


def history(path: str, field: str) -> list[Any]:
    """Return the values that a fact had, each with the release in which it came."""
    found: list[Any] = []
    for release in RELEASES:
        value = FACTS[release].keys.get(path, {}).get(field)
        if not found or found[-1][1] != value:
            found.append((release, value))
    return found


def test_the_files_are_written_as_the_command_writes_them() -> None:
    assert store.differing(CHECKOUT.derived, store.texts(FACTS)) == []


def test_adding_a_release_writes_the_list_as_it_is(tmp_path: Path) -> None:
    copy = Checkout(tmp_path)
    copy.releases_file.write_bytes(CHECKOUT.releases_file.read_bytes())
    copy.add_release(RELEASES[-1])
    assert copy.releases_file.read_bytes() == CHECKOUT.releases_file.read_bytes()


@pytest.mark.parametrize("release", RELEASES)
def test_every_key_has_well_formed_facts_and_a_section(release: str) -> None:
    keys = FACTS[release].keys
    for path, facts in keys.items():
        assert facts.keys() <= FIELDS, path
        if facts.get("rejected"):
            assert facts.keys() == {"rejected", "table", "source"}, path
            continue
        assert facts["validated"] in {"pydantic", "read"}, path
        assert set(facts["type"] or ()) <= JSON_TYPES, path
        section = path.rpartition(".")[0].removesuffix("[]")
        if section and not section.endswith("*"):
            assert not keys[section].get("rejected"), path
            assert keys[section]["unknownKeys"] in {"reject", "ignore"}, path


@pytest.mark.parametrize("release", RELEASES)
def test_every_optimizer_is_built_by_classes_and_every_scheduler_is_one(release: str) -> None:
    facts: Release = FACTS[release]
    assert all(entry["classes"] for entry in facts.optimizers["names"].values())
    assert facts.schedulers["names"].keys() == facts.schedulers["classes"].keys()


@pytest.mark.parametrize(
    ("path", "field", "expected"),
    [
        ("gradient_clipping", "default", [("0.9.0", 0.0), ("0.19.3", 1.0)]),
        ("steps_per_print", "default", [("0.9.0", 10), ("0.15.2", None)]),
        ("bf16.check_grad_overflow", "default", [("0.9.0", None), ("0.17.1", False), ("0.19.3", True)]),
        ("zero_optimization.offload_param.pin_memory", "default", [("0.9.0", False), ("0.19.5", True)]),
        ("zero_optimization.reduce_bucket_size", "exclusiveMinimum", [("0.9.0", None), ("0.19.6", 0)]),
        ("fp16", "unknownKeys", [("0.9.0", "ignore"), ("0.17.1", "reject")]),
        ("nebula", "rejected", [("0.9.0", None), ("0.19.7", True)]),
        ("zero_optimization.zeropp_loco_param", "rejected", [("0.9.0", None), ("0.19.8", True)]),
        (
            "communication_data_type",
            "enum",
            [("0.9.0", ["fp32", "fp16", "bfp16"]), ("0.14.1", ["fp32", "fp16", "bf16"])],
        ),
    ],
)
def test_changes_that_people_stumble_over_are_there(path: str, field: str, expected: list[Any]) -> None:
    assert history(path, field) == expected


def test_the_newest_release_has_the_facts_that_users_rely_on() -> None:
    keys = NEWEST.keys
    assert keys["zero_optimization.stage"]["enum"] == [0, 1, 2, 3]
    assert keys["zero_optimization.stage3_prefetch_bucket_size"]["field"] == "prefetch_bucket_size"
    assert keys["zero_optimization.cpu_offload"]["replacedBy"] == ["zero_optimization.offload_optimizer"]
    assert keys["zero_optimization"]["type"] == ["boolean", "object"]
    assert keys["bfloat16"]["aliasOf"] == "bf16"
    assert NEWEST.schedulers["classes"]["OneCycle"]["params"]["cycle_min_lr"] == {}
    assert NEWEST.optimizers["engine"]["torch_adam"]["default"] is False
