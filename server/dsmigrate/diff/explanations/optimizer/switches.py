"""Switches around the optimizer: what ZeRO accepts, and a key that stops the engine."""

from __future__ import annotations

from collections.abc import Iterator

from dsmigrate.diff.explanations.optimizer._built import PARAMS, built
from dsmigrate.diff.model import Effect, Explained, Severity
from dsmigrate.diff.pair import Pair
from dsmigrate.diff.registry import Example, explanation
from dsmigrate.diff.side import Side
from dsmigrate.knowledge import MISSING
from dsmigrate.languages import say

_UNTESTED = "zero_allow_untested_optimizer"
_FORCED = "zero_force_ds_cpu_optimizer"
_NORM = f"{PARAMS}.max_grad_norm"


@explanation(
    "DF608",
    "untested-optimizer",
    summary="ZeRO begins or ceases to accept optimizer classes that are not on its list, or without a fast CPU kernel.",
    why=(
        "Both keys only decide whether the engine starts. `zero_allow_untested_optimizer` lets ZeRO wrap any class:"
        " one that treats each weight alone computes the same, one that looks at whole tensors (LAMB, Adafactor, Muon"
        " of others) sees flat slices. `zero_force_ds_cpu_optimizer` refuses an optimizer object of the script that"
        " has no kernel for the host while optimizer offload is on."
    ),
    source=(
        "deepspeed/runtime/engine.py:DeepSpeedEngine._do_optimizer_sanity_check",
        "deepspeed/runtime/zero/utils.py:is_zero_supported_optimizer",
        "deepspeed/runtime/engine.py:DeepSpeedEngine._configure_optimizer",
    ),
    examples=(
        Example(
            '{"train_batch_size": 8, "zero_optimization": {"stage": 1}}',
            '{"train_batch_size": 8, "zero_optimization": {"stage": 1}, "zero_allow_untested_optimizer": true}',
            "ZeRO now accepts optimizer classes that are not on its list, such as SGD",
            paths=(_UNTESTED,),
            effects=(Effect.VALIDITY,),
            severity=Severity.INFO,
        ),
        Example(
            '{"train_batch_size": 8, "zero_optimization": {"stage": 1}, "optimizer": {"type": "AdamW"},'
            ' "zero_allow_untested_optimizer": true}',
            '{"train_batch_size": 8, "zero_optimization": {"stage": 1}, "optimizer": {"type": "AdamW"}}',
            "Does nothing: ZeRO knows the class of `AdamW`",
            effects=(Effect.NONE,),
            severity=Severity.NONE,
        ),
        Example(
            '{"train_batch_size": 8, "zero_optimization": {"stage": 2, "offload_optimizer": {"device": "cpu"}}}',
            '{"train_batch_size": 8, "zero_optimization": {"stage": 2, "offload_optimizer": {"device": "cpu"}},'
            ' "zero_force_ds_cpu_optimizer": false}',
            "An optimizer of the script without a kernel for the host is accepted now, and steps at its own speed",
            paths=(_FORCED,),
            effects=(Effect.VALIDITY,),
        ),
        Example('{"train_batch_size": 8}', '{"train_batch_size": 8, "zero_allow_untested_optimizer": true}', ""),
    ),
)
def explain_untested(pair: Pair) -> Iterator[Explained]:
    """Yield what ZeRO accepts now."""
    if _turned(pair, _UNTESTED):
        yield _says(
            pair,
            _UNTESTED,
            say("ZeRO now accepts optimizer classes that are not on its list, such as SGD")
            if pair.new.is_on(_UNTESTED)
            else say("ZeRO refuses optimizer classes that are not on its list: SGD, 8-bit ones, any of the script"),
            idle=[_known(side) for side in (pair.old, pair.new)],
            brief=say("untested optimizers"),
        )
    if _turned(pair, _FORCED):
        yield _says(
            pair,
            _FORCED,
            say("An optimizer of the script without a kernel for the host is refused while the optimizer is offloaded")
            if pair.new.is_on(_FORCED)
            else say(
                "An optimizer of the script without a kernel for the host is accepted now, and steps at its own speed"
            ),
            idle=[_named(side) for side in (pair.old, pair.new)],
            brief=say("optimizers without a kernel for the host"),
        )


@explanation(
    "DF609",
    "max-grad-norm",
    summary="`max_grad_norm` has another value among the parameters of the optimizer.",
    why=(
        "It belongs to no optimizer of DeepSpeed: the engine refuses it, whatever it says, and points to"
        " `gradient_clipping`. It never clipped anything."
    ),
    source=("deepspeed/runtime/engine.py:DeepSpeedEngine._configure_basic_optimizer",),
    examples=(
        Example(
            '{"train_batch_size": 8, "optimizer": {"type": "AdamW", "params": {"lr": 1e-4, "max_grad_norm": 1.0}}}',
            '{"train_batch_size": 8, "optimizer": {"type": "AdamW", "params": {"lr": 1e-4}}}',
            "",  # a rule that stops finding it tells so
        ),
        Example(
            '{"train_batch_size": 8, "optimizer": {"type": "AdamW", "params": {"max_grad_norm": 1.0}}}',
            '{"train_batch_size": 8, "optimizer": {"type": "AdamW", "params": {"max_grad_norm": 0.5}}}',
            "The engine refuses `max_grad_norm` in the optimizer with any value",
            effects=(Effect.NONE,),
        ),
        Example(
            '{"train_batch_size": 8, "optimizer": {"type": "AdamW", "params": {"lr": 1e-4}}}',
            '{"train_batch_size": 8, "optimizer": {"type": "AdamW", "params": {"lr": 1e-4}}, "gradient_clipping": 0.5}',
            "",
        ),
    ),
)
def explain_norm(pair: Pair) -> Iterator[Explained]:
    """Yield that no value of it is accepted; that it comes or goes is for the rules to say."""
    change = pair.change(_NORM)
    if change is None or MISSING in (change.old, change.new) or built(pair.old) is None or built(pair.new) is None:
        return
    message = say("The engine refuses `max_grad_norm` in the optimizer with any value")
    yield pair.says(_NORM, effects=(Effect.NONE,), severity=Severity.NONE, message=message)


def _turned(pair: Pair, path: str) -> bool:
    before, after = pair.old.is_on(path), pair.new.is_on(path)
    return pair.change(path) is not None and before is not after and None not in (before, after)


def _known(side: Side) -> str:
    found = built(side)
    return (
        ""
        if found is None or found.facts.untested
        else say("ZeRO knows the class of `{facts_name}`", facts_name=found.facts.name)
    )


def _named(side: Side) -> str:
    found = built(side)
    return "" if found is None else say("it concerns optimizers that the script makes, and the file names one")


def _says(pair: Pair, path: str, message: str, *, idle: list[str], brief: str) -> Explained:
    if all(idle):
        return pair.says(
            path, effects=(Effect.NONE,), severity=Severity.NONE, message=say("Does nothing: {idle}", idle=idle[1])
        )
    accepts = pair.new.is_on(path) is (path == _UNTESTED)
    turned = say("accepts {brief}", brief=brief) if accepts else say("refuses {brief}", brief=brief)
    return pair.says(path, effects=(Effect.VALIDITY,), severity=Severity.INFO, message=message, brief=turned)
