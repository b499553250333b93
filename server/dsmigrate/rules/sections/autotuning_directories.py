"""DS934: directories of the autotuner that are empty, or that it would delete with all they hold."""

from __future__ import annotations

import posixpath
from collections.abc import Iterator

from dsmigrate.knowledge import MISSING
from dsmigrate.languages import say
from dsmigrate.rules.context import Context, shown
from dsmigrate.rules.model import Effect, Example, Finding, Severity
from dsmigrate.rules.registry import rule


@rule(
    "DS934",
    "autotuning-directories",
    summary="A directory of the autotuner that is empty text, or one it would delete with more than its own files.",
    why="Reading the config asserts that `results_dir` and `exps_dir` are not empty, in ordinary runs too. With "
    "`overwrite`, the default, the launcher deletes both directories recursively before it starts, whatever "
    "else lies in them.",
    severity=Severity.ERROR,
    effect=Effect.REJECTED,
    source=("deepspeed/autotuning/config.py:DeepSpeedAutotuningConfig", "deepspeed/autotuning/autotuner.py:Autotuner"),
    keys=("autotuning.results_dir", "autotuning.exps_dir", "autotuning.overwrite"),
    examples=(
        Example(
            '{"train_batch_size": 8, "autotuning": {"exps_dir": «""», "results_dir": «null»}}',
            fixed='{"train_batch_size": 8, "autotuning": {}}',
        ),
        Example('{"train_batch_size": 8, "autotuning": {"results_dir": «"./"»}}'),
        Example('{"train_batch_size": 8, "autotuning": {"results_dir": ".", "overwrite": false}}'),
        Example('{"train_batch_size": 8, "autotuning": {"results_dir": "./tuning"}}'),
    ),
)
def check(context: Context) -> Iterator[Finding]:
    """Yield a finding for each directory that is empty or dangerous."""
    for name in ("results_dir", "exps_dir"):
        path = f"autotuning.{name}"
        value = context.raw(path)
        if value is MISSING:
            continue
        if not value:
            yield context.finding(
                path,
                say("{path} must not be empty: an assertion fails when the config is read", path=shown(path)),
                fixes=[context.remove(path, say("Remove {path} and take its default", path=shown(path)), safe=True)],
            )
        elif (
            isinstance(value, str)
            and context.is_on("autotuning.overwrite")
            and posixpath.normpath(value) in {".", "..", "/", "~"}
        ):
            yield context.finding(
                path,
                say(
                    'The autotuner deletes "{value}" with all it holds before it starts; give it a directory of its '
                    "own",
                    value=value,
                ),
                severity=Severity.WARNING,
                effect=Effect.RISKY,
            )
