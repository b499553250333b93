"""The conversion of a script as an editor asks for it: with its modules, as they are shown."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from dsmigrate.editing.python.conversion import AnnotatedEdit, Converted, convert
from dsmigrate.migration.job import Job, run
from dsmigrate.migration.sets import project_root, reconcile
from dsmigrate.settings.options import resolve

EXAMPLES = Path(__file__).parents[3] / "examples"
SCRIPTS = ["bert_utils/run_tagging.py", "mae_engine/main_pretrain.py", "two_entries/pretrain.py", "nanogpt.py"]


def applied(text: str, edits: tuple[AnnotatedEdit, ...]) -> str:
    for item in sorted(edits, key=lambda item: item.edit.start, reverse=True):
        text = text[: item.edit.start] + item.edit.text + text[item.edit.end :]
    return text


def converted(script: Path, unsaved: dict[Path, str] | None = None) -> Converted:
    return convert(script.read_text(), script, unsaved)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / ".git").mkdir()
    for name in {Path(script).parts[0] for script in SCRIPTS}:
        source = EXAMPLES / name
        shutil.copytree(source, tmp_path / name) if source.is_dir() else shutil.copy(source, tmp_path)
    return tmp_path


@pytest.mark.parametrize("name", [script for script in SCRIPTS if (EXAMPLES / script).exists()])
def test_it_is_what_the_command_makes(project: Path, name: str) -> None:
    script = project / name
    found = converted(script)
    job = Job(script, script.parent, resolve(script.parent, {}).options, project=project_root(script))
    (outcome,) = reconcile([run(job)])
    wanted = {item.job.path: item.result.new_source for item in (outcome, *outcome.modules) if item.changes}
    made = {module.path: applied(module.before, module.edits).encode() for module in found.modules}
    if found.edits:
        made[script] = applied(script.read_text(), found.edits).encode()
    assert made == {path: text for path, text in wanted.items() if text is not None}
    assert found.changes
    assert all(module.after == applied(module.before, module.edits) for module in found.modules)


def test_modules_are_named_from_the_project_and_every_edit_has_its_reason(project: Path) -> None:
    found = converted(project / "mae_engine" / "main_pretrain.py")
    names = [module.result.path for module in found.modules]
    assert names
    assert all(name.startswith("mae_engine/") for name in names)
    assert all(item.label and item.description for module in found.modules for item in module.edits)
    assert str(project) not in str([module.result.changes for module in found.modules])
    assert all(command.endswith(" main_pretrain.py") or " main_pretrain.py " in command for command in found.launch)


def test_a_module_is_taken_as_the_editor_shows_it(project: Path) -> None:
    script = project / "mae_engine" / "main_pretrain.py"
    module = converted(script).modules[0]
    shown = f"# not saved yet\n{module.before}"
    again = converted(script, {module.path: shown})
    same = next(other for other in again.modules if other.path == module.path)
    assert same.before == shown
    assert same.after == f"# not saved yet\n{module.after}"


def test_what_is_left_in_a_module_counts_for_the_whole(project: Path) -> None:
    script = project / "train.py"
    script.write_text(
        "import torch\nimport torch.distributed as dist\nfrom torch import nn, optim\n"
        "from torch.nn.parallel import DistributedDataParallel as DDP\nfrom loop import train\n"
        'dist.init_process_group("nccl")\nmodel = DDP(nn.Linear(2, 2).cuda())\n'
        "optimizer = optim.SGD(model.parameters(), lr=0.1)\ntrain(model, optimizer, torch.rand(8, 4, 2))\n"
    )
    (project / "loop.py").write_text(
        "def train(model, optimizer, data):\n    for x in data:\n        loss = model(x).sum()\n"
        "        loss.backward()\n        optimizer.step()\n"  # gradients that nothing zeroes
    )
    found = converted(script)
    assert found.status == "converted_with_todos", found.reasons
    assert any(reason.startswith("loop.py, line ") for reason in found.reasons)
