"""What known-bugs.toml must hold, and what of it the package loads."""

from __future__ import annotations

from typing import Any

import pytest

from dsmigrate.facts.known_bugs import compiled, newest, problems, problems_of_packages

RELEASES = ("0.18.0", "0.18.1", "0.18.2")
KNOWN = {"bf16.enabled", "zero_optimization.stage"}


def entry(**other: Any) -> dict[str, Any]:
    found = {
        "what": "it breaks",
        "first": "0.18.0",
        "last": "0.18.1",
        "severity": "error",
        "effect": "crash",
        "keys": ["bf16.enabled"],
        "when": {"bf16.enabled": [True]},
        "source": ["#1"],
        "example": "{}",
        "signs": [{"file": "a.py", "has": ["x"]}],
        **other,
    }
    return {name: value for name, value in found.items() if value is not None}


def test_a_whole_entry_has_no_problems() -> None:
    assert problems({"a": entry()}, RELEASES, KNOWN) == []
    assert problems({"a": entry(last=None)}, RELEASES, KNOWN) == []


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({"source": None}, "lacks source"),
        ({"cure": "none"}, "has the unknown cure"),
        ({"first": "0.17.9"}, "0.17.9 to 0.18.1 are no releases in their order"),
        ({"first": "0.18.1", "last": "0.18.0"}, "0.18.1 to 0.18.0 are no releases in their order"),
        ({"last": "0.18.2"}, "0.18.2 is the newest release"),
        ({"effect": "loud"}, "effect loud is none"),
        ({"what": "it breaks."}, "no full stop"),
        ({"what": "x" * 161}, "161 characters"),
        ({"when": {}}, "no config is spared"),
        ({"keys": ["zero.stage"]}, "refers to zero.stage, which is no key"),
        ({"when": {"bf16.enabled": {"like": True}}}, "neither a list of values nor a comparison"),
        ({"when": {"bf16.enabled": True}}, "neither a list of values nor a comparison"),
        ({"signs": []}, "no sign to verify it by"),
        ({"signs": [{"file": "../a.py", "has": ["x"]}]}, "is no sign"),
        ({"signs": [[{"file": "a.py", "has": ["x"]}, {"file": "b.py"}]]}, "is no sign"),
    ],
)
def test_what_is_wrong_is_told_with_the_name(wrong: dict[str, Any], says: str) -> None:
    found = problems({"a": entry(**wrong)}, RELEASES, KNOWN)
    assert len(found) == 1
    assert found[0].startswith("known-bugs.toml: a: ")
    assert says in found[0]


def test_the_package_loads_the_release_that_is_right_again_and_no_signs() -> None:
    loaded = compiled({"a": entry(), "b": entry(last=None)}, RELEASES)
    assert loaded["a"]["fixed"] == "0.18.2"
    assert "fixed" not in loaded["b"]
    assert all("signs" not in bug for bug in loaded.values())


def test_the_last_release_with_bugs_is_that_of_the_last_bug() -> None:
    assert newest({"a": entry(last="0.18.0"), "b": entry(last="0.18.1")}, RELEASES) == "0.18.1"
    assert newest({"a": entry(last="0.18.0"), "b": entry(last=None)}, RELEASES) == "0.18.2"


def test_a_difference_names_a_package_and_its_releases() -> None:
    packages = {"transformers": ("4.30.2", "4.31.0", "4.32.1")}
    whole = entry(package="transformers", first="4.30.2", last="4.31.0", deepspeed="0.18.1")
    assert problems_of_packages({"a": whole}, packages, RELEASES, KNOWN) == []
    for wrong in ({"package": "trl"}, {"deepspeed": "0.18"}, {"first": "0.18.0"}):
        assert problems_of_packages({"a": {**whole, **wrong}}, packages, RELEASES, KNOWN)
