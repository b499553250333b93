"""Starting, waiting and cleaning up, with scripts that know nothing of training."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest

from dsmigrate.verify import processes, running
from dsmigrate.verify.launching import Launch, Start
from dsmigrate.verify.model import Ending, Outcome


def launch(tmp_path: Path, *scripts: str) -> Launch:
    starts = []
    for index, script in enumerate(scripts):
        file = tmp_path / f"script{index}.py"
        file.write_text(textwrap.dedent(script))
        starts.append(Start((sys.executable, str(file)), dict(os.environ)))
    return Launch(tuple(starts), "torchrun train.py")


def run(tmp_path: Path, *scripts: str, timeout: float = 60.0, ended: bool = False) -> Outcome:
    return running.run(
        launch(tmp_path, *scripts), folder=tmp_path, logs=tmp_path / "logs", timeout=timeout, has_ended=lambda: ended
    )


def pids(tmp_path: Path) -> list[int]:
    return [int(file.read_text()) for file in tmp_path.glob("*.pid")]


def gone(pid: int) -> bool:
    for _ in range(1200):
        if not processes.is_alive(pid):
            return True
        time.sleep(0.05)
    return False


HANGS = """
    import os, pathlib, time
    pathlib.Path(f"{os.getpid()}.pid").write_text(str(os.getpid()))
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
    monkeypatch.setattr(running, "AFTER_FAILURE_SECONDS", 1.0)
    found = run(tmp_path, "raise SystemExit(3)", HANGS)
    assert found.ending is Ending.CRASHED
    assert found.codes[0] == 3
    assert all(map(gone, pids(tmp_path)))


def test_a_hang_ends_with_everything_it_has_started(tmp_path: Path) -> None:
    child = tmp_path / "child.py"
    child.write_text(textwrap.dedent(HANGS))
    script = f"""
        import os, pathlib, subprocess, sys, time
        pathlib.Path(f"{{os.getpid()}}.pid").write_text(str(os.getpid()))
        subprocess.Popen([sys.executable, {str(child)!r}], start_new_session=True)
        subprocess.Popen([sys.executable, {str(child)!r}])
        time.sleep(600)
    """
    found = run(tmp_path, script, timeout=4.0)
    assert found.ending is Ending.TIMED_OUT
    assert len(pids(tmp_path)) == 3
    assert all(map(gone, pids(tmp_path)))


def test_processes_that_ignore_the_first_signal_are_ended_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processes, "GRACE_SECONDS", 0.5)
    monkeypatch.setattr(processes, "INTERRUPT_SECONDS", 0.5)
    deaf = "import signal; [signal.signal(one, signal.SIG_IGN) for one in (signal.SIGINT, signal.SIGTERM)]\n"
    stubborn = deaf + textwrap.dedent(HANGS)
    found = run(tmp_path, stubborn, timeout=2.0)
    assert found.ending is Ending.TIMED_OUT
    assert all(map(gone, pids(tmp_path)))


def test_a_run_that_is_ended_may_tidy_up(tmp_path: Path) -> None:
    """Compilers of operators hold a lock, which they give back when they are interrupted."""
    script = """
        import pathlib, signal, time
        signal.signal(signal.SIGINT, signal.default_int_handler)  # as the harness does
        signal.signal(signal.SIGUSR1, signal.SIG_IGN)
        lock = pathlib.Path("lock")
        lock.touch()
        try:
            time.sleep(600)
        finally:
            lock.unlink()
    """
    assert run(tmp_path, script, timeout=3.0).ending is Ending.TIMED_OUT
    assert not (tmp_path / "lock").exists()


def test_a_hang_says_where_the_script_stands(tmp_path: Path) -> None:
    script = """
        import faulthandler, signal, time
        faulthandler.register(signal.SIGUSR1, all_threads=True)
        def wait_for_the_others():
            time.sleep(600)
        wait_for_the_others()
    """
    found = run(tmp_path, script, timeout=2.0)
    assert len(found.stacks) == 1
    assert f"{tmp_path / 'script0.py'}:5 in wait_for_the_others" in found.stacks[0]
    assert "Thread" not in found.tails[0]


def test_a_crash_after_the_last_record_is_no_matter(tmp_path: Path) -> None:
    assert run(tmp_path, "import os; os.abort()", ended=True).ending is Ending.FINISHED


def test_processes_that_do_not_leave_after_the_last_record_are_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(running, "AFTER_END_SECONDS", 1.0)
    assert run(tmp_path, HANGS, ended=True).ending is Ending.FINISHED
    assert all(map(gone, pids(tmp_path)))


def test_an_interrupt_leaves_nothing_behind(tmp_path: Path) -> None:
    def interrupt() -> bool:
        if len(pids(tmp_path)) == 1:
            raise KeyboardInterrupt
        return False

    with pytest.raises(KeyboardInterrupt):
        running.run(launch(tmp_path, HANGS), folder=tmp_path, logs=tmp_path, timeout=60, has_ended=interrupt)
    assert all(map(gone, pids(tmp_path)))


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
            assert other.wait(timeout=30) != 0
        finally:
            other.kill()
