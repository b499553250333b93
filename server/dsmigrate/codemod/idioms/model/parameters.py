"""Parameters that deepspeed.initialize cannot send, or that are not there yet when it is called."""

from __future__ import annotations

from collections.abc import Iterator

from dsmigrate.codemod.analysis.events import Event, Happening
from dsmigrate.codemod.analysis.training import Training
from dsmigrate.codemod.analysis.values import NONE, Tensor
from dsmigrate.codemod.decision import Decision
from dsmigrate.codemod.idioms.facts import Facts, constant
from dsmigrate.codemod.model import Idea, Kind
from dsmigrate.codemod.program.edits import Insert
from dsmigrate.codemod.targets import holds
from dsmigrate.languages import told

IDEAS = (
    Idea(
        "MG518",
        "Parameters without dimensions, or not contiguous, are sent by the script",
        "send_odd_parameters sends rank 0's before deepspeed.initialize, which leaves them out then.",
        "DeepSpeed 0.19.8 sends parameters as bytes, for which torch refuses those without dimensions and those that are not dense "
        "in the last one: in channels_last, or made of a transposed tensor. NCCL sends nothing that is not contiguous.",
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
    kinds = (Happening.MADE, Happening.ACCESS, Happening.WEIGHT_WRITE)
    event = next((one for one in training.events(*kinds) if _is_odd(training, one)), None)
    if event is None or not holds("sent_as_bytes", facts.options.target_version):
        return
    site = facts.site
    line = f"ds_compat.send_odd_parameters({site.model})"
    made = event.what.get("what")
    is_number = isinstance(made, Tensor) and made.scalar
    why = "has no dimensions" if is_number else "may not be contiguous"
    cure = "use ZeRO 2, or give it a dimension" if is_number else "use ZeRO 2, or make it contiguous"
    yield Decision(
        "MG518", Kind.CONVERTED, event.module, event.node, told("{line} before the engine", line=line), told("DeepSpeed 0.19.8 cannot send what {why}", why=why),
        edits=(Insert(site.module, site.node, ((line,),), after=site.wrap is None, rank=-2),), parts=frozenset({"send_odd_parameters"}), stage=2,
        otherwise=Decision("MG518", Kind.TODO, event.module, event.node, told("ZeRO 3 cannot partition this: it {why}", why=why), cure),
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
    if event.kind is Happening.WEIGHT_WRITE:
        of = event["of"]
        turned = constant(event.what.get("turned", NONE)) is True
        return turned and training.holds_parameters(of) and training.is_before(event)
    what = event["what"]
    return (
        constant(event["role"]) == "parameter"
        and isinstance(what, Tensor)
        and (what.scalar or what.turned)
        and _is_of_model(training, event)
    )


def _is_of_model(training: Training, event: Event) -> bool:
    what = event["what"]
    return isinstance(what, Tensor) and what.of is not None and training.is_model(what.of)
