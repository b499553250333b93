"""What the lines of "In this file" are about."""

from __future__ import annotations

from dataclasses import dataclass

from dsmigrate.document import Scalar
from dsmigrate.editing.hover.target import Target
from dsmigrate.editing.view import View
from dsmigrate.knowledge import Key
from dsmigrate.rules.context import Context


@dataclass(frozen=True, slots=True)
class Subject:
    """A place in a file; ``key`` is None for the types and parameters of optimizers and schedulers."""

    view: View
    target: Target
    key: Key | None

    @property
    def context(self) -> Context:
        """The values of the file."""
        return self.view.context

    @property
    def path(self) -> str:
        """The path of the key, "" where there is none."""
        return "" if self.key is None else self.key.path

    @property
    def scalar(self) -> Scalar | None:
        """The value of the member, where it is no list or object."""
        return self.target.node if isinstance(self.target.node, Scalar) else None
