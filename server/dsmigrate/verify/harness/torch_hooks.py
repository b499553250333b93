"""Hooks on PyTorch itself: DDP, backward, clipping, optimizers, schedulers, the gradient scaler, saving."""

from __future__ import annotations

import atexit
import functools
import sys
from collections.abc import Callable
from typing import Any

from .links import detach, is_full
from .recorder import Recorder


def around(owner: Any, name: str, make: Callable[[Any], Any]) -> None:
    """Replace a function by what ``make`` builds around it."""
    original = getattr(owner, name)
    setattr(owner, name, functools.wraps(original)(make(original)))


def hook_torch(torch: Any, recorder: Recorder) -> None:
    """Put all hooks in place."""
    _models(torch, recorder)
    _backward(torch, recorder)
    _clipping(torch, recorder)
    _optimizers(torch, recorder)
    _scaler(torch, recorder)
    _saving(torch, recorder)
    _ending(torch, recorder)


def _models(torch: Any, recorder: Recorder) -> None:
    ddp = torch.nn.parallel.DistributedDataParallel

    def init(original: Any) -> Any:
        def wrapped(self: Any, *arguments: Any, **words: Any) -> None:
            original(self, *arguments, **words)
            recorder.take_rank()
            recorder.watch.wrap(self.module)
            if getattr(self, "find_unused_parameters", False) or getattr(self, "static_graph", False):
                recorder.look_for_idle(self.module)

        return wrapped

    def forward(original: Any) -> Any:
        def wrapped(self: Any, *arguments: Any, **words: Any) -> Any:
            if recorder.engine is None:
                recorder.before_forward(self.module, arguments, words)
            return original(self, *arguments, **words)

        return wrapped

    around(ddp, "__init__", init)
    around(ddp, "forward", forward)


def _backward(torch: Any, recorder: Recorder) -> None:
    def outermost(original: Any) -> Any:
        def wrapped(roots: Any, *arguments: Any, **words: Any) -> Any:
            if recorder.depth == 0 and not recorder.in_engine:
                divisor = recorder.engine.gradient_accumulation_steps() if recorder.engine is not None else 1.0
                for root in roots if isinstance(roots, (list, tuple)) else (roots,):
                    recorder.before_backward(root, divisor)
            recorder.depth += 1
            try:
                return original(roots, *arguments, **words)
            finally:
                recorder.depth -= 1

        return wrapped

    around(torch.autograd, "backward", outermost)


def _clipping(torch: Any, recorder: Recorder) -> None:
    def by_norm(original: Any) -> Any:
        def wrapped(parameters: Any, max_norm: float, norm_type: float = 2.0, **words: Any) -> Any:
            if isinstance(parameters, torch.Tensor):
                parameters = [parameters]
            parameters = list(parameters)
            if recorder.in_engine:
                recorder.inside_the_engine(parameters)
            else:
                recorder.before_clipping(float(max_norm) if float(norm_type) == 2.0 else None)
            return original(parameters, max_norm, norm_type, **words)

        return wrapped

    def by_value(original: Any) -> Any:
        def wrapped(parameters: Any, *arguments: Any, **words: Any) -> Any:
            parameters = [parameters] if isinstance(parameters, torch.Tensor) else list(parameters)
            if not recorder.in_engine:
                recorder.before_clipping(None)
            return original(parameters, *arguments, **words)

        return wrapped

    for owner in (torch.nn.utils, torch.nn.utils.clip_grad):
        around(owner, "clip_grad_norm_", by_norm)
        around(owner, "clip_grad_value_", by_value)


