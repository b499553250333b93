"""DS002: a key that occurs twice in its object."""

from __future__ import annotations

from collections.abc import Iterator

from dsmigrate.document import EditError, Key, TextEdit
from dsmigrate.document.removing import remove
from dsmigrate.knowledge import Consumer
from dsmigrate.languages import say
from dsmigrate.rules.context import Context
from dsmigrate.rules.model import Effect, Example, Finding, Fix, Related, Severity
from dsmigrate.rules.registry import rule
from dsmigrate.rules.text._places import at


@rule(
    "DS002",
    "duplicate-key",
    summary="A key occurs twice in one object: DeepSpeed rejects the file, other readers keep the last value.",
    why=(
        "DeepSpeed's loader raises `ValueError: Duplicate keys in DeepSpeed config` at any depth. Transformers and"
        " Accelerate read the file with Python's `json`, which keeps the last value without a word, and hand DeepSpeed"
        " a dictionary, where no duplicate is left to see."
    ),
    severity=Severity.ERROR,
    effect=Effect.REJECTED,
    source=("deepspeed/runtime/config_utils.py:dict_raise_error_on_duplicate_keys",),
    examples=(
        Example('{"train_batch_size": 8, «"train_batch_size"»: 8}', fixed='{"train_batch_size": 8}'),
        Example(
            """{
  "train_batch_size": 8,
  "zero_optimization": {
    "stage": 2,
    «"stage"»: 3
  }
}
""",
            fixed="""{
  "train_batch_size": 8,
  "zero_optimization": {
    "stage": 3
  }
}
""",
        ),
        Example(
            '{"train_batch_size": 8, «"train_batch_size"»: 8, "zero_optimization": {}}',
            fixed='{"train_batch_size": 8, "zero_optimization": {}}',
            consumer=Consumer.TRANSFORMERS,
        ),
        Example('{"train_batch_size": 8, "fp16": {"enabled": false}, "bf16": {"enabled": true}}'),
    ),
)
def check(context: Context) -> Iterator[Finding]:
    """Yield a finding at each later occurrence of a key, with the first one related."""
    strict = context.consumer.reads_strict_json
    for pair in context.document.duplicates:
        line = context.document.position(pair.first.start).line + 1
        effect = (
            say("{consumer} keeps the last value and drops the others without a word", consumer=context.consumer.title)
            if strict
            else say("DeepSpeed rejects the file")
        )
        yield at(
            context,
            pair.again.start,
            pair.again.end,
            say(
                "`{again_name}` stands in line {line} already; {effect}",
                again_name=pair.again.name,
                line=line,
                effect=effect,
            ),
            severity=Severity.WARNING if strict else None,
            effect=Effect.OVERRIDDEN if strict else None,
            fixes=_fixes(context, pair.first, pair.again),
            related=[Related(pair.first.start, pair.first.end, say("the first one"))],
        )


def _fixes(context: Context, first: Key, again: Key) -> Iterator[Fix]:
    """Yield the removal of the first occurrence, which leaves what Python's ``json`` reads."""
    edits = _removal(context, first)
    if edits:
        same = _values(context, first, again)
        title = (
            say("Keep one `{again_name}`", again_name=again.name)
            if same
            else say("Keep the last `{again_name}`", again_name=again.name)
        )
        yield Fix(title, edits, safe=same or context.consumer.reads_strict_json)


def _removal(context: Context, key: Key) -> tuple[TextEdit, ...]:
    for path, member, _ in context.document.walk():
        if member is not None and member.key is not None and member.key.start == key.start:
            try:
                return remove(context.document, path, member=member)
            except EditError:
                return ()
    return ()


def _values(context: Context, first: Key, again: Key) -> bool:
    values = [
        member.node.value()
        for _, member, _ in context.document.walk()
        if member is not None and member.node is not None and member.start in {first.start, again.start}
    ]
    return len(values) == 2 and values[0] == values[1] and type(values[0]) is type(values[1])
