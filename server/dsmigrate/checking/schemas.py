"""JSON Schemas of a project for what its application puts into a config: those of the settings, and of ``$schema``."""

from __future__ import annotations

import functools
import json
from collections.abc import Iterator
from pathlib import Path

from dsmigrate.document import Document, Scalar
from dsmigrate.files.reading import read
from dsmigrate.files.text import SourceError
from dsmigrate.languages import say
from dsmigrate.rules import OwnSchema
from dsmigrate.settings.check import CheckSettings

_LARGEST = 1 << 22
_OURS = "deepspeed-config"
"""The name of the schemas of DeepSpeed's own keys, which the rules know better."""


def schemas_for(document: Document, settings: CheckSettings, folder: Path | None) -> tuple[OwnSchema, ...]:
    """Return the schemas that a config is held against; paths of settings are from the settings' file.

    An address on the web is not fetched.
    """
    return tuple(_schema(path, name) for path, name in dict.fromkeys(_named(document, settings, folder)))


def _named(document: Document, settings: CheckSettings, folder: Path | None) -> Iterator[tuple[Path, str]]:
    for name in settings.schemas:
        yield (settings.base or Path()) / name, name
    node = document.node_at(("$schema",)) if folder is not None and "$schema" in document.text else None
    value = node.value() if isinstance(node, Scalar) else None
    if folder is not None and isinstance(value, str) and value and "://" not in value and _OURS not in value:
        yield folder / value.partition("#")[0], value


def _schema(path: Path, name: str) -> OwnSchema:
    try:
        stamp = path.stat().st_mtime_ns
    except (OSError, ValueError):
        return OwnSchema(name, problem=say("no such file"))
    return _read(path, name, stamp)


@functools.lru_cache(maxsize=32)
def _read(path: Path, name: str, _stamp: int) -> OwnSchema:
    try:
        content = json.loads(read(path, _LARGEST))
    except SourceError as error:
        return OwnSchema(name, problem=error.message)
    except (ValueError, RecursionError) as error:
        return OwnSchema(name, problem=say("it is not JSON: {error}", error=error))
    return OwnSchema(name, content) if isinstance(content, dict) else OwnSchema(name, problem=say("it is no object"))
