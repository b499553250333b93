"""The effective batch: samples per optimizer step, from the three batch keys together."""

from __future__ import annotations

from collections.abc import Iterator

from dsmigrate.diff.explanations.batch._effective import Effective, effective, other_ranks, ratio, same_on
from dsmigrate.diff.model import Effect, Explained, Severity
from dsmigrate.diff.pair import Pair
from dsmigrate.diff.phrases import as_many, factor, listed, number
from dsmigrate.diff.registry import Example, explanation
from dsmigrate.editing.derived.batch import KEYS, WORLD
from dsmigrate.knowledge import Consumer
from dsmigrate.languages import say


@explanation(
    "DF201",
    "effective-batch",
    summary="An optimizer step takes another number of samples.",
    why=(
        "The three batch keys are one equation, `train_batch_size` = micro-batch × accumulation × ranks, and DeepSpeed"
        " fills in what is left out. What counts for training is the product. It changes the noise of the gradients and"
        " the number of steps in an epoch, so that the learning rate and every count of steps mean something else. A"
        " loader that the script makes itself has a batch size of its own, which none of the keys reaches; accumulation"
        " acts there all the same."
    ),
    source=(
        "deepspeed/runtime/config.py:DeepSpeedConfig._set_batch_related_parameters",
        "deepspeed/runtime/config.py:DeepSpeedConfig._batch_assertion",
    ),
    examples=(
        Example(
            '{"train_batch_size": 64}',
            '{"train_batch_size": 128}',
            "An optimizer step takes 128 samples instead of 64, twice as many",
            paths=("train_batch_size",),
            effects=(Effect.NUMERICS, Effect.MEMORY, Effect.SPEED),
            severity=Severity.WARNING,
        ),
        Example(
            '{"train_micro_batch_size_per_gpu": 4, "gradient_accumulation_steps": 2}',
            '{"train_micro_batch_size_per_gpu": 4, "gradient_accumulation_steps": 8}',
            "An optimizer step takes 4 × 8 × world size samples instead of 4 × 2 × world size, 4 times as many",
            paths=("gradient_accumulation_steps",),
            effects=(Effect.NUMERICS, Effect.SPEED),
        ),
        Example(
            '{"train_micro_batch_size_per_gpu": 4, "gradient_accumulation_steps": 2}',
            '{"train_micro_batch_size_per_gpu": 4, "gradient_accumulation_steps": 8}',
            "An optimizer step takes 128 samples instead of 32, 4 times as many",
            world_size=4,
        ),
        Example(
            '{"train_batch_size": 32}',
            '{"train_micro_batch_size_per_gpu": 4, "gradient_accumulation_steps": 2}',
            "An optimizer step takes 4 × 2 × world size samples instead of 32: the same on 4 ranks alone",
            paths=("train_batch_size", "train_micro_batch_size_per_gpu", "gradient_accumulation_steps"),
        ),
        Example(
            '{"train_batch_size": 32, "train_micro_batch_size_per_gpu": "auto", "gradient_accumulation_steps": "auto"}',
            '{"train_batch_size": 30, "train_micro_batch_size_per_gpu": "auto", "gradient_accumulation_steps": "auto"}',
            "An optimizer step takes 30 samples instead of 32, 0.938 times as many",
            consumer=Consumer.TRANSFORMERS,
        ),
        Example(
            '{"gradient_accumulation_steps": 2}',
            '{"train_micro_batch_size_per_gpu": 4, "gradient_accumulation_steps": 2}',
            "The file states the batch now, 4 × 2 × world size samples per optimizer step; previously it stated none",
        ),
        Example(
            '{"train_batch_size": 32, "train_micro_batch_size_per_gpu": 4, "gradient_accumulation_steps": 2}',
            '{"train_batch_size": 32, "train_micro_batch_size_per_gpu": 8, "gradient_accumulation_steps": 1}',
            "",
        ),
        Example(
            '{"train_batch_size": 32, "train_micro_batch_size_per_gpu": 4, "gradient_accumulation_steps": 1}',
            '{"train_batch_size": 2, "train_micro_batch_size_per_gpu": 2, "gradient_accumulation_steps": 1}',
            "An optimizer step takes 2 samples instead of 32, 1/16 as many, on 1 rank instead of 8; each GPU holds",
        ),
        Example(
            '{"train_micro_batch_size_per_gpu": 4, "gradient_accumulation_steps": 1}',
            '{"train_micro_batch_size_per_gpu": 4, "gradient_accumulation_steps": "auto"}',
            "",
            consumer=Consumer.TRANSFORMERS,
        ),
    ),
)
def explain(pair: Pair) -> Iterator[Explained]:
    """Yield what becomes of the samples of a step where their number changes, or may."""
    paths = changed(pair)
    if not paths:
        return
    old, new = effective(pair.old), effective(pair.new)
    if old is not None and new is not None:
        if _is_open(pair, old, new) or ratio(old, new) == 1:
            return
        yield _another(pair, paths, old, new)
    elif (old is None) is not (new is None):
        stated = new or old
        assert stated is not None  # noqa: S101 - one of them is
        samples = say("{text} samples per optimizer step", text=stated.text)
        yield pair.says(
            *paths,
            effects=(Effect.NUMERICS, Effect.MEMORY, Effect.SPEED),
            severity=Severity.WARNING,
            message=say("The file states the batch now, {samples}; previously it stated none", samples=samples)
            if new is not None
            else say("The file states no batch any more; previously it was {samples}", samples=samples),
            brief=say("effective batch {text}", text=new.text)
            if new is not None
            else say("no effective batch in the file"),
        )


