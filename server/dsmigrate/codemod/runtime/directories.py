"""Checkpoints as DeepSpeed's directories: each rank writes its part of the state, and nothing is gathered.

What the script saves together with the optimizer's state becomes the directory of ``engine.save_checkpoint``, with the
script's own entries in its client state. ``load_checkpoint`` gives the dictionary back with the script's keys, and
``optimizer.load_state_dict`` then loads the directory into the engine. All else stays a file, old checkpoints too.
"""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import deepspeed
import torch
import torch.distributed as dist
from deepspeed.utils.zero_to_fp32 import get_fp32_state_dict_from_zero_checkpoint

from dsmigrate.codemod.runtime.checkpoints import TorchCheckpoints

WAITING: list[tuple[Any, ...]] = []
"""What this rank has asked for since the last ``write_checkpoint``: a function's name, its paths, the content."""


def keep_directories(engine: Any, groups: Any = None) -> None:
    """Let the functions below save and load the engine's state. All ranks, after initialize.

    If the optimizer was given a directory's state before deepspeed.initialize, the engine loads it now.
    """
    engine.torch_checkpoints = DirectoryCheckpoints(engine, groups)


def save_checkpoint(content: Any, path: Any, *args: Any, **options: Any) -> None:
    """Save a directory at the next ``write_checkpoint``; without the optimizer's state in it a file, at once."""
    if holds_state(content):
        WAITING.append(("write", (str(Path(path).resolve()),), content))
    else:
        torch.save(content, path, *args, **options)


def copy_checkpoint(source: Any, target: Any) -> None:
    """Copy a checkpoint, after it is written."""
    paths = tuple(str(Path(path).resolve()) for path in (source, target))
    if any(asked[1][-1] == paths[0] for asked in WAITING):
        WAITING.append(("copy", paths, None))
    else:
        copy_path(*paths)


def remove_checkpoint(path: Any) -> None:
    """Remove a checkpoint, a directory or a file."""
    if Path(path).is_dir() and not Path(path).is_symlink():
        shutil.rmtree(path)
    else:
        Path(path).unlink()


def write_checkpoint(engine: Any) -> None:
    """Write what a rank has given to ``save_checkpoint``, if any has. Collective: all ranks call it right after."""
    if not isinstance(engine, deepspeed.DeepSpeedEngine):
        return
    asked: list[Any] = [None] * dist.get_world_size()
    dist.all_gather_object(asked, [(name, paths) for name, paths, _ in WAITING])
    first = next((rank for rank, one in enumerate(asked) if one), 0)
    for number, (name, paths) in enumerate(asked[first]):
        if name == "write":
            content = [WAITING[number][2] if dist.get_rank() == first else None]
            if first:
                dist.broadcast_object_list(content, src=first)
            engine.torch_checkpoints.write(*paths, content[0])
        elif dist.get_rank() == first:
            copy_path(*paths)
    WAITING.clear()


def load_checkpoint(path: Any, *args: Any, **options: Any) -> Any:
    """What ``torch.load`` gives, also for a directory: the script's keys, with weights; the engine loads the rest."""
    if not isinstance(path, (str, os.PathLike)) or not Path(path).is_dir():
        return torch.load(path, *args, **options)
    folder = Path(path, Path(path, "latest").read_text().strip())
    partitioned = folder / "zero_pp_rank_0_mp_rank_00_model_states.pt"
    file = partitioned if partitioned.exists() else folder / "mp_rank_00_model_states.pt"
    saved = torch.load(file, *args, **{**options, "weights_only": False})
    weights = saved["module"] if file != partitioned else get_fp32_state_dict_from_zero_checkpoint(str(path))
    found = saved["script"]["content"]
    for place, name in saved["script"]["weights"]:
        put(found, place, weights[name].detach())
    for place, groups in saved["script"]["optimizers"]:
        put(found, place, EngineState(state={}, param_groups=[{**group, "directory": str(path)} for group in groups]))
    return found


class EngineState(dict[str, Any]):
    """An optimizer's state in a script's dictionary: options only, as the engine itself saves and loads the rest."""

    def __reduce_ex__(self, protocol: Any) -> Any:
        """Refuse to be pickled or copied."""
        raise RuntimeError(
            "the optimizer's state is in the engine: put it into the dictionary that save_checkpoint saves"
        )


class EngineWeight(torch.Tensor):
    """A weight that ZeRO 3 has partitioned, in a script's dictionary."""

    parameter: Any

    def __reduce_ex__(self, protocol: Any) -> Any:
        """Refuse to be pickled or copied."""
        raise RuntimeError(
            "a weight was not gathered: call gather_checkpoint(engine, optimizer=False) on all ranks before"
        )


