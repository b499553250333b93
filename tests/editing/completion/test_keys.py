"""Which keys are offered, in which order, and with which words."""

from __future__ import annotations

from dsmigrate.editing.completion import Item, Kind, complete
from dsmigrate.knowledge import Consumer, Status, knowledge
from dsmigrate.rules import Facts, Settings
from tests.editing.marked import marked


def keys(text: str, settings: Settings | None = None, *, snippets: bool = False) -> dict[str, Item]:
    """Return the keys that are offered at the mark, by name."""
    view, offset = marked(text, settings)
    found = complete(view, offset, snippets=snippets)
    return {item.label: item for item in found if item.kind in {Kind.KEY, Kind.SECTION}}


def test_a_batch_size_comes_first_in_an_empty_config() -> None:
    found = keys("{|}")
    first = next(iter(found.values()))
    assert (first.label, first.description, first.preselect) == (
        "train_micro_batch_size_per_gpu",
        "one of two is required",
        True,
    )
    assert [item.label for item in found.values() if item.preselect] == [first.label]
    assert list(found)[1:3] == ["train_batch_size", "zero_optimization"]


def test_nothing_is_preselected_once_a_batch_size_is_there() -> None:
    found = keys('{"train_batch_size": 8, |}')
    assert not any(item.preselect for item in found.values())
    assert next(iter(found)) == "zero_optimization"


def test_what_is_there_is_not_offered_again_by_any_name() -> None:
    found = keys('{"zero_optimization": {"stage": 3, "prefetch_bucket_size": 5, "cpu_offload_param": true, |}}')
    assert "stage3_prefetch_bucket_size" not in found
    assert "stage" not in found
    assert "offload_param" not in found
    assert "bf16" not in keys('{"bfloat16": {"enabled": true}, |}')


def test_the_key_at_the_cursor_is_offered() -> None:
    assert "steps_per_print" in keys('{"steps_per_print|": 10}')


def test_keys_that_do_nothing_in_this_file_come_last_and_say_so() -> None:
    found = keys('{"zero_optimization": {"stage": 2, |}}')
    inert = found["stage3_max_live_parameters"]
    assert inert.description == "no effect at ZeRO stage 2"
    assert list(found).index(inert.label) > list(found).index("overlap_comm")
    at_three = keys('{"zero_optimization": {"stage": 3, |}}')
    assert at_three["stage3_max_live_parameters"].description == "elements"
    assert list(at_three).index("stage3_max_live_parameters") < list(at_three).index("round_robin_gradients")


def test_a_path_is_required_where_the_device_is_a_drive() -> None:
    found = keys('{"zero_optimization": {"stage": 3, "offload_param": {"device": "nvme", |}}}')
    assert next(iter(found)) == "nvme_path"
    assert found["nvme_path"].description == "required"
    on_cpu = keys('{"zero_optimization": {"stage": 3, "offload_param": {"device": "cpu", |}}}')
    assert on_cpu["nvme_path"].description.startswith("no effect: ")


def test_a_key_comes_with_a_value_of_its_type_and_what_it_takes() -> None:
    found = keys('{"zero_optimization": {"stage": 2, |}}', snippets=True)
    shown = {name: (found[name].new_text, found[name].detail) for name in ("overlap_comm", "reduce_bucket_size")}
    assert shown == {
        "overlap_comm": ('"overlap_comm": ${1:true}', "boolean or null"),
        "reduce_bucket_size": ('"reduce_bucket_size": ${1:500000000}', "integer, default 500000000"),
    }
    assert keys('{"wandb": {|}}', snippets=True)["group"].new_text == '"group": "$1"'


def test_several_values_are_worth_a_second_completion_and_one_is_not() -> None:
    found = keys('{"zero_optimization": {"stage": 2, |}}', snippets=True)
    assert found["overlap_comm"].trigger_again
    assert found["zenflow"].trigger_again if "zenflow" in found else True
    assert not found["offload_optimizer"].trigger_again
    assert not any(item.trigger_again for item in keys('{"zero_optimization": {|}}').values())


def test_no_key_that_is_gone_deprecated_or_without_effect_is_offered() -> None:
    known = knowledge()
    for path in ["", *(key.path for key in known.sections())]:
        text = f'{{"{path}": {{|}}}}' if path else "{|}"
        for name in keys(text):
            key = known.key(f"{path}.{name}" if path else name)
            assert key is not None, name
            assert key.status is Status.PRESENT, key.path
            assert not key.dead, key.path


def test_another_release_has_other_keys() -> None:
    old, new = keys("{|}", Settings(version="0.12.6")), keys("{|}")
    assert {"elasticity", "curriculum_learning"} <= old.keys() - new.keys()
    assert {"torch_autocast", "expert_parallel"} <= new.keys() - old.keys()


