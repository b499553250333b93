"""DS970: a known bug of the release that the config meets."""

from __future__ import annotations

from collections.abc import Iterator

from dsmigrate.languages import say
from dsmigrate.rules.context import Context
from dsmigrate.rules.known_bugs import avoiding, met
from dsmigrate.rules.model import Effect, Example, Finding, Severity
from dsmigrate.rules.registry import rule


@rule(
    "DS970",
    "known-bug",
    summary="A known bug of the DeepSpeed release that this config meets.",
    why="Each bug was found in the sources of the releases that have it and is gone in the next; "
    "`docs/known-bugs.md` lists them, `dsmigrate explain` with a bug's name tells all about one. An error stops "
    "training or falsifies it for every model; a warning takes something besides the config, such as a second "
    "parameter group, or costs time or memory.",
    severity=Severity.WARNING,
    effect=Effect.RISKY,
    source=("schemas/deepspeed/known-bugs.toml",),
    examples=(
        Example(
            '{"train_batch_size": 8, "flops_profiler": {"enabled": «true»}}\n',
            version="0.13.2",
            accepted=None,  # the judge is the newest release
        ),
        Example(
            '{"train_batch_size": 8, "zero_optimization": {"stage": 3, '
            '"stage3_use_all_reduce_for_fetch_params": «true»}}\n',
            fixed='{"train_batch_size": 8, "zero_optimization": {"stage": 3, '
            '"stage3_use_all_reduce_for_fetch_params": false}}\n',
            version="0.19.3",
            accepted=None,  # as above
        ),
        Example('{"train_batch_size": 8, "flops_profiler": {"enabled": true}}\n', version="0.13.3"),
    ),
)
def check(context: Context) -> Iterator[Finding]:
    """Yield a finding for each bug, at the first of its keys that the file gives."""
    for bug in met(context):
        cure = bug.cure
        yield context.finding(
            next((key for key in bug.keys if context.has(key)), bug.keys[0]),
            say("{what}; {cure} (known bug `{bug}`)", what=bug.said, cure=cure, bug=bug.id)
            if cure
            else say("{what} (known bug `{bug}`)", what=bug.said, bug=bug.id),
            severity=Severity(bug.severity),
            effect=Effect(bug.effect),
            fixes=[avoiding(context, bug)],
        )
