from __future__ import annotations

import pytest

from dsmigrate.knowledge import MISSING, Auto, AutoEffect, Consumer, Event, EventKind, Status, knowledge
from dsmigrate.settings.releases import releases


def path(asked: str | tuple[str | int, ...], version: str | None = None) -> str | None:
    key = knowledge(version).key(asked)
    return None if key is None else key.path


@pytest.mark.parametrize("asked", ["zero_stage", "fp16.bogus", "zero_optimization.stage.x", "", ".", "a..b", "*", "[]"])
def test_what_no_release_knew_is_none(asked: str) -> None:
    assert path(asked) is None


def test_a_dot_inside_a_name_separates_nothing() -> None:
    metrics = ("data_efficiency", "data_sampling", "curriculum_learning", "curriculum_metrics")
    assert path(("zero_optimization.stage",)) is None
    assert path(("optimizer", "params.lr")) is None
    assert path((*metrics, "my.metric", "clustering_type")) == path((*metrics, "mine", "clustering_type")) is not None


@pytest.mark.parametrize(
    ("asked", "found"),
    [
        ("zero_optimization.stage", "zero_optimization.stage"),
        (("zero_optimization", "stage"), "zero_optimization.stage"),
        ("zero_optimization.prefetch_bucket_size", "zero_optimization.stage3_prefetch_bucket_size"),
        ("bfloat16.enabled", "bf16.enabled"),
        ("tensor_parallel.tensor_parallel.tp_size", "tensor_parallel.tp.tp_size"),
        (
            (
                "data_efficiency",
                "data_sampling",
                "curriculum_learning",
                "curriculum_metrics",
                "seqlen",
                "min_difficulty",
            ),
            "data_efficiency.data_sampling.curriculum_learning.curriculum_metrics.*.min_difficulty",
        ),
        (
            ("tensor_parallel", "partition_config", "layer_specs", 3, "shape"),
            "tensor_parallel.partition_config.layer_specs[].shape",
        ),
        ("amp.enabled", "amp.enabled"),
    ],
)
def test_a_place_in_a_config_leads_to_the_key_that_describes_it(asked: str | tuple[str | int, ...], found: str) -> None:
    assert path(asked) == found


@pytest.mark.parametrize(
    ("asked", "version", "status"),
    [
        ("gradient_clipping", "0.9.0", Status.PRESENT),
        ("compile.deepcompile", "0.16.5", Status.NOT_YET),
        ("compile.deepcompile", "0.16.6", Status.PRESENT),
        ("amp", "0.19.7", Status.PRESENT),
        ("amp", "0.19.8", Status.REJECTED),
        ("amp.enabled", "0.19.8", Status.REJECTED),
        ("zero_optimization.mics_shard_size", "0.19.8", Status.REJECTED),
        ("seq_parallel_comm_data_type", "0.16.5", Status.NO_LONGER),
        ("zero_optimization.cpu_offload", "0.19.8", Status.DEPRECATED),
    ],
)
def test_status_is_that_of_the_release(asked: str, version: str, status: Status) -> None:
    key = knowledge(version).key(asked)
    assert key is not None
    assert key.status is status


@pytest.mark.parametrize(
    ("asked", "version", "default"),
    [
        ("gradient_clipping", "0.19.2", 0.0),
        ("gradient_clipping", "0.19.3", 1.0),
        ("steps_per_print", "0.15.1", 10),
        ("steps_per_print", "0.15.2", None),
        ("zero_optimization.offload_param.pin_memory", "0.19.4", False),
        ("zero_optimization.offload_param.pin_memory", "0.19.5", True),
        ("zero_optimization.max_live_parameters", None, 1_000_000_000),
        ("compile.deepcompile", "0.9.0", MISSING),
        ("no_such_key", None, MISSING),
    ],
)
def test_defaults_are_those_of_the_release(asked: str, version: str | None, default: object) -> None:
    assert knowledge(version).default(asked) == default


def test_a_release_that_is_not_known_stands_for_the_one_before_it() -> None:
    assert knowledge().version == releases()[-1]
    assert knowledge("99.0").version == releases()[-1]
    assert knowledge("0.19.8+cu124").version == "0.19.8"
    assert knowledge("0.14").version == "0.14.0"
    with pytest.raises(ValueError, match=r"0\.8\.3 is older than 0\.9\.0"):
        knowledge("0.8.3")
    with pytest.raises(ValueError, match="is not a version"):
        knowledge("newest")


