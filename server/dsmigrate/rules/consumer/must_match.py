"""DS814: literal values that the Trainer compares with its own arguments."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from dsmigrate.document import Document, Path, TextEdit
from dsmigrate.document.edits import replace
from dsmigrate.knowledge import Consumer
from dsmigrate.languages import say
from dsmigrate.rules.consumer._shared import AUTO
from dsmigrate.rules.consumer._stated import stated
from dsmigrate.rules.context import Context, Entry, shown
from dsmigrate.rules.model import Arguments, Effect, Example, Facts, Finding, Fix, Severity
from dsmigrate.rules.registry import rule


@rule(
    "DS814",
    "literal-must-match",
    summary='Literal values that the Trainer compares with its arguments; "auto" takes them from there.',
    why="For each of these keys the Trainer compares the value of the file with the argument it belongs to, and "
    'raises "Please correct the following DeepSpeed config values that mismatch TrainingArguments values" if '
    'one differs. With `"auto"` there is one place to change. Told once for a file, at the first of its values. '
    "Where a launch line, a file of arguments, or a call gives the argument, the two are compared.",
    severity=Severity.INFO,
    effect=Effect.RISKY,
    source=("transformers/integrations/deepspeed.py:HfTrainerDeepSpeedConfig.fill_match",),
    consumers=(Consumer.TRANSFORMERS,),
    keys=("train_batch_size", "train_micro_batch_size_per_gpu", "gradient_accumulation_steps", "gradient_clipping"),
    pains=(31,),
    training=True,
    examples=(
        Example(
            """{
  "train_micro_batch_size_per_gpu": «4»,
  "gradient_clipping": 1.0,
  "zero_optimization": {"stage": 2},
  "optimizer": {"type": "AdamW", "params": {"lr": 5e-5}}
}
""",
            fixed="""{
  "train_micro_batch_size_per_gpu": "auto",
  "gradient_clipping": "auto",
  "zero_optimization": {"stage": 2},
  "optimizer": {"type": "AdamW", "params": {"lr": "auto"}}
}
""",
            consumer=Consumer.TRANSFORMERS,
        ),
        Example(
            """{
  "train_micro_batch_size_per_gpu": "auto",
  "zero_optimization": {"stage": 2, "reduce_bucket_size": 1000000},
  "scheduler": {"type": "WarmupLR", "params": {"warmup_min_lr": 0}}
}
""",
            consumer=Consumer.TRANSFORMERS,
        ),
        Example(
            '{"train_micro_batch_size_per_gpu": 4, "zero_optimization": {"stage": 2}}',
            consumer=Consumer.ACCELERATE,
        ),
        Example(
            '{"train_micro_batch_size_per_gpu": «2», "gradient_clipping": 1, "zero_optimization": {"stage": 2}}',
            fixed='{"train_micro_batch_size_per_gpu": "auto", "gradient_clipping": "auto", "zero_optimization": '
            '{"stage": 2}}',
            consumer=Consumer.TRANSFORMERS,
            facts=Facts(arguments=(Arguments("run.sh:3", {"per_device_train_batch_size": "4"}),)),
        ),
        Example(
            '{"train_micro_batch_size_per_gpu": 4, "zero_optimization": {"stage": 2}}',
            consumer=Consumer.TRANSFORMERS,
            facts=Facts(arguments=(Arguments("run.sh:3", {"per_device_train_batch_size": "4"}),)),
        ),
    ),
)
def check(context: Context) -> Iterator[Finding]:
    """Yield one finding, at the first literal value that differs from its argument, else that has to match one."""
    literals = [entry for entry in context.entries if _must_match(context, entry)]
    given = {entry.path: list(stated(context, context.known.canonical(entry.path))) for entry in literals}
    wrong = [
        (entry, one)
        for entry in literals
        for one in given[entry.path]
        if entry.node is not None and one.value != entry.node.value()
    ]
    if wrong:
        (first, one), *_ = wrong
        yield context.finding(
            first,
            say(
                '{path} differs from {said}: the Trainer stops; "auto" takes the value from there',
                path=shown(first.path),
                said=one.said,
            ),
            severity=Severity.ERROR,
            effect=Effect.REJECTED,
            related=[(entry, other.said) for entry, other in wrong[1:]],
            fixes=[_all_auto(context, literals)],
        )
        return
    literals = [entry for entry in literals if not given[entry.path] and not _is_usual(context, entry)]
    if not literals:
        return
    first, *others = literals
    auto = context.known.auto(first.path, context.consumer)
    assert auto is not None  # noqa: S101 - it must match
    more = say(", and {others} other values of this file theirs", others=len(others)) if others else ""
    yield context.finding(
        first,
        say(
            '{first_path} must equal {source}{more}, or the Trainer stops; "auto" takes the value from there',
            first_path=shown(first.path),
            source=auto.source,
            more=more,
        ),
        related=[
            (entry, other.source)
            for entry in others
            if (other := context.known.auto(entry.path, context.consumer)) is not None
        ],
        fixes=[_all_auto(context, literals)],
    )


def _all_auto(context: Context, literals: list[Entry]) -> Fix:
    title = say('Write "auto" for every value that has to match an argument')
    return context.fix_all(title, [_to_auto(entry.path) for entry in literals], safe=False)


def _to_auto(path: Path) -> Callable[[Document], tuple[TextEdit, ...]]:
    return lambda document: replace(document, path, AUTO)


def _must_match(context: Context, entry: Entry) -> bool:
    if entry.node is None or entry.node.value() in (AUTO, None):
        return False
    auto = context.known.auto(entry.path, context.consumer)
    return auto is not None and auto.must_match


def _is_usual(context: Context, entry: Entry) -> bool:
    """Return whether arguments are known, and a value is what counts where they leave it out."""
    auto = context.known.auto(entry.path, context.consumer)
    usual = auto is not None and entry.node is not None and auto.usual == entry.node.value()
    return bool(context.facts.arguments) and usual
