"""What tells the runs that step through a gradient scaler from those that step without it."""

from __future__ import annotations

import ast

from dsmigrate.codemod.analysis.analysis import nearest_common, within
from dsmigrate.codemod.analysis.code import as_written, condition_said
from dsmigrate.codemod.analysis.conditions import FALSE, both, implied, literals_of
from dsmigrate.codemod.analysis.events import Event
from dsmigrate.codemod.analysis.machine import Moment
from dsmigrate.codemod.analysis.training import Training
from dsmigrate.codemod.program.edits import Template


def for_scaled(
    training: Training, made: list[Event], lines: tuple[Template, ...], moment: Moment
) -> tuple[tuple[Template, ...], Event | None]:
    """A line about the scaler under the test of the runs that step through it, as others would find a scale that nobody updates.

    With it a step without the scaler that no test tells apart.

    ``made`` are the places that make the scaler, ``moment`` where the line comes to stand. Several lines have a test already.
    """
    plain = [event for event in training.steps if "scaler" not in event.what]
    if not plain or len(lines) > 1:
        return lines, None
    test = _test_of_scaled(training, made, plain, moment)
    if test is None:
        return lines, plain[0]
    return (lines if test == "True" else ((f"if {test}:",), *(("    ", *line) for line in lines))), None


def _test_of_scaled(training: Training, made: list[Event], plain: list[Event], moment: Moment) -> str | None:
    """What a run that steps through the scaler is known by, where others step without it; None where nothing says it.

    ``made`` are the places that make the scaler, ``plain`` the steps without it, ``moment`` where it is asked; "True"
    where those runs make none, or do not come there.
    """
    plain = [event for event in plain if both(event.condition, moment.block.condition) is not FALSE]
    if not plain:
        return "True"
    scaled = [event for event in training.steps if event not in plain]
    common = nearest_common([*scaled, *plain])
    known = [
        {one for one in literals_of(within(event, common)) if not one.loops and not one.varies} for event in scaled
    ]
    for one in sorted(set.intersection(*known), key=lambda one: one.serial) if known else ():
        if all(both(one, within(event, common)) is FALSE for event in plain):
            if made and all(implied(one, event.condition) for event in made):
                return "True"
            blocks = (block for event in scaled for block in event.block.around() if block.test is one)
            tests = (
                as_written(training.analysis, block.node.test, block.names, moment.names)
                for block in blocks
                if isinstance(block.node, ast.If)
            )
            return condition_said(one, moment.names) or next(tests, None)
    return None
