"""Edits that DeepSpeed does not see: another spelling, a default written out, a key under its new name."""

from __future__ import annotations

from collections.abc import Iterator

from dsmigrate.diff.model import Change, Effect, Explained, Kind, Severity
from dsmigrate.diff.pair import Pair, shown
from dsmigrate.diff.registry import Example, explanation
from dsmigrate.document import render_path
from dsmigrate.knowledge import MISSING, Consumer
from dsmigrate.languages import say
from dsmigrate.rules.context import UNKNOWN


@explanation(
    "DF101",
    "same-value",
    summary="The key is written otherwise, and DeepSpeed takes the same value.",
    why=(
        "DeepSpeed fills in defaults, converts quoted numbers and switches, knows some keys under two names, rewrites"
        " deprecated ones and computes batch keys that are left out. Two configs that come to the same are the same."
    ),
    source=(
        "deepspeed/runtime/config_utils.py:DeepSpeedConfigModel",
        "deepspeed/runtime/config_utils.py:get_scalar_param",
        "deepspeed/runtime/config.py:_set_batch_related_parameters",
    ),
    examples=(
        Example(
            '{"train_batch_size": 8, "zero_optimization": {"stage": 2}}',
            '{"train_batch_size": 8, "zero_optimization": {"stage": 2, "contiguous_gradients": true}}',
            "The default is the same, so writing it changes nothing",
            paths=("zero_optimization.contiguous_gradients",),
            effects=(Effect.NONE,),
            severity=Severity.NONE,
        ),
        Example(
            '{"train_batch_size": 8, "zero_optimization": {"stage": 3, "overlap_comm": true}}',
            '{"train_batch_size": 8, "zero_optimization": {"stage": 3}}',
            "DeepSpeed takes the same value without the key",
        ),
        Example(
            '{"train_batch_size": 8, "zero_optimization": {"stage": 2, "cpu_offload": true}}',
            '{"train_batch_size": 8, "zero_optimization": {"stage": 2, "offload_optimizer": {"device": "cpu"}}}',
            "`zero_optimization.cpu_offload` is written as `zero_optimization.offload_optimizer.device`, which is the",
            paths=("zero_optimization.offload_optimizer.device",),
        ),
        Example(
            '{"train_batch_size": 8, "zero_optimization": {"stage": 3, "sub_group_size": 1e9}}',
            '{"train_batch_size": 8, "zero_optimization": {"stage": 3, "sub_group_size": "1000000000"}}',
            '`1000000000` and `"1000000000"` are one value',
        ),
        Example(
            '{"train_batch_size": 8, "train_micro_batch_size_per_gpu": 2}',
            '{"train_batch_size": 8, "train_micro_batch_size_per_gpu": 2, "gradient_accumulation_steps": 2}',
            "`2` is what DeepSpeed computes from the other batch keys",
            world_size=2,
        ),
        Example(
            '{"train_batch_size": 8, "steps_per_print": 10}',
            '{"train_batch_size": 8, "steps_per_print": 20}',
            "Transformers Trainer overwrites the value, whatever the file says",
            consumer=Consumer.TRANSFORMERS,
        ),
        Example(
            '{"train_batch_size": 8, "fp16": {}}',
            '{"train_batch_size": 8}',
            "An empty section is the same as none",
        ),
        Example(
            '{"train_batch_size": 8, "gradient_clipping": 1.0}',
            '{"train_batch_size": 8, "gradient_clipping": 2.0}',
            "",
        ),
    ),
)
def explain(pair: Pair) -> Iterator[Explained]:
    """Yield a message for each key that DeepSpeed reads and finds unchanged."""
    for path, change in pair.changes.items():
        if change.differs or not _is_read(pair, path):
            continue
        yield pair.says(path, effects=(Effect.NONE,), severity=Severity.NONE, message=_message(pair, path, change))


def _is_read(pair: Pair, path: str) -> bool:
    """Return whether a side reads the key; between two releases, whether both know it."""
    reads = pair.old.reads(path), pair.new.reads(path)
    return any(reads) if pair.old.known.version == pair.new.known.version else all(reads)


def _message(pair: Pair, path: str, change: Change) -> str:
    if pair.new.fills(path):
        who = pair.new.context.consumer.title
        overwritten = pair.old.context.is_overwritten(path) and pair.new.context.is_overwritten(path)
        return (
            say("{who} overwrites the value, whatever the file says", who=who)
            if overwritten
            else say("{who} fills it in either way", who=who)
        )
    if change.kind is Kind.RENAMED and change.old_spot is not None and change.new_spot is not None:
        before, after = render_path(change.old_spot.path), render_path(change.new_spot.path)
        return say(
            "`{before}` is written as `{what}`, which is the same",
            before=before,
            what=after if _is_named_so(path, after) else path,
        )
    key = pair.new.known.key(path)
    if key is not None and key.is_section:
        return say("An empty section is the same as none")
    if change.new is MISSING:
        if change.old_meant is UNKNOWN:
            return say("With and without the key the value is decided when training starts")
        return say("DeepSpeed takes the same value without the key")
    if change.old is MISSING:
        return _written_out(pair, path, change)
    return say("{old} and {new} are one value", old=shown(change.old), new=shown(change.new))


def _is_named_so(path: str, written: str) -> bool:
    return written.rpartition(".")[2] == path.rpartition(".")[2] or written.count(".") == path.count(".")


def _written_out(pair: Pair, path: str, change: Change) -> str:
    if path in pair.old.given or change.new_meant is UNKNOWN:
        return say("DeepSpeed takes the same value without the key")
    if path in {"train_batch_size", "train_micro_batch_size_per_gpu", "gradient_accumulation_steps"}:
        return say("{value} is what DeepSpeed computes from the other batch keys", value=shown(change.new))
    if pair.old.known.default(path) is None:
        return say("DeepSpeed takes the same value without the key")
    return say("The default is the same, so writing it changes nothing")
