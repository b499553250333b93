"""DS023: a string without quotes that took what follows it."""

from __future__ import annotations

from collections.abc import Iterator

from dsmigrate.document import Style, TextEdit, parse
from dsmigrate.document.spelling import spell_string
from dsmigrate.knowledge import Consumer
from dsmigrate.languages import say
from dsmigrate.rules.context import Context, shown
from dsmigrate.rules.model import Effect, Example, Finding, Fix, Severity
from dsmigrate.rules.registry import rule
from dsmigrate.rules.text._shared import Meant, strings, without_tail
from dsmigrate.rules.types._shared import judge
from dsmigrate.rules.types._values import shown_value


@rule(
    "DS023",
    "swallowed-comma",
    summary="A string without quotes that takes the comma, the comment or the bracket behind it with it.",
    why=(
        "A string without quotes ends where its line ends, and nowhere before: `device: cpu,` is the string `cpu,`, and"
        " `device: cpu # fast` holds the comment."
    ),
    severity=Severity.WARNING,
    effect=Effect.MISREAD,
    source=("deepspeed/runtime/config.py:DeepSpeedConfig",),
    consumers=(Consumer.DEEPSPEED,),
    examples=(
        Example(
            "{\n  train_batch_size: 8\n  zero_optimization: {\n    offload_param: {\n      device: «cpu,»\n    }\n "
            " }\n}\n",
            fixed=(
                '{\n  train_batch_size: 8\n  zero_optimization: {\n    offload_param: {\n      device: "cpu",\n    }\n '
                " }\n}\n"
            ),
        ),
        Example(
            "{\n  train_batch_size: 8\n  wandb: {\n    project: «run # the second»\n  }\n}\n",
            fixed='{\n  train_batch_size: 8\n  wandb: {\n    project: "run" # the second\n  }\n}\n',
        ),
        Example("{\n  train_batch_size: 8, # per step\n  wandb: {\n    project: run\n  }\n}\n"),
    ),
)
def check(context: Context) -> Iterator[Finding]:
    """Yield a finding for each such string."""
    for entry, node in strings(context, Meant.RUNS_ON):
        raw = node.raw
        word = without_tail(raw)
        value = parse(f"[{word}\n]").node_at((0,))
        plain = value is not None and getattr(value, "style", None) in {Style.NUMBER, Style.LITERAL}
        new = word if plain else spell_string(word)
        verdict = judge(context, entry)
        needs = say(", where {wanted} belongs", wanted=verdict.wanted) if verdict is not None else ""
        sensible = plain or entry.key is None or "string" in entry.key.type
        fix = Fix(say("Write `{new}`", new=new), (TextEdit(node.start, node.start + len(word), new),), safe=False)
        yield context.finding(
            entry,
            say(
                "without quotes {path} takes the rest of its line: {value}{needs}",
                path=shown(entry.path),
                value=shown_value(node.value()),
                needs=needs,
            ),
            severity=None if verdict is None else verdict.severity,
            effect=None if verdict is None else verdict.effect,
            fixes=[fix] if sensible else [],
        )
