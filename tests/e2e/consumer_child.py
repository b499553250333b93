"""Transformers and Accelerate in a child process, asked one question after the other."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Sequence
from pathlib import Path

from tests.support.events import PATIENCE

from .consumer_scripts import PROCESSES, Answer
from .launching import torch_python, training_environment


class Judge:
    """The packages in a child process."""

    def __init__(self, talk: Path) -> None:
        self._talk = talk
        with talk.open("w") as errors:
            self._child = subprocess.Popen(
                [torch_python(), str(Path(__file__).with_name("consumer_judge.py")), str(PROCESSES)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                env=training_environment(),
                text=True,
            )
        self.versions = self._answer()

    def ask(self, questions: Sequence[Answer]) -> list[Answer]:
        """Return ``{"config": …}`` as DeepSpeed would get it, or ``{"error": …}``, for each question."""
        return [self._ask(question) for question in questions]

    def close(self) -> None:
        assert self._child.stdin is not None
        self._child.stdin.close()
        self._child.wait(timeout=PATIENCE)

    def _ask(self, question: Answer) -> Answer:
        assert self._child.stdin is not None
        self._child.stdin.write(json.dumps(question) + "\n")
        self._child.stdin.flush()
        return self._answer()

    def _answer(self) -> Answer:
        assert self._child.stdout is not None
        line = self._child.stdout.readline()
        assert line, f"{torch_python()} does not answer: {self._talk.read_text()[-3000:]}"
        answer: Answer = json.loads(line)
        return answer
