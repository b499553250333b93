"""What the release that a result is for decides: facts of ``schemas/deepspeed/targets.json``."""

from __future__ import annotations

import functools
from dataclasses import dataclass

from packaging.version import Version

from dsmigrate.schemas_location import schema_json


@dataclass(frozen=True, slots=True)
class Difference:
    """What is written differently for the releases from ``since`` to ``until`` (both included; "" for the newest).

    ``key`` is the key of the config that came or changed with ``since``, "" where it is not about one. ``inside`` and
    ``outside`` say what is written for these releases and for all others.
    """

    id: str
    since: str
    title: str
    inside: str
    outside: str
    source: str
    until: str = ""
    key: str = ""

    def holds(self, release: str) -> bool:
        """Whether a release is one of these."""
        return Version(release) >= Version(self.since) and not (self.until and Version(release) > Version(self.until))


@functools.cache
def differences() -> dict[str, Difference]:
    """Every difference by its id, in the order of the file."""
    found = schema_json("deepspeed/targets.json")
    return {entry["id"]: Difference(**entry) for entry in found}


def holds(difference: str, release: str) -> bool:
    """Whether a difference is one of a release; raises KeyError for a difference that there is not."""
    return differences()[difference].holds(release)
