"""Configs that a schema must reject, each for one stated reason.

They are also the negative test files that go to SchemaStore.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from .support import Config, for_release


class Fate(str, Enum):
    """What DeepSpeed itself does with a config that the schema rejects."""

    REFUSED = "refused when the config is read"
    LATER = "fails when the engine is built or trains"
    MISREAD = "taken, and not what was meant"


@dataclass(frozen=True, slots=True)
class Bad:
    """A config with the path and the keyword of the schema where it must fail."""

    name: str
    config: Config
    path: str
    keyword: str
    fate: Fate
    minor: str | None = None

    @property
    def schema(self) -> str:
        return for_release(self.minor)


REFUSED, LATER, MISREAD = Fate


def zero(**keys: object) -> Config:
    return {"train_batch_size": 8, "zero_optimization": {"stage": 3, **keys}}


def with_(**keys: object) -> Config:
    return {"train_batch_size": 8, **keys}


def adamw(**params: object) -> Config:
    return with_(optimizer={"type": "AdamW", "params": {"lr": 1e-3, **params}})


def warmup(**params: object) -> Config:
    return with_(scheduler={"type": "WarmupLR", "params": params})


_UNKNOWN = [
    Bad("unknown_key_in_zero", zero(stagee=2), "zero_optimization.stagee", "additionalProperties", REFUSED),
    Bad(
        "words_of_a_key_swapped",
        zero(comm_overlap=True),
        "zero_optimization.comm_overlap",
        "additionalProperties",
        REFUSED,
    ),
    Bad(
        "key_in_the_wrong_case",
        zero(Overlap_Comm=True),
        "zero_optimization.Overlap_Comm",
        "additionalProperties",
        REFUSED,
    ),
    Bad(
        "key_of_ddp_in_zero",
        zero(find_unused_parameters=True),
        "zero_optimization.find_unused_parameters",
        "additionalProperties",
        REFUSED,
    ),
    Bad(
        "key_of_the_top_level_in_zero",
        zero(zero_allow_untested_optimizer=True),
        "zero_optimization.zero_allow_untested_optimizer",
        "additionalProperties",
        REFUSED,
    ),
    Bad("fp16_key_in_bf16", with_(bf16={"loss_scale": 0}), "bf16.loss_scale", "additionalProperties", REFUSED),
    Bad("apex_key_in_fp16", with_(fp16={"opt_level": "O2"}), "fp16.opt_level", "additionalProperties", REFUSED),
    Bad(
        "offload_param_key_in_offload_optimizer",
        zero(offload_optimizer={"device": "cpu", "max_in_cpu": 1}),
        "zero_optimization.offload_optimizer.max_in_cpu",
        "additionalProperties",
        REFUSED,
    ),
    Bad(
        "offload_optimizer_key_in_offload_param",
        zero(offload_param={"device": "cpu", "pipeline_read": True}),
        "zero_optimization.offload_param.pipeline_read",
        "additionalProperties",
        REFUSED,
    ),
    Bad(
        "unknown_key_in_tensorboard",
        with_(tensorboard={"path": "x"}),
        "tensorboard.path",
        "additionalProperties",
        REFUSED,
    ),
    Bad("unknown_key_in_wandb", with_(wandb={"entity": "x"}), "wandb.entity", "additionalProperties", REFUSED),
    Bad(
        "unknown_key_in_csv_monitor",
        with_(csv_monitor={"file": "x"}),
        "csv_monitor.file",
        "additionalProperties",
        REFUSED,
    ),
    Bad("unknown_key_in_comet", with_(comet={"name": "x"}), "comet.name", "additionalProperties", REFUSED),
    Bad(
        "unknown_key_in_comms_logger",
        with_(comms_logger={"prof": True}),
        "comms_logger.prof",
        "additionalProperties",
        REFUSED,
    ),
    Bad(
        "unknown_key_in_compile",
        with_(compile={"backend": "inductor"}),
        "compile.backend",
        "additionalProperties",
        REFUSED,
    ),
    Bad(
        "unknown_key_in_hybrid_engine",
        with_(hybrid_engine={"max_tokens": 5}),
        "hybrid_engine.max_tokens",
        "additionalProperties",
        REFUSED,
    ),
    Bad(
        "unknown_key_in_tensor_parallel",
        with_(tensor_parallel={"tp_size": 2}),
        "tensor_parallel.tp_size",
        "additionalProperties",
        REFUSED,
    ),
    Bad(
        "unknown_key_in_timers_throughput",
        with_(timers={"throughput": {"on": True}}),
        "timers.throughput.on",
        "additionalProperties",
        REFUSED,
    ),
    Bad("unknown_parameter_of_adamw", adamw(beta=0.9), "optimizer.params.beta", "additionalProperties", LATER),
    Bad(
        "unknown_parameter_of_warmup",
        warmup(warmup_steps=10),
        "scheduler.params.warmup_steps",
        "additionalProperties",
        LATER,
    ),
    Bad(
        "torch_key_for_a_scheduler",
        with_(scheduler={"type": "OneCycle", "params": {"cycle_min_lr": 0.1, "cycle_max_lr": 1.0, "max_lr": 1.0}}),
        "scheduler.params.max_lr",
        "additionalProperties",
        LATER,
    ),
]
_REMOVED = [
    Bad(f"removed_{name}", with_(**{name: value}), name, "not", REFUSED)
    for name, value in {
        "amp": {"enabled": True},
        "elasticity": {"enabled": False},
        "sparse_attention": {"mode": "dense"},
        "sparse_gradients": True,
        "nebula": {"enabled": False},
        "compression_training": {},
        "quantize_training": {"enabled": False},
        "eigenvalue": {"enabled": False},
        "curriculum_learning": {"enabled": False},
        "progressive_layer_drop": {"enabled": False},
        "graph_harvesting": False,
    }.items()
]
_REMOVED += [
    Bad("removed_mics", zero(mics_shard_size=8), "zero_optimization.mics_shard_size", "not", REFUSED),
    Bad("removed_loco", zero(zeropp_loco_param={}), "zero_optimization.zeropp_loco_param", "not", REFUSED),
]
_RANGES = [
    Bad("batch_of_zero", {"train_batch_size": 0}, "train_batch_size", "exclusiveMinimum", REFUSED),
    Bad(
        "negative_micro_batch",
        {"train_micro_batch_size_per_gpu": -1},
        "train_micro_batch_size_per_gpu",
        "exclusiveMinimum",
        REFUSED,
    ),
    Bad(
        "no_accumulation_step",
        with_(gradient_accumulation_steps=0),
        "gradient_accumulation_steps",
        "exclusiveMinimum",
        REFUSED,
    ),
    Bad(
        "empty_bucket", zero(reduce_bucket_size=0), "zero_optimization.reduce_bucket_size", "exclusiveMinimum", REFUSED
    ),
    Bad(
        "negative_prefetch",
        zero(stage3_prefetch_bucket_size=-1),
        "zero_optimization.stage3_prefetch_bucket_size",
        "minimum",
        REFUSED,
    ),
    Bad(
        "negative_prefetch_by_its_short_name",
        zero(prefetch_bucket_size=-1),
        "zero_optimization.prefetch_bucket_size",
        "minimum",
        REFUSED,
    ),
    Bad(
        "ratio_above_one",
        zero(offload_optimizer={"device": "cpu", "ratio": 1.5}),
        "zero_optimization.offload_optimizer.ratio",
        "maximum",
        REFUSED,
    ),
    Bad(
        "negative_buffer_count",
        zero(offload_param={"device": "cpu", "buffer_count": -5}),
        "zero_optimization.offload_param.buffer_count",
        "minimum",
        REFUSED,
    ),
    Bad("negative_loss_scale", with_(fp16={"loss_scale": -1}), "fp16.loss_scale", "minimum", REFUSED),
    Bad(
        "no_window",
        with_(fp16={"enabled": True, "loss_scale_window": 0}),
        "fp16.loss_scale_window",
        "exclusiveMinimum",
        REFUSED,
    ),
    Bad(
        "no_tokens",
        with_(hybrid_engine={"max_out_tokens": 0}),
        "hybrid_engine.max_out_tokens",
        "exclusiveMinimum",
        REFUSED,
    ),
    Bad(
        "all_of_the_gradients",
        zero(zenflow={"topk_ratio": 1.0}),
        "zero_optimization.zenflow.topk_ratio",
        "exclusiveMaximum",
        REFUSED,
    ),
]
_LISTS = [
    Bad("stage_that_is_not_there", zero(stage=4), "zero_optimization.stage", "enum", REFUSED),
    Bad("stage_as_text", zero(stage="3"), "zero_optimization.stage", "enum", MISREAD),
    Bad(
        "device_in_capitals",
        zero(offload_param={"device": "CPU"}),
        "zero_optimization.offload_param.device",
        "enum",
        REFUSED,
    ),
    Bad(
        "device_that_is_not_there",
        zero(offload_optimizer={"device": "disk"}),
        "zero_optimization.offload_optimizer.device",
        "enum",
        REFUSED,
    ),
    Bad("misspelt_dtype", with_(communication_data_type="bfp16"), "communication_data_type", "enum", REFUSED),
    Bad("unknown_reduction", with_(gradient_allreduce_op="avg"), "gradient_allreduce_op", "enum", REFUSED),
    Bad(
        "unknown_tag_validation",
        with_(checkpoint={"tag_validation": "error"}),
        "checkpoint.tag_validation",
        "enum",
        REFUSED,
    ),
    Bad(
        "unknown_writer",
        with_(checkpoint={"writer": {"type": "slow"}}),
        "checkpoint.writer.type",
        "enum",
        REFUSED,
    ),
    Bad(
        "autocast_to_fp8",
        with_(torch_autocast={"enabled": True, "dtype": "fp8"}),
        "torch_autocast.dtype",
        "enum",
        REFUSED,
    ),
    Bad("unknown_log_level", with_(log_level="loud"), "log_level", "enum", LATER),
    Bad("unknown_tuner", with_(autotuning={"tuner_type": "bayes"}), "autotuning.tuner_type", "enum", MISREAD),
]
_TYPES = [
    Bad("batch_as_text", {"train_batch_size": "8"}, "train_batch_size", "type", REFUSED),
    Bad("half_a_sample", {"train_micro_batch_size_per_gpu": 2.5}, "train_micro_batch_size_per_gpu", "type", MISREAD),
    Bad("clipping_as_text", with_(gradient_clipping="1.0"), "gradient_clipping", "type", LATER),
    Bad("switch_as_text", with_(wall_clock_breakdown="yes"), "wall_clock_breakdown", "type", REFUSED),
    Bad("switch_that_text_turns_on", with_(prescale_gradients="no"), "prescale_gradients", "type", MISREAD),
    Bad("switch_as_number", with_(dump_state=1), "dump_state", "type", MISREAD),
    Bad("fp16_as_a_switch", with_(fp16=True), "fp16", "type", REFUSED),
    Bad("fp16_switch_as_text", with_(fp16={"enabled": "maybe"}), "fp16.enabled", "type", REFUSED),
    Bad("bucket_as_text", zero(reduce_bucket_size="5e8"), "zero_optimization.reduce_bucket_size", "type", REFUSED),
    Bad(
        "part_of_a_bucket",
        zero(allgather_bucket_size=0.5),
        "zero_optimization.allgather_bucket_size",
        "multipleOf",
        REFUSED,
    ),
    Bad("fraction_of_a_scale", with_(fp16={"min_loss_scale": 0.1}), "fp16.min_loss_scale", "type", REFUSED),
    Bad("offload_as_a_switch", zero(offload_param=True), "zero_optimization.offload_param", "type", REFUSED),
    Bad("zero_as_a_number", with_(zero_optimization=3), "zero_optimization", "type", REFUSED),
    Bad("zero_as_null", with_(zero_optimization=None), "zero_optimization", "type", REFUSED),
    Bad("optimizer_as_text", with_(optimizer="AdamW"), "optimizer", "type", REFUSED),
    Bad("list_as_text", with_(comms_logger={"prof_ops": "all"}), "comms_logger.prof_ops", "type", REFUSED),
    Bad("steps_as_text", with_(steps_per_print="100"), "steps_per_print", "type", LATER),
    Bad("config_that_is_a_list", with_(flops_profiler=[]), "flops_profiler", "type", REFUSED),
    Bad(
        "checkpointing_switch_as_text",
        with_(activation_checkpointing={"partition_activations": "false"}),
        "activation_checkpointing.partition_activations",
        "type",
        MISREAD,
    ),
]
_PARAMETERS = [
    Bad("rate_as_text", adamw(lr="1e-3"), "optimizer.params.lr", "type", LATER),
    Bad("betas_as_a_number", adamw(betas=0.9), "optimizer.params.betas", "type", LATER),
    Bad("betas_as_texts", adamw(betas=["0.9", "0.999"]), "optimizer.params.betas.0", "type", LATER),
    Bad("mode_as_text", adamw(adam_w_mode="true"), "optimizer.params.adam_w_mode", "type", MISREAD),
    Bad(
        "parameters_as_a_list",
        with_(optimizer={"type": "AdamW", "params": [0.1]}),
        "optimizer.params",
        "type",
        REFUSED,
    ),
    Bad(
        "name_in_lower_case_is_the_same_type",
        with_(optimizer={"type": "adamw", "params": {"learning_rate": 0.1}}),
        "optimizer.params.learning_rate",
        "additionalProperties",
        LATER,
    ),
    Bad("warmup_steps_as_text", warmup(warmup_num_steps="100"), "scheduler.params.warmup_num_steps", "type", LATER),
]
_AUTO = [
    Bad("auto_window", with_(fp16={"loss_scale_window": "auto"}), "fp16.loss_scale_window", "type", MISREAD),
    Bad("auto_overlap", zero(overlap_comm="auto"), "zero_optimization.overlap_comm", "type", MISREAD),
    Bad("auto_sub_group", zero(sub_group_size="auto"), "zero_optimization.sub_group_size", "type", MISREAD),
    Bad("auto_steps_per_print", with_(steps_per_print="auto"), "steps_per_print", "type", LATER),
    Bad("auto_wall_clock", with_(wall_clock_breakdown="auto"), "wall_clock_breakdown", "type", REFUSED),
    Bad("auto_adam_mode", adamw(adam_w_mode="auto"), "optimizer.params.adam_w_mode", "type", MISREAD),
    Bad("auto_in_capitals", {"train_batch_size": "AUTO"}, "train_batch_size", "type", REFUSED),
]
_CONDITIONS = [
    Bad("both_precisions", with_(fp16={"enabled": True}, bf16={"enabled": True}), "bf16.enabled", "not", REFUSED),
]
_OLDER = [
    Bad(
        "zenflow_before_it_came", zero(zenflow={}), "zero_optimization.zenflow", "additionalProperties", REFUSED, "0.16"
    ),
    Bad(
        "hpz_before_it_came",
        zero(zero_hpz_partition_size=8),
        "zero_optimization.zero_hpz_partition_size",
        "additionalProperties",
        REFUSED,
        "0.9",
    ),
    Bad(
        "leaf_module_before_it_came",
        zero(leaf_module={}),
        "zero_optimization.leaf_module",
        "additionalProperties",
        REFUSED,
        "0.17",
    ),
    Bad(
        "master_weights_before_they_came",
        with_(bf16={"bf16_optimizer_states": True}),
        "bf16.bf16_optimizer_states",
        "additionalProperties",
        REFUSED,
        "0.17",
    ),
    Bad("mics_as_text", zero(mics_shard_size="all"), "zero_optimization.mics_shard_size", "type", REFUSED, "0.16"),
]

BAD = [*_UNKNOWN, *_REMOVED, *_RANGES, *_LISTS, *_TYPES, *_PARAMETERS, *_AUTO, *_CONDITIONS, *_OLDER]
