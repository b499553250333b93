from __future__ import annotations

import pytest

from dsmigrate.knowledge import Consumer, Key, knowledge, wording


def key(path: str, version: str | None = None) -> Key:
    found = knowledge(version).key(path)
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("value", "text"),
    [(5e8, "500000000"), (1.0, "1.0"), (1e-05, "1e-05"), (True, "true"), (None, "null"), ("cpu", '"cpu"'), ([], "[]")],
)
def test_values_are_written_as_in_a_config(value: object, text: str) -> None:
    assert wording.json_text(value) == text


@pytest.mark.parametrize(
    ("path", "version", "text"),
    [
        ("amp", None, "Removed: DeepSpeed rejects a config that holds it since 0.19.8"),
        ("amp", "0.19.7", ""),
        ("compile.deepcompile", "0.9.0", "Not in DeepSpeed 0.9.0: it came with 0.16.6."),
        ("zero_optimization.cpu_offload", None, "Deprecated; use `zero_optimization.offload_optimizer`."),
        ("gradient_clipping", None, ""),
    ],
)
def test_a_warning_names_the_release_and_the_way_out(path: str, version: str | None, text: str) -> None:
    found = wording.status_text(key(path, version))
    assert found.startswith(text)
    assert bool(found) is bool(text)


def test_the_line_of_facts_holds_type_range_unit_default_and_age() -> None:
    line = wording.facts_line(key("zero_optimization.reduce_bucket_size"))
    assert line == "integer > 0 (elements) · default `500000000` · 0.9 or earlier"


def test_auto_is_told_for_each_consumer() -> None:
    found = key("zero_optimization.stage3_prefetch_bucket_size")
    said = [wording.auto_text(found.auto(consumer), consumer) for consumer in Consumer]
    assert said == [
        'For plain DeepSpeed "auto" is dropped without a word, and the default applies.',
        'Transformers Trainer fills "auto" with 0.9 × hidden_size squared.',
        'Accelerate fills "auto" with 0.9 × hidden_size squared.',
    ]


def test_what_is_overwritten_is_told_so() -> None:
    auto = key("zero_allow_untested_optimizer").auto(Consumer.ACCELERATE)
    assert (
        wording.auto_text(auto, Consumer.ACCELERATE)
        == 'Accelerate fills "auto", and any other value, with true, unless the config has `optimizer`.'
    )


def test_events_are_told_in_a_few_words() -> None:
    assert [wording.event_text(event) for event in key("gradient_clipping").history] == [
        "there in 0.9.0 or earlier",
        "default `0.0` → `1.0`",
    ]
    assert wording.event_text(key("amp").history[-1]) == "removed, and rejected when present"


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("fp16.loss_scale", "Does something only when `fp16.enabled` is `true`."),
        (
            "data_types.buffer_dtype",
            "Does something only when `fp16.enabled` is `true`, or when `bf16.enabled` is `true`.",
        ),
        ("data_parallel_size", "Does something only when `sequence_parallel_size` is there."),
        ("gradient_clipping", ""),
    ],
)
def test_conditions_are_told_all_of_them_and_one_of_several(path: str, text: str) -> None:
    assert wording.effective_text(key(path)) == text


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("amp.enabled", "`amp` cannot do without it."),
        ("elasticity.micro_batch_sizes", "`elasticity` cannot do without it when `elasticity.enabled` is `true`."),
        ("amp.opt_level", ""),
    ],
)
def test_a_required_key_is_told_so(path: str, text: str) -> None:
    assert wording.required_text(key(path, "0.19.6")) == text
