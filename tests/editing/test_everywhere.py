"""Hover, hints and summary survive whatever a file holds, at every offset, and never point outside of it."""

from __future__ import annotations

import random
import re
from collections.abc import Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dsmigrate.document import parse
from dsmigrate.editing import View
from dsmigrate.editing.hints import hints
from dsmigrate.editing.hover import hover_at, plain
from dsmigrate.editing.summary import summary
from dsmigrate.knowledge import Consumer
from dsmigrate.rules import Facts, Settings
from tests.document.texts import GENERAL, NO_CORPUS, SEEDS, TEXTS, corpus, seeded

pytestmark = pytest.mark.broad

VERSIONS = (None, "0.9.0", "0.14.0", "0.17.1", "0.19.4")
WORLDS = (None, 1, 2, 8, 0, -3, 10**30)
ODD = (
    *(
        "3",
        "-1",
        "0",
        "0.5",
        "1e-400",
        "1e999",
        "-1e999",
        "NaN",
        "null",
        "true",
        "[]",
        "{}",
        '["a", [1]]',
        '{"stage": []}',
    ),
    *('"two"', '"auto"', '"5e8"', '"\\ud800"', '"a\\u0000b"', '"`**x**`"', f"1{'0' * 400}", f"1{'0' * 4250}", ""),
)
"""Values where others belong."""

CONFIG = """{
  "train_batch_size": 64, "train_micro_batch_size_per_gpu": 4, "gradient_accumulation_steps": 8,
  "sequence_parallel_size": 2, "data_parallel_size": 2, "gradient_clipping": 1.0, "communication_data_type": "fp32",
  "bf16": {"enabled": true, "bf16_master_weights_and_grads": false}, "bfloat16": {"enabled": true},
  "fp16": {"enabled": false, "loss_scale": 0, "initial_scale_power": 16, "hysteresis": 2},
  "torch_autocast": {"enabled": false, "dtype": "bf16", "lower_precision_safe_modules": ["torch.nn.Linear"]},
  "data_types": {"grad_accum_dtype": "fp32"},
  "zero_optimization": {
    "stage": 3, "overlap_comm": null, "contiguous_gradients": true, "reduce_bucket_size": 5e8,
    "allgather_bucket_size": 5e8, "stage3_prefetch_bucket_size": 5e7, "sub_group_size": 1e9,
    "offload_optimizer": {"device": "nvme", "buffer_count": 4, "pin_memory": true},
    "offload_param": {"device": "nvme", "buffer_size": 1e8, "buffer_count": 5, "max_in_cpu": 1e9},
    "leaf_module": {"classes": ["A"]}, "zenflow": {"update_interval": 4}
  },
  "optimizer": {"type": "AdamW", "params": {"lr": 2e-5, "betas": [0.9, 0.95], "torch_adam": false}},
  "scheduler": {"type": "WarmupDecayLR", "params": {"warmup_num_steps": 10, "total_num_steps": 99,"warmup_min_lr": 0}},
  "aio": {"block_size": 1048576, "queue_depth": 8, "intra_op_parallelism": 1},
  "tensor_parallel": {"partition_config": {"layer_specs": [{"patterns": ["a"], "shape": [2, [1, 3]]}]}},
  "data_efficiency": {"data_sampling": {"curriculum_learning": {"curriculum_metrics": {"my.metric": {"x": 1}}}}},
  "amp": {"enabled": false}, "zero_optimization.stage": 3, "bogus": {"deep": [1]}
}
"""
_VALUE = re.compile(r"(?<=: )(?:\[[^\[\]]*\]|\{[^{}]*\}|[^,{}\[\]\n]+)")


