"""DS970: a known bug of the release that the config meets."""

from __future__ import annotations

from collections.abc import Iterator

from dsmigrate.knowledge.bugs import Bug
from dsmigrate.languages import say
from dsmigrate.rules.context import Context
from dsmigrate.rules.known_bugs import avoiding, met, met_when_on
from dsmigrate.rules.model import Effect, Example, Finding, Severity
from dsmigrate.rules.registry import rule


@rule(
    "DS970",
    "known-bug",
    summary="A known bug of the DeepSpeed release that this config meets.",
    why="Each bug was found in the sources of the releases that have it and is gone in the next; "
    "`docs/known-bugs.md` lists them, `dsmigrate explain` with a bug's name tells all about one. An error stops "
    "training or falsifies it for every model; a warning takes something besides the config, such as a second "
    "parameter group, or costs time or memory. All bugs of a file are one finding, at the worst of them.",
    severity=Severity.WARNING,
    effect=Effect.RISKY,
    source=("schemas/deepspeed/known-bugs.toml",),
    training=True,
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
    """Yield one finding for all bugs, at the worst: another release is what helps against each of them."""
    order = [severity.value for severity in Severity]
    bugs = sorted(met(context), key=lambda bug: order.index(bug.severity))
    for path, possible in met_when_on(context).items() if not bugs else ():
        worst, *others = sorted(possible, key=lambda bug: order.index(bug.severity))
        yield context.finding(
            path,
            say("if `{path}` becomes true: {told}", path=path, told=_told(worst)),
            severity=Severity.WARNING,
            effect=Effect(worst.effect),
            related=[(_place(context, bug), _told(bug)) for bug in others],
        )
    if not bugs:
        return
    worst, *others = bugs
    more = say(
        "; {count} more known bug{en_s}: {bugs}",
        count=len(others),
        en_s="" if len(others) == 1 else "s",
        bugs=", ".join(f"`{bug.id}`" for bug in others),
    )
    yield context.finding(
        _place(context, worst),
        _told(worst) + (more if others else ""),
        severity=Severity(worst.severity),
        effect=Effect(worst.effect),
        related=[(_place(context, bug), _told(bug)) for bug in others],
        fixes=[avoiding(context, bug) for bug in bugs],
    )


def _place(context: Context, bug: Bug) -> str:
    """Return the first of its keys that the file gives."""
    return next((key for key in bug.keys if context.has(key)), bug.keys[0])


def _told(bug: Bug) -> str:
    if bug.cure:
        return say("{what}; {cure} (known bug `{bug}`)", what=bug.said, cure=bug.cure, bug=bug.id)
    return say("{what} (known bug `{bug}`)", what=bug.said, bug=bug.id)
