"""The compiled facts on disk, one file at a time and each at most once."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from typing import Any

from dsmigrate.knowledge import paths
from dsmigrate.languages import ENGLISH, forgotten, spoken
from dsmigrate.schemas_location import schema_json

FOLDER = "deepspeed/compiled"
INDEX = "index"
TOP_LEVEL = "top_level"


@functools.cache
def load(name: str) -> Mapping[str, Any]:
    """Return the content of ``schemas/deepspeed/compiled/<name>.json``, with its prose in the spoken language.

    Raises FileNotFoundError when the installation lacks it.
    """
    content = schema_json(f"{FOLDER}/{name}.json")
    assert isinstance(content, dict)  # noqa: S101 - our own file
    return content if spoken() == ENGLISH else _in_spoken(content, name)


forgotten(load.cache_clear)


def _in_spoken(content: dict[str, Any], name: str) -> Mapping[str, Any]:
    """Return a file with its prose in the spoken language, as far as there is any."""
    from dsmigrate.knowledge.translation import translated  # noqa: PLC0415 - English readers need none of it

    try:
        texts = schema_json(f"{FOLDER}/{spoken()}/{name}.json")
    except FileNotFoundError:
        return content
    return translated(content, texts)


def file_of(path: str) -> str:
    """Return the name of the file that holds the key ``path``: that of its section, else of the top-level scalars."""
    section = path.partition(".")[0].removesuffix(paths.ANY_ELEMENT)
    return section if section in index()["files"] else TOP_LEVEL


def index() -> Mapping[str, Any]:
    """Return the index: releases, files, paths, aliases, the names of types, consumers."""
    return load(INDEX)


@functools.cache
def paths_known() -> frozenset[str]:
    """Return the path of every key that any release knew."""
    return frozenset(index()["paths"])


@functools.cache
def children() -> Mapping[str, Sequence[str]]:
    """Return the paths inside each section, by the path of the section; "" is the top level."""
    found: dict[str, list[str]] = {}
    for path in index()["paths"]:
        found.setdefault(paths.parent(path), []).append(path)
    return found


@functools.cache
def names() -> Mapping[str, Sequence[str]]:
    """Return the paths that end in each name, by the name in lower case."""
    found: dict[str, list[str]] = {}
    for path in index()["paths"]:
        found.setdefault(paths.name(path).lower(), []).append(path)
    return found
