"""Trains an example under DDP and its conversion under DeepSpeed, and says whether they agree.

Settings come from the environment:

``DSMIGRATE_TORCH_PYTHON``
    the interpreter that has torch and deepspeed; this one by default. Without them the tests fail.
``DSMIGRATE_E2E_STAGES``
    the ZeRO stages to try, ``0,1,2,3`` by default.
``DSMIGRATE_E2E_CONVERTED``
    a folder with finished conversions, one sub-folder per example with the changed files and ``ds_config.json``, which
    are tested instead of what the tool makes.
"""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from dsmigrate.verify.launching import free_shared_memory

from .cases import Case
from .conversion import REPOSITORY, adapt_configs, convert
from .launching import HERE, TIMEOUT_SECONDS, Outcome, Worker, free_port, launch_cold, rank_environment, torch_python
from .readings import Reading, compare, joined, read
from .verdict import Verdict, tolerance

EXAMPLES = REPOSITORY / "examples"
RANKS = 2

WEIGHTS_FACTOR = 10.0
"""How much farther apart weights may be than losses."""

STARTS_ITS_OWN_PROCESSES = re.compile(r"\bmp\.spawn\(")
"""Such a script is run by itself; a conversion is free to leave that to the launcher."""

Edit = Callable[[Path], None]


def stages() -> tuple[int, ...]:
    """The ZeRO stages that this session tries."""
    return tuple(int(stage) for stage in os.environ.get("DSMIGRATE_E2E_STAGES", "0,1,2,3").split(","))


