"""The facts of the newest release, each against DeepSpeed's own config class.

For every key: its default means the same as its absence; ranges, closed lists and types are accepted and rejected as
stated; a section swallows or rejects unknown keys as stated; "auto" does what is stated for plain DeepSpeed.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from dsmigrate.knowledge import MISSING, AutoEffect, Consumer, Key, Knowledge, Status, knowledge

from .launching import free_port, torch_python, training_environment

pytestmark = [pytest.mark.deepspeed, pytest.mark.e2e, pytest.mark.xdist_group("facts")]

Config = dict[str, Any]
Answer = dict[str, str]
WRONG = {"zzz", "[]", "{}"}
CONTEXT: dict[str, Config] = {
    "train_micro_batch_size_per_gpu": {"train_batch_size": 1},
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

NOT_HERE = {"aio.use_gds": "any value that counts as true is refused where there is no CUDA"}
"""Keys that this machine cannot judge."""


def judge(configs: Sequence[Config], *options: str) -> list[Answer]:
    """Return DeepSpeed's answer to each config."""
    child = subprocess.run(
        [torch_python(), str(Path(__file__).with_name("fact_judge.py")), *options],
        input="".join(json.dumps(config) + "\n" for config in configs),
        capture_output=True,
        text=True,
        env=training_environment(),
        timeout=600,
        check=False,
    )
    answers = [json.loads(line) for line in child.stdout.splitlines()]
    assert len(answers) == len(configs), child.stderr[-2000:]
    return answers


def known() -> Knowledge:
    return knowledge()


def keys() -> list[Key]:
    """Every key that the newest release has, free names and list elements left out: they have no fixed place."""
    found = [known().key(path) for path in known().every_path()]
    return [
        key
        for key in found
        if key is not None
        and key.status in {Status.PRESENT, Status.DEPRECATED}
        and "*" not in key.path
        and "[]" not in key.path
        and key.alias_of is None
        and key.path not in NOT_HERE
    ]


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


def show(what: str, count: int) -> None:
    print(f"{what}: {count}")


def none(wrong: dict[str, Any]) -> None:
    """Fail with a line for each fact that does not hold."""
    assert not wrong, "\n".join(["", *(f"{fact}: {found}" for fact, found in wrong.items())])


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


def boundaries(key: Key) -> Iterator[tuple[object, bool]]:
    """Yield values at the edges of what ``key`` takes, each with whether it is accepted."""
    step = 1 if key.type[:1] == ("integer",) else 0.001
    if key.minimum is not None:
        yield from ((key.minimum, True), (key.minimum - step, False))
    if key.exclusive_minimum is not None:
        yield from ((key.exclusive_minimum, False), (key.exclusive_minimum + step, True))
    if key.maximum is not None:
        yield from ((key.maximum, True), (key.maximum + step, False))
    if key.exclusive_maximum is not None:
        yield from ((key.exclusive_maximum, False), (key.exclusive_maximum - step, True))
    for value in key.enum:
        yield (value, True)
        if key.ignores_case and isinstance(value, str):
            yield (value.swapcase(), True)


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


def test_auto_does_what_is_stated_for_plain_deepspeed() -> None:
    plain = [key for key in keys() if not key.is_section]
    absent = judge([placed(key, MISSING) for key in plain])
    answers = judge([placed(key, "auto") for key in plain])
    wrong = {}
    for key, without, answer in zip(plain, absent, answers, strict=True):
        stated = key.auto(Consumer.DEEPSPEED).effect
        if "error" in answer:
            holds = stated is AutoEffect.CONFIG_ERROR
        elif stated is AutoEffect.DEFAULT:
            holds = answer == without
        else:
            holds = stated is not AutoEffect.CONFIG_ERROR
        if not holds:
            wrong[key.path] = (stated.value, answer.get("error", "accepted"))
    show('keys whose "auto" was judged', len(plain))
    none(wrong)


def test_removed_keys_are_rejected_even_when_they_are_off() -> None:
    gone = [key for path in known().every_path() if (key := known().key(path)) and "*" not in path]
    tables = [key for key in gone if key.status is Status.REJECTED and key.parent in {"", "zero_optimization"}]
    answers = judge([placed(key, {"enabled": False} if key.is_section else False) for key in tables])
    none({key.path: answer for key, answer in zip(tables, answers, strict=True) if "error" not in answer})
    assert len(tables) >= 14


NEEDS_MORE = {
    "data_efficiency.data_sampling.": "a training set with the files of its analysis",
    "data_efficiency.seed": "a training set with the files of its analysis",
    "data_efficiency.data_routing.random_ltd.hidden_state_order": "the script's call of convert_to_random_ltd",
    "data_efficiency.data_routing.random_ltd.model_mask_name": "the script's call of convert_to_random_ltd",
    "data_efficiency.data_routing.random_ltd.model_type": "the script's call of convert_to_random_ltd",
    "data_efficiency.data_routing.random_ltd.random_ltd_layer_id": "the script's call of convert_to_random_ltd",
    "expert_parallel.": "a model with experts",
    "pipeline.": "a PipelineModule",
    "checkpoint.writer.": "the deepspeed launcher, which says how many nodes there are",
    "tensor_parallel.": "several processes",
    "weight_quantization.": "a model under zero.Init with quantization",
    "autotuning.": "the autotuner's own launcher",
    "data_types.buffer_dtype": "a cast of the module's buffers, which 16-bit training without ZeRO 3 does",
}
"""Where the engine reads a key only with something that no config holds; a fact that is judged needs no entry."""


