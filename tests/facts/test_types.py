"""What is written of DeepSpeed's own optimizer and scheduler types agrees with what the releases' code says."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from dsmigrate.facts.sources import FactsError
from dsmigrate.facts.types import types
from dsmigrate.knowledge import MISSING, TypeFacts, knowledge

DERIVED = Path(__file__).resolve().parents[2] / "schemas" / "deepspeed" / "derived"
TAKEN_OUT = {
    "Lamb": {"max_grad_norm"},
    "OneBitAdam": {"max_grad_norm"},
    "OneBitLamb": {"max_grad_norm"},
    "ZeroOneAdam": {"max_grad_norm"},
    "Muon": {"adam_optimizer", "adam_optimizer_kwargs", "fallback_to_inline", "adamw_mode", "overlap_step"}
    | {"amsgrad", "bias_correction", "set_grad_none"},
    "Adam": {"adamw_mode", "overlap_step"},
    "AdamW": {"adamw_mode", "overlap_step"},
}
"""Parameters of the classes that DeepSpeed sets itself, or refuses in a config."""

OF_GROUPS = {"Muon"}
"""Types whose class takes its defaults from the groups that DeepSpeed makes for it."""


def derived(kind: str) -> dict[str, Any]:
    content = json.loads((DERIVED / f"{kind}s.json").read_bytes())
    assert isinstance(content, dict)
    return content


def own() -> list[tuple[TypeFacts, list[dict[str, Any]], dict[str, Any]]]:
    """Every type of DeepSpeed's own with the spans of its name and the facts of its kind."""
    found = []
    for facts in (*knowledge().every_optimizer(), *knowledge().every_scheduler()):
        content = derived(facts.kind)
        spans = content["names"].get(facts.name) or content["names"].get(facts.name.lower())
        if spans is not None and not facts.torch:
            found.append((facts, spans, content))
    return found


def test_every_type_that_a_release_names_is_documented() -> None:
    for kind in ("optimizer", "scheduler"):
        look = knowledge().optimizer if kind == "optimizer" else knowledge().scheduler
        assert [name for name in derived(kind)["names"] if look(name) is None] == []


def test_types_come_and_go_with_the_releases() -> None:
    for facts, spans, _ in own():
        gone = spans[-1]["from"] if spans[-1].get("absent") else None
        assert (facts.since, facts.until) == (spans[0]["from"], gone), facts.path


def test_parameters_and_defaults_are_those_of_the_classes() -> None:
    checked = 0
    for facts, spans, content in own():
        present = next(span for span in reversed(spans) if not span.get("absent"))
        taken: dict[str, list[Any]] = {}
        for built in present["classes"]:
            known = [span for span in content["classes"].get(built, ()) if not span.get("absent")]
            for name, parameter in (known[-1]["params"] if known else {}).items():
                taken.setdefault(name, []).append(parameter.get("default", MISSING))
        missing = taken.keys() - facts.parameters.keys() - TAKEN_OUT.get(facts.name, set())
        assert missing == set(), facts.path
        for name, defaults in taken.items():
            if name not in facts.parameters or facts.name in OF_GROUPS:
                continue
            parameter = facts.parameters[name]
            stated = None if parameter.default is MISSING else parameter.default
            if MISSING in defaults:
                assert parameter.required, f"{facts.path}.{name}"
            else:
                assert stated in defaults, f"{facts.path}.{name}"
            checked += 1
    print(f"parameters: {checked}")
    assert checked > 90


def test_a_default_that_moved_is_told() -> None:
    warmup = knowledge().scheduler("WarmupLR")
    assert warmup is not None
    [event] = warmup.parameters["warmup_max_lr"].changes
    assert (event.version, event.old, event.new) == ("0.17.2", 0.001, None)


@pytest.mark.parametrize(
    ("tables", "says"),
    [
        ({"A": {"summary": "S.", "sumary": "x", "params": []}}, "A: unknown field sumary"),
        ({"A": {"params": ["lr"]}}, "A.lr: no summary or type"),
        ({"B.lr": {"summary": "S."}}, "B.lr: no type B"),
        ({"A": {"params": []}, "A.lr": {"sumary": "x"}}, "A.lr: unknown field sumary"),
    ],
)
def test_tables_of_types_that_cannot_be_used_are_named(tables: dict[str, Any], says: str) -> None:
    with pytest.raises(FactsError, match=says):
        types(tables, {}, "optimizer_types")


def test_a_shared_parameter_is_overridden_field_by_field() -> None:
    tables = {
        "A": {"summary": "S.", "params": ["lr"]},
        "*.lr": {"summary": "Rate.", "type": "number", "default": 0.1},
        "A.lr": {"default": 0.2},
    }
    assert types(tables, {}, "x")["A"]["params"] == {"lr": {"summary": "Rate.", "type": ["number"], "default": 0.2}}
