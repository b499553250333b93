"""One run of one script in a folder of its own."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from dsmigrate.files.reading import read
from dsmigrate.files.text import SourceError
from dsmigrate.verify import launching, reading, running
from dsmigrate.verify.device import Device
from dsmigrate.verify.failures import is_the_network
from dsmigrate.verify.harness.job import VARIABLE, Job
from dsmigrate.verify.model import Run, VerifyError
from dsmigrate.verify.request import Request


@dataclass(frozen=True, slots=True)
class Scene:
    """Where a script runs: ``folder`` is the working directory, ``script`` relative to it, ``origin`` the original."""

    folder: Path
    script: str
    origin: Path
    is_copy: bool = True


@dataclass(frozen=True, slots=True)
class Trials:
    """What all runs of a verification share; ``place`` is for records and logs, ``say`` hears how far a run is."""

    request: Request
    python: str
    device: Device
    place: Path
    say: Callable[[str, int, int], None] = lambda _name, _taken, _of: None

    def run(
        self,
        name: str,
        scene: Scene,
        *,
        arguments: Sequence[str],
        stage: int | None = None,
        steps: int | None = None,
        save_after: int | None = None,
        saved: Sequence[str] = (),
    ) -> Run:
        """Train a script and return its records; ``name`` is for people, and for its folder.

        A run whose processes lose each other before the first step, because another program took the port or broke
        into a connection that was being made, says nothing of the script: it is tried once more, at another port.
        """
        words: dict[str, Any] = {
            "arguments": arguments, "stage": stage, "steps": steps, "save_after": save_after, "saved": tuple(saved)
        }  # fmt: skip
        with launching.reserved_port() as port:
            found = self._run(name, scene, port, **words)
        if not _lost_each_other(found):
            return found
        with launching.reserved_port() as port:
            return self._run(name, scene, port, **words)

    def _run(
        self,
        name: str,
        scene: Scene,
        port: int,
        *,
        arguments: Sequence[str],
        stage: int | None,
        steps: int | None,
        save_after: int | None,
        saved: tuple[str, ...],
    ) -> Run:
        trace = self._folder(name)
        request = self.request
        job = Job(
            trace=str(trace),
            work=str(scene.folder),
            origin=str(scene.origin),
            steps=request.steps if steps is None else steps,
            processes=request.processes,
            port=port,
            seed=request.seed,
            pretend=self.device.pretend,
            cpu=self.device.cpu,
            save_after=save_after,
            zero_stage=stage,
            links=scene.is_copy,
            saved=saved,
            spawns=launching.kind_of(_source(request.original), "auto") == "python",
        )
        file = trace / "job.json"
        file.write_text(json.dumps(asdict(job)), encoding="utf-8")
        source = _source(scene.folder / scene.script)
        launch = launching.plan(
            python=self.python,
            script=scene.script,
            arguments=arguments,
            kind=launching.kind_of(source, request.launcher),
            processes=request.processes,
            port=port,
            environment={**launching.base_environment(self.python, cpu=self.device.cpu), VARIABLE: str(file)},
            source=source,
        )
        try:
            outcome = running.run(
                launch,
                folder=scene.folder,
                logs=trace,
                timeout=request.timeout,
                has_ended=lambda: reading.ended(trace, request.processes),
                progress=lambda: reading.progress(trace),
                say=lambda taken: self.say(name, taken, job.steps),
            )
        finally:
            launching.free_shared_memory(port)
        return reading.read(name, trace, outcome)

    def _folder(self, name: str) -> Path:
        count = len(list(self.place.glob("run*")))
        folder = self.place / f"run{count:02d}-{name.replace(' ', '-')}"
        folder.mkdir(parents=True)
        return folder


def _lost_each_other(run: Run) -> bool:
    """Whether a run ended before its first step for no reason but the network."""
    if run.is_complete or run.steps:
        return False
    tails = run.outcome.tails
    return any("EADDRINUSE" in tail for tail in tails) or is_the_network(run.outcome.codes, tails)


def _source(script: Path) -> str:
    try:
        return read(script).decode("utf-8", "replace")
    except SourceError as error:
        raise VerifyError(f"{script.name}: {error.message}") from None
