"""The laboratory that all end-to-end tests of one session share."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from .harness import Lab


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "deepspeed: trains with the real DeepSpeed; needs torch and deepspeed")
    config.addinivalue_line("markers", "e2e: trains on two CPU processes under the real DeepSpeed")


FAULT_TABLE: list[str] = []
"""What the test of the planted faults has to show, whether it passes or not."""


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Hand the table from a worker of pytest-xdist to the process that prints."""
    if hasattr(session.config, "workeroutput"):
        session.config.workeroutput["fault_table"] = FAULT_TABLE


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any, error: object) -> None:  # noqa: ARG001 - pytest-xdist's signature
    """Take over the table of a worker that has ended."""
    FAULT_TABLE.extend(getattr(node, "workeroutput", {}).get("fault_table", ()))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Show which example noticed which planted fault, and by how much."""
    if FAULT_TABLE:
        terminalreporter.section("planted faults: largest relative change of a loss, per example and ZeRO stage")
        for line in sorted(FAULT_TABLE):
            terminalreporter.write_line(line)


@pytest.fixture(scope="session")
def fault_table() -> list[str]:
    """Lines to show at the end of the session."""
    return FAULT_TABLE


@pytest.fixture(scope="session")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    """Warm processes and the runs made so far."""
    laboratory = Lab(tmp_path_factory.mktemp("e2e"))
    yield laboratory
    laboratory.close()
