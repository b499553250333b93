"""MG113: a branch that shards the same model with FSDP instead of wrapping it."""

from __future__ import annotations

from dsmigrate.codemod.model import Idea, Kind
from dsmigrate.codemod.plan import Plan
from dsmigrate.codemod.tree import Statement

IDEAS = (
    Idea(
        "MG113",
        "An FSDP branch stays",
        "A script that offers FSDP beside DDP keeps that branch; the engine must not be made from a sharded model.",
        "FSDP shards the parameters itself; deepspeed.initialize behind it would average and step what is sharded already. "
        "What ZeRO stage 3 does is what FSDP does: choose the stage in the config instead.",
        "torch.distributed.fsdp; deepspeed/__init__.py, initialize",
        Kind.TODO,
    ),
)


def run(plan: Plan) -> None:
    """Mark each place that shards a model with FSDP."""
    places: list[Statement] = plan.facts.get("fsdp", [])
    for statement in dict.fromkeys(places):
        plan.todo("MG113", statement, "FSDP shards the model here, and the engine cannot be made from it: take this branch out, "
                  "ZeRO stage 3 does the same", "only the DDP branch is converted")  # fmt: skip
