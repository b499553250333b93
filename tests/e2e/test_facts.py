"""The facts of the newest release, each against DeepSpeed's own config class.

For every key: its default means the same as its absence; ranges, closed lists and types are accepted and rejected as
stated; a section swallows or rejects unknown keys as stated; "auto" does what is stated for plain DeepSpeed, as far as
the config goes. What only shows where the engine uses a key is in test_facts_at_work.py.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pytest

from dsmigrate.knowledge import MISSING, AutoEffect, Consumer, Key, Status

from . import judging
from .facts import boundaries, keys, known, none, show

pytestmark = [pytest.mark.deepspeed, pytest.mark.e2e, pytest.mark.xdist_group("facts")]

Config = dict[str, Any]
Answer = dict[str, str]
WRONG = {"zzz", "[]", "{}"}
CONTEXT: dict[str, Config] = {
    "train_micro_batch_size_per_gpu": {"train_batch_size": 1},
    "optimizer.params": {"optimizer": {"type": "Adam"}},
    "optimizer.params.max_grad_norm": {"optimizer": {"type": "Adam"}},
    "zero_optimization.offload_optimizer.ratio": {"zero_optimization": {"stage": 3}},
    "zero_optimization.compute_grad_norm": {"zero_optimization": {"stage": 2}},
    "fp16.loss_scale_window": {"fp16": {"enabled": True}},
    "fp16.min_loss_scale": {"fp16": {"enabled": True}},
    "data_efficiency.data_sampling.curriculum_learning.enabled": {
        "data_efficiency": {"data_sampling": {"curriculum_learning": {"curriculum_metrics": {"seqlen": {}}}}}
    },
    "data_efficiency.data_sampling.dynamic_batching.enabled": {
        "data_efficiency": {"data_sampling": {"dynamic_batching": {"max_tokens": 1, "metrics_path": "x"}}}
    },
    "data_efficiency.data_sampling.dynamic_batching.max_tokens": {
        "data_efficiency": {"data_sampling": {"dynamic_batching": {"enabled": True, "metrics_path": "x"}}}
    },
}
"""What must stand beside a key for its values to be judged alone."""


def judge(configs: Sequence[Config], *, cuda: bool = True) -> list[Answer]:
    """Return DeepSpeed's answer to each config, where there is CUDA, as its config asks in one place, or is not."""
    return judging.ask_again("fact_judge.py", configs, *(["--cuda"] if cuda else []))


def placed(key: Key, value: object) -> Config:
    """Return a config that holds ``value`` at the path of ``key`` and nothing else that matters."""
    config: Config = json.loads(json.dumps(CONTEXT.get(key.path, {})))
    if key.path != "train_micro_batch_size_per_gpu":
        config["train_micro_batch_size_per_gpu"] = 1
    place = config
    names = key.path.split(".")
    for name in names[:-1]:
        place = place.setdefault(name, {})
    if value is not MISSING:
        place[names[-1]] = value
    return config


def test_a_stated_default_means_the_same_as_absence() -> None:
    # A deprecated key acts when it is written at all; what DeepSpeed's config classes do not read, they keep as it is.
    stated = [
        key
        for key in keys()
        if key.default is not MISSING and not key.is_section and key.status is not Status.DEPRECATED
    ]
    answers = judge([placed(key, value) for key in stated for value in (MISSING, key.default)])
    different = {
        key.path: (absent, given)
        for key, absent, given in zip(stated, answers[::2], answers[1::2], strict=True)
        if "error" in given or (absent != given and key.is_read_by_config)
    }
    show("defaults that mean absence", len(stated) - len(different))
    none(different)
    assert len(stated) > 280


def test_ranges_and_closed_lists_hold() -> None:
    cases = [
        (key, value, accepted)
        for key in keys()
        for value, accepted in boundaries(key)
        if accepted or key.rejects_wrong_values  # the others are refused by the engine, if at all
    ]
    cases += [(key, "zzz", False) for key in keys() if key.rejects_values_not_listed]
    answers = judge([placed(key, value) for key, value, _ in cases])
    wrong = {
        f"{key.path} = {value!r}, said to be {'accepted' if accepted else 'rejected'}": answer.get("error", "accepted")
        for (key, value, accepted), answer in zip(cases, answers, strict=True)
        if accepted is ("error" in answer)
    }
    show("boundary and list values", len(cases))
    none(wrong)
    assert len(cases) > 100


SAMPLES: dict[str, tuple[object, ...]] = {
    "boolean": (True, False),
    "integer": (3,),
    "number": (0.5,),
    "string": ("zzz",),
    "array": ([],),
    "object": ({},),
    "null": (None,),
}
LAX = {
    "boolean": {"integer"},  # 0 and 1; 3 is tried and refused, see below
    "integer": {"boolean"},  # True is 1
    "number": {"boolean", "integer"},
    "string": set[str](),
    "array": set[str](),
    "object": set[str](),
    "null": set[str](),
}
"""What pydantic takes beside a type, as Python sees True as 1."""


