"""From what a person typed to what is meant: a code, a key, a type, a parameter of one, or a pasted message."""

from __future__ import annotations

import difflib
import re
from collections.abc import Sequence
from dataclasses import dataclass

from dsmigrate.codemod.model import Idea
from dsmigrate.convert.explained import Explained, every_conversion
from dsmigrate.diff.registry import Explanation, every_explanation
from dsmigrate.knowledge import Key, Knowledge, Parameter, TypeFacts
from dsmigrate.knowledge.bugs import Bug, bug, every_bug
from dsmigrate.languages import say
from dsmigrate.messages import Match
from dsmigrate.messages import find as find_messages
from dsmigrate.messages import nearest as nearest_messages
from dsmigrate.migration.catalogue import every_idea
from dsmigrate.rules import Rule, every_rule

CODES = "codes"
_CODE = re.compile(r"\d{3}|(?:MG|DS|DF|CV)\d{1,4}", re.IGNORECASE)
_KINDS = ("optimizer", "scheduler")
_FEW_WORDS = 8
"""Of a longer text without a known message so many words are said again."""


class NothingToExplainError(Exception):
    """A word that is no code, key or type; the message names what is near."""


@dataclass(frozen=True, slots=True)
class ParameterOf:
    """A parameter with the types that take it, the most used first."""

    name: str
    owners: tuple[TypeFacts, ...]

    @property
    def described(self) -> Sequence[tuple[TypeFacts, Parameter]]:
        """The parameter as each type has it."""
        return [(facts, facts.parameters[self.name]) for facts in self.owners]


@dataclass(frozen=True, slots=True)
class Overview:
    """No word at all: the sections, or every code."""

    keys: tuple[Key, ...] = ()
    codes: tuple[Idea, ...] = ()
    rules: tuple[Rule, ...] = ()
    explanations: tuple[Explanation, ...] = ()
    conversions: tuple[Explained, ...] = ()


@dataclass(frozen=True, slots=True)
class Messages:
    """What is known of a pasted text, the most telling first; ``near`` if the text is only like these."""

    matches: tuple[Match, ...]
    near: bool = False


Code = Idea | Rule | Explanation | Explained
Subject = Code | Key | TypeFacts | ParameterOf | Bug | Overview | Messages


def find(word: str | None, known: Knowledge) -> Subject:
    """Return what ``word`` stands for; the overview of sections for None, of codes for "codes".

    Raises NothingToExplainError, which suggests what is near.
    """
    if word is None:
        return Overview(keys=known.children())
    asked = word.strip().strip("`\"'")
    if asked.lower() == CODES:
        return Overview(
            codes=tuple(every_idea()),
            rules=every_rule(),
            explanations=every_explanation(),
            conversions=every_conversion(),
        )
    if _CODE.fullmatch(asked):
        return _code(asked)
    found = (
        _key(asked, known)
        or _type(asked, known)
        or _parameter(asked, known)
        or bug(asked.lower())
        or _only_one(asked, known)
    )
    if found is None and len(asked.split()) > 1:
        return _messages(word, known)
    if found is None:
        raise NothingToExplainError(_missing(asked, known))
    return found


def _messages(text: str, known: Knowledge) -> Messages:
    """Return the known messages in a text of several words; raises NothingToExplainError where there is none."""
    found = find_messages(text)
    if found:
        return Messages(tuple(found))
    near = nearest_messages(text)
    if near:
        return Messages(tuple(near), near=True)
    words = text.split()
    if len(words) <= _FEW_WORDS:
        raise NothingToExplainError(_missing(" ".join(words), known))
    asked = " ".join(words[:_FEW_WORDS])
    raise NothingToExplainError(
        say("no known message is like {asked} …; `dsmigrate explain` lists the sections", asked=asked)
    )


def _code(asked: str) -> Code:
    codes: dict[str, Code] = {idea.code: idea for idea in every_idea()}
    codes |= {rule.code: rule for rule in every_rule()}
    codes |= {item.code: item for item in every_explanation()}
    codes |= {item.code: item for item in every_conversion()}
    for spelled in (asked.upper(), f"MG{asked}", f"DS{asked}", f"DF{asked}", f"CV{asked}"):
        if spelled in codes:
            return codes[spelled]
    near = difflib.get_close_matches(asked.upper(), codes, n=3, cutoff=0.6)
    hints = say(", ").join(f"{code} ({_title(codes[code])})" for code in near)
    start = say("there is no code {asked}", asked=asked)
    raise NothingToExplainError(
        say("{start}; near: {hints}", start=start, hints=hints)
        if hints
        else say("{start}; `dsmigrate explain codes` lists every code", start=start)
    )


def _title(code: Code) -> str:
    return code.title if isinstance(code, Idea) else code.name


def _key(asked: str, known: Knowledge) -> Key | None:
    return known.key(asked) or known.key(asked.lower())


def _only_one(asked: str, known: Knowledge) -> Key | None:
    """Return the key whose last name is ``asked``, if this release has a single one: ``stage``."""
    paths = known.ending_in(asked)
    return known.key(paths[0]) if len(paths) == 1 else None


def _type(asked: str, known: Knowledge) -> TypeFacts | None:
    kind, _, name = asked.partition(".")
    for wanted in _KINDS:
        look = known.optimizer if wanted == "optimizer" else known.scheduler
        found = look(name) if kind == wanted else look(asked) if "." not in asked else None
        if found is not None:
            return found
    return None


def _parameter(asked: str, known: Knowledge) -> ParameterOf | None:
    """``AdamW.lr``, ``optimizer.AdamW.lr``, ``optimizer.params.lr`` or ``scheduler.params.warmup_num_steps``."""
    owner, _, name = asked.rpartition(".")
    if not owner:
        return None
    one = _type(owner, known)
    if one is not None:
        return ParameterOf(name, (one,)) if name in one.parameters else None
    kind = owner.removesuffix(".params")
    if kind not in _KINDS or not owner.endswith(".params"):
        return None
    every = known.optimizers() if kind == "optimizer" else known.schedulers()
    owners = tuple(sorted((facts for facts in every if name in facts.parameters), key=lambda facts: facts.torch))
    return ParameterOf(name, owners) if owners else None


def _missing(asked: str, known: Knowledge) -> str:
    near = known.search(asked)
    titles = [f"{idea.code} ({idea.title})" for idea in every_idea() if asked.lower() in idea.title.lower()]
    near += difflib.get_close_matches(asked.lower(), [found.id for found in every_bug()], n=3, cutoff=0.7)
    hints = ", ".join([*near, *titles[: max(0, 5 - len(near))]])
    start = say("there is no key, type or code {asked}", asked=asked)
    return (
        say("{start}; near: {hints}", start=start, hints=hints)
        if hints
        else say("{start}; `dsmigrate explain` lists the sections", start=start)
    )
