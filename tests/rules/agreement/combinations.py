"""Faults of several keys that do not go together."""

from __future__ import annotations

import copy

from .bench import Bench, Fault
from .case import Config, Planted


def combined(kind: str, family: str, *choices: Config) -> Fault:
    """Return the fault that mixes values of several keys, each left out, or one of what is given, by chance."""

    def plant(bench: Bench) -> Planted | None:
        chosen = bench.rng.choice(choices)
        for path, contents in chosen.items():
            if bench.rng.random() < 0.9 and not bench.put(path, copy.deepcopy(bench.rng.choice(contents))):
                return None
        return Planted(kind, tuple(chosen), family)

    return plant


SWITCH = (True, True, False)
STAGES = (0, 1, 2, 3)
DEVICES = ("none", "cpu", "nvme")
TYPES = ("Adam", "AdamW", "Lion", "Muon", "SGD", "Lamb", "Adagrad", "OneBitAdam", "RMSprop")
precision = combined(
    "precision",
    "precision",
    {"fp16.enabled": SWITCH, "bf16.enabled": SWITCH},
    {"fp16.enabled": SWITCH, "fp16.loss_scale": (0, -1, 1, 128, True, "0"), "fp16.loss_scale_window": (0, 1000, -1)},
    {"fp16.enabled": SWITCH, "fp16.min_loss_scale": (0, 1, -1, True), "fp16.initial_scale_power": (0, 16, -1, 200)},
    {"fp16.enabled": SWITCH, "fp16.fp16_master_weights_and_grads": SWITCH, "zero_optimization.stage": STAGES},
    {
        "bf16.enabled": SWITCH,
        "bf16.bf16_master_weights_and_grads": SWITCH,
        "bf16.bf16_optimizer_states": SWITCH,
        "zero_optimization.stage": STAGES,
        "zero_optimization.offload_optimizer.device": DEVICES,
    },
    {
        "bf16.enabled": SWITCH,
        "data_types.grad_accum_dtype": ("fp32", "bf16", "fp16"),
        "zero_optimization.stage": STAGES,
    },
    {"bf16.enabled": SWITCH, "fp16.enabled": (False,), "data_types.param_dtype": ("bf16", "fp16", "fp32", "zzz")},
    {"torch_autocast.enabled": SWITCH, "torch_autocast.dtype": ("bfloat16", "fp8", "float16"), "bf16.enabled": SWITCH},
    {"torch_autocast.enabled": SWITCH, "zero_optimization.zero_quantized_weights": SWITCH},
    {"communication_data_type": ("fp16", "BF16", "fp8", "float32"), "gradient_allreduce_op": ("mean", "sum", "max")},
)
zero = combined(
    "ZeRO",
    "zero",
    {"zero_optimization.stage": (*STAGES, 4, -1, "2", True), "zero_optimization.legacy_stage1": SWITCH},
    {"zero_optimization.stage": STAGES, "zero_optimization.compute_grad_norm": (False,), "gradient_clipping": (0, 1.0)},
    {"zero_optimization.stage": STAGES, "zero_optimization.allgather_bucket_size": (3, 4, 0, -2)},
    {"zero_optimization.stage": STAGES, "prescale_gradients": SWITCH, "gradient_predivide_factor": (1.0, 2.0, 0)},
    {
        "zero_optimization.stage": STAGES,
        "zero_optimization.reduce_scatter": SWITCH,
        "prescale_gradients": SWITCH,
        "gradient_allreduce_op": ("mean", "sum"),
    },
    {
        "zero_optimization.stage": STAGES,
        "zero_optimization.zero_quantized_gradients": SWITCH,
        "zero_optimization.reduce_scatter": SWITCH,
    },
    {"zero_optimization.stage": STAGES, "zero_optimization.zero_hpz_partition_size": (1, 2, 8, 0)},
    {
        "zero_optimization.stage": STAGES,
        "managed_gradient_accumulation": (False,),
        "zero_optimization.overlap_comm": SWITCH,
    },
    {"zero_optimization.stage": STAGES, "zero_optimization.elastic_checkpoint": SWITCH},
    {"zero_optimization": (True, False, None, {}), "zero_allow_untested_optimizer": SWITCH},
    {"zero_optimization.stage": STAGES, "zero_optimization.leaf_module.classes": ([], ["zzz"], "zzz", [1])},
)
offload = combined(
    "offload",
    "offload",
    {
        "zero_optimization.stage": STAGES,
        "zero_optimization.offload_optimizer.device": (*DEVICES, "gpu"),
        "zero_optimization.offload_optimizer.nvme_path": ("/local_nvme", None),
        "optimizer.type": TYPES,
    },
    {
        "zero_optimization.stage": STAGES,
        "zero_optimization.offload_optimizer.device": DEVICES,
        "zero_optimization.offload_optimizer.ratio": (0, 0.5, 1, 1.5),
    },
    {
        "zero_optimization.stage": STAGES,
        "zero_optimization.offload_param.device": (*DEVICES, "CPU"),
        "zero_optimization.offload_param.nvme_path": ("/local_nvme", None, 3),
    },
    {
        "zero_optimization.stage": STAGES,
        "zero_optimization.offload_optimizer.device": DEVICES,
        "zero_optimization.zenflow.select_strategy": ("auto", "step", "epoch", "zzz"),
        "zero_optimization.zenflow.select_interval": ("auto", 4, "zzz"),
        "zero_optimization.zenflow.update_interval": ("auto", 4, 0, 8),
        "zero_optimization.zenflow.topk_ratio": (0.1, 0.0, 1.0),
    },
    {"zero_optimization.stage": STAGES, "zero_optimization.cpu_offload": SWITCH},
    {"zero_optimization.cpu_offload": SWITCH, "zero_optimization.offload_optimizer": ({}, {"device": "cpu"})},
    {"zero_force_ds_cpu_optimizer": SWITCH, "zero_optimization.offload_optimizer.device": DEVICES},
    {"aio.block_size": (0, 1048576, "1M"), "aio.queue_depth": (0, 8)},
)
