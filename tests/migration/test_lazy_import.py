"""A module that other scripts import too imports DeepSpeed where it uses it."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent

import pytest

from dsmigrate.codemod.project.lazily import lazily
from dsmigrate.migration.job import Outcome
from tests.codemod.across.together import ENGINE
from tests.migration.test_sets import migrate, write

ENTRY = """
    import engine
    import tools
    import torch
    from torch.nn.parallel import DistributedDataParallel

    def main():
        tools.set_up()
        model = DistributedDataParallel(torch.nn.Linear(4, 4).cuda())
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        engine.train_one_epoch(model, loader, optimizer)

    main()
    """
TOOLS = '''
    import os

    import torch
    import torch.distributed as dist


    def accuracy(x, y):
        return (x == y).float().mean()


    def set_up():
        """Sets up the group."""
        # Under a launcher only.
        torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
        dist.init_process_group("nccl")
    '''


def tools_of(outcomes: list[Outcome]) -> Outcome:
    return next(outcome for outcome in outcomes if outcome.job.path.name == "tools.py")


def text_of(outcomes: list[Outcome]) -> str:
    return (tools_of(outcomes).result.new_source or b"").decode()


def told(outcomes: list[Outcome]) -> list[str]:
    return [c.message for c in tools_of(outcomes).result.changes if c.code == "MG228"]


def test_a_script_outside_that_uses_another_function_needs_no_deepspeed(tmp_path: Path) -> None:
    alone = "import tools\nprint(tools.accuracy(1, 1))\n"
    write(tmp_path, {"train.py": ENTRY, "engine.py": ENGINE, "tools.py": TOOLS, "alone.py": alone})
    outcomes = migrate(tmp_path, "train.py")
    assert "\nimport deepspeed" not in text_of(outcomes)
    assert '    """Sets up the group."""\n    import deepspeed\n    # Under a launcher only.\n' in text_of(outcomes)
    (message,) = told(outcomes)
    assert message == f"deepspeed is imported inside set_up: {tmp_path.as_posix()}/alone.py imports this file too"
    assert "+    import deepspeed" in tools_of(outcomes).result.diff


def test_a_script_outside_that_calls_the_function_is_named(tmp_path: Path) -> None:
    alone = "import tools\ntools.set_up()\n"
    write(tmp_path, {"train.py": ENTRY, "engine.py": ENGINE, "tools.py": TOOLS, "alone.py": alone})
    (message,) = told(migrate(tmp_path, "train.py"))
    assert message.endswith(f". What calls it needs DeepSpeed installed: {tmp_path.as_posix()}/alone.py")


def test_a_script_outside_may_import_it_through_a_module_of_the_training(tmp_path: Path) -> None:
    engine = "import tools\n" + dedent(ENGINE)
    write(tmp_path, {"train.py": ENTRY, "engine.py": engine, "tools.py": TOOLS, "alone.py": "import engine\n"})
    assert told(migrate(tmp_path, "train.py"))


@pytest.mark.parametrize("user", ["", "import engine\nimport tools\n"])
def test_a_module_of_one_training_imports_it_at_its_head(tmp_path: Path, user: str) -> None:
    """Also where a module that only this script runs imports it."""
    entry = "import more\n" + dedent(ENTRY)
    write(tmp_path, {"train.py": entry, "engine.py": ENGINE, "tools.py": TOOLS, "more.py": user})
    outcomes = migrate(tmp_path, "train.py")
    assert "\nimport deepspeed\n" in text_of(outcomes)
    assert not told(outcomes)


def test_scripts_that_are_converted_together_share_the_import(tmp_path: Path) -> None:
    write(tmp_path, {"train.py": ENTRY, "other.py": ENTRY, "engine.py": ENGINE, "tools.py": TOOLS})
    assert "\nimport deepspeed\n" in text_of(migrate(tmp_path, "train.py", "other.py"))


@pytest.mark.parametrize(
    "text",
    [
        "import deepspeed\nclass A(deepspeed.Base):\n    pass\n",
        "import deepspeed\ndef a(x=deepspeed.one):\n    return x\n",
        "import deepspeed\ndef a(): return deepspeed.one\n",
        "def a():\n    import deepspeed\n",
    ],
)
def test_what_uses_it_when_the_module_is_imported_keeps_it(text: str) -> None:
    assert lazily(text, "\n") is None


def test_methods_and_functions_within_functions_find_it() -> None:
    head = "class A:\n    def b(\n        self,\n    ):\n"
    body = "        @f\n        def c():\n            deepspeed.d()\n"
    found = lazily(f"import os\n\nimport deepspeed\n\n{head}{body}", "\n")
    assert found is not None
    assert found.names == ("A",)
    assert found.text == f"import os\n\n{head}        import deepspeed\n{body}"
