"""Whether a value that stands in the file would do for another key."""

from __future__ import annotations

from collections.abc import Mapping

from dsmigrate.document import Array
from dsmigrate.editing.completion import batch, data, refusals
from dsmigrate.editing.completion.choices import fits as fits_facts
from dsmigrate.editing.completion.foreign import is_foreign
from dsmigrate.editing.completion.item import Kind
from dsmigrate.editing.completion.members import Candidate, members, parameters
from dsmigrate.editing.completion.situation import Situation
from dsmigrate.editing.completion.spot import Spot
from dsmigrate.knowledge import MISSING
from dsmigrate.rules.context import TYPED

_MOST = 200
"""Values with more keys than this are not looked through."""


def fits(candidate: Candidate, spot: Spot, situation: Situation) -> bool:
    """Return whether the value at ``spot`` is one that ``candidate`` takes in this file."""
    node = spot.value
    if node is None or is_foreign(candidate, situation):
        return False
    if candidate.kind is not Kind.SECTION and isinstance(node, Array) and "array" not in candidate.facts.type:
        return False
    value = node.value()
    if not _takes(candidate, value, situation):
        return False
    lost = _lost(spot, situation)
    if candidate.path in batch.DECISIVE and not batch.is_fitting(candidate.path, value, _without(lost, situation)):
        return False
    found = dict(data.leaves(candidate.path, value))
    if len(found) > _MOST:
        return False
    return not refusals.is_refused(situation, lost | found)


def _without(lost: dict[str, object], situation: Situation) -> Situation:
    """Return the situation without the batch key that goes."""
    for path in lost.keys() & batch.DECISIVE:
        situation = situation.assuming(path, situation.known.default(path))
    return situation


def _lost(spot: Spot, situation: Situation) -> dict[str, object]:
    """Return the key that goes when another takes its place."""
    name = spot.member.name if spot.member is not None else None
    if len(spot.path) == 2 and spot.path[0] in TYPED and spot.path[1] == "params":
        return {f"{spot.path[0]}.params.{name}": MISSING}
    key = None if name is None else situation.known.key((*spot.path, name))
    return {} if key is None else dict.fromkeys((key.alias_of or key.path, f"{key.path}.enabled"), MISSING)


def _takes(candidate: Candidate, value: object, situation: Situation) -> bool:
    if value == "auto":
        auto = situation.known.auto(candidate.path, situation.consumer)
        return auto is not None and auto.works and not (auto.unless and situation.has(auto.unless))
    if candidate.path in {f"{kind}.type" for kind in TYPED}:
        every = situation.known.optimizers() if candidate.path == "optimizer.type" else situation.known.schedulers()
        return any(facts.name == value for facts in every)
    if candidate.kind is not Kind.SECTION:
        return fits_facts(candidate.facts, value)
    if not isinstance(value, Mapping):
        return False
    if candidate.path in TYPED:
        return _takes_typed(candidate.path, value, situation)
    inside = {name: one for one in _inside(candidate, situation) for name in one.names}
    needed = [one for one in inside.values() if one.required_when is not None]
    return all(one.names[0] in value for one in needed) and all(
        name in inside and _takes(inside[name], inner, situation) for name, inner in value.items()
    )


def _inside(candidate: Candidate, situation: Situation) -> tuple[Candidate, ...]:
    kind, _, rest = candidate.path.partition(".")
    if kind in TYPED and rest == "params":
        facts = situation.facts_of(kind)
        return () if facts is None else parameters(kind, facts.name, situation.known, situation.consumer)
    return members(candidate.path, situation.known, situation.consumer)


def _takes_typed(kind: str, value: Mapping[str, object], situation: Situation) -> bool:
    """Return whether an object names a type of the release, with parameters of that type."""
    name, params = value.get("type"), value.get("params", {})
    every = situation.known.optimizers() if kind == "optimizer" else situation.known.schedulers()
    look = situation.known.optimizer if kind == "optimizer" else situation.known.scheduler
    facts = look(name) if isinstance(name, str) else None
    if facts is None or facts not in every or not isinstance(params, Mapping) or value.keys() - {"type", "params"}:
        return False
    if kind == "scheduler" and "params" not in value:
        return False
    inside = {one.name: one for one in parameters(kind, facts.name, situation.known, situation.consumer)}
    required = {name for name, one in inside.items() if one.required_when is not None}
    return required <= params.keys() and all(
        name in inside and _takes(inside[name], inner, situation) for name, inner in params.items()
    )
