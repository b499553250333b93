"""Which optimizer is built, and by whom."""

from __future__ import annotations

from collections.abc import Iterator

from dsmigrate.diff.explanations.optimizer._built import PARAMS, TYPE, Built, built, decays, maker
from dsmigrate.diff.model import Effect, Explained, Severity
from dsmigrate.diff.pair import Pair, shown
from dsmigrate.diff.phrases import listed, number
from dsmigrate.diff.registry import Example, explanation
from dsmigrate.diff.side import Side
from dsmigrate.knowledge import MISSING, Consumer
from dsmigrate.languages import say
from dsmigrate.rules.context import UNKNOWN

_ALL = (Effect.NUMERICS, Effect.MEMORY, Effect.SPEED, Effect.CHECKPOINT)
_MOST = 4


@explanation(
    "DF601",
    "optimizer",
    summary="Another optimizer is built, or the config begins or ends to name one.",
    why=(
        "The type chooses the class, and with it the update rule, the states that are kept and the defaults of all"
        " parameters that are not written. `Adam` and `AdamW` are one class in DeepSpeed, with decoupled decay, unless"
        " `adam_w_mode` is false. An optimizer object that the script passes to `initialize` wins over the section."
    ),
    source=(
        "deepspeed/runtime/engine.py:DeepSpeedEngine._configure_basic_optimizer",
        "deepspeed/runtime/config.py:ADAM_W_MODE_DEFAULT",
    ),
    examples=(
        Example(
            '{"train_batch_size": 8, "optimizer": {"type": "Adam", "params": {"lr": 1e-4, "weight_decay": 0.1}}}',
            '{"train_batch_size": 8, "optimizer": {"type": "AdamW", "params": {"lr": 1e-4, "weight_decay": 0.1}}}',
            "The same optimizer: `Adam` builds what `AdamW` builds, FusedAdam with decoupled decay",
            paths=(TYPE,),
            effects=(Effect.NONE,),
            severity=Severity.NONE,
        ),
        Example(
            '{"train_batch_size": 8, "optimizer": {"type": "AdamW", "params": {"lr": 1e-4, "eps": 1e-6}}}',
            '{"train_batch_size": 8, "optimizer": {"type": "Lion", "params": {"lr": 1e-4}}}',
            "`Lion` (FusedLion) updates the weights instead of `AdamW` (FusedAdam): steps of fixed size along the"
            " sign of a momentum; one state per weight",
            paths=(TYPE, f"{PARAMS}.eps"),
            effects=_ALL,
            severity=Severity.WARNING,
        ),
        Example(
            '{"train_batch_size": 8, "optimizer": {"type": "AdamW", "params": {"weight_decay": 0.1}}}',
            '{"train_batch_size": 8, "optimizer": {"type": "Adagrad", "params": {"weight_decay": 0.1}}}',
            "`Adagrad` (torch.optim.Adagrad) updates the weights instead of `AdamW` (FusedAdam): each weight's step"
            " shrinks with the sum of its squared gradients; what is not written moves with it: `lr` 0.001 → 0.01,"
            " `eps` 1e-08 → 1e-10",
        ),
        Example(
            '{"train_batch_size": 8}',
            '{"train_batch_size": 8, "optimizer": {"type": "AdamW", "params": {"lr": 1e-4, "betas": [0.9, 0.95]}}}',
            "DeepSpeed builds the optimizer now: `AdamW` (FusedAdam) with `lr` 0.0001 and `betas` [0.9, 0.95]; without"
            " it the script has to make it",
            paths=(TYPE, f"{PARAMS}.lr", f"{PARAMS}.betas"),
        ),
        Example(
            '{"train_batch_size": 8, "optimizer": {"type": "AdamW", "params": {"lr": "auto"}}}',
            '{"train_batch_size": 8}',
            "DeepSpeed no longer builds the optimizer, which was `AdamW` (FusedAdam) with the parameters from"
            " Transformers Trainer; without it the Trainer makes it from TrainingArguments",
            consumer=Consumer.TRANSFORMERS,
        ),
        Example(
            '{"train_batch_size": 8, "optimizer": {"type": "OneBitAdam", "params": {"lr": 1e-4}}}',
            '{"train_batch_size": 8, "optimizer": {"type": "AdamW", "params": {"lr": 1e-4}}}',
            "DeepSpeed builds the optimizer now: `AdamW` (FusedAdam) with `lr` 0.0001; `OneBitAdam` is none that"
            " 0.19.8 can build",
        ),
        Example(
            '{"train_batch_size": 8, "optimizer": {"type": "adamw"}}',
            '{"train_batch_size": 8, "optimizer": {"type": "AdamW"}}',
            "",
        ),
    ),
)
def explain(pair: Pair) -> Iterator[Explained]:
    """Yield which optimizer there is now."""
    change = pair.change(TYPE)
    before, after = built(pair.old), built(pair.new)
    if change is None or (before is None and after is None):
        return
    if before is not None and after is not None:
        yield _same(pair, before, after) if _is_same(before, after) else _another(pair, before, after)
        return
    named, side = (after, pair.new) if after is not None else (before, pair.old)
    assert named is not None  # noqa: S101 - one of the two is
    begin = (
        say("DeepSpeed builds the optimizer now: {what}", what=f"{named.name}{_with(side)}")
        if after
        else say("DeepSpeed no longer builds the optimizer, which was {what}", what=f"{named.name}{_with(side)}")
    )
    yield pair.says(
        TYPE,
        *(inner.path for inner in pair.live(PARAMS)),
        effects=_ALL,
        severity=Severity.WARNING,
        message=say("{begin}; {rest}", begin=begin, rest=maker(pair.old if after else pair.new)),
        advice=say("An optimizer object that the script passes to `initialize` wins over the file")
        if pair.new.context.consumer is Consumer.DEEPSPEED and after
        else "",
        brief=say("optimizer {facts_name} from the file", facts_name=named.facts.name)
        if after
        else say("no optimizer in the file"),
    )


