"""Scripts that share modules, and where their root is."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent

import pytest

from dsmigrate.codemod.model import Options, Status
from dsmigrate.migration import together
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


def test_what_a_script_outside_runs_too_stands_under_a_test_for_the_engine(tmp_path: Path) -> None:
    alone = "import engine\n\nif __name__ == '__main__':\n    engine.train_one_epoch(model, loader, optimizer)\n"
    write(tmp_path, {"train.py": ENTRY, "engine.py": ENGINE, "alone.py": alone})
    _, engine, compat = migrate(tmp_path, "train.py")
    assert [change.code for change in engine.result.changes if change.code == "MG120"] == ["MG120"]
    made = (engine.result.new_source or b"").decode()
    assert "        if ds_compat.is_engine(net):\n            net.backward(loss)\n            net.step()\n" in made
    assert (
        "        else:\n            optimizer.zero_grad()\n            loss.backward()\n            optimizer.step()\n"
        in made
    )
    assert (compat.job.path.name, compat.is_new) == ("ds_compat.py", True)
    assert b"def is_engine(" in (compat.result.new_source or b"")


def test_where_many_scripts_run_a_module_none_of_them_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A toolkit has hundreds of recipes that run its modules; each would take seconds."""
    runs = "import engine\n\nif __name__ == '__main__':\n    engine.load()\n"
    others = {f"other_{number}.py": runs for number in range(9)}
    write(tmp_path, {"train.py": ENTRY, "engine.py": ENGINE + "\n    def load():\n        pass\n", **others})
    monkeypatch.setattr(together, "runs_of", lambda *_: pytest.fail("a script outside was read"))
    outcomes = migrate(tmp_path, "train.py")
    (change,) = [change for one in outcomes for change in one.result.changes if change.code == "MG120"]
    assert change.message.startswith("train_one_epoch runs with other models too")


MAKER = """
    import torch
    from torch.nn.parallel import DistributedDataParallel

    def train(kind, clip, loader):
        model = DistributedDataParallel(torch.nn.Linear(4, 4).cuda())
        optimizer = kind(model.parameters(), lr=0.1)
        for x in loader:
            optimizer.zero_grad()
            model(x).sum().backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), clip)
            optimizer.step()
    """
CALLER = """
    import torch
    import torch.distributed as dist
    import maker

    dist.init_process_group("nccl")
    maker.train(torch.optim.{kind}, {clip}, torch.rand(8, 4, 4))
    """


@pytest.mark.parametrize(("kind", "status"), [("AdamW", Status.CONVERTED), ("SGD", Status.REFUSED)])
def test_an_engine_that_two_scripts_make_in_one_place_has_one_config(tmp_path: Path, kind: str, status: Status) -> None:
    one, two = (CALLER.format(kind=name, clip="1.0") for name in ("Adam", kind))
    write(tmp_path, {"one.py": one, "two.py": two, "maker.py": MAKER})
    outcomes = {outcome.job.path.name: outcome for outcome in migrate(tmp_path, "one.py", "two.py")}
    assert [outcomes[name].result.status for name in ("one.py", "two.py")] == [status, status]
    if status is Status.REFUSED:
        (change,) = outcomes["two.py"].result.changes
        assert change.code == "MG914"
        assert change.message == "maker.py makes the engine of one.py and two.py, which need different configs"


def test_a_ds_compat_of_someone_else_is_not_touched(tmp_path: Path) -> None:
    alone = "import engine\n\nif __name__ == '__main__':\n    engine.train_one_epoch(model, loader, optimizer)\n"
    files = {"train.py": ENTRY, "engine.py": ENGINE, "alone.py": alone, "ds_compat.py": "mine = 1\n"}
    write(tmp_path, files)
    (outcome,) = migrate(tmp_path, "train.py")
    assert outcome.result.status is Status.REFUSED
    assert "ds_compat.py is there and not dsmigrate's" in outcome.result.changes[0].message


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


def test_a_clip_that_one_of_two_scripts_asks_for_serves_both(tmp_path: Path) -> None:
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
    one, module, two = migrate(tmp_path, "one.py", "two.py")
    assert [outcome.result.status for outcome in (one, module, two)] == [Status.CONVERTED] * 3
    stages = [outcome.result.config["zero_optimization"]["stage"] for outcome in (one, two) if outcome.result.config]
    assert stages == [2, 0]


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


def test_nothing_is_said_of_a_file_that_a_converted_script_runs_as_it_is(tmp_path: Path) -> None:
    legacy = """
    from torch.nn.parallel import DistributedDataParallel

    def wrapped(model):
        return DistributedDataParallel(model)

    def size():
        return 4
    """
    train = """
    import torch
    import torch.distributed as dist
    import legacy

    dist.init_process_group("nccl")
    model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(legacy.size(), 1).cuda())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for step in range(4):
        loss = model(torch.randn(2, 4).cuda()).sum()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    """
    write(tmp_path, {"legacy.py": legacy, "train.py": train, "other.py": legacy})
    found = {outcome.job.path.name: outcome for outcome in migrate(tmp_path, "train.py", "legacy.py", "other.py")}
    assert found["train.py"].changes
    assert found["legacy.py"].result.changes == ()
    assert [change.code for change in found["other.py"].result.changes] == ["MG209"]
