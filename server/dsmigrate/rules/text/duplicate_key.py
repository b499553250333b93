"""DS002: a key that occurs twice in its object."""

from __future__ import annotations

from collections.abc import Iterator

from dsmigrate.document import Document, EditError, Member, Path, TextEdit
from dsmigrate.document.removing import remove
from dsmigrate.document.shapes import is_alike
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
        " Accelerate read the file with Python's `json`, which silently keeps the last value, and hand DeepSpeed"
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
    fixes = {first: _fix(context, keys) for first, keys in _equal(context.document).items() if keys}
    for pair in context.document.duplicates:
        line = context.document.position(pair.first.start).line + 1
        effect = (
            say("{consumer} silently keeps the last value and drops the others", consumer=context.consumer.title)
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
            fixes=[fixes[pair.first.start]] if pair.first.start in fixes else [],
            related=[Related(pair.first.start, pair.first.end, say("the first one"))],
        )


_Found = list[tuple[Path, Member]]


def _equal(document: Document) -> dict[int, _Found]:
    """Return the members of equal keys in one object, by the offset of the first; none of those too deep to be read."""
    firsts: dict[int, int] = {}
    for pair in document.duplicates:
        firsts |= {pair.first.start: pair.first.start, pair.again.start: pair.first.start}
    found: dict[int, _Found] = {first: [] for first in firsts.values()}
    for path, member, _ in document.walk() if firsts else ():
        if member is not None and member.key is not None and member.key.start in firsts:
            found[firsts[member.key.start]].append((path, member))
    return found


def _fix(context: Context, found: _Found) -> Fix:
    """Return the removal of all occurrences but the last, which leaves what Python's ``json`` reads."""
    path, last = found[-1]
    same = last.node is not None and all(
        member.node is not None and is_alike(member.node.shape, last.node.shape) for _, member in found
    )
    name = str(last.name)
    title = (
        say("Keep one `{again_name}`", again_name=name)
        if same
        else say("Keep the last `{again_name}`", again_name=name)
    )
    former = [member for _, member in found[:-1]]

    def edits() -> tuple[TextEdit, ...]:
        try:
            return remove(context.document, path, members=former)
        except EditError:
            return ()

    return Fix(title, edits, safe=same or context.consumer.reads_strict_json)
