from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from dsmigrate.document import parse
from dsmigrate.editing.hints import Hint, Kind, hints
from dsmigrate.editing.view import View
from dsmigrate.knowledge import AutoEffect, Consumer, knowledge
from dsmigrate.languages import using
from dsmigrate.rules import Settings

from .derived.contexts import view

GOOD = sorted((Path(__file__).parents[1] / "schemas" / "good").rglob("*.*json"))
CLIP = '"gradient_clipping": 0.5'


def shown(view: View) -> str:
    """The text of a file with its hints in place."""
    text = view.text
    for hint in reversed(hints(view)):
        text = f"{text[: hint.offset]}‹{hint.text}›{text[hint.offset :]}"
    return text


@pytest.mark.parametrize(
    ("members", "world", "text"),
    [
        (
            f'"train_micro_batch_size_per_gpu": 4, "gradient_accumulation_steps": 8, {CLIP}',
            None,
            (
                '{"train_micro_batch_size_per_gpu": 4, "gradient_accumulation_steps": 8,'
                f"‹effective batch 4 × 8 × world size› {CLIP}}}"
            ),
        ),
        (
            f'"train_micro_batch_size_per_gpu": 4, {CLIP}',
            2,
            (f'{{"train_micro_batch_size_per_gpu": 4,‹effective batch 4 × 1 × 2 = 8› {CLIP}}}'),
        ),
        (
            f'"train_batch_size": 64, {CLIP}',
            None,
            f'{{"train_batch_size": 64,‹micro-batch 64 / world size› {CLIP}}}',
        ),
        (
            f'"train_batch_size": 41472, "train_micro_batch_size_per_gpu": 162, {CLIP}',
            None,
            (
                '{"train_batch_size": 41472, "train_micro_batch_size_per_gpu": 162,'
                f"‹accumulation 41472 / (162 × world size)› {CLIP}}}"
            ),
        ),
        (
            '"train_batch_size": 64, "train_micro_batch_size_per_gpu": 4, "gradient_accumulation_steps": 8, ' + CLIP,
            None,
            (
                '{"train_batch_size": 64,‹for a world size of 2› "train_micro_batch_size_per_gpu": 4, '
                f'"gradient_accumulation_steps": 8, {CLIP}}}'
            ),
        ),
    ],
)
def test_the_batch_key_that_is_left_out_is_derived(members: str, world: int | None, text: str) -> None:
    assert shown(view(members, world=world)) == text


@pytest.mark.parametrize(
    ("members", "world"),
    [
        ('"train_batch_size": 64, "train_micro_batch_size_per_gpu": 4, "gradient_accumulation_steps": 8', 2),
        ('"train_batch_size": 64, "train_micro_batch_size_per_gpu": 4, "gradient_accumulation_steps": 8', 3),
        ('"train_batch_size": 65, "train_micro_batch_size_per_gpu": 4, "gradient_accumulation_steps": 8', None),
        ('"train_batch_size": "x"', None),
        ('"gradient_accumulation_steps": 8', None),
    ],
)
def test_batch_keys_that_say_it_all_or_do_not_fit_have_no_hint(members: str, world: int | None) -> None:
    assert not [hint for hint in hints(view(members, world=world)) if hint.kind is Kind.DERIVED]


def test_element_counts_have_their_bytes() -> None:
    zero = '"zero_optimization": {"stage": 2, "overlap_comm": true, "reduce_bucket_size": 5e8}'
    assert shown(view(f'{CLIP}, "bf16": {{"enabled": true}}, {zero}')) == (
        f'{{{CLIP}, "bf16": {{"enabled": true}}, "zero_optimization": {{"stage": 2, "overlap_comm": true, '
        '"reduce_bucket_size": 5e8‹2 × 0.93 GiB in bf16, 500 M elements›}}'
    )


