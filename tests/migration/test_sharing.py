"""What scripts outside of a training use of its modules stays as it is; a twin beside it is converted."""

from __future__ import annotations

import ast
from pathlib import Path
from textwrap import dedent

import pytest
from pyflakes.checker import Checker
from pyflakes.messages import UndefinedName

from dsmigrate.codemod.model import Status
from dsmigrate.migration.job import Outcome
from tests.codemod.across.together import ENGINE, ENTRY
from tests.migration.test_sets import migrate, write

ALONE = "import engine\nengine.train_one_epoch(1, 2, 3)\n"


def texts(outcomes: list[Outcome], folder: Path) -> dict[str, str]:
    """The new text of every file, by its name; each compiles and lacks no name."""
    found = {}
    for outcome in outcomes:
        assert outcome.result.status in (Status.CONVERTED, Status.CONVERTED_WITH_TODOS), outcome.result.changes
        assert outcome.result.new_source is not None
        name = outcome.job.path.relative_to(folder).as_posix()
        found[name] = outcome.result.new_source.decode()
        wrong = [m for m in Checker(ast.parse(found[name])).messages if isinstance(m, UndefinedName)]
        assert [str(m) for m in wrong if "loader" not in str(m)] == []
    return found


def definition(text: str, name: str) -> str:
    node = next(node for node in ast.parse(text).body if getattr(node, "name", None) == name)
    return ast.get_source_segment(text, node) or ""


@pytest.mark.parametrize(
    ("imported", "called", "converted"),
    [
        ("import engine", "engine.train_one_epoch", "engine.train_one_epoch_deepspeed(model"),
        ("import engine as loops", "loops.train_one_epoch", "loops.train_one_epoch_deepspeed(model"),
        (
            "from engine import train_one_epoch",
            "train_one_epoch",
            "from engine import train_one_epoch_deepspeed as train_one_epoch\n",
        ),
        ("from engine import train_one_epoch as run", "run", "from engine import train_one_epoch_deepspeed as run\n"),
        ("from engine import *", "train_one_epoch", " train_one_epoch_deepspeed(model"),
    ],
)
def test_every_way_to_import_leads_to_the_twin(tmp_path: Path, imported: str, called: str, converted: str) -> None:
    entry = ENTRY.replace("import engine", imported).replace("engine.train_one_epoch", called)
    write(tmp_path, {"train.py": entry, "engine.py": ENGINE, "alone.py": ALONE})
    found = texts(migrate(tmp_path, "train.py"), tmp_path)
    assert converted in found["train.py"]
    assert definition(found["engine.py"], "train_one_epoch") == definition(dedent(ENGINE), "train_one_epoch")
    assert "net.backward(loss)" in definition(found["engine.py"], "train_one_epoch_deepspeed")
    assert set(found) == {"train.py", "engine.py"}


def test_an_import_inside_a_function_leads_to_the_twin(tmp_path: Path) -> None:
    entry = ENTRY.replace("    import engine\n", "").replace(
        "        engine.train", "        from engine import train_one_epoch\n        train"
    )
    write(tmp_path, {"train.py": entry, "engine.py": ENGINE, "alone.py": ALONE})
    found = texts(migrate(tmp_path, "train.py"), tmp_path)
    assert "    from engine import train_one_epoch_deepspeed as train_one_epoch\n" in found["train.py"]


@pytest.mark.parametrize(
    ("imported", "called", "converted"),
    [
        ("import lab as engine", "engine.train_one_epoch", " train_one_epoch_deepspeed(model"),
        (
            "from lab import train_one_epoch",
            "train_one_epoch",
            "from lab import train_one_epoch\nfrom lab.loops import train_one_epoch_deepspeed as train_one_epoch\n",
        ),
        ("from lab import *", "train_one_epoch", " train_one_epoch_deepspeed(model"),
    ],
)
def test_a_package_that_hands_the_name_on_stays_as_it_is(
    tmp_path: Path, imported: str, called: str, converted: str
) -> None:
    write(
        tmp_path,
        {
            "train.py": ENTRY.replace("import engine", imported).replace("engine.train_one_epoch", called),
            "lab/__init__.py": "from .loops import train_one_epoch\n",
            "lab/loops.py": ENGINE,
            "alone.py": "from lab import train_one_epoch\ntrain_one_epoch(1, 2, 3)\n",
        },
    )
    found = texts(migrate(tmp_path, "train.py"), tmp_path)
    assert converted in found["train.py"]
    assert "from lab.loops import train_one_epoch_deepspeed" in found["train.py"]
    assert set(found) == {"train.py", "lab/loops.py"}


CHAIN = """
    import torch.nn.functional as F
    from steps import step

    LIMIT = 3

    def train_one_epoch(net, loader, optimizer):
        for index, (x, y) in enumerate(loader):
            if index < LIMIT:
                step(F.mse_loss(net(x), y), optimizer)
    """
