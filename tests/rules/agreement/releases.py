"""Older releases as judges: the config class of each, with stubs for torch and everything that is no config code."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from dsmigrate.derivation.run import _environment
from dsmigrate.derivation.sources import Sources, default_cache, default_index
from dsmigrate.knowledge import Knowledge, knowledge
from dsmigrate.rules import Effect, Finding, every_rule

from .case import Case, Config
from .compare import AGREED, FALSE_ALARM, Row, examine, family, title
from .elastic import with_elastic
from .generate import cases
from .judging import ALONE, MESH, Answer, judged, worlds

CHILD = Path(__file__).with_name("release_child.py")
SERVER = Path(__file__).resolve().parents[3] / "server"
PYTHON = "DSMIGRATE_TORCH_PYTHON"
"""Names an interpreter with pydantic and numpy; elastic batch sizes cannot be judged without numpy."""
SECONDS = 300
STOPPED = "Timeout ("
"""What a process says that ended itself at a config that took too long."""
RELEASES = ("0.9.5", "0.10.3", "0.12.6", "0.14.5", "0.15.4", "0.16.9", "0.17.6", "0.18.9", "0.19.6")
"""Releases of different config code: pydantic 1 and 2, fp16 checked and not, before and after the great removal."""


def sources() -> Sources:
    """Return where the source distributions are kept, or fetched from."""
    return Sources(cache=default_cache(), index_url=default_index())


def judge(root: Path, asked: Sequence[Case]) -> list[Answer]:
    """Return what the config class of the release unpacked at ``root`` says of each case."""
    lines = [json.dumps({"config": _read(case), "worlds": worlds(case)}) for case in asked]
    answers: list[Answer] = []
    while len(answers) < len(lines):
        child = _process(root, lines[len(answers) :])
        answers += [_answer(**json.loads(line)) for line in child.stdout.splitlines()]
        if len(answers) < len(lines):
            if STOPPED not in child.stderr:
                raise RuntimeError(f"{root.name} does not judge configs: {child.stderr[-2000:]}")
            answers.append(judged("engine", "judge: no answer"))
    return answers


def _read(case: Case) -> Config | None:
    """Return a config as the release reads it from a file: Hjson takes 2.0 for a whole number."""
    return replace(case, config=None, text=case.written).data


def _answer(verdict: str, error: str) -> Answer:
    if "Stub" in error:
        return Answer("unjudged", error, "needs numpy")
    return judged(verdict, error)


def _alone(root: Path, asked: Sequence[Case]) -> list[Answer]:
    """Return the answers of ``judge``; what makes a mesh of processes cannot be accepted by one."""
    return [
        Answer("unjudged", "", ALONE) if answer.verdict == "accepted" and (case.data or {}).keys() >= MESH else answer
        for case, answer in zip(asked, judge(root, asked), strict=True)
    ]


def _process(root: Path, lines: Sequence[str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [os.environ.get(PYTHON, sys.executable), "-I", "-B", str(CHILD), str(SERVER), str(root.resolve())],
        input="".join(f"{line}\n" for line in lines),
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
        env=_environment(),
    )


def compare(version: str, root: Path, count: int, seed: int = 0) -> list[Row]:
    """Return rows for configs made with the knowledge of a release; text faults are left out."""
    made = [with_elastic(case) for case in cases(count, seed, version) if case.text is None]
    return [_engine_aside(row) for row in examine(made, partial(_alone, root))]


def _engine_aside(row: Row) -> Row:
    """Return the row; a finding about the engine cannot be wrong where only the config class is asked."""
    if row.outcome != FALSE_ALARM:
        return row
    known = knowledge(row.case.version)
    wrong = [one for one in row.findings if one.effect is Effect.REJECTED and _is_about_config(known, one)]
    if not wrong:
        return replace(row, outcome=AGREED, family="", what="")
    return replace(row, family=family(wrong[0].code), what=title(wrong[0]))


def _is_about_config(known: Knowledge, finding: Finding) -> bool:
    """Return whether the config class must refuse what a finding is about; values that it only takes it does not."""
    key = known.key(finding.path) if finding.path and family(finding.code) == "types" else None
    if key is not None and not key.is_section and not key.is_checked and not key.rejects_wrong_values:
        return False
    return (key is None or key.is_read_by_config) and is_about_config(finding.code)


def is_about_config(code: str) -> bool:
    """Return whether a rule stands on config code alone, and not on what the engine does later."""
    rule = next(rule for rule in every_rule() if rule.code == code)
    files = [source.partition(":")[0].rpartition("/")[2] for source in rule.source if "://" not in source]
    return all("config" in file for file in files)
