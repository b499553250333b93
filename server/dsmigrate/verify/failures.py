"""What the messages mean with which converted scripts fail, and where they stand when they hang."""

from __future__ import annotations

import re
import signal
from collections.abc import Sequence
from dataclasses import dataclass

from dsmigrate.verify.causes.branches import BRANCH, TITLE, apart, named
from dsmigrate.verify.model import Cause, Ending, Run
from dsmigrate.verify.numbers import counted


@dataclass(frozen=True, slots=True)
class Known:
    """A message that is known; ``pattern`` is looked for in the exception and in the last lines."""

    id: str
    pattern: str
    title: str
    advice: str


_KNOWN = (
    Known(
        "disk-full",
        r"No space left on device|Disk quota exceeded",
        "the disk is full",
        "free some of it, or let TMPDIR name another disk: copies, records and checkpoints lie below it",
    ),
    Known(
        "backward-on-the-loss",
        r"Direct calls to tensor\.backward\(\) are not supported|Loss scaling is required for this configuration",
        "backward is called on the loss",
        "call engine.backward(loss)",
    ),
    Known(
        "optimizer-not-allowed",
        r"untested ZeRO Optimizer|zero_allow_untested_optimizer",
        "ZeRO refuses an optimizer that it does not know",
        'write "zero_allow_untested_optimizer": true into the config',
    ),
    Known(
        "batch-keys",
        r"train_batch_size is not equal to|Check batch related parameters",
        "the batch keys of the config contradict each other",
        "train_batch_size is train_micro_batch_size_per_gpu × gradient_accumulation_steps × processes",
    ),
    Known(
        "scheduler-of-a-wrapper",
        r"is not an Optimizer",
        "a scheduler is built on what deepspeed.initialize returned",
        "build it on the script's own optimizer, before deepspeed.initialize",
    ),
    Known(
        "no-sync",
        r"no_sync context manager is incompatible|illegal to call Engine\.step\(\) inside no_sync",
        "engine.no_sync() does not go with ZeRO 2 and 3",
        "accumulate without it: the engine reduces once per step",
    ),
    Known(
        "partitioned-weights",
        r"size mismatch.*torch\.Size\(\[0\]\)|must be 2-D|'weight' must be",
        "a weight is read while ZeRO 3 has it partitioned",
        "read weights inside of deepspeed.zero.GatheredParameters, on all ranks",
    ),
    Known(
        "module-pickled",
        r"Can't (?:get|pickle) local object '(?:DeepSpeedEngine|DeepSpeedZeRo)|cannot pickle .*ProcessGroup",
        "the module inside of the engine is pickled or copied as an object",
        "the engine puts hooks on it: save its state_dict, with engine.save_checkpoint or engine.save_16bit_model, and "
        "copy the model before deepspeed.initialize",
    ),
    Known(
        "uneven-forward",
        r"Cannot partition a param in flight|Nested GatheredParameters contexts|params_already_fetched",
        "a forward runs on some processes only while ZeRO 3 has the weights partitioned",
        "every forward gathers weights from all processes at ZeRO 3: evaluate on all of them, not under rank == 0",
    ),
    Known(
        "client-state",
        r"KeyError: '(?:lr_scheduler|module|optimizer|global_steps)'",
        "a key of the checkpoint is DeepSpeed's own",
        "put the script's state under a key of its own in client_state",
    ),
    Known(
        "zero-grad-argument",
        r"zero_grad\(\) got an unexpected keyword",
        "engine.zero_grad takes no arguments",
        "call it without; engine.step() clears the gradients itself",
    ),
    Known(
        "config-missing",
        r"DeepSpeedConfigError|Expected a string path to an existing deepspeed config",
        "DeepSpeed does not take the config",
        "dsmigrate check says what is wrong with it",
    ),
    Known(
        "not-installed",
        r"ModuleNotFoundError: No module named",
        "a module is missing",
        "install it for the Python that trains, or name another with --python",
    ),
    Known(
        "port-in-use",
        r"EADDRINUSE|[Aa]ddress already in use",
        "the port is taken",
        "end what listens there; the port of a script that sets MASTER_PORT itself is replaced by a free one",
    ),
    Known(
        "memory", r"CUDA out of memory|OutOfMemoryError", "out of GPU memory", "smaller batches, or --device pretend"
    ),
)
_NETWORK = re.compile(
    r"^[\w.]*(?:Dist(?:Network|Store|Backend)Error: |RuntimeError: .*(?:gloo/transport/|Connection closed by peer))",
    re.MULTILINE,
)
FULL_BYTES = 1 << 20
"""A disk with less than this left is full: what fails then need not find the room to say so."""
_COLLECTIVE = re.compile(r"\b(save_checkpoint|load_checkpoint|barrier|broadcast\w*|all_\w+|reduce\w*|gather\w*)\b")