RANDOM_LTD: Config = {
    "enabled": True,
    "total_layer_num": 2,
    "random_ltd_layer_num": 1,
    "random_ltd_layer_id": [0],
    "model_mask_name": "mask",
    "model_type": "decoder",
    "hidden_state_order": "batch_seq_dim",
    "layer_token_lr_schedule": {"enabled": False},
    "random_ltd_schedule": {
        "min_value": 16,
        "max_value": 32,
        "schedule_type": "fixed_linear",
        "schedule_config": {"require_steps": 10, "seq_per_step": 8},
    },
}
AT_WORK: dict[str, Config] = {
    "data_efficiency.data_routing.": {
        "data_efficiency": {"enabled": True, "data_routing": {"enabled": True, "random_ltd": RANDOM_LTD}}
    },
    "expert_parallel.": {"expert_parallel": {"comm_max_tokens_per_rank": 8}},
    "scheduler.params": {"scheduler": {"type": "WarmupLR", "params": {}}},
}
"""A section that works, where one key alone says nothing."""


def at_work(key: Key, value: object) -> Config:
    """Return a config that holds ``value`` at a key, and beside it all that the key needs to do anything.

    MISSING leaves the key as the working section has it.
    """
    config = placed(key, MISSING)
    for start, section in AT_WORK.items():
        if key.path.startswith(start):
            config |= json.loads(json.dumps(section))
    needed = [(path, values[0]) for path, values in key.effective_when.items() if "*" not in path]
    for path, wanted in [*needed, *([] if value is MISSING else [(key.path, value)])]:
        place = config
        names = path.split(".")
        for name in names[:-1]:
            place = place.setdefault(name, {})
        place[names[-1]] = wanted
    return config


def engine(configs: Sequence[Config]) -> list[Answer]:
    """Return how far the engine comes with each config: see rule_judge.py."""
    asked = "".join(json.dumps({"config": config, "worlds": [1], "deep": True}) + "\n" for config in configs)
    child = subprocess.run(
        [torch_python(), str(Path(__file__).with_name("rule_judge.py")), str(free_port())],
        input=asked,
        capture_output=True,
        text=True,
        env=training_environment(),
        timeout=600,
        check=False,
    )
    answers = [json.loads(line) for line in child.stdout.splitlines()]
    assert len(answers) == len(configs), child.stderr[-2000:]
    return answers


def unconfirmed(cases: Sequence[tuple[Key, object]]) -> tuple[dict[str, Any], int]:
    """Return the keys at which a value does not fail in the engine, and how many do.

    A failure counts when the same config without the value is accepted. Keys of ``NEEDS_MORE`` may stay unconfirmed.
    """
    answers = engine([config for key, value in cases for config in (at_work(key, MISSING), at_work(key, value))])
    wrong, confirmed = {}, 0
    for (key, value), without, with_it in zip(cases, answers[::2], answers[1::2], strict=True):
        if without["verdict"] == "accepted" and with_it["verdict"] in {"engine", "step"}:
            confirmed += 1
        elif not key.path.startswith(tuple(NEEDS_MORE)):
            wrong[f"{key.path} = {value!r}"] = (without, with_it)
    return wrong, confirmed


def test_auto_that_stays_text_is_kept_by_the_config() -> None:
    kept = [
        key
        for key in keys()
        if not key.is_section and key.is_read_by_config and key.auto(Consumer.DEEPSPEED).effect is AutoEffect.TEXT
    ]
    read_otherwise = {"allgather_size"}  # only beside the deprecated `zero_optimization: true`
    absent, answers = judge([placed(key, MISSING) for key in kept]), judge([placed(key, "auto") for key in kept])
    lost = {key.path: new for key, old, new in zip(kept, absent, answers, strict=True) if old == new}
    show('keys that keep "auto" as a text', len(kept) - len(lost))
    assert lost.keys() == read_otherwise


def test_auto_that_is_said_to_stop_the_engine_stops_it() -> None:
    said = [key for key in keys() if key.auto(Consumer.DEEPSPEED).effect is AutoEffect.ENGINE_ERROR]
    wrong, confirmed = unconfirmed([(key, "auto") for key in said])
    show(f'of {len(said)} keys said to stop the engine with "auto", confirmed', confirmed)
    none(wrong)
    assert confirmed >= 41


def test_closed_lists_and_limits_that_the_engine_checks_are_checked() -> None:
    later = [key for key in keys() if not key.rejects_wrong_values or (key.enum and not key.rejects_values_not_listed)]
    cases: list[tuple[Key, object]] = [(key, "zzz") for key in later if key.enum]
    cases += [(key, value) for key in later if not key.enum for value, accepted in boundaries(key) if not accepted]
    wrong, confirmed = unconfirmed(cases)
    show(f"of {len(cases)} values that only the engine refuses, confirmed", confirmed)
    none(wrong)
    assert confirmed >= 19