STEPS = """
    import logging

    def step(loss, optimizer):
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        logging.info("stepped")

    def other():
        return step
    """


def test_a_caller_that_others_use_gets_a_twin_when_what_it_calls_has_one(tmp_path: Path) -> None:
    write(tmp_path, {"train.py": ENTRY, "engine.py": CHAIN, "steps.py": STEPS, "alone.py": ALONE})
    found = texts(migrate(tmp_path, "train.py"), tmp_path)
    assert definition(found["engine.py"], "train_one_epoch") == definition(dedent(CHAIN), "train_one_epoch")
    assert "step_deepspeed(" in definition(found["engine.py"], "train_one_epoch_deepspeed")
    assert "from steps import step_deepspeed\n" in found["engine.py"]
    assert definition(found["steps.py"], "step") == definition(dedent(STEPS), "step")
    assert definition(found["steps.py"], "other") == definition(dedent(STEPS), "other")


def test_what_only_the_converted_script_uses_has_one_form(tmp_path: Path) -> None:
    write(
        tmp_path,
        {"train.py": ENTRY, "engine.py": CHAIN, "steps.py": STEPS, "alone.py": "import steps\nsteps.other()\n"},
    )
    found = texts(migrate(tmp_path, "train.py"), tmp_path)
    assert "train_one_epoch_deepspeed" not in found["engine.py"]
    assert "step_deepspeed(" in definition(found["engine.py"], "train_one_epoch")
    assert definition(found["steps.py"], "step") == definition(dedent(STEPS), "step")


SCALER = """
    import torch
    from torch.cuda.amp import GradScaler

    class LossScaler:
        def __init__(self):
            self.scaler = GradScaler()

        def __call__(self, loss, optimizer, again=None):
            self.scaler.scale(loss).backward()
            self.scaler.step(optimizer)
            self.scaler.update()
            return LossScaler if again else None

    def train_one_epoch(net, loader, optimizer):
        scaler = LossScaler()
        for x, y in loader:
            optimizer.zero_grad()
            with torch.autocast("cuda", dtype=torch.float16):
                loss = torch.nn.functional.mse_loss(net(x), y)
            scaler(loss, optimizer)
    """


def test_a_class_keeps_its_old_form_and_the_imports_of_that(tmp_path: Path) -> None:
    write(
        tmp_path, {"train.py": ENTRY, "engine.py": SCALER, "alone.py": "from engine import LossScaler\nLossScaler()\n"}
    )
    found = texts(migrate(tmp_path, "train.py"), tmp_path)
    assert definition(found["engine.py"], "LossScaler") == definition(dedent(SCALER), "LossScaler")
    twin = definition(found["engine.py"], "LossScalerDeepSpeed")
    assert "EngineGradScaler()" in twin
    assert "return LossScalerDeepSpeed if again" in twin
    assert "scaler = LossScalerDeepSpeed()" in definition(found["engine.py"], "train_one_epoch")
    assert "from torch.cuda.amp import GradScaler" in found["engine.py"]


def test_an_import_that_the_old_form_needs_is_not_said_to_be_unused(tmp_path: Path) -> None:
    write(
        tmp_path, {"train.py": ENTRY, "engine.py": SCALER, "alone.py": "from engine import LossScaler\nLossScaler()\n"}
    )
    outcomes = migrate(tmp_path, "train.py")
    told = [(change.code, change.message) for outcome in outcomes for change in outcome.result.changes]
    assert ("MG107", "unused now: GradScaler") not in told
    assert ("MG120", "the import of GradScaler stands behind the others now") in told


def test_the_report_says_for_whom_the_old_form_stays(tmp_path: Path) -> None:
    write(tmp_path, {"train.py": ENTRY, "engine.py": ENGINE, "alone.py": ALONE})
    outcomes = migrate(tmp_path, "train.py")
    told = {change.code: change.message for outcome in outcomes for change in outcome.result.changes}
    assert told["MG120"].startswith("train_one_epoch stays for ")
    assert "alone.py; train_one_epoch_deepspeed beside it is for the engine" in told["MG120"]


def test_the_scripts_of_a_project_may_be_converted_one_after_the_other(tmp_path: Path) -> None:
    write(tmp_path, {"one.py": ENTRY, "two.py": ENTRY.replace("lr=0.1", "lr=0.2"), "engine.py": ENGINE})
    for outcome in migrate(tmp_path, "one.py"):
        assert outcome.result.new_source is not None
        outcome.job.path.write_bytes(outcome.result.new_source)
    found = texts(migrate(tmp_path, "two.py"), tmp_path)
    assert "net.backward(loss)" in definition(found["engine.py"], "train_one_epoch")
    assert "engine.train_one_epoch(model" in found["two.py"]


