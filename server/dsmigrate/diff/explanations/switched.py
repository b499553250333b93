"""Keys that stay as they are and begin, or cease, to do something, because a switch, a stage or a device changed."""

from __future__ import annotations

from collections.abc import Iterator

from dsmigrate.diff.effects import effects_of
from dsmigrate.diff.model import Effect, Explained, Severity
from dsmigrate.diff.pair import Pair
from dsmigrate.diff.phrases import uncapital
from dsmigrate.diff.registry import Example, explanation
from dsmigrate.editing.derived.inert import unmet
from dsmigrate.languages import say

_MOST = 6


@explanation(
    "DF140",
    "goes-live-or-inert",
    summary="Keys that stay as they are begin to act, or cease to, because another key changed.",
    why=(
        "DeepSpeed accepts keys that do nothing in the config they stand in. When the stage, a switch or a device"
        " changes, such keys come to life with whatever value they have, and others fall silent."
    ),
    source=("schemas/deepspeed/keys",),
    examples=(
        Example(
            '{"train_batch_size": 8, "zero_optimization": {"stage": 2, "stage3_max_live_parameters": 1e8}}',
            '{"train_batch_size": 8, "zero_optimization": {"stage": 3, "stage3_max_live_parameters": 1e8}}',
            "As `zero_optimization.stage` changes, `zero_optimization.stage3_max_live_parameters` takes effect",
            paths=("zero_optimization.stage3_max_live_parameters",),
            effects=(Effect.MEMORY, Effect.SPEED, Effect.COMMUNICATION),
            severity=Severity.INFO,
        ),
        Example(
            '{"train_batch_size": 8, "fp16": {"enabled": true, "loss_scale_window": 50, "min_loss_scale": 2}}',
            '{"train_batch_size": 8, "fp16": {"enabled": false, "loss_scale_window": 50, "min_loss_scale": 2}}',
            "As `fp16.enabled` changes, 2 keys no longer have an effect: `fp16.loss_scale_window` and"
            " `fp16.min_loss_scale`",
            effects=(Effect.NONE,),
            severity=Severity.NONE,
        ),
        Example(
            '{"train_batch_size": 8, "zero_optimization": {"stage": 2, "overlap_comm": true}}',
            '{"train_batch_size": 8, "zero_optimization": {"stage": 1, "overlap_comm": true}}',
            "",
        ),
    ),
)
def explain(pair: Pair) -> Iterator[Explained]:
    """Yield what begins and what ceases to act, by the key it hangs on; at its default a key is not worth naming."""
    groups: dict[tuple[str, bool], list[str]] = {}
    for path in pair.new.given:
        if path in pair.changes or path not in pair.old.given or not pair.new.reads(path):
            continue
        before, after = pair.lives(path)
        if before is after or pair.new.value(path) == pair.new.known.default(path):
            continue
        cause = _cause(pair, path, begins=after)
        if cause:
            groups.setdefault((cause, after), []).append(path)
    for (cause, begins), paths in groups.items():
        touched = {effect for path in paths for effect in effects_of(pair, path)}
        yield pair.says(
            *paths,
            effects=tuple(effect for effect in Effect if effect in touched) if begins else (Effect.NONE,),
            severity=Severity.INFO if begins else Severity.NONE,
            message=say("As `{cause}` changes, {named}", cause=cause, named=_named(paths, begins=begins))
            + (_what(pair, paths[0]) if begins and len(paths) == 1 else ""),
        )


def _cause(pair: Pair, path: str, *, begins: bool) -> str:
    """Return the key on which it hangs: the condition that fails on the silent side."""
    side = pair.old if begins else pair.new
    key = side.known.key(path)
    found = unmet(side.context, key, side.place(path)) if key is not None else None
    return "" if found is None else found.path


def _what(pair: Pair, path: str) -> str:
    key = pair.new.known.key(path)
    return say(": {summary}", summary=uncapital(key.summary.rstrip(".。"))) if key is not None else ""


def _named(paths: list[str], *, begins: bool) -> str:
    if len(paths) == 1:
        return (
            say("`{path}` takes effect", path=paths[0])
            if begins
            else say("`{path}` no longer has an effect", path=paths[0])
        )
    listed = [f"`{path}`" for path in paths[:_MOST]]
    last = say("{number} more", number=len(paths) - _MOST) if len(paths) > _MOST else listed.pop()
    names = say("{listed} and {last}", listed=say(", ").join(listed), last=last)
    if begins:
        return say("{count} keys take effect: {names}", count=len(paths), names=names)
    return say("{count} keys no longer have an effect: {names}", count=len(paths), names=names)
