"""DS114: a key that DeepSpeed accepts and nothing reads."""

from __future__ import annotations

from collections.abc import Iterator

from dsmigrate.knowledge import Key, Status, knowledge
from dsmigrate.languages import say
from dsmigrate.rules.context import Context, shown
from dsmigrate.rules.model import Effect, Example, Finding, Severity, Tag
from dsmigrate.rules.registry import rule
from dsmigrate.rules.types._shared import is_shadowed

_TOLD_ELSEWHERE = frozenset({"vocabulary_size", "comms_logger.enabled"})
"""Keys of which other rules say what becomes of their value."""


@rule(
    "DS114",
    "dead-key",
    summary="A key that DeepSpeed accepts and that nothing reads, with a value that someone may count on.",
    why=(
        "The key is parsed and checked, and then never looked at, so a value that differs from the default is a wish"
        " that is not granted, and `enabled: false` switches nothing off. The page of each key says why."
    ),
    severity=Severity.INFO,
    effect=Effect.IGNORED,
    source=("deepspeed/runtime/engine.py", "deepspeed/runtime/utils.py:all_gather_dp_groups"),
    keys=("zero_optimization.allgather_partitions", "disable_allgather"),
    examples=(
        Example(
            '{"train_batch_size": 8, "zero_optimization": {"stage": 1, «"allgather_partitions"»: false}}',
            fixed='{"train_batch_size": 8, "zero_optimization": {"stage": 1}}',
        ),
        Example('{"train_batch_size": 8, «"disable_allgather"»: true}', fixed='{"train_batch_size": 8}'),
        Example('{"train_batch_size": 8, "comms_logger": {"enabled": false}}'),
        Example('{"train_batch_size": 8, "data_efficiency": {"enabled": true, "data_sampling": {"enabled": false}}}'),
        Example('{"train_batch_size": 8, "zero_optimization": {"stage": 1, "allgather_partitions": true}}'),
    ),
)
def check(context: Context) -> Iterator[Finding]:
    """Yield a finding for each dead key that someone may count on; what is dead is known for the newest release."""
    if context.known.version != knowledge().version:
        return
    for entry in context.entries:
        key, node = entry.key, entry.node
        if (
            key is None
            or node is None
            or not key.dead
            or key.status is not Status.PRESENT
            or key.path in _TOLD_ELSEWHERE
        ):
            continue
        value = node.value()
        if value == "auto" or _is_expected(context, key, value) or is_shadowed(context, entry.path):
            continue
        yield context.finding(
            entry,
            say("{path} has no effect: {why}", path=shown(entry.path), why=_why(key.dead)),
            part="key",
            fixes=[context.remove(entry, say("Remove {path}", path=shown(entry.path)), safe=True)],
            tags=[Tag.UNNECESSARY],
        )


def _is_expected(context: Context, key: Key, value: object) -> bool:
    """Return whether nobody is misled: by a default, or by an `enabled` that says what the keys below it make good."""
    if key.name != "enabled" or not isinstance(value, bool):
        return value == key.default or isinstance(value, str)
    below = [
        path for path in context.known.every_path() if path.startswith(f"{key.parent}.") and path.endswith(".enabled")
    ]
    others = [path for path in below if path != key.path]
    return value or (bool(others) and not any(context.raw(path) is True for path in others))


def _why(text: str) -> str:
    return text.strip().split("\n\n")[0].replace("\n", " ").rstrip(".")