def test_children_are_those_of_the_release_and_of_an_alias() -> None:
    new, old = knowledge().children("bf16"), knowledge("0.9.0").children("bf16")
    assert {key.name for key in old} < {key.name for key in new}
    assert knowledge().children("bfloat16") == new
    assert all(key.parent == "bf16" for key in new)
    top = {key.name for key in knowledge().children()}
    assert {"train_batch_size", "zero_optimization", "fp16"} <= top
    assert not top & {"amp", "elasticity"}


def test_history_tells_every_change() -> None:
    key = knowledge().key("gradient_clipping")
    assert key is not None
    assert key.history == (
        Event("0.9.0", EventKind.ADDED, None, 0.0),
        Event("0.19.3", EventKind.DEFAULT, 0.0, 1.0),
    )
    amp = knowledge().key("amp")
    assert amp is not None
    assert amp.history[-1] == Event("0.19.8", EventKind.REJECTED)
    assert (amp.since, amp.until) == ("0.9.0", "0.19.8")


@pytest.mark.parametrize(
    ("asked", "consumer", "effect", "source"),
    [
        ("zero_optimization.stage", Consumer.DEEPSPEED, AutoEffect.DEFAULT, ""),
        ("zero_optimization.overlap_comm", Consumer.DEEPSPEED, AutoEffect.DEFAULT, ""),
        ("zero_optimization.overlap_comm", Consumer.TRANSFORMERS, AutoEffect.REFUSED, ""),
        ("zero_optimization.stage", Consumer.ACCELERATE, AutoEffect.FILLED, "DeepSpeedPlugin.zero_stage, else 2"),
        ("train_batch_size", Consumer.DEEPSPEED, AutoEffect.CONFIG_ERROR, ""),
        ("gradient_clipping", Consumer.TRANSFORMERS, AutoEffect.FILLED, "TrainingArguments.max_grad_norm"),
        ("wall_clock_breakdown", Consumer.ACCELERATE, AutoEffect.REFUSED, ""),
        ("expert_parallel.score_func", Consumer.DEEPSPEED, AutoEffect.VALUE, ""),
        ("expert_parallel.score_func", Consumer.ACCELERATE, AutoEffect.REFUSED, ""),
    ],
)
def test_auto_depends_on_the_consumer(asked: str, consumer: Consumer, effect: AutoEffect, source: str) -> None:
    key = knowledge().key(asked)
    assert key is not None
    assert (key.auto(consumer).effect, key.auto(consumer).source) == (effect, source)


def test_auto_of_a_parameter_needs_no_key() -> None:
    assert knowledge().key("optimizer.params.lr") is None
    filled = knowledge().auto("optimizer.params.lr", Consumer.TRANSFORMERS)
    source = "TrainingArguments.learning_rate"
    assert filled == Auto(AutoEffect.FILLED, source, must_match=True, usual=5e-5, english=source, short=source)
    assert knowledge().auto("optimizer.params.momentum", Consumer.ACCELERATE) == Auto(AutoEffect.REFUSED)
    assert knowledge().auto("optimizer.params.lr", Consumer.DEEPSPEED) is None


def test_a_consumer_fills_a_key_under_its_one_name() -> None:
    for path in ("zero_optimization.prefetch_bucket_size", "bfloat16.enabled"):
        assert knowledge().auto(path, Consumer.TRANSFORMERS) == Auto(AutoEffect.REFUSED)
        assert knowledge().auto(path, Consumer.DEEPSPEED) == Auto(AutoEffect.DEFAULT)


def test_no_consumer_looks_into_lists() -> None:
    path = ("tensor_parallel", "partition_config", "layer_specs", 0, "shape")
    of_deepspeed = knowledge().auto(path, Consumer.DEEPSPEED)
    assert of_deepspeed is not None
    assert knowledge().auto(path, Consumer.ACCELERATE) == of_deepspeed
    assert knowledge().auto(("optimizer", "params", "betas", 0), Consumer.ACCELERATE) is None


def test_what_is_filled_in_when_nobody_names_a_value() -> None:
    stage = knowledge().auto("zero_optimization.stage", Consumer.TRANSFORMERS)
    assert stage is not None
    assert stage.fallback == 2


