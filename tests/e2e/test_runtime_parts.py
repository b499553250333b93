"""The parts of ``ds_compat.py`` with the real DeepSpeed: figures that ``runtime_parts/`` finds, a topic in one run."""

from __future__ import annotations

import ast
import json
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from dsmigrate.codemod.runtime.assemble import assemble
from dsmigrate.codemod.runtime.sources import sources

from .launching import HERE, Worker, free_port, rank_environment

pytestmark = [pytest.mark.deepspeed, pytest.mark.e2e, pytest.mark.xdist_group("runtime parts")]

Figures = dict[str, dict[str, Any]]


class Runs:
    """A warm process that runs topics in a folder with ``ds_compat.py``, each once."""

    def __init__(self, folder: Path) -> None:
        shutil.copytree(HERE / "runtime_parts", folder, dirs_exist_ok=True)
        names = [node.name for source in sources().values() for node in ast.parse(source).body if hasattr(node, "name")]
        (folder / "ds_compat.py").write_text(assemble(names, sources(), "0").text)
        self._folder = folder
        self._worker = Worker("deepspeed")
        self._found: dict[tuple[str, int], Figures] = {}

    def close(self) -> None:
        self._worker.close()

    def figures(self, topic: str, ranks: int = 2) -> Figures:
        if (topic, ranks) not in self._found:
            text = self._run(topic, ranks)
            line = re.search(r"^FOUND (.*)$", text, re.MULTILINE) or re.search(
                r"^FOUND (.*)$", self._run(topic, ranks), re.MULTILINE
            )
            assert line is not None, text[-3000:]
            self._found[topic, ranks] = json.loads(line[1])
        return self._found[topic, ranks]

    def _run(self, topic: str, ranks: int) -> str:
        port = free_port()
        self._worker.run(
            {
                "script": str(self._folder / "main.py"),
                "argv": [[topic]] * ranks,
                "env": [rank_environment(rank, ranks, port, "torchrun") for rank in range(ranks)],
                "cwd": str(self._folder),
                "output": str(self._folder),
                "timeout": 240.0,
            }
        )
        return (self._folder / "rank0.txt").read_text(errors="replace")


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Runs]:
    found = Runs(tmp_path_factory.mktemp("runtime"))
    yield found
    found.close()


def without_texts(figures: Figures) -> Figures:
    return {
        case: {what: one for what, one in found.items() if not isinstance(one, str)} for case, found in figures.items()
    }


def large(figures: Figures, limit: float) -> Figures:
    """What is farther apart than allowed, or no figure at all."""
    found = {case: {what: one for what, one in apart.items() if isinstance(one, str) or not one <= limit}
             for case, apart in figures.items()}  # fmt: skip
    return {case: apart for case, apart in found.items() if apart}


@pytest.mark.parametrize(
    ("topic", "cases"), [("fp32", 29), ("half", 9), ("processes.save", 4), ("others", 25), ("directories", 14)]
)
def test_an_engine_and_ddp_go_on_from_each_others_files(runs: Runs, topic: str, cases: int) -> None:
    figures = runs.figures(topic)
    assert len(figures) == cases
    assert large(figures, 1e-6) == {}


@pytest.mark.parametrize("ranks", [1, 3])
def test_another_number_of_processes_resumes(runs: Runs, ranks: int) -> None:
    runs.figures("processes.save")
    figures = runs.figures("processes.resume", ranks)
    assert len(figures) == 8
    assert large(figures, 1e-6) == {}


def test_loaded_weights_stay(runs: Runs) -> None:
    figures = runs.figures("weights")
    assert len(figures) == 8
    for found in figures.values():
        assert "size mismatch for first.0.weight" in found.pop("another shape")
    assert large(figures, 0.0) == {}


def test_the_scripts_scaler_decides(runs: Runs) -> None:
    figures = runs.figures("scaled")
    assert len(figures) == 21
    last = figures["timm's scaler at ZeRO 2"]
    assert last.pop("another clip") == (
        "ValueError: clip_grad=9.0 by norm, but the engine clips the norm to 0.8: set gradient_clipping in the config"
    )
    assert last.pop("a graph") == "NotImplementedError: engine.backward keeps no graph for second derivatives"
    assert large(figures, 1e-6) == {}


@pytest.mark.parametrize("stage", [1, 2, 3])
def test_a_rank_alone_gets_an_error(runs: Runs, stage: int) -> None:
    found = runs.figures("modes")[f"ZeRO {stage}"]
    alone = "gathers from all ranks, and some did not call it within 1 s: call gather_checkpoint(engine) before"
    assert f"RuntimeError: optimizer.state_dict() {alone}" in found["alone"]
    if stage == 3:
        assert f"RuntimeError: state_dict() of the model {alone}" in found["weights alone"]


@pytest.mark.parametrize("stage", [1, 2, 3])
def test_what_was_gathered_before_a_step_is_not_saved(runs: Runs, stage: int) -> None:
    found = runs.figures("modes")[f"ZeRO {stage}"]
    nothing = "nothing was gathered for this rank at step"
    assert f"{nothing} 1, and the last time was step 1" in found["not kept"]
    assert f"optimizer.state_dict(): {nothing} 2, and the last time was step 1" in found["old"]
    assert f"{nothing} 3, and the last time was step 3" in found["changed since"]
    if stage == 3:
        assert f"state_dict() of the model: {nothing} 2" in found["weights old"]
    assert large(without_texts({"": found}), 0.0) == {}


def test_what_cannot_be_loaded_is_refused(runs: Runs) -> None:
    found = runs.figures("modes")["others"]
    assert found["frozen"].startswith(
        "ValueError: parameters are frozen, such as first.0.weight, and only the optimizer"
    )
    assert "no attribute 'torch_checkpoints'" in found["not kept"]
    assert found["no engine"] == "no error"
    assert found["other groups"] == "ValueError: the loaded groups have [5] parameters, those of the optimizer have [6]"
    assert found["other steps"] == "step differs between parameters of a group: DeepSpeed has one for all"
    assert found["by rows"] == "NotImplementedError: row_var of AdamW is not one number per element"
