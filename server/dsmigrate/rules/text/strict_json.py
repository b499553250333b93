"""DS010: Hjson that DeepSpeed reads and a reader of strict JSON refuses."""

from __future__ import annotations

import re
from collections.abc import Iterator

from dsmigrate.document import Breaks, Code, Key, Problem, Scalar, TextEdit
from dsmigrate.document.spelling import spell_string
from dsmigrate.knowledge import Consumer
from dsmigrate.languages import say
from dsmigrate.rules.context import Context
from dsmigrate.rules.model import Effect, Example, Facts, Finding, Fix, Severity
from dsmigrate.rules.registry import rule
from dsmigrate.rules.text._places import at
from dsmigrate.rules.text._shared import Meant, meant, strings

_NOT_STRICT = re.compile(
    r"(?:, and|:)? not strict JSON$|, which strict JSON refuses$|: strict JSON has none$"
    r"|(?:：|，并且)不是严格 JSON$|，严格 JSON 会拒绝$|：严格 JSON 没有注释$"
)
"""How messages about strict JSON end, in every language there is."""
_HARMLESS = frozenset({Code.CONSTANT, Code.EMPTY})
"""What Python's json takes after all, and what another rule tells."""


@rule(
    "DS010",
    "not-strict-json",
    summary="Legal Hjson, such as a comment or a trailing comma, that Transformers and Accelerate do not read.",
    why=(
        "DeepSpeed itself reads Hjson. Transformers, Accelerate and Lightning open the same file with Python's "
        "`json`, and stop with a `JSONDecodeError`, or with the misleading `Expected a string path to an existing "
        "deepspeed config` when the text is handed over as a string."
    ),
    severity=Severity.ERROR,
    effect=Effect.REJECTED,
    source=("accelerate/utils/deepspeed.py:HfDeepSpeedConfig",),
    examples=(
        Example(
            '{\n  "zero_optimization": {},\n  "train_batch_size": 8«,»\n}\n',
            fixed='{\n  "zero_optimization": {},\n  "train_batch_size": 8\n}\n',
            consumer=Consumer.TRANSFORMERS,
        ),
        Example(
            '{\n  «train_batch_size»: 8, «# per step»\n  "zero_optimization": {}\n}\n',
            fixed='{\n  "train_batch_size": 8,\n  "zero_optimization": {}\n}\n',
            consumer=Consumer.ACCELERATE,
        ),
        Example(
            '{\n  "train_batch_size": 8,\n  "zero_optimization": {},\n  "wandb": {«\'project\'»: «\'run\'»}\n}\n',
            fixed='{\n  "train_batch_size": 8,\n  "zero_optimization": {},\n  "wandb": {"project": "run"}\n}\n',
            consumer=Consumer.TRANSFORMERS,
        ),
        Example(
            '{\n  "zero_optimization": {\n    "offload_param": {\n      "device": «cpu»\n    }\n  },\n '
            ' "train_batch_size": 8\n}\n',
            fixed=(
                '{\n  "zero_optimization": {\n    "offload_param": {\n      "device": "cpu"\n    }\n  },\n'
                '  "train_batch_size": 8\n}\n'
            ),
            consumer=Consumer.TRANSFORMERS,
        ),
        Example(
            '{"train_batch_size": 8«»\n"zero_optimization": {}}',
            fixed='{"train_batch_size": 8,\n"zero_optimization": {}}',
            consumer=Consumer.TRANSFORMERS,
        ),
        Example(
            '{\n  "train_batch_size": 8«,»\n}\n',
            fixed='{\n  "train_batch_size": 8\n}\n',
            facts=Facts(lightning=True),
            accepted=None,  # DeepSpeed reads it; Lightning does not
        ),
        Example('{\n  "train_batch_size": 8, # DeepSpeed reads this\n}\n'),
    ),
)
def check(context: Context) -> Iterator[Finding]:
    """Yield a finding for each place that strict JSON does not have."""
    if context.consumer is Consumer.DEEPSPEED and not context.facts.lightning:
        return
    title = say("Lightning") if context.facts.lightning else context.consumer.title
    for problem in context.document.problems:
        if problem.breaks is Breaks.JSON and problem.code not in _HARMLESS and not _is_placeholder(context, problem):
            yield at(
                context,
                problem.start,
                problem.end,
                say("{what}; {consumer} does not read the file", what=_what(problem), consumer=title),
                fixes=_fixes(context, problem),
            )


