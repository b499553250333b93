"""One config file per entry script: its name where several scripts share a directory, and whether it may be written."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from dsmigrate.codemod.model import Options
from dsmigrate.files.diff import unified
from dsmigrate.files.reading import read_if_there
from dsmigrate.migration.job import Job, Outcome


@dataclass(frozen=True, slots=True)
class ConfigFile:
    """A config to write. ``former`` is what lies at ``path`` now, None where nothing does.

    ``differs`` says that ``former`` is there and means something else, so that writing would replace it.
    """

    path: Path
    text: str
    former: bytes | None
    differs: bool

    @property
    def is_new(self) -> bool:
        """Whether nothing lies at ``path`` yet."""
        return self.former is None

    def diff(self, name: str) -> str:
        """Return the unified diff from what lies there to the new config; "" where both mean the same."""
        if self.is_new:
            return unified(None, self.text, name)
        return unified((self.former or b"").decode("utf-8", "replace"), self.text, name) if self.differs else ""


def render(config: Mapping[str, Any]) -> str:
    """Return the config as strict JSON with a final newline; raises ValueError for what JSON does not have (NaN)."""
    return json.dumps(config, indent=4, ensure_ascii=False, allow_nan=False) + "\n"


def config_at(path: Path, config: Mapping[str, Any]) -> ConfigFile:
    """Compare a config with what lies at ``path``; raises SourceError when that cannot be read."""
    text, former = render(config), read_if_there(path)
    return ConfigFile(path, text, former, differs=former is not None and means_otherwise(former, config))


def to_rename(outcomes: Iterable[Outcome]) -> dict[int, Options]:
    """Return new options, by index, for the scripts that would write different configs to one path.

    Each of them gets a config named after it: ``ds_config.train.json`` for ``train.py``.
    """
    by_path: dict[Path, list[tuple[int, Job, Outcome]]] = defaultdict(list)
    for index, outcome in enumerate(outcomes):
        maker = with_config(outcome)
        if maker is not None:
            by_path[config_path(maker.job)].append((index, outcome.job, maker))
    renamed = {}
    for sharing in by_path.values():
        makers = {maker.job.path for _, _, maker in sharing}
        if len(makers) > 1 and any(maker.result.config != sharing[0][2].result.config for _, _, maker in sharing):
            for index, job, _ in sharing:
                renamed[index] = _named_after(job)
    return renamed


def with_config(outcome: Outcome) -> Outcome | None:
    """The file of a conversion that makes the engine, which the config lies beside; None where there is no config."""
    return next((one for one in (outcome, *outcome.modules) if one.result.config is not None), None)


def config_path(job: Job) -> Path:
    """Return where the config of a file that makes an engine goes when the file is rewritten in place."""
    return job.path.parent / job.options.config_name


def _named_after(job: Job) -> Options:
    name = Path(job.options.config_name)
    return replace(job.options, config_name=f"{name.stem}.{job.path.stem}{name.suffix}")


def means_otherwise(former: bytes, config: Mapping[str, Any]) -> bool:
    """Whether what lies somewhere is another config than this one."""
    import hjson  # noqa: PLC0415 - only where a config lies there already

    try:
        found = hjson.loads(former.decode("utf-8"))
    except (ValueError, RecursionError):
        return True
    return not isinstance(found, dict) or json.dumps(found, sort_keys=True) != json.dumps(dict(config), sort_keys=True)
