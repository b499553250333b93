"""DS110: a key that an earlier release read, and that this one rejects."""

from __future__ import annotations

from collections.abc import Iterator

from dsmigrate.knowledge import Status
from dsmigrate.languages import say
from dsmigrate.rules.context import Context, shown
from dsmigrate.rules.model import Effect, Example, Finding, Severity
from dsmigrate.rules.registry import rule


@rule(
    "DS110",
    "removed-key",
    summary="A key that this release of DeepSpeed rejects, because the feature behind it is gone.",
    why=(
        "DeepSpeed 0.19.7 and 0.19.8 refuse a config that still holds one of these keys, also with `enabled: false`. "
        "Training does not start."
    ),
    severity=Severity.ERROR,
    effect=Effect.REJECTED,
    source=(
        "deepspeed/runtime/config.py:_reject_removed_config_keys",
        "https://github.com/deepspeedai/DeepSpeed/issues/8489",
    ),
    since="0.19.7",
    keys=("amp", "compression_training", "elasticity", "zero_optimization.mics_shard_size"),
    examples=(
        Example(
            """{
  "train_batch_size": 8,
  «"amp"»: {"enabled": false}
}
""",
            fixed="""{
  "train_batch_size": 8
}
""",
        ),
        Example(
            """{
  "train_batch_size": 8,
  "zero_optimization": {"stage": 3, «"mics_shard_size"»: 4}
}
""",
            fixed="""{
  "train_batch_size": 8,
  "zero_optimization": {"stage": 3}
}
""",
        ),
        Example('{"train_batch_size": 8, "amp": {"enabled": false}}', version="0.19.7", accepted=None),
    ),
)
def check(context: Context) -> Iterator[Finding]:
    """Yield a finding for each removed key that is not inside a removed section."""
    for entry in context.entries:
        key = entry.key
        if key is None or key.status is not Status.REJECTED or key.until is None:
            continue
        around = context.known.key(entry.path[:-1])
        if around is not None and around.status is Status.REJECTED:
            continue  # told once, at the section
        instead = say("; use {map} instead", map=say(" or ").join(map(shown, key.successors))) if key.successors else ""
        yield context.finding(
            entry,
            say(
                "DeepSpeed {until} and later reject a config that holds {path}{instead}",
                until=key.until,
                path=shown(entry.path),
                instead=instead,
            ),
            part="key",
            fixes=[context.remove(entry, say("Remove {path}", path=shown(entry.path)), safe=True)],
        )
