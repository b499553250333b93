"""Checkpoints as DeepSpeed's own directories: each rank writes its part, and nothing is gathered."""

from __future__ import annotations

from pathlib import Path
from typing import Any


def save_directory(engine: Any, path: str, state: Any = None) -> None:
    """Save model, optimizer and what the script adds in ``state`` to the directory ``path``. Collective.

    ``state`` is kept apart from the engine's own entries, some of whose names load_checkpoint drops.
    """
    place = Path(path).resolve()
    engine.save_checkpoint(str(place.parent), tag=place.name, client_state={"script": state}, save_latest=False)


def load_directory(engine: Any, path: str) -> Any:
    """Load what ``save_directory`` saved and return ``state``. Collective. FileNotFoundError if it is not there.

    Clipping stays what the config says: ZeRO and half precision would bring back that of the run that saved, in
    ``clip_grad`` of the engine's optimizer.
    """
    place = Path(path).resolve()
    if not place.is_dir():
        raise FileNotFoundError(f"{path} is not a checkpoint directory of DeepSpeed")
    state = engine.load_checkpoint(str(place.parent), tag=place.name)[1]
    if engine.optimizer is not engine.basic_optimizer:
        engine.optimizer.clip_grad = engine.gradient_clipping()
    return state["script"]
