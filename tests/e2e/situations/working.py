"""The situations: for which keys each is, and a config with which its script runs through."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

Config = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Situation:
    """A script, the starts of the paths of the keys that it makes DeepSpeed read, and a config that works there."""

    keys: tuple[str, ...]
    config: Config
    ranks: int = 1
    script: str = ""
    """The module, where it is not named as the situation."""


SITUATIONS: dict[str, Situation] = {
    "experts": Situation(
        ("expert_parallel.",),
        {"expert_parallel": {"enabled": True, "preset_model": "mixtral", "comm_max_tokens_per_rank": 8}},
    ),
    "pipe": Situation(("pipeline.",), {"pipeline": {}}),
    "token_dropping": Situation(
        ("data_efficiency.data_routing.",),
        {
            "data_efficiency": {
                "enabled": True,
                "data_routing": {
                    "enabled": True,
                    "random_ltd": {
                        "enabled": True,
                        "total_layer_num": 3,
                        "random_ltd_layer_num": 2,
                        "random_ltd_layer_id": [0, 1],
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
                    },
                },
            }
        },
    ),
    "curriculum": Situation(
        ("data_efficiency.seed", "data_efficiency.data_sampling."),
        {
            "data_efficiency": {
                "data_sampling": {
                    "num_workers": 0,
                    "curriculum_learning": {
                        "enabled": True,
                        "data_cluster_path": "clusters",
                        "curriculum_metrics": {
                            "depth": {
                                "index_to_sample_path": "index_to_sample",
                                "index_to_metric_path": "index_to_metric",
                                "difficulty_type": "value",
                                "clustering_type": "schedule_based",
                                "min_difficulty": 2,
                                "max_difficulty": 10,
                                "schedule_type": "fixed_linear",
                                "schedule_config": {
                                    "total_curriculum_step": 5,
                                    "difficulty_step": 2,
                                    "root_degree": 2,
                                    "difficulty": [2, 4],
                                    "max_step": [2],
                                },
                            }
                        },
                    },
                }
            }
        },
    ),
    "packing": Situation(
        ("data_efficiency.data_sampling.dynamic_batching.", "data_efficiency.data_sampling.pin_memory"),
        {
            "data_efficiency": {
                "data_sampling": {
                    "num_workers": 0,
                    "dynamic_batching": {"enabled": True, "max_tokens": 5, "metrics_path": "analysis"},
                }
            }
        },
    ),
    "writer": Situation(
        ("checkpoint.writer.", "aio."),
        {"checkpoint": {"writer": {"type": "FAST", "data_parallel": "REPLICA", "io_buffer_size": 4096}}},
    ),
    "quantized": Situation(
        ("weight_quantization.quantized_initialization.",),
        {
            "bf16": {"enabled": True},
            "zero_optimization": {"stage": 3},
            "weight_quantization": {
                "quantized_initialization": {"num_bits": 8, "symmetric": False, "group_size": 8, "group_dim": 1}
            },
        },
    ),
    "quantized_later": Situation(
        ("weight_quantization.post_init_quant.",),
        {
            "weight_quantization": {
                "post_init_quant": {"1": {"num_bits": 8, "symmetric": False, "group_size": 4, "group_dim": 1}}
            }
        },
    ),
    "tensor_parallel": Situation(
        ("tensor_parallel.",),
        {
            "tensor_parallel": {
                "autotp_size": 2,
                "partition_config": {
                    "layer_specs": [
                        {
                            "patterns": ["out"],
                            "partition_type": "column",
                            "shape": [2, -1],
                            "partition_dim": 0,
                        },
                        {"patterns": ["up"], "partition_type": "column"},
                        {"patterns": ["down"], "partition_type": "row"},
                    ]
                },
            }
        },
        ranks=2,
    ),
    "recomputing": Situation(
        ("activation_checkpointing.",),
        {"activation_checkpointing": {"partition_activations": True, "number_checkpoints": 1}},
    ),
    "mesh": Situation(
        ("data_parallel_size", "sequence_parallel_size"),
        {"data_parallel_size": 1, "sequence_parallel_size": 1},
        script="plain",
    ),
    "schedule": Situation(("scheduler.params",), {"scheduler": {"type": "WarmupLR", "params": {}}}, script="plain"),
    "measured": Situation(
        (
            "autotuning.enabled",
            "autotuning.start_profile_step",
            "autotuning.end_profile_step",
            "autotuning.metric_path",
            "autotuning.model_info",
        ),
        {"autotuning": {"enabled": True}},
        script="plain",
    ),
    "datastates": Situation(("datastates_ckpt",), {"datastates_ckpt": {"host_cache_size": 1}}),
    "tuner": Situation(
        ("autotuning.",),
        {
            "autotuning": {"enabled": True, "fast": False, "max_train_micro_batch_size_per_gpu": 8},
            "zero_optimization": {"stage": 1},
        },
    ),
}
