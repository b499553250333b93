"""DS101: a key that DeepSpeed does not know, in the section it was meant for."""

from __future__ import annotations

from collections.abc import Iterator

from dsmigrate.languages import say
from dsmigrate.rules.context import Context, Entry, shown
from dsmigrate.rules.keys._shared import Guess, Slip, guesses, is_comment, refuses, unknown
from dsmigrate.rules.model import Effect, Example, Finding, Fix, Severity
from dsmigrate.rules.registry import rule


@rule(
    "DS101",
    "unknown-key",
    summary="A key that DeepSpeed does not know: rejected in some sections, silently ignored in others.",
    why=(
        "Sections that are pydantic models (`zero_optimization`, `fp16`, `bf16` …) raise a `ValidationError` for a key"
        " they do not have, without a suggestion. The top level and the sections that are read key by key (`optimizer`,"
        " `aio`, `flops_profiler` …) never look at it, and the default of the key that was meant applies."
    ),
    severity=Severity.WARNING,
    effect=Effect.IGNORED,
    source=(
        "deepspeed/runtime/config_utils.py:DeepSpeedConfigModel",
        "deepspeed/runtime/config_utils.py:get_scalar_param",
    ),
    pains=(15, 44),
    examples=(
        Example(
            '{"train_batch_size": 8, «"zero_optimisation"»: {"stage": 0}}',
            fixed='{"train_batch_size": 8, "zero_optimization": {"stage": 0}}',
        ),
        Example(
            '{"train_batch_size": 8, "zero_optimization": {"stage": 1}, «"bp16"»: {"enabled": true}}',
            fixed='{"train_batch_size": 8, "zero_optimization": {"stage": 1}, "bf16": {"enabled": true}}',
        ),
        Example(
            '{"train_batch_size": 8, "zero_optimization": {"stage": 1}, «"bf_16"»: {"enabled": true}}',
            fixed='{"train_batch_size": 8, "zero_optimization": {"stage": 1}, "bf16": {"enabled": true}}',
        ),
        Example(
            '{"train_batch_size": 8, "zero_optimization": {"stage": 2, «"comm_overlap"»: true}}',
            fixed='{"train_batch_size": 8, "zero_optimization": {"stage": 2, "overlap_comm": true}}',
        ),
        Example(
            '{"train_batch_size": 8, "zero_optimization": {"stage": 2, «"paro_strategy"»: "NIG"}}',
            fixed='{"train_batch_size": 8, "zero_optimization": {"stage": 2}}',
        ),
        Example('{"train_batch_size": 8, "flops_profiler": {"enabled": false, «"warm_up"»: 3}}'),
        Example('{"train_batch_size": 8, "zero_optimization": {"stage": 3, "prefetch_bucket_size": 5e7}}'),
        Example(
            """{
  "train_batch_size": 8,
  "data_efficiency": {
    "data_sampling": {
      "curriculum_learning": {
        "curriculum_metrics": {"vocabrarity": {"difficulty_type": "value", «"shedule_type"»: "fixed_linear"}}
      }
    }
  }
}
""",
            fixed="""{
  "train_batch_size": 8,
  "data_efficiency": {
    "data_sampling": {
      "curriculum_learning": {
        "curriculum_metrics": {"vocabrarity": {"difficulty_type": "value", "schedule_type": "fixed_linear"}}
      }
    }
  }
}
""",
        ),
        Example(
            '{"train_batch_size": 8, «"max_grad_norm"»: 1.0}', fixed='{"train_batch_size": 8, "gradient_clipping": 1.0}'
        ),
        Example('{"train_batch_size": 8, "_comment": "tuned by hand"}'),
    ),
)
def check(context: Context) -> Iterator[Finding]:
    """Yield a finding for each unknown key that no other rule explains."""
    for entry, section in unknown(context):
        refused = refuses(context, section, entry)
        if is_comment(entry.name):
            continue
        found = guesses(context, entry, section)
        if found and found[0].slip in {Slip.PLACE, Slip.BOTH, Slip.VALUE}:
            continue
        if not section and (not found or found[0].slip is Slip.PART):
            continue
        yield context.finding(
            entry,
            message(context, entry, section, found),
            part="key",
            severity=Severity.ERROR if refused else None,
            effect=Effect.REJECTED if refused else None,
            fixes=_fixes(context, entry, found, refused=refused),
        )


def message(context: Context, entry: Entry, section: str, found: list[Guess]) -> str:
    """Return what DeepSpeed does with an unknown key, and what it may mean."""
    does = say("rejects the config for it") if refuses(context, section, entry) else say("silently ignores it")
    where = say(" in {path}", path=shown(entry.path[:-1])) if section else ""
    names = say(" or ").join(f"`{guess.name}`" for guess in found[:2])
    hint = say("; did you mean {names}?", names=names) if names else ""
    return say(
        "DeepSpeed has no key `{name}`{where} and {does}{hint}", name=entry.name, where=where, does=does, hint=hint
    ).rstrip("?？")


def _fixes(context: Context, entry: Entry, found: list[Guess], *, refused: bool) -> Iterator[Fix | None]:
    for guess in found:
        if guess.slip is Slip.SPELLING:
            title = say("Rename it to `{name}`", name=guess.name)
            yield context.rename(entry, guess.name, title, safe=refused and guess.exact and len(found) == 1)
    if refused:
        yield context.remove(entry, say("Remove `{name}`", name=entry.name), safe=False)
