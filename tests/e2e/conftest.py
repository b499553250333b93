"""The laboratory that all end-to-end tests of one session share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from .harness import Lab


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "deepspeed: trains with the real DeepSpeed; needs torch and deepspeed")


@pytest.fixture(scope="session")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    """Warm processes and the runs made so far."""
    laboratory = Lab(tmp_path_factory.mktemp("e2e"))
    yield laboratory
    laboratory.close()
