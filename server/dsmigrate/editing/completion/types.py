"""The names of optimizer and scheduler types: those that the release builds, and DeepSpeed takes beside this file."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from dsmigrate.editing.completion import data, refusals
from dsmigrate.editing.completion.body import Body, Spelling, section, spelled
from dsmigrate.editing.completion.choices import fits
from dsmigrate.editing.completion.item import Item, Kind
from dsmigrate.editing.completion.members import parameters
from dsmigrate.editing.completion.scene import Scene
from dsmigrate.knowledge import TypeFacts


def items(kind: str, scene: Scene) -> Iterator[Item]:
    """Yield the types of a kind, "optimizer" or "scheduler": the common ones first, those of torch last."""
    spot = scene.spot
    found = offered(kind, scene)
    stands = spot.value.raw if spot.value is not None and _is_one(spot.value.value(), found) else ""
    for number, (facts, behind) in enumerate(found):
        text = spelled(facts.name)
        shown = f"{spot.quote}{facts.name}{spot.quote}"
        yield scene.item(
            text,
            Kind.TYPE,
            scene.page.text(body(facts, behind, scene.page.spelling)),
            sort=f"{number:02}",
            filters=f"{stands} {shown}" if stands and stands != text else shown,
            detail=facts.summary,
            description=_builds(facts),
            data=("type", kind, facts.name),
        )


Behind = Mapping[str, object]
"""What to write beside a type: its ``params``, or nothing."""


def offered(kind: str, scene: Scene) -> list[tuple[TypeFacts, Behind]]:
    """Return the types that DeepSpeed takes beside the file, the best first, with what they need beside them."""
    every = scene.known.optimizers() if kind == "optimizer" else scene.known.schedulers()
    found = []
    for facts in sorted(every, key=_order):
        behind = _behind(facts, scene)
        if behind is not None and not refusals.is_refused(scene.situation, _assigned(facts, behind, kind)):
            found.append((facts, behind))
    return found


def _order(facts: TypeFacts) -> tuple[int, bool, str]:
    return data.rank(f"{facts.kind}.type={facts.name}"), facts.torch, facts.name


def _is_one(value: object, found: list[tuple[TypeFacts, Behind]]) -> bool:
    return any(value == facts.name for facts, _ in found)


def _builds(facts: TypeFacts) -> str:
    return facts.builds[0].split(" ")[0].rstrip(",").rpartition(".")[2] if facts.builds else ""


def _behind(facts: TypeFacts, scene: Scene) -> Behind | None:
    """Return the ``params`` to write behind the type; {} where nothing is needed, None where those there do not fit."""
    if scene.container is None:
        return None
    takes = {one.name: one for one in parameters(facts.kind, facts.name, scene.known, scene.consumer)}
    required = [name for name, one in takes.items() if one.required_when is not None]
    member = scene.container.get("params")
    if member is None:
        if facts.kind == "optimizer" and not required:
            return {}
        usual = [name for name, one in takes.items() if one.rank == 1 or name in required]
        return {"params": {name: takes[name].values[0].value for name in usual if takes[name].values}}
    given = member.node.value() if member.node is not None else None
    if not isinstance(given, dict):
        return None if required else {}
    fitting = facts.takes_anything or all(
        name in takes and (value == "auto" or fits(takes[name].facts, value)) for name, value in given.items()
    )
    return {} if fitting and all(name in given for name in required) else None


def _assigned(facts: TypeFacts, behind: Behind, kind: str) -> dict[str, object]:
    return {f"{kind}.type": facts.name, **dict(data.leaves(kind, behind)[1:])}


def body(facts: TypeFacts, behind: Behind, spelling: Spelling) -> Body:
    """Return the text of a type, with its ``params`` as a further member on the line below or on the same one."""
    text, params = spelled(facts.name), behind.get("params")
    if not isinstance(params, Mapping):
        return Body(text, text, text, text)
    inner = section(params, spelling)
    head = f"{spelling.key('params')}{spelling.colon}"
    return Body(
        f"{text},\n{head}{inner.plain}",
        f"{text},\n{head}{inner.snippet}",
        f"{text}, {head}{inner.plain_line}",
        f"{text}, {head}{inner.snippet_line}",
    )
