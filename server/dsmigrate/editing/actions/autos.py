"""What stands for "auto" in a file, and what each would be without a program that fills it."""

from __future__ import annotations

from dataclasses import dataclass

from dsmigrate.document import Path, render_path
from dsmigrate.editing.view import View
from dsmigrate.knowledge import MISSING, Auto, AutoEffect, Consumer
from dsmigrate.knowledge.wording import json_text
from dsmigrate.languages import say
from dsmigrate.rules.consumer._shared import autos
from dsmigrate.rules.context import Entry

_BATCH = ("train_batch_size", "train_micro_batch_size_per_gpu")
_TRAINER = Consumer.TRANSFORMERS


@dataclass(frozen=True, slots=True)
class Resolved:
    """What becomes of one "auto": another ``value``, nothing (``goes``), or what it is, and why, as a sentence."""

    path: Path
    why: str
    value: object = MISSING
    goes: bool = False

    @property
    def stays(self) -> bool:
        """Whether nobody but the person can say what it should be."""
        return not self.goes and self.value is MISSING


def resolved(view: View) -> tuple[Resolved, ...]:
    """Return what each "auto" would be for plain DeepSpeed; those that are values of their own are left out."""
    found = (_resolved(view, entry) for entry in autos(view.context))
    return tuple(one for one in found if one is not None)


def _resolved(view: View, entry: Entry) -> Resolved | None:
    name = f"`{render_path(entry.path)}`"
    plain = view.known.auto(entry.path, Consumer.DEEPSPEED)
    if plain is not None and plain.effect is AutoEffect.VALUE:
        return None
    filled = view.known.auto(entry.path, _TRAINER)
    if filled is not None and filled.effect is AutoEffect.FILLED:
        return _filled(view, entry, filled, name)
    if entry.key is None and not entry.is_parameter:
        return Resolved(entry.path, say("{name} stays: DeepSpeed does not know it.", name=name))
    return _left_out(entry, name, say("no program fills it"))


def _filled(view: View, entry: Entry, filled: Auto, name: str) -> Resolved:
    value = filled.fallback if filled.usual is None else filled.usual
    if entry.name == "nvme_path":
        return _nvme_path(view, entry, name)
    if value is not None:
        usually = say(", here at its default") if "Arguments." in filled.source else ""
        why = say(
            "{name} is {value}: the Trainer takes {source}{usually}.",
            name=name,
            value=json_text(value),
            source=filled.source,
            usually=usually,
        )
        return Resolved(entry.path, why, value)
    if entry.path == _BATCH[:1]:
        if view.context.has(_BATCH[1]):
            return Resolved(
                entry.path, say("{name} is left out: DeepSpeed computes it from the micro-batch.", name=name), goes=True
            )
        return Resolved(entry.path, say("{name} stays: the Trainer takes {source}.", name=name, source=filled.source))
    return _left_out(entry, name, say("the Trainer takes {source}", source=filled.source))


def _nvme_path(view: View, entry: Entry, name: str) -> Resolved:
    around = view.document.node_at((*entry.path[:-1], "device"))
    if around is not None and around.value() == "nvme":
        return Resolved(entry.path, say("{name} stays: it has to be a path on your NVMe drive.", name=name))
    return Resolved(entry.path, say("{name} is left out: nothing goes to NVMe.", name=name), goes=True)


def _left_out(entry: Entry, name: str, reason: str) -> Resolved:
    """Return the removal of a key that can do without a value; what cannot stays for the person."""
    required = entry.key.required_when is not None if entry.key else bool(entry.parameter and entry.parameter.required)
    if required or entry.name == "type":
        return Resolved(entry.path, say("{name} stays: {reason}, and it has no default.", name=name, reason=reason))
    default = entry.key.default if entry.key else entry.parameter.default if entry.parameter else MISSING
    means = "" if default in (MISSING, None) else f", {json_text(default)}"
    return Resolved(
        entry.path,
        say("{name} is left out: {reason}; here the default holds{means}.", name=name, reason=reason, means=means),
        goes=True,
    )
