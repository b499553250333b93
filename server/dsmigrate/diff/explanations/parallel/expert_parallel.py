"""AutoEP: the experts of a model over several ranks."""

from __future__ import annotations

from collections.abc import Iterator

from dsmigrate.diff.features import Feature, told
from dsmigrate.diff.model import Effect, Explained, Severity
from dsmigrate.diff.pair import Pair
from dsmigrate.diff.phrases import number
from dsmigrate.diff.registry import Example, explanation
from dsmigrate.languages import mark, say

_SECTION = "expert_parallel"
_SIZE = f"{_SECTION}.autoep_size"
_ORDER = "use_data_before_expert_parallelism"
_EXPERTS = Feature(
    section=_SECTION,
    switch=f"{_SECTION}.enabled",
    begins=mark(
        "AutoEP finds the mixture-of-experts blocks of the model now and replaces them by blocks that "
        "exchange tokens with the ranks that hold the experts"
    ),
    ends=mark(
        "AutoEP no longer replaces the mixture-of-experts blocks of the model: every rank computes all experts itself"
    ),
    runs=mark("AutoEP works otherwise"),
    brief=mark("expert parallelism"),
    advice=mark("With `autoep_size` 1, the default, every rank keeps all experts and no memory is saved"),
)
_ALL = (Effect.NUMERICS, Effect.MEMORY, Effect.COMMUNICATION, Effect.SPEED, Effect.CHECKPOINT)


@explanation(
    "DF802",
    "expert-parallel",
    summary="Experts are spread over ranks, over another number of them, or routed otherwise.",
    why=(
        "AutoEP replaces mixture-of-experts blocks at engine start. A rank then holds `num_experts / autoep_size`"
        " experts and tokens travel to them; router details decide which expert computes a token, and how it counts."
    ),
    source=(
        "deepspeed/module_inject/auto_ep_config.py",
        "deepspeed/module_inject/auto_ep_layer.py:AutoEPMoELayer",
    ),
    examples=(
        Example(
            '{"train_batch_size": 8}',
            '{"train_batch_size": 8, "expert_parallel": {"enabled": true, "autoep_size": 4}}',
            "AutoEP finds the mixture-of-experts blocks of the model now",
            paths=(f"{_SECTION}.enabled", _SIZE),
            effects=_ALL,
            severity=Severity.WARNING,
        ),
        Example(
            '{"train_batch_size": 8, "expert_parallel": {"enabled": true, "autoep_size": 2}}',
            '{"train_batch_size": 8, "expert_parallel": {"enabled": true, "autoep_size": 4}}',
            "Experts are spread over 4 ranks instead of 2: a rank holds half as many",
            paths=(_SIZE,),
        ),
        Example(
            '{"train_batch_size": 8, "expert_parallel": {"enabled": true, "autoep_size": 2}}',
            '{"train_batch_size": 8, "expert_parallel": {"enabled": true, "autoep_size": 2, "top_k": 4}}',
            'AutoEP works otherwise: `top_k` "auto" → 4',
        ),
        Example(
            '{"train_batch_size": 8, "expert_parallel": {"enabled": true, "autoep_size": 2}}',
            '{"train_batch_size": 8, "expert_parallel": {"enabled": true, "autoep_size": 2},'
            ' "use_data_before_expert_parallelism": true}',
            "Consecutive ranks hold the same experts now, and tokens are sent across; previously neighbours"
            " exchanged tokens",
            paths=(_ORDER,),
            effects=(Effect.COMMUNICATION, Effect.CHECKPOINT),
        ),
        Example(
            '{"train_batch_size": 8, "expert_parallel": {"enabled": false, "autoep_size": 2}}',
            '{"train_batch_size": 8, "expert_parallel": {"enabled": false, "autoep_size": 4}}',
            "",
        ),
    ),
)
def explain(pair: Pair) -> Iterator[Explained]:
    """Yield where experts are now."""
    before, after = pair.numbers(_SIZE)
    on = [side.is_on(_EXPERTS.switch) for side in (pair.old, pair.new)]
    if all(on) and pair.change(_SIZE) is not None and before and after:
        share = (
            say("half as many")
            if after == 2 * before
            else say("twice as many")
            if before == 2 * after
            else say("another share")
        )
        yield pair.says(
            _SIZE,
            effects=_ALL[1:],
            severity=Severity.WARNING,
            message=say(
                "Experts are spread over {after} ranks instead of {before}: a rank holds {share}",
                after=number(after),
                before=number(before),
                share=share,
            ),
            advice=say("A checkpoint of the other size has to become a universal one first"),
            brief=say("expert parallel {before} → {after}", before=number(before), after=number(after)),
        )
        if len(list(pair.live(_SECTION))) == 1:
            yield from _order(pair)
            return
    yield from told(pair, _EXPERTS, effects=_ALL)
    yield from _order(pair)


def _order(pair: Pair) -> Iterator[Explained]:
    before, after = pair.old.is_on(_ORDER), pair.new.is_on(_ORDER)
    if pair.change(_ORDER) is None or before is after or None in (before, after):
        return
    yield pair.says(
        _ORDER,
        effects=(Effect.COMMUNICATION, Effect.CHECKPOINT),
        severity=Severity.WARNING,
        message=say(
            "Consecutive ranks hold the same experts now, and tokens are sent across; previously neighbours"
            " exchanged tokens"
        )
        if after
        else say("Neighbouring ranks exchange tokens now; previously consecutive ranks held the same experts"),
        advice=say(
            "It concerns models with mixture-of-experts layers alone; all files of a checkpoint must agree on it"
        ),
        brief=say("another order of expert ranks"),
    )
