"""Asks a judge: a script beside this one that runs where torch and deepspeed are, and answers JSON lines."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from .launching import torch_python, training_environment


def ask(judge: str, questions: Sequence[Any], *arguments: str, path: Sequence[Path] = ()) -> list[Any]:
    """Return the answer of a judge to each question, in their order; ``path`` has more folders that it imports from."""
    environment = training_environment()
    environment["PYTHONPATH"] = os.pathsep.join([environment["PYTHONPATH"], *map(str, path)])
    child = subprocess.run(
        [torch_python(), str(Path(__file__).with_name(judge)), *arguments],
        input="".join(json.dumps(question) + "\n" for question in questions),
        capture_output=True,
        text=True,
        env=environment,
        timeout=600,
        check=False,
    )
    answers = [json.loads(line) for line in child.stdout.splitlines()]
    assert len(answers) == len(questions), child.stderr[-2000:]
    return answers
