"""How often a slip that DeepSpeed swallows is reported, with the key that was meant named first."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from dsmigrate.document import parse
from dsmigrate.knowledge import Key, Knowledge, knowledge
from dsmigrate.rules import Finding, Settings, check

from . import slips
from .slips import Slip
from .valid import value

PER_KEY = 3
MISPLACED = 40
"""Slips per key and kind, and misplaced keys per section."""


@dataclass(frozen=True, slots=True)
class Told:
    """A slip, whether a rule reports it, and whether the key that was meant is what it names first."""

    slip: Slip
    reported: bool
    right: bool
    message: str


def planted(seed: int = 0, version: str | None = None) -> tuple[list[Slip], int]:
    """Return slips for every section that swallows them, and how many were left out because they are not plain."""
    known = knowledge(version)
    rng = random.Random(seed)  # noqa: S311 - repeatable on purpose
    found = dict.fromkeys(_all(rng, known))
    plain = [slip for slip in found if slips.is_plain(known, slip)]
    return plain, len(found) - len(plain)


def _all(rng: random.Random, known: Knowledge) -> Iterator[Slip]:
    every = [key for path in known.every_path() if (key := known.key(path)) and _is_one_key(key)]
    for facts in known.optimizers():
        for name in facts.parameters if facts.takes_anything else ():
            for kind, spoil in slips.KINDS.items():
                wrong = spoil(rng, name)
                if wrong not in facts.parameters and len(name) >= slips.SHORTEST:
                    yield Slip(kind, "optimizer.params", wrong, f"optimizer.params.{name}", facts.name)
    for section in slips.swallowing(known):
        for key in known.children(section):
            for kind in slips.KINDS:
                for _ in range(PER_KEY if _is_one_key(key) else 0):
                    slip = slips.misspelled(rng, known, key, kind)
                    if slip is not None:
                        yield slip
        for _ in range(MISPLACED):
            slip = slips.misplaced(rng, known, rng.choice(every), (section,))
            if slip is not None:
                yield slip


def _is_one_key(key: Key) -> bool:
    return key.status.value == "present" and key.alias_of is None and "*" not in key.path and "[]" not in key.path


def judge(planted_slips: Iterable[Slip], version: str | None = None) -> list[Told]:
    """Return what the rules say of each slip, in a config that holds nothing else."""
    known = knowledge(version)
    return [_told(slip, known, version) for slip in planted_slips]


def _told(slip: Slip, known: Knowledge, version: str | None) -> Told:
    config: dict[str, Any] = {"train_batch_size": 8}
    place = config
    for name in slip.section.split(".") if slip.section else ():
        place = place.setdefault(name, {})
    meant = known.key(slip.meant)
    if slip.type:
        config["optimizer"]["type"] = slip.type
    if meant is None:
        place[slip.name] = 0.1
    else:
        place[slip.name] = {} if meant.is_section else value(random.Random(slip.path), meant)  # noqa: S311
    findings = check(parse(json.dumps(config)), Settings(version=version))
    here = [finding for finding in findings if ".".join(map(str, finding.path)) == slip.path]
    first = [suggestion(finding, slip) for finding in here]
    names = {slip.meant, slip.meant.rpartition(".")[2], meant.field if meant else None}
    right = any(name in names for name in first)
    return Told(slip, bool(here), right, here[0].message if here else "")


def suggestion(finding: Finding, slip: Slip) -> str:
    """Return the key that a finding proposes first: in the title of its first fix, else in its message."""
    title = next((fix.title for fix in finding.fixes if not fix.title.startswith("Remove")), "")
    told = title or finding.message
    if "the top level" in told and "." not in slip.meant:
        return slip.meant
    wrong = set() if title else {slip.name, slip.path, slip.section}
    return next((name for name in re.findall(r"`([^`]+)`", told) if name not in wrong), "")


def table(told: Iterable[Told]) -> Iterator[str]:
    """Yield a line per section and kind of slip, and one for all."""
    rows: dict[tuple[str, str], list[Told]] = {}
    every = list(told)
    for one in every:
        rows.setdefault((one.slip.section or "(top level)", one.slip.kind), []).append(one)
    yield f"{'section':52} {'slip':13} {'planted':>8} {'reported':>9} {'right first':>12}"
    for (section, kind), those in [*sorted(rows.items()), (("all", ""), every)]:
        reported = sum(one.reported for one in those) / max(1, len(those))
        right = sum(one.right for one in those) / max(1, len(those))
        yield f"{section:52} {kind:13} {len(those):8} {reported:9.1%} {right:12.1%}"
