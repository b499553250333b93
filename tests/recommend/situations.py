"""Twenty situations with the answer of an expert, written down before the tool was asked, and where the answer is from.

``python -m tests.recommend.situations`` prints what is recommended beside it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from dsmigrate.memory.activations import Checkpointing, Loss, Workload
from dsmigrate.memory.estimate import GIB, Machine
from dsmigrate.memory.shape import Described
from dsmigrate.memory.sources import typical
from dsmigrate.memory.trained import Adapter, with_adapter
from dsmigrate.memory.variants import Variant
from dsmigrate.recommend import Recommendation, Request, recommend
from dsmigrate.recommend.formats.text import title
from dsmigrate.recommend.reasons import advice, notes

_STAGES = "https://huggingface.co/docs/transformers/deepspeed#select-a-zero-stage"
_OFFLOAD = "https://arxiv.org/abs/2101.06840"
_INFINITY = "https://arxiv.org/abs/2104.07857"
_PLUS = "https://arxiv.org/abs/2306.10209"
_PEFT = "https://huggingface.co/docs/peft/accelerate/deepspeed"
_LOW = "https://github.com/deepspeedai/DeepSpeed/pull/7700"
_MIXED = "https://arxiv.org/abs/1710.03740"
_ALST = "https://arxiv.org/abs/2506.13996"


@dataclass(frozen=True)
class Situation:
    """What somebody has, what an expert answers and from where, and whether a recommendation agrees."""

    name: str
    expert: str
    source: str
    request: Request
    agrees: Callable[[Recommendation], bool]
    why: str = ""
    """Why the recommendation is another; "" where it is not."""


def _asked(billions: float | Described, machine: Machine, samples: int = 128, **more: object) -> Request:
    model = billions if isinstance(billions, Described) else typical(int(billions * 1e9))
    link = "infiniband" if machine.nodes > 1 else "nvlink"
    work = more.pop("work", Workload(1, 2048))
    found: dict[str, object] = {"half": "bf16", "samples": samples, "link": link, "hardware": "a100"}
    if machine.nodes > 1:
        found["inner"] = "nvlink"
    return Request(model, machine, work, **(found | more))  # type: ignore[arg-type]


def _machine(gpus: int, gib: int, host: int | None = None, nodes: int = 1, nvme: int | None = None) -> Machine:
    sizes = [None if size is None else size * GIB for size in (host, nvme)]
    return Machine(gpus=gpus, nodes=nodes, gpu=gib * GIB, host=sizes[0], nvme=sizes[1])


def _lora(billions: float, base: str = "16bit") -> Described:
    return with_adapter(typical(int(billions * 1e9)), Adapter(16, ("all-linear",)), base)


def _mixture() -> Described:
    block = "transformers.models.mixtral.modeling_mixtral.MixtralSparseMoeBlock"
    return replace(typical(46_700_000_000), block=block)


def _bare(*stages: int) -> Callable[[Recommendation], bool]:
    """Return whether one of some stages is chosen, without offload."""

    def agrees(found: Recommendation) -> bool:
        one = found.chosen
        return (
            one is not None and one.variant.stage in stages and one.variant.optimizer == one.variant.weights == "none"
        )

    return agrees


def _chosen(*variants: Variant, kept: Checkpointing | None = None, least: int = 1) -> Callable[[Recommendation], bool]:
    """Return whether one of some variants is chosen, with that checkpointing, and so many samples at a time."""

    def agrees(found: Recommendation) -> bool:
        one = found.chosen
        if one is None or one.variant not in variants or one.estimate.work.micro_batch < least:
            return False
        return kept is None or one.checkpointing is kept

    return agrees


def _before(first: Variant, second: Variant) -> Callable[[Recommendation], bool]:
    def agrees(found: Recommendation) -> bool:
        order = [one.variant for one in found.fitting]
        return order.index(first) < order.index(second)

    return agrees


def _says(*texts: str) -> Callable[[Recommendation], bool]:
    """Return whether advice or notes say something."""

    def agrees(found: Recommendation) -> bool:
        said = " ".join((*notes(found), *(advice(found) if found.chosen is None else ())))
        return all(text in said for text in texts)

    return agrees


def _with_leaf(found: Recommendation) -> bool:
    one = found.chosen
    if one is None or one.variant.stage != 3 or one.variant.optimizer != "cpu":
        return False
    return "MixtralSparseMoeBlock" in str(one.config["zero_optimization"].get("leaf_module"))


def _half(found: Recommendation) -> bool:
    return _bare(0, 1, 2)(found) and "fp16" in (found.chosen.config if found.chosen is not None else {})


def _shares(*ranks: int) -> Callable[[Recommendation], bool]:
    """Return whether one of some numbers of GPUs shares each sample, and it is said what the script has to do."""

    def agrees(found: Recommendation) -> bool:
        one = found.chosen
        return one is not None and one.variant.sequence in ranks and _says("UlyssesSPDataLoaderAdapter")(found)

    return agrees


ON_CPU = (
    Variant(1, "cpu"),
    Variant(2, "cpu"),
    Variant(3, "cpu"),
)
LONG = Workload(1, 131072)

SITUATIONS = (
    Situation(
        "125M, eight A100-80", "no offload, the lowest stage: it fits many times", _STAGES,
        _asked(0.125, _machine(8, 80)), _bare(0, 1, 2),
    ),
    Situation(
        "350M, four V100-32", "fp16, no offload", "https://github.com/deepspeedai/DeepSpeed/issues/6723",
        _asked(0.35, _machine(4, 32), half="fp16", hardware="v100"), _half,
    ),
    Situation(
        "1.3B, eight A100-40", "ZeRO-1 or 2, no offload", _STAGES, _asked(1.3, _machine(8, 40)), _bare(0, 1, 2),
    ),
    Situation(
        "7B, eight A100-80", "ZeRO-1 or 2 before 3, no offload", _STAGES, _asked(7, _machine(8, 80)), _bare(1, 2),
    ),
    Situation(
        "7B, one A100-80", "the optimizer on the CPU: states take 112 GB", _OFFLOAD,
        _asked(7, _machine(1, 80, 256)), _chosen(*ON_CPU),
    ),
    Situation(
        "13B, one V100-32", "ZeRO-Offload with checkpointing", _OFFLOAD,
        _asked(13, _machine(1, 32, 1536), half="fp16", hardware="v100"),
        _chosen(Variant(2, "cpu"), Variant(1, "cpu"), Variant(3, "cpu"), kept=Checkpointing.FULL),
        why="for 128 samples a step ZeRO-2 has room for two at a time, and all gradients cross to the host for each; "
        "with the weights on the host eight fit",
    ),
    Situation(
        "7B, four A100-40", "ZeRO-3 with checkpointing rather than offload", _STAGES,
        _asked(7, _machine(4, 40, 512)), _bare(3),
    ),
    Situation(
        "7B, eight RTX 4090", "ZeRO-3 with checkpointing", _STAGES,
        _asked(7, _machine(8, 24, 256), link="pcie", hardware="rtx 4090"), _bare(3),
    ),
    Situation(
        "13B, eight A100-80", "ZeRO-2 or 3, no offload", _STAGES, _asked(13, _machine(8, 80)), _bare(2, 3),
    ),
    Situation(
        "30B, eight A100-40", "ZeRO-3, the optimizer on the CPU, checkpointing", _STAGES,
        _asked(30, _machine(8, 40, 1024)),
        _chosen(Variant(3, "cpu"), kept=Checkpointing.FULL),
    ),
    Situation(
        "70B, eight A100-80", "ZeRO-3, the optimizer on the CPU, checkpointing, and not one sample at a time", _OFFLOAD,
        _asked(70, _machine(8, 80, 2048)),
        _chosen(*ON_CPU, kept=Checkpointing.FULL, least=4),
    ),
    Situation(
        "70B, 32 A100-80 on four nodes", "ZeRO-3 without offload, weights gathered inside of a node", _PLUS,
        _asked(70, _machine(8, 80, nodes=4), 256), _chosen(Variant(3), Variant(3, group=8)),
    ),
    Situation(
        "7B, 16 nodes of eight A100-80, ethernet", "ZeRO-1 before ZeRO-3: it sends once a step", _PLUS,
        _asked(7, _machine(8, 80, nodes=16), 1024, link="ethernet"), _before(Variant(1), Variant(3)),
    ),
    Situation(
        "1.3B, two nodes of eight, ethernet, 1024 samples", "ZeRO-1 before ZeRO-2: accumulation is free there",
        "https://www.deepspeed.ai/tutorials/zero/",
        _asked(1.3, _machine(8, 40, nodes=2), 1024, link="ethernet"), _before(Variant(1), Variant(2)),
    ),
    Situation(
        "70B by LoRA, eight H100", "ZeRO-3 without offload, more than one sample at a time", _PEFT,
        _asked(_lora(70), _machine(8, 80), hardware="h100"), _chosen(Variant(3), least=2),
    ),
    Situation(
        "70B by QLoRA, two A100-40", "ZeRO-3 without offload: whole it does not fit", _PEFT,
        _asked(_lora(70, "4bit-double"), _machine(2, 40), 16), _bare(3),
    ),
    Situation(
        "7B by QLoRA, one GPU of 24", "nothing has to leave the GPU", "https://arxiv.org/abs/2305.14314",
        _asked(_lora(7, "4bit-double"), _machine(1, 24), 16, hardware="rtx 3090", link="pcie"), _bare(0, 1, 2),
    ),
    Situation(
        "8B, 32768 tokens, eight H100", "fuse or tile the loss", _ALST,
        _asked(8, _machine(8, 80), 8, work=Workload(1, 32768), hardware="h100"), _says("--loss fused"),
    ),
    Situation(
        "8B, 131072 tokens, eight H100", "Ulysses and a tiled loss", _ALST,
        _asked(8, _machine(8, 80), 8, work=LONG, hardware="h100"),
        lambda found: _shares(8)(found) and _says("--loss fused")(found),
    ),
    Situation(
        "Mixtral 8x7B, eight A100-80", "ZeRO-3, the optimizer on the CPU, the expert block as a leaf module",
        "https://github.com/deepspeedai/DeepSpeed/issues/5066",
        _asked(_mixture(), _machine(8, 80, 1536)), _with_leaf,
    ),
    Situation(
        "175B, eight A100-80 with 2 TB and NVMe", "ZeRO-Infinity: states on NVMe", _INFINITY,
        _asked(175, _machine(8, 80, 2048, nvme=30_000), nvme_path="/nvme"),
        lambda found: found.chosen is not None and found.chosen.variant.uses_nvme,
    ),
    Situation(
        "8B, 262144 tokens, a fused loss, eight H100", "Ulysses: the blocks themselves are too large", _ALST,
        _asked(8, _machine(8, 80), 8, work=Workload(1, 262144, loss=Loss.FUSED), hardware="h100"), _shares(4, 8),
    ),
    Situation(
        "7B, one A100-80 with 64 GB of host memory", "bf16 masters and states: 6 bytes a parameter, not 12", _LOW,
        _asked(7, _machine(1, 80, 64)),
        lambda found: found.chosen is not None and found.chosen.variant.low and _says("more host memory")(found),
    ),
    Situation(
        "7B, eight A100-80, bf16 states allowed", "fp32 masters as long as they fit", _MIXED,
        _asked(7, _machine(8, 80)), lambda found: found.chosen is not None and found.chosen.variant.is_plain,
    ),
)  # fmt: skip


def main() -> None:
    """Print each situation with both answers."""
    for one in SITUATIONS:
        found = recommend(one.request)
        chosen = "nothing fits" if found.chosen is None else title(found.chosen)
        batch = "" if found.chosen is None else f", {found.chosen.estimate.work.micro_batch} samples at a time"
        print(
            f"{'agrees' if one.agrees(found) else 'DIFFERS'}: {one.name}\n  expert: {one.expert}\n"
            f"  here:   {chosen}{batch}{f' ({one.why})' if one.why else ''}"
        )


if __name__ == "__main__":
    main()