@pytest.mark.parametrize(
    ("members", "text"),
    [
        (
            '"aio": {"block_size": 1048576}, "checkpoint": {"writer": {"io_buffer_size": 512}}',
            '{"aio": {"block_size": 1048576‹1 MiB›}, "checkpoint": {"writer": {"io_buffer_size": 512}}',
        ),
        ('"aio": {"block_size": 1048576}', '{"aio": {"block_size": 1048576}'),
        (
            '"fp16": {"enabled": true, "initial_scale_power": 16}, "zero_optimization": {"stage": 1}',
            '{"fp16": {"enabled": true, "initial_scale_power": 16‹= 65536›}, "zero_optimization": {"stage": 1}',
        ),
        (
            '"fp16": {"enabled": false, "initial_scale_power": 16}',
            '{"fp16": {"enabled": false, "initial_scale_power": 16}',
        ),
        (
            '"torch_autocast": {"enabled": true}, "zero_optimization": {"stage": 2, "reduce_bucket_size": 200000000}',
            (
                '{"torch_autocast": {"enabled": true}, '
                '"zero_optimization": {"stage": 2, "reduce_bucket_size": 200000000‹200 M elements›}'
            ),
        ),
        (
            (
                '"zero_optimization": {"stage": 3, "param_persistence_threshold": 100000, '
                '"stage3_gather_16bit_weights_on_model_save": true}'
            ),
            (
                '{"zero_optimization": {"stage": 3, "param_persistence_threshold": 100000,‹391 KiB in fp32, '
                "100 k elements› "
                '"stage3_gather_16bit_weights_on_model_save": true}'
            ),
        ),
        (
            '"zero_optimization": {"stage": 2, "allgather_bucket_size": 5e8}',
            '{"zero_optimization": {"stage": 2, "allgather_bucket_size": 5e8}',
        ),
    ],
)
def test_large_numbers_are_readable_where_they_count(members: str, text: str) -> None:
    assert shown(view(f"{members}, {CLIP}")) == f"{text}, {CLIP}}}"


@pytest.mark.parametrize(
    ("zero", "text"),
    [
        ('"stage": 2, "max_live_parameters": 1e9', '"stage": 2, "max_live_parameters": 1e9‹no effect at ZeRO stage 2›'),
        ('"stage": 2, "zero_quantized_weights": false', '"stage": 2, "zero_quantized_weights": false'),
        (
            '"stage": 2, "leaf_module": {"classes": ["A"]}',
            '"stage": 2, "leaf_module": {‹no effect at ZeRO stage 2›"classes": ["A"]}',
        ),
        (
            '"stage": 2, "offload_param": {"device": "cpu", "buffer_size": 1e8}',
            '"stage": 2, "offload_param": {‹no effect at ZeRO stage 2›"device": "cpu", "buffer_size": 1e8}',
        ),
        ('"stage": 2, "offload_param": {"device": "none"}', '"stage": 2, "offload_param": {"device": "none"}'),
        (
            '"stage": 2, "offload_optimizer": {"device": "none", "pin_memory": true}',
            (
                '"stage": 2, "offload_optimizer": {"device": "none", "pin_memory": true‹no effect: '
                "offload_optimizer is on none›}"
            ),
        ),
        ('"stage": 0, "sub_group_size": 1e9', '"stage": 0, "sub_group_size": 1e9'),
    ],
)
def test_what_zero_does_not_look_at_is_marked_once(zero: str, text: str) -> None:
    assert shown(view(f'"zero_optimization": {{{zero}}}, {CLIP}')) == f'{{"zero_optimization": {{{text}}}, {CLIP}}}'


def test_auto_is_followed_by_what_fills_it() -> None:
    members = f'"optimizer": {{"type": "Lamb", "params": {{"lr": "auto"}}}}, {CLIP}'
    assert shown(view(members, consumer=Consumer.TRANSFORMERS)) == (
        f'{{"optimizer": {{"type": "Lamb", "params": {{"lr": "auto"‹= TrainingArguments.learning_rate›}}}}, {CLIP}}}'
    )
    assert shown(view(members)) == f"{{{members}}}"  # an error in plain DeepSpeed: a diagnostic's business


def test_auto_that_deepspeed_drops_is_followed_by_the_default() -> None:
    members = f'"zero_optimization": {{"stage": 2, "reduce_bucket_size": "auto"}}, {CLIP}'
    assert shown(view(members)) == (
        f'{{"zero_optimization": {{"stage": 2, "reduce_bucket_size": "auto"‹= 500000000, the default›}}, {CLIP}}}'
    )