def answers(text: str, offsets: Iterable[int], settings: Settings) -> int:
    """Ask everything at the offsets, check that the answers can be shown, and return how many hovers there were."""
    view = View(parse(text), settings)
    encoded = [summary(view)]
    for hint in hints(view):
        assert 0 <= hint.offset <= len(text)
        encoded += [hint.text, hint.tooltip]
    found = 0
    for offset in offsets:
        hover = hover_at(view, offset)
        if hover is not None:
            found += 1
            assert 0 <= hover.start <= min(max(offset, 0), len(text)) <= hover.end <= len(text)
            assert hover.markdown.strip()
            encoded += [hover.markdown, plain(hover.markdown)]
    "".join(encoded).encode("utf-8")
    return found


def chosen(rng: random.Random) -> Settings:
    """Return settings of any kind."""
    facts = Facts(world_size=rng.choice(WORLDS), parameters=rng.choice((None, 7_000_000_000, 10**40)))
    return Settings(version=rng.choice(VERSIONS), consumer=rng.choice(list(Consumer)), facts=facts)


def spoiled(text: str, rng: random.Random) -> str:
    """Return a config with some values replaced by odd ones."""
    values = list(_VALUE.finditer(text))
    for value in sorted(rng.sample(values, min(len(values), rng.randint(1, 5))), key=lambda found: -found.start()):
        text = text[: value.start()] + rng.choice(ODD) + text[value.end() :]
    return text


def test_every_offset_of_a_config_with_everything() -> None:
    for consumer in Consumer:
        assert answers(CONFIG, range(len(CONFIG) + 1), Settings(consumer=consumer)) > 1300


@given(SEEDS)
@GENERAL
def test_odd_values_anywhere(rng: random.Random) -> None:
    text = spoiled(CONFIG, rng)
    answers(text, rng.sample(range(len(text) + 1), 25), chosen(rng))


@given(SEEDS)
@GENERAL
def test_a_config_that_is_being_typed(rng: random.Random) -> None:
    text = CONFIG[: rng.randint(0, len(CONFIG))]
    answers(text, [*rng.sample(range(len(text) + 1), min(len(text), 8)), len(text)], chosen(rng))


@given(TEXTS, SEEDS)
@GENERAL
def test_any_text(text: str, rng: random.Random) -> None:
    answers(text, range(-1, len(text) + 2, 1 + len(text) // 100), chosen(rng))


@given(st.integers(0, 6))
def test_lone_surrogates_of_the_text_itself(place: int) -> None:
    text = '{"a\ud800": 1, "fp16\udc00": {"x": "\ud800"}, "optimizer": {"type": "A\ud800", "params": {"l\ud800": 1}}}'
    answers(text, range(place, len(text), 7), Settings())


def test_deep_nesting() -> None:
    for opening in ('{"zero_optimization": ', "[", '{"optimizer": {"params": {"betas": ['):
        text = opening * 3000
        answers(text, range(0, len(text) + 1, 997), Settings())
        view = View(parse(f'{{"train_batch_size": {"[" * 10_000}'))
        assert summary(view) == "ZeRO off · fp32"
        assert hover_at(view, 5) is not None


@pytest.mark.parametrize(
    "text", ["", "\ufeff", "null", "[1, 2]", "{", "}", ":", '"a', "zero_optimization", "a: 1\nb: 2\n"]
)
def test_texts_that_are_no_config(text: str) -> None:
    answers(text, range(len(text) + 1), Settings())


@pytest.mark.skipif(not corpus(), reason=NO_CORPUS)
def test_every_offset_of_real_configs() -> None:
    found = 0
    for text in corpus().values():
        found += answers(text, range(len(text) + 1), Settings())
    print(f"hovers: {found}")
    assert found > 100_000


@pytest.mark.skipif(not corpus(), reason=NO_CORPUS)
def test_prefixes_of_real_configs_and_odd_values_in_them() -> None:
    rng = seeded(5)
    for text in corpus().values():
        for _ in range(6):
            prefix = text[: rng.randint(0, len(text))]
            answers(prefix, [len(prefix), *rng.sample(range(len(prefix) + 1), min(len(prefix), 5))], chosen(rng))
        odd = spoiled(text, rng)
        answers(odd, rng.sample(range(len(odd) + 1), min(len(odd), 40)), chosen(rng))
