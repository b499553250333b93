"""Older releases as judges: the config class of each, with stubs for torch and everything that is no config code."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from dsmigrate.derivation.run import _environment
from dsmigrate.derivation.sources import Sources, default_cache, default_index
from dsmigrate.rules import Effect, every_rule

from .case import Case
from .compare import AGREED, FALSE_ALARM, Row, examine, family, title
from .generate import cases
from .judging import Answer, judged, worlds

CHILD = Path(__file__).with_name("release_child.py")
SERVER = Path(__file__).resolve().parents[3] / "server"
SECONDS = 300
RELEASES = ("0.9.5", "0.10.3", "0.12.6", "0.14.5", "0.15.4", "0.16.9", "0.17.6", "0.18.9", "0.19.6")
"""Releases of different config code: pydantic 1 and 2, fp16 checked and not, before and after the great removal."""


def sources() -> Sources:
    """Return where the source distributions are kept, or fetched from."""
    return Sources(cache=default_cache(), index_url=default_index())


def judge(root: Path, asked: Sequence[Case]) -> list[Answer]:
    """Return what the config class of the release unpacked at ``root`` says of each case."""
    lines = [json.dumps({"config": case.config, "worlds": worlds(case)}) for case in asked]
    child = subprocess.run(
        [sys.executable, "-I", "-B", str(CHILD), str(SERVER), str(root.resolve())],
        input="".join(f"{line}\n" for line in lines),
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
        env=_environment(),
    )
    answers = [judged(**json.loads(line)) for line in child.stdout.splitlines()]
    if len(answers) != len(asked):
        raise RuntimeError(f"{root.name} does not judge configs: {child.stderr[-2000:]}")
    return answers


def compare(version: str, root: Path, count: int, seed: int = 0) -> list[Row]:
    """Return rows for configs made with the knowledge of a release; text faults are left out."""
    made = [case for case in cases(count, seed, version) if case.text is None]
    return [_engine_aside(row) for row in examine(made, partial(judge, root))]


def _engine_aside(row: Row) -> Row:
    """Return the row; a rule about the engine cannot be wrong where only the config class is asked."""
    if row.outcome != FALSE_ALARM:
        return row
    wrong = [one for one in row.findings if one.effect is Effect.REJECTED and is_about_config(one.code)]
    if not wrong:
        return replace(row, outcome=AGREED, family="", what="")
    return replace(row, family=family(wrong[0].code), what=title(wrong[0]))


def is_about_config(code: str) -> bool:
    """Return whether a rule stands on config code alone, and not on what the engine does later."""
    rule = next(rule for rule in every_rule() if rule.code == code)
    files = [source.partition(":")[0].rpartition("/")[2] for source in rule.source if "://" not in source]
    return all("config" in file for file in files)
