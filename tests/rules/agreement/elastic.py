"""Elastic training, which generated configs seldom switch on and which then decides about all batch keys."""

from __future__ import annotations

import random
from dataclasses import replace

from dsmigrate.knowledge import Status, knowledge

from .case import Case, Config, Planted
from .valid import BATCH

SHARE = 0.04
VALUES: dict[str, tuple[object, ...]] = {
    "max_train_batch_size": (8, 64, 100, 300, 2000, 1, 0, -3, 10**7, 33.5, "8", None, "auto"),
    "micro_batch_sizes": ([1], [2, 4], [2, 3], [2, 4, 6], [8], [5, 7], [], [0], [1, -2], ["2"], [True], 3, None),
    "min_gpus": (1, 2, 4, 5, 0, -1, "2", None, 2.5),
    "max_gpus": (1, 2, 3, 8, 64, 10_000, 0, 10**6, None),
    "version": (0.1, 0.1, 0.2, 0.2, 0.3, 0.15, "0.1", True, None, 1),
    "model_parallel_size": (1, 1, 2, 2, 4, 3, 0, None),
    "num_gpus_per_node": (1, 2, 4, 8, 8, 0, "8"),
    "prefer_larger_batch": (True, False, False, "no", 0),
    "min_time": (0, 20, -1, "x"),
    "ignore_non_elastic_batch_info": (True, True, False, 1, "false", None),
}
"""Values of the keys, the likely ones first."""
NEEDED = ("max_train_batch_size", "micro_batch_sizes")


def with_elastic(case: Case) -> Case:
    """Return the case, now and then with elastic training, where its release has that."""
    rng = random.Random(f"elastic/{case.name}")  # noqa: S311 - repeatable on purpose
    key = knowledge(case.version).key("elasticity")
    if case.config is None or key is None or key.status is not Status.PRESENT or rng.random() >= SHARE:
        return case
    config: Config = {name: content for name, content in case.config.items() if name not in BATCH or rng.random() < 0.3}
    config["elasticity"] = {"enabled": rng.random() < 0.95, **_settings(rng)}
    paths = (*(f"elasticity.{name}" for name in config["elasticity"]), "elasticity", *BATCH)
    return replace(case, config=config, planted=(*case.planted, Planted("elastic", paths, "sections")))


def _settings(rng: random.Random) -> Config:
    chosen = [name for name in VALUES if rng.random() < (0.95 if name in NEEDED else 0.25)]
    return {name: rng.choice(VALUES[name][: 5 if rng.random() < 0.7 else None]) for name in chosen}
