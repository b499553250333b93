"""The settings as flags of ``migrate`` and ``verify``, and flags as words of a command line."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, TypeVar

import click

from dsmigrate.settings.fields import SETTINGS

_Function = TypeVar("_Function", bound=Callable[..., Any])
_METAVARS = {"target-version": "VERSION", "config-name": "NAME", "params": "N", "gpu-memory": "GIB", "gpus": "N"}
CONVERSION = tuple(name for name in SETTINGS if name not in {"config-name", "with-launchers", "launcher"})
"""The settings that decide how the converted script trains."""


def setting_options(names: Iterable[str]) -> Callable[[_Function], _Function]:
    """Give a command the flags of some settings."""

    def decorated(command: _Function) -> _Function:
        for name in reversed(list(names)):
            command = _option(name)(command)
        return command

    return decorated


def _option(name: str) -> Callable[[_Function], _Function]:
    setting = SETTINGS[name]
    if setting.kind is bool:
        return click.option(f"--{name}", is_flag=True, default=None, help=setting.help)
    metavar = "|".join(map(str, setting.choices)) or _METAVARS.get(name, "PATH")
    return click.option(f"--{name}", type=int if setting.kind is int else str, metavar=metavar, help=setting.help)


def as_arguments(flags: Mapping[str, Any]) -> Iterator[str]:
    """The words that give some settings on a command line."""
    for name, value in flags.items():
        yield from (f"--{name}",) if value is True else (f"--{name}", str(value))
