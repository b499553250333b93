"""Keys for an object: what is valid there and not there yet, the most relevant first."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from dsmigrate.editing.completion import batch, refusals, relevance, renames, skeletons, types
from dsmigrate.editing.completion.body import Body
from dsmigrate.editing.completion.choices import Choice, takes
from dsmigrate.editing.completion.foreign import is_foreign
from dsmigrate.editing.completion.item import Item, Kind
from dsmigrate.editing.completion.members import Candidate, members, parameters
from dsmigrate.editing.completion.scene import Scene
from dsmigrate.editing.completion.situation import Situation
from dsmigrate.editing.completion.spot import Wants
from dsmigrate.rules.context import TYPED

_PARAMS = frozenset(f"{kind}.params" for kind in TYPED)
_TYPES = frozenset(f"{kind}.type" for kind in TYPED)


def items(found: Iterable[Candidate], scene: Scene) -> Iterator[Item]:
    """Yield a key for each of ``found`` that DeepSpeed takes beside the file."""
    for candidate in found:
        item = _item(candidate, scene)
        if item is not None:
            yield item


def missing(scene: Scene) -> Iterator[Candidate]:
    """Yield the keys that the object at the spot may have and does not have yet, the one at the cursor aside."""
    section = path_of(scene)
    if section is None or scene.container is None:
        return
    there = present(scene)
    for candidate in candidates(section, scene.situation):
        if there.isdisjoint(candidate.names):
            yield candidate


def path_of(scene: Scene) -> str | None:
    """Return the canonical path of the object at the spot; None for one that DeepSpeed does not know."""
    path = scene.spot.path
    if not path:
        return ""
    known = scene.known
    canonical = known.canonical(path)
    if known.key(path) is not None or canonical.endswith("[]"):
        return canonical
    return f"{known.canonical(path[:-1])}.*" if len(path) > 1 and known.takes_any_name(path[:-1]) else None


def candidates(section: str, situation: Situation) -> Sequence[Candidate]:
    """Return the keys of a section, or the parameters of the type that the file names."""
    kind, _, rest = section.partition(".")
    if kind in TYPED and rest == "params":
        facts = situation.facts_of(kind)
        return () if facts is None else parameters(kind, facts.name, situation.known, situation.consumer)
    return members(section, situation.known, situation.consumer)


def present(scene: Scene) -> set[str]:
    """Return the keys of the object at the spot, without the one at the cursor."""
    if scene.container is None:
        return set()
    own = None if scene.spot.member is None else scene.spot.member.index
    children = enumerate(scene.container.shape.children)
    names = (getattr(child, "key", None) for index, child in children if index != own)
    return {str(key.value) for key in names if key is not None}


def _item(candidate: Candidate, scene: Scene) -> Item | None:
    situation = scene.situation
    body: Body | None = None
    if scene.spot.wants is Wants.NAME:
        if not renames.fits(candidate, scene.spot, situation):
            return None
        text = scene.page.spelling.key(candidate.name)
    else:
        body = body_of(candidate, scene)
        if body is None:
            return None
        text = scene.member(candidate.name, body)
    matters = relevance.of(candidate, scene.spot.path, situation)
    return scene.item(
        candidate.name,
        candidate.kind,
        text,
        sort=f"{matters.rank}{candidate.name}",
        detail=candidate.detail,
        description=matters.reason or candidate.description,
        data=candidate.data,
        snippet=None if body is not None else False,
        again=body is not None and (body.is_open or candidate.asks_again),
    )


def body_of(candidate: Candidate, scene: Scene) -> Body | None:
    """Return what to write behind a new key; None where DeepSpeed would refuse every value that does anything."""
    situation, path = scene.situation, candidate.path
    if candidate.kind is Kind.SECTION:
        return _section(candidate, scene)
    if path in _TYPES:
        return _type(path.partition(".")[0], scene)
    if is_foreign(candidate, situation):
        return None
    values = (*batch.computed(path, situation), *candidate.values) if path in batch.KEYS else candidate.values
    for number, choice in enumerate(values):
        if choice.value == "auto" and not _is_filled(candidate, choice, scene):
            continue
        if path in batch.DECISIVE and not batch.is_fitting(path, choice.value, situation):
            continue
        if refusals.is_choice_refused(situation, path, choice):
            continue
        return None if number and isinstance(choice.value, bool) and choice.note else choice.body
    return None


def _is_filled(candidate: Candidate, choice: Choice, scene: Scene) -> bool:
    """Return whether "auto" works at the spot, whose section may stand there by another name."""
    place = (*scene.spot.path, candidate.name)
    works = takes(scene.known.auto(place, scene.consumer), scene.known.key(place))
    return works and not (choice.unless and scene.situation.has(choice.unless))


def _type(kind: str, scene: Scene) -> Body | None:
    """Return the first type that fits, with the parameters that it cannot do without."""
    found = types.offered(kind, scene)
    return types.body(*found[0], scene.page.spelling) if found else None


def _section(candidate: Candidate, scene: Scene) -> Body | None:
    found = skeletons.of(candidate)
    if candidate.path in _PARAMS:
        owner = scene.situation.facts_of(candidate.path.partition(".")[0])
        if owner is not None:
            found = skeletons.skeletons(candidate.path, owner.name, scene.known, scene.consumer)
    for skeleton in found:
        if not refusals.is_start_refused(scene.situation, skeleton):
            return skeletons.body(skeleton, scene.page.spelling)
    return None
