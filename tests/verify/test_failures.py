"""What is said of conversions that fail or hang."""

from __future__ import annotations

from dataclasses import replace

import pytest

from dsmigrate.verify.failures import explain_failure, headline, is_the_network, why_not_in_time
from dsmigrate.verify.job import judge
from dsmigrate.verify.model import Ending, Outcome, Run
from tests.verify.runs import converted, run, step

SAVE = "/copy/train.py:120 in save (inside of save_checkpoint)"
BARRIER = "/copy/train.py:88 in main (inside of barrier)"


def failing(*tails: str) -> Outcome:
    return Outcome(Ending.CRASHED, "torchrun train.py", (1, 1), tails)


@pytest.mark.parametrize(
    ("line", "wanted"),
    [
        ("AssertionError: You are using an untested ZeRO Optimizer.", "optimizer-not-allowed"),
        ("AssertionError: Check batch related parameters. train_batch_size is not equal to 8 * 1 * 2", "batch-keys"),
        ("TypeError: DeepSpeedZeroOptimizer is not an Optimizer", "scheduler-of-a-wrapper"),
        (
            "RuntimeError: Direct calls to tensor.backward() are not supported in this configuration.",
            "backward-on-the-loss",
        ),
        ("RuntimeError: mat2 must be 2-D, 'weight' must be 2-D", "partitioned-weights"),
        (
            "AttributeError: Can't pickle local object 'DeepSpeedEngine._create_module_post_hook.<locals>.hook'",
            "module-pickled",
        ),
        ("requires_grad=True) Cannot partition a param in flight", "uneven-forward"),
        ("KeyError: 'lr_scheduler'", "client-state"),
        ("TypeError: zero_grad() got an unexpected keyword argument 'set_to_none'", "zero-grad-argument"),
        ("ModuleNotFoundError: No module named 'timm'", "not-installed"),
        ("RuntimeError: The server socket has failed to listen (EADDRINUSE)", "port-in-use"),
        ("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate", "memory"),
    ],
)
def test_known_messages_are_explained(line: str, wanted: str) -> None:
    found = explain_failure(converted(outcome=failing(f"Traceback\n{line}", "other rank")))
    assert [cause.id for cause in found] == [wanted]
    assert found[0].why == line
    assert found[0].certain


def test_the_exception_of_the_record_counts_too() -> None:
    crashes = ({"type": "KeyError", "message": "'lr_scheduler'", "at": "train.py:3"},)
    found = explain_failure(converted(outcome=failing("killed"), crashes=crashes))
    assert [cause.id for cause in found] == ["client-state"]


LOST = "RuntimeError: [/src/gloo/transport/tcp/pair.cc:537] Read error [127.0.0.1]:29399: Connection reset by peer."


def crash(rank: int, time: float, kind: str = "ValueError", message: str = "bad") -> dict[str, object]:
    return {"type": kind, "message": message, "at": f"train.py:{rank}", "time": time, "rank": rank}


def crashed(
    *crashes: dict[str, object], first: int = 0, codes: tuple[int, int] = (1, 1), tails: tuple[str, str] = ("", "")
) -> Run:
    outcome = Outcome(Ending.CRASHED, "torchrun train.py", codes, tails, first=(first, 10.0))
    return converted(outcome=outcome, crashes=crashes, steps=3)


@pytest.mark.parametrize(
    ("run_", "wanted"),
    [
        (crashed(crash(1, 5.0, message="first"), crash(0, 6.0)), "rank 1 first: ValueError: first"),
        (crashed(crash(0, 5.0, *LOST.split(": ", 1)), crash(1, 6.0)), "rank 1 first: ValueError: bad"),
        (
            crashed(crash(0, 11.0, *LOST.split(": ", 1)), first=1, codes=(1, -9)),
            "rank 1 first: it is killed by SIGKILL",
        ),
        (crashed(crash(0, 11.0), first=1, codes=(1, 7)), "rank 1 first: it ends with exit code 7"),
        (crashed(crash(0, 9.0), first=1, codes=(1, 7)), "rank 0 first: ValueError: bad"),
        (
            crashed(crash(0, 11.0, *LOST.split(": ", 1)), tails=("", "Traceback\n" + LOST), first=1),
            "rank 0 first: RuntimeError",
        ),
    ],
)
def test_the_rank_that_failed_first_is_the_headline(run_: Run, wanted: str) -> None:
    assert wanted in headline(run_)


@pytest.mark.parametrize(
    "line",
    [
        "OSError: [Errno 28] No space left on device",
        "OSError: [Errno 122] Disk quota exceeded: 'last.pt'",
    ],
)
def test_a_full_disk_is_a_full_disk(line: str) -> None:
    found = converted(outcome=failing(f"Traceback\n{line}", "ModuleNotFoundError: No module named 'x'"))
    assert [cause.id for cause in explain_failure(found)] == ["disk-full"]
    assert headline(found) == "finds the disk full after 8 optimizer steps"


