"""The commands that start a converted script."""

from __future__ import annotations

from textwrap import dedent

import pytest

from dsmigrate.codemod.model import Kind
from tests.codemod.checks import convert, migrate, script
from tests.codemod.projects import ENGINE, ENTRY
from tests.support.migrating import migrate_files

TORCHRUN, DEEPSPEED = "torchrun --nproc_per_node 2 train.py", "deepspeed --num_gpus 2 --no_local_rank train.py"


@pytest.mark.parametrize(
    "read", ['os.environ["LOCAL_RANK"]', 'os.environ.get("LOCAL_WORLD_SIZE", "1")', '"GROUP_RANK" in os.environ']
)
def test_both_launchers_start_a_script(read: str) -> None:
    assert convert(end=f"print({read})").result.launch == (TORCHRUN, DEEPSPEED)


@pytest.mark.parametrize("name", ["LOCAL_WORLD_SIZE", "GROUP_RANK"])
def test_a_script_that_needs_what_torchrun_sets_is_started_by_it(name: str) -> None:
    assert convert(end=f'print(os.environ["{name}"])').result.launch == (TORCHRUN,)
    assert convert(end=f'keys = ["RANK", "{name}"]\nprint([os.environ[key] for key in keys])').result.launch == (
        TORCHRUN,
    )


@pytest.mark.parametrize(
    ("path", "imported", "command"),
    [
        ("src/lab/main.py", "from .data import loaders", "cd src && torchrun --nproc_per_node 2 -m lab.main"),
        ("lab/run/main.py", "from .data import loaders", "cd lab && torchrun --nproc_per_node 2 -m run.main"),
        ("/a b/lab/run/main.py", "from ..data import x", "cd '/a b' && torchrun --nproc_per_node 2 -m lab.run.main"),
        ("my-lab/main.py", "from .data import loaders", "torchrun --nproc_per_node 2 my-lab/main.py"),
        ("main.py", "from .data import loaders", "torchrun --nproc_per_node 2 main.py"),
        ("lab/main.py", "from lab.data import loaders", "torchrun --nproc_per_node 2 -m lab.main"),
    ],
)
def test_a_script_with_relative_imports_is_started_as_a_module(path: str, imported: str, command: str) -> None:
    source = f"{imported}\n{script()}"
    packages = {"src/lab": "src", "lab/run": "lab", "/a b/lab/run": "/a b/lab"}
    texts = {
        path: source.encode(),
        **{f"{folder}/data.py": b"loaders = x = 1\n" for pair in packages.items() for folder in pair},
    }
    launch = migrate_files(texts, path).results[path].launch
    assert launch[0] == command
    if " -m " in command:
        assert launch[1].endswith("--no_local_rank --module " + command.rpartition(" -m ")[2])


_TRAINER = """
    import os
    import torch
    from torch.nn.parallel import DistributedDataParallel as DDP

    torch.manual_seed(0)
    rank = int(os.environ["LOCAL_RANK"])

    def train(model, loader):
        model = DDP(model.to(rank), device_ids=[rank])
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for x, y in loader:
            loss = ((model(x.to(rank)) - y.to(rank)) ** 2).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    """


def test_a_file_that_only_defines_things_is_said_to_start_nothing() -> None:
    migrated = migrate(_TRAINER)
    message = migrated.said("MG209", "import DistributedDataParallel", Kind.KEPT).message
    assert "convert the script that imports it" in message
    assert migrated.result.launch == ()


@pytest.mark.parametrize(
    "start", ["train(net, data)", 'if __name__ == "__main__":\n        train(net, data)', "fire.Fire(train)"]
)
def test_a_file_that_may_start_a_training_is_launched(start: str) -> None:
    migrate(f"{_TRAINER}\n    {start}\n").silent("MG209")


@pytest.mark.parametrize(
    ("script_path", "loop_path", "imported", "command"),
    [
        ("src/lab/main.py", "src/lab/engine.py", "import lab.engine as engine", "cd src && torchrun ... -m lab.main"),
        ("lab/main.py", "lab/engine.py", "import lab.engine as engine", "torchrun ... -m lab.main"),
        ("lab/main.py", "lab/lab/engine.py", "import lab.engine as engine", "torchrun ... lab/main.py"),
        ("main.py", "lab/engine.py", "import lab.engine as engine", "torchrun ... main.py"),
        ("lab/main.py", "lab/engine.py", "import engine", "torchrun ... lab/main.py"),
    ],
)
def test_a_script_that_imports_its_own_package_is_started_as_a_module(
    script_path: str, loop_path: str, imported: str, command: str
) -> None:
    files = {script_path: ENTRY.replace("import engine", imported), loop_path: ENGINE}
    texts = {path: dedent(text).encode() for path, text in files.items()}
    launch = migrate_files(texts, script_path).results[script_path].launch
    assert launch[0] == command.replace("...", "--nproc_per_node 2")


def test_a_script_that_imports_what_lies_beside_it_too_is_started_as_a_file() -> None:
    imported = "import lab.data\n    import engine"
    files = {
        "lab/run/main.py": ENTRY.replace("import engine", imported),
        "lab/run/engine.py": ENGINE,
        "lab/data.py": "",
    }
    texts = {path: dedent(text).encode() for path, text in files.items()}
    launch = migrate_files(texts, "lab/run/main.py").results["lab/run/main.py"].launch
    assert launch[0] == "torchrun --nproc_per_node 2 lab/run/main.py"


def test_a_module_is_started_from_above_its_package_wherever_the_person_is() -> None:
    files = {"src/lab/main.py": ENTRY.replace("import engine", "from . import engine"), "src/lab/engine.py": ENGINE}
    texts = {path: dedent(text).encode() for path, text in files.items()}
    found = migrate_files(texts, "src/lab/main.py", shown=lambda path: path.rpartition("/")[2])
    assert found.results["src/lab/main.py"].launch[0] == "cd .. && torchrun --nproc_per_node 2 -m lab.main"


@pytest.mark.parametrize(
    ("shown", "there"), [("main.py", ""), ("run/main.py", "cd run && "), ("../run/main.py", "cd ../run && ")]
)
def test_a_script_is_started_in_its_folder_without_a_way_out_and_in_again(shown: str, there: str) -> None:
    text = script(options='parser.add_argument("--data", default="../data")\n').encode()
    found = migrate_files({"lab/run/main.py": text}, "lab/run/main.py", shown=lambda _: shown)
    result = found.results["lab/run/main.py"]
    assert result.launch[0] == f"{there}torchrun --nproc_per_node 2 main.py"
    assert result.trial is not None
    assert (result.trial.folder, result.trial.script) == (there[3:-4], "main.py")
