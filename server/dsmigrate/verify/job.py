"""The whole verification: the original once, every conversion against it."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from dsmigrate.files.paths import resolved
from dsmigrate.files.reading import read
from dsmigrate.files.text import SourceError
from dsmigrate.verify import device, interpreter
from dsmigrate.verify.compare import compare
from dsmigrate.verify.failures import explain_failure, why_not_in_time
from dsmigrate.verify.model import Comparison, Ending, Resumed, Run, Verdict, Verification, VerifyError
from dsmigrate.verify.request import Request
from dsmigrate.verify.resume import resumed
from dsmigrate.verify.scenes import Scenes
from dsmigrate.verify.trial import Trials

Say = Callable[[str], None]


def verify(request: Request, say: Say) -> Verification:
    """Train and compare; ``say`` hears what is being done.

    Raises VerifyError where the original does not train, or nothing can be compared.
    """
    _check(request)
    python = interpreter.find(request.python)
    where = device.choose(request.device, request.processes)
    place = resolved(Path(tempfile.mkdtemp(prefix="dsmigrate-verify-")))
    try:
        trials = Trials(request, python.path, where, place)
        scenes = Scenes(request, place)
        say(f"{where.why}; torch {python.torch}, DeepSpeed {python.deepspeed}, {python.path}")
        scene = scenes.original()
        say(f"training {request.original}")
        original = _trained(trials.run("original", scene, arguments=request.arguments), request)
        again = _resumed_original(trials, scenes, original, say)
        told = _once(say)
        verdicts = tuple(_verdict(trials, scenes, original, stage, again, told) for stage in request.stages or (None,))
        return Verification(
            request.original, request.converted, where.why, verdicts, again, place if request.keep else None
        )
    except VerifyError as error:
        raise VerifyError(f"{error}\nrecords, output and copies: {place}" if request.keep else str(error)) from None
    finally:
        if not request.keep:
            shutil.rmtree(place, ignore_errors=True)


def judge(original: Run, converted: Run, factor: float = 1.0) -> Comparison:
    """Compare two runs; of one that did not end well, what there is of it, and why it failed."""
    found = compare(original, converted, factor)
    if converted.is_complete:
        return found
    differences = tuple(one for one in found.differences if one.step is not None)
    causes = (*explain_failure(converted), *(found.causes if differences else ()))
    return replace(found, differences=differences, causes=causes)


def _once(say: Say) -> Say:
    """Return ``say`` without what it has said before: every stage leaves the same for a person."""
    said: set[str] = set()

    def tell(line: str) -> None:
        if line not in said:
            said.add(line)
            say(line)

    return tell


def _check(request: Request) -> None:
    for script in filter(None, (request.original, request.converted)):
        try:
            text = read(script)
        except SourceError as error:
            raise VerifyError(f"{script}: {error.message}") from None
        if not text.strip():
            raise VerifyError(f"{script}: the file is empty")
    if request.here and request.converted is None:
        raise VerifyError(
            "--here runs in the present folder, and a conversion made for it would lie there: give CONVERTED"
        )


def _resumed_original(trials: Trials, scenes: Scenes, original: Run, say: Say) -> Resumed | None:
    request = trials.request
    if request.resume is None:
        return None
    say("stopping and resuming the original")
    scene = scenes.original()
    return resumed(trials, scene, original, request.arguments, (*request.arguments, *request.resume), None)


def _verdict(  # noqa: PLR0917 - one verdict
    trials: Trials, scenes: Scenes, original: Run, stage: int | None, again: Resumed | None, say: Say
) -> Verdict:
    request = trials.request
    at = "" if stage is None else f" at ZeRO {stage}"
    scene, left = scenes.converted(stage)
    for line in left:
        say(f"left for you in the conversion: {line}")
    say(f"training {'the conversion' if request.converted is None else request.converted}{at}")
    arguments = request.arguments if request.converted_arguments is None else request.converted_arguments
    run = trials.run(f"converted{at}", scene, arguments=arguments, stage=stage)
    comparison = judge(original, run, request.tolerance)
    if request.resume is None or not run.is_complete:
        return Verdict(stage, comparison)
    if again is not None and again.comparison is None:  # nothing to continue from
        return Verdict(stage, comparison, again)
    say(f"stopping and resuming the conversion{at}")
    scene, _ = scenes.converted(stage)
    restarted = resumed(trials, scene, run, arguments, (*arguments, *request.resume), stage)
    trained_on = restarted.comparison is not None and not restarted.problem
    excused = again is not None and not again.agrees and trained_on
    return Verdict(stage, comparison, replace(restarted, excused=excused))


def _trained(run: Run, request: Request) -> Run:
    """Return the run of the original if it is one that can be compared with."""
    if run.outcome.ending is Ending.TIMED_OUT:
        raise VerifyError(
            f"the original did not take {request.steps} steps within {request.timeout:g} s, but {len(run.steps)}: "
            f"{why_not_in_time(run)}{_last_lines(run)}"
        )
    if run.outcome.ending is Ending.CRASHED:
        causes = "".join(f" ({cause.title}: {cause.advice})" for cause in explain_failure(run))
        where = f" at {run.crash['at']}: {run.crash['type']}: {run.crash['message']}" if run.crash else ""
        raise VerifyError(f"the original itself fails{where}{causes}{_last_lines(run)}")
    if not run.steps:
        raise VerifyError(
            "the original ended without an optimizer step of a model in DistributedDataParallel: give it the arguments "
            f"with which it trains, after --{_last_lines(run)}"
        )
    return run


def _last_lines(run: Run) -> str:
    said = [f"\n--- process {index}\n{tail}" for index, tail in enumerate(run.outcome.tails) if tail]
    return f"\n$ {run.outcome.command}{''.join(said)}"
