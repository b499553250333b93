"""The language of what a command prints."""

from __future__ import annotations

from pathlib import Path

from dsmigrate.languages import ENGLISH, use
from dsmigrate.settings.check import CheckSettings, check_settings_for, with_setting


def speak(tag: str | None) -> None:
    """Speak the language of ``--lang``, else that of the settings of this folder, else English.

    The environment does not count: the output of a command is the same on every machine. Raises SettingsError.
    """
    settings = check_settings_for(Path()) if tag is None else with_setting(CheckSettings(), "lang", tag)
    use(settings.lang or ENGLISH)
