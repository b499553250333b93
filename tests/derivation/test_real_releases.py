"""The committed facts against the real sources of a release of every minor, fetched from the package index."""

from __future__ import annotations

import pytest
from packaging.version import Version

from dsmigrate.derivation.index import UnreachableError
from dsmigrate.derivation.release import derive
from dsmigrate.derivation.sources import Sources, default_cache, default_index
from tests.derivation.test_committed import FACTS, RELEASES

pytestmark = pytest.mark.derivation

LAST_OF_MINOR = {Version(release).release[:2]: release for release in RELEASES}
"""The last release of every minor, and below the first one of all."""


@pytest.mark.parametrize("release", [RELEASES[0], *LAST_OF_MINOR.values()])
def test_the_sources_give_what_is_committed(release: str) -> None:
    sources = Sources(cache=default_cache(), index_url=default_index())
    try:
        root = sources.root(release)
    except UnreachableError as error:
        pytest.skip(str(error))
    derived = derive(release, root)
    assert derived.keys == FACTS[release].keys
    assert derived.optimizers == FACTS[release].optimizers
    assert derived.schedulers == FACTS[release].schedulers
