"""The JSON contract; its schema is ``schemas/output/verify.schema.json``. Steps count from 1."""

from __future__ import annotations

import json
import math
from typing import Any

from dsmigrate.verify.failures import Failure, first_failure
from dsmigrate.verify.formats import words
from dsmigrate.verify.model import Cause, Comparison, Difference, Noise, Resumed, Run, Step, Verdict, Verification

VERSION = 1


def render(verification: Verification) -> str:
    """Return the verification as JSON text with a final newline."""
    return json.dumps(document(verification), indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def document(verification: Verification) -> dict[str, Any]:
    """Return the verification as the object that the contract describes."""
    original = verification.verdicts[0].comparison.original
    return {
        "version": VERSION,
        "original": verification.original.as_posix(),
        "converted": None if verification.converted is None else verification.converted.as_posix(),
        "device": verification.device,
        "agrees": verification.agrees,
        "verdicts": [_verdict(verdict) for verdict in verification.verdicts],
        "run": _run(original),
        "resumed": None if verification.original_resumed is None else _resumed(verification.original_resumed),
        "kept": None if verification.kept is None else verification.kept.as_posix(),
    }


def _verdict(verdict: Verdict) -> dict[str, Any]:
    return {
        "zero_stage": verdict.stage,
        "agrees": verdict.agrees,
        **_comparison(verdict.comparison),
        "resumed": None if verdict.resumed is None else _resumed(verdict.resumed),
        "run": _run(verdict.comparison.converted),
    }


def _comparison(comparison: Comparison) -> dict[str, Any]:
    return {
        "status": words.status(comparison),
        "message": words.headline(comparison),
        "precision": comparison.precision,
        "differences": [_difference(one) for one in comparison.differences],
        "causes": [_cause(one) for one in comparison.causes],
        "worst": {name: _number(value) for name, value in comparison.worst.items()},
        "notes": list(comparison.notes),
        "noise": None if not comparison.noise.steps else _noise(comparison.noise),
    }


def _noise(noise: Noise) -> dict[str, Any]:
    return {
        "repeats": not noise.differences,
        "steps": noise.steps,
        "reason": noise.reason,
        "errors": {name: _number(max(errors, default=0.0)) for name, errors in noise.errors.items()},
        "differences": [_difference(one, "second run") for one in noise.differences],
    }


def _difference(found: Difference, of: str = "conversion") -> dict[str, Any]:
    return {
        "quantity": found.quantity,
        "step": None if found.step is None else found.step + 1,
        "original": _value(found.original),
        "converted": _value(found.converted),
        "error": _number(found.error),
        "allowed": _number(found.allowed),
        "message": words.difference(found, of),
    }


def _cause(cause: Cause) -> dict[str, Any]:
    return {
        "id": cause.id,
        "title": cause.title,
        "why": cause.why,
        "advice": cause.advice,
        "certain": cause.certain,
        "quantity": cause.quantity or None,
    }


def _resumed(resumed: Resumed) -> dict[str, Any]:
    comparison = resumed.comparison
    return {
        "agrees": resumed.agrees,
        "excused": resumed.excused,
        "stopped_after": resumed.stopped_after,
        "message": words.resume_line(resumed),
        "differences": [] if comparison is None else [_difference(one) for one in comparison.differences],
        "causes": [] if comparison is None else [_cause(one) for one in comparison.causes],
    }


def _run(run: Run) -> dict[str, Any]:
    return {
        "command": run.outcome.command,
        "ending": run.outcome.ending.value,
        "exit_codes": list(run.outcome.codes),
        "seconds": round(run.outcome.seconds, 3),
        "seconds_per_step": round(run.seconds, 6),
        "overhead_per_step": round(run.overhead, 6),
        "setting": {name: _value(value) for name, value in run.setting.items()},
        "crash": _crash(first_failure(run)),
        "last_lines": [tail.splitlines() for tail in run.outcome.tails] if not run.is_complete else [],
        "stacks": list(run.outcome.stacks),
        "saves": list(run.saves),
        "steps": [_step(step) for step in run.steps],
    }


def _crash(failure: Failure | None) -> dict[str, str] | None:
    if failure is None:
        return None
    rank = {} if failure.rank is None else {"rank": str(failure.rank)}
    return {"type": failure.kind, "message": failure.message, "at": failure.at, **rank}


def _step(step: Step) -> dict[str, Any]:
    return {
        "step": step.index + 1,
        "loss": _number(step.loss),
        "gradient_norm": _number(step.norm),
        "clipped_gradient_norm": _number(step.applied),
        "learning_rate": [_number(rate) for rate in step.rates],
        "samples": step.samples,
        "backwards": step.backwards,
        "skipped": step.skipped,
    }


def _value(value: object) -> Any:  # noqa: ANN401 - any value that JSON has
    if isinstance(value, (tuple, list)):
        return [_value(item) for item in value]
    if isinstance(value, bool) or value is None or isinstance(value, (int, str)):
        return value
    return _number(value) if isinstance(value, float) else str(value)


def _number(value: float | None) -> float | str | None:
    """Return a number as JSON has it: what is not finite becomes a word."""
    if value is None or math.isfinite(value):
        return value
    return "nan" if math.isnan(value) else "inf" if value > 0 else "-inf"
