"""The text beside an item."""

from __future__ import annotations

import pytest

from dsmigrate.editing.completion import complete, documentation
from dsmigrate.knowledge import knowledge
from tests.editing.marked import marked

PLACES = [
    "|",
    '{"train_batch_size": 8, |}',
    '{"zero_optimization": {"stage": 3, |}}',
    '{"zero_optimization": {"stage": |}}',
    '{"optimizer": {"type": |}}',
    '{"optimizer": {"type": "AdamW", "params": {|}}}',
    '{"optimizer": {"type": "AdamW", "params": {"lr": |}}}',
    '{"scheduler": |}',
    '{"comms_logger": {"prof_ops": [|]}}',
    '{"data_efficiency": {"data_sampling": {"curriculum_learning": {"curriculum_metrics": {|}}}}}',
    '{"data_efficiency": {"data_sampling": {"curriculum_learning": {"curriculum_metrics": {"seqlen": {|}}}}}}',
]


@pytest.mark.parametrize("text", PLACES)
def test_every_item_has_a_documentation(text: str) -> None:
    view, offset = marked(text)
    found = complete(view, offset, snippets=True)
    assert found
    for item in found:
        assert documentation(view.known.version, view.consumer.value, item.data), item


def test_a_key_says_what_it_does_and_a_value_what_it_means() -> None:
    key = documentation("0.19.8", "deepspeed", ("key", "zero_optimization.reduce_bucket_size"))
    facts = knowledge().key("zero_optimization.reduce_bucket_size")
    assert facts is not None
    assert key.startswith(f"{facts.summary}\n\ninteger > 0 (elements) · default `500000000`")
    value = documentation("0.19.8", "deepspeed", ("value", "zero_optimization.stage", "2"))
    assert value.startswith("`2`: gradients sharded too\n\n")
    auto = documentation("0.19.8", "transformers", ("value", "gradient_clipping", '"auto"'))
    assert auto.startswith('`"auto"`: Transformers Trainer fills "auto" with TrainingArguments.max_grad_norm.')


@pytest.mark.parametrize("data", [(), ("key",), ("key", "no.such"), ("type", "optimizer"), ("file", "x"), ("", "x")])
def test_what_nobody_made_has_none(data: tuple[str, ...]) -> None:
    assert documentation("0.19.8", "deepspeed", data) == ""


@pytest.mark.parametrize("version", ["", "no version", "0.1.0", "99"])
def test_an_unknown_release_stands_for_another(version: str) -> None:
    assert documentation(version, "nobody", ("key", "fp16.enabled"))
