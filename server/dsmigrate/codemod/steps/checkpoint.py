"""MG62x: resume checkpoints become DeepSpeed checkpoints, weights-only exports stay.

A DeepSpeed checkpoint is a directory that all ranks write together, while scripts save under a rank guard, often deep
inside helpers, at a path that only rank 0 works out. So the guarded place *requests* the checkpoint (as it called
``torch.save``), and behind the guard all ranks save what rank 0 requested. What the script put into its dictionary
(epoch, scheduler, scaler, EMA, RNG state) travels as client state under one key, so that no name can collide with
DeepSpeed's own.
"""

from __future__ import annotations

from dsmigrate.codemod.plan import Plan
from dsmigrate.codemod.steps.checkpoint_facts import find
from dsmigrate.codemod.steps.checkpoint_load import loads
from dsmigrate.codemod.steps.checkpoint_save import saves
from dsmigrate.codemod.steps.exports import exports, late_weights, outside_helpers, pretrained, stray_state
from dsmigrate.codemod.steps.own_saves import own_saves
from dsmigrate.codemod.steps.prefixed import prefixed
from dsmigrate.codemod.steps.saved_in_try import saved_in_try
from dsmigrate.codemod.steps.stopped_saves import stopped


def run(plan: Plan) -> None:
    """Convert resume checkpoints and keep exports."""
    found = find(plan)
    loads(plan, found)
    saves(plan, found)
    stopped(plan, found)
    saved_in_try(plan, found)
    own_saves(plan, found)
    exports(plan, found)
    pretrained(plan)
    late_weights(plan, found)
    outside_helpers(plan)
    stray_state(plan)
    prefixed(plan)
