"""The one comment of a pull request, made once and changed afterwards, and the suggestions at its lines."""

from __future__ import annotations

import enum
import json
import re
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dsmigrate.ci.suggest import Suggestion

LIMIT = 65_000
"""Characters; GitHub takes 65 536."""
_PAGE = 100
_PAGES = 50
_PATIENCE = 30
"""Seconds that a request may take."""
_REPOSITORY = re.compile(r"[A-Za-z0-9_.-]+/[A-Za-z0-9_.-]+")


class Posted(enum.Enum):
    """What became of the comment."""

    CREATED = "created"
    UPDATED = "updated"
    SAME = "left as it was"
    NOT_NEEDED = "not needed"


class CommentError(Exception):
    """GitHub did not take the comment; the message says why."""


@dataclass(frozen=True, slots=True)
class Api:
    """The REST interface of a GitHub: its address, the token, the repository ``owner/name``, and who comments."""

    address: str
    token: str
    repository: str
    author: str = "github-actions[bot]"

    def post(self, number: int, body: str, marker: str, *, needed: bool) -> Posted:
        """Write ``body``, whose first line is ``marker``, under the pull request ``number``.

        A comment of ``author`` that begins with the marker is changed; nobody else's is touched. Where there is none,
        one is made if it is ``needed``. Raises CommentError.
        """
        for comment in self._listed(f"issues/{number}/comments"):
            who = comment.get("user") or {}
            if who.get("login") == self.author and str(comment.get("body", "")).startswith(marker):
                if _plain(comment["body"]) == body.strip():
                    return Posted.SAME
                self._ask("PATCH", f"issues/comments/{int(comment['id'])}", {"body": body})
                return Posted.UPDATED
        if not needed:
            return Posted.NOT_NEEDED
        self._ask("POST", f"issues/{number}/comments", {"body": body})
        return Posted.CREATED

    def suggest(self, number: int, commit: str, found: Sequence[Suggestion]) -> int:
        """Write as one review those suggestions that are not there yet, and return how many; raises CommentError."""
        if not found:
            return 0
        there = {(one.get("path"), _plain(one.get("body"))) for one in self._listed(f"pulls/{number}/comments")}
        comments = [_placed(one) for one in found if (one.path, _plain(one.body)) not in there]
        if comments:
            body = {"commit_id": commit, "event": "COMMENT", "comments": comments}
            self._ask("POST", f"pulls/{number}/reviews", body)
        return len(comments)

    def _listed(self, path: str) -> Iterator[dict[str, Any]]:
        for page in range(1, _PAGES + 1):
            found = self._ask("GET", f"{path}?per_page={_PAGE}&page={page}")
            if not isinstance(found, list):
                raise CommentError("GitHub answers with something that is no list of comments")
            yield from (comment for comment in found if isinstance(comment, dict))
            if len(found) < _PAGE:
                return

    def _ask(self, method: str, path: str, body: Mapping[str, object] | None = None) -> object:
        if not _REPOSITORY.fullmatch(self.repository):
            raise CommentError(f"{self.repository!r} is no repository")
        if not self.address.startswith(("https://", "http://localhost", "http://127.0.0.1")):
            raise CommentError(f"a token is not sent to {self.address}, which is not https")
        request = urllib.request.Request(  # noqa: S310 - the scheme is looked at above
            f"{self.address}/repos/{self.repository}/{path}",
            data=None if body is None else json.dumps(body).encode(),
            method=method,
            headers={
                "Authorization": f"Bearer {self.token}",
                "Accept": "application/vnd.github+json",
                "Content-Type": "application/json",
                "X-GitHub-Api-Version": "2022-11-28",
                "User-Agent": "dsmigrate",
            },
        )
        try:
            with urllib.request.urlopen(request, timeout=_PATIENCE) as answer:  # noqa: S310
                return json.loads(answer.read() or b"null")
        except urllib.error.HTTPError as error:
            error.close()
            why = "; the job needs `permissions: pull-requests: write`" if error.code in {401, 403, 404} else ""
            raise CommentError(f"GitHub answers {error.code} to {method} {path.partition('?')[0]}{why}") from None
        except (OSError, ValueError) as error:
            raise CommentError(f"GitHub cannot be asked: {error}") from None


def _plain(body: object) -> str:
    """Return the text of a comment, whose line ends GitHub changes."""
    return str(body).replace("\r\n", "\n").strip()


def _placed(one: Suggestion) -> dict[str, object]:
    several = {"start_line": one.first, "start_side": "RIGHT"} if one.first < one.last else {}
    return {"path": one.path, "body": one.body, "line": one.last, "side": "RIGHT", **several}
