"""Starting, waiting and cleaning up, with scripts that know nothing of training."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path

import pytest

from dsmigrate.verify import processes, running
from dsmigrate.verify.launching import Launch, Start
from dsmigrate.verify.model import Ending, Outcome
from tests.support.events import PATIENCE, Clock, until


def launch(tmp_path: Path, *scripts: str) -> Launch:
    starts = []
    for index, script in enumerate(scripts):
        file = tmp_path / f"script{index}.py"
        file.write_text(textwrap.dedent(script))
        starts.append(Start((sys.executable, str(file)), dict(os.environ)))
    return Launch(tuple(starts), "torchrun train.py")


def run(tmp_path: Path, *scripts: str, ended: bool = False) -> Outcome:
    return running.run(
        launch(tmp_path, *scripts), folder=tmp_path, logs=tmp_path / "logs", timeout=PATIENCE, has_ended=lambda: ended
    )


def pids(tmp_path: Path) -> list[int]:
    return [int(file.stem) for file in tmp_path.glob("*.pid")]


def leave_nothing(tmp_path: Path, count: int) -> None:
    """Expect that so many processes have been there, and that none is there any more."""
    assert len(pids(tmp_path)) == count
    until(lambda: not any(map(processes.is_alive, pids(tmp_path))), "the end of all processes")


@pytest.fixture
def hanging(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[int], None]:
    """Let time stand still until so many processes have said that they hang."""

    def wait_for(count: int) -> None:
        monkeypatch.setattr(running, "time", Clock(lambda: len(pids(tmp_path)) == count))

    return wait_for


HANGS = """
    import os, pathlib, time
    pathlib.Path(f"{os.getpid()}.pid").touch()
    time.sleep(600)
