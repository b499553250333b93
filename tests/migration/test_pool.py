from __future__ import annotations

import multiprocessing
from pathlib import Path

import pytest

from dsmigrate.codemod.model import Options, Status
from dsmigrate.migration.job import Job, Outcome
from dsmigrate.migration.pool import cores, run_all

pytestmark = [
    pytest.mark.filterwarnings("ignore:This process:DeprecationWarning"),  # pytest-xdist has threads
    pytest.mark.usefixtures("stub_codemod"),
    pytest.mark.skipif(multiprocessing.get_start_method() != "fork", reason="the stub only reaches forked processes"),
]


def jobs(folder: Path, *asked: str) -> list[Job]:
    for index, what in enumerate(asked):
        (folder / f"{index}.py").write_text(f"# stub: {what}\n" + "x = 1\n" * (97 * index % 50))
    return [Job(folder / f"{index}.py", folder, Options()) for index in range(len(asked))]


def test_outcomes_come_in_the_order_of_the_jobs(tmp_path: Path) -> None:
    heard: list[Outcome] = []
    work = jobs(tmp_path, *["convert", "refuse", "todo", "leave"] * 5)
    outcomes = run_all(work, 2, heard.append)
    assert [outcome.job for outcome in outcomes] == work
    assert outcomes == run_all(work, 1, lambda _: None)
    assert len(heard) == 20


def test_the_death_of_a_process_costs_only_the_file_that_caused_it(tmp_path: Path) -> None:
    work = jobs(tmp_path, "convert", "die", "refuse", "todo", "convert", "convert")
    statuses = [outcome.result.status for outcome in run_all(work, 2, lambda _: None)]
    assert statuses == [
        Status.CONVERTED,
        Status.ERROR,
        Status.REFUSED,
        Status.CONVERTED_WITH_TODOS,
        Status.CONVERTED,
        Status.CONVERTED,
    ]


def test_an_interrupt_stops_the_processes(tmp_path: Path) -> None:
    def interrupt(_: Outcome) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_all(jobs(tmp_path, *["convert"] * 8), 2, interrupt)
    assert not multiprocessing.active_children()


def test_there_is_at_least_one_core() -> None:
    assert cores() >= 1
