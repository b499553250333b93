"""DS828: a launch line that ends before its arguments do."""

from __future__ import annotations

from collections.abc import Iterator

from dsmigrate.languages import say
from dsmigrate.rules.context import Context
from dsmigrate.rules.model import Arguments, Effect, Example, Facts, Finding, Severity
from dsmigrate.rules.registry import rule

_CONFIG = '{"train_batch_size": 8, "zero_optimization": {"stage": 2}}'


@rule(
    "DS828",
    "lost-arguments",
    summary="A launch line without a backslash at its end, whose arguments go on in the next line.",
    why="The shell takes the next line for a command of its own: the training starts without what stands there, and "
    "with the defaults instead. With `--bf16` there and bf16 in the config the Trainer stops over values that "
    "mismatch, though both seem to be given.",
    severity=Severity.WARNING,
    effect=Effect.DEFAULT,
    source=("https://github.com/hiyouga/LlamaFactory/issues/3224",),
    examples=(
        Example(
            "«{»" + _CONFIG[1:],
            facts=Facts(arguments=(Arguments("run.sh:1", {"learning_rate": "5e-5"}, lost="run.sh:9"),)),
        ),
        Example(_CONFIG, facts=Facts(arguments=(Arguments("run.sh:1", {"learning_rate": "5e-5"}),))),
    ),
)
def check(context: Context) -> Iterator[Finding]:
    """Yield a finding for each launch line with lost arguments."""
    for given in context.facts.arguments:
        if given.lost:
            yield context.finding(
                (),
                say(
                    "the launch does not get the arguments from `{lost}` on: the line before lacks its `\\`",
                    lost=given.lost,
                ),
            )