def _optimizers(torch: Any, recorder: Recorder) -> None:
    def init(original: Any) -> Any:
        def wrapped(self: Any, *arguments: Any, **words: Any) -> None:
            original(self, *arguments, **words)
            recorder.see_optimizer(self)
            recorder.watch.take_bare(torch, self)

        return wrapped

    around(torch.optim.Optimizer, "__init__", init)

    def before(optimizer: Any, arguments: Any, words: Any) -> None:  # noqa: ARG001
        recorder.before_step(optimizer)

    def after(optimizer: Any, arguments: Any, words: Any) -> None:  # noqa: ARG001
        if recorder.engine is None or not recorder.in_engine:
            recorder.after_step()

    module: Any = sys.modules["torch.optim.optimizer"]  # torch.optim deletes the name
    module.register_optimizer_step_pre_hook(before)
    module.register_optimizer_step_post_hook(after)
    scheduler = torch.optim.lr_scheduler
    for kind in {getattr(scheduler, name) for name in ("LRScheduler", "ReduceLROnPlateau") if hasattr(scheduler, name)}:
        _count_steps(kind, recorder)


def _count_steps(kind: Any, recorder: Recorder) -> None:
    """Count the calls that the script makes, of a class or of what derives from it later."""

    def step(original: Any) -> Any:
        def wrapped(self: Any, *arguments: Any, **words: Any) -> Any:
            if getattr(self, "_initial_step_done", False):
                recorder.window.schedulers += 1
            return original(self, *arguments, **words)

        return wrapped

    around(kind, "step", step)
    if hasattr(kind, "_initial_step"):

        def initial(original: Any) -> Any:
            def wrapped(self: Any) -> None:
                original(self)
                self._initial_step_done = True

            return wrapped

        around(kind, "_initial_step", initial)


def _scaler(torch: Any, recorder: Recorder) -> None:
    kind = torch.amp.GradScaler

    def scale(original: Any) -> Any:
        def wrapped(self: Any, outputs: Any) -> Any:
            scaled = original(self, outputs)
            if self.is_enabled() and isinstance(outputs, torch.Tensor):
                scaled.dsmigrate_unscaled = outputs.detach()
                recorder.window.scale = float(self.get_scale())
            return scaled

        return wrapped

    def unscale(original: Any) -> Any:
        def wrapped(self: Any, optimizer: Any) -> Any:
            found = original(self, optimizer)
            recorder.window.unscaled = True
            return found

        return wrapped

    def step(original: Any) -> Any:
        def wrapped(self: Any, optimizer: Any, *arguments: Any, **words: Any) -> Any:
            before = recorder.window
            found = original(self, optimizer, *arguments, **words)
            if recorder.is_apart(optimizer):
                return found
            if recorder.window is before and before.applied is None and self.is_enabled():
                recorder.take_settings([optimizer])
                before.norm = None
                recorder.after_step(skipped=True)
            return found

        return wrapped

    around(kind, "scale", scale)
    around(kind, "unscale_", unscale)
    around(kind, "step", step)


def _saving(torch: Any, recorder: Recorder) -> None:
    def save(original: Any) -> Any:
        def wrapped(state: Any, f: Any, *arguments: Any, **words: Any) -> Any:
            if recorder.job.links:
                detach(f, recorder.job.work)
            try:
                found = original(state, f, *arguments, **words)
            except Exception:  # torch says no more of a full disk than "iostream error"
                if is_full(f):
                    recorder.trace.write("full", path=str(f))
                raise
            if not recorder.in_saving and _is_checkpoint(torch, state):
                recorder.see_save(f)
            return found

        return wrapped

    around(torch, "save", save)


def _is_checkpoint(torch: Any, state: Any) -> bool:
    """Whether something that is saved is more than weights."""
    return isinstance(state, dict) and not all(isinstance(item, torch.Tensor) for item in state.values())


def _ending(torch: Any, recorder: Recorder) -> None:
    def destroy(original: Any) -> Any:
        def wrapped(*arguments: Any, **words: Any) -> Any:
            recorder.finish("end")
            return original(*arguments, **words)

        return wrapped

    for owner in (torch.distributed, torch.distributed.distributed_c10d):
        around(owner, "destroy_process_group", destroy)
    atexit.register(recorder.finish, "end")