@pytest.mark.parametrize(
    ("members", "version", "text"),
    [
        ('"steps_per_print": 5', None, '{"steps_per_print": 5‹gradient_clipping: 1.0 (default)›}'),
        ('"steps_per_print": 5', "0.19.2", '{"steps_per_print": 5‹gradient_clipping: 0.0 (default)›}'),
        (
            f'{CLIP}, "zero_optimization": {{"overlap_comm": true}}',
            None,
            f'{{{CLIP}, "zero_optimization": {{"overlap_comm": true‹stage: 0 (default)›}}}}',
        ),
        (
            f'{CLIP}, "zero_optimization": {{"stage": 3}}',
            None,
            (f'{{{CLIP}, "zero_optimization": {{"stage": 3‹stage3_gather_16bit_weigh…: false (default)›}}}}'),
        ),
        (
            f'{CLIP}, "zero_optimization": {{"stage": 2, "offload_optimizer": {{"device": "cpu"}}}}',
            "0.19.4",
            (
                f'{{{CLIP}, "zero_optimization": {{"stage": 2, "offload_optimizer": {{"device": "cpu"‹pin_memory: '
                f"false "
                "(default)›}}}"
            ),
        ),
        (f'{CLIP}, "bf16": {{}}', None, f'{{{CLIP}, "bf16": {{‹enabled: false (default)›}}}}'),
        (f'{CLIP}, "bfloat16": {{}}', None, f'{{{CLIP}, "bfloat16": {{‹enabled: false (default)›}}}}'),
        (
            f'{CLIP}, "optimizer": {{"type": "AdamW", "params": {{"lr": 1}}}}',
            None,
            f'{{{CLIP}, "optimizer": {{"type": "AdamW", "params": {{"lr": 1‹weight_decay: 0.0 (default)›}}}}}}',
        ),
        (
            f'{CLIP}, "optimizer": {{"type": "AdamW", "params": {{"torch_adam": true}}}}',
            None,
            f'{{{CLIP}, "optimizer": {{"type": "AdamW", "params": {{"torch_adam": true}}}}}}',
        ),
        (
            f'{CLIP}, "scheduler": {{"type": "WarmupDecayLR", "params": {{"total_num_steps": 9}}}}',
            None,
            (
                f'{{{CLIP}, "scheduler": {{"type": "WarmupDecayLR", "params": {{"total_num_steps": 9‹warmup_max_lr: '
                f"0.001 "
                "(default)›}}}"
            ),
        ),
    ],
)
def test_defaults_of_decisive_keys_stand_at_the_end_of_their_section(
    members: str, version: str | None, text: str
) -> None:
    assert shown(view(members, version=version)) == text


def real(consumer: Consumer) -> Iterator[Hint]:
    """The hints of real configs, and of every "auto" that the consumer fills."""
    known = knowledge()
    filled = [path for path in known.every_path() if known.auto(path, consumer).effect is AutoEffect.FILLED]
    autos = ["".join(f'{{"{name}": ' for name in path.split(".")) + '"auto"' + "}" * 9 for path in filled]
    for text in [path.read_text("utf-8") for path in GOOD] + autos:
        yield from hints(View(parse(text), Settings(consumer=consumer)))


@pytest.mark.parametrize("language", ["en", "zh-CN"])
@pytest.mark.parametrize("consumer", list(Consumer))
def test_no_hint_is_longer_than_vs_code_shows(consumer: Consumer, language: str) -> None:
    with using(language):
        found = list(real(consumer))
    assert len(found) > 20
    assert [hint.text for hint in found if len(hint.text) > 43] == []


@pytest.mark.parametrize(
    ("text", "before", "behind"),
    [
        ('{"gradient_clipping": 1, "fp16": {"initial_scale_power": 9, "enabled": true}}', "9,", ' "enabled"'),
        ('{"gradient_clipping": 1, "fp16": {"initial_scale_power": 9 , "enabled": true}}', "9 ,", ' "enabled"'),
        ('{"gradient_clipping": 1, "fp16": {"enabled": true, "initial_scale_power": 9}}', "9", "}}"),
        ("gradient_clipping: 1\nfp16: {enabled: true\ninitial_scale_power: 9\n}", "9", "\n}"),
    ],
)
def test_a_hint_stands_behind_the_comma(text: str, before: str, behind: str) -> None:
    (hint,) = hints(View(parse(text)))
    assert text[: hint.offset].endswith(before)
    assert text[hint.offset :].startswith(behind)


def test_hints_have_a_tooltip_that_says_why() -> None:
    found = hints(view('"steps_per_print": 5'))
    assert found == [
        Hint(
            offset=21,
            text="gradient_clipping: 1.0 (default)",
            tooltip="Since 0.19.3 gradients are clipped to 1.0 unless another value is written; before, nothing was "
            "clipped. [Documentation](https://github.com/dsmigrate/dsmigrate/blob/main/docs/keys/top_level.md"
            "#gradient_clipping)",
            kind=Kind.DEFAULT,
        )
    ]


def test_only_the_asked_part_of_the_text_is_looked_at() -> None:
    members = (
        '"fp16": {"enabled": true, "initial_scale_power": 9}, "train_batch_size": 3, "zero_optimization": {"stage": 3}'
    )
    whole = hints(view(members))
    middle = len(view(members).text) // 2
    assert [hint for hint in whole if hint.offset <= middle] == hints(view(members), 0, middle)
    assert [hint for hint in whole if hint.offset >= middle] == hints(view(members), middle)
    assert len(whole) == 4


@pytest.mark.parametrize("members", ["", '"zero_optimization": [], "gradient_clipping": 1'])
def test_a_file_that_says_nothing_has_no_hints(members: str) -> None:
    assert hints(view(members)) == []
