"""Sees modules being called, from their class: a hook on an object would travel into copies and pickles of it."""

from __future__ import annotations

import gc
from collections.abc import Iterable
from typing import Any

from .gradients import parameters_of
from .recorder import Recorder
from .torch_hooks import around


class Watch:
    """Which modules to look at: those inside of a wrapper, and a bare model as long as nothing is wrapped."""

    def __init__(self, recorder: Recorder) -> None:
        self.recorder = recorder
        self.wrapped: set[int] = set()
        self.bare: set[int] = set()
        self.inside = False

    def wrap(self, module: Any) -> None:
        """See every call of a module inside of a wrapper, under the precision that the wrapper gives it."""
        self.wrapped.add(id(module))
        self.bare.clear()

    def take_bare(self, torch: Any, optimizer: Any) -> None:
        """See every call of the model whose parameters an optimizer has, where one process may train without DDP."""
        if self.recorder.job.processes == 1 and not self.wrapped:
            self.bare.update(map(id, models_of(torch, parameters_of([optimizer]))))

    def call(self, original: Any, module: Any, arguments: Any, words: Any) -> Any:
        """Call a module, having looked at it if it is one of those."""
        if id(module) in self.wrapped:
            self.recorder.inside_forward(module)
        elif id(module) in self.bare and not self.inside:
            self.recorder.before_forward(module, arguments, words)
            self.recorder.inside_forward(module)
            self.inside = True
            try:
                return original(module, *arguments, **words)
            finally:
                self.inside = False
        return original(module, *arguments, **words)


def hook_calls(torch: Any, recorder: Recorder) -> Watch:
    """Put the hook in place."""
    watch = Watch(recorder)

    def call(original: Any) -> Any:
        def wrapped(self: Any, *arguments: Any, **words: Any) -> Any:
            return watch.call(original, self, arguments, words)

        return wrapped

    around(torch.nn.Module, "__call__", call)
    return watch


def models_of(torch: Any, parameters: Iterable[Any]) -> list[Any]:
    """Return the modules that hold all of the parameters: the model, and what it stands inside of."""
    wanted = {id(parameter) for parameter in parameters}
    modules = [found for found in gc.get_objects() if issubclass(type(found), torch.nn.Module)]
    return [module for module in modules if wanted and wanted <= {id(one) for one in module.parameters()}]