def is_same(pair: Pair) -> bool:
    """Return whether both sides build one and the same class, but perhaps for the form of its decay."""
    before, after = built(pair.old), built(pair.new)
    return before is not None and after is not None and _is_same(before, after)


def _is_same(before: Built, after: Built) -> bool:
    adams = {"Adam", "AdamW"}
    names = {before.facts.name, after.facts.name}
    return len(names) == 1 or names == adams


def _same(pair: Pair, before: Built, after: Built) -> Explained:
    apart = before.decay is not after.decay
    decay = say(" with decoupled decay") if apart is False else say(" with another form of decay")
    message = say(
        "The same optimizer: `{facts_name}` builds what `{facts_name_2}` builds",
        facts_name=before.facts.name,
        facts_name_2=after.facts.name,
    )
    if apart and after.decay is not None and before.decay is not None:
        acts = decays(pair.old) or decays(pair.new)
        return pair.says(
            TYPE,
            *(path for path in (f"{PARAMS}.adam_w_mode",) if pair.change(path) is not None),
            effects=(Effect.NUMERICS,),
            severity=Severity.WARNING if acts else Severity.INFO,
            message=say(
                "Weight decay is {decay}, previously {decay_2}; `{facts_name}` and `{facts_name_2}` are the same"
                " otherwise",
                decay=say(after.decay.value),
                decay_2=say(before.decay.value),
                facts_name=after.facts.name,
                facts_name_2=before.facts.name,
            )
            + ("" if acts else say(", and nothing decays here")),
            brief=say("weight decay {decay}", decay=say(after.decay.value)),
        )
    named = say(", {what}", what=f"{after.class_name}{decay}") if after.class_name else ""
    return pair.says(TYPE, effects=(Effect.NONE,), severity=Severity.NONE, message=f"{message}{named}")


def _another(pair: Pair, before: Built, after: Built) -> Explained:
    mine = [
        change.path
        for change in pair.live(PARAMS)
        if (_parameter_of(change.path) in before.facts.parameters)
        is not (_parameter_of(change.path) in after.facts.parameters)
    ]
    summary = after.facts.summary.rstrip(".。")
    rule = summary.partition(": ")[2] or summary.partition("：")[2] or summary
    moved = _moved(pair, before, after)
    return pair.says(
        TYPE,
        *mine,
        effects=_ALL,
        severity=Severity.WARNING,
        message=say(
            "{after_name} updates the weights instead of {before_name}: {lower}{rule}",
            after_name=after.name,
            before_name=before.name,
            lower=rule[:1].lower(),
            rule=rule[1:],
        )
        + (say("; what is not written moves with it: {moved}", moved=moved) if moved else ""),
        advice=say(
            "A checkpoint holds the states of {facts_name}: begin with fresh ones", facts_name=before.facts.name
        ),
        brief=say(
            "optimizer {facts_name} → {facts_name_2}", facts_name=before.facts.name, facts_name_2=after.facts.name
        ),
    )


def _moved(pair: Pair, before: Built, after: Built) -> str:
    """Return the parameters that neither side writes and that have another default in the other class."""
    words = []
    for name, parameter in after.facts.parameters.items():
        path = f"{PARAMS}.{name}"
        if name not in before.facts.parameters or path in pair.old.given or path in pair.new.given:
            continue
        old, new = before.facts.parameters[name].default, parameter.default
        if old != new and MISSING not in (old, new):
            words.append(f"`{name}` {number(old)} → {number(new)}")
    return say(", ").join(words[:_MOST])


def _parameter_of(path: str) -> str:
    return path.removeprefix(f"{PARAMS}.").partition(".")[0]


def _with(side: Side) -> str:
    """Return the parameters that a side writes, in words."""
    paths = [path for path in side.given if path.startswith(f"{PARAMS}.")]
    stated = [path for path in paths if side.value(path) is not UNKNOWN]
    words = [f"`{_parameter_of(path)}` {_plain(side.value(path))}" for path in stated[:_MOST]]
    more = len(stated) - _MOST
    words += [say("{more} more", more=more)] if more > 0 else []
    if len(stated) < len(paths):
        words.append(
            say("the rest from {consumer}", consumer=side.context.consumer.title)
            if words
            else say("the parameters from {consumer}", consumer=side.context.consumer.title)
        )
    return say(" with {words}", words=listed(words)) if words else say(" with its defaults")


def _plain(value: object) -> str:
    return number(value) if isinstance(value, (int, float, list)) and not isinstance(value, bool) else shown(value)
