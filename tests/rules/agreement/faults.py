"""Faults of every kind, planted in a config: each changes it and says which key is to blame."""

from __future__ import annotations

import copy
from collections.abc import Iterator

from dsmigrate.knowledge import Status

from . import slips
from .bench import OTHER_VALUES, Bench, Fault, every_key
from .case import Config, Planted
from .combinations import offload, precision, zero
from .plantings import plantings
from .typed import optimizer, parameter_auto, scheduler
from .valid import BATCH, value


def misspelled_key(bench: Bench) -> Planted | None:
    """A letter, the case or a dash is wrong."""
    kind = bench.rng.choice(sorted(slips.KINDS))
    key = bench.rng.choice(bench.here())
    slip = slips.misspelled(bench.rng, bench.known, key, kind)
    placed = slip and bench.put(slip.path, {} if key.is_section else value(bench.rng, key))
    return Planted(kind, (placed,), "keys") if placed else None


def misspelled_present_key(bench: Bench) -> Planted | None:
    """A key of the config is written wrongly, with its value."""
    found = [path for path in paths(bench.config) if not path.startswith(("optimizer.params", "scheduler.params"))]
    kind = bench.rng.choice(sorted(slips.KINDS))
    path = bench.rng.choice(found)
    section, _, old = path.rpartition(".")
    new = slips.KINDS[kind](bench.rng, old)
    if new == old or not new or slips.is_a_name(bench.known, section, new):
        return None
    place = bench.get(section) if section else bench.config
    place[new] = place.pop(old)
    blamed = f"{section}.{new}" if section else new
    return Planted(f"{kind} of a key in use", (blamed, path, section or blamed), "keys")


def misplaced_key(bench: Bench) -> Planted | None:
    """A key lies in another section, or at the top."""
    sections = ("", *(key.path for key in bench.here() if key.is_section and bench.known.children(key.path)))
    key = bench.rng.choice([key for key in bench.here() if key.name != "*"])
    slip = slips.misplaced(bench.rng, bench.known, key, sections)
    placed = slip and bench.put(slip.path, {} if key.is_section else value(bench.rng, key))
    return Planted(slips.PARENT, (placed,), "keys") if placed else None


def unknown_key(bench: Bench) -> Planted | None:
    """A key that means nothing at all."""
    section = bench.rng.choice(["", *(key.path for key in bench.here() if key.is_section)])
    placed = bench.put(f"{section}.zzz_unknown" if section else "zzz_unknown", 1)
    return Planted("unknown key", (placed,), "keys") if placed else None


def removed_key(bench: Bench) -> Planted | None:
    """A key of an earlier release."""
    gone = [key for key in every_key(bench.known) if key.status in {Status.REJECTED, Status.NO_LONGER}]
    if not gone:
        return None
    key = bench.rng.choice(gone)
    content = {"enabled": False} if key.is_section else value(bench.rng, key)
    placed = bench.put(key.path, content)
    return Planted("removed key", _around(placed), "keys") if placed else None


def newer_key(bench: Bench) -> Planted | None:
    """A key of a later release."""
    later = [key for key in every_key(bench.known) if key.status is Status.NOT_YET]
    if not later:
        return None
    key = bench.rng.choice(later)
    placed = bench.put(key.path, {} if key.is_section else value(bench.rng, key))
    return Planted("newer key", _around(placed), "keys") if placed else None


def deprecated_key(bench: Bench) -> Planted | None:
    """A deprecated key, often with its successor beside it."""
    old = [key for key in bench.here() if key.status is Status.DEPRECATED and key.successors]
    if not old:
        return None
    key = bench.rng.choice(old)
    bench.put(key.path, bench.rng.random() < 0.8)
    named = [key.path, *key.successors]
    if bench.rng.random() < 0.7:
        successor = bench.known.key(bench.rng.choice(key.successors))
        if successor is not None:
            bench.put(successor.path, {"device": "cpu"} if successor.is_section else value(bench.rng, successor))
    return Planted("deprecated key", tuple(named), "keys")


def alias_twice(bench: Bench) -> Planted | None:
    """Both spellings of a key."""
    both = [(key.path, f"{key.parent}.{key.field}") for key in bench.here() if key.field]
    both += [(key.alias_of, key.path) for key in bench.here() if key.alias_of]
    names = bench.rng.choice(both)
    for path in names:
        key = bench.known.key(path)
        if key is None or not bench.put(path, {} if "object" in key.type else value(bench.rng, key)):
            return None
    return Planted("both spellings", names, "keys")


