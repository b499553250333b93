"""Hooks on the DeepSpeed engine, by its public methods, so that they hold for every release with them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from .job import Job
from .recorder import Recorder
from .torch_hooks import around


def hook_config(module: Any, job: Job, written: dict[str, Any]) -> None:
    """Note in ``written`` what is no default, choose the stage that was asked for, and partition small parameters.

    DeepSpeed leaves parameters of up to 100 000 elements whole by default; a model that is verified may have no
    others, and nothing of what makes ZeRO 3 different would be run.
    """

    def init(original: Any) -> Any:
        def wrapped(self: Any, config: Any, *arguments: Any, **words: Any) -> None:
            config = _adapted(config, job)
            if isinstance(config, dict):
                written["clipping_written"] = "gradient_clipping" in config
            original(self, config, *arguments, **words)

        return wrapped

    around(module.DeepSpeedConfig, "__init__", init)


def _adapted(config: Any, job: Job) -> Any:
    if isinstance(config, (str, Path)) and Path(config).is_file():
        import hjson  # type: ignore[import-untyped,unused-ignore] # noqa: PLC0415 - DeepSpeed brings it along

        config = hjson.loads(Path(config).read_text(encoding="utf-8"))
    if not isinstance(config, dict):
        return config
    config = json.loads(json.dumps(config, default=str))
    zero = config.setdefault("zero_optimization", {})
    if isinstance(zero, dict):
        if job.zero_stage is not None:
            zero["stage"] = job.zero_stage
        if zero.get("stage") == 3 and "param_persistence_threshold" not in zero:
            zero.setdefault("stage3_param_persistence_threshold", 0)
    return config


def hook_engine(module: Any, recorder: Recorder) -> None:
    """Put the hooks on the engine in place."""
    kind = module.DeepSpeedEngine
    around(kind, "__init__", lambda original: _init(original, recorder))
    around(kind, "forward", lambda original: _forward(original, recorder))
    around(kind, "backward", lambda original: _backward(original, recorder))
    around(kind, "step", lambda original: _step(original, recorder))
    around(kind, "save_checkpoint", lambda original: _save(original, recorder))
    if hasattr(kind, "clip_fp32_gradients"):
        around(kind, "clip_fp32_gradients", lambda original: _clip(original, recorder))


def _init(original: Any, recorder: Recorder) -> Any:
    def wrapped(self: Any, *arguments: Any, **words: Any) -> None:
        original(self, *arguments, **words)
        if recorder.engine is None:
            recorder.engine = self
            recorder.take_rank()
            recorder.watch.wrap(self.module)

    return wrapped


def _forward(original: Any, recorder: Recorder) -> Any:
    def wrapped(self: Any, *arguments: Any, **words: Any) -> Any:
        recorder.before_forward(self.module, arguments, words)
        return original(self, *arguments, **words)

    return wrapped


def _backward(original: Any, recorder: Recorder) -> Any:
    def wrapped(self: Any, loss: Any, *arguments: Any, **words: Any) -> Any:
        if recorder.depth == 0:
            divided = words.get("scale_wrt_gas", True)
            recorder.before_backward(loss, self.gradient_accumulation_steps() if divided else 1.0)
        recorder.depth += 1
        try:
            return original(self, loss, *arguments, **words)
        finally:
            recorder.depth -= 1

    return wrapped


def _at_boundary(engine: Any) -> bool:
    managed = getattr(engine, "managed_gradient_accumulation", None)
    if callable(managed) and not managed():
        return True
    return bool(engine.is_gradient_accumulation_boundary())


def _step(original: Any, recorder: Recorder) -> Any:
    def wrapped(self: Any, *arguments: Any, **words: Any) -> Any:
        boundary = _at_boundary(self)
        if boundary:
            recorder.take_settings([_inner(self.optimizer)])
            recorder.window.limit = float(self.gradient_clipping() or 0.0) or None
        before = self.skipped_steps
        recorder.in_engine = True
        try:
            found = original(self, *arguments, **words)
        finally:
            recorder.in_engine = False
        if boundary:
            _measure(self, recorder)
            recorder.after_step(skipped=self.skipped_steps > before)
        return found

    return wrapped


def _measure(engine: Any, recorder: Recorder) -> None:
    """Take the norm that the engine has computed; without ZeRO in full precision it computes none."""
    norm = engine.get_global_grad_norm()
    if norm is not None and recorder.window.norm is None:
        recorder.window.norm = float(norm)
    if recorder.window.norm is not None and recorder.window.applied is None:
        limit = recorder.window.limit
        recorder.window.applied = min(recorder.window.norm, limit) if limit else recorder.window.norm


def _inner(optimizer: Any) -> Any:
    """Return the optimizer that the script made: its groups are shared with those of ZeRO."""
    while hasattr(optimizer, "optimizer") and hasattr(optimizer.optimizer, "param_groups"):
        optimizer = optimizer.optimizer
    return optimizer


def _clip(original: Any, recorder: Recorder) -> Any:
    def wrapped(self: Any) -> Any:
        recorder.inside_the_engine(self.module.parameters())
        return original(self)

    return wrapped


def _save(original: Any, recorder: Recorder) -> Any:
    def wrapped(self: Any, save_dir: Any, *arguments: Any, **words: Any) -> Any:
        recorder.in_saving = True
        try:
            found = original(self, save_dir, *arguments, **words)
        finally:
            recorder.in_saving = False
        recorder.see_save(save_dir)
        return found

    return wrapped
