"""Runs of `dsmigrate verify` that share what they can: each original trains once, each conversion is made once."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any

from dsmigrate.verify.control import Control
from dsmigrate.verify.device import Device
from dsmigrate.verify.job import judge
from dsmigrate.verify.model import Comparison, Run
from dsmigrate.verify.request import Request
from dsmigrate.verify.trial import Scene, Trials

from .cases import Case
from .conversion import convert
from .faults import FAULTS
from .harness import EXAMPLES
from .launching import torch_python, training_environment

SECONDS = 600


class Bench:
    """Makes runs below ``place``."""

    def __init__(self, place: Path) -> None:
        self.place = place
        self._controls: dict[str, Control] = {}
        self._conversions: dict[tuple[str, int], Path] = {}
        os.environ.setdefault("TORCH_EXTENSIONS_DIR", training_environment()["TORCH_EXTENSIONS_DIR"])

    def trials(self, timeout: float = SECONDS, script: str = "trainer_class.py", **more: Any) -> Trials:
        device = Device(cpu=True, pretend=True, why="CPU")
        return Trials(Request(EXAMPLES / script, timeout=timeout, **more), torch_python(), device, self.place)

    def folder(self, name: str) -> Path:
        found = self.place / f"{len(list(self.place.iterdir())):03d}-{name}"
        found.mkdir()
        return found

    def control(self, case: Case) -> Control:
        if case.name not in self._controls:
            self._controls[case.name] = Control(
                self._train(case, "original", None), lambda steps: self._train(case, "original again", steps)
            )
        original = self._controls[case.name].original
        assert original.is_complete, original.outcome
        return self._controls[case.name]

    def _train(self, case: Case, name: str, steps: int | None) -> Run:
        folder = self.folder(case.name)
        shutil.copy(EXAMPLES / case.script, folder)
        return self.trials().run(name, Scene(folder, case.script, folder), arguments=case.argv, steps=steps)

    def faulty(self, faults: tuple[str, ...], case: Case, stage: int, timeout: float = SECONDS) -> Comparison:
        """Train a conversion with faults planted, and compare it with the original."""
        key = (case.script, stage)
        if key not in self._conversions:
            self._conversions[key] = self.folder(f"{case.example}-zero{stage}")
            convert([EXAMPLES / case.script], stage, self._conversions[key])
        folder = self.folder(f"{case.name}-fault")
        shutil.copytree(self._conversions[key], folder, dirs_exist_ok=True)
        for name in faults:
            next(one for one in FAULTS if one.name == name).plant(folder, case)
        run = self.trials(timeout).run("converted", Scene(folder, case.script, folder), arguments=case.argv)
        control = self.control(case)
        return judge(control.original, run, 1.0, control)
