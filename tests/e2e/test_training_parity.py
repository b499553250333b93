"""Every example, converted, must print the losses that it printed under DDP, at every ZeRO stage."""

from __future__ import annotations

from dataclasses import replace

import pytest

from .cases import CASES, Case, case_named
from .harness import Lab, stages
from .launching import launch_cold, torch_python
from .readings import EXACT, compare
from .verdict import tolerance

pytestmark = [pytest.mark.deepspeed, pytest.mark.e2e, pytest.mark.xdist_group("training")]


@pytest.mark.parametrize(
    ("case", "stage"),
    [pytest.param(case, stage, id=f"{case.name}-zero{stage}") for case in CASES for stage in stages()],
)
def test_losses_are_those_of_the_original(lab: Lab, case: Case, stage: int) -> None:
    verdict = lab.verdict(case, stage)
    assert verdict.agrees, verdict.explain()


@pytest.mark.parametrize(
    ("case", "stage"),
    [
        pytest.param(case, stage, id=f"{case.name}-zero{stage}")
        for index, case in enumerate(case for case in CASES if case.halves)
        for stage in stages()[index % 2 :: 2] or stages()  # two stages each, all of them in turn
    ],
)
def test_directories_resume_as_the_uninterrupted_original(lab: Lab, case: Case, stage: int) -> None:
    verdict = lab.converted(replace(case, options=("--checkpoints", "engine")), stage)
    assert verdict.agrees, verdict.explain()
    assert any(verdict.outcome.folder.rglob("*_optim_states.pt")) or (
        stage == 0 and any(verdict.outcome.folder.rglob("*_model_states.pt"))
    )


@pytest.mark.parametrize("stage", stages())
def test_a_resume_clips_by_the_limit_of_its_own_command_line(lab: Lab, stage: int) -> None:
    """A checkpoint of ZeRO 1 and 2 brings the limit of the run that wrote it."""
    written, resumed = ("--grad_clip=0.57", "--max_iters=8"), ("--grad_clip=0.2", "--init_from=resume")
    case = Case("nanogpt-other-limit", "nanogpt.py", halves=(written, resumed))
    expected, found = lab.second_half(case, None, None), lab.second_half(case, stage, stage)
    assert found.succeeded, found.excerpt()
    result = compare(expected.readings, found.readings, tolerance(case, stage))
    assert result.same, "\n".join(result.differences)


def test_a_hook_that_rounds_gradients_is_told_from_none(lab: Lab) -> None:
    """Else the agreement of its conversion would say nothing."""
    rounded, plain = case_named("comm_hooks-fp16"), case_named("comm_hooks-none")
    result = compare(lab.original(rounded).readings, lab.original(plain).readings, tolerance(rounded, 2))
    assert result.same_lines
    assert not result.same


def test_a_warm_start_trains_like_torchrun(lab: Lab) -> None:
    """What the tests run instead of torchrun, to save its start, gives the numbers that torchrun gives."""
    case = case_named("no_sync_accum")
    torchrun = [torch_python(), "-m", "torch.distributed.run", "--standalone", "--nproc_per_node", "2"]
    for flavour, reference in (("torch", lab.original(case)), ("deepspeed", lab.verdict(case, 2).outcome)):
        changed = lab.conversion(case, 2) if flavour == "deepspeed" else None
        folder = lab.place(case, f"{case.name}-torchrun-{flavour}", changed)
        cold = launch_cold([*torchrun, str(folder / case.script)], folder)
        result = compare(reference.readings, cold.readings, EXACT)
        assert result.same, "\n".join([*result.differences, cold.excerpt()])
