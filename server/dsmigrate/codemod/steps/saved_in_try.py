"""MG634: a save within the script's own ``try``, whose handler goes on where the file cannot be written."""

from __future__ import annotations

from dsmigrate.codemod.model import Idea, Kind
from dsmigrate.codemod.plan import Plan
from dsmigrate.codemod.steps.checkpoint_facts import Found
from dsmigrate.codemod.steps.resumed_in_try import passing_over
from dsmigrate.codemod.tree import Node

IDEAS = (
    Idea(
        "MG634",
        "A save within the script's own try",
        "try: torch.save(…) except OSError: … went on where the disk was full, or tried another path.",
        "The checkpoint is written by all ranks, mostly behind the try: a rank that cannot write its part raises there, and the "
        "launcher ends the run. Where the save stands within the try, the other ranks wait for the one whose error was passed "
        "over. What the handler does instead (another path, another attempt) is not done any more.",
        "deepspeed/runtime/engine.py, save_checkpoint, which ends with a barrier",
        Kind.KEPT,
    ),
)

_CATCHES = frozenset({
    "Exception", "BaseException", "OSError", "IOError", "EnvironmentError", "PermissionError", "RuntimeError",
})  # fmt: skip
_DEPTH = 3


def saved_in_try(plan: Plan, found: Found) -> None:
    """Say where an error of a save was passed over by a handler of the script."""
    seen: set[Node] = set()
    for save in found.saves:
        around = passing_over(plan, save.statement, _DEPTH, _CATCHES)
        if around is None or around in seen:
            continue
        seen.add(around)
        plan.kept("MG634", save.statement, "the except around this no longer goes on where the checkpoint cannot be written: that ends the run, or "
                  "leaves ranks waiting for the one that failed", "all ranks write it together, mostly behind the try")  # fmt: skip
