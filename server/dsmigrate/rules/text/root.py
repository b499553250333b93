"""DS003: a file whose root is no object, or that is empty."""

from __future__ import annotations

from collections.abc import Iterator

from dsmigrate.document import Object, TextEdit
from dsmigrate.knowledge import Consumer
from dsmigrate.languages import say
from dsmigrate.rules.context import Context
from dsmigrate.rules.model import Effect, Example, Finding, Fix, Severity
from dsmigrate.rules.registry import rule
from dsmigrate.rules.text._places import at


@rule(
    "DS003",
    "root-not-an-object",
    summary="The root of the config is a list, a single value, or nothing at all, where an object belongs.",
    why=(
        "DeepSpeed asks the root for keys without a look at its type: a list or a string ends in `AttributeError`, a "
        "number in `TypeError`, and an empty file in the assertion that a batch size is missing. Strict JSON readers "
        "refuse an empty file."
    ),
    severity=Severity.ERROR,
    effect=Effect.REJECTED,
    source=("deepspeed/runtime/config.py:_reject_removed_config_keys",),
    examples=(
        Example('«[{"train_batch_size": 8}]»', fixed='{"train_batch_size": 8}'),
        Example('«"train_batch_size"»', accepted=False),
        Example("# nothing yet\n«»", accepted=False),
        Example("«»", consumer=Consumer.TRANSFORMERS, accepted=False),
        Example("train_batch_size: 8\n"),
    ),
)
def check(context: Context) -> Iterator[Finding]:
    """Yield one finding for a root that is no object."""
    document = context.document
    root = document.root
    if root is None:
        if document.is_readable:
            end = len(document.text)
            what = say("the config is empty; DeepSpeed needs at least a batch size")
            if context.consumer.reads_strict_json:
                what = say(
                    "the config is empty, which {consumer} does not read; write an object in braces",
                    consumer=context.consumer.title,
                )
            yield at(context, end, end, what)
    elif not isinstance(root, Object):
        kind = say("a list") if isinstance(root.value(), list) else say("a single value")
        yield at(
            context,
            root.start,
            root.end,
            say("the config is {kind}; DeepSpeed needs an object with keys", kind=kind),
            fixes=_unpacked(context),
        )


def _unpacked(context: Context) -> list[Fix]:
    """Return the fix that takes the only object out of its list."""
    root, item = context.document.root, context.document.node_at((0,))
    if root is None or not isinstance(item, Object) or len(root.raw) == 0 or context.document.node_at((1,)) is not None:
        return []
    edits = (TextEdit(root.start, item.start, ""), TextEdit(item.end, root.end, ""))
    return [Fix(say("Take the object out of the list"), edits, safe=False)]
