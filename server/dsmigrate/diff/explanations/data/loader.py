"""The loader that DeepSpeed builds: its last batch, its epochs, its seed."""

from __future__ import annotations

from collections.abc import Iterator

from dsmigrate.diff.model import Effect, Explained, Severity
from dsmigrate.diff.pair import Pair, shown
from dsmigrate.diff.registry import Example, explanation
from dsmigrate.languages import say

_LAST = "dataloader_drop_last"
_SEED = "data_efficiency.seed"
_EPOCHS = "data_efficiency.data_sampling.num_epochs"


@explanation(
    "DF207",
    "loader",
    summary="A loader that DeepSpeed builds gives other batches: the last one, the seed, the number of epochs.",
    why=(
        "`dataloader_drop_last` reaches loaders that DeepSpeed makes of `training_data`, or in `deepspeed_io`, and no"
        " loader of the script. The seed and the epochs of `data_efficiency` belong to the sampler of the curriculum"
        " and to dynamic batching."
    ),
    source=(
        "deepspeed/runtime/dataloader.py:DeepSpeedDataLoader",
        "deepspeed/runtime/data_pipeline/data_sampling/data_sampler.py:DeepSpeedDataSampler",
    ),
    examples=(
        Example(
            '{"train_batch_size": 8}',
            '{"train_batch_size": 8, "dataloader_drop_last": true}',
            "A last batch that is not full is dropped now, in loaders that DeepSpeed builds",
            paths=(_LAST,),
            effects=(Effect.NUMERICS,),
            severity=Severity.INFO,
        ),
        Example(
            '{"train_batch_size": 8, "data_efficiency": {"seed": 1, "data_sampling": {"curriculum_learning":'
            ' {"enabled": true, "curriculum_metrics": {}}}}}',
            '{"train_batch_size": 8, "data_efficiency": {"seed": 2, "data_sampling": {"curriculum_learning":'
            ' {"enabled": true, "curriculum_metrics": {}}}}}',
            "The curriculum shuffles by the seed `2` instead of `1`: samples come in another order",
            paths=(_SEED,),
            effects=(Effect.NUMERICS,),
            severity=Severity.WARNING,
        ),
        Example(
            '{"train_batch_size": 8, "data_efficiency": {"seed": 1}}',
            '{"train_batch_size": 8, "data_efficiency": {"seed": 2}}',
            "",
        ),
    ),
)
def explain(pair: Pair) -> Iterator[Explained]:
    """Yield what becomes of the batches of such a loader."""
    change = pair.change(_LAST)
    before, after = pair.old.is_on(_LAST), pair.new.is_on(_LAST)
    if change is not None and before is not after and None not in (before, after):
        yield pair.says(
            _LAST,
            effects=(Effect.NUMERICS,),
            severity=Severity.INFO,
            message=say(
                "A last batch that is not full is {word} now, in loaders that DeepSpeed builds",
                word=say("dropped") if after else say("used"),
            ),
            brief=say("last batch dropped") if after else say("last batch kept"),
        )
    change = pair.change(_SEED)
    if change is not None and all(pair.lives(_SEED)):
        yield pair.says(
            _SEED,
            effects=(Effect.NUMERICS,),
            severity=Severity.WARNING,
            message=say(
                "The curriculum shuffles by the seed {new_meant} instead of {old_meant}: samples come in another order",
                new_meant=shown(change.new_meant),
                old_meant=shown(change.old_meant),
            ),
            brief=say("another seed for the data"),
        )
    change = pair.change(_EPOCHS)
    if change is not None and all(pair.lives(_EPOCHS)):
        yield pair.says(
            _EPOCHS,
            effects=(Effect.NUMERICS,),
            severity=Severity.INFO,
            message=say(
                "The curriculum ends after {new_meant} lengths of the data set, previously after {old_meant}; so "
                "much is `len()` of its loader",
                new_meant=shown(change.new_meant),
                old_meant=shown(change.old_meant),
            ),
        )
