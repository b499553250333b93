"""Cases by the number, the same for the same seed."""

from __future__ import annotations

import random
from collections.abc import Iterator

from dsmigrate.knowledge import knowledge

from . import faults
from .bench import Bench
from .case import Case
from .spoiling import spoiled
from .valid import valid

VALID_SHARE = 0.15
TEXT_SHARE = 0.05
UNKNOWN_WORLD_SHARE = 0.2
MOST_FAULTS = 3


def cases(count: int, seed: int = 0, version: str | None = None) -> Iterator[Case]:
    """Yield cases: some valid, some spoiled as text, most with one to three faults."""
    known = knowledge(version)
    for index in range(count):
        rng = random.Random(f"{seed}/{index}")  # noqa: S311 - repeatable on purpose
        config, world = valid(rng, known)
        seen = None if rng.random() < UNKNOWN_WORLD_SHARE else world
        name = f"{seed}/{index}"
        kind = rng.random()
        if kind < TEXT_SHARE:
            found = spoiled(rng, config)
            if found is not None:
                yield Case(name, None, seen, (found[1],), found[0], version=version)
                continue
        planted = []
        if kind >= TEXT_SHARE + VALID_SHARE:
            bench = Bench(rng, known, config)
            wanted = rng.choice((1, 1, 1, 2, MOST_FAULTS))
            for _ in range(30):
                fault = rng.choice(faults.FAULTS)(bench)
                planted += [fault] if fault is not None else []
                if len(planted) == wanted:
                    break
        yield Case(name, config, seen, tuple(planted), version=version)
