"""``optimizer.step()`` becomes ``engine.step()``."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from dsmigrate.codemod.analysis.analysis import nearest_common
from dsmigrate.codemod.analysis.conditions import either
from dsmigrate.codemod.analysis.events import Block, BlockKind, Event
from dsmigrate.codemod.analysis.training import Training
from dsmigrate.codemod.decision import Decision
from dsmigrate.codemod.idioms.facts import Facts, by_place
from dsmigrate.codemod.model import Idea, Kind
from dsmigrate.codemod.program.edits import Replace
from dsmigrate.languages import told

IDEAS = (
    Idea(
        "MG402",
        "optimizer.step() becomes engine.step()",
        "The engine clips, steps the optimizer and zeroes the gradients.",
        "A step of the optimizer alone goes past clipping and, at ZeRO 1-3, past the averaged gradients.",
        "deepspeed/runtime/engine.py, step",
        Kind.CONVERTED,
    ),
    Idea(
        "MG407",
        "The script does not zero its gradients at every step",
        "engine.step() zeroes them after every step; under DDP they kept adding up.",
        "That is nearly always a bug of the original, but the training changes. A second step on the same gradients finds none.",
        "deepspeed/runtime/engine.py, _take_model_step",
        Kind.TODO,
    ),
    Idea(
        "MG428",
        "Each rank decides by its own loss whether it steps",
        "A step behind `if not torch.isnan(loss)`, or left out where the rank's loss is too large, is marked.",
        "The engine's step is one of all ranks together: at ZeRO 1-3 the ranks exchange the parts that each has stepped, and at "
        "ZeRO 0 a run in which one rank left steps out trained otherwise than under DDP and stopped as well. Under DDP the "
        "ranks' weights part there. Reduce the loss before the test, so that all ranks decide alike.",
        "deepspeed/runtime/zero/stage_1_and_2.py, step: all_gather_dp_groups; run on two processes",
        Kind.TODO,
    ),
)


def step(training: Training, facts: Facts) -> Iterator[Decision]:
    """A decision for each place that steps the optimizer."""
    for node, events in by_place(event for event in training.steps if "library" not in event.what).items():
        event = events[0]
        engine = facts.engine(event)
        if engine is None:
            continue
        if not isinstance(node, ast.Call):
            yield Decision(
                "MG402",
                Kind.TODO,
                event.module,
                node,
                told("call {engine}.step() here", engine=engine),
                "how it is written hides the optimizer",
            )
            continue
        yield Decision(
            "MG402", Kind.CONVERTED, event.module, node, f"{event.module.text(node)} → {engine}.step()", "the engine steps and zeroes",
            edits=(Replace(event.module, node, (f"{engine}.step()",)),),
        )  # fmt: skip


def adding_up(_training: Training, facts: Facts) -> Iterator[Decision]:
    """Mark gradients that outlive the step that used them."""
    kept, again = facts.gradients.kept(), facts.gradients.stepped_again()
    if kept is not None:
        yield Decision(
            "MG407", Kind.TODO, kept.module, kept.node, "gradients are not zeroed before each backward here; engine.step() zeroes them",
            "under DDP they kept adding up",
        )  # fmt: skip
    elif again is not None:
        yield Decision(
            "MG407", Kind.TODO, again.module, again.node, "this step uses the gradients of the step before again; engine.step() clears them",
            "under DDP they stay until they are zeroed",
        )  # fmt: skip


def alone(training: Training, facts: Facts) -> Iterator[Decision]:  # noqa: ARG001 - an idiom's signature
    """Mark steps that one rank may take and another not."""
    for events in by_place(training.steps).values():
        for event in events:
            test = _own_test(training, event)
            if test is not None:
                module = test.module or event.module
                yield Decision(
                    "MG428", Kind.TODO, module, test.node or event.node, "each rank decides by its own data whether it steps: reduce it over the ranks first",
                    "the engine's step is one of all ranks together",
                )  # fmt: skip
                break


def _own_test(training: Training, event: Event) -> Block | None:
    """The innermost branch around a step, and not around its backwards, that each rank enters by data of its own.

    One around both is the same for all ranks already: DDP averages in each backward.
    """
    common = nearest_common([event, *(one for one in training.backwards if one.number < event.number)])
    for block in event.block.around():
        if block is common:
            return None
        if block.kind is BlockKind.BRANCH and block.test.varies and block.node not in training.analysis.run.ending:
            if not _is_of_all(block, event):
                return block
    return None


def _is_of_all(block: Block, event: Event) -> bool:
    """Whether the arms of a branch, of which each rank takes one, come to the same statement."""
    arms = [one for one in (block.up.items if block.up else ()) if isinstance(one, Block) and one.node is block.node]
    taken = [arm for arm in arms if any(one.node is event.node for one in arm.events())]
    return not either(*(arm.test for arm in taken)).varies
