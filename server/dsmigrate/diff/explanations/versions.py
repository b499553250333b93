"""Keys that one release reads and the other does not, and defaults that moved between the two."""

from __future__ import annotations

from collections.abc import Iterator

from dsmigrate.diff.effects import effects_of, severity_of
from dsmigrate.diff.model import Change, Effect, Explained, Severity
from dsmigrate.diff.pair import Pair, shown
from dsmigrate.diff.registry import Example, explanation
from dsmigrate.knowledge import MISSING, Status
from dsmigrate.languages import say

_NVME = (
    '{"train_batch_size": 8,'
    ' "zero_optimization": {"stage": 3, "offload_optimizer": {"device": "nvme", "nvme_path": "/n"}}'
)


@explanation(
    "DF130",
    "read-by-one-release",
    summary="A key of the file that only one of the two DeepSpeed releases reads.",
    why=(
        "Keys come and go with releases. One that a release does not read is ignored where the section ignores"
        " unknown keys, so that the file says what no longer happens, or does not happen yet."
    ),
    source=("schemas/deepspeed/derived",),
    examples=(
        Example(
            '{"train_batch_size": 8, "sparse_gradients": true}',
            '{"train_batch_size": 8, "disable_python_gc": true}',
            "",
        ),
        Example(
            '{"train_batch_size": 8, "disable_python_gc": true}',
            '{"train_batch_size": 8, "disable_python_gc": true}',
            "DeepSpeed 0.19.8 reads `disable_python_gc`, which 0.19.6 ignored: it is `true` now, previously `false`",
            paths=("disable_python_gc",),
            effects=(Effect.MEMORY, Effect.SPEED),
            severity=Severity.INFO,
            old_version="0.19.6",
            new_version="0.19.8",
        ),
        Example(
            _NVME + ', "aio": {"thread_count": 4}}',
            _NVME + ', "aio": {"thread_count": 4}}',
            "DeepSpeed 0.19.8 no longer reads `aio.thread_count`, which 0.16.3 did: it is `1` now, previously `4`",
            paths=("aio.thread_count", "aio.intra_op_parallelism"),
            effects=(Effect.SPEED,),
            old_version="0.16.3",
        ),
    ),
)
def explain_read(pair: Pair) -> Iterator[Explained]:
    """Yield a message for each key that one side reads and the other one ignores."""
    if pair.old.known.version == pair.new.known.version:
        return
    for path, change in pair.changes.items():
        begins = pair.new.reads(path)
        if begins is pair.old.reads(path) or pair.old.refuses(path) or pair.new.refuses(path):
            continue
        if pair.change(path) is None:
            yield pair.says(
                path, effects=(Effect.NONE,), severity=Severity.NONE, message=_message(pair, path, begins=begins)
            )
            continue
        effects = effects_of(pair, path)
        yield pair.says(
            path,
            *_other_name(pair, path),
            effects=effects,
            severity=severity_of(effects),
            message=say(
                "{what}: {values}",
                what=_message(pair, path, begins=begins),
                values=_values(pair, change, begins=begins),
            ),
            brief=say("`{path}` is read now", path=path) if begins else say("`{path}` no longer read", path=path),
        )


def _other_name(pair: Pair, path: str) -> tuple[str, ...]:
    """Return the new name of a renamed key, under which the change appears as well."""
    key = pair.new.known.key(path)
    return pair.touched(*key.successors) if key is not None else ()


def _message(pair: Pair, path: str, *, begins: bool) -> str:
    now, before = pair.new.known.version, pair.old.known.version
    if begins:
        ignored = say("ignored") if path in pair.old.given else say("did not have")
        return say(
            "DeepSpeed {now} reads `{path}`, which {before} {ignored}",
            now=now,
            path=path,
            before=before,
            ignored=ignored,
        )
    return say("DeepSpeed {now} no longer reads `{path}`, which {before} did", now=now, path=path, before=before)


def _values(pair: Pair, change: Change, *, begins: bool) -> str:
    now = change.new_meant if begins else pair.old.known.default(change.path)
    before = pair.new.known.default(change.path) if begins else change.old_meant
    return say("it is {now} now, previously {before}", now=shown(now), before=shown(before))


@explanation(
    "DF901",
    "moved-default",
    summary="A default moved between the two DeepSpeed releases, and the file leaves the key out.",
    why=(
        "A file that stays as it is trains otherwise when a release changes what an absent key means. Writing the old"
        " value into the file keeps the old behaviour."
    ),
    source=("schemas/deepspeed/derived",),
    examples=(
        Example(
            '{"train_batch_size": 8, "zero_optimization": {"stage": 2, "offload_optimizer": {"device": "cpu"}}}',
            '{"train_batch_size": 8, "zero_optimization": {"stage": 2, "offload_optimizer": {"device": "cpu"}}}',
            "",  # the family of offload tells what pinned memory does
            old_version="0.19.4",
            new_version="0.19.8",
        ),
        Example('{"train_batch_size": 8}', '{"train_batch_size": 16}', ""),
    ),
    last=True,
)
def explain_default(pair: Pair) -> Iterator[Explained]:
    """Yield a message for each default that moved and that no other explanation has told."""
    for path, change in pair.changes.items():
        if path in pair.claimed or change.old is not MISSING or change.new is not MISSING:
            continue
        if pair.change(path) is None:
            continue
        effects = effects_of(pair, path)
        yield pair.says(
            path,
            effects=effects,
            severity=severity_of(effects),
            message=say(
                "The default of `{path}` is {new_meant}{since}, previously {old_meant}",
                path=path,
                new_meant=shown(change.new_meant),
                since=_since(pair, path),
                old_meant=shown(change.old_meant),
            ),
            advice=say("Write {old_meant} into the file to keep it as it was", old_meant=shown(change.old_meant)),
            brief=say("`{path}` defaults to {new_meant}", path=path, new_meant=shown(change.new_meant)),
        )


def _since(pair: Pair, path: str) -> str:
    key = pair.new.known.key(path)
    if key is None or key.status is Status.NOT_YET:
        return ""
    moved = [event.version for event in key.history if event.kind.value == "default" and event.new == key.default]
    return say(" since {moved}", moved=moved[-1]) if moved else ""
