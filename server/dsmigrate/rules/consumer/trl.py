"""DS827: what TRL's trainers do with the config beside training: an engine of a frozen model is made with it."""

from __future__ import annotations

from collections.abc import Iterator

from dsmigrate.knowledge import Consumer
from dsmigrate.knowledge.versions import order
from dsmigrate.languages import say
from dsmigrate.rules.context import Context
from dsmigrate.rules.model import Arguments, Effect, Example, Facts, Finding, Severity
from dsmigrate.rules.registry import rule
from dsmigrate.rules.zero._shared import STAGE

_ZERO = "zero_optimization"
_COUNTS = ("scheduler.params.warmup_num_steps", "scheduler.params.total_num_steps")
"""Keys that the Trainer fills when training begins, and that every scheduler of DeepSpeed calculates with."""
_OFFLOAD = "zero_optimization.offload_optimizer"
_PRECOMPUTED = "precompute_ref_log_probs"
_REFUSES = {"DPOTrainer": "0.29.0", "KTOTrainer": "1.3.0", "BCOTrainer": ""}
"""Trainers that refuse the argument at stage 3, and the first release of TRL that no longer does; "" for none."""
_DPO = Facts(arguments=(Arguments("train.py:3", {}, trainer="DPOTrainer", frozen=True),))
_HEAD = '{"train_batch_size": "auto", '
_PRECISION = '"bf16": {"enabled": true}, '


def _precomputing(release: str | None) -> Facts:
    given = Arguments("run.sh:2", {_PRECOMPUTED: "True"}, trainer="DPOTrainer")
    return Facts(arguments=(given,), trl=release)


@rule(
    "DS827",
    "trl",
    summary="What TRL's trainers do with the config before the Trainer has filled it, or refuse.",
    why="The trainers for DPO, KTO, BCO, GKD and GRPO (with `beta`) give a copy of the config to "
    "`deepspeed.initialize` for the frozen model, the reference or the teacher, while they are built. The Trainer "
    'fills the step counts of `scheduler` and the sizes in `zero_optimization` only when training begins: the "auto" '
    "of a step count is an error there, and that of a size DeepSpeed's default. An `optimizer` section makes an "
    "optimizer for the frozen model as well, though nothing steps it. Below stage 3 TRL sets the stage of the copy to "
    "0, so that each GPU holds the frozen model whole. There is no such engine with PEFT, or with "
    "`precompute_ref_log_probs`, which some releases refuse at stage 3. Read in 0.7.2 to 1.9.0. A config counts as "
    "TRL's if a script that makes one of these trainers is given it, or the command `trl`.",
    severity=Severity.ERROR,
    effect=Effect.CRASH,
    source=(
        "trl/models/utils.py:prepare_deepspeed",
        "trl/trainer/dpo_trainer.py:DPOTrainer.__init__",
        "https://github.com/LianjiaTech/BELLE/issues/558",
    ),
    consumers=(Consumer.TRANSFORMERS,),
    keys=("scheduler", "optimizer", STAGE),
    examples=(
        Example(
            _HEAD + '"optimizer": {"type": "AdamW"}, "scheduler": {"type": "WarmupLR", "params": '
            '{"warmup_num_steps": «"auto"»}}, "zero_optimization": {"stage": 2}}',
            fixed=_HEAD + '"optimizer": {"type": "AdamW"}, "zero_optimization": {"stage": 2}}',
            consumer=Consumer.TRANSFORMERS,
            facts=_DPO,
        ),
        Example(
            _HEAD + _PRECISION + '«"optimizer"»: {"type": "AdamW"}, "zero_optimization": {"stage": 3}}',
            fixed=_HEAD + _PRECISION + '"zero_optimization": {"stage": 3}}',
            consumer=Consumer.TRANSFORMERS,
            facts=_DPO,
        ),
        Example(
            _HEAD + '«"zero_optimization"»: {}}',
            fixed=_HEAD + '"zero_optimization": {"stage": 0}}',
            consumer=Consumer.TRANSFORMERS,
            facts=_DPO,
        ),
        Example(
            _HEAD + '"zero_optimization": {"stage": «3»}}',
            consumer=Consumer.TRANSFORMERS,
            facts=_precomputing("0.19.1"),
        ),
        Example(
            _HEAD + '"zero_optimization": {"stage": 3}}', consumer=Consumer.TRANSFORMERS, facts=_precomputing("1.9.0")
        ),
        Example(
            _HEAD + '"scheduler": {"type": "WarmupLR", "params": {"warmup_num_steps": "auto"}}, '
            '"zero_optimization": {"stage": 2}}',
            consumer=Consumer.TRANSFORMERS,
            facts=_DPO,
        ),
        Example(
            _HEAD + '"optimizer": {"type": "AdamW"}, "scheduler": {"type": "WarmupLR", "params": '
            '{"warmup_num_steps": "auto"}}, "zero_optimization": {}}',
            consumer=Consumer.TRANSFORMERS,
        ),
    ),
)
def check(context: Context) -> Iterator[Finding]:
    """Yield what the trainers of TRL that get the config do with it, each once."""
    given = context.facts.arguments
    frozen = next((one for one in given if one.frozen), None)
    if frozen is not None and context.has(_ZERO):
        yield from _of_the_frozen_model(context, frozen)
    refused = (one for one in given if one.trainer in _REFUSES and one.is_on(_PRECOMPUTED))
    if context.stage == 3 and context.has(STAGE) and (one := next(refused, None)) is not None:
        yield from _of_precomputing(context, one)


