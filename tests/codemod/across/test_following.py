"""Imports and roles are followed from module to module."""

from __future__ import annotations

from textwrap import dedent

import pytest

from dsmigrate.codemod.across import SetResult, migrate_set
from dsmigrate.codemod.model import Options, Status
from dsmigrate.codemod.project.index import Index, import_lines
from dsmigrate.codemod.project.users import referred
from tests.codemod.across.together import ENGINE, ENTRY, convert, migrate

LOOP = ("net.backward(loss)", "net.step()")


@pytest.mark.parametrize(
    ("imported", "call", "path"),
    [
        ("import engine", "engine.train_one_epoch", "engine.py"),
        ("import engine as e", "e.train_one_epoch", "engine.py"),
        ("from engine import train_one_epoch", "train_one_epoch", "engine.py"),
        ("from engine import train_one_epoch as train", "train", "engine.py"),
        ("from engine import *", "train_one_epoch", "engine.py"),
        ("import lib.engine", "lib.engine.train_one_epoch", "lib/engine.py"),
        ("from lib import engine", "engine.train_one_epoch", "lib/engine.py"),
        ("from lib.engine import train_one_epoch", "train_one_epoch", "lib/engine.py"),
        ("if TYPE_CHECKING:\n    pass\nimport engine", "engine.train_one_epoch", "engine.py"),
        ("import sys\nsys.path.append('tools')\nimport engine", "engine.train_one_epoch", "tools/engine.py"),
        ("import sys, os\nsys.path.insert(0, os.path.join(os.path.dirname(__file__), 'tools'))\nimport engine",
         "engine.train_one_epoch", "tools/engine.py"),
    ],
)  # fmt: skip
def test_every_way_of_importing_is_followed(imported: str, call: str, path: str) -> None:
    lines = [line[4:] for line in ENTRY.splitlines()]
    entry = "\n".join(lines).replace("import engine", imported, 1).replace("engine.train_one_epoch", call)
    if "TYPE_CHECKING" in imported:
        entry = "from typing import TYPE_CHECKING\n" + entry
    after = convert({"train.py": entry, path: ENGINE}).after(path)
    assert all(line in after for line in LOOP)


def test_an_import_inside_a_function_is_followed() -> None:
    entry = ENTRY.replace("    import engine\n", "").replace(
        "        engine.train", "        import engine\n        engine.train"
    )
    assert LOOP[0] in convert({"train.py": entry, "engine.py": ENGINE}).after("engine.py")


def test_re_exports_and_relative_imports_are_followed() -> None:
    files = {
        "train.py": ENTRY.replace("import engine", "from lib import engine_of_lib as engine"),
        "lib/__init__.py": "from . import loop as engine_of_lib\n",
        "lib/loop.py": "from .inner import train_one_epoch\n",
        "lib/inner.py": ENGINE,
    }
    project = convert(files)
    assert LOOP[0] in project.after("lib/inner.py")
    assert project.after("lib/loop.py") == files["lib/loop.py"]


def test_modules_around_a_script_in_a_folder_are_found_from_the_root() -> None:
    entry = ENTRY.replace("import engine", "from lib import engine")
    project = convert({"tools/train.py": entry, "lib/__init__.py": "", "lib/engine.py": ENGINE})
    assert LOOP[0] in project.after("lib/engine.py")


def test_a_standard_module_is_not_taken_for_a_file_of_the_project() -> None:
    index = Index(lambda path: b"" if path in {"tools/train.py", "logging.py"} else None, "tools/train.py")
    assert index.module("tools/train.py", "logging", 0) is None


def test_import_lines_are_taken_out_of_blocks_and_brackets() -> None:
    text = "def f():\n    import a\n    from b import (\n        c,\n        d,\n    )\nx = 1\n"
    assert import_lines(text) == ["import a", "from b import (\n        c,\n        d,\n    )"]


def test_a_wrap_in_a_helper_of_another_module() -> None:
    entry = ENTRY.replace(
        "DistributedDataParallel(torch.nn.Linear(4, 4).cuda())", "wrap.distribute(torch.nn.Linear(4, 4))"
    )
    entry = entry.replace("from torch.nn.parallel import DistributedDataParallel", "import wrap")
    wrap = """
    from torch.nn.parallel import DistributedDataParallel as DDP

    def distribute(model):
        return DDP(model.cuda())
    """
    project = convert({"train.py": entry, "wrap.py": wrap, "engine.py": ENGINE})
    assert "return model.cuda()" in project.after("wrap.py")
    after = project.after("train.py")
    assert after.index("model = wrap.distribute(") < after.index("model = deepspeed.initialize(\n        model=model,")