"""


def test_a_run_that_ends_well(tmp_path: Path) -> None:
    found = run(tmp_path, "print('one')", "print('two')")
    assert found.ending is Ending.FINISHED
    assert found.codes == (0, 0)
    assert found.tails == ("one", "two")


def test_a_crash_has_its_code_and_its_last_lines(tmp_path: Path) -> None:
    found = run(tmp_path, "for i in range(100): print(i)\nraise KeyError('lr_scheduler')")
    assert found.ending is Ending.CRASHED
    assert found.codes == (1,)
    lines = found.tails[0].splitlines()
    assert lines[-1] == "KeyError: 'lr_scheduler'"
    assert len(lines) == 15


def test_one_rank_that_fails_ends_the_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fails = """
        import os, pathlib
        pathlib.Path(f"{os.getpid()}.fails").touch()
        raise SystemExit(3)
    """

    def one_has_failed_and_one_hangs() -> bool:
        failing = [int(file.stem) for file in tmp_path.glob("*.fails")]
        return len(pids(tmp_path)) == len(failing) == 1 and not processes.is_alive(failing[0])

    monkeypatch.setattr(running, "time", Clock(one_has_failed_and_one_hangs))
    found = run(tmp_path, fails, HANGS)
    assert found.ending is Ending.CRASHED
    assert found.codes[0] == 3
    leave_nothing(tmp_path, 1)


def test_a_hang_ends_with_everything_it_has_started(tmp_path: Path, hanging: Callable[[int], None]) -> None:
    hanging(3)
    child = tmp_path / "child.py"
    child.write_text(textwrap.dedent(HANGS))
    script = f"""
        import os, pathlib, subprocess, sys, time
        subprocess.Popen([sys.executable, {str(child)!r}], start_new_session=True)
        subprocess.Popen([sys.executable, {str(child)!r}])
        pathlib.Path(f"{{os.getpid()}}.pid").touch()
        time.sleep(600)
    """
    assert run(tmp_path, script).ending is Ending.TIMED_OUT
    leave_nothing(tmp_path, 3)


def test_processes_that_ignore_the_first_signal_are_ended_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, hanging: Callable[[int], None]
) -> None:
    hanging(1)
    monkeypatch.setattr(processes, "GRACE_SECONDS", 0.5)
    monkeypatch.setattr(processes, "INTERRUPT_SECONDS", 0.5)
    deaf = "import signal; [signal.signal(one, signal.SIG_IGN) for one in (signal.SIGINT, signal.SIGTERM)]\n"
    assert run(tmp_path, deaf + textwrap.dedent(HANGS)).ending is Ending.TIMED_OUT
    leave_nothing(tmp_path, 1)


def test_a_run_that_is_ended_may_tidy_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, hanging: Callable[[int], None]
) -> None:
    """Compilers of operators hold a lock, which they give back when they are interrupted."""
    hanging(1)
    monkeypatch.setattr(processes, "INTERRUPT_SECONDS", PATIENCE)
    script = """
        import os, pathlib, signal, time
        signal.signal(signal.SIGINT, signal.default_int_handler)  # as the harness does
        signal.signal(signal.SIGUSR1, signal.SIG_IGN)
        lock = pathlib.Path("lock")
        lock.touch()
        try:
            pathlib.Path(f"{os.getpid()}.pid").touch()
            time.sleep(600)
        finally:
            lock.unlink()
    """
    assert run(tmp_path, script).ending is Ending.TIMED_OUT
    leave_nothing(tmp_path, 1)
    assert not (tmp_path / "lock").exists()


def test_a_hang_says_where_the_script_stands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    script = """
        import faulthandler, os, pathlib, signal, time
        born = pathlib.Path("/proc/self/stat").read_text().rpartition(")")[2].split()[19]
        stacks = open(f"logs/stack-{os.getpid()}.txt", "w")
        print(born, file=stacks, flush=True)
        pathlib.Path(f"logs/stack-{os.getpid()}.rank").write_text("1")
        faulthandler.register(signal.SIGUSR1, file=stacks, all_threads=True)
        def wait_for_the_others():
            pathlib.Path("waits").touch(); time.sleep(600)
        wait_for_the_others()
    """

    def has_answered() -> bool:
        return any("<module>" in file.read_text() for file in (tmp_path / "logs").glob("stack-*.txt"))

    clock = Clock((tmp_path / "waits").exists, then=has_answered)
    monkeypatch.setattr(running, "time", clock)
    found = run(tmp_path, script)
    assert len(found.stacks) == 1
    assert found.stacks[0].startswith(f"rank 1: {tmp_path / 'script0.py'}:9 in wait_for_the_others")


def test_a_run_that_takes_no_more_steps_is_a_hang(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    script = """
        import faulthandler, os, pathlib, signal, sys, time
        born = pathlib.Path("/proc/self/stat").read_text().rpartition(")")[2].split()[19]
        stacks = open(f"logs/stack-{os.getpid()}.txt", "w")
        print(born, file=stacks, flush=True)
        pathlib.Path(f"logs/stack-{os.getpid()}.rank").write_text(sys.argv[0][-4])
        faulthandler.register(signal.SIGUSR1, file=stacks, all_threads=True)
        pathlib.Path(f"{os.getpid()}.pid").touch()
        time.sleep(600)
    """
    monkeypatch.setattr(running, "STILL_SECONDS", 0.0)
    monkeypatch.setattr(running, "STILL_TIMES", 0)
    monkeypatch.setattr(running, "BETWEEN_LOOKS_SECONDS", 0.0)
    found = running.run(
        launch(tmp_path, script, script, "pass"),
        folder=tmp_path,
        logs=tmp_path / "logs",
        timeout=PATIENCE,
        has_ended=lambda: False,
        progress=lambda: (len(pids(tmp_path)) // 2, len(pids(tmp_path))),
    )
    assert found.ending is Ending.HUNG
    assert [stack.partition(" in ")[0] for stack in found.stacks] == [
        *(f"rank {rank}: {tmp_path / f'script{rank}.py'}:9" for rank in range(2)),
        "rank 2: has ended with exit code 0",
    ]
    leave_nothing(tmp_path, 2)


def test_a_run_that_still_moves_is_no_hang() -> None:
    still = running._Still()
    still.see(0.0, 1, 10)
    assert not still.is_overdue(running.STILL_SECONDS - 1)
    assert still.is_overdue(running.STILL_SECONDS + 1)
    looks = [["evaluate"], ["evaluate more"], ["evaluate more"], ["saving"], ["saving"], ["saving"]]
    said = [still.is_still(100.0 + look, [*stacks, ""]) for look, stacks in enumerate(looks)]
    assert said == [False] * 5 + [True]
    still.see(110.0, 2, 20)
    assert not still.is_still(120.0, ["saving", ""])
    assert not still.is_overdue(110.0 + 10 * 100)  # the wait before was as long


def test_a_run_before_its_first_step_is_never_taken_for_a_hang() -> None:
    still = running._Still()
    still.see(0.0, 0, 10)
    assert not still.is_overdue(1e6)


def test_who_is_killed_leaves_nothing_behind(tmp_path: Path) -> None:
    runner = f"""
        import sys, textwrap
        sys.path[:0] = {[str(Path(running.__file__).parents[2]), str(Path(__file__).parents[2])]!r}
        from pathlib import Path
        from tests.verify.test_running import HANGS, run
        child = Path({str(tmp_path)!r}) / "child.py"
        child.write_text("import os, pathlib, time; pathlib.Path(f'{{os.getpid()}}.pid').touch(); time.sleep(600)")
        starts = f"import subprocess, sys; subprocess.Popen([sys.executable, {{str(child)!r}}], start_new_session=True)"
        run(Path({str(tmp_path)!r}), starts + textwrap.dedent(HANGS))
    """
    file = tmp_path / "runner.py"
    file.write_text(textwrap.dedent(runner))
    with subprocess.Popen([sys.executable, str(file)]) as parent:
        until(lambda: len(pids(tmp_path)) == 2, "both processes")
        parent.kill()
    leave_nothing(tmp_path, 2)


def test_a_crash_after_the_last_record_is_no_matter(tmp_path: Path) -> None:
    assert run(tmp_path, "import os; os.abort()", ended=True).ending is Ending.FINISHED


def test_processes_that_do_not_leave_after_the_last_record_are_ended(
    tmp_path: Path, hanging: Callable[[int], None]
) -> None:
    hanging(1)
    assert run(tmp_path, HANGS, ended=True).ending is Ending.FINISHED
    leave_nothing(tmp_path, 1)


def test_an_interrupt_leaves_nothing_behind(tmp_path: Path) -> None:
    def interrupt() -> bool:
        if len(pids(tmp_path)) == 1:
            raise KeyboardInterrupt
        return False

    with pytest.raises(KeyboardInterrupt):
        running.run(launch(tmp_path, HANGS), folder=tmp_path, logs=tmp_path, timeout=PATIENCE, has_ended=interrupt)
    leave_nothing(tmp_path, 1)


def test_a_tree_holds_all_that_descend() -> None:
    assert processes.tree([os.getppid()])[0] == os.getppid()
    assert os.getpid() in processes.tree([os.getppid()])
    assert processes.parents()[os.getpid()] == os.getppid()


def test_a_number_that_another_process_has_now_is_left_alone() -> None:
    with subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"]) as other:
        try:
            processes.end([], {other.pid: "1"})
            assert other.poll() is None
            assert processes.born(other.pid) == processes.born(other.pid) != ""
            processes.end([], {other.pid: processes.born(other.pid)})
            assert other.wait() != 0
        finally:
            other.kill()
