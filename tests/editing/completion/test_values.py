"""Which values are offered, in which order, and with which words."""

from __future__ import annotations

import pytest

from dsmigrate.editing.completion import Item, complete
from dsmigrate.knowledge import Consumer
from dsmigrate.rules import Facts, Settings
from tests.editing.marked import marked


def values(text: str, settings: Settings | None = None, *, snippets: bool = False) -> list[Item]:
    """Return the values that are offered at the mark."""
    view, offset = marked(text, settings)
    return list(complete(view, offset, snippets=snippets))


def labels(text: str, settings: Settings | None = None) -> list[str]:
    """Return what the offered values are called."""
    return [item.label for item in values(text, settings)]


def test_a_closed_list_comes_with_what_each_value_means() -> None:
    found = [(item.label, item.detail, item.description) for item in values('{"zero_optimization": {"stage": |}}')]
    assert found == [
        ("0", "plain data parallelism, ZeRO off", "default"),
        ("1", "optimizer states and master weights sharded", ""),
        ("2", "gradients sharded too", ""),
        ("3", "parameters sharded too", ""),
    ]


def test_a_switch_offers_the_other_side_of_its_default_first() -> None:
    assert labels('{"zero_optimization": {"stage": 2, "contiguous_gradients": |}}') == ["false", "true"]
    assert labels('{"wall_clock_breakdown": |}') == ["true", "false"]


def test_numbers_come_with_what_they_mean_and_the_default_says_so() -> None:
    found = values('{"zero_optimization": {"stage": 2, "reduce_bucket_size": |}}')
    assert [item.label for item in found][:2] == ["500000000", "200000000"]
    assert found[0].description == "default"
    assert all(item.detail for item in found[:4])


def test_null_is_offered_where_it_is_allowed() -> None:
    assert labels('{"communication_data_type": |}') == ['"fp32"', '"bf16"', '"fp16"', "null"]
    assert "null" not in labels('{"gradient_clipping": |}')


def test_of_values_that_mean_the_same_one_is_offered() -> None:
    text = '{"zero_optimization": {"stage": 2}, "data_types": {"grad_accum_dtype": |}}'
    assert labels(text) == ['"fp32"', '"bf16"', '"fp16"', '"int8"', "null"]


def test_auto_is_offered_where_the_consumer_fills_it() -> None:
    text = '{"gradient_clipping": |}'
    trainer = Settings(consumer=Consumer.TRANSFORMERS)
    assert labels(text, trainer)[0] == '"auto"'
    assert values(text, trainer)[0].detail == "filled with TrainingArguments.max_grad_norm"
    assert '"auto"' not in labels(text)
    assert '"auto"' not in labels(
        '{"optimizer": {"type": "AdamW", "params": {"betas": |}}}', Settings(consumer=Consumer.ACCELERATE)
    )


def test_auto_is_offered_where_it_is_a_value_of_its_own() -> None:
    assert '"auto"' in labels(
        '{"zero_optimization": {"stage": 2, "offload_optimizer": {"device": "cpu"}, "zenflow": {"select_strategy": |}}}'
    )
    assert '"auto"' not in labels('{"fp16": {"enabled": |}}')


def test_what_deepspeed_refuses_beside_the_file_is_not_offered() -> None:
    assert labels('{"fp16": {"enabled": true}, "bf16": {"enabled": |}}') == ["false"]
    zero = '{"zero_optimization": {"stage": %s, "offload_optimizer": {"device": |}}}'
    assert labels(zero % "2") == ['"none"', '"cpu"', '"nvme"']
    assert labels(zero % "0") == ['"none"']


def test_a_value_that_needs_a_neighbour_brings_it_along() -> None:
    text = '{"zero_optimization": {"stage": 3, "offload_optimizer": {"device": |}}}'
    nvme = values(text)[-1]
    assert (nvme.label, nvme.description) == ('"nvme"', "with nvme_path")
    assert nvme.new_text == '"nvme", "nvme_path": "/local_nvme"'
    there = values(text.replace("}}}", ', "nvme_path": "/x"}}}'))[-1]
    assert (there.new_text, there.description) == ('"nvme"', "")
    spread = '{\n  "zero_optimization": {\n    "stage": 3,\n    "offload_param": {\n      "device": |\n    }\n  }\n}'
    assert values(spread)[-1].new_text == '"nvme",\n      "nvme_path": "/local_nvme"'


def test_a_switch_is_written_as_on() -> None:
    view, offset = marked('{"zero_optimization": {"stage": 2, "|"}}')
    texts = {item.label: item.new_text for item in complete(view, offset, snippets=False)}
    for name in ("contiguous_gradients", "reduce_scatter", "overlap_comm", "round_robin_gradients"):
        assert texts[name] == f'"{name}": true'


