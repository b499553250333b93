"""DS825: arguments of the Trainer that a section of the file replaces."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Literal, NamedTuple

from dsmigrate.knowledge import Consumer
from dsmigrate.knowledge.elsewhere import arguments
from dsmigrate.languages import mark, say
from dsmigrate.rules.consumer._stated import Stated
from dsmigrate.rules.context import Context
from dsmigrate.rules.model import Arguments, Effect, Example, Facts, Finding, Severity
from dsmigrate.rules.registry import rule


class _Section(NamedTuple):
    usual: str
    same: Mapping[str, frozenset[str]]
    """The values of the argument that ask for what a type is, by the type in lower case."""
    decides: str
    known: Mapping[str, str]
    """Instead of that what a type does, by the type in lower case."""


_SECTIONS: Mapping[Literal["optimizer", "scheduler"], _Section] = {
    "scheduler": _Section(
        "linear",
        {
            "warmupdecaylr": frozenset({"linear"}),
            "warmuplr": frozenset({"constant_with_warmup"}),
            "warmupcosinelr": frozenset({"cosine"}),
        },
        mark("the learning rate follows `{type}`"),
        {"warmuplr": mark("the learning rate stays at its peak after the warm-up, as `{type}` has no decay")},
    ),
    "optimizer": _Section(
        "",
        {
            "adam": frozenset({"adamw_torch", "adamw_torch_fused", "adamw_hf"}),
            "adamw": frozenset({"adamw_torch", "adamw_torch_fused", "adamw_hf"}),
            "lion": frozenset({"lion_32bit"}),
        },
        mark("`{type}` makes the optimizer"),
        {},
    ),
}
_HEAD = '{"train_batch_size": "auto", "zero_optimization": {"stage": 2}, '
_WARMUP = '{"type": «"WarmupLR"», "params": {"warmup_num_steps": "auto"}}'


@rule(
    "DS825",
    "section-replaces-argument",
    summary="A `scheduler` or `optimizer` section, with which `--lr_scheduler_type` or `--optim` has no effect.",
    why="The Trainer makes a schedule of its own only if the file has no `scheduler` section, and an optimizer only if "
    "it has no `optimizer` section. With `WarmupLR` the learning rate stays at its peak, whatever "
    "`--lr_scheduler_type` says; `linear`, the default there, is `WarmupDecayLR`. Without the section the argument "
    "counts. Launch lines, files of arguments and calls beside the file are read.",
    severity=Severity.INFO,
    effect=Effect.OVERRIDDEN,
    source=("transformers/integrations/deepspeed.py:deepspeed_optim_sched",),
    consumers=(Consumer.TRANSFORMERS,),
    keys=("scheduler", "scheduler.type", "optimizer", "optimizer.type"),
    examples=(
        Example(
            _HEAD + f'"scheduler": {_WARMUP}}}',
            fixed=_HEAD.rstrip(", ") + "}",
            consumer=Consumer.TRANSFORMERS,
            facts=Facts(arguments=(Arguments("run.sh:3", {"lr_scheduler_type": "cosine"}),)),
        ),
        Example(_HEAD + f'"scheduler": {_WARMUP}}}', fixed=_HEAD.rstrip(", ") + "}", consumer=Consumer.TRANSFORMERS),
        Example(
            _HEAD + '"optimizer": {"type": «"AdamW"»}}',
            fixed=_HEAD.rstrip(", ") + "}",
            consumer=Consumer.TRANSFORMERS,
            facts=Facts(arguments=(Arguments("run.sh:3", {"optim": "adafactor"}),)),
        ),
        Example(
            _HEAD + '"scheduler": {"type": "WarmupDecayLR", "params": {"total_num_steps": "auto"}}}',
            consumer=Consumer.TRANSFORMERS,
        ),
        Example(
            _HEAD + '"scheduler": {"type": "WarmupLR", "params": {"warmup_num_steps": "auto"}}}',
            consumer=Consumer.TRANSFORMERS,
            facts=Facts(arguments=(Arguments("run.sh:3", {"lr_scheduler_type": "constant_with_warmup"}),)),
        ),
    ),
)
def check(context: Context) -> Iterator[Finding]:
    """Yield a finding for each section that replaces an argument which asks for something else."""
    for name, section in _SECTIONS.items():
        kind = context.type_of(name)
        if kind is None:
            continue
        names = arguments()[f"{name}.type"]
        asked = [
            Stated(found.place, argument, found.text, is_default=argument not in given.values)
            for given in context.facts.arguments
            for argument in names
            if (found := given.given(argument)) is not None and found.text
        ]
        same = section.same.get(kind.name.lower(), frozenset())
        wrong = next((one for one in asked if one.value not in same), None)
        if wrong is None and (asked or not section.usual or section.usual in same):
            continue
        value = wrong.said if wrong else f"`--{names[0]}`"
        yield context.finding(
            f"{name}.type",
            say(
                "{decides}, and {argument} has no effect: the Trainer reads it only if the config has no `{section}`",
                decides=say(section.known.get(kind.name.lower(), section.decides), type=kind.name),
                argument=value,
                section=name,
            ),
            severity=Severity.WARNING if wrong else None,
            fixes=[context.remove((name,), say("Remove `{section}`", section=name), safe=False)],
        )
