"""The shell's words as the shell itself sees them; whatever cannot be read is said to be unread."""

from __future__ import annotations

import itertools
import shlex
import shutil
import subprocess

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dsmigrate.launchers.shell import constants, scan

BASH = shutil.which("bash")
_PLAIN = ["a", "b.py", " ", "  ", "#", ";", "&", "&&", ">f", "2>&1", "(", ")", "{", "}", "=", "*"]
PIECES = st.lists(
    st.sampled_from(
        [*_PLAIN, "'", '"', "\\", "$x", "${y}", "$(z)", "`", "\n", "\\\n", "<<E\n", "E\n", "$", "\r\n", "\t", "|", "||"]
    ),
    max_size=14,
)
WORDS = st.lists(st.text("ab.-/'\"\\ $#é", min_size=1, max_size=6), min_size=1, max_size=5)


@given(PIECES)
def test_any_text_is_read_and_every_word_stands_where_it_says(pieces: list[str]) -> None:
    text = "".join(pieces)
    scanned = scan(text)
    spans = [(word.start, word.end) for command in scanned.commands for word in command.words]
    assert all(text[start:end] == word.text for command in scanned.commands for word in command.words
               for start, end in [(word.start, word.end)])  # fmt: skip
    assert all(one[1] <= two[0] for one, two in itertools.pairwise(spans))


@given(WORDS)
def test_quoted_words_come_back_as_they_were(words: list[str]) -> None:
    (command,) = scan(shlex.join(["x", *words])).commands
    assert [word.value for word in command.words] == ["x", *words]


@pytest.mark.skipif(BASH is None, reason="bash is not here")
@pytest.mark.parametrize(
    "text",
    [
        "show a 'b c' \"d 'e'\" f\\ g h\"i\"'j'",
        "show a \\\n  b # c\n",
        'show "a\\"b" "\\$x" "a\\\nb" \'\\\'',
        "A=1 B='2 3' show x=y >/dev/stderr 2>&1 z",
        "if true; then show a; fi && { show b; } | cat",
        "show a#b c\nshow d",
        "cat <<E >/dev/null\nshow no\nE\nshow yes",
        "for i in 1 2; do show i; done",
    ],
)
def test_commands_are_those_of_bash(text: str) -> None:
    """``show`` prints its arguments, each with an end that no argument has."""
    script = f"show() {{ printf '%s\\001' \"$@\"; printf '\\002'; }}\n{text}\n"
    done = subprocess.run([str(BASH), "-c", script], capture_output=True, text=True, check=True)
    ran = {tuple(part.split("\001")[:-1]) for part in (done.stdout + done.stderr).split("\002") if "\001" in part}
    commands = [
        [word for word in command.words if not word.assigns or word.text == "x=y"] for command in scan(text).commands
    ]
    assert {tuple(word.value for word in words[1:]) for words in commands if words[0].text == "show"} == ran


def test_open_quotes_and_here_documents_count_as_unread() -> None:
    text = "ok\ncat <<EOF\npython train.py\nEOF\npython 'train.py\n"
    scanned = scan(text)
    assert [text[start:end] for start, end in scanned.unread] == ["python train.py\nEOF\n", "python 'train.py\n"]


def test_a_variable_counts_where_it_is_set_once_and_not_by_a_loop() -> None:
    text = "A=1\nB=2\nB=3\nexport C=$A/x\nfor D in 1; do D=1; done\nE=$(pwd)\nF+=1\n"
    assert constants(scan(text).commands) == {"A": "1", "C": "1/x"}