@dataclass(frozen=True, slots=True)
class Failure:
    """What ended a run: the rank that failed before the others (None: not known), its error ("": none), and where."""

    rank: int | None
    kind: str
    message: str
    at: str = ""

    @property
    def said(self) -> str:
        """The error in words."""
        return f"{self.kind}: {self.message}" if self.kind else self.message


def first_failure(run: Run) -> Failure | None:
    """Return the failure that the others come from, of a run that crashed: theirs are of a lost connection mostly."""
    if run.outcome.ending is not Ending.CRASHED:
        return None
    own = [crash for crash in run.crashes if not _NETWORK.search(f"{crash['type']}: {crash['message']}")]
    silent = _silent(run)
    first = own[0] if own else None
    if silent is not None and (first is None or silent[1] < float(first.get("time", 0.0))):
        return silent[0]
    first = first or next(iter(run.crashes), None)
    if first is None:
        return None
    rank = first.get("rank")
    return Failure(None if rank is None else int(rank), str(first["type"]), str(first["message"]), str(first["at"]))


def _silent(run: Run) -> tuple[Failure, float] | None:
    """Return the failure of a process that ended before all others without an error of Python, and when."""
    codes, first = run.outcome.codes, run.outcome.first
    if first is None or len(codes) < 2 or any(crash.get("rank") == first[0] for crash in run.crashes):
        return None
    code = codes[first[0]]
    if code is None or _NETWORK.search(run.outcome.tails[first[0]]) or "Traceback" in run.outcome.tails[first[0]]:
        return None
    return Failure(first[0], "", _code(code)), first[1]


def _code(code: int) -> str:
    if code >= 0:
        return f"it ends with exit code {code}, and no error of Python"
    try:
        name = signal.Signals(-code).name
    except ValueError:
        name = f"signal {-code}"
    return f"it is killed by {name}" + (" (as the system does where memory runs out)" if code == -9 else "")


def headline(run: Run) -> str:
    """Return how a run that is not complete ended, in words that follow its name."""
    steps = counted(len(run.steps))
    if run.outcome.ending is Ending.HUNG:
        return f"hangs after {steps}: nothing has moved for {run.outcome.still:.0f} s"
    if run.outcome.ending is Ending.TIMED_OUT:
        return f"does not end in its time, after {steps}"
    if run.outcome.ending is not Ending.CRASHED:
        return "ends without an optimizer step"
    failure = first_failure(run)
    if is_the_disk(run):
        return f"finds the disk full after {steps}"
    if failure is None:
        return f"fails after {steps}"
    who = "" if failure.rank is None or len(run.outcome.codes) < 2 else f", rank {failure.rank} first"
    return f"fails after {steps}{who}: {failure.said.splitlines()[0][:200]}"


def is_the_disk(run: Run) -> bool:
    """Return whether a run failed because nothing more could be written, which is no fault of its script."""
    return any(cause.id == "disk-full" for cause in explain_failure(run))


