"""fp16 instead of bf16, or bf16 instead of fp16, with what comes and goes."""

from __future__ import annotations

from collections.abc import Iterator

from dsmigrate.document import EditError, Object, render_path
from dsmigrate.editing.actions.draft import Step, move, put, remove, rename, started, why_not
from dsmigrate.editing.actions.judging import settled
from dsmigrate.editing.actions.model import REWRITE, Action, Feature, Here, Outcome
from dsmigrate.editing.actions.stage_conflicts import fp16_without_zero
from dsmigrate.editing.view import View
from dsmigrate.knowledge import Status
from dsmigrate.languages import say
from dsmigrate.rules.context import UNKNOWN
from dsmigrate.rules.precision._shared import bf16_is_on, bf16_section, dtype

NAME = "precision"
_MODES = ("fp16", "bf16")
_SECTIONS = (("fp16",), ("bf16",), ("bfloat16",))
_FOLLOWS = ("communication_data_type", "data_types.grad_accum_dtype", "data_types.param_dtype")
"""Keys that name a format: where they name the old one, they follow."""
_MASTERS = {"fp16": "fp16_master_weights_and_grads", "bf16": "bf16_master_weights_and_grads"}
_HERE = frozenset({Status.PRESENT, Status.DEPRECATED})
MENDED = frozenset({"DS322", "DS326", "DS340", "DS344"})
"""Errors whose fix belongs to the change."""


def _offer(view: View, here: Here) -> Iterator[Action]:
    if not any(here.is_in(section) for section in _SECTIONS):
        return
    now, reason = _mode(view)
    if now is None:
        if reason:
            yield Action(say("Switch between fp16 and bf16"), REWRITE, (NAME, ""), disabled=reason)
        return
    other = _other(now)
    reason = why_not(view.document) or _conflict(view, other)
    yield Action(say("Switch from {now} to {other}", now=now, other=other), REWRITE, (NAME, other), disabled=reason)


def _mode(view: View) -> tuple[str | None, str]:
    """Return the mode that is on, or None and why that cannot be told, "" for neither of them."""
    half, brain = view.context.is_on("fp16.enabled"), bf16_is_on(view.context)
    if half and brain:
        return None, say("both are on")
    if UNKNOWN in (view.context.value("fp16.enabled"), view.context.value("bf16.enabled")):
        return None, say('"auto" leaves the choice to the {consumer}', consumer=view.consumer.title)
    return ("fp16" if half else "bf16" if brain else None), ""


def _conflict(view: View, target: str) -> str:
    return fp16_without_zero(view.context) if target == "fp16" and view.context.stage == 0 else ""


def _other(mode: str) -> str:
    return _MODES[1 - _MODES.index(mode)]


def _carry_out(view: View, target: str) -> Outcome:
    now, reason = _mode(view)
    reason = reason or _conflict(view, target)
    if reason or now is None or target not in _MODES or now == target:
        return Outcome(left=(reason or say("The config trains in no other format that could be switched."),))
    try:
        draft = started(view.document, view.context.unknown).after(_steps(view, now, target))
    except EditError as error:
        return Outcome(left=(str(error),))
    return settled(view.settings, draft, mend=MENDED, left=tuple(_left(view, now)))


def _steps(view: View, now: str, target: str) -> Iterator[Step]:
    source = bf16_section(view.context) if now == "bf16" else "fp16"
    there = bf16_section(view.context) if target == "bf16" else "fp16"
    if isinstance(view.document.node_at((there,)), Object):
        yield from _masters(view, source, there, target)
        if now == "fp16" and view.context.has("fp16.auto_cast"):
            yield remove(("fp16", "auto_cast"), say("`fp16.auto_cast` goes: it casts inputs while fp16 is off, too."))
        yield put((there, "enabled"), True, say("{target} is on.", target=target))  # noqa: FBT003 - the value of the key
        yield put((source, "enabled"), False, say("{now} is off.", now=now))  # noqa: FBT003 - the value of the key
    else:
        yield from _turned(view, source, target)
    for path in _FOLLOWS:
        entry = view.context.entry(path)
        if entry is not None and dtype(view.context.raw(path)) == now:
            yield put(entry.path, target, say("`{path}` is {target} as well.", path=path, target=target))


def _masters(view: View, source: str, there: str, target: str) -> Iterator[Step]:
    """Yield what becomes of low-precision masters and states, which belong to the mode that is on."""
    old, new = (source, _MASTERS["fp16" if source == "fp16" else "bf16"]), (there, _MASTERS[target])
    for name in (old[1], "bf16_optimizer_states"):
        if view.document.node_at((source, name)) is None:
            continue
        if name == old[1] and view.document.member_at(new) is None and _knows(view, target, new[1]):
            yield move(
                old,
                new,
                say(
                    "`{render_path}` is `{render_path_2}`.",
                    render_path=render_path(old),
                    render_path_2=render_path(new),
                ),
            )
        else:
            yield remove(
                (source, name),
                say("`{source}.{name}` goes: {target} has its own.", source=source, name=name, target=target),
            )


def _turned(view: View, source: str, target: str) -> Iterator[Step]:
    """Yield the steps that make the section of one mode that of the other, without the keys that only the one has."""
    node = view.document.node_at((source,))
    old, new = _MASTERS["fp16" if source == "fp16" else "bf16"], _MASTERS[target]
    for member in node if isinstance(node, Object) else ():
        name = member.name or ""
        path = (source, name)
        if name == old and _knows(view, target, new):
            yield rename(
                path, new, say("`{source}.{old}` is `{target}.{new}`.", source=source, old=old, target=target, new=new)
            )
        elif not _knows(view, target, name):
            yield remove(
                path,
                say("`{render_path}` goes: {target} has no such key.", render_path=render_path(path), target=target),
            )
    if view.document.member_at((target,)) is not None:  # null, or no object
        yield remove((target,))
    yield rename((source,), target, say("{target} instead of {source}.", target=target, source=source))


def _knows(view: View, section: str, name: str) -> bool:
    key = view.known.key((section, name))
    return key is not None and key.status in _HERE


def _left(view: View, now: str) -> Iterator[str]:
    if now == "fp16" and view.context.is_on("fp16.auto_cast"):
        yield say(
            "`fp16.auto_cast` cast the inputs of the model; bf16 has no such key, so the script has to cast them."
        )
    if now == "bf16":
        yield say(
            "fp16 has a narrow range: watch for overflows, which the dynamic loss scale answers by skipping steps."
        )


FEATURE = Feature(NAME, REWRITE, _offer, _carry_out, (str,))