def _what(problem: Problem) -> str:
    return _NOT_STRICT.sub("", problem.message)


def _fixes(context: Context, problem: Problem) -> Iterator[Fix]:
    text, start, end = context.document.text, problem.start, problem.end
    raw = text[start:end]
    if problem.code is Code.TRAILING_COMMA:
        yield Fix(say("Remove the comma"), (TextEdit(start, end, ""),), safe=True)
    elif problem.code is Code.MISSING_COMMA and not _swallows(context, start):
        yield Fix(say("Add a comma"), (TextEdit(start, end, ","),), safe=True)
    elif problem.code is Code.BYTE_ORDER_MARK:
        yield Fix(say("Remove the byte-order mark"), (TextEdit(start, end, ""),), safe=True)
    elif problem.code is Code.UNQUOTED_KEY:
        yield Fix(say("Quote the key"), (TextEdit(start, end, spell_string(raw)),), safe=True)
    elif problem.code in {Code.SINGLE_QUOTES, Code.MULTILINE_STRING}:
        value = _string(context, start)
        if value is not None:
            yield Fix(say("Write it in double quotes"), (TextEdit(start, end, spell_string(value)),), safe=True)
    elif problem.code is Code.QUOTELESS_STRING and _is_plain_word(context, start):
        yield Fix(say("Quote the string"), (TextEdit(start, end, spell_string(raw)),), safe=True)
    elif problem.code is Code.NO_BRACES and context.root is not None:
        root = context.root
        edits = (
            TextEdit(root.start, root.start, "{" + context.document.newline),
            TextEdit(root.end, root.end, context.document.newline + "}"),
        )
        yield Fix(say("Put the config in braces"), edits, safe=True)
    elif problem.code is Code.COMMENT:
        yield Fix(say("Remove the comment"), (_comment(text, start, end),), safe=False)


def _is_placeholder(context: Context, problem: Problem) -> bool:
    """Return whether a problem is only that a placeholder, which another rule tells of, took the comma behind it."""
    if problem.code not in {Code.QUOTELESS_STRING, Code.MISSING_COMMA}:
        return False
    places = context.once(_is_placeholder, lambda: [node for _, node in strings(context, Meant.PLACEHOLDER)])
    return any(problem.start in {node.start, node.end} for node in places)


def _is_plain_word(context: Context, start: int) -> bool:
    """Return whether the string without quotes at an offset is meant as one."""
    found = context.once("scalars by place", lambda: _scalars(context)).get(start)
    return isinstance(found, Scalar) and meant(found) is None


def _swallows(context: Context, end: int) -> bool:
    """Return whether a value without quotes ends at an offset: a comma there would become a part of it."""
    ends = context.once("ends of values without quotes", lambda: _quoteless_ends(context))
    return end in ends


def _quoteless_ends(context: Context) -> frozenset[int]:
    codes = {Code.QUOTELESS_STRING, Code.CONSTANT}
    return frozenset(problem.end for problem in context.document.problems if problem.code in codes)


def _string(context: Context, start: int) -> str | None:
    """Return the string, or the key, that starts at an offset."""
    found = context.once("scalars by place", lambda: _scalars(context)).get(start)
    if isinstance(found, Key):
        return found.name
    value = None if found is None else found.value()
    return value if isinstance(value, str) else None


def _scalars(context: Context) -> dict[int, Scalar | Key]:
    """Return the scalars and the keys of a document by where they start."""
    found: dict[int, Scalar | Key] = {}
    for _, member, node in context.document.walk():
        if member is not None and member.key is not None:
            found[member.key.start] = member.key
        if isinstance(node, Scalar):
            found[node.start] = node
    return found


def _comment(text: str, start: int, end: int) -> TextEdit:
    """Return the edit that takes out a comment, with its line when it has one for itself."""
    before = len(text[:start].rstrip(" \t"))
    alone = before == 0 or text[before - 1] in "\r\n"
    line_end = end + len(text[end:]) - len(text[end:].lstrip(" \t"))
    ends = line_end == len(text) or text[line_end] in "\r\n"
    if alone and ends:
        return TextEdit(before, min(len(text), line_end + (2 if text.startswith("\r\n", line_end) else 1)), "")
    return TextEdit(before if ends else start, end, "")
