"""The names under which the objects of a training are known: wrappers, scalers, optimizers, schedulers."""

from __future__ import annotations

import re

from dsmigrate.codemod.names import Imports
from dsmigrate.codemod.tree import Node

DDP_NAMES = frozenset({
    "torch.nn.parallel.DistributedDataParallel",
    "torch.nn.parallel.distributed.DistributedDataParallel",
    "torch.nn.DistributedDataParallel",
    "apex.parallel.DistributedDataParallel",
    "apex.parallel.distributed.DistributedDataParallel",
    "DistributedDataParallel",
    "nn.parallel.DistributedDataParallel",
})  # fmt: skip


DATA_PARALLEL_NAMES = frozenset(
    {
        "torch.nn.DataParallel",
        "torch.nn.parallel.DataParallel",
        "torch.nn.parallel.data_parallel.DataParallel",
        "nn.DataParallel",
    }
)


SCALER_NAMES = frozenset(
    {
        "torch.cuda.amp.GradScaler",
        "torch.amp.GradScaler",
        "torch.cuda.amp.grad_scaler.GradScaler",
        "torch.amp.grad_scaler.GradScaler",
        "torch.cpu.amp.GradScaler",
        "torch.GradScaler",
        "GradScaler",
    }
)


AUTOCAST_NAMES = frozenset(
    {
        "torch.autocast",
        "torch.amp.autocast",
        "torch.cuda.amp.autocast",
        "torch.cpu.amp.autocast",
        "torch.amp.autocast_mode.autocast",
        "torch.cuda.amp.autocast_mode.autocast",
        "autocast",
    }
)


# Calls and methods that give the same model back (possibly moved, cast, compiled or converted in place).
PASS_METHODS = frozenset({
    "to", "cuda", "cpu", "half", "float", "double", "bfloat16", "train", "eval", "requires_grad_", "to_empty", "share_memory",
    "xpu", "npu", "type",
})  # fmt: skip


PASS_CALLS = re.compile(
    r"(?:^|\.)(?:compile|convert_sync_batchnorm|convert_syncbn_model|script|prepare_model|DataParallel|replace_ln"
    r"|trace|optimize|freeze|nvfuser|convert_syncbn|SyncBatchNorm)$"
)


OPTIMIZER_WORD = re.compile(r"optim(?!al)", re.IGNORECASE)


OPTIMIZER_NAME = re.compile(
    r"^(?:_?optim(?:izer)?s?\d*|opt|opti|\w*_optim(?:izer)?|optim(?:izer)?_\w+|\w+_opt|optimiser)$"
)


# Names that begin like an optimizer's, for what is known of one.
ABOUT_OPTIMIZER = re.compile(
    r"_(?:sd|states?|state_dict|dict|cfg|conf|config|kwargs|args|params?|groups?|name|type|lr)$"
)


SCHEDULER_WORD = re.compile(r"sched|warmup_?lr|lr_?warm|annealing", re.IGNORECASE)


EMA_WORD = re.compile(r"(?:^|[._])ema|averagedmodel|modelema|model_ema", re.IGNORECASE)


# The optimizer that shards the state of another one over the ranks of DDP.
REDUNDANCY_NAMES = frozenset(
    {
        "torch.distributed.optim.ZeroRedundancyOptimizer",
        "torch.distributed.optim.zero_redundancy_optimizer.ZeroRedundancyOptimizer",
    }
)


CLIP_NORM = frozenset(
    {
        "torch.nn.utils.clip_grad_norm_",
        "torch.nn.utils.clip_grad.clip_grad_norm_",
        "torch.nn.utils.clip_grad_norm",
        "torch.nn.utils.clip_grad.clip_grad_norm",
        "clip_grad_norm_",
        "nn.utils.clip_grad_norm_",
    }
)
CLIP_VALUE = frozenset(
    {
        "torch.nn.utils.clip_grad_value_",
        "torch.nn.utils.clip_grad.clip_grad_value_",
        "nn.utils.clip_grad_value_",
        "clip_grad_value_",
    }
)


TORCH_OPTIMIZERS = frozenset({
    "SGD", "Adam", "AdamW", "Adagrad", "Adadelta", "Adamax", "NAdam", "RAdam", "RMSprop", "Rprop", "ASGD", "LBFGS",
    "SparseAdam", "Adafactor", "Muon",
})  # fmt: skip


KNOWN_OPTIMIZER_CLASSES = TORCH_OPTIMIZERS | frozenset({
    "LARS", "LARC", "LAMB", "Lamb", "FusedAdam", "FusedLAMB", "FusedSGD", "BertAdam", "Lion", "Adam8bit", "AdamW8bit",
    "PagedAdamW8bit", "Lookahead", "Shampoo", "SOAP", "AdaBelief", "Ranger", "DAdaptAdam", "Prodigy", "NovoGrad",
    "RMSpropTF", "Sophia", "SophiaG", "AdamP", "SGDP", "Adan", "MADGRAD", "FusedNovoGrad", "AdaBound", "RangerLars",
})  # fmt: skip


def qualifies(imports: Imports, node: Node | None, names: frozenset[str]) -> bool:
    """Whether an expression names one of the given full names, imports taken into account."""
    return bool(imports.names(node) & names)


def is_ddp_class(imports: Imports, node: Node | None) -> bool:
    """Whether an expression names a DistributedDataParallel class (torch's or apex's, under any import)."""
    found = imports.names(node)
    if found & DDP_NAMES:
        return True
    return any(name.endswith(".DistributedDataParallel") and name.startswith((".", "torch", "apex")) for name in found)
