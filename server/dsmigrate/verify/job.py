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
from dsmigrate.verify.compare import ENGINE, compare
from dsmigrate.verify.control import Control
from dsmigrate.verify.failures import explain_failure, first_failure, headline, is_the_disk, why_not_in_time
from dsmigrate.verify.model import ORIGINAL, Comparison, Ending, Resumed, Run, Verdict, Verification, VerifyError
from dsmigrate.verify.request import Request
from dsmigrate.verify.resume import resumed
from dsmigrate.verify.scenes import Scenes
from dsmigrate.verify.trial import Trials

Say = Callable[[str], None]
Progress = Callable[[str, int, int], None]


def verify(request: Request, say: Say, progress: Progress = lambda _name, _taken, _of: None) -> Verification:
    """Train and compare; ``say`` hears what is being done, ``progress`` how many steps of how many a run has taken.

    Raises VerifyError where the original does not train, or nothing can be compared.
    """
    _check(request)
    python = interpreter.find(request.python)
    where = device.choose(request.device, request.processes)
    place = resolved(Path(tempfile.mkdtemp(prefix="dsmigrate-verify-")))
    try:
        trials = Trials(request, python.path, where, place, progress)
        scenes = Scenes(request, place)
        say(f"{where.why}; torch {python.torch}, DeepSpeed {python.deepspeed}, {python.path}")
        scene = scenes.original()
        say(f"training {request.original}")
        original = _trained(trials.run(ORIGINAL, scene, arguments=request.arguments), request)
        again = _resumed_original(trials, scenes, original, say)
        told = _once(say)
        control = Control(original, lambda steps: _repeated(trials, scenes, steps, say), request.tolerance)
        verdicts = tuple(_verdict(trials, scenes, control, stage, again, told) for stage in request.stages or (None,))
        return Verification(
            request.original, request.converted, where.why, verdicts, again, place if request.keep else None
        )
    except OSError as error:
        raise VerifyError(f"{error.filename or place}: {error.strerror or error}") from None
    except VerifyError as error:
        raise VerifyError(f"{error}\nrecords, output and copies: {place}" if request.keep else str(error)) from None
    finally:
        if not request.keep:
            shutil.rmtree(place, ignore_errors=True)


def judge(original: Run, converted: Run, factor: float = 1.0, control: Control | None = None) -> Comparison:
    """Compare two runs; of one that did not end well, what there is of it, and why it failed.

    Where they part, ``control`` says what of it is noise.
    """
    found = compare(original, converted, factor)
    if not converted.is_complete:
        differences = tuple(one for one in found.differences if one.step is not None)
        causes = (*explain_failure(converted, original), *(found.causes if differences else ()))
        return replace(found, differences=differences, causes=causes)
    if control is None or found.first is None or found.first.quantity == ENGINE:
        return found
    noise = control.noise(found)
    return replace(found, noise=noise) if noise.is_silent else compare(original, converted, factor, noise=noise)


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


def _repeated(trials: Trials, scenes: Scenes, steps: int, say: Say) -> Run:
    say("training the original again, to see whether it repeats itself")
    run = trials.run("original again", scenes.original(), arguments=trials.request.arguments, steps=steps)
    _check_the_disk(run)
    return run


def _resumed_original(trials: Trials, scenes: Scenes, original: Run, say: Say) -> Resumed | None:
    request = trials.request
    if request.resume is None:
        return None
    say("stopping and resuming the original")
    scene = scenes.original()
    return resumed(trials, scene, original, request.arguments, (*request.arguments, *request.resume), None)


def _verdict(  # noqa: PLR0917 - one verdict
    trials: Trials, scenes: Scenes, control: Control, stage: int | None, again: Resumed | None, say: Say
) -> Verdict:
    request = trials.request
    at = "" if stage is None else f" at ZeRO {stage}"
    scene, left = scenes.converted(stage)
    for line in left:
        say(f"left for you in the conversion: {line}")
    say(f"training {'the conversion' if request.converted is None else request.converted}{at}")
    arguments = request.arguments if request.converted_arguments is None else request.converted_arguments
    run = trials.run(f"converted{at}", scene, arguments=arguments, stage=stage)
    _check_the_disk(run)
    comparison = judge(control.original, run, request.tolerance, control)
    if request.resume is None or not run.is_complete:
        return Verdict(stage, comparison)
    if again is not None and (again.comparison is None or again.problem):  # nothing to continue from
        return Verdict(stage, comparison, again)
    say(f"stopping and resuming the conversion{at}")
    scene, _ = scenes.converted(stage)
    restarted = resumed(trials, scene, run, arguments, (*arguments, *request.resume), stage)
    trained_on = restarted.comparison is not None and not restarted.problem
    excused = again is not None and not again.agrees and trained_on
    return Verdict(stage, comparison, replace(restarted, excused=excused))


def _check_the_disk(run: Run) -> None:
    if is_the_disk(run):
        cause = explain_failure(run)[0]
        raise VerifyError(f"{cause.title}, which says nothing of the conversion: {cause.why}; {cause.advice}")


def _trained(run: Run, request: Request) -> Run:
    """Return the run of the original if it is one that can be compared with."""
    if run.outcome.ending in {Ending.HUNG, Ending.TIMED_OUT}:
        stands = "".join(f"\n  {stack}" for stack in run.outcome.stacks)
        what = (
            f"{headline(run)}; {explain_failure(run)[-1].title}"
            if run.outcome.ending is Ending.HUNG
            else f"did not take {request.steps} steps within {request.timeout:g} s, but {len(run.steps)}"
        )
        why = "" if run.outcome.ending is Ending.HUNG and len(set(run.taken)) < 2 else f": {why_not_in_time(run)}"
        raise VerifyError(f"the original {what}{why}{stands}{_last_lines(run)}")
    if run.outcome.ending is Ending.CRASHED:
        causes = "".join(f" ({cause.title}: {cause.advice})" for cause in explain_failure(run))
        failure = first_failure(run)
        where = f" at {failure.at}" if failure and failure.at else ""
        raise VerifyError(f"the original itself {headline(run)}{where}{causes}{_last_lines(run)}")
    if not run.steps:
        raise VerifyError(
            "the original ended without an optimizer step of a model in DistributedDataParallel: give it the arguments "
            f"with which it trains, after --{_last_lines(run)}"
        )
    return run


def _last_lines(run: Run) -> str:
    said = [f"\n--- process {index}\n{tail}" for index, tail in enumerate(run.outcome.tails) if tail]
    return f"\n$ {run.outcome.command}{''.join(said)}"
