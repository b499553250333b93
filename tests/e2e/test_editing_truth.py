"""What hints, hovers and the summary say a file comes to, against the real DeepSpeed.

Batch sizes, formats and defaults of a few hundred generated configs are those of DeepSpeedConfig; gradient buffers are
those that real engines allocate; learning rates are those of the real schedules.
"""

from __future__ import annotations

import functools
import itertools
import json
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

import pytest

from dsmigrate.document import parse
from dsmigrate.editing import View
from dsmigrate.editing.derived import course, in_force, precision, size, triad
from dsmigrate.editing.hints import Kind, hints
from dsmigrate.editing.summary import summary
from dsmigrate.knowledge import knowledge
from dsmigrate.rules import Facts, Settings
from dsmigrate.rules.batch._shared import MICRO, STEPS, TOTAL, text
from dsmigrate.rules.context import UNKNOWN
from tests.document.texts import seeded
from tests.rules.agreement.valid import valid

from . import judging
from .launching import free_port

pytestmark = [pytest.mark.deepspeed, pytest.mark.e2e, pytest.mark.xdist_group("facts")]

Config = dict[str, Any]
CONFIGS = 400
BUCKET = "zero_optimization.reduce_bucket_size"
SHORT = {"torch.float32": "fp32", "torch.float16": "fp16", "torch.bfloat16": "bf16"}
FIELDS = {
    "gradient_clipping": "gradient_clipping",
    "zero_optimization": "zero_config",
    "fp16": "float16_config",
    "bf16": "bfloat16_config",
}
"""Attributes of DeepSpeedConfig by the section that they come from."""


@functools.cache
def port() -> str:
    """Return where the judge, which is one process, meets itself."""
    return str(free_port())


def ask(questions: Sequence[Config]) -> list[Config]:
    """Return DeepSpeed's answer to each question."""
    return judging.ask_again("editing_judge.py", questions, port())


def view_of(config: Config, world: int | None = None) -> View:
    return View(parse(json.dumps(config, indent=2)), Settings(facts=Facts(world_size=world)))


@pytest.fixture(scope="module")
def accepted() -> list[tuple[View, Config, int]]:
    """Generated configs that DeepSpeedConfig accepts: the view, its whole state, the number of processes."""
    rng = seeded(20261120)
    drawn = [valid(rng, knowledge()) for _ in range(CONFIGS)]
    answers = ask([{"config": config, "world": world} for config, world in drawn])
    found = [
        (view_of(config, world), answer["state"], world)
        for (config, world), answer in zip(drawn, answers, strict=True)
        if "state" in answer
    ]
    print(f"configs that DeepSpeed accepts: {len(found)} of {len(drawn)}")
    assert len(found) > CONFIGS * 0.6
    return found


def test_batch_sizes_are_those_of_deepspeed(accepted: list[tuple[View, Config, int]]) -> None:
    derived = 0
    for view, state, world in accepted:
        if "data_parallel_size" in view.text and "sequence_parallel_size" in view.text:
            continue  # a mesh, which initialize makes before it reads the config
        found = triad(view.context)
        assert found is not None, view.text
        assert found.fits
        for key in (TOTAL, MICRO, STEPS):
            assert found.value(key) == state[key], (key, world, view.text)
        total = text(state[TOTAL])  # a float with `sequence_parallel_size`
        assert found.effective == total
        assert summary(view).endswith((f" · batch {total}", " · batch by ZenFlow"))
        derived += len(found.formulas)
        told = "; ".join(hint.tooltip for hint in hints(view) if hint.kind is Kind.DERIVED)
        for key in found.formulas:
            value = re.search(rf"`{key}` = (?:[^,]*= )?([\d.]+?)(?:,|\. )", told)
            assert value is not None, (key, told)
            assert float(value[1]) == state[key]
    print(f"batch sizes that were derived: {derived}")
    assert derived > 200


