"""The language that this process speaks, and its sentences."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping

from dsmigrate.schemas_location import schema_json

ENGLISH = "en"
LANGUAGES = (ENGLISH, "zh-CN")
"""The tags of the languages that there are."""

FOLDER = "locale/compiled"
_TRADITIONAL = frozenset({"hant", "tw", "hk", "mo"})


def _filled(template: str, filled: Mapping[str, object]) -> str:
    return template.format(**filled)


class _State:
    """What is spoken now: one language for the process, as a process talks to one reader."""

    __slots__ = ("fill", "forgets", "language", "sentences")

    def __init__(self) -> None:
        self.language = ENGLISH
        self.sentences: Mapping[str, str] | None = None
        self.fill: Callable[[str, Mapping[str, object]], str] = _filled
        self.forgets: list[Callable[[], object]] = []


_STATE = _State()


def say(template: str, /, **filled: object) -> str:
    """Return a sentence in the spoken language, with its names in braces filled in.

    A sentence without anything to fill in is taken as it is, braces included. One that the catalogue lacks stays
    English. Names that begin with ``en_`` hold what only English needs, such as the "s" of a plural.
    """
    sentences = _STATE.sentences
    if sentences is None:
        return template.format(**filled) if filled else template
    template = sentences.get(template, template)
    return _STATE.fill(template, filled) if filled else template


def mark(template: str) -> str:
    """Return a sentence as it is: one that stands in a table, and that ``say`` gets when it is used."""
    return template


def tag_of(locale: str | None) -> str:
    """Return the tag of the language that a reader with a locale gets: "zh-CN" for "zh-cn", "zh_CN.UTF-8", "zh-Hans".

    Traditional Chinese, as all that there is no catalogue for, is English.
    """
    parts = (locale or "").partition(".")[0].replace("_", "-").lower().split("-")
    if parts[0] == "zh" and not _TRADITIONAL & set(parts):
        return "zh-CN"
    return ENGLISH


def spoken() -> str:
    """Return the tag of the language that is spoken."""
    return _STATE.language


def use(language: str) -> None:
    """Speak another language from now on; what was kept in the former one is forgotten.

    Raises ValueError for a language that is not one of ``LANGUAGES``, FileNotFoundError when the installation lacks
    its catalogue.
    """
    if language not in LANGUAGES:
        raise ValueError(f"no catalogue for the language {language!r}")
    if language == _STATE.language:
        return
    _STATE.sentences = None if language == ENGLISH else _load(language)
    _STATE.fill = _filled if language == ENGLISH else _joining()
    _STATE.language = language
    for forget in _STATE.forgets:
        forget()


@contextlib.contextmanager
def using(language: str) -> Iterator[None]:
    """Speak a language for a while."""
    before = spoken()
    use(language)
    try:
        yield
    finally:
        use(before)


def forgotten(forget: Callable[[], object]) -> None:
    """Have ``forget`` called when the language changes: the ``cache_clear`` of what keeps sentences."""
    _STATE.forgets.append(forget)


def _load(language: str) -> Mapping[str, str]:
    sentences: dict[str, str] = schema_json(f"{FOLDER}/{language}.json")["sentences"]
    return sentences


def _joining() -> Callable[[str, Mapping[str, object]], str]:
    from dsmigrate.languages.joining import joined  # noqa: PLC0415 - of no use to English

    return joined
