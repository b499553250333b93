"""Parameters that deepspeed.initialize cannot send, or that are not there yet when it is called."""

from __future__ import annotations

from collections.abc import Iterator

from dsmigrate.codemod.analysis.events import Event, Happening
from dsmigrate.codemod.analysis.training import Training
from dsmigrate.codemod.analysis.values import Tensor
from dsmigrate.codemod.decision import Decision
from dsmigrate.codemod.idioms.facts import Facts, constant
from dsmigrate.codemod.model import Idea, Kind
from dsmigrate.codemod.program.edits import Insert
from dsmigrate.codemod.targets import holds
from dsmigrate.languages import told

IDEAS = (
    Idea(
        "MG518",
        "Parameters without dimensions, or in channels_last, are sent by the script",
        "send_odd_parameters sends rank 0's before deepspeed.initialize, which leaves them out then.",
        "DeepSpeed 0.19.8 sends parameters as bytes, for which torch refuses those without dimensions and those that are not dense "
        "in the last one.",
        "deepspeed/runtime/engine.py, _broadcast_model; run on two processes",
        Kind.CONVERTED,
    ),
    Idea(
        "MG519",
        "Parameters are made in the first forward",
        "A layer or parameter that forward makes is not in the optimizer; what else the engine does with it is marked.",
        "An optimizer that is made before the first forward never steps such parameters, under DDP and under DeepSpeed. But their "
        "gradients count otherwise where the norm is clipped, and one that is made after a forward of the wrapped model trains "
        "each rank's own weights under DDP, and the same ones under DeepSpeed. A forward before the wrap makes them in time.",
        "experiment with DeepSpeed 0.19.8 on two processes; deepspeed/runtime/engine.py, buffered_allreduce_fallback",
        Kind.TODO,
    ),
)


def odd(training: Training, facts: Facts) -> Iterator[Decision]:
    """Send what deepspeed.initialize does not send."""
    event = next((one for one in training.events(Happening.MADE, Happening.ACCESS) if _is_odd(training, one)), None)
    if event is None or not holds("sent_as_bytes", facts.options.target_version):
        return
    site = facts.site
    line = f"ds_compat.send_odd_parameters({site.model})"
    why = "has no dimensions" if event.kind is Happening.MADE else "is in channels_last"
    yield Decision(
        "MG518", Kind.CONVERTED, event.module, event.node, told("{line} before the engine", line=line), told("DeepSpeed 0.19.8 cannot send what {why}", why=why),
        edits=(Insert(site.module, site.node, ((line,),), after=site.wrap is None, rank=-2),), parts=frozenset({"send_odd_parameters"}), stage=2,
        otherwise=Decision("MG518", Kind.TODO, event.module, event.node, told("ZeRO 3 cannot partition this: it {why}", why=why), "use ZeRO 2, or give it a dimension"),
    )  # fmt: skip


def late(training: Training, facts: Facts) -> Iterator[Decision]:  # noqa: ARG001 - an idiom's signature
    """Mark parameters that the first forward makes, unless one before the engine does."""
    if any(training.is_before(one) and training.is_model(one["model"]) for one in training.events(Happening.FORWARD)):
        return
    for event in {
        one.node: one for one in training.events(Happening.MADE) if constant(one["role"]) == "parameter"
    }.values():
        if constant(event["late"]) is True and _is_of_model(training, event):
            yield Decision(
                "MG519", Kind.TODO, event.module, event.node, "make this parameter before deepspeed.initialize: the optimizer lacks it",
                "the first forward makes it, when the engine is there",
            )  # fmt: skip


def _is_odd(training: Training, event: Event) -> bool:
    if event.kind is Happening.ACCESS:
        return constant(event["name"]) == "memory_format" and training.is_model(event["of"])
    what = event["what"]
    return (
        constant(event["role"]) == "parameter"
        and isinstance(what, Tensor)
        and what.scalar
        and _is_of_model(training, event)
    )


def _is_of_model(training: Training, event: Event) -> bool:
    what = event["what"]
    return isinstance(what, Tensor) and what.of is not None and training.is_model(what.of)