def _of_the_frozen_model(context: Context, given: Arguments) -> Iterator[Finding]:
    trainer, place = given.trainer, given.place
    if not context.has(STAGE):
        yield context.finding(
            _ZERO,
            say(
                "TRL's {trainer} ({place}) stops with a KeyError without `{key}`",
                trainer=trainer,
                place=place,
                key=STAGE,
            ),
            part="key",
            fixes=[context.insert(tuple(STAGE.split(".")), 0, say("Write the default, stage 0"), safe=True)],
        )
    if context.type_of("optimizer") is None:
        return
    unfilled = next((key for key in _COUNTS if context.raw(key) == "auto"), None)
    if unfilled is not None and context.type_of("scheduler") is not None:
        yield context.finding(
            unfilled,
            say(
                "TRL's {trainer} ({place}) gives the config to DeepSpeed for the frozen model before the Trainer "
                'fills this "auto": DeepSpeed raises an error; write a number, or remove `scheduler`',
                trainer=trainer,
                place=place,
            ),
            fixes=[context.remove(("scheduler",), say("Remove `{section}`", section="scheduler"), safe=False)],
        )
    elif context.is_on("bf16.enabled") or context.is_on("fp16.enabled"):
        yield context.finding(
            "optimizer",
            say(
                "TRL's {trainer} ({place}) gives the frozen model an optimizer too, with float32 copies of its "
                "weights, if the config has an `optimizer` section",
                trainer=trainer,
                place=place,
            ),
            part="key",
            severity=Severity.INFO,
            effect=Effect.MEMORY,
            fixes=[]
            if context.has(_OFFLOAD)  # the Trainer's own optimizer is not one for the CPU
            else [context.remove(("optimizer",), say("Remove `{section}`", section="optimizer"), safe=False)],
        )


def _of_precomputing(context: Context, given: Arguments) -> Iterator[Finding]:
    release, until = context.facts.trl, _REFUSES[given.trainer]
    if release is not None and until and order(release) >= order(until):
        return
    told = say(
        "TRL's {trainer} refuses `--{name}` ({place}) at stage 3",
        trainer=given.trainer,
        name=_PRECOMPUTED,
        place=given.place,
    )
    if until:
        told = say("{told}, in releases before {until}", told=told, until=until)
    is_sure = release is not None or not until
    yield context.finding(
        STAGE,
        told,
        severity=None if is_sure else Severity.INFO,
        effect=Effect.REJECTED,
    )
