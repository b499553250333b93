"""What nobody else explains: the change in the words of the facts of its key."""

from __future__ import annotations

from collections.abc import Iterator

from dsmigrate.diff import findings
from dsmigrate.diff.effects import effects_of, severity_of
from dsmigrate.diff.inside import inside
from dsmigrate.diff.model import Change, Effect, Explained, Severity
from dsmigrate.diff.pair import Pair, shown
from dsmigrate.diff.registry import Example, explanation
from dsmigrate.diff.side import Side
from dsmigrate.editing.derived.inert import unmet
from dsmigrate.editing.derived.sizes import count_text, whole
from dsmigrate.knowledge import MISSING, Key, Parameter
from dsmigrate.knowledge.wording import value_name
from dsmigrate.languages import say
from dsmigrate.rules.context import UNKNOWN

_LONG = 10_000


@explanation(
    "DF999",
    "other-key",
    summary="A key without an explanation of its own: what it does and what its values mean, from the facts.",
    why=(
        "Every changed key is explained. What no other explanation tells is told from the documentation of the key:"
        " what it does, what the value means and counts, what the default is, and whether it acts on either side."
    ),
    source=("schemas/deepspeed/keys",),
    examples=(
        Example(
            '{"train_batch_size": 8}',
            '{"train_batch_size": 8, "disable_python_gc": true}',
            "Switches Python's cyclic garbage collection off while an engine exists: `true` instead of `false` (the"
            " default)",
            paths=("disable_python_gc",),
            effects=(Effect.MEMORY, Effect.SPEED),
            severity=Severity.INFO,
        ),
        Example(
            '{"train_batch_size": 8, "zero_optimization": {"stage": "ZERO,"}}',
            '{"train_batch_size": 8, "zero_optimization": {"stage": "ZERO"}}',
            "",  # refused on both sides
        ),
        Example(
            '{"train_batch_size": 8, "my_application": {"name": "a"}}',
            '{"train_batch_size": 8, "my_application": {"name": "b"}}',
            "",
        ),
    ),
    last=True,
)
def explain(pair: Pair) -> Iterator[Explained]:
    """Yield one message for each change that nothing else has told."""
    broken = {path for path, _ in findings.both(pair.new, pair.old)} & pair.mentioned
    broken |= {
        path
        for side, other in ((pair.old, pair.new), (pair.new, pair.old))
        for path, finding in findings.only(side, other)
        if findings.rejects(finding) and not findings.is_of_releases(pair, finding)
    } & pair.mentioned  # of a value that is refused nothing more can be told
    for path, change in pair.changes.items():
        if path in pair.claimed or path in broken:
            continue
        refusing = [side.known.version for side in (pair.old, pair.new) if side.refuses(path) and path in side.given]
        if not refusing:
            said = _generic(pair, path, change)
            if said.effects != (Effect.VALIDITY,) or path not in pair.mentioned:
                yield said
        elif path not in pair.mentioned:
            yield pair.says(
                path,
                effects=(Effect.VALIDITY,),
                severity=Severity.INFO,
                message=say(
                    "DeepSpeed {refusing} refuses the config for `{path}`, whatever it says",
                    refusing=refusing[-1],
                    path=path,
                ),
            )


def _generic(pair: Pair, path: str, change: Change) -> Explained:
    about = _about(pair, path)
    if pair.change(path) is None:
        message = (
            say("{about}: nothing comes of it here", about=about)
            if about
            else say("`{path}` does nothing here", path=path)
        )
        return pair.says(path, effects=(Effect.NONE,), severity=Severity.NONE, message=message)
    values = inside(change.old_meant, change.new_meant) if change.old_meant and change.new_meant else ""
    values = values or say(
        "{value} instead of {value_2}",
        value=_value(pair, path, change, new=True),
        value_2=_value(pair, path, change, new=False),
    )
    effects = effects_of(pair, path)
    return pair.says(
        path,
        effects=effects,
        severity=severity_of(effects),
        message=say("{what}: {values}{rest}", what=about or f"`{path}`", values=values, rest=_flips(pair, path)),
    )


def _about(pair: Pair, path: str) -> str:
    """Return what a key does, without the full stop; "" for one that nobody knows."""
    key = pair.new.known.key(path)
    if key is not None:
        return key.summary.rstrip(".。")
    parameter = _parameter(pair.new, path) or _parameter(pair.old, path)
    return parameter.summary.rstrip(".。") if parameter is not None else ""


def _parameter(side: Side, path: str) -> Parameter | None:
    section, _, name = path.partition(".params.")
    if section not in {"optimizer", "scheduler"} or not name:
        return None
    facts = side.context.type_of("optimizer" if section == "optimizer" else "scheduler")
    return None if facts is None else facts.parameters.get(name)


def _value(pair: Pair, path: str, change: Change, *, new: bool) -> str:
    """Return a value with what it means or counts: "`2` (gradients too)", "500 M elements", "`false` (the default)"."""
    side = pair.new if new else pair.old
    meant, written = (change.new_meant, change.new) if new else (change.old_meant, change.old)
    if meant is MISSING and written is not MISSING:
        meant = written
    if meant is MISSING or meant is UNKNOWN:
        return shown(meant)
    text = shown(meant)
    remarks = [say("the default")] if written is MISSING else []
    known: Key | Parameter | None = side.known.key(path) or _parameter(side, path)
    if known is not None:
        means = known.values.get(value_name(meant), "")
        count = whole(meant)
        if known.unit and known.unit != "path" and count is not None:
            text = f"{count_text(count) if count >= _LONG else f'`{count}`'} {known.unit}"
        remarks += [means.rstrip(".。")] if means else []
    return say("{text} ({remarks})", text=text, remarks=say("; ").join(remarks)) if remarks else text


def _flips(pair: Pair, path: str) -> str:
    """Return what a key that acts on one side only misses on the other."""
    before, after = pair.lives(path)
    if before is after:
        return ""
    side = pair.old if after else pair.new
    key = side.known.key(path)
    found = unmet(side.context, key, side.place(path)) if key is not None else None
    if found is None:
        return ""
    if after:
        return say("; it takes effect with `{path}`", path=found.path)
    return say("; it no longer has an effect with `{path}`", path=found.path)
