"""Asks the tool for a conversion, and makes its config fit for small models."""

from __future__ import annotations

import contextlib
import io
import json
import signal
from collections.abc import Sequence
from pathlib import Path

from dsmigrate.cli.app import run

from .launching import target_release

REPOSITORY = Path(__file__).resolve().parents[2]
CONFIGS = "ds_config*.json"
_BUCKET = 1_000_000


class ConversionError(AssertionError):
    """The tool did not convert an example."""


def convert(scripts: Sequence[Path], stage: int, output: Path, options: Sequence[str] = ()) -> None:
    """Let the tool write its conversion of some scripts into ``output``; work left for the person is not an error.

    The command line is that of a person, and its process this one, which has the tool's libraries in memory already.
    """
    release = target_release()
    asked = ["--zero-stage", str(stage), *(["--target-version", release] if release else []), *options]
    words = [*map(str, scripts), *asked, "--jobs", "1", "--output", str(output)]
    printed, told = io.StringIO(), io.StringIO()
    former = signal.getsignal(signal.SIGTERM)
    try:
        with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(told):
            code = run(words)
    finally:
        signal.signal(signal.SIGTERM, former)
    if code not in (0, 1) or not any(output.rglob(CONFIGS)):
        raise ConversionError(
            f"dsmigrate {' '.join([*(script.name for script in scripts), *asked])}: exit code {code}, "
            f"wrote {sorted(p.name for p in output.glob('*'))}\n{printed.getvalue()[-3000:]}\n{told.getvalue()[-3000:]}"
        )


def adapt_configs(folder: Path, stage: int, *, choose_stage: bool) -> None:
    """Make ZeRO 3 partition small models too; the stage itself must be the one that was asked for."""
    for path in folder.rglob(CONFIGS):
        _adapt(path, stage, choose_stage=choose_stage)


def _adapt(path: Path, stage: int, *, choose_stage: bool) -> None:
    config = json.loads(path.read_text())
    zero = config.setdefault("zero_optimization", {})
    if choose_stage:
        zero["stage"] = stage
    assert zero.get("stage", 0) == stage, f"{path}: asked for ZeRO {stage}, got {zero}"
    if stage == 3:
        zero["stage3_param_persistence_threshold"] = 0
    if target_release():
        zero["reduce_bucket_size"] = _BUCKET  # older releases divide all of a bucket, however little is in it
    path.write_text(json.dumps(config, indent=2) + "\n")
