"""Which documents are ours: configs by name and content, scripts by language."""

from __future__ import annotations

import enum
import re
from pathlib import PurePath
from typing import TYPE_CHECKING

from dsmigrate.checking.recognise import STRONG, SUFFIXES, USUAL, YAML, is_config, is_config_name

if TYPE_CHECKING:
    from dsmigrate.language_server.documents import OpenDocument
    from dsmigrate.settings.check import CheckSettings

LANGUAGES = frozenset({"json", "jsonc", "json5", "hjson"})
"""Language ids of editors for what a config may be written in."""
_TELLING = re.compile("|".join(sorted({*STRONG, *USUAL, "fp16", "bf16"})))
"""What a text must hold to be looked at more closely: every sign of a config is one of these words."""


class Kind(enum.Enum):
    """What a document may be."""

    JSON = "json"
    YAML = "yaml"
    PYTHON = "python"
    OTHER = "other"


def kind_of(name: str, language: str) -> Kind:
    """Return what a document may be, by the client's language id or its ending; editors name modes as they like."""
    suffix = PurePath(name).suffix.lower()
    if language in LANGUAGES or suffix in SUFFIXES:
        return Kind.JSON
    if language == "yaml" or suffix in YAML:
        return Kind.YAML
    return Kind.PYTHON if language == "python" or suffix == ".py" else Kind.OTHER


def recognise(document: OpenDocument, settings: CheckSettings) -> bool:
    """Return whether a document is a config, and remember a yes.

    The globs of the settings come first; else the file's name with its content, as ``dsmigrate check`` decides. A text
    without any telling word is not even parsed.
    """
    if document.is_config or document.kind is not Kind.JSON:
        return document.is_config
    path = document.path
    if path is not None and any(settings.matches(path, glob) for glob in settings.exclude):
        return False
    if path is not None and any(settings.matches(path, glob) for glob in settings.include):
        document.is_config = True
    elif is_config_name(document.name) or _TELLING.search(document.text):
        document.is_config = is_config(_with_suffix(document.name), document.tree)
    return document.is_config


def _with_suffix(name: str) -> str:
    """Return a name that counts as JSON: what the language id says wins over the ending."""
    return name if PurePath(name).suffix.lower() in SUFFIXES else f"{name}.json"