def test_optimizers_follow_the_release_and_the_spelling() -> None:
    now, then = knowledge(), knowledge("0.19.6")
    assert "OneBitAdam" in {facts.name for facts in then.optimizers()}
    assert "OneBitAdam" not in {facts.name for facts in now.optimizers()}
    adam = now.optimizer("adamw")
    assert adam is not None
    assert adam.name == "AdamW"
    assert adam.parameters["lr"].default == 0.001
    assert now.optimizer("sgd") is None  # torch's own names are taken exactly
    assert now.optimizer("SGD") is not None
    assert now.scheduler("warmuplr") is None
    warmup = now.scheduler("WarmupLR")
    assert warmup is not None
    assert warmup.parameters["warmup_num_steps"].unit


@pytest.mark.parametrize(
    ("name", "section", "meant"),
    [
        ("bp16", "", "bf16"),
        ("zero_optimisation", "", "zero_optimization"),
        ("comm_overlap", "zero_optimization", "zero_optimization.overlap_comm"),
        ("offload_optimizer", "", "zero_optimization.offload_optimizer"),
        ("loss_scale", "bf16", "fp16.loss_scale"),
        ("prefetch_bucket_sise", "zero_optimization", "zero_optimization.stage3_prefetch_bucket_size"),
    ],
)
def test_a_wrong_key_is_led_to_the_right_one(name: str, section: str, meant: str) -> None:
    assert knowledge().nearest(name, section)[0] == meant


def test_an_application_key_is_led_nowhere() -> None:
    assert knowledge().nearest("wandb_run_id") == []
    assert knowledge().nearest("_comment") == []


def test_every_key_answers_every_question() -> None:
    for version in ("0.9.0", "0.13.1", releases()[-1]):
        known = knowledge(version)
        for asked in known.every_path():
            key = known.key(asked)
            assert key is not None, asked
            values = {
                name: getattr(key, name) for name in dir(type(key)) if not name.startswith("_") and name != "auto"
            }
            assert values["summary"], asked
            assert values["source"], asked
            assert {key.auto(consumer).effect for consumer in Consumer} <= set(AutoEffect)


def test_sections_of_free_names_are_known() -> None:
    known = knowledge()
    assert known.takes_any_name("data_efficiency.data_sampling.curriculum_learning.curriculum_metrics")
    assert known.takes_any_name(("weight_quantization", "post_init_quant"))
    assert not known.takes_any_name("zero_optimization")
    assert not known.takes_any_name("")


@pytest.mark.parametrize(
    ("asked", "version", "conditions"),
    [
        ("amp.enabled", "0.19.6", {}),
        ("amp.opt_level", "0.19.6", None),
        ("elasticity.micro_batch_sizes", "0.9.5", {"elasticity.enabled": [True]}),
        ("compression_training.row_pruning.different_groups.mlp.params.dense_ratio", "0.12.6", {}),
    ],
)
def test_a_key_says_when_its_section_needs_it(asked: str, version: str, conditions: object) -> None:
    key = knowledge(version).key(asked)
    assert key is not None
    assert key.required_when == conditions


def test_the_keys_that_a_section_needs_are_those_of_the_release() -> None:
    assert [key.name for key in knowledge("0.19.6").required("elasticity")] == [
        "max_train_batch_size",
        "micro_batch_sizes",
    ]
    assert knowledge("0.19.8").required("elasticity") == ()


def test_a_fact_is_that_of_the_release() -> None:
    old, new = (knowledge(version).key("comms_logger.prof_ops") for version in ("0.14.5", "0.15.0"))
    assert old is not None
    assert new is not None
    assert old.auto(Consumer.DEEPSPEED).effect is AutoEffect.CONFIG_ERROR
    assert new.auto(Consumer.DEEPSPEED).effect is AutoEffect.DEFAULT
    power = knowledge("0.16.9").key("fp16.initial_scale_power")
    assert power is not None
    assert power.rejects_when == {"fp16.enabled": [True]}
    kept = knowledge("0.9.5").key("quantize_training")
    assert kept is not None
    assert kept.opened_when is None
    named = [knowledge(version).key("communication_data_type") for version in ("0.14.0", "0.14.1")]
    assert [set(key.enum) for key in named if key is not None] == [{"fp16", "bfp16", "fp32"}, {"fp16", "bf16", "fp32"}]
