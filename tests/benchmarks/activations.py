"""Estimates of activations beside published figures and, where torch is there, beside what autograd keeps.

``python -m tests.benchmarks.activations`` prints each figure with its deviation. ``DSMIGRATE_TORCH_PYTHON`` names an
interpreter with torch and transformers for the second table.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dsmigrate.memory.activations import Attention, Checkpointing, Loss, Workload, activations, block_bytes, norm_bytes
from dsmigrate.memory.model import Place, When
from dsmigrate.memory.shape import Shape
from dsmigrate.memory.sources.config import ModelConfig
from dsmigrate.memory.sources.decoder import shape as decoder_shape

GIB, TIB, GB = 1 << 30, 1 << 40, 10**9
JUDGE = Path(__file__).resolve().parents[1] / "e2e" / "activation_judge.py"


@dataclass(frozen=True)
class Figure:
    """A published figure and ours, in one unit; ``allowed`` is the share that they may differ by."""

    name: str
    published: float
    ours: float
    allowed: float

    @property
    def deviation(self) -> float:
        """How far ours is off, as a share of what is published."""
        return self.ours / self.published - 1


def _held(shape: Shape, work: Workload) -> int:
    return sum(part.bytes or 0 for part in activations(shape, work) if part.place is Place.GPU)


def _figures() -> Iterator[Figure]:
    """Yield the figures of three papers.

    ZeRO (arXiv:1910.02054), section 3.2: GPT-2 with 1.5 billion parameters, 1024 tokens, batch 32: about 60 GB, which
    its footnote takes from 12 elements per hidden element, about 8 GB with checkpoints; the published terms without
    scores are 34 bytes where the footnote has 24. ZeRO-Infinity (arXiv:2104.07857), figure 2: checkpoints of a node of
    16 GPUs with batch 32, TB. "Reducing Activation Recomputation" (arXiv:2205.05198): what recomputing attention saves
    of GPT-3 and MT-NLG, section 5, and activations of a block of its models, section 4.
    """
    gpt2 = Shape.of_gpt(48, 1600, 25, 0)
    work = Workload(32, 1024)
    yield Figure("ZeRO: GPT-2 1.5B, batch 32, GB", 60, _held(gpt2, work) / GB, 0.5)
    full = _held(gpt2, Workload(32, 1024, Checkpointing.FULL))
    yield Figure("ZeRO: the same with checkpoints, GB", 8, full / GB, 0.15)
    for name, layers, hidden, heads, published in (
        ("0.1T", 80, 10240, 128, 0.05),
        ("0.5T", 100, 20480, 160, 0.12),
        ("1T", 128, 25600, 256, 0.20),
        ("10T", 195, 65536, 512, 0.76),
        ("100T", 315, 163840, 1024, 3.08),
    ):
        shape = Shape.of_gpt(layers, hidden, heads, 0)
        kept = [part.bytes or 0 for part in activations(shape, Workload(32, 1024, Checkpointing.HOST))]
        yield Figure(f"ZeRO-Infinity: checkpoints of {name}, TB per node", published, kept[0] / TIB, 0.03)
    for name, hidden, heads, saved in (("GPT-3 175B", 12288, 96, 0.70), ("MT-NLG 530B", 20480, 128, 0.65)):
        shape = Shape.of_gpt(1, hidden, heads, 0)
        eager, kernel = (
            block_bytes(shape, Workload(1, 2048, attention=kind)) for kind in (Attention.EAGER, Attention.FLASH)
        )
        yield Figure(f"Recomputation: share of attention scores in {name}", saved, 1 - kernel / eager, 0.02)
    for name, hidden, heads in (("22B", 6144, 64), ("175B", 12288, 96), ("530B", 20480, 128), ("1T", 25600, 160)):
        formula = 2048 * hidden * (34 + 5 * heads * 2048 / hidden)
        ours = 2048 * block_bytes(Shape.of_gpt(1, hidden, heads, 0), Workload(1, 2048, attention=Attention.EAGER))
        yield Figure(f"Recomputation: a block of {name}, GiB", formula / GIB, ours / GIB, 0.001)


PUBLISHED = tuple(_figures())

MODELS: tuple[dict[str, Any], ...] = (
    {"model_type": "llama", "intermediate_size": 344, "num_key_value_heads": 4},
    {"model_type": "mistral", "intermediate_size": 448, "num_key_value_heads": 2},
    {"model_type": "qwen2", "intermediate_size": 480, "num_key_value_heads": 4},
    {"model_type": "granite", "intermediate_size": 344, "num_key_value_heads": 4},
    {"model_type": "gpt_neox", "intermediate_size": 512, "hidden_dropout": 0.0},
    {
        "model_type": "gpt2",
        "n_inner": None,
        "n_positions": 256,
        "resid_pdrop": 0.0,
        "attn_pdrop": 0.0,
        "embd_pdrop": 0.0,
    },
    {"model_type": "opt", "ffn_dim": 512, "word_embed_proj_dim": 128, "dropout": 0.0, "max_position_embeddings": 256},
    {"model_type": "starcoder2", "intermediate_size": 512, "num_key_value_heads": 4, "residual_dropout": 0.0},
)
"""Small models without dropout, whose masks have other sizes on CPU."""
COMMON = {"vocab_size": 512, "hidden_size": 128, "num_hidden_layers": 4, "num_attention_heads": 8}
SAMPLES, TOKENS = 2, 64
WIDTHS = {"bfloat16": 2, "float32": 4}


def loss_bytes(kind: Loss, width: int) -> float:
    """Return what a loss holds at its peak for each token and word."""
    shape = Shape.of_gpt(1, 8, 1, 4096)
    parts = activations(shape, Workload(1, 512, loss=kind), width)
    return sum(part.bytes or 0 for part in parts if part.when is When.LOSS) / 512 / 4096


def measured(python: str) -> list[Figure]:
    """Return what autograd keeps of each model behind its last norm, in KiB, without scores; and peaks of losses."""
    models = [model | {name: size for name, size in COMMON.items() if name not in model} for model in MODELS]
    jobs: list[dict[str, Any]] = [{"values": model, "samples": SAMPLES, "tokens": TOKENS} for model in models]
    jobs += [{"loss": one.value, "format": name} for one in Loss if one is not Loss.FUSED for name in WIDTHS]
    lines = "".join(json.dumps(job) + "\n" for job in jobs)
    child = subprocess.run([python, str(JUDGE)], input=lines, capture_output=True, text=True, timeout=600, check=False)
    told = [json.loads(line) for line in child.stdout.splitlines()]
    assert len(told) == len(jobs), child.stderr[-2000:]
    return [_beside(job, answer) for job, answer in zip(jobs, told, strict=True)]


def _beside(asked: dict[str, Any], answer: dict[str, Any]) -> Figure:
    assert "error" not in answer, answer
    if "loss" in asked:
        kept = loss_bytes(Loss(asked["loss"]), WIDTHS[asked["format"]])
        return Figure(f"loss {asked['loss']} of {asked['format']}, bytes", answer["bytes"], kept, 0.02)
    job = asked["values"]
    found = decoder_shape(ModelConfig(job, "config.json"))
    per_token = found.layers * block_bytes(found, Workload(SAMPLES, TOKENS)) + norm_bytes(found)
    ours = SAMPLES * TOKENS * per_token
    return Figure(f"{job['model_type']}, 4 blocks, KiB", answer["bytes"] / 1024, ours / 1024, 0.12)


def main() -> None:
    """Print both tables."""
    python = os.environ.get("DSMIGRATE_TORCH_PYTHON", sys.executable)
    print(f"{'published':<52} {'figure':>10} {'ours':>10} {'deviation':>10}")
    for one in PUBLISHED:
        print(f"{one.name:<52} {one.published:>10.3f} {one.ours:>10.3f} {one.deviation:>+10.1%}")
    print(f"\n{'kept by autograd (transformers on CPU, bf16)':<52} {'measured':>10} {'ours':>10} {'deviation':>10}")
    for one in measured(python):
        print(f"{one.name:<52} {one.published:>10.1f} {one.ours:>10.1f} {one.deviation:>+10.1%}")


if __name__ == "__main__":
    main()
