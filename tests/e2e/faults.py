"""Faults that a conversion could have, to be planted in conversions that have none.

Each is a trap that people fall into: the script trains, or dies late, and nobody notices unless the losses are
compared. The comparison is worth something only as long as it notices every one of them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .cases import Case
from .harness import EXAMPLES
from .planting import (
    BACKWARD,
    before_initialize,
    edit_sources,
    hand_over_scheduler,
    load_weights_late,
    optimizer_of,
    replace,
    rewrite_engine_steps,
)

CLIPPED = (
    "segmentation",
    "spawn",
    "warmup",
    "no_sync",
    "gradnorm",
    "helper_tuple",
    "slurm",
    "vit_fp16_scaler",
    "bert_utils",
    "two",
)
UNCLIPPED = ("cifar_schedules-multistep", "trainer_class", "ema_unwrap", "launch_local_rank", "frozen")
ACCUMULATING = ("segmentation", "no_sync", "nanogpt", "mae", "config_tree", "two_entries-pretrain")
AUTOCAST = ("bert_mlm", "autocast_ctx-bf16", "nanogpt-bf16", "mae", "train_func_scaler-fp16", "vit_fp16_scaler-amp")
PER_EPOCH_SCHEDULE = ("imagenet", "cifar", "vit_fp16_scaler", "helper_tuple", "param_groups", "gradnorm", "train_func")
PER_BATCH_SCHEDULE = ("bert_mlm", "warmup", "slurm_env-torchrun", "segmentation", "bert_utils")
RESUMING = ("warmup", "imagenet", "vit_fp16_scaler", "trainer", "nanogpt", "ema", "mae", "config_tree")
SGD = ("imagenet", "segmentation", "cifar", "spawn", "trainer", "launch", "no_sync")


@dataclass(frozen=True, slots=True)
class Fault:
    """One fault. ``plant`` edits the files of a converted example and raises NotApplicableError where it has no place.

    ``cases`` are the beginnings of the names of the cases to try, in this order; ``stages`` the ZeRO stages at which
    the fault makes a difference, one of which has to notice it. ``enough`` examples have to.
    """

    name: str
    trap: str
    plant: Callable[[Path, Case], None]
    cases: tuple[str, ...]
    stages: tuple[int, ...] = (0, 2)
    enough: int = 2


FAULTS: list[Fault] = []


def _plain(edit: Callable[[Path], None]) -> Callable[[Path, Case], None]:
    return lambda folder, _case: edit(folder)


def _text(change: Callable[[str], str]) -> Callable[[Path, Case], None]:
    return lambda folder, _case: edit_sources(folder, change)


def _add(name: str, trap: str, plant: Callable[[Path, Case], None], cases: tuple[str, ...], **more: Any) -> None:
    FAULTS.append(Fault(name, trap, plant, cases, **more))


# Gradients and accumulation

_add(
    "loss divided once more",
    "the engine already averages over the ranks",
    _text(lambda text: BACKWARD.sub(r"\g<indent>\g<engine>.backward((\g<loss>) / 2)", text)),
    SGD,
)
_add(
    "accumulation steps in the config too",
    "backward divides by gradient_accumulation_steps, also when the script counts the micro-batches",
    _plain(before_initialize('planted["gradient_accumulation_steps"] = 2')),
    ACCUMULATING,
)
_add(
    "managed accumulation with one step",
    "several backwards and one step are wrong at ZeRO 1 and 2 unless the script manages accumulation",
    _plain(before_initialize('planted["managed_gradient_accumulation"] = True')),
    ACCUMULATING,
    stages=(1, 2),
)
_add(
    "gate removed",
    "a step at every micro-batch trains with a smaller batch",
    _plain(replace(r"^( *)if (?:[^\n]*% *[\w.]*accum[^\n]*|not is_accumulating):$", r"\1if True:")),
    ACCUMULATING,
)
_add(
    "tail window dropped",
    "the last window of an epoch may be shorter than the others",
    _plain(replace(r" (?:or|and) \w+ \+ 1 (?:==|<) len\(\w+\)", "")),
    ("segmentation", "no_sync"),
)
_add(
    "backward on the loss",
    "gradients are not averaged over the ranks",
    _text(lambda text: BACKWARD.sub(r"\g<indent>(\g<loss>).backward()", text)),
    SGD,
    stages=(0,),
)
_add(
    "zero_grad between backward and step",
    "the gradient is gone when the engine steps",
    _text(lambda text: rewrite_engine_steps(text, "{engine}.optimizer.zero_grad(); {engine}.step()")),
    SGD,
)


def _step_the_client_optimizer(folder: Path, case: Case) -> None:
    original = (EXAMPLES / case.script).read_text()

    def change(text: str) -> str:
        return rewrite_engine_steps(text, f"{optimizer_of(original, text)}.step()")

    edit_sources(folder, change)


_add(
    "step left on the client optimizer",
    "it bypasses the engine: no clipping, no zeroing, no ZeRO",
    _step_the_client_optimizer,
    SGD,
)

_add(
    "gradients sent in another 16-bit format",
    "communication_data_type rounds them; bf16 has three bits less than fp16",
    _plain(before_initialize('planted["communication_data_type"] = "bf16"')),
    ("comm_hooks-fp16", *SGD),
)
_add(
    "an argument of the optimizer lost",
    "what ZeroRedundancyOptimizer does not take for itself belongs to the class that it makes",
    _plain(replace(r", momentum=[\w.]+(?:, nesterov=True)?", "")),
    ("zero_redundancy", *SGD),
)

# Clipping

_add(
    "gradient_clipping not written",
    "DeepSpeed 0.19.3 and later clip at 1.0 by default",
    _plain(before_initialize('planted.pop("gradient_clipping", None)')),
    UNCLIPPED,
)
_add(
    "clipping lost",
    "a clip that vanishes from the script has to appear in the config",
    _plain(before_initialize('planted["gradient_clipping"] = 0.0')),
    CLIPPED,
)
_add(
    "clip taken for 1.0",
    "the limit is mostly an argument of the script",
    _plain(before_initialize('planted["gradient_clipping"] = 1.0')),
    ("warmup", "no_sync", "gradnorm", "helper_tuple", "vit_fp16_scaler"),
)

# Precision

_add(
    "torch_autocast not enabled",
    "the engine switches a surrounding region off",
    _plain(before_initialize('planted["torch_autocast"]["enabled"] = False')),
    AUTOCAST,
)
_add(
    "autocast region dropped",
    "the loss is then computed in half precision",
    _plain(replace(r"^( *)with (?:ctx|(?:torch\.)?(?:amp\.)?autocast\([^\n]*\)):$", r"\1if True:")),
    AUTOCAST,
)
_add(
    "half-precision weights",
    "bf16 in the config is not autocast: the weights themselves are rounded",
    _plain(before_initialize('planted.pop("torch_autocast"); planted["bf16"] = dict(enabled=True)')),
    ("bert", "autocast_ctx-bf16", "nanogpt-bf16"),
)
_add(
    "fp16 scale of the engine",
    "at ZeRO 1-3 DeepSpeed clips fp16 autocast gradients before it unscales them",
    _plain(replace(r"^( +)(?:ds_compat\.use_grad_scaler\([^\n]*\)|[\w.]*scaler\.update\(\))$", r"\1pass")),
    ("train_func_scaler-fp16-clipped", "vit_fp16_scaler-amp"),
    stages=(2,),
)

# Optimizer, schedule, data

_add(
    "scheduler handed to the engine",
    "the engine steps it at every batch, besides the script's own step per epoch",
    _text(hand_over_scheduler),
    PER_EPOCH_SCHEDULE,
)
_add(
    "scheduler step removed",
    "a scheduler that stays with the script has to be stepped by the script",
    _plain(replace(r"^( +)(?:lr_scheduler|scheduler|onecycle|poly|lr_sched|decay)\.step\(\)$", r"\1pass")),
    PER_BATCH_SCHEDULE,
)
_add(
    "optimizer from the config",
    "parameter groups, weight decay and the scheduler's optimizer are lost",
    _plain(
        before_initialize(
            'planted["optimizer"] = dict(type="AdamW", params=dict(torch_adam=True, '
            'lr={optimizer}.param_groups[0]["lr"]))',
            "model={model}, model_parameters={model}.parameters()",
        )
    ),
    ("bert", "param_groups", "nanogpt", "mae", "slurm_env-torchrun"),
)
_add(
    "untested optimizer not allowed",
    "ZeRO refuses optimizers that it does not know",
    _plain(before_initialize('planted.pop("zero_allow_untested_optimizer")')),
    SGD,
    stages=(2,),
)
_add(
    "set_epoch dropped",
    "every epoch sees the samples in the same order",
    _plain(replace(r"^( +)[\w.]+\.set_epoch\(epoch\)$", r"\1pass")),
    SGD,
    stages=(2,),
)
_add(
    "weights loaded after initialize",
    "the master copy of ZeRO 1-3 wins at the next step",
    _text(load_weights_late),
    SGD,
    stages=(2,),
)

# Checkpoints

_add(
    "gathered under the rank guard",
    "all ranks have to bring their part of a checkpoint",
    _plain(
        replace(
            r"^( +)(ds_compat\.gather_checkpoint\([^\n]*\))$",
            r"\1if torch.distributed.get_rank() == 0: \2",
        )
    ),
    RESUMING[:3],
    stages=(2,),
)
_add(
    "checkpoint looked for as a folder",
    "a checkpoint is a file, as it was: training silently starts from scratch",
    _plain(replace(r"os\.path\.(?:isfile|exists)\(", "os.path.isdir(")),
    RESUMING,
    stages=(2,),
)
_add(
    "scheduler state lost",
    "the schedule starts again after a resume",
    _plain(replace(r"^( +)\w*sched\w*\.load_state_dict\([^\n]*\)$", r"\1pass")),
    RESUMING,
    stages=(2,),
)
_add(
    "optimizer state lost",
    "momentum starts at zero after a resume",
    _plain(replace(r"^( *)[\w.]*opt\w*\.load_state_dict\([^\n]*\)$", r"\1pass")),
    RESUMING,
)
_add(
    "weights not restored",
    "the engine starts with the initial weights although the script believes it resumed",
    _plain(replace(r"^( *)[\w.]*(?:model|net|without_ddp)[\w.()]*\.load_state_dict\([^\n]*\)$", r"\1pass")),
    RESUMING,
    stages=(2,),
)
_add(
    "state not taught",
    "at ZeRO 1-3 the script's optimizer has a part of its state, and weights loaded later are undone at the next step",
    _plain(replace(r"^( *)ds_compat\.(?:keep_torch|gather)_checkpoints?\([^\n]*\)$", r"\1pass")),
    RESUMING,
    stages=(2,),
)
_add(
    "export not gathered",
    "at ZeRO 3 a state dict has empty tensors unless the parameters are gathered on all ranks",
    _plain(replace(r"^( *)ds_compat\.(?:keep_torch|gather)_checkpoints?\([^\n]*\)$", r"\1pass")),
    ("cifar_schedules-multistep", "launch", "no_sync", "frozen_backbone-adagrad", "spawn", "ema_unwrap"),
    stages=(3,),
)

# What only DDP does

_add(
    "buffers not sent",
    "DDP gives all ranks the buffers of the first before each forward, DeepSpeed never",
    _plain(replace(r"^( *)ds_compat\.broadcast_buffers(?:_each_forward)?\([^\n]*\)$", r"\1pass")),
    ("running_mean",),  # batch norm trains without its running statistics
    enough=1,
)
_add(
    "norm not kept",
    "at ZeRO 0 the gradients are gone when the engine has stepped",
    _plain(replace(r"^( *)ds_compat\.keep_grad_norm\([^\n]*\)$", r"\1pass")),
    ("gradnorm", "mae"),
    stages=(0,),
)