def test_a_disk_so_full_that_nobody_could_say_so() -> None:
    silent = Outcome(Ending.CRASHED, "torchrun train.py", (1, 1), ("", ""), free=4096)
    assert [cause.id for cause in explain_failure(converted(outcome=silent))] == ["disk-full"]
    seen = replace(converted(outcome=failing("basic_ios::clear: iostream error")), full="last.pt")
    assert explain_failure(seen)[0].why == "nothing more can be written to last.pt"
    roomy = replace(silent, free=1 << 30)
    assert explain_failure(converted(outcome=roomy)) == ()


def test_a_hang_has_the_stacks_of_all_ranks_and_one_that_has_left_is_missed() -> None:
    stacks = ("rank 0: train.py:3 in main (inside of all_reduce)", "rank 1: has ended with exit code 0")
    hung = converted(outcome=Outcome(Ending.HUNG, "torchrun train.py", stacks=stacks, still=45.0), steps=3)
    assert headline(hung) == "hangs after 3 optimizer steps: nothing has moved for 45 s"
    assert [cause.id for cause in explain_failure(hung)] == ["collective-on-some-ranks"]
    same = tuple(f"rank {rank}: train.py:3 in main (inside of all_reduce)" for rank in range(2))
    still = replace(hung, outcome=replace(hung.outcome, stacks=same))
    assert [cause.id for cause in explain_failure(still)] == ["hang"]
    idle = replace(run(), steps=(step(0, idle=(frozenset({"a"}), frozenset())),))
    assert [cause.id for cause in explain_failure(still, idle)] == ["data-dependent-branch", "hang"]


def test_unknown_messages_are_not_explained() -> None:
    assert explain_failure(converted(outcome=failing("ZeroDivisionError: division by zero"))) == ()


def test_a_run_that_ended_well_has_no_failure() -> None:
    assert explain_failure(converted()) == ()


def test_ranks_that_wait_at_different_places_miss_each_other() -> None:
    found = explain_failure(converted(outcome=Outcome(Ending.TIMED_OUT, "torchrun train.py", stacks=(SAVE, BARRIER))))
    assert found[0].id == "collective-on-some-ranks"
    assert SAVE in found[0].why
    assert BARRIER in found[0].why


def test_a_run_that_waits_for_a_lock_of_the_compiler_says_so() -> None:
    stack = "/copy/train.py:9 in main (inside of wait, file_baton.py)"
    found = explain_failure(converted(outcome=Outcome(Ending.TIMED_OUT, "torchrun train.py", stacks=(stack, stack))))
    assert [cause.id for cause in found] == ["operator-lock"]


@pytest.mark.parametrize("stacks", [(), (SAVE, SAVE), ("/copy/train.py:5 in main (inside of sleep)",)])
def test_a_run_that_is_only_slow_is_no_hang(stacks: tuple[str, ...]) -> None:
    found = explain_failure(converted(outcome=Outcome(Ending.TIMED_OUT, "torchrun train.py", stacks=stacks)))
    assert [cause.id for cause in found] == ["slow"]


def test_what_parts_before_a_crash_is_told_beside_it() -> None:
    outcome = failing("ZeroDivisionError: division by zero")
    found = judge(run(), converted(lambda one: replace(one, backwards=1, samples=8), steps=4, outcome=outcome))
    assert not found.agrees
    assert found.differences[0].quantity == "samples"
    assert found.causes[0].id == "accumulation-window"
    assert all(one.step is not None for one in found.differences)


def test_a_crash_with_equal_steps_before_it_does_not_agree() -> None:
    found = judge(run(), converted(steps=4, outcome=failing("ZeroDivisionError")))
    assert found.differences == ()
    assert not found.agrees


def test_an_original_whose_ranks_are_out_of_step_is_not_told_to_wait_longer() -> None:
    assert why_not_in_time(run(taken=(7, 7))) == "a longer --timeout or fewer --steps"
    assert why_not_in_time(run()) == "a longer --timeout or fewer --steps"
    said = why_not_in_time(run(taken=(7, 8)))
    assert "rank 0 took 7, rank 1 took 8" in said
    assert "--timeout" not in said


RESET = "RuntimeError: [/src/gloo/transport/tcp/pair.cc:537] Read error [127.0.0.1]:29399: Connection reset by peer."
MESH = "RuntimeError: Gloo connectFullMesh failed with [/src/gloo/transport/tcp/pair.cc:144] no error"
STORE = "torch.distributed.DistNetworkError: Failed to recv, got 0 bytes. Connection was likely closed."


@pytest.mark.parametrize(
    ("codes", "texts", "wanted"),
    [
        ((1, 1), (RESET, MESH), True),
        ((1, 1), (STORE, f"warming up\n{RESET}"), True),
        ((1, -9), (RESET, "training"), True),
        ((1, None), (RESET, "training"), True),
        ((1, 1), (RESET, "ZeroDivisionError: division by zero"), False),
        ((1, 1), (RESET, "a word of gloo/transport"), False),
        ((0, 0), ("", ""), False),
        ((-9, -9), (RESET, RESET), False),
    ],
)
def test_processes_that_only_lost_each_other_are_told(
    codes: tuple[int | None, ...], texts: tuple[str, ...], wanted: bool
) -> None:
    assert is_the_network(codes, texts) is wanted
