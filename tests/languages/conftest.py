from __future__ import annotations

from collections.abc import Iterator

import pytest

from dsmigrate.languages import ENGLISH, use


@pytest.fixture(autouse=True)
def _english_again() -> Iterator[None]:
    """Commands that are called in this process leave their language behind."""
    yield
    use(ENGLISH)
