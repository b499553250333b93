"""Another ZeRO stage, with what has to come and what has to go."""

from __future__ import annotations

from collections.abc import Iterator

from dsmigrate.document import EditError, Object, Path, render_path
from dsmigrate.editing.actions.draft import Step, put, remove, started, why_not
from dsmigrate.editing.actions.judging import settled
from dsmigrate.editing.actions.model import REWRITE, Action, Feature, Here, Outcome
from dsmigrate.editing.actions.stage_conflicts import conflict
from dsmigrate.editing.view import View
from dsmigrate.knowledge import Key
from dsmigrate.languages import say
from dsmigrate.rules.context import Entry

NAME = "stage"
_SECTION = "zero_optimization"
_STAGE = f"{_SECTION}.stage"
_GATHER = "stage3_gather_16bit_weights_on_model_save"
_OLD_GATHER = "stage3_gather_fp16_weights_on_model_save"
_DEVICE = f"{_SECTION}.offload_optimizer.device"
_ALLOWED = "zero_allow_untested_optimizer"
"""A key that loses nothing where it does nothing, and is needed again at the next change."""

MENDED = frozenset({"DS255", "DS326", "DS340", "DS405", "DS437", "DS456", "DS510", "DS660", "DS670"})
"""Errors whose fix belongs to a change of the stage: a switch that the new stage needs, or does not take."""


def _offer(view: View, here: Here) -> Iterator[Action]:
    context = view.context
    section = context.raw(_SECTION)
    if context.root is None or not (here.is_in((_SECTION,)) or _could_have(view, here)):
        return
    now = None if context.raw(_STAGE) == "auto" else context.stage
    reason = why_not(view.document)
    for stage in (0, 1, 2, 3):
        if stage == now and not isinstance(section, bool):
            continue
        title = (
            say("Change to ZeRO stage {stage}", stage=stage)
            if context.has(_SECTION)
            else say("Train with ZeRO stage {stage}", stage=stage)
        )
        if stage or context.has(_SECTION):
            yield Action(title, REWRITE, (NAME, stage), disabled=reason or conflict(context, stage))


def _could_have(view: View, here: Here) -> bool:
    """Return whether the range lies between the keys of a config that leaves ZeRO's section out."""
    return view.whole and not here.path and not view.context.has(_SECTION)


def _carry_out(view: View, stage: int) -> Outcome:
    reason = conflict(view.context, stage)
    if reason or stage not in {0, 1, 2, 3}:
        return Outcome(left=(reason or say("There is no stage {stage}.", stage=stage),))
    try:
        draft = started(view.document, view.context.unknown).after(steps(view, stage))
    except EditError as error:
        return Outcome(left=(str(error),))
    return settled(view.settings, draft, mend=MENDED)


def steps(view: View, stage: int) -> Iterator[Step]:
    """Yield what a change to ``stage`` comes to."""
    told = say("ZeRO stage {stage}.", stage=stage)
    if isinstance(view.document.node_at((_SECTION,)), Object):
        yield from _goes(view, stage)
        yield from _devices(view, stage)
        yield put((_SECTION, "stage"), stage, told)
    else:
        yield put((_SECTION,), {"stage": stage}, told)
    if (
        stage == 3
        and not view.context.has(f"{_SECTION}.{_GATHER}")
        and not view.context.has(f"{_SECTION}.{_OLD_GATHER}")
    ):
        told = say("`{gather}` is on, so that full weights can be saved.", gather=_GATHER)
        yield put((_SECTION, _GATHER), True, told)  # noqa: FBT003 - the value of the key


def _goes(view: View, stage: int) -> Iterator[Step]:
    """Yield the removal of what does nothing at the new stage: in ZeRO's section, and elsewhere if it did before."""
    gone: list[Path] = []
    now = view.context.stage
    for entry in view.context.entries:
        if entry.key is None or not entry.key.stages or stage in entry.key.stages or entry.key.path == _ALLOWED:
            continue
        inside = entry.path[0] == _SECTION
        if any(entry.path[: len(path)] == path for path in gone) or not (inside or now in entry.key.stages):
            continue
        gone.append(entry.path)
        yield remove(
            entry.path,
            say(
                "`{render_path}` goes: it is for stage {listed}.",
                render_path=render_path(entry.path),
                listed=_listed(entry.key),
            ),
        )


def _devices(view: View, stage: int) -> Iterator[Step]:
    """Yield the device that optimizer states really go to: below stage 3, NVMe is the CPU."""
    entry = view.context.entry(_DEVICE)
    if entry is None or view.context.raw(_DEVICE) != "nvme" or stage == 0:
        return
    if stage < 3 or not _has_path(view, entry):
        yield put(entry.path, "cpu", say("`offload_optimizer.device` is cpu, which nvme is taken for below stage 3."))


def _has_path(view: View, device: Entry) -> bool:
    return view.document.node_at((*device.path[:-1], "nvme_path")) is not None


def _listed(key: Key) -> str:
    *first, last = map(str, key.stages)
    return say("{first} or {last}", first=say(", ").join(first), last=last) if first else last


FEATURE = Feature(NAME, REWRITE, _offer, _carry_out, (int,))
