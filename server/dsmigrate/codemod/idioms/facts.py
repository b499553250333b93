"""What several idioms ask of a training, worked out once: the engine's names, gradients, options, the release."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

from dsmigrate.codemod.analysis.directories import Directories, Kept, directories
from dsmigrate.codemod.analysis.events import Event, Happening
from dsmigrate.codemod.analysis.gradients import Gradients, gradients_of, zeroes
from dsmigrate.codemod.analysis.optimizers import Moved, moved
from dsmigrate.codemod.analysis.passing import Passing, passing
from dsmigrate.codemod.analysis.site import Site, spread
from dsmigrate.codemod.analysis.training import Training
from dsmigrate.codemod.analysis.values import Const, Value
from dsmigrate.codemod.model import Options


@dataclass(eq=False)
class Facts:
    """The facts of one training under the options of one conversion. Idioms read them and change nothing."""

    training: Training
    options: Options
    beside: tuple[Training, ...] = ()
    """The other trainings of the script."""

    @property
    def site(self) -> Site:
        """Where the engine is made, which every idiom asks only where there is one."""
        site = self.training.site
        assert isinstance(site, Site)
        return site

    @cached_property
    def passing(self) -> Passing:
        """How the engine gets to functions in which no name leads to it."""
        lost = [
            event
            for event in self.training.events(Happening.ZERO_GRAD)
            if self.gradients.thrown_away(event) and zeroes(self.training, event)
        ]
        return passing(self.training, lost)

    @cached_property
    def moved(self) -> Moved | str:
        """The optimizer as the config makes it, where the person asked for that; why it stays in the script."""
        return moved(self.training, self.site) if self.options.optimizer == "config" else "the script keeps it"

    @cached_property
    def directories(self) -> Directories | Kept | None:
        """The checkpoints that become the engine's directories, where the person asked for that; why they stay files."""
        return directories(self.training) if self.options.checkpoints == "engine" else None

    @property
    def optimizer_argument(self) -> str:
        """What ``deepspeed.initialize`` is given to optimize."""
        return (
            f"optimizer={self.site.optimizer}"
            if isinstance(self.moved, str)
            else f"model_parameters={self.moved.parameters}"
        )

    @property
    def least_apart(self) -> int:
        """The lowest ZeRO stage at which ranks hold different states, or the optimizer copies of the weights."""
        return 1 if self.options.precision == "keep" and self.options.config is None else 0

    @cached_property
    def gradients(self) -> Gradients:
        """What gradients may be there right before each event that has to do with gradients."""
        return gradients_of(self.training)

    def engine(self, event: Event) -> str | None:
        """How the engine is called where an event is; None where it cannot be."""
        function = event.module.step(event.node).function
        if function is not None and function in self.passing.functions:
            return self.passing.functions[function]
        return self.training.engine_at(event)

    @cached_property
    def accumulates(self) -> bool:
        """Whether the script lets gradients of several backwards come together before it steps."""
        return self.gradients.accumulate


def by_place(events: Iterable[Event]) -> dict[ast.AST, list[Event]]:
    """Events by the node that they happen at, which several calls may lead to."""
    found: dict[ast.AST, list[Event]] = {}
    for event in events:
        found.setdefault(event.node, []).append(event)
    return found


def given_at(call: ast.Call, index: int, name: str) -> ast.expr | None:
    """The expression of an argument, by its position or its name."""
    args, named = spread(call)
    if index < len(args) and not any(isinstance(arg, ast.Starred) for arg in args[: index + 1]):
        return args[index]
    return named.get(name)


def is_statement(event: Event) -> bool:
    """Whether a call stands as a statement by itself, so that nothing takes what it gives."""
    statement = event.module.step(event.node).node
    return isinstance(statement, ast.Expr) and statement.value is event.node


def constant(value: Value) -> object:
    """The value of a constant; None for anything else."""
    return value.value if isinstance(value, Const) else None