def test_a_key_that_deepspeed_refuses_here_is_not_offered() -> None:
    assert "prescale_gradients" in keys('{"zero_optimization": {"stage": 1}, |}')
    assert "prescale_gradients" not in keys('{"zero_optimization": {"stage": 2}, |}')
    assert "amp" not in keys(
        '{"zero_optimization": {"stage": 2}, "fp16": {"enabled": true}, |}', Settings(version="0.12.6")
    )


def test_a_switch_that_would_be_refused_is_offered_by_nobody() -> None:
    assert "enabled" not in keys('{"fp16": {"enabled": true}, "bf16": {|}}')
    assert "bf16" in keys('{"fp16": {"enabled": true}, |}')
    assert keys('{"fp16": {"enabled": true}, |}')["bf16"].new_text == '"bf16": {}'


def test_parameters_belong_to_the_type_and_to_the_class_it_becomes() -> None:
    adam = keys('{"optimizer": {"type": "AdamW", "params": {|}}}')
    assert list(adam)[:4] == ["lr", "betas", "eps", "weight_decay"]
    assert "foreach" not in adam
    torch = keys('{"optimizer": {"type": "AdamW", "params": {"torch_adam": true, |}}}')
    assert "foreach" in torch
    assert "bias_correction" not in torch
    assert "momentum" in keys('{"optimizer": {"type": "SGD", "params": {|}}}')
    assert keys('{"optimizer": {"params": {|}}}') == {}


def test_what_a_type_needs_comes_first() -> None:
    found = keys('{"scheduler": {"type": "WarmupDecayLR", "params": {|}}}')
    first = next(iter(found.values()))
    assert (first.label, first.description, first.new_text) == (
        "total_num_steps",
        "required",
        '"total_num_steps": 10000',
    )


def test_the_consumer_fills_auto() -> None:
    found = keys("{|}", Settings(consumer=Consumer.TRANSFORMERS))
    assert found["gradient_clipping"].new_text.strip() == '"gradient_clipping": "auto"'
    assert found["steps_per_print"].new_text.strip() == '"steps_per_print": "auto"'
    assert '"auto"' not in keys("{|}")["gradient_clipping"].new_text


def test_batch_keys_fit_together() -> None:
    settings = Settings(facts=Facts(world_size=6))
    both = '{"train_micro_batch_size_per_gpu": 4, "gradient_accumulation_steps": 2, |}'
    assert keys(both, settings)["train_batch_size"].new_text == '"train_batch_size": 48'
    assert "gradient_accumulation_steps" not in keys(
        '{"train_batch_size": 32, "train_micro_batch_size_per_gpu": 4, |}', settings
    )


def test_names_of_ones_own_are_offered_where_any_will_do() -> None:
    text = '{"data_efficiency": {"data_sampling": {"curriculum_learning": {"curriculum_metrics": {|}}}}}'
    found = keys(text)
    assert found["seqlen"].description == "any name will do"
    assert '"schedule_type": "fixed_linear"' in found["seqlen"].new_text
    inside = keys(text.replace("{|}", '{"seqlen": {|}}'))
    assert {"difficulty_type", "min_difficulty", "schedule_config"} <= inside.keys()


def test_elements_of_a_list_have_their_keys() -> None:
    found = keys('{"tensor_parallel": {"partition_config": {"layer_specs": [{"patterns": ["x"], |}]}}}')
    assert "partition_type" in found
    assert "patterns" not in found


def test_a_name_is_offered_only_for_a_value_that_it_takes() -> None:
    assert "steps_per_print" in keys('{"|": 10}')
    assert "zero_optimization" not in keys('{"|": 10}')
    assert "wall_clock_breakdown" not in keys('{"|": 10}')
    found = keys('{"|": {"enabled": true, "loss_scale": 0}}')
    assert "fp16" in found
    assert "bf16" not in found
    assert "optimizer" in keys('{"|": {"type": "AdamW", "params": {"lr": 0.1}}}')
    assert "optimizer" not in keys('{"|": {"type": "WarmupLR", "params": {}}}')


def test_two_keys_that_exclude_each_other_are_not_made_of_one() -> None:
    text = '{"zero_optimization": {"stage": 0}, "compile": {"deepcompile": true}, "gradient_clip|": false}'
    assert "managed_gradient_accumulation" not in keys(text)


def test_a_batch_key_that_takes_the_place_of_another_fits_without_it() -> None:
    text = '{"train_micro_batch_size_per_gpu": 4, "gradient_accumulation_steps": 2, "%s|": 2}'
    assert "train_batch_size" not in keys(text.replace("%s", "sequence_parallel_size"))
    assert "sequence_parallel_size" in keys(text.replace("%s", "data_parallel_size"))
