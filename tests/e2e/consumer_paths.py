"""The paths at which a config may hold "auto", and configs that do."""

from __future__ import annotations

import copy
import json
from collections.abc import Mapping
from typing import Any

from dsmigrate.knowledge import Auto, AutoEffect, Consumer, knowledge

from .consumer_scripts import Config, Script

ANY_NAME = "some_name"
NEEDS: Mapping[str, Config] = {
    "train_batch_size": {"train_micro_batch_size_per_gpu": "auto", "gradient_accumulation_steps": "auto"}
}
"""What must stand beside a key for it to be filled; without it Accelerate refuses it."""


def same(one: object, other: object) -> bool:
    """Return whether two values are written the same: 1 is neither true nor 1.0."""
    return json.dumps(one) == json.dumps(other)


def placed(path: str, value: object, script: Script) -> Config:
    """Return a config for a script that holds ``value`` at ``path``, in the first element where there is a list."""
    config: Config = {"zero_optimization": {"stage": script.stage}, **copy.deepcopy(dict(NEEDS.get(path, {})))}
    place: Any = config
    *sections, name = concrete(path).split(".")
    for section in sections:
        inner: Config = {}
        if section.endswith("[]"):
            place[section.removesuffix("[]")] = [inner]
        else:
            inner = place.setdefault(section, inner)
        place = inner
    place[name] = value
    return config


def found(path: str, config: Config) -> object:
    """Return the value at a path of a config."""
    place: Any = config
    for name in concrete(path).split("."):
        place = place[name.removesuffix("[]")]
        place = place[0] if name.endswith("[]") else place
    return place


def concrete(path: str) -> str:
    """Return a path with a name wherever one may choose it."""
    return path.replace("*", ANY_NAME)


def every_path() -> list[str]:
    """Return the paths of all releases, in every spelling, and those of all parameters."""
    known = knowledge()
    found: dict[str, None] = dict.fromkeys(known.every_path())
    for path in list(found):
        key = known.key(path)
        if key is None:
            continue
        if key.field:
            found[f"{key.parent}.{key.field}"] = None
        if key.alias_of:
            found.update((f"{path}.{child.name}", None) for child in known.children(key.alias_of))
    for facts in (*known.every_optimizer(), *known.every_scheduler()):
        found.update((f"{facts.kind}.params.{name}", None) for name in facts.parameters)
    return list(found)


def stated(consumer: Consumer, effect: AutoEffect | None) -> dict[str, Auto]:
    """Return the paths at which "auto" has an effect by the facts; None is every other than the consumer's own two."""
    own = (AutoEffect.FILLED, AutoEffect.REFUSED)
    fates = {path: knowledge().auto(path, consumer) for path in every_path()}
    return {
        path: auto
        for path, auto in fates.items()
        if auto is not None and (auto.effect is effect if effect else auto.effect not in own)
    }


def known(consumer: Consumer, path: str) -> Auto:
    """Return what the facts say of a path that is filled."""
    return stated(consumer, AutoEffect.FILLED)[path]
