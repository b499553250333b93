"""From flags and settings to the ``Options`` of a migration."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from dsmigrate.codemod.model import Options
from dsmigrate.files.paths import resolved
from dsmigrate.files.reading import read
from dsmigrate.files.text import SourceError
from dsmigrate.settings.errors import SettingsError
from dsmigrate.settings.fields import SETTINGS, Value
from dsmigrate.settings.planning import NAMES, planned
from dsmigrate.settings.toml import settings_for

_OTHERS = {"config", *NAMES}
"""Settings that are no options of the codemod, but lead to some."""


@dataclass(frozen=True, slots=True)
class Resolved:
    """The options for one script, and the path of the config they fit it to, if any."""

    options: Options
    config_file: Path | None = None


def resolve(folder: Path, flags: Mapping[str, Value]) -> Resolved:
    """Return the options for a script in ``folder``: its settings file's, overridden by ``flags``.

    Raises SettingsError for a setting that is not allowed, settings that contradict each other, and a ``config`` that
    DeepSpeed's own loader would not read.
    """
    settings, _ = settings_for(folder)
    merged = {**settings, **{name: SETTINGS[name].check(value, f"--{name}") for name, value in flags.items()}}
    fields: dict[str, Any] = {name.replace("-", "_"): value for name, value in merged.items() if name not in _OTHERS}
    options = Options(**fields)
    config_file = Path(str(merged["config"])) if "config" in merged else None
    if config_file is not None:
        options = replace(options, config=read_config(config_file))
        if "config-name" not in merged and resolved(config_file).parent == resolved(folder):
            options = replace(options, config_name=config_file.name)
    options = planned(options, merged)
    _check_together(options)
    return Resolved(options, config_file)


def _check_together(options: Options) -> None:
    if options.offload == "nvme" and options.zero_stage != 3 and options.config is None:
        raise SettingsError("offload nvme needs ZeRO stage 3, below it DeepSpeed offloads to the CPU: --zero-stage 3")
    if options.offload == "nvme" and not options.nvme_path:
        raise SettingsError("offload nvme needs a directory on the NVMe disk: write --nvme-path DIR")
    if options.offload == "cpu" and options.zero_stage == 0:
        raise SettingsError("offload cpu needs ZeRO stage 1, 2 or 3: at stage 0 DeepSpeed ignores it")
    name = options.config_name
    if Path(name).name != name or name == "..":
        raise SettingsError(f"config-name {name!r} is not a file name; the config lies beside the script")


@functools.cache
def read_config(file: Path) -> Mapping[str, Any]:
    """Read a DeepSpeed config as DeepSpeed does: Hjson, duplicate keys refused, an object at the top.

    Raises SettingsError with the file and what is wrong with it.
    """
    import hjson  # noqa: PLC0415 - only runs with a config pay for it

    try:
        found = hjson.loads(read(file).decode(), object_pairs_hook=_without_duplicates)
    except SourceError as error:
        raise SettingsError(f"--config {file}: {error.message}") from None
    except UnicodeDecodeError as error:
        raise SettingsError(f"--config {file}: not UTF-8 text: {error.reason}") from None
    except hjson.HjsonDecodeError as error:
        raise SettingsError(f"--config {file}: not JSON: {error}") from None
    except RecursionError:
        raise SettingsError(f"--config {file}: nested too deeply") from None
    except ValueError as error:
        raise SettingsError(f"--config {file}: {error}") from None
    if not isinstance(found, dict):
        raise SettingsError(f"--config {file}: a DeepSpeed config is an object, this is {type(found).__name__}")
    return found


def _without_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        names = [name for name, _ in pairs]
        twice = sorted({name for name in names if names.count(name) > 1})
        raise ValueError(f"duplicate keys, which DeepSpeed refuses: {', '.join(twice)}")
    return found