def test_a_trainer_class_of_a_package_with_an_overridden_hook() -> None:
    base = """
    from torch.nn.parallel import DistributedDataParallel as DDP

    class Base:
        def __init__(self, model, loader, optimizer):
            self.model = DDP(model)
            self.optimizer = optimizer
            self.loader = loader

        def loss(self, batch):
            raise NotImplementedError

        def fit(self):
            for batch in self.loader:
                self.optimizer.zero_grad()
                self.loss(batch).backward()
                self.optimizer.step()
    """
    entry = """
    import torch
    from lib import Base

    class Mine(Base):
        def loss(self, batch):
            return self.model(batch).sum()

    model = torch.nn.Linear(2, 2)
    Mine(model, [], torch.optim.SGD(model.parameters(), lr=0.1)).fit()
    """
    project = convert({"tools/run.py": entry, "lib/__init__.py": "from .base import Base\n", "lib/base.py": base})
    after = project.after("lib/base.py")
    assert "self.model.backward(self.loss(batch))" in after
    assert 'os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "tools", "ds_config.json")' in after


def test_options_of_another_module_fill_the_config() -> None:
    options = """
    import argparse

    def parse():
        parser = argparse.ArgumentParser()
        parser.add_argument("--batch-size", type=int, default=12)
        return parser.parse_args()
    """
    entry = ENTRY.replace("import engine", "import engine\n    import options").replace(
        "dist.init",
        "args = options.parse()\n"
        "        loader = torch.utils.data.DataLoader(data, batch_size=args.batch_size)\n"
        "        dist.init",
    )
    project = convert({"train.py": entry, "options.py": options, "engine.py": ENGINE})
    assert project.result.entry.config is not None
    assert project.result.entry.config["train_micro_batch_size_per_gpu"] == 12
    assert 'ds_config["train_micro_batch_size_per_gpu"] = args.batch_size' in project.after("train.py")


SCALER = """
    import torch

    class NativeScaler:
        def __init__(self):
            self._scaler = torch.cuda.amp.GradScaler()

        def __call__(self, loss, optimizer, clip_grad=None, parameters=None, update_grad=True):
            self._scaler.scale(loss).backward()
            if update_grad:
                if clip_grad is not None:
                    self._scaler.unscale_(optimizer)
                    norm = torch.nn.utils.clip_grad_norm_(parameters, clip_grad)
                else:
                    self._scaler.unscale_(optimizer)
                    norm = get_grad_norm_(parameters)
                self._scaler.step(optimizer)
                self._scaler.update()
            else:
                norm = None
            return norm

    def get_grad_norm_(parameters):
        return torch.norm(torch.stack([torch.norm(p.grad.detach(), 2) for p in parameters if p.grad is not None]), 2)
    """


def test_a_scaler_object_gets_the_engine_and_its_norm() -> None:
    entry = ENTRY.replace("import engine", "import engine\n    import misc").replace(
        "engine.train_one_epoch(model, loader, optimizer)",
        "engine.train_one_epoch(model, loader, optimizer, misc.NativeScaler())",
    )
    engine = """
    import torch

    def train_one_epoch(model, loader, optimizer, loss_scaler):
        for step, (x, y) in enumerate(loader):
            with torch.cuda.amp.autocast():
                loss = ((model(x) - y) ** 2).mean()
            loss_scaler(loss / 4, optimizer, clip_grad=0.5, parameters=model.parameters(), update_grad=step % 4 == 3)
            if step % 4 == 3:
                optimizer.zero_grad()
    """
    project = convert({"train.py": entry, "engine.py": engine, "misc.py": SCALER})
    after = project.after("misc.py")
    assert "update_grad=True, *, engine):" in after
    assert "self._scaler.engine_backward(engine, loss)" in after
    assert "norm = torch.as_tensor(engine.get_global_grad_norm(), device=engine.device)" in after
    assert "update_grad=step % 4 == 3, engine=model)" in project.after("engine.py")
    config = project.result.entry.config
    assert config is not None
    assert config["gradient_clipping"] == 0.5
    assert config["managed_gradient_accumulation"] is False
    assert config["zero_optimization"] == {"stage": 2}


