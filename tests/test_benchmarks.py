"""The benchmarks measure what they say they do."""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path

import pytest

from dsmigrate.codemod.model import Change, FileResult, Kind, Options, Status
from dsmigrate.migration.job import Job, run
from dsmigrate.migration.sets import reconcile
from tests.benchmarks import check_speed, corpus_table, set_table
from tests.benchmarks.leftovers import leftovers


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("engine.backward(loss)\nengine.step()\nlr_scheduler.step()\n", ()),
        ("isinstance(model, DistributedDataParallel)\ntorch.optim.SGD(p)\n", ()),
        ("dist.init_process_group('nccl')\nmp.spawn(main)\ns = GradScaler()\ns.update()\n", ()),
        ("from torch.nn.parallel import DistributedDataParallel as W\nm = W(m)\n", ("2: DDP wrap",)),
        ("torch.nn.parallel.DistributedDataParallel(m)\n", ("1: DDP wrap",)),
        (
            "loss.backward()\nself.optimizer.step()\nopt.step()\n",
            ("1: loss.backward()", "2: optimizer.step()", "3: optimizer.step()"),
        ),
        ("s = GradScaler()\ngrad_scaler.scale(loss)\n", ("2: scaler.scale",)),
        ("with model.no_sync():\n    clip_grad_norm_(p, 1)\n", ("1: no_sync", "2: clip_grad_norm_")),
        ("m.require_backward_grad_sync = False\n", ("1: require_backward_grad_sync",)),
        ("m, o = amp.initialize(m, o)\n", ("1: amp.initialize",)),
    ],
)
def test_leftover_idioms_are_found_without_the_codemods_own_eyes(source: str, found: tuple[str, ...]) -> None:
    assert leftovers(source) == found


def planted(monkeypatch: pytest.MonkeyPatch, folder: Path, output: bytes, *changes: Change) -> corpus_table.Row:
    """Examine a script with a codemod that gives ``output`` for it."""
    source = b"model = DDP(model)\nloss.backward()\n"
    (folder / "train.py").write_bytes(source)
    diff = "--- a/train.py\n+++ b/train.py\n@@ -1,2 +1,2 @@\n model = DDP(model)\n-loss.backward()\n+x\n"

    def migrate_source(given: bytes, *, path: str, options: Options) -> FileResult:  # noqa: ARG001
        if given != source:
            return FileResult(path, Status.UNCHANGED)
        return FileResult(path, Status.CONVERTED, changes, diff, output, {})

    monkeypatch.setattr(corpus_table, "migrate_source", migrate_source)
    return corpus_table.examine(folder / "train.py", folder)


SAID = Change("MG401", Kind.CONVERTED, 2, 2, "backward", "")


def test_what_an_optimizer_does_to_the_one_it_wraps_is_no_leftover() -> None:
    source = """
class Lookahead(Optimizer):
    def step(self):
        self.base_optimizer.step()

class Trainer(Base):
    def step(self):
        self.base_optimizer.step()
"""
    assert leftovers(source) == ("8: optimizer.step()",)


def test_a_good_output_is_sound(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    row = planted(monkeypatch, tmp_path, b"import loss\nloss\n", SAID)
    assert row.sound
    assert row.finished
    assert row.idempotent


def test_each_fault_of_an_output_is_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert planted(monkeypatch, tmp_path, b"def (\n", SAID).compiles is False
    assert planted(monkeypatch, tmp_path, b"model = DDP(model)\nloss.backward()\n", SAID).idempotent is False
    assert planted(monkeypatch, tmp_path, b"ghost\n", SAID).undefined == ("ghost",)
    assert planted(monkeypatch, tmp_path, b"import x\n").uncovered == (2,)
    assert planted(monkeypatch, tmp_path, b"import x\nx.backward()\n", SAID).leftover == ("2: loss.backward()",)


def test_a_crash_is_a_row(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def crash(*_: object, **__: object) -> FileResult:
        raise RuntimeError("planted")

    (tmp_path / "train.py").write_bytes(b"x = 1\n")
    monkeypatch.setattr(corpus_table, "migrate_source", crash)
    row = corpus_table.examine(tmp_path / "train.py", tmp_path)
    assert (row.status, row.sound) == ("crash", False)
    assert row.crash.startswith("RuntimeError: planted (")


@pytest.mark.broad
def test_every_example_is_sound_and_finished(capsys: pytest.CaptureFixture[str]) -> None:
    folder = Path(__file__).parents[1] / "examples"
    assert corpus_table.main([str(folder), "--json", "--jobs", "1"]) == 0
    rows = [corpus_table.Row(**row) for row in json.loads(capsys.readouterr().out)["rows"]]
    assert [row.script for row in rows if row.counts and not row.finished] == []


def test_a_command_that_cannot_do_its_work_is_not_measured() -> None:
    with pytest.raises(RuntimeError, match="ended with 2: no such file"):
        check_speed.command_cost([sys.executable, "-c", "import sys; sys.stderr.write('no such file'); sys.exit(2)"])


def test_time_that_a_command_waits_is_no_cpu_time() -> None:
    cost = check_speed.command_cost([sys.executable, "-c", "import time; time.sleep(0.5)"])
    assert cost.wall >= 0.5
    assert cost.cpu < cost.wall


def test_every_config_is_measured_for_the_one_who_reads_it(capsys: pytest.CaptureFixture[str]) -> None:
    texts = ['{"train_batch_size": "auto"}\n', '{\n  "train_batch_size": 8\n}', "{train_batch_size: 8}"]
    configs = [check_speed.config(text) for text in texts]
    assert [(one.lines, one.consumer.value) for one in configs] == [
        (2, "transformers"),
        (3, "deepspeed"),
        (1, "deepspeed"),
    ]
    check_speed.in_process(configs, 1)
    assert "2 files that are strict JSON" in capsys.readouterr().out


def test_what_stays_for_another_script_is_not_left_over(tmp_path: Path) -> None:
    root = tmp_path / "project"
    shutil.copytree(Path(__file__).parents[1] / "examples" / "two_entries", root)
    script = root / "pretrain.py"
    (first,) = reconcile([run(Job(script, root, Options(), project=root))])
    kept = [text for module in first.modules for text in leftovers((module.result.new_source or b"").decode())]
    assert any(text.endswith("loss.backward()") for text in kept)  # finetune.py trains under DDP as before
    row = set_table.examine(script, root)
    assert row.status == Status.CONVERTED.value
    assert row.leftover == ()
    assert row.faults == []


def test_what_the_script_runs_in_its_old_form_is_left_over() -> None:
    text = b"engine.step()\nif ds_compat.is_engine(model):\n    engine.backward(loss)\nelse:\n    loss.backward()\n"
    assert set_table._left({("train.py", 5)}, {"train.py": text}) == ["train.py:5: loss.backward()"]
    assert set_table._left({("train.py", 3)}, {"train.py": text}) == []
