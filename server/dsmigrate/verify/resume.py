"""Stops a run half-way, starts it again, and compares with one that was not stopped."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from dsmigrate.verify.compare import INPUTS, compare
from dsmigrate.verify.failures import explain_failure, headline
from dsmigrate.verify.model import Cause, Comparison, Difference, Resumed, Run
from dsmigrate.verify.numbers import told_apart
from dsmigrate.verify.trial import Scene, Trials

_NOTHING_READ = "the second start reads no checkpoint of the first, so that nothing is resumed"


def resumed(  # noqa: PLR0917 - one run and its continuation
    trials: Trials, scene: Scene, whole: Run, arguments: Sequence[str], again: Sequence[str], stage: int | None
) -> Resumed:
    """Train in ``scene`` until a checkpoint is saved at half of the steps of ``whole`` or later; continue; compare.

    ``again`` are the arguments of the second start, all of them.
    """
    half = max(len(whole.steps) // 2, 1)
    usable = [saved for saved in whole.saves if 0 < saved < len(whole.steps)]
    if not usable:
        return Resumed(whole.name, None, None, _unsaved(whole))
    half = next((saved for saved in usable if saved >= half), usable[-1])
    first = trials.run(f"{whole.name}, first half", scene, arguments=arguments, stage=stage, save_after=half)
    if not first.is_complete:
        return Resumed(whole.name, None, _failed(whole, first), f"run until its checkpoint, it {headline(first)}")
    stopped = len(first.steps)
    rest = len(whole.steps) - stopped
    second = trials.run(f"{whole.name}, resumed", scene, arguments=again, stage=stage, steps=rest, saved=first.saved)
    if not second.is_complete:
        return Resumed(whole.name, stopped, _failed(whole, second), f"started again, it {headline(second)}")
    found = continuation(whole, second, stopped, trials.request.tolerance)
    if first.saved and not second.reads:
        return Resumed(whole.name, stopped, _nothing_read(found, first), _NOTHING_READ)
    return Resumed(whole.name, stopped, found)


def _nothing_read(found: Comparison, first: Run) -> Comparison:
    why = f"the first start has saved {', '.join(map(_short, first.saved[:3]))}, the second has opened nothing of it"
    advice = (
        "the arguments of the second start must ask for it (--resume-args '--resume last.pt'), at the path that the "
        "script saves to; a DeepSpeed checkpoint is a folder: os.path.isfile is false for it"
    )
    cause = Cause("nothing-read", "no checkpoint is read", why, advice, certain=True)
    return replace(found, causes=(cause, *(one for one in found.causes if one.id == "starts-from-scratch")))


def _short(path: str) -> str:
    return Path(path).name


def continuation(whole: Run, second: Run, stopped: int, factor: float) -> Comparison:
    """Compare the second half of an uninterrupted run with a run that continues one."""
    rest = tuple(replace(step, index=index) for index, step in enumerate(whole.steps[stopped:]))
    expected = replace(whole, steps=rest)
    found = compare(expected, replace(second, start=whole.start), factor, is_conversion=False)
    causes = tuple(_causes(whole, second, stopped, found)) or found.causes
    return replace(found, causes=causes)


def _causes(whole: Run, second: Run, stopped: int, found: Comparison) -> Sequence[Cause]:
    if found.first is None:
        return ()
    begin, fresh, after = second.steps[0], whole.steps[0], whole.steps[stopped]
    if _same(begin.loss, fresh.loss) and not _same(begin.loss, after.loss):
        return (
            Cause(
                "starts-from-scratch",
                "training starts from the beginning",
                f"the first loss after the restart, {begin.loss:.6g}, is the first of the whole run",
                "a DeepSpeed checkpoint is a folder: os.path.isfile is false for it; and the arguments of the second "
                "start must ask for it (--resume-args)",
                certain=True,
            ),
        )
    inputs = next((one for one in found.differences if one.quantity == INPUTS and one.step is not None), None)
    others = [one for one in found.differences if one.quantity != INPUTS]
    data = () if inputs is None else (_other_data(inputs),)
    if (inputs is not None and inputs.step == 0) or not others:
        return data
    return (*_of_states(others[0], second, whole, stopped), *data)


def _other_data(inputs: Difference) -> Cause:
    return Cause(
        "data-not-restored",
        "other data follows",
        f"at step {(inputs.step or 0) + 1} after the restart other inputs go into the model",
        "go on with the epoch, the place in it and the sampler where they were",
        certain=True,
    )


def _of_states(first: Difference, second: Run, whole: Run, stopped: int) -> Sequence[Cause]:
    begin, after = second.steps[0], whole.steps[stopped]
    if first.quantity == "learning rate" and first.step == 0 and _goes_on(second, whole, stopped):
        return (
            Cause(
                "optimizer-not-restored",
                "the state of the optimizer is not restored",
                "the learning rate of the first step after the restart, which stands in the optimizer, is another one, "
                "and the schedule goes on",
                "engine.load_checkpoint with load_optimizer_states",
            ),
        )
    if first.quantity == "learning rate":
        return (
            Cause(
                "schedule-not-restored",
                "the schedule is not restored",
                "the learning rate after the restart is another one",
                "save the scheduler's state in client_state and load it",
            ),
        )
    if first.quantity == "loss" and first.step == 0:
        return (
            Cause(
                "weights-not-restored",
                "the weights are not restored",
                "the first loss after the restart is {1} instead of {0}".format(*told_apart(after.loss, begin.loss)),
                "load with engine.load_checkpoint, or before deepspeed.initialize",
            ),
        )
    if first.quantity in {"loss", "gradient norm", "clipped gradient norm"} and first.step == 1:
        return (
            Cause(
                "optimizer-not-restored",
                "the state of the optimizer is not restored",
                "the first step after the restart is the same, what it leads to is not",
                "engine.load_checkpoint with load_optimizer_states; the module's weights alone are overwritten by "
                "ZeRO's master copy at the next step",
            ),
        )
    return ()


def _goes_on(second: Run, whole: Run, stopped: int) -> bool:
    """Return whether the schedule is right from the second step after the restart on."""
    pairs = list(zip(second.steps, whole.steps[stopped:], strict=False))[1:]
    return bool(pairs) and all(
        all(map(_same, after.rates, before.rates)) and len(after.rates) == len(before.rates) for after, before in pairs
    )


def _same(one: float, other: float) -> bool:
    return abs(one - other) <= 1e-5 * max(abs(one), abs(other))


def _unsaved(whole: Run) -> str:
    count = len(whole.steps)
    return (
        f"no checkpoint was saved within the first {count} steps that others follow: train for more --steps, or let "
        "the script save more often"
    )


def _failed(whole: Run, run: Run) -> Comparison:
    return Comparison(whole, run, "", (), explain_failure(run), {})