def test_keys_that_deepspeed_rejects_for_their_batch_do_not_fit() -> None:
    rng = seeded(7)
    drawn = []
    for _ in range(300):
        world = rng.choice((1, 2, 3, 4, 8))
        values = {key: rng.choice((1, 2, 3, 4, 8, 12, 64)) for key in (TOTAL, MICRO, STEPS)}
        keys = rng.sample((TOTAL, MICRO, STEPS), rng.choice((1, 2, 2, 3)))
        drawn.append(({key: values[key] for key in keys}, world))
    answers = ask([{"config": config, "world": world} for config, world in drawn])
    verdicts: Counter[bool] = Counter()
    for (config, world), answer in zip(drawn, answers, strict=True):
        found = triad(view_of(config, world).context)
        fits = found is not None and found.fits
        assert fits is ("state" in answer), (config, world, answer)
        verdicts[fits] += 1
        if found is not None and fits:
            assert [found.value(key) for key in (TOTAL, MICRO, STEPS)] == [
                answer["state"][key] for key in (TOTAL, MICRO, STEPS)
            ]
        unknown = triad(view_of(config).context)
        if unknown is not None and unknown.needed is not None:
            assert (unknown.needed == world) is fits
    print(f"batch keys that fit, and that do not: {verdicts}")
    assert min(verdicts[True], verdicts[False]) > 50


def test_formats_are_those_of_deepspeed(accepted: list[tuple[View, Config, int]]) -> None:
    modes: Counter[str | None] = Counter()
    for view, state, _ in accepted:
        found = precision(view.context)
        fp16, bf16 = state["float16_config"]["enabled"], state["bfloat16_config"]["enabled"]
        assert found.weights == ("fp16" if fp16 else "bf16" if bf16 else "fp32"), view.text
        assert bool(found.autocast) is bool(state["torch_autocast_enabled"]) or found.autocast is None
        if state["communication_data_type"] is not None and "data_parallel_size" not in view.text:
            assert found.communication == SHORT[state["communication_data_type"]], view.text
        modes[found.weights] += 1
    print(f"formats of weights: {dict(modes)}")
    assert min(modes[name] for name in ("fp16", "bf16", "fp32")) > 20


def test_what_is_in_force_is_what_deepspeed_has(accepted: list[tuple[View, Config, int]]) -> None:
    checked: Counter[str] = Counter()
    for view, state, _ in accepted:
        zero = state["zero_config"]
        for name in ("stage", "overlap_comm", "reduce_bucket_size", "sub_group_size", "reduce_scatter"):
            value = in_force(view.context, f"zero_optimization.{name}")
            assert value is not UNKNOWN
            assert value == zero[name], (name, view.text)
            checked[name] += 1
        for part in ("offload_optimizer", "offload_param"):
            section = zero[part] or {"device": "none"}
            assert in_force(view.context, f"zero_optimization.{part}.device") == section["device"], view.text
            checked[part] += section["device"] != "none"
    print(f"values in force: {dict(checked)}")
    assert checked["offload_optimizer"] > 10


def attribute(state: Config, path: str) -> object:
    """Return what DeepSpeedConfig has for the key at a path."""
    first, *rest = path.split(".")
    value: Any = state[FIELDS[first]]
    for name in rest:
        value = value[name if name in value else name.removeprefix("stage3_")]
    return value


def test_defaults_in_hints_are_those_of_deepspeed(accepted: list[tuple[View, Config, int]]) -> None:
    told: Counter[str] = Counter()
    for view, state, _ in accepted:
        for hint in hints(view):
            address = re.search(r"docs/keys/(\w+)\.md#(\w+)", hint.tooltip)
            if hint.kind is not Kind.DEFAULT or address is None or address[1].endswith("_types"):
                continue
            name, _, value = hint.text.removesuffix(" (default)").partition(": ")
            key = next(
                key
                for path in view.known.every_path()
                if (key := view.known.key(path)) is not None and key.decisive and path.replace(".", "") == address[2]
            )
            assert key.name.startswith(name.removesuffix("…"))
            if key.path.startswith("torch_autocast."):
                assert state["torch_autocast_enabled"] == json.loads(value)
            else:
                assert attribute(state, key.path) == json.loads(value), (key.path, view.text)
            told[key.path] += 1
    print(f"defaults in hints: {dict(told)}")
    assert told["gradient_clipping"] > 100
    assert told["zero_optimization.stage"] > 2
    assert told["zero_optimization.offload_optimizer.pin_memory"] > 2
    assert told["zero_optimization.stage3_gather_16bit_weights_on_model_save"] > 20