def wrong_type(bench: Bench) -> Planted | None:
    """A value of another JSON type."""
    key = bench.leaf()
    others = [kind for kind in OTHER_VALUES if kind not in key.type]
    if not others or not key.type:
        return None
    kind = bench.rng.choice(others)
    placed = bench.put(key.path, copy.deepcopy(bench.rng.choice(OTHER_VALUES[kind])))
    return Planted("wrong type", (placed,), "types") if placed else None


def wrong_number(bench: Bench) -> Planted | None:
    """A number outside its range, or a negative or broken one where there is no range."""
    numbers = [key for key in bench.here() if {"integer", "number"} & set(key.type)]
    key = bench.rng.choice(numbers)
    low = key.minimum if key.minimum is not None else key.exclusive_minimum
    high = key.maximum if key.maximum is not None else key.exclusive_maximum
    far = [0, -1, -5, 2.5, 10**20]
    far += [low - 1, low] if low is not None else []
    far += [high + 1, high] if high is not None else []
    placed = bench.put(key.path, bench.rng.choice(far))
    return Planted("out of range", (placed,), "types") if placed else None


def unlisted_value(bench: Bench) -> Planted | None:
    """A value outside a closed list, often a near miss."""
    listed = [key for key in bench.here() if key.enum]
    key = bench.rng.choice(listed)
    one = bench.rng.choice(key.enum)
    near = [slips.typo(bench.rng, one), one.swapcase(), f"{one} "] if isinstance(one, str) and one else [17, -1]
    placed = bench.put(key.path, bench.rng.choice([*near, "zzz"]))
    return Planted("bad value", (placed,), "types") if placed else None


def null(bench: Bench) -> Planted | None:
    """A null."""
    placed = bench.put(bench.rng.choice(bench.here()).path, None)
    return Planted("null", (placed,), "types") if placed else None


def no_section(bench: Bench) -> Planted | None:
    """A section that is a switch, a number, a text or a list."""
    key = bench.rng.choice([key for key in bench.here() if key.is_section])
    content: object = bench.rng.choice((True, False, 1, 0, "zzz", "auto", [], [{}], ""))
    placed = bench.put(key.path, content)
    return Planted("section is no object", (placed,), "types") if placed else None


def auto(bench: Bench) -> Planted | None:
    """An "auto" that nobody fills."""
    placed = bench.put(bench.rng.choice(bench.here()).path, "auto")
    return Planted('"auto"', (placed,), "consumer") if placed else None


def example(bench: Bench) -> Planted | None:
    """A bad example of a rule, laid over the config."""
    planting = bench.rng.choice(plantings(bench.known.version))
    if planting.blames(*BATCH):
        for name in BATCH:
            bench.config.pop(name, None)
    for name, content in planting.config.items():
        if name not in BATCH or planting.blames(*BATCH):
            below = None if name in {"optimizer", "scheduler"} else bench.config.get(name)
            bench.config[name] = laid_over(below, content)
    return Planted("example of a rule", planting.paths, planting.family)


def laid_over(below: object, above: object) -> object:
    """Return a value with another one over it: objects are merged, anything else is replaced."""
    if not isinstance(below, dict) or not isinstance(above, dict):
        return copy.deepcopy(above)
    return {name: laid_over(below.get(name), above.get(name, below.get(name))) for name in {**below, **above}}


def batch(bench: Bench) -> Planted | None:
    """Batch keys that do not fit, are missing, or are no positive numbers."""
    for name in BATCH:
        if bench.rng.random() < 0.3:
            bench.config.pop(name, None)
        if bench.rng.random() < 0.4:
            bench.config[name] = bench.rng.choice((1, 3, 5, 7, 16, 17, 0, -4, 2.5, True, "8", None, "auto"))
    if bench.rng.random() < 0.15:
        bench.config["sequence_parallel_size"] = bench.rng.choice((1, 2, 3, 0, -1, "2"))
    return Planted("batch keys", (*BATCH, "sequence_parallel_size"), "batch")


def _around(path: str) -> tuple[str, ...]:
    parts = path.split(".")
    return tuple(".".join(parts[:length]) for length in range(len(parts), 0, -1))


def paths(config: Config, before: str = "") -> Iterator[str]:
    """Yield the dotted path of every member that is not in a list."""
    for name, content in config.items():
        yield before + name
        if isinstance(content, dict):
            yield from paths(content, f"{before}{name}.")


FAULTS: tuple[Fault, ...] = (
    misspelled_key,
    misspelled_present_key,
    misplaced_key,
    unknown_key,
    removed_key,
    newer_key,
    deprecated_key,
    alias_twice,
    wrong_type,
    wrong_type,
    wrong_number,
    unlisted_value,
    null,
    no_section,
    auto,
    example,
    example,
    example,
    batch,
    precision,
    zero,
    offload,
    optimizer,
    scheduler,
    parameter_auto,
)
