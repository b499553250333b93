"""Scripts that share modules, and where their root is."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent

import pytest

from dsmigrate.codemod.model import Options, Status
from dsmigrate.migration.job import Job, Outcome, run
from dsmigrate.migration.placement import place, writes
from dsmigrate.migration.sets import flattened, project_root, reconcile
from tests.codemod.projects import ENGINE, ENTRY


def write(folder: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(dedent(text).lstrip("\n"), encoding="utf-8")


def migrate(folder: Path, *names: str, root: Path | None = None) -> list[Outcome]:
    jobs = [Job(folder / name, (folder / name).parent, Options(), project=root or folder) for name in names]
    return flattened(reconcile([run(job) for job in jobs]))


def test_what_a_script_outside_registers_under_its_name_is_a_conflict(tmp_path: Path) -> None:
    engine = "import torch\nfrom loops import register\n" + dedent(ENGINE).replace("def train", "@register\ndef train")
    loops = "def register(function):\n    return function\n"
    alone = "import engine\nengine.train_one_epoch(1, 2, 3)\n"
    write(tmp_path, {"train.py": ENTRY, "engine.py": engine, "loops.py": loops, "alone.py": alone})
    (outcome,) = migrate(tmp_path, "train.py")
    assert outcome.result.status is Status.REFUSED
    (change,) = outcome.result.changes
    assert change.code == "MG914"
    assert "train_one_epoch would change" in change.message
    assert "alone.py uses the present form" in change.message
    assert "has a decorator that may register it" in change.message
    assert not writes(place([outcome], None), force=False, in_place=True)


def test_a_function_that_a_decision_leaves_as_it_is_may_serve_other_scripts(tmp_path: Path) -> None:
    """What only the config says (an optimizer off DeepSpeed's list) is no other form of the function."""
    tools = """
        import torch

        def make_optimizer(model):
            return torch.optim.RAdam(model.parameters(), lr=0.1)
        """
    entry = ENTRY.replace("import engine", "import engine\n    import tools").replace(
        "torch.optim.SGD(model.parameters(), lr=0.1)", "tools.make_optimizer(model)"
    )
    alone = "import tools\ntools.make_optimizer(None)\n"
    write(tmp_path, {"train.py": entry, "engine.py": ENGINE, "tools.py": tools, "alone.py": alone})
    outcomes = migrate(tmp_path, "train.py")
    assert outcomes[0].result.status is Status.CONVERTED
    assert any(c.code == "MG601" for outcome in outcomes for c in outcome.result.changes)
    assert not any(c.code == "MG120" for outcome in outcomes for c in outcome.result.changes)


def test_two_scripts_that_need_a_module_in_different_forms_are_both_refused(tmp_path: Path) -> None:
    other = ENTRY.replace("model = Dis", "args = parse()\n        model = Dis").replace(
        "optimizer)\n\n", "optimizer, args.limit)\n\n"
    )
    engine = ENGINE.replace("optimizer):", "optimizer, limit=None):").replace(
        "optimizer.step()",
        "if limit is not None:\n"
        "                torch.nn.utils.clip_grad_norm_(net.parameters(), limit)\n"
        "            optimizer.step()",
    )
    engine = engine.replace("import torch.nn.functional", "import torch\n    import torch.nn.functional")
    unknown = other.replace("args.limit", "limits[rank]")
    write(tmp_path, {"one.py": ENTRY, "two.py": unknown, "engine.py": engine})
    outcomes = migrate(tmp_path, "one.py", "two.py")
    assert {outcome.result.status for outcome in outcomes} == {Status.REFUSED}
    assert all("in different ways for" in outcome.result.changes[0].message for outcome in outcomes)


def test_two_scripts_that_agree_on_their_module_are_converted_together(tmp_path: Path) -> None:
    write(tmp_path, {"one.py": ENTRY, "two.py": ENTRY.replace("lr=0.1", "lr=0.2"), "engine.py": ENGINE})
    outcomes = migrate(tmp_path, "one.py", "two.py")
    assert [outcome.job.path.name for outcome in outcomes] == ["one.py", "engine.py", "two.py"]
    assert all(outcome.result.status is Status.CONVERTED for outcome in outcomes)
    assert [path.path.name for path in writes(place(outcomes, None), force=False, in_place=True)] == [
        "one.py", "ds_config.json", "engine.py", "two.py",
    ]  # fmt: skip


def test_a_module_given_by_name_is_reported_with_its_script(tmp_path: Path) -> None:
    write(tmp_path, {"train.py": ENTRY, "engine.py": ENGINE})
    outcomes = migrate(tmp_path, "engine.py", "train.py")
    assert [outcome.job.path.name for outcome in outcomes] == ["train.py", "engine.py"]


def test_results_outside_of_the_scripts_folder_keep_their_way_from_the_root(tmp_path: Path) -> None:
    entry = ENTRY.replace("import engine", "from lib import engine")
    write(tmp_path, {"tools/train.py": entry, "lib/__init__.py": "", "lib/engine.py": ENGINE})
    outcomes = migrate(tmp_path, "tools/train.py")
    output = tmp_path / "out"
    found = {item.script.relative_to(output).as_posix() for item in place(outcomes, output)}
    assert found == {"tools/train.py", "lib/engine.py"}


@pytest.mark.parametrize(("mark", "expected"), [(".git", "."), ("repo/pyproject.toml", "repo"), (None, "repo/tools")])
def test_the_root_is_the_nearest_folder_that_looks_like_one(tmp_path: Path, mark: str | None, expected: str) -> None:
    write(tmp_path, {"repo/tools/train.py": ""})
    if mark is not None:
        write(tmp_path, {mark: ""})
    assert project_root(tmp_path / "repo/tools/train.py") == tmp_path.joinpath(expected).resolve()


def test_a_package_is_left_for_its_root(tmp_path: Path) -> None:
    write(tmp_path, {"pkg/__init__.py": "", "pkg/sub/__init__.py": "", "pkg/sub/train.py": ""})
    assert project_root(tmp_path / "pkg/sub/train.py") == tmp_path


def test_a_root_above_a_link_is_named_through_the_link(tmp_path: Path) -> None:
    """Or the script would lie outside of its own project, and be converted without its modules."""
    (tmp_path / "there/pkg").mkdir(parents=True)
    (tmp_path / "there/pyproject.toml").touch()
    (tmp_path / "here").symlink_to(tmp_path / "there")
    assert project_root(tmp_path / "here/pkg/train.py") == tmp_path / "here"
