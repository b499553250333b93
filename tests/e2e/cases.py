"""Which example is trained how, and what it is there for.

A case is one command line of one example. Every case is run as it is under DDP and, converted, under DeepSpeed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Launch = Literal["torchrun", "slurm"]
Precision = Literal["fp32", "bf16", "fp16"]


@dataclass(frozen=True, slots=True)
class Case:
    """One run of one example.

    ``argv`` belongs to the uninterrupted run; ``{rank}`` in it stands for the local rank. With ``halves`` the
    script is run twice, stopped by the first arguments and resumed by the second, and both together must print what
    the uninterrupted original prints; ``ranks`` are other numbers of processes that may resume it. ``exports`` are
    weight files that must hold the same names, shapes and values. ``weights`` makes the original run once before, with
    the arguments in the first place, and puts the file it wrote at the second place into every run as
    ``pretrained.pt``. ``together`` are other scripts of the folder, which share modules with this one and are converted
    in the same run; without them these scripts stay as they are, and have to train as before.
    ``options`` are more flags of the conversion.
    """

    name: str
    script: str
    argv: tuple[str, ...] = ()
    precision: Precision = "fp32"
    halves: tuple[tuple[str, ...], tuple[str, ...]] | None = None
    ranks: tuple[int, ...] = (3, 1)
    exports: tuple[str, ...] = ()
    weights: tuple[tuple[str, ...], str] | None = None
    launch: Launch = "torchrun"
    together: tuple[str, ...] = ()
    options: tuple[str, ...] = ()

    @property
    def example(self) -> str:
        """The name of the example: the folder, or the file without its ending."""
        return self.script.split("/")[0].removesuffix(".py")

    @property
    def is_folder(self) -> bool:
        """Whether the example is a folder of modules rather than one file."""
        return "/" in self.script


CASES: tuple[Case, ...] = (
    Case(
        "imagenet_resnet",
        "imagenet_resnet.py",
        argv=("--epochs", "6"),
        halves=(("--epochs", "2"), ("--epochs", "6", "--resume", "checkpoint.pth.tar")),
        ranks=(3,),
    ),
    Case("bert_mlm_bf16", "bert_mlm_bf16.py", argv=("--max_grad_norm", "0.63"), precision="bf16"),
    Case(
        "vit_fp16_scaler",
        "vit_fp16_scaler.py",
        halves=(("--stop-epoch", "1"), ("--resume", "output/checkpoint.pth")),
    ),
    Case(
        "vit_fp16_scaler-amp",
        "vit_fp16_scaler.py",
        argv=("--amp",),
        precision="fp16",
        halves=(("--amp", "--stop-epoch", "1"), ("--amp", "--resume", "output/checkpoint.pth")),
    ),
    Case(
        "vit_fp16_scaler-amp-unclipped",
        "vit_fp16_scaler.py",
        argv=("--amp", "--clip-grad", "0", "--lr", "0.02"),
        precision="fp16",
    ),
    Case("segmentation_accum", "segmentation_accum.py"),
    Case(
        "nanogpt",
        "nanogpt.py",
        argv=("--grad_clip=0.57",),
        halves=(("--grad_clip=0.57", "--max_iters=8"), ("--grad_clip=0.57", "--init_from=resume")),
        ranks=(4, 1),
    ),
    Case(
        "nanogpt-bf16",
        "nanogpt.py",
        argv=("--grad_clip=0.57", "--dtype=bfloat16"),
        precision="bf16",
        halves=(
            ("--grad_clip=0.57", "--dtype=bfloat16", "--max_iters=8"),
            ("--grad_clip=0.57", "--dtype=bfloat16", "--init_from=resume"),
        ),
        ranks=(1, 4),
    ),
    Case("cifar_schedules-multistep", "cifar_schedules.py", exports=("vggish.pth",)),
    Case("cifar_schedules-cosine", "cifar_schedules.py", argv=("--sched", "cosine", "--optim", "adam", "--mixup", "0")),
    Case("spawn_regression", "spawn_regression.py", argv=("--nprocs", "2"), exports=("tabular.pt",)),
    Case("trainer_class", "trainer_class.py", argv=("4", "1"), halves=(("2", "1"), ("4", "1"))),
    Case(
        "warmup_resume",
        "warmup_resume.py",
        halves=(("--epochs", "2"), ("--resume", "checkpoints/last.pt")),
    ),
    Case("helper_tuple", "helper_tuple.py"),
    Case(
        "prepare_resume",
        "prepare_resume.py",
        precision="bf16",
        halves=(("--epochs", "1"), ("--resume", "strokes.pt")),
    ),
    Case("param_groups_adamw", "param_groups_adamw.py", argv=("--output_dir", ".")),
    Case(
        "launch_local_rank",
        "launch_local_rank.py",
        argv=("--local_rank={rank}",),
        exports=("model_0002.model",),
    ),
    Case("no_sync_accum", "no_sync_accum.py", exports=("towers.pt",)),
    Case(
        "ema_unwrap",
        "ema_unwrap.py",
        halves=(("--epochs", "2"), ("--ckpt", "results/0000012.pt")),
        exports=("results/model.pt", "results/ema.pt"),
        ranks=(1, 4),
    ),
    Case(
        "ema_unwrap-pretrained",
        "ema_unwrap.py",
        argv=("--epochs", "2", "--pretrained", "pretrained.pt"),
        weights=(("--epochs", "1"), "results/model.pt"),
    ),
    Case("gradnorm_log", "gradnorm_log.py"),
    Case("train_func_scaler", "train_func_scaler.py", argv=("--save-model",), exports=("keywords.pt",)),
    Case("train_func_scaler-fp16", "train_func_scaler.py", argv=("--fp16",), precision="fp16"),
    Case(
        "train_func_scaler-fp16-clipped",
        "train_func_scaler.py",
        argv=("--fp16", "--max-norm", "0.5"),
        precision="fp16",
    ),
    Case("slurm_env-torchrun", "slurm_env.py"),
    Case("slurm_env-slurm", "slurm_env.py", launch="slurm"),
    Case("autocast_ctx-bf16", "autocast_ctx.py", precision="bf16"),
    Case("autocast_ctx-fp32", "autocast_ctx.py", argv=("--precision", "fp32")),
    Case("running_mean", "running_mean.py"),
    Case("frozen_backbone-adagrad", "frozen_backbone.py", exports=("finetuned.pt",)),
    Case("frozen_backbone-rmsprop", "frozen_backbone.py", argv=("--optimizer", "rmsprop", "--unfreeze-last")),
    Case(
        "mae_engine",
        "mae_engine/main_pretrain.py",
        argv=("--clip_grad", "0.35"),
        halves=(
            ("--clip_grad", "0.35", "--stop_epoch", "0"),
            ("--clip_grad", "0.35", "--resume", "output_dir/checkpoint-0.pth"),
        ),
        ranks=(1, 3),
    ),
    Case("mae_engine-accum", "mae_engine/main_pretrain.py", argv=("--accum_iter", "2")),
    Case(
        "mae_engine-accum-amp",
        "mae_engine/main_pretrain.py",
        argv=("--amp", "--accum_iter", "2", "--clip_grad", "0.35"),
        precision="fp16",
    ),
    Case(
        "distribute_helper",
        "distribute_helper/main.py",
        halves=(("--epochs", "1"), ("--resume", "tagger.pt")),
    ),
    Case(
        "trainer_hooks",
        "trainer_hooks/train.py",
        halves=(("--epochs", "1"), ("--resume", "runs/last.pt")),
    ),
    Case("two_entries-pretrain", "two_entries/pretrain.py", together=("two_entries/finetune.py",)),
    Case("two_entries-finetune", "two_entries/finetune.py", together=("two_entries/pretrain.py",)),
    Case("two_entries-alone", "two_entries/pretrain.py"),
    Case(
        "config_tree",
        "config_tree/train.py",
        halves=(("train.epochs=1",), ("run.resume=forecaster.pt",)),
    ),
    Case("bert_utils", "bert_utils/run_tagging.py", argv=("--max_grad_norm", "0.43")),
    Case("task_state", "task_state/train.py", precision="bf16"),
    Case("library_scaler", "library_scaler/main.py", argv=("--clip-grad", "0.6", "--update-freq", "2")),
    Case(
        "library_scaler-amp",
        "library_scaler/main.py",
        argv=("--amp", "--clip-grad", "0.6", "--update-freq", "2"),
        precision="fp16",
        halves=(
            ("--amp", "--clip-grad", "0.6", "--update-freq", "2", "--stop-epoch", "0"),
            ("--amp", "--clip-grad", "0.6", "--update-freq", "2", "--resume", "output_dir/checkpoint.pth"),
        ),
        ranks=(1, 3),
    ),
    Case(
        "zero_redundancy",
        "zero_redundancy.py",
        halves=(("--stop-epoch", "2"), ("--resume", "autoencoder.pt")),
    ),
    Case("comm_hooks-fp16", "comm_hooks.py", argv=("--comm-hook", "fp16")),
    Case("comm_hooks-none", "comm_hooks.py"),
)


def case_named(name: str) -> Case:
    """The case of that name; KeyError when there is none."""
    return {case.name: case for case in CASES}[name]
