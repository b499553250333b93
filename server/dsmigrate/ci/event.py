"""What GitHub says about the run: the event, the repository, the files to write to."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dsmigrate.diff.git import GitError, git, has_commit
from dsmigrate.files.reading import read

_COMMITS = "0123456789abcdef"

_LARGEST = 32 << 20
"""Bytes of an event; GitHub caps its own at 25 MB."""


class EventError(Exception):
    """The event cannot be worked on; the message says why and what to do."""


@dataclass(frozen=True, slots=True)
class Event:
    """A run of a workflow. ``number`` is that of the pull request; ``base`` and ``head`` are ids of commits, or "".

    ``fork`` says whether the pull request comes from another repository, whose runs get a token that only reads.
    """

    name: str
    repository: str
    number: int | None = None
    base: str = ""
    head: str = ""
    fork: bool = False


def read_event(environment: Mapping[str, str]) -> Event:
    """Return the event that ``GITHUB_EVENT_NAME`` and ``GITHUB_EVENT_PATH`` tell of.

    Raises EventError outside of GitHub Actions, for an event that is unreadable, and for ``pull_request_target``, which
    would hand a token that writes to a run about somebody else's code.
    """
    name, file = environment.get("GITHUB_EVENT_NAME", ""), environment.get("GITHUB_EVENT_PATH", "")
    if not name or not file:
        raise EventError("GITHUB_EVENT_NAME and GITHUB_EVENT_PATH are not set: this runs in GitHub Actions")
    if name == "pull_request_target":
        raise EventError("pull_request_target gives code of a fork a token that writes; use `on: pull_request`")
    try:
        payload = json.loads(read(Path(file), _LARGEST))
    except ValueError as error:
        raise EventError(f"the event in {file} cannot be read: {error}") from None
    if not isinstance(payload, dict):
        raise EventError(f"the event in {file} is no object")
    return _event(name, payload, environment.get("GITHUB_REPOSITORY", ""))


def _event(name: str, payload: dict[str, Any], repository: str) -> Event:
    if name == "pull_request":
        base, head = _at(payload, "pull_request", "base"), _at(payload, "pull_request", "head")
        number = payload.get("number")
        there = _text(_at(head, "repo"), "full_name")
        return Event(
            name,
            repository,
            number if isinstance(number, int) else None,
            _commit(base, "sha"),
            _commit(head, "sha"),
            fork=there != repository,
        )
    if name == "merge_group":
        group = _at(payload, "merge_group")
        return Event(name, repository, base=_commit(group, "base_sha"), head=_commit(group, "head_sha"))
    if name == "push":
        return Event(name, repository, base=_commit(payload, "before"), head=_commit(payload, "after"))
    return Event(name, repository)


def revisions(event: Event, folder: Path) -> str:
    """Return the range of commits of an event, as far as the clone has it.

    For a pull request it is what it adds to its base. Where a clone of depth 2 has nothing but the merge of both, that
    is compared with its first parent, which comes to the same. Raises EventError where commits are missing.
    """
    if not event.base or not event.head:
        raise EventError(f"a run for {event.name} has no two commits to compare: give --git BASE...HEAD")
    if has_commit(folder, event.base) and has_commit(folder, event.head):
        dots = "..." if event.name == "pull_request" and _have_base(event, folder) else ".."
        return f"{event.base}{dots}{event.head}"
    if event.name == "pull_request" and has_commit(folder, "HEAD^2") and has_commit(folder, "HEAD^1"):
        return "HEAD^1..HEAD"
    raise EventError(
        f"this clone lacks the commits {event.base[:9]} or {event.head[:9]}; "
        "give actions/checkout the input `fetch-depth: 0`"
    )


def _have_base(event: Event, folder: Path) -> bool:
    try:
        git(folder, "merge-base", event.base, event.head)
    except GitError:
        return False
    return True


def _at(payload: object, *names: str) -> dict[str, Any]:
    for name in names:
        payload = payload.get(name) if isinstance(payload, dict) else None
    return payload if isinstance(payload, dict) else {}


def _text(payload: Mapping[str, Any], name: str) -> str:
    value = payload.get(name)
    return value if isinstance(value, str) else ""


def _commit(payload: Mapping[str, Any], name: str) -> str:
    """Return the id of a commit, "" for what is none, the zeros of a new branch included."""
    value = _text(payload, name)
    return value if len(value) in {40, 64} and not value.strip(_COMMITS) and value.strip("0") else ""
