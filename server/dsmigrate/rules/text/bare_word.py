"""DS021: a number or a literal that Hjson reads as a string."""

from __future__ import annotations

import re
from collections.abc import Iterator

from dsmigrate.document import Scalar
from dsmigrate.document.edits import Spelling
from dsmigrate.knowledge import Consumer
from dsmigrate.languages import say
from dsmigrate.rules.context import Context, Entry, shown
from dsmigrate.rules.model import Effect, Example, Finding, Fix, Severity
from dsmigrate.rules.registry import rule
from dsmigrate.rules.text._shared import LITERALS, Meant, is_explained, strings
from dsmigrate.rules.types._shared import judge
from dsmigrate.rules.types._values import shown_value

_SPELLINGS = (
    (re.compile(r"[+]?(\d[\d_]*(?:\.\d+)?(?:[eE][-+]?\d+)?)"), r"\1"),
    (re.compile(r"[+]?\.(\d+(?:[eE][-+]?\d+)?)"), r"0.\1"),
    (re.compile(r"-\.(\d+(?:[eE][-+]?\d+)?)"), r"-0.\1"),
    (re.compile(r"[+]?(\d+)\.((?:[eE][-+]?\d+)?)"), r"\1.0\2"),
)


@rule(
    "DS021",
    "string-without-quotes",
    summary="A number or a literal that Hjson does not know, and reads as a string: `True`, `.5`, `1_000`, `None`.",
    why=(
        "Without quotes everything that is no JSON number, `true`, `false` or `null` is a string for Hjson. Where"
        " DeepSpeed checks the value some of these pass (`True` for a switch), others are rejected; where it does not,"
        " `False` counts as true, being a string."
    ),
    severity=Severity.WARNING,
    effect=Effect.MISREAD,
    source=("deepspeed/runtime/config.py:DeepSpeedConfig",),
    consumers=(Consumer.DEEPSPEED,),
    examples=(
        Example(
            '{\n  "train_batch_size": 8,\n  "prescale_gradients": «False»\n}\n',
            fixed='{\n  "train_batch_size": 8,\n  "prescale_gradients": false\n}\n',
        ),
        Example('{\n  "train_batch_size": «1_024»\n}\n', fixed='{\n  "train_batch_size": 1024\n}\n'),
        Example(
            '{\n  "train_batch_size": 8,\n  "gradient_clipping": «.5»\n}\n',
            fixed='{\n  "train_batch_size": 8,\n  "gradient_clipping": 0.5\n}\n',
        ),
        Example('{\n  "train_batch_size": «8*4»\n}\n', accepted=False),
        Example(
            "{\n  train_batch_size: 8\n  zero_optimization: {\n    offload_param: {\n      device: cpu\n    }\n  }\n}\n"
        ),
    ),
)
def check(context: Context) -> Iterator[Finding]:
    """Yield a finding for each such string."""
    for wanted in (Meant.LITERAL, Meant.NUMBER):
        for entry, node in strings(context, wanted):
            if not is_explained(context, entry.key, node):
                continue
            verdict = judge(context, entry)
            what = say("number") if wanted is Meant.NUMBER else say("literal")
            yield context.finding(
                entry,
                say(
                    "Hjson knows no {what} {replace} and reads it as a string",
                    what=what,
                    replace=shown_value(node.value()).replace(chr(34), ""),
                )
                + (
                    say("; {path} has to be {wanted}", path=shown(entry.path), wanted=verdict.wanted)
                    if verdict is not None
                    else ""
                ),
                severity=None if verdict is None else verdict.severity,
                effect=None if verdict is None else verdict.effect,
                fixes=[_fix(context, entry, node, refused=verdict is not None and verdict.severity is Severity.ERROR)],
            )


def _fix(context: Context, entry: Entry, node: Scalar, *, refused: bool) -> Fix | None:
    word = str(node.value())
    if word.lower() in LITERALS:
        value = LITERALS[word.lower()]
        text = {True: "true", False: "false", None: "null"}[value]
        return context.replace(entry, value, say("Write `{text}`", text=text), safe=refused or value is True)
    for pattern, spelling in _SPELLINGS:
        if pattern.fullmatch(word):
            text = pattern.sub(spelling, word).replace("_", "")
            return context.replace(entry, Spelling(text), say("Write `{text}`", text=text), safe=refused)
    return None