def test_types_that_are_checked_reject_every_other_type() -> None:
    cases = []
    for key in keys():
        if not (key.is_checked and key.rejects_wrong_values) or key.enum or key.is_section:
            continue
        taken = set(key.type).union(*(LAX[kind] for kind in key.type))
        cases += [(key, value) for kind, values in SAMPLES.items() if kind not in taken for value in values]
    answers = judge([placed(key, value) for key, value in cases])
    accepted = {
        f"{key.path} = {value!r}": "accepted, though its type is " + " or ".join(key.type)
        for (key, value), answer in zip(cases, answers, strict=True)
        if "error" not in answer
    }
    show("values of a wrong type that are rejected", len(cases) - len(accepted))
    none(accepted)
    assert len(cases) > 400


def test_keys_that_are_not_checked_take_a_value_of_any_type() -> None:
    plain = [key for key in keys() if not key.is_section and not (key.is_checked and key.rejects_wrong_values)]
    answers = judge([placed(key, ["zzz"]) for key in plain])
    wrong = {
        key.path: answer.get("error", "accepted")
        for key, answer in zip(plain, answers, strict=True)
        if ("error" in answer) is not key.rejects_wrong_values
    }
    show("unchecked keys", len(plain))
    none(wrong)


def test_every_section_treats_unknown_keys_as_stated() -> None:
    sections = [key for key in keys() if key.is_section and "object" in key.type]
    empty = judge([placed(key, {}) for key in sections])
    answers = judge([placed(key, {"zzz_unknown": 1}) for key in sections])
    top = judge([{"train_micro_batch_size_per_gpu": 1, "zzz_unknown": 1}])[0]
    wrong = {
        key.path: answer.get("error", "swallowed")
        for key, without, answer in zip(sections, empty, answers, strict=True)
        if "error" in without or ("error" in answer) is not key.rejects_unknown_keys
    }
    show("sections", len(sections))
    none(wrong)
    assert "error" not in top


def test_an_empty_section_is_none_unless_stated() -> None:
    sections = [key for key in keys() if key.is_section and "object" in key.type and key.is_read_by_config]
    absent, empty = judge([placed(key, MISSING) for key in sections]), judge([placed(key, {}) for key in sections])
    counts = {key.path for key, without, answer in zip(sections, absent, empty, strict=True) if without != answer}
    assert counts == {key.path for key in sections if key.counts_empty}


def test_auto_does_what_is_stated_for_plain_deepspeed() -> None:
    every = keys()
    read_beside = {"allgather_size": {"zero_optimization": True}}
    absent = judge([placed(key, MISSING) | read_beside.get(key.path, {}) for key in every])
    answers = judge([placed(key, "auto") | read_beside.get(key.path, {}) for key in every])
    wrong = {}
    for key, without, answer in zip(every, absent, answers, strict=True):
        stated = key.auto(Consumer.DEEPSPEED).effect
        if "error" in answer:
            holds = stated is AutoEffect.CONFIG_ERROR
        elif stated is AutoEffect.DEFAULT:
            holds = answer == without
        else:
            holds = stated is not AutoEffect.CONFIG_ERROR
        if not holds:
            wrong[key.path] = (stated.value, answer.get("error", "accepted"))
    show('keys whose "auto" was judged', len(every))
    none(wrong)
    assert len(every) > 370


def test_removed_keys_are_rejected_even_when_they_are_off() -> None:
    gone = [key for path in known().every_path() if (key := known().key(path)) and "*" not in path]
    tables = [key for key in gone if key.status is Status.REJECTED and key.parent in {"", "zero_optimization"}]
    answers = judge([placed(key, {"enabled": False} if key.is_section else False) for key in tables])
    none({key.path: answer for key, answer in zip(tables, answers, strict=True) if "error" not in answer})
    assert len(tables) >= 14


def test_auto_that_stays_text_is_kept_by_the_config() -> None:
    kept = [
        key
        for key in keys()
        if not key.is_section and key.is_read_by_config and key.auto(Consumer.DEEPSPEED).effect is AutoEffect.TEXT
    ]
    absent, answers = judge([placed(key, MISSING) for key in kept]), judge([placed(key, "auto") for key in kept])
    lost = {key.path: new for key, old, new in zip(kept, absent, answers, strict=True) if old == new}
    show('keys that keep "auto" as a text', len(kept) - len(lost))
    none(lost)
    assert len(kept) > 40


def test_gds_is_refused_where_there_is_no_cuda() -> None:
    key = known().key("aio.use_gds")
    assert key is not None
    values: list[object] = [True, 1, "auto", "false", ["zzz"], {"zzz": 1}, False, 0, None, "", [], {}]
    answers = judge([placed(key, value) for value in values], cuda=False)
    wrong = {
        str(value): answer.get("error", "accepted")
        for value, answer in zip(values, answers, strict=True)
        if ("GDS" in answer.get("error", "")) is not bool(value) or ("error" in answer) is not bool(value)
    }
    none(wrong)
    assert "AssertionError" in key.trap