@pytest.mark.parametrize(
    ("engine", "reason"),
    [
        (ENGINE + "\n    TABLE = {'train': train_one_epoch}\n", "uses train_one_epoch outside of functions"),
        (ENGINE + "\n    def train_one_epoch_deepspeed():\n        pass\n", "has a train_one_epoch_deepspeed already"),
    ],
)
def test_what_cannot_stand_side_by_side_is_refused(tmp_path: Path, engine: str, reason: str) -> None:
    write(tmp_path, {"train.py": ENTRY, "engine.py": engine, "alone.py": ALONE})
    (outcome,) = migrate(tmp_path, "train.py")
    assert outcome.result.status is Status.REFUSED
    assert reason in outcome.result.changes[0].message


def test_names_of_a_function_are_not_taken_for_the_shared_one(tmp_path: Path) -> None:
    entry = ENTRY.replace("import engine", "from engine import *").replace("engine.train_one_epoch", "train_one_epoch")
    entry += "\n    def name(train_one_epoch):\n        return train_one_epoch\n"
    write(tmp_path, {"train.py": entry, "engine.py": ENGINE, "alone.py": ALONE})
    found = texts(migrate(tmp_path, "train.py"), tmp_path)
    assert "return train_one_epoch\n" in found["train.py"]
    assert "    train_one_epoch_deepspeed(model" in found["train.py"]


def test_line_ends_are_those_of_the_file(tmp_path: Path) -> None:
    write(tmp_path, {"train.py": ENTRY, "alone.py": ALONE})
    (tmp_path / "engine.py").write_bytes(dedent(ENGINE).lstrip("\n").replace("\n", "\r\n").encode())
    found = texts(migrate(tmp_path, "train.py"), tmp_path)
    assert "\n" not in found["engine.py"].replace("\r\n", "")


AUTOCAST = """
    import torch
    import torch.distributed as dist
    import torch.nn.functional as F
    from torch.nn.parallel import DistributedDataParallel
    from losses import loss_of

    def main(loader):
        dist.init_process_group("nccl")
        model = DistributedDataParallel(torch.nn.Linear(4, 4).cuda())
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for x, y in loader:
            with torch.autocast("cuda", dtype=torch.bfloat16):
                loss = F.mse_loss(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        print(loss_of(model, loader).item())

    main(loader)
    """
LOSSES = """
    import torch
    import torch.nn.functional as F

    {}
    def loss_of(net, loader):
        net.eval()
        x, y = next(iter(loader))
        return F.mse_loss(net(x), y)
    """


def test_a_forward_that_others_may_train_through_has_a_twin(tmp_path: Path) -> None:
    files = {"train.py": AUTOCAST, "losses.py": LOSSES.format(""), "alone.py": "from losses import loss_of\nloss_of\n"}
    write(tmp_path, files)
    found = texts(migrate(tmp_path, "train.py"), tmp_path)
    assert "F.mse_loss(net(x), y)" in definition(found["losses.py"], "loss_of")
    assert 'getattr(net, "module", net)(x)' in definition(found["losses.py"], "loss_of_deepspeed")
    assert "from losses import loss_of_deepspeed as loss_of\n" in found["train.py"]


def test_an_evaluation_without_gradients_serves_others_as_well(tmp_path: Path) -> None:
    losses = LOSSES.format("@torch.no_grad()")
    write(tmp_path, {"train.py": AUTOCAST, "losses.py": losses, "alone.py": "from losses import loss_of\nloss_of\n"})
    found = texts(migrate(tmp_path, "train.py"), tmp_path)
    assert 'getattr(net, "module", net)(x)' in definition(found["losses.py"], "loss_of")
    assert "loss_of_deepspeed" not in found["losses.py"]


MIDDLE = """
    from engine import train_one_epoch

    def run(net, loader, optimizer):
        train_one_epoch(net, loader, optimizer)
    """


def test_a_file_that_only_gets_a_twin_has_no_work_left(tmp_path: Path) -> None:
    entry = dedent(ENTRY).replace("import engine", "import middle").replace("engine.train_one_epoch", "middle.run")
    entry = entry.replace("loader, optimizer)", 'loader, optimizer)\n    torch.save(optimizer, "a.pt")')
    alone = "import engine, middle\nengine.train_one_epoch(1, 2, 3)\nmiddle.run(1, 2, 3)\n"
    write(tmp_path, {"train.py": entry, "middle.py": MIDDLE, "engine.py": ENGINE, "alone.py": alone})
    outcomes = {outcome.job.path.name: outcome.result for outcome in migrate(tmp_path, "train.py")}
    assert outcomes["train.py"].status is Status.CONVERTED_WITH_TODOS
    assert outcomes["middle.py"].status is Status.CONVERTED