def changed(pair: Pair) -> tuple[str, ...]:
    """Return the batch keys that mean something else now, other than that the consumer begins or ends to decide."""
    return tuple(
        path for path in KEYS if pair.change(path) is not None and pair.old.fills(path) is pair.new.fills(path) is False
    )


def _is_open(pair: Pair, old: Effective, new: Effective) -> bool:
    """Return whether a part begins or ends to be the consumer's, so that nobody can compare."""
    begins = set(old.open) ^ set(new.open)
    return bool(begins - {WORLD}) and any(pair.old.fills(path) is not pair.new.fills(path) for path in KEYS)


def _another(pair: Pair, paths: tuple[str, ...], old: Effective, new: Effective) -> Explained:
    many = ratio(old, new)
    message = say("An optimizer step takes {text} samples instead of {text_2}", text=new.text, text_2=old.text)
    brief = say("effective batch {text} → {text_2}", text=old.text, text_2=new.text)
    advice = ""
    if many is not None:
        message += say(", {times}", times=as_many(many)) + other_ranks(pair)
        advice = say(
            "An epoch has {as_many} optimizer steps: review the learning rate and the schedule's step counts",
            as_many=as_many(1 / many),
        )
        if old.open:
            brief = say("effective batch × {factor}", factor=factor(many))
    else:
        ranks = same_on(old, new)
        message += (
            say(": the same on {ranks} rank{en_s} alone", ranks=ranks, en_s="" if ranks == 1 else "s") if ranks else ""
        )
        advice = say("Give the number of GPUs to have both as numbers")
    advice = say("; ").join(filter(None, (advice, _match(pair, paths))))
    effects = [Effect.NUMERICS, Effect.SPEED]
    if old.micro != new.micro:
        effects.insert(1, Effect.MEMORY)
        if None not in (old.sizes[0], new.sizes[0]):
            message += say(
                "; each GPU holds the activations of {micro} samples at a time instead of {micro_2}",
                micro=new.micro,
                micro_2=old.micro,
            )
    return pair.says(
        *paths, effects=tuple(effects), severity=Severity.WARNING, message=message, advice=advice, brief=brief
    )


def _match(pair: Pair, paths: tuple[str, ...]) -> str:
    """Return what arguments of the Trainer have to say, "" for another consumer."""
    side = pair.new
    words = [
        f"{auto.source} {number(value)}"
        for path in paths
        if (auto := side.known.auto(path, side.context.consumer)) is not None
        and auto.must_match
        and auto.source.startswith("TrainingArguments.")
        and (value := side.number(path)) is not None
        and path in side.given
    ]
    return (
        say("{consumer} stops unless it has {words}", consumer=side.context.consumer.title, words=listed(words))
        if words
        else ""
    )
