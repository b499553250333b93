"""The buffers of a model: which there are, who writes them, and who looks at them."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from functools import cached_property

from dsmigrate.codemod.analysis.analysis import dividing, implies
from dsmigrate.codemod.analysis.classes import is_closed
from dsmigrate.codemod.analysis.conditions import FALSE, both, either
from dsmigrate.codemod.analysis.events import Event, Happening
from dsmigrate.codemod.analysis.training import Training
from dsmigrate.codemod.analysis.values import (
    FALSE_VALUE,
    TRUE_VALUE,
    Const,
    Expr,
    Kind,
    Obj,
    Tensor,
    TensorKind,
    Value,
    each,
    forwards_in,
)

_RUNNING = (
    "BatchNorm1d",
    "BatchNorm2d",
    "BatchNorm3d",
    "BatchNorm",
    "LazyBatchNorm1d",
    "LazyBatchNorm2d",
    "LazyBatchNorm3d",
)
_CONTAINERS = frozenset({"torch.nn.Sequential", "torch.nn.ModuleList", "torch.nn.ModuleDict"})


@dataclass(eq=False)
class Buffers:
    """What is known of the buffers of a training's model."""

    training: Training

    @cached_property
    def is_read(self) -> bool:
        """Whether the source of every part of the model is read."""
        return all(map(_is_read, self.training.parts))

    @cached_property
    def running(self) -> bool:
        """Whether a part keeps running statistics of its own rank's data."""
        return (
            any(isinstance(part, Obj) and part.made_by.rpartition(".")[2] in _RUNNING for part in self.training.parts)
            and not self._is_synced
        )

    @property
    def _is_synced(self) -> bool:
        site = self.training.site
        return not isinstance(site, str) and any(
            event["name"] == Const("sync_batchnorm")
            and self.training.is_model(event["of"])
            and implies(site.block.condition, event.condition)
            for event in self.training.events(Happening.ACCESS)
        )

    @cached_property
    def own(self) -> tuple[Tensor, ...]:
        """The buffers that classes of the script register."""
        return tuple(
            one
            for part in self.training.parts
            if isinstance(part, Obj)
            for value in part.own.values()
            for one in each(value)
            if isinstance(one, Tensor) and one.kind is TensorKind.BUFFER and one.of is part
        )

    @cached_property
    def written(self) -> tuple[Event, ...]:
        """Where buffers are written with what each rank has for itself, once the model is trained."""
        return tuple(
            event
            for event in self.training.events(Happening.BUFFER_WRITE)
            if event["varies"] == TRUE_VALUE and not self.training.is_before(event)
            if isinstance(of := event["of"], Tensor) and of.of is not None and self.training.is_model(of.of)
        )

    @cached_property
    def evaluations(self) -> tuple[Event, ...]:
        """The forwards of the model that no backward follows, behind the engine."""
        trained = {forward.node for event in self.training.backwards for forward in forwards_in(event["loss"])}
        return tuple(
            event
            for event in self.training.events(Happening.FORWARD)
            if event.node not in trained
            and self.training.is_model(event["model"])
            and not self.training.is_before(event)
        )

    @property
    def evaluated_by_all(self) -> Event | None:
        """An evaluation of the wrapped model that every rank runs."""
        wrapped = either(*(wrap.condition for wrap in self.training.wraps))
        return next(
            (
                event
                for event in self.evaluations
                if dividing(event) is None and both(event.condition, wrapped) is not FALSE
            ),
            None,
        )

    @property
    def evaluated_by_some(self) -> tuple[Event, ...]:
        """The evaluations of the wrapped model that only some ranks run."""
        return tuple(
            event
            for event in self.evaluations
            if dividing(event) is not None and self.training.is_wrapped(event["model"])
        )

    @property
    def may_run(self) -> bool:
        """Whether a part may keep running statistics of its own rank's data."""
        return self.running or not self.is_read

    @cached_property
    def are_sent(self) -> bool:
        """Whether it shows that DDP sends rank 0's buffers before each forward."""
        asked = [
            event["arg_broadcast_buffers"] for event in self.training.wraps if "arg_broadcast_buffers" in event.what
        ]
        if asked and all(one == FALSE_VALUE for value in asked for one in each(value)):
            return False
        return bool(self.written) or (self.may_run and self.evaluated_by_all is not None)

    @property
    def are_restored_by_some(self) -> bool:
        """Whether only some ranks load weights into the model before the engine is made."""
        return any(
            dividing(event) is not None and self.training.is_model(event["of"]) and self.training.is_before(event)
            for event in self.training.events(Happening.RESTORE)
        )


def _is_read(part: Value) -> bool:
    if not isinstance(part, Obj):
        return False
    if part.kind is Kind.INSTANCE:
        made = [one for value in part.own.values() for one in each(value)]
        return is_closed(part) and not any(
            isinstance(one, Expr) and one.op == "unknown" and isinstance(one.args[0], ast.Call) for one in made
        )
    if part.made_by in _CONTAINERS:
        return bool(part.own)
    return part.made_by.startswith("torch.nn.")
