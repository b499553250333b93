"""Asks a judge: a script beside this one that runs where torch and deepspeed are, and answers JSON lines.

To import them takes a judge seconds: one whose answers do not depend on those before is kept for the next questions.
"""

from __future__ import annotations

import atexit
import json
import os
import subprocess
import tempfile
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import IO, Any

from .launching import torch_python, training_environment


class Judge:
    """One process."""

    def __init__(self, judge: str, *arguments: str, path: Sequence[Path] = ()) -> None:
        """Start it; ``path`` has more folders that it imports from."""
        environment = training_environment()
        environment["PYTHONPATH"] = os.pathsep.join([environment["PYTHONPATH"], *map(str, path)])
        self._errors: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115 - as long as the process
        self._process = subprocess.Popen(
            [torch_python(), str(Path(__file__).with_name(judge)), *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            env=environment,
        )

    def ask(self, questions: Sequence[Any], *, last: bool) -> list[Any]:
        """Return the answer to each question; a judge may read all of the ``last`` ones before it answers."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        lines = b"".join(json.dumps(question).encode() + b"\n" for question in questions)
        telling = threading.Thread(target=self._tell, args=(lines, last), daemon=True)
        telling.start()
        answers = [json.loads(line) for _, line in zip(questions, self._process.stdout, strict=False)]
        telling.join()
        assert len(answers) == len(questions), self._said()
        return answers

    def close(self) -> None:
        """Let it end."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.stdout.close()
        self._process.wait()
        self._errors.close()

    def _tell(self, lines: bytes, last: bool) -> None:
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(lines)
            self._process.stdin.flush()
            if last:
                self._process.stdin.close()
        except BrokenPipeError:
            pass  # it has ended, as the missing answers tell

    def _said(self) -> str:
        self._errors.seek(0)
        return self._errors.read()[-2000:].decode(errors="replace")


_kept: dict[tuple[str, ...], Judge] = {}


def ask(judge: str, questions: Sequence[Any], *arguments: str, path: Sequence[Path] = ()) -> list[Any]:
    """Return the answer of a new judge to each question, in their order."""
    one = Judge(judge, *arguments, path=path)
    try:
        return one.ask(questions, last=True)
    finally:
        one.close()


def ask_again(judge: str, questions: Sequence[Any], *arguments: str) -> list[Any]:
    """Return the answers of a judge that is kept until the end of the session."""
    key = (judge, *arguments)
    if key not in _kept:
        _kept[key] = Judge(judge, *arguments)
        atexit.register(_kept[key].close)
    return _kept[key].ask(questions, last=False)