class Lab:
    """Everything one session shares: the warm processes, the original runs and the conversions."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._workers: dict[str, Worker] = {}
        self._originals: dict[str, Outcome] = {}
        self._conversions: dict[tuple[str, tuple[str, ...], int], Path] = {}
        self._verdicts: dict[tuple[str, int], Verdict] = {}
        self._count = 0

    def close(self) -> None:
        for worker in self._workers.values():
            worker.close()

    def _new_folder(self, name: str) -> Path:
        self._count += 1
        return self._folder / f"{self._count:04d}-{name}"

    def _worker(self, flavour: str) -> Worker:
        if flavour not in self._workers:
            self._workers[flavour] = Worker(flavour)
        return self._workers[flavour]

    def launch(self, case: Case, folder: Path, argv: Sequence[str], flavour: str, *, may_hang: bool = False) -> Outcome:
        """Run the script of a case that lies in ``folder``, there; one that may hang is ended once it sleeps.

        After an abort at exit, or a broken connection between the ranks, it is tried a second time.
        """
        outcome = self._launch_once(case, folder, argv, flavour, may_hang=may_hang)
        if outcome.aborted or outcome.lost_each_other:
            outcome = self._launch_once(case, folder, argv, flavour, may_hang=may_hang)
        return outcome

    def _launch_once(self, case: Case, folder: Path, argv: Sequence[str], flavour: str, *, may_hang: bool) -> Outcome:
        script = folder / Path(case.script).name
        if STARTS_ITS_OWN_PROCESSES.search(script.read_text()):
            return launch_cold([torch_python(), str(script), *argv], folder)
        output = self._new_folder("output")
        output.mkdir(parents=True)
        port = free_port()
        answer = self._worker(flavour).run(
            {
                "script": str(script),
                "argv": [[argument.format(rank=rank) for argument in argv] for rank in range(RANKS)],
                "env": [rank_environment(rank, RANKS, port, case.launch) for rank in range(RANKS)],
                "cwd": str(folder),
                "output": str(output),
                "timeout": TIMEOUT_SECONDS,
                "may_hang": may_hang,
            }
        )
        free_shared_memory(port)
        texts = tuple((output / f"rank{rank}.txt").read_text(errors="replace") for rank in range(RANKS))
        return Outcome(tuple(answer["returncodes"]), answer["timed_out"], texts, folder, answer["seconds"])

    def found(self, script: str, folder: Path, flavour: str) -> dict[str, Any]:
        """Run a script that lies in ``folder``, and return what rank 0 prints as JSON behind ``FOUND``."""
        outcome = self.launch(Case(script, script), folder, (), flavour)
        line = re.search(r"^FOUND (.*)$", outcome.texts[0], re.MULTILINE)
        assert line, outcome.excerpt()
        told: dict[str, Any] = json.loads(line[1])
        return told

    def place(self, case: Case, name: str, changed: Path | None = None) -> Path:
        """A fresh folder with the example, and over it the files that the conversion changed."""
        folder = self._new_folder(name)
        source = EXAMPLES / case.script
        if case.is_folder:
            shutil.copytree(source.parent, folder, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            folder.mkdir(parents=True)
            shutil.copy(source, folder)
        if changed is not None:
            shutil.copytree(changed, folder, dirs_exist_ok=True)
        if case.weights is not None:
            shutil.copy(self._pretrained(case), folder / "pretrained.pt")
        return folder

    def _pretrained(self, case: Case) -> Path:
        assert case.weights is not None
        argv, produced = case.weights
        plain = Case(f"{case.name}-weights", case.script, argv=argv)
        return self.original(plain).folder / produced

    def original(self, case: Case) -> Outcome:
        """The uninterrupted run of the example as it is, under DDP; run once per session."""
        if case.name not in self._originals:
            folder = self.place(case, f"{case.name}-ddp")
            outcome = self.launch(case, folder, case.argv, "torch")
            assert outcome.succeeded, f"the original does not run\n{outcome.excerpt()}"
            assert outcome.readings, f"the original prints no loss\n{outcome.excerpt()}"
            self._originals[case.name] = outcome
        return self._originals[case.name]

    def original_in_halves(self, case: Case) -> tuple[Reading, ...]:
        """What the example prints under DDP when it is stopped half way and resumed."""
        assert case.halves is not None
        folder = self.place(case, f"{case.name}-ddp-halves")
        outcomes = [self.launch(case, folder, argv, "torch") for argv in case.halves]
        for outcome in outcomes:
            assert outcome.succeeded, outcome.excerpt()
        return joined(outcomes[0].readings, outcomes[1].readings)

    def conversion(self, case: Case, stage: int) -> Path:
        """A folder with the files that the tool changed for a ZeRO stage, its config made fit for small models."""
        key = (case.script, (*case.together, *case.options), stage)
        if key not in self._conversions:
            folder = self._new_folder(f"{case.example}-zero{stage}")
            finished = os.environ.get("DSMIGRATE_E2E_CONVERTED")
            if finished:
                shutil.copytree(Path(finished) / case.example, folder)
                adapt_configs(folder, stage, choose_stage=True)
            else:
                convert([EXAMPLES / script for script in (case.script, *case.together)], stage, folder, case.options)
                adapt_configs(folder, stage, choose_stage=False)
            self._conversions[key] = folder
        return self._conversions[key]

    def verdict(self, case: Case, stage: int) -> Verdict:
        """The comparison of the conversion as it is; made once per session."""
        key = (case.name, stage)
        if key not in self._verdicts:
            self._verdicts[key] = self.converted(case, stage)
        return self._verdicts[key]

    def converted(self, case: Case, stage: int, edit: Edit | None = None) -> Verdict:
        """Train the conversion and compare. ``edit`` may change the placed files before they are run, for the worse."""
        reference = self.original(case)
        folder = self.place(case, f"{case.name}-zero{stage}-run", self.conversion(case, stage))
        if edit is not None:
            edit(folder)
        outcomes = []
        for argv in case.halves or (case.argv,):
            outcomes.append(self.launch(case, folder, argv, "deepspeed", may_hang=edit is not None))
            if not outcomes[-1].succeeded:
                return Verdict(None, (), outcomes[-1])
        readings = outcomes[0].readings
        if case.halves:
            readings = joined(readings, outcomes[1].readings)
        allowed = tolerance(case, stage)
        result = compare(reference.readings, readings, allowed)
        return Verdict(
            result, self._compare_exports(case, reference.folder, folder, WEIGHTS_FACTOR * allowed.loss), outcomes[-1]
        )

    def _compare_exports(self, case: Case, before: Path, after: Path, limit: float) -> tuple[str, ...]:
        if not case.exports:
            return ()
        missing = [name for name in case.exports if not (after / name).is_file()]
        if missing:
            return tuple(f"{name}: not written" for name in missing)
        folder = self._new_folder("exports")
        folder.mkdir(parents=True)
        shutil.copy(HERE / "compare_weights.py", folder)
        pairs = [str(root / name) for name in case.exports for root in (before, after)]
        output = self._new_folder("output")
        output.mkdir(parents=True)
        answer = self._worker("torch").run(
            {
                "script": str(folder / "compare_weights.py"),
                "argv": [pairs],
                "env": [{}],
                "cwd": str(folder),
                "output": str(output),
                "timeout": TIMEOUT_SECONDS,
            }
        )
        text = (output / "rank0.txt").read_text()
        if answer["returncodes"] != [0]:
            return (text,)
        distances = [value for reading in read(text) for _, value in reading.values]
        return tuple(
            f"{name}: weights differ by {distance:.1e}"
            for name, distance in zip(case.exports, distances, strict=True)
            if not distance <= limit
        )
