"""The commands that start a converted script."""

from __future__ import annotations

import pytest

from tests.codemod.checks import convert

TORCHRUN, DEEPSPEED = "torchrun --nproc_per_node 2 train.py", "deepspeed --num_gpus 2 --no_local_rank train.py"


@pytest.mark.parametrize(
    "read", ['os.environ["LOCAL_RANK"]', 'os.environ.get("LOCAL_WORLD_SIZE", "1")', '"GROUP_RANK" in os.environ']
)
def test_both_launchers_start_a_script(read: str) -> None:
    assert convert(end=f"print({read})").result.launch == (TORCHRUN, DEEPSPEED)


@pytest.mark.parametrize("name", ["LOCAL_WORLD_SIZE", "GROUP_RANK"])
def test_a_script_that_needs_what_torchrun_sets_is_started_by_it(name: str) -> None:
    assert convert(end=f'print(os.environ["{name}"])').result.launch == (TORCHRUN,)
    assert convert(end=f'keys = ["RANK", "{name}"]\nprint([os.environ[key] for key in keys])').result.launch == (
        TORCHRUN,
    )