def test_functions_for_checkpoints_exist_once() -> None:
    misc = """
    import torch
    import torch.distributed as dist

    def save(model, optimizer, path):
        if dist.get_rank() == 0:
            torch.save({"model": model.module.state_dict(), "optimizer": optimizer.state_dict()}, path)
    """
    entry = ENTRY.replace("import engine", "import engine\n    import misc").replace(
        "engine.train_one_epoch(model, loader, optimizer)",
        "engine.train_one_epoch(model, loader, optimizer)\n"
        "        if dist.get_rank() == 0:\n"
        '            misc.save(model, optimizer, "last.pt")',
    )
    project = convert({"train.py": entry, "engine.py": ENGINE, "misc.py": misc})
    assert "_checkpoint_requests = []" in project.after("misc.py")
    assert "_checkpoint_requests" not in project.after("train.py")
    assert "from misc import save_requested_checkpoints" in project.after("train.py")
    assert '        misc.save(model, optimizer, "last.pt")\n    save_requested_checkpoints(model)\n' in project.after(
        "train.py"
    )


def test_users_of_a_changed_name_are_found_and_re_exports_are_none() -> None:
    files = {
        "a.py": "from engine import train_one_epoch\ntrain_one_epoch(1)\n",
        "b.py": "from engine import train_one_epoch\n",
        "c.py": "import engine\n\ndef f():\n    engine.evaluate()\n",
        "engine.py": ENGINE,
    }

    def users(path: str) -> set[tuple[str, str]]:
        index = Index(lambda name: files[name].encode() if name in files else None, path)
        return referred(index, path, {"engine.py": frozenset({"train_one_epoch"})})

    files["engine.py"] = "def train_one_epoch(): pass\ndef evaluate(): pass\n"
    assert [users(path) for path in ("a.py", "b.py", "c.py")] == [{("engine.py", "train_one_epoch")}, set(), set()]


def test_reading_is_lazy() -> None:
    seen: list[str] = []
    files = {"train.py": ENTRY, "engine.py": ENGINE, "other.py": ENGINE}
    project = migrate(files)
    assert project is not None
    index = Index(lambda path: seen.append(path) or None, "train.py")
    index.outline("train.py")
    assert seen == ["train.py"]
    assert "other.py" not in project.result.looked_at


DEEP = {
    "attributes": "x = a" + ".b" * 1000,
    "sums": "x = a" + " + b" * 1000,
    "branches": "if a:\n    pass\n" + "elif b:\n    pass\n" * 300,
    "folders": "import sys\nsys.path.append(here" + ".parent" * 3000 + ")",
}


def _as_it_comes(files: dict[str, str]) -> SetResult | None:
    return migrate_set(
        lambda path: files[path].encode() if path in files else None, "train.py", shown=str, options=Options()
    )


@pytest.mark.parametrize("nested", DEEP)
def test_a_module_beside_the_training_may_be_nested_as_deeply_as_python_takes(nested: str) -> None:
    entry = ENTRY.replace("    import engine\n", "    import engine\n    import tables\n")
    files = {"train.py": dedent(entry), "engine.py": dedent(ENGINE), "tables.py": DEEP[nested]}
    found = _as_it_comes(files)
    assert found is not None
    assert set(found.modules) == {"engine.py"}


def test_a_module_of_the_training_that_is_nested_too_deeply_stays_as_it_is() -> None:
    files = {"train.py": dedent(ENTRY), "engine.py": f"{dedent(ENGINE)}\n{DEEP['sums']}\n"}
    found = _as_it_comes(files)
    assert found is not None
    assert found.entry.status is Status.REFUSED
    assert not found.modules


def test_a_helper_named_backward_gets_the_engine() -> None:
    engine = """
    import torch.nn.functional as F

    def backward(total_loss):
        total_loss.backward()

    def train_one_epoch(net, loader, optimizer):
        for x, y in loader:
            optimizer.zero_grad()
            backward(F.mse_loss(net(x), y))
            optimizer.step()
    """
    after = convert({"train.py": ENTRY, "engine.py": engine}).after("engine.py")
    assert "def backward(total_loss, *, engine):" in after
    assert "engine.backward(total_loss)" in after
    assert "backward(F.mse_loss(net(x), y), engine=net)" in after
