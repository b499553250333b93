"""DS001: text that DeepSpeed's loader does not read."""

from __future__ import annotations

from collections.abc import Iterator

from dsmigrate.document import Breaks, Code
from dsmigrate.document.problems import CRASHES, Problem
from dsmigrate.languages import say
from dsmigrate.rules.context import Context
from dsmigrate.rules.model import Effect, Example, Finding, Severity
from dsmigrate.rules.registry import rule
from dsmigrate.rules.text._places import at


@rule(
    "DS001",
    "syntax-error",
    summary="Text that the loader of the config refuses.",
    why=(
        "DeepSpeed reads the file with Hjson, which takes more than JSON: comments, keys without quotes, trailing"
        " commas. What it does not take raises `HjsonDecodeError`, often with a line far from the mistake; some texts"
        " make it crash with `OverflowError`, `RecursionError` or `IndexError` instead. Transformers and Accelerate"
        " read strict JSON, and stop with a `JSONDecodeError`."
    ),
    severity=Severity.ERROR,
    effect=Effect.REJECTED,
    source=("deepspeed/runtime/config.py:DeepSpeedConfig", "accelerate/utils/deepspeed.py:HfDeepSpeedConfig"),
    examples=(
        Example('«{»"train_batch_size": 8, "fp16": {"enabled": true}', accepted=False),
        Example('{«"train_batch_size"» 8}', accepted=False),
        Example('{\n  "train_batch_size": 8,\n  "steps_per_print": «1e999»\n}', accepted=False),
        Example("{\n  train_batch_size: 8 # without quotes, with a comment\n  steps_per_print: 10,\n}"),
    ),
)
def check(context: Context) -> Iterator[Finding]:
    """Yield a finding for each place where reading stops."""
    for problem in context.document.problems:
        if problem.is_fatal and problem.code is not Code.DUPLICATE_KEY:
            yield at(context, problem.start, problem.end, _message(problem))


def _message(problem: Problem) -> str:
    if problem.code is Code.TOO_DEEP or "DeepSpeed" in problem.message:
        return problem.message
    if problem.code in CRASHES and Breaks.JSON in problem.breaks:
        return say("{message}; DeepSpeed's loader crashes on it without naming the line", message=problem.message)
    return problem.message