def explain_failure(run: Run, original: Run | None = None) -> tuple[Cause, ...]:
    """Return why a run did not end well, as far as its messages tell; empty where it did.

    What the first that failed has said counts before what the others have.
    """
    if run.outcome.ending is Ending.FINISHED:
        return ()
    if run.outcome.ending is not Ending.CRASHED:
        apart = None if original is None else ranks_apart(original)
        return (*([apart] if apart else []), _hang(run))
    full = next(known for known in _KNOWN if known.id == "disk-full")
    if run.full:
        return (Cause(full.id, full.title, f"nothing more can be written to {run.full}", full.advice, certain=True),)
    free = run.outcome.free
    if free is not None and free < FULL_BYTES:
        return (Cause(full.id, full.title, f"{free} bytes of it are left", full.advice, certain=True),)
    failure = first_failure(run)
    rest = "\n".join([*(f"{one['type']}: {one['message']}" for one in run.crashes), *run.outcome.tails])
    for said in (failure.said if failure else "", rest):
        for known in _KNOWN:
            found = re.search(known.pattern, said)
            if found:
                line = next((line for line in said.splitlines() if found[0][:60] in line), found[0])
                return (Cause(known.id, known.title, line.strip()[:300], known.advice, certain=True),)
    return ()


def ranks_apart(original: Run) -> Cause | None:
    """Return that the ranks of the original use different parameters in one step, which a hang may come from."""
    step = next((step for step in original.steps if apart(step)), None)
    if step is None:
        return None
    return Cause(
        BRANCH,
        TITLE,
        f"at step {step.index + 1} of the original {named(apart(step))} had a gradient on some ranks only",
        "at ZeRO 3 every forward gathers weights from all processes: let every process use all layers, by "
        "adding 0.0 × the sum of the unused outputs to the loss",
        certain=True,
    )


def is_the_network(codes: Sequence[int | None], texts: Sequence[str]) -> bool:
    """Return whether all processes that failed lost one another: ``codes`` and ``texts`` of each, in one order.

    Where one process fails by itself, the others lose it, and only they speak of the network. Those that were ended
    from outside (a negative code, or None) say nothing.
    """
    failed = [text for code, text in zip(codes, texts, strict=False) if code is not None and code > 0]
    return bool(failed) and all(map(_NETWORK.search, failed))


def _hang(run: Run) -> Cause:
    stacks = list(dict.fromkeys(run.outcome.stacks))
    places = "; ".join(stacks) or "where it stands is not known"
    if "file_baton.py" in places:
        return Cause(
            "operator-lock",
            "it waits for DeepSpeed's operators to be compiled by another process",
            places,
            "if nothing compiles, a run that was killed has left its lock: delete the files named lock below "
            "~/.cache/torch_extensions (TORCH_EXTENSIONS_DIR)",
            certain=True,
        )
    if len({stack.partition(": ")[2] or stack for stack in stacks}) > 1 and (
        _COLLECTIVE.search(places) or "has ended" in places
    ):
        return Cause(
            "collective-on-some-ranks",
            "the processes wait for each other at different places",
            places,
            "what all processes have to do together (save_checkpoint, barriers, reductions) must not stand under a "
            "condition that only some of them meet, such as rank == 0",
            certain=True,
        )
    if run.outcome.ending is Ending.HUNG:
        return Cause("hang", "the run stands still", places, "look at where it stands: what it waits for does not come")
    return Cause("slow", "the run did not end in its time", places, "a longer --timeout, or fewer --steps")


def why_not_in_time(run: Run) -> str:
    """Return what to do about an original that was too slow, or why its ranks wait for each other for ever."""
    if len(set(run.taken)) < 2:
        return "a longer --timeout or fewer --steps"
    counts = ", ".join(f"rank {rank} took {taken}" for rank, taken in enumerate(run.taken))
    return (
        f"its ranks are not in step ({counts}), so that one waits for the others; with DistributedDataParallel that "
        "comes from a forward that only some of them run with gradients enabled, or from data of different length"
    )
