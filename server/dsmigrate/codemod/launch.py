"""The commands that start the converted script."""

from __future__ import annotations

import shlex

from dsmigrate.codemod.plan import Plan


def commands(plan: Plan, path: str) -> tuple[str, ...]:
    """One command per launcher, for two processes on one machine; the script's own options follow."""
    name = shlex.quote(path) if path != "-" else "train.py"
    flag = "" if plan.facts.get("takes_local_rank") else "--no_local_rank "
    return (f"torchrun --nproc_per_node 2 {name}", f"deepspeed --num_gpus 2 {flag}{name}")
