"""Text of others for people: what a terminal, a log or a page would act on is shown as an escape.

Keys, values, names of files and what other programs say reach terminals and the logs of CI. There an ESC starts a
command of the terminal, a bidi control swaps what is read, and a line that starts with ``::`` is a command of the
runner.
"""

from __future__ import annotations

import re

_CONTROLS = (
    "\x00-\x08\x0b-\x1f\x7f-\x9f"  # C0 but tab and line feed, DEL, C1
    "\xad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"  # unseen, or of direction
    "\ud800-\udfff\U000e0000-\U000e0fff"  # lone surrogates: bytes of a name that is not UTF-8; tags
)
_ACTS = re.compile(f"[{_CONTROLS}]")
_ACTS_OR_BREAKS = re.compile(f"[\t\n{_CONTROLS}]")
_COMMAND = re.compile(r"^(\s*)(?=::|##\[)(.)", re.MULTILINE)


def visible(text: str) -> str:
    r"""Return a text of one or many lines with escapes in place of controls: ``\x1b``, ``\u202e``."""
    return _ACTS.sub(_escape, text)


def visible_line(text: str) -> str:
    r"""Return a text that stays on its line: its tabs and line breaks are escapes too."""
    return _ACTS_OR_BREAKS.sub(_escape, text)


def no_command(text: str) -> str:
    r"""Return a text of which no line is a command of a CI runner: ``::error::`` starts with ``\x3a``."""
    return _COMMAND.sub(lambda found: f"{found[1]}\\x{ord(found[2]):02x}", text)


def _escape(found: re.Match[str]) -> str:
    return found[0].encode("unicode_escape").decode()
