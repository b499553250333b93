"""Classes of installed libraries that run backward and step for a script, written out so that they can be converted.

A script that leaves the loop to such a class has half of its training in a file that must not be changed. What the
class does is known, so that it is read as if it stood in the project; its converted form goes into the script that
uses it, and the library stays as it is.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Library:
    """Modules of a library that give the same ``names``, and the source that stands for them.

    ``write`` makes the source from the texts of the scripts that may use it, so that it holds no branch that none of
    them can reach. ``source`` says where the behaviour was read.
    """

    modules: frozenset[str]
    names: tuple[str, ...]
    write: Callable[[Iterable[str]], str]
    source: str


def path_of(module: str) -> str | None:
    """The path under which a library's module is read; None for a module that is not known."""
    found = next((library for library in LIBRARIES if module in library.modules), None)
    return None if found is None else f"<{min(found.modules, key=len)}>"


def named_in(text: str) -> bool:
    """Whether a script may use a library's module that is known, as far as a search for its name tells."""
    return any(name in text for library in LIBRARIES for name in library.names)


def is_library(path: str) -> bool:
    """Whether a path stands for a library's module."""
    return path.startswith("<")


def written(path: str, texts: Iterable[str]) -> bytes:
    """The source that stands for a library's module among the given scripts."""
    module = path.strip("<>")
    return next(library.write(texts) for library in LIBRARIES if module in library.modules).encode()


_DEVICE_IS_GIVEN = re.compile(r"\bNativeScaler\(\s*[^\s)]")

_SCALERS = '''\
import torch

from timm.utils import dispatch_clip_grad  # if mode


class NativeScaler:
    """What timm's scaler of this name does, with the engine to run backward and step."""

    state_dict_key = "amp_scaler"

    def __init__(self):  # if not device
        self._scaler = torch.cuda.amp.GradScaler()  # if not device
    def __init__(self, device="cuda"):  # if device
        self._scaler = torch.amp.GradScaler(device=device)  # if device

    def __call__(
        self,
        loss,
        optimizer,
        clip_grad=None,
        clip_mode="norm",
        parameters=None,
        create_graph=False,
        need_update=True,  # if update
    ):
        self._scaler.scale(loss).backward(create_graph=create_graph)
        if need_update:  # if update
            if clip_grad is not None:  # in update
                assert parameters is not None  # in update if mode
                assert clip_mode == "norm"  # in update if not mode
                assert parameters is not None  # in update if not mode
                self._scaler.unscale_(optimizer)  # in update
                dispatch_clip_grad(parameters, clip_grad, mode=clip_mode)  # in update if mode
                torch.nn.utils.clip_grad_norm_(parameters, clip_grad)  # in update if not mode
            self._scaler.step(optimizer)  # in update
            self._scaler.update()  # in update

    def state_dict(self):
        return self._scaler.state_dict()

    def load_state_dict(self, state_dict):
        self._scaler.load_state_dict(state_dict)
'''
_APEX = '''

class ApexScaler:
    """What timm's scaler of this name does, by torch's own scaler: DeepSpeed has no apex amp."""

    state_dict_key = "amp"

    def __init__(self):
        self._scaler = torch.cuda.amp.GradScaler()

    def __call__(
        self,
        loss,
        optimizer,
        clip_grad=None,
        clip_mode="norm",
        parameters=None,
        create_graph=False,
        need_update=True,  # if update
    ):
        self._scaler.scale(loss).backward(create_graph=create_graph)
        if need_update:  # if update
            if clip_grad is not None:  # in update
                assert clip_mode == "norm"  # in update if not mode
                self._scaler.unscale_(optimizer)  # in update
                parameters = [p for group in optimizer.param_groups for p in group["params"]]  # in update
                dispatch_clip_grad(parameters, clip_grad, mode=clip_mode)  # in update if mode
                torch.nn.utils.clip_grad_norm_(parameters, clip_grad)  # in update if not mode
            self._scaler.step(optimizer)  # in update
            self._scaler.update()  # in update

    def state_dict(self):
        return self._scaler.state_dict()

    def load_state_dict(self, state_dict):
        self._scaler.load_state_dict(state_dict)
'''
_SIGN = re.compile(r"  # (in update)? ?(?:if (not )?(\w+))?$")


def _timm_scalers(texts: Iterable[str]) -> str:
    """Timm's scalers: objects that are called with the loss and the optimizer, and keep the state of what they wrap."""
    together = "\n".join(texts)
    holds = {
        "update": "need_update" in together,
        "mode": "clip_mode" in together,
        "device": bool(_DEVICE_IS_GIVEN.search(together)),
        "apex": "ApexScaler" in together,
    }
    lines = []
    for line in (_SCALERS + (_APEX if holds["apex"] else "")).splitlines():
        sign = _SIGN.search(line)
        if sign is None:
            lines.append(line)
        elif sign[3] is None or holds[sign[3]] is (sign[2] is None):
            text = line[: sign.start()]
            lines.append(text[4:] if sign[1] and not holds["update"] else text)
    return "\n".join(lines) + "\n"


LIBRARIES = (
    Library(
        frozenset({"timm.utils", "timm.utils.cuda"}),
        ("NativeScaler", "ApexScaler"),
        _timm_scalers,
        "timm/utils/cuda.py, 0.3 to 1.0: the device came with 1.0, need_update with 0.9",
    ),
)
