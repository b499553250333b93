"""Remembers the error that ends a process, also where a library catches it and only prints it."""

from __future__ import annotations

import multiprocessing.process
import sys
import time
import traceback
from types import TracebackType
from typing import Any

from .recorder import Recorder
from .torch_hooks import around


def remember_crashes(recorder: Recorder) -> None:
    """Record what reaches the top of the script, of a process of ``multiprocessing``, or of ``torch`` 's spawn."""
    before = sys.excepthook

    def hook(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
        note(recorder, error)
        before(kind, error, trace)

    sys.excepthook = hook
    around(multiprocessing.process.BaseProcess, "run", lambda original: _noting(original, recorder))
    spawning = sys.modules.get("torch.multiprocessing.spawn")
    if spawning is not None and hasattr(spawning, "_wrap"):
        around(spawning, "_wrap", lambda original: _spawned(original, recorder))


def note(recorder: Recorder, error: BaseException) -> None:
    """Write down an error, the first of a process; the weights are not looked at any more."""
    if recorder.crashed:
        return
    recorder.crashed = True
    if recorder.active:
        frames = [f"{frame.filename}:{frame.lineno}" for frame in traceback.extract_tb(error.__traceback__)]
        own = [frame for frame in frames if frame.startswith(recorder.job.work)]
        recorder.take_rank()
        at = (own or frames or [""])[-1]
        recorder.trace.write(
            "crash",
            type=type(error).__name__,
            message=str(error)[:2000],
            at=at,
            time=time.time(),
            rank=recorder.trace.rank,
        )


def _noting(original: Any, recorder: Recorder) -> Any:
    def wrapped(*arguments: Any, **words: Any) -> Any:
        try:
            return original(*arguments, **words)
        except Exception as error:
            note(recorder, error)
            raise

    return wrapped


def _spawned(original: Any, recorder: Recorder) -> Any:
    """``torch`` 's own wrapper sends the error to the parent and exits: look inside of it."""

    def wrapped(function: Any, *rest: Any) -> Any:
        return original(_noting(function, recorder), *rest)

    return wrapped
