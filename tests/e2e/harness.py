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
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from .cases import Case
from .conversion import REPOSITORY, adapt_configs, convert
from .launching import HERE, TIMEOUT_SECONDS, Outcome, Worker, free_port, launch_cold, rank_environment, torch_python
from .readings import Reading, compare, joined, read
from .verdict import Verdict, resumed_tolerance, tolerance

EXAMPLES = REPOSITORY / "examples"
RANKS = 2

WEIGHTS_FACTOR = 10.0
"""How much farther apart weights may be than losses."""

PLACED = (".py", ".json", ".pyc")
"""How files end that lie in a folder before a run writes into it, or that Python writes."""

STARTS_ITS_OWN_PROCESSES = re.compile(r"\bmp\.spawn\(")
"""Such a script is run by itself; a conversion is free to leave that to the launcher."""

Edit = Callable[[Path], None]


def stages() -> tuple[int, ...]:
    """The ZeRO stages that this session tries."""
    return tuple(int(stage) for stage in os.environ.get("DSMIGRATE_E2E_STAGES", "0,1,2,3").split(","))


def written(folder: Path) -> list[Path]:
    """The files that a run has left in its folder."""
    return [path for path in folder.rglob("*") if path.is_file() and path.suffix not in PLACED]


class Lab:
    """Everything one session shares: the warm processes, the original runs and the conversions."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._workers: dict[str, Worker] = {}
        self._originals: dict[str, Outcome] = {}
        self._first_halves: dict[tuple[str, int | None], Outcome] = {}
        self._second_halves: dict[tuple[str, int | None, int | None, int], Outcome] = {}
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

    def launch(
        self, case: Case, folder: Path, argv: Sequence[str], flavour: str, *, ranks: int = RANKS, may_hang: bool = False
    ) -> Outcome:
        """Run the script of a case that lies in ``folder``, there; one that may hang is ended once it sleeps.

        After an abort at exit, or a broken connection between the ranks, it is tried a second time.
        """
        outcome = self._launch_once(case, folder, argv, flavour, ranks, may_hang=may_hang)
        if outcome.aborted or outcome.lost_each_other:
            outcome = self._launch_once(case, folder, argv, flavour, ranks, may_hang=may_hang)
        return outcome

    def _launch_once(
        self, case: Case, folder: Path, argv: Sequence[str], flavour: str, ranks: int, *, may_hang: bool
    ) -> Outcome:
        script = folder / Path(case.script).name
        if STARTS_ITS_OWN_PROCESSES.search(script.read_text()):
            return launch_cold([torch_python(), str(script), *argv], folder)
        port = free_port()
        return self._run(
            flavour,
            script,
            [[argument.format(rank=rank) for argument in argv] for rank in range(ranks)],
            [rank_environment(rank, ranks, port, case.launch) for rank in range(ranks)],
            folder,
            may_hang=may_hang,
        )

    def _run(
        self,
        flavour: str,
        script: Path,
        argv: Sequence[Sequence[str]],
        environments: Sequence[dict[str, str]],
        folder: Path,
        *,
        may_hang: bool = False,
    ) -> Outcome:
        """Run a script in a warm process for each rank."""
        output = self._new_folder("output")
        output.mkdir(parents=True)
        answer = self._worker(flavour).run(
            {
                "script": str(script),
                "argv": argv,
                "env": environments,
                "cwd": str(folder),
                "output": str(output),
                "timeout": TIMEOUT_SECONDS,
                "may_hang": may_hang,
            }
        )
        texts = tuple((output / f"rank{rank}.txt").read_text(errors="replace") for rank in range(len(argv)))
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

    def first_half(self, case: Case, stage: int | None) -> Outcome:
        """A case stopped half way, converted for a ZeRO stage, or as it is for None; run once per session."""
        key = (case.name, stage)
        if key not in self._first_halves:
            assert case.halves is not None
            folder, flavour = self._place_side(case, "first", stage)
            self._first_halves[key] = self.launch(case, folder, case.halves[0], flavour)
        return self._first_halves[key]

    def second_half(self, case: Case, writer: int | None, reader: int | None, ranks: int = RANKS) -> Outcome:
        """A case resumed by one side from the files that the other left; run once per session."""
        key = (case.name, writer, reader, ranks)
        if key not in self._second_halves:
            assert case.halves is not None
            folder, flavour = self.handed_over(case, writer, reader)
            self._second_halves[key] = self.launch(case, folder, case.halves[1], flavour, ranks=ranks)
        return self._second_halves[key]

    def handed_over(self, case: Case, writer: int | None, reader: int | None) -> tuple[Path, str]:
        """A folder for a side with the files that a first half has left, and what runs there."""
        folder, flavour = self._place_side(case, "second", reader)
        left = self.first_half(case, writer)
        assert left.succeeded, left.excerpt()
        for path in written(left.folder):
            place = folder / path.relative_to(left.folder)
            place.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(path, place)
        return folder, flavour

    def _place_side(self, case: Case, name: str, stage: int | None) -> tuple[Path, str]:
        if stage is None:
            return self.place(case, f"{case.name}-ddp-{name}"), "torch"
        return self.place(case, f"{case.name}-zero{stage}-{name}", self.conversion(case, stage)), "deepspeed"

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
                alone = self.place(replace(case, weights=None), f"{case.example}-sources")  # its project is that folder
                scripts = [alone / Path(script).name for script in (case.script, *case.together)]
                convert(scripts, stage, folder, case.options)
                adapt_configs(folder, stage, choose_stage=False)
            self._conversions[key] = folder
        return self._conversions[key]

    def verdict(self, case: Case, stage: int) -> Verdict:
        """The comparison of the conversion as it is; made once per session.

        The second half goes on from what the original has left: what the conversion leaves is for test_resumes.py.
        """
        key = (case.name, stage)
        if key not in self._verdicts:
            runs = self._handed_halves(case, stage) if case.halves else self._placed(case, stage)
            self._verdicts[key] = self._judged(case, stage, runs)
        return self._verdicts[key]

    def converted(self, case: Case, stage: int, edit: Edit | None = None) -> Verdict:
        """Train the conversion in one folder and compare. ``edit`` may change the files before, for the worse."""
        return self._judged(case, stage, self._placed(case, stage, edit))

    def _handed_halves(self, case: Case, stage: int) -> Iterator[Outcome]:
        yield self.first_half(case, stage)
        yield self.second_half(case, None, stage)

    def _placed(self, case: Case, stage: int, edit: Edit | None = None) -> Iterator[Outcome]:
        folder = self.place(case, f"{case.name}-zero{stage}-run", self.conversion(case, stage))
        if edit is not None:
            edit(folder)
        for argv in case.halves or (case.argv,):
            yield self.launch(case, folder, argv, "deepspeed", may_hang=edit is not None)

    def _judged(self, case: Case, stage: int, outcomes: Iterator[Outcome]) -> Verdict:
        readings: tuple[Reading, ...] = ()
        for outcome in outcomes:
            if not outcome.succeeded:
                return Verdict(None, (), outcome)
            readings = joined(readings, outcome.readings)
        reference = self.original(case)
        allowed = tolerance(case, stage)
        exports = self._compare_files(case.exports, reference.folder, outcome.folder, WEIGHTS_FACTOR * allowed.loss)
        return Verdict(compare(reference.readings, readings, allowed), exports, outcome)

    def files_apart(self, case: Case, stage: int) -> tuple[str, ...]:
        """What differs between the files that the first halves of the original and of its conversion have left."""
        before, after = (self.first_half(case, side).folder for side in (None, stage))
        names, found = (sorted(str(path.relative_to(folder)) for path in written(folder)) for folder in (before, after))
        if names != found:
            return (f"{names} became {found}",)
        return self._compare_files(names, before, after, WEIGHTS_FACTOR * resumed_tolerance(case, None, stage).loss)

    def _compare_files(self, names: Sequence[str], before: Path, after: Path, limit: float) -> tuple[str, ...]:
        missing = [name for name in names if not (after / name).is_file()]
        if missing or not names:
            return tuple(f"{name}: not written" for name in missing)
        pairs = [str(root / name) for name in names for root in (before, after)]
        outcome = self._run("torch", HERE / "compare_files.py", [pairs], [{}], self._folder)
        if outcome.returncodes != (0,):
            return outcome.texts
        distances = [value for reading in read(outcome.texts[0]) for _, value in reading.values]
        return tuple(
            f"{name}: differs by {distance:.1e}"
            for name, distance in zip(names, distances, strict=True)
            if not distance <= limit
        )
