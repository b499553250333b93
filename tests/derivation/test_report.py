from __future__ import annotations

from dsmigrate.derivation import report
from dsmigrate.derivation.release import Release

OLD = Release(
    {
        "amp": {"type": ["object"], "unknownKeys": "ignore"},
        "amp.enabled": {"type": ["boolean"], "default": False},
        "clip": {"type": ["number"], "default": 0.0},
        "debug": {"type": ["object"], "unknownKeys": "ignore"},
        "debug.level": {"type": None},
        "fp16": {"type": ["object"], "unknownKeys": "ignore"},
        "old": {"type": ["boolean"], "default": None},
        "passes": {"type": ["array"], "items": {"type": ["string"], "enum": ["z1"]}},
        "ratio": {"type": ["number"], "default": 0.1, "minimum": 0.0, "maximum": 1.0},
        "same": {"type": ["integer"], "default": 1, "source": "old/place.py"},
    },
    {
        "names": {"onebitadam": {}},
        "classes": {"FusedAdam": {"params": {"lr": {"default": 0.1}, "eps": {}}}},
        "engine": {},
    },
    {"names": {}, "classes": {}},
)
NEW = Release(
    {
        "amp": {"rejected": True, "table": "_REMOVED"},
        "clip": {"type": ["number"], "default": 1.0},
        "fp16": {"type": ["object"], "unknownKeys": "reject"},
        "fresh": {"type": ["integer", "null"], "default": None, "exclusiveMinimum": 0},
        "old": {"type": ["boolean"], "default": None, "deprecated": True, "replacedBy": ["fresh", "clip"]},
        "passes": {"type": ["array"], "items": {"type": ["string"], "enum": ["z1", "z3"]}},
        "ratio": {"type": ["number"], "default": 0.1, "exclusiveMinimum": 0.0, "maximum": 1.0},
        "same": {"type": ["integer"], "default": 1, "source": "new/place.py"},
    },
    {
        "names": {"muon": {}},
        "classes": {"FusedAdam": {"params": {"lr": {"default": 0.2}, "foreach": {}}}},
        "engine": {},
    },
    {"names": {"WarmupLR": {}}, "classes": {}},
)


def test_every_kind_of_change_is_told() -> None:
    assert (
        report.text(report.differences(OLD, NEW))
        == """\
added (1)
  fresh: integer|null = null, > 0

removed (1)
  debug (with 1 keys below it)

removed and rejected (1)
  amp (by _REMOVED)

default changed (1)
  clip: 0.0 -> 1.0

type changed (1)
  passes: array of string in ["z1"] -> array of string in ["z1", "z3"]

range changed (1)
  ratio: >= 0.0, <= 1.0 -> > 0.0, <= 1.0

newly deprecated (1)
  old: replaced by fresh or clip

unknown-key policy changed (1)
  fp16: ignore -> reject

optimizer added (1)
  muon

optimizer removed (1)
  onebitadam

optimizer parameters changed (3)
  FusedAdam: eps removed
  FusedAdam: foreach added
  FusedAdam: lr: 0.1 -> 0.2

scheduler added (1)
  WarmupLR
"""
    )


def test_equal_releases_have_no_differences() -> None:
    assert report.text(report.differences(OLD, OLD)) == "no differences\n"


def test_a_key_that_stays_rejected_is_not_told_again() -> None:
    assert report.differences(NEW, NEW) == []


def test_keys_without_documentation_are_listed_and_parameters_of_types_are_not() -> None:
    keys = {"a": {}, "b": {}, "optimizer.params.max_grad_norm": {}}
    assert report.undocumented(keys, {"a"}) == ["b"]