def test_types_are_those_of_the_release_the_common_ones_first() -> None:
    found = values('{"optimizer": {"type": |}}')
    assert [item.label for item in found][:4] == ['"AdamW"', '"Adam"', '"Lamb"', '"SGD"']
    assert (found[0].detail, found[0].description) == (
        "Adam with decoupled weight decay; the right choice for most training.",
        "FusedAdam",
    )
    assert '"OneBitAdam"' not in [item.label for item in found]
    assert '"OneBitAdam"' in labels('{"optimizer": {"type": |}}', Settings(version="0.12.6"))


def test_types_that_zero_refuses_are_not_offered() -> None:
    zero = '{"zero_optimization": {"stage": 2}, %s"optimizer": {"type": |}}'
    assert '"SGD"' not in labels(zero % "")
    assert '"SGD"' in labels(zero % '"zero_allow_untested_optimizer": true, ')
    assert '"LBFGS"' not in labels('{"optimizer": {"type": |}}')
    schedulers = labels('{"zero_optimization": {"stage": 2}, "scheduler": {"type": |, "params": {}}}')
    assert '"WarmupLR"' in schedulers
    assert '"StepLR"' not in schedulers


def test_a_type_must_take_the_parameters_that_are_there() -> None:
    found = labels('{"optimizer": {"type": |, "params": {"lr": 0.1, "momentum": 0.9}}}')
    assert '"SGD"' in found
    assert '"AdamW"' not in found


def test_parameters_have_values_and_lists_start_filled() -> None:
    found = values('{"optimizer": {"type": "AdamW", "params": {"betas": |}}}')
    assert [item.new_text for item in found] == ["[0.9, 0.999]", "[0.9, 0.95]"]
    assert labels('{"scheduler": {"type": "WarmupLR", "params": {"warmup_type": |}}}') == ['"log"', '"linear"']


def test_a_text_without_known_values_is_left_empty() -> None:
    (found,) = [item for item in values('{"wandb": {"group": |}}', snippets=True) if item.label == '""']
    assert (found.new_text, found.is_snippet) == ('"$1"', True)
    plain = next(item for item in values('{"wandb": {"group": |}}') if item.label == '""')
    assert (plain.new_text, plain.is_snippet) == ('""', False)


def test_a_batch_size_says_how_it_comes_about() -> None:
    text = '{"train_micro_batch_size_per_gpu": 4, "gradient_accumulation_steps": 2, "train_batch_size": |}'
    found = values(text, Settings(facts=Facts(world_size=6)))
    assert (found[0].label, found[0].detail) == ("48", "4 × 2 × 6 ranks")
    assert [item.label for item in found] == ["48", "null"]


def test_sections_are_values_too() -> None:
    found = values('{"zero_optimization": |}')
    assert [item.label for item in found][:3] == ["ZeRO-1", "ZeRO-2", "ZeRO-2, optimizer on the CPU"]
    assert [item.label for item in found][-2:] == ["ZeRO++", "{}"]
    assert found[1].new_text == '{\n    "stage": 2\n}'
    assert [item.label for item in values('{"wandb": |}')] == ["Weights & Biases", "{enabled}", "{}"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('{"zero_optimization": {"stage": 3, "offload_param": {"device": |}}}', "cpu"),
        ('{"zero_optimization": {"stage": 3, "offload_param": {"device": c|}}}', "cpu"),
        ('{"zero_optimization": {"stage": 3, "offload_param": {"device": "c|"}}}', '"cpu"'),
        ('{"zero_optimization": {"stage": 3, "offload_param": {"device": "c|}}}', '"cpu"'),
        ('{"zero_optimization": {"stage": 3, "offload_param": {"device": "none|"}}}', '"none" "cpu"'),
    ],
)
def test_the_filter_text_starts_as_the_typed_text_does(text: str, expected: str) -> None:
    (found,) = [item for item in values(text) if item.label == '"cpu"']
    assert found.filter_text == expected


def test_a_key_that_the_release_does_not_have_has_no_values() -> None:
    assert values('{"zero_optimization": {"stage": 2, "compute_grad_norm": |}}', Settings(version="0.12.6")) == []


def test_auto_is_not_offered_under_a_name_that_the_consumer_does_not_know() -> None:
    settings = Settings(consumer=Consumer.ACCELERATE)
    offered = [item.new_text for item in values('{"bf16": |}', settings)]
    assert any('"auto"' in text for text in offered)
    assert not any('"auto"' in item.new_text for item in values('{"bfloat16": |}', settings))
    assert '"auto"' not in labels('{"bfloat16": {"enabled": |}}', settings)
