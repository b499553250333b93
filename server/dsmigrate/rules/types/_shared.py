"""What DeepSpeed makes of a value: one verdict for each key, so that no two rules tell the same."""

from __future__ import annotations

from collections.abc import Iterator

from dsmigrate.document import Node, Object, Path, Scalar
from dsmigrate.knowledge import Consumer, Key, Status
from dsmigrate.languages import say
from dsmigrate.rules.context import Context, Entry
from dsmigrate.rules.model import Effect
from dsmigrate.rules.text._shared import is_explained
from dsmigrate.rules.types._checked import checked, is_pydantic_1
from dsmigrate.rules.types._read import plain, strict
from dsmigrate.rules.types._values import kinds_of
from dsmigrate.rules.types._verdict import Kind, Verdict

_MODELS_IN_MODELS = ("comet", "csv_monitor", "tensorboard", "wandb", "zero_optimization.", "weight_quantization.")
"""Sections for which pydantic 1 took anything that ``dict`` takes."""
_HERE = frozenset({Status.PRESENT, Status.DEPRECATED})


def verdicts(context: Context, *kinds: Kind) -> Iterator[tuple[Entry, Key, Node, Verdict]]:
    """Yield the members whose value is a mistake of one of ``kinds``; strings that other rules explain are left out."""
    for found in context.once(verdicts, lambda: tuple(_verdicts(context))):
        if found[-1].kind in kinds:
            yield found


def _verdicts(context: Context) -> Iterator[tuple[Entry, Key, Node, Verdict]]:
    for entry in context.entries:
        node, key = entry.node, entry.key
        if node is None or key is None or (isinstance(node, Scalar) and is_explained(context, key, node)):
            continue
        verdict = judge(context, entry)
        if verdict is not None:
            yield entry, key, node, verdict


def judge(context: Context, entry: Entry) -> Verdict | None:
    """Return what is wrong with the value of a member; None when nothing is, or when nobody can know.

    Every rule of the family asks; the answer is worked out once.
    """
    return context.once((judge, entry.path, entry.member.start), lambda: _judged(context, entry))


def _judged(context: Context, entry: Entry) -> Verdict | None:
    key, node = entry.key, entry.node
    if key is None or node is None or entry.is_parameter or key.status not in _HERE or is_shadowed(context, entry.path):
        return None
    if isinstance(node, Object) and (key.is_section or key.alias_of is not None):
        fits = "object" in key.type or context.is_overwritten(key.path)
        return None if fits else Verdict(Kind.OTHER, Effect.IGNORED, say("a list"))
    value = node.value()
    if (value == "auto" and not _is_kept_section(context, key)) or context.is_overwritten(key.path):
        return None
    if key.path == "allgather_size" and context.raw("zero_optimization") is True:
        moved = context.known.key("zero_optimization.allgather_bucket_size")
        key = key if moved is None else moved
    if key.is_section or key.alias_of is not None:
        return _section(context, key, value)
    if key.is_checked and key.rejects_wrong_values:
        return checked(context, key, value)
    rejects = key.rejects_wrong_values and context.holds(key.rejects_when) is not False
    return strict(key, value) if rejects else plain(context, key, value)


def _is_kept_section(context: Context, key: Key) -> bool:
    """Return whether "auto" stands for a whole section and nobody drops it; the other consumers refuse it by name."""
    section = key.is_section or key.alias_of is not None
    return section and not context.drops_auto(key) and context.consumer is Consumer.DEEPSPEED


def is_shadowed(context: Context, path: Path) -> bool:
    """Return whether a path lies in ``bfloat16`` while ``bf16`` is there, be it that the consumer adds it.

    DeepSpeed does not look at it then.
    """
    if not path or not isinstance(path[0], str) or context.root is None:
        return False
    key = context.known.key(path[0])
    if key is None or key.alias_of is None:
        return False
    if context.is_overwritten(f"{key.alias_of}.enabled"):
        return True
    other = context.root.get(key.alias_of)
    return other is not None and other.node is not None and other.node.value() is not None


def _section(context: Context, key: Key, value: object) -> Verdict | None:
    kinds = set(key.type)
    if not kinds.isdisjoint(kinds_of(value)):
        return None
    wanted = say("an object in braces") if "object" in kinds else say("a list")
    if key.path == "expert_parallel" and not value:
        return None
    if value in ("", []) and is_pydantic_1(context) and key.path.startswith(_MODELS_IN_MODELS):
        return None
    untouched = (
        not _is_opened(context, key) or "array" in kinds or (key.path == "timers" and isinstance(value, str | list))
    )
    if untouched or (key.path == "optimizer.params" and context.type_of("optimizer") is None):
        return Verdict(Kind.SECTION, Effect.IGNORED, wanted)
    return Verdict(Kind.SECTION, Effect.REJECTED, wanted)


def _is_opened(context: Context, key: Key) -> bool:
    return key.opened_when is not None and context.holds(key.opened_when) is not False