def engines() -> Iterator[Config]:
    """Yield configs whose engines hold gradients in different ways."""
    modes: tuple[Config, ...] = ({}, {"bf16": {"enabled": True}}, {"fp16": {"enabled": True}})
    zeros: tuple[Config, ...] = (
        {},
        {"overlap_comm": True},
        {"contiguous_gradients": False},
        {"reduce_scatter": False, "overlap_comm": True},
    )
    others: tuple[Config, ...] = (
        {},
        {"communication_data_type": "fp32"},
        {"communication_data_type": "bf16"},
        {"data_types": {"grad_accum_dtype": "fp32"}},
    )
    for stage, mode, zero, other in itertools.product((1, 2, 3), modes, zeros, others):
        section = {"stage": stage, "reduce_bucket_size": 1000, **zero}
        yield {"train_micro_batch_size_per_gpu": 1, "zero_optimization": section, **mode, **other}


def test_gradient_buffers_are_those_of_real_engines() -> None:
    configs = list(engines())
    answers = ask([{"config": config, "engine": True} for config in configs])
    key = knowledge().key(BUCKET)
    assert key is not None
    compared: Counter[int] = Counter()
    for config, answer in zip(configs, answers, strict=True):
        if "error" in answer:
            assert "overlap" in answer["error"] or "reduce" in answer["error"], (config, answer)
            continue
        context = view_of(config).context
        found = precision(context)
        assert (found.weights, found.communication) == (SHORT[answer["weights"]], SHORT[answer["communication"]])
        assert (found.sums, found.weights) == (SHORT[answer["sums"]], SHORT[answer["model"]])
        expected = size(context, key, context.number(BUCKET))
        buffers = [] if expected is None else [[expected.format, expected.elements]] * expected.copies
        assert [[SHORT[name], count] for name, count in answer["buffers"]] == buffers, (config, answer)
        if answer["masters"] != "None":
            assert found.masters == SHORT[answer["masters"]], (config, answer)
        compared[len(buffers)] += 1
    print(f"engines by the number of their gradient buffers: {dict(compared)}")
    assert min(compared[0], compared[1], compared[2]) > 10


def schedules() -> Iterator[tuple[str, Config]]:
    """Yield schedules with their parameters."""
    for how, warmup, low in itertools.product(("log", "linear"), (1, 5, 20), (0.0, 1e-5)):
        common = {"warmup_num_steps": warmup, "warmup_type": how}
        yield "WarmupLR", {**common, "warmup_min_lr": low}
        yield "WarmupLR", {**common, "warmup_min_lr": low, "warmup_max_lr": 3e-4}
        yield "WarmupDecayLR", {**common, "warmup_min_lr": low, "warmup_max_lr": 3e-4, "total_num_steps": 60}
        yield "WarmupDecayLR", {**common, "warmup_min_lr": low, "total_num_steps": 60}
        yield "WarmupCosineLR", {**common, "total_num_steps": 60}


def test_the_course_of_the_rate_is_that_of_the_real_schedule() -> None:
    drawn = list(schedules())
    steps = [0, 1, *range(2, 21), 40, 60, 90]
    answers = ask([{"schedule": name, "params": params, "lr": 2e-4, "steps": steps} for name, params in drawn])
    for (name, params), answer in zip(drawn, answers, strict=True):
        rates = {int(step): rate for step, rate in answer["rates"].items()}
        config = {
            "optimizer": {"type": "AdamW", "params": {"lr": 2e-4}},
            "scheduler": {"type": name, "params": params},
        }
        told = re.fullmatch(
            r"(?:(\S+) → |up to )(.+) over (\d+) steps \((\w+)\), then (.+)", course(view_of(config).context)
        )
        assert told is not None, config
        start, peak, length, how, rest = told.groups()
        top = 2e-4 if peak == "the optimizer's lr" else float(peak)
        assert how == params["warmup_type"]
        # WarmupCosineLR falls already in the step that the other schedules reach the peak with
        assert rates[int(length)] == pytest.approx(top, rel=5e-3 if name == "WarmupCosineLR" else 1e-6)
        assert all(rates[step] < top for step in range(1, int(length) - 1))
        if start is not None:
            assert rates[0] == pytest.approx(float(start))
        if rest == "constant":
            assert rates[90] == pytest.approx(top)
        else:
            assert rest.endswith("until step 60")
            assert rates[90] == rates[60] < rates[40] < top
    print(f"schedules: {len(drawn)}")
