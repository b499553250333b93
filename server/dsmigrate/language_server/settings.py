"""What the editor asks for: the settings of ``dsmigrate check`` and a few of the editor's own.

Per folder, from least to most: the settings file (``dsmigrate.toml``, ``pyproject.toml``), ``initializationOptions`` or
what the client answers to ``workspace/configuration``, and what commands changed in this session. Names may be written
as in settings files (``world-size``) or as editors do (``worldSize``).
"""

from __future__ import annotations

import enum
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from dsmigrate.checking.trained import with_model
from dsmigrate.rules import Facts
from dsmigrate.settings.check import NAMES, CheckSettings, check_settings_for, with_setting
from dsmigrate.settings.errors import SettingsError

SECTION = "dsmigrate"
_UPPER = re.compile(r"(?<=[a-z0-9])([A-Z])")


class SyntaxOwner(enum.Enum):
    """Who reports text that is no JSON: the client's own JSON support, this server, or what the client seems to do."""

    AUTO = "auto"
    SERVER = "server"
    CLIENT = "client"


@dataclass(frozen=True, slots=True)
class EditorSettings:
    """Settings in force for one folder; ``errors`` are those that could not be used, each said once."""

    check: CheckSettings = field(default_factory=CheckSettings)
    enable: bool = True
    inlay_hints: bool = True
    code_lens: bool = True
    workspace_diagnostics: bool = True
    syntax_errors: SyntaxOwner = SyntaxOwner.AUTO
    interpreter: Path | None = None
    """The Python whose DeepSpeed is the target, where no release is asked for."""
    errors: tuple[str, ...] = ()


_SWITCHES = {
    "enable": "enable",
    "inlay-hints": "inlay_hints",
    "code-lens": "code_lens",
    "workspace-diagnostics": "workspace_diagnostics",
}
_KNOWN = frozenset({*_SWITCHES, "syntax-errors", "interpreter", *NAMES})
_CLIENTS_OWN = frozenset({"trace", "server", "import-strategy", "log-level", "path", "environment"})
"""Settings that extensions keep in the same section for themselves."""


def settings_for(folder: Path | None, layers: tuple[Mapping[str, Any], ...]) -> EditorSettings:
    """Return the settings for a folder: of its settings file, then of each of ``layers``; what is wrong is left out.

    None in a later layer takes back what an earlier one says.
    """
    errors: list[str] = []
    check = CheckSettings()
    if folder is not None:
        try:
            check = check_settings_for(folder)
        except SettingsError as error:
            errors.append(str(error))
    settings = EditorSettings(check=check)
    for name, value in {kebab(str(name)): value for layer in layers for name, value in layer.items()}.items():
        if value is None:
            continue
        try:
            settings = _with(settings, name, value)
        except SettingsError as error:
            errors.append(str(error))
    settings = replace(settings, check=_located(settings.check, folder))
    try:
        with_model(Facts(parameters=settings.check.parameters), settings.check, folder)
    except SettingsError as error:
        errors.append(str(error))
    return replace(settings, errors=tuple(dict.fromkeys(errors)))


def _located(asked: CheckSettings, folder: Path | None) -> CheckSettings:
    """Return settings with paths from the settings file, else from ``folder``: an editor's own place means nothing."""
    place = asked.base or folder
    if place is None:
        return asked
    model, trains = asked.model, asked.trainable
    return replace(
        asked,
        model=None if model is None else place / model,
        trainable=str(place / trains) if trains is not None and (place / trains).exists() else trains,
    )


def kebab(name: str) -> str:
    """Return ``world-size`` for ``worldSize`` and ``world_size``."""
    return _UPPER.sub(r"-\1", name).replace("_", "-").lower()


def section(options: object) -> Mapping[str, Any]:
    """Return our settings out of what a client sends: the section of our name, or settings without one around them.

    Of the latter only names that are ours are taken: they may be meant for any server.
    """
    if not isinstance(options, Mapping):
        return {}
    inner = options.get(SECTION)
    if isinstance(inner, Mapping):
        return inner
    return {name: value for name, value in options.items() if kebab(str(name)) in _KNOWN}


def _with(settings: EditorSettings, name: str, value: object) -> EditorSettings:
    if name in _CLIENTS_OWN or value in ("", [], {}):
        return settings
    if name in _SWITCHES:
        if not isinstance(value, bool):
            raise SettingsError(f"{SECTION}.{name} {value!r} is neither true nor false")
        changed: dict[str, Any] = {_SWITCHES[name]: value}
        return replace(settings, **changed)
    if name == "syntax-errors":
        try:
            return replace(settings, syntax_errors=SyntaxOwner(value))
        except ValueError:
            allowed = ", ".join(owner.value for owner in SyntaxOwner)
            raise SettingsError(f"{SECTION}.{name} {value!r} does not exist; allowed: {allowed}") from None
    if name == "interpreter":
        if not isinstance(value, str):
            raise SettingsError(f"{SECTION}.{name} {value!r} is not a path")
        return replace(settings, interpreter=Path(value))
    return replace(settings, check=with_setting(settings.check, name, value, f"{SECTION}: "))