class DirectoryCheckpoints(TorchCheckpoints):
    """Takes files of torch's as ever; what is saved with the optimizer's state is the engine's to save."""

    def __init__(self, engine: Any, groups: Any) -> None:
        super().__init__(engine, groups, timeout=300.0)
        self.is_engine_at_work = False
        self._teach()
        early = {group.pop("directory", None) for group in self.optimizer.param_groups}  # torch keeps what it is given
        for path in early - {None}:
            self._load(path)

    def _teach(self) -> None:
        self.optimizer.state_dict, self.optimizer.load_state_dict = self.state_dict, self.load_state_dict

    @contextlib.contextmanager
    def _engine_at_work(self) -> Iterator[None]:
        """For DeepSpeed itself the optimizer and the module are what they were."""
        del self.optimizer.state_dict, self.optimizer.load_state_dict
        self.is_engine_at_work = True
        yield
        self.is_engine_at_work = False
        self._teach()

    def state_dict(self) -> dict[str, Any]:
        """What ``optimizer.state_dict()`` returns now."""
        if hasattr(self, "groups"):
            return EngineState(state={}, param_groups=self._numbered()[0])
        return EngineState({**type(self.optimizer).state_dict(self.optimizer), "state": {}})

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """What ``optimizer.load_state_dict()`` does now."""
        if isinstance(state_dict, EngineState):
            self._load(state_dict["param_groups"][0]["directory"])
        elif hasattr(self, "groups"):
            super().load_state_dict(state_dict)
        else:
            type(self.optimizer).load_state_dict(self.optimizer, state_dict)

    def weight(self, parameter: Any) -> Any:
        """A weight that ZeRO 3 has partitioned: whole if it was gathered, else for ``write`` alone."""
        if self.is_engine_at_work:
            return parameter.data
        if self.gathered is not None and self.gathered_at == self.engine.global_steps:
            return super().weight(parameter)
        found = parameter.data.as_subclass(EngineWeight)
        found.parameter = parameter
        return found

    def meet(self, what: str) -> None:
        """Nothing is gathered without ``gather_checkpoint``."""

    def write(self, path: str, content: Any) -> None:
        """Write the directory, beside the one that it replaces."""
        names = {parameter: name for name, parameter in self.engine.module.named_parameters()}
        places = {parameter.data_ptr(): name for parameter, name in names.items() if parameter.numel()}
        script: dict[str, Any] = {"weights": [], "optimizers": []}

        def of_script(place: tuple[Any, ...], value: Any) -> Any:
            if isinstance(value, EngineState):
                script["optimizers"].append((place, value["param_groups"]))
            elif isinstance(value, EngineWeight):
                script["weights"].append((place, names[value.parameter]))
            elif torch.is_tensor(value) and value.numel() and value.data_ptr() in places:
                script["weights"].append((place, places[value.data_ptr()]))
            else:
                return value
            return None

        script["content"] = replaced(content, of_script)
        new = f"{path}.new"
        with self._engine_at_work():
            self.engine.save_checkpoint(new, client_state={"script": script})
        dist.barrier()
        if not (self.engine.local_rank if self.engine.use_node_local_storage() else self.engine.global_rank):
            if os.path.lexists(path):
                remove_checkpoint(path)
            Path(new).replace(path)
        dist.barrier()

    def _load(self, path: str) -> None:
        groups = list(self.optimizer.param_groups)
        with self._engine_at_work():
            self.engine.load_checkpoint(path)
        for known, loaded in zip(groups, self.optimizer.param_groups):
            known.update(loaded)
        self.optimizer.param_groups[:] = groups  # which a scheduler may hold
        if self.zero is not self.optimizer:
            self.zero.clip_grad = self.engine.gradient_clipping()  # what the config says, not what the directory says
        self.gathered = None


def holds_state(content: Any) -> bool:
    """Whether the optimizer's state is in a dictionary, or in one in it."""
    return isinstance(content, EngineState) or (isinstance(content, dict) and any(map(holds_state, content.values())))


def replaced(content: Any, other: Any, place: tuple[Any, ...] = ()) -> Any:
    """Dictionaries in each other with ``other(place, value)`` for each value; those that stay the same are the same."""
    if not isinstance(content, dict) or isinstance(content, EngineState):
        return other(place, content)
    found = {key: replaced(value, other, (*place, key)) for key, value in content.items()}
    return content if all(found[key] is value for key, value in content.items()) else found


def put(content: Any, place: tuple[Any, ...], value: Any) -> None:
    """Put a value where ``replaced`` took one out."""
    for key in place[:-1]:
        content = content[key]
    content[place[-1]] = value


def copy_path(source: str, target: str) -> None:
    """Copy a directory or a file over another one, or into a folder that is no checkpoint."""
    if Path(target).is_dir() and not Path(target, "latest").exists():
        target = str(Path(target, Path(source).name))
    if Path(source).is_dir():
        if os.path.lexists(target):
            remove_checkpoint(target)
        shutil.copytree(source, target)
    else:
        shutil.copy(source, target)
