"""Model, optimizer and settings that are read through properties."""

from __future__ import annotations

from tests.codemod.across.together import convert, refused

ENTRY = """
    import torch
    import torch.distributed as dist
    from runner import Runner

    def main(args):
        dist.init_process_group("nccl")
        Runner(args, torch.nn.Linear(4, 4)).train(loader)

    main(parse())
    """
RUNNER = """
    import functools
    import torch
    import torch.distributed as dist
    from torch.nn.parallel import DistributedDataParallel

    class Runner:
        def __init__(self, args, model):
            self.args = args
            self._wrapped = DistributedDataParallel(model.cuda())
            self._optim = torch.optim.SGD(self._wrapped.parameters(), lr=args.lr)

        @property
        def model(self):
            return self._wrapped

        @functools.cached_property
        def optimizer(self):
            return self._optim

        @property
        def max_norm(self):
            return float(self.args.max_norm)

        def train(self, loader):
            for batch in loader:
                loss = self.model(batch).sum()
                self.optimizer.zero_grad()
                loss.backward()
                torch.nn.utils.clip_grad_norm_(self.model.parameters(), self.max_norm)
                self.optimizer.step()
            if dist.get_rank() == 0:
                print(self.model.module.weight.shape)
    """
TASK = """
    class Task:
        def train_epoch(self, model, optimizer, loader):
            for batch in loader:
                optimizer.zero_grad()
                model(batch).sum().backward()
                optimizer.step()
    """
FILES = {"train.py": ENTRY, "runner.py": RUNNER}


def test_model_and_optimizer_behind_properties_are_those_of_the_attributes() -> None:
    after = convert(FILES).after("runner.py")
    assert "zero_grad" not in after
    assert ".backward(loss)\n" in after
    assert "optimizer.step()" not in after
    assert "clip_grad_norm_" not in after


def test_a_limit_behind_a_property_is_the_config_s() -> None:
    assert 'ds_config["gradient_clipping"] = ' in convert(FILES).after("runner.py")


def test_what_properties_give_is_handed_to_a_task() -> None:
    start = RUNNER.index("            for batch in loader:")
    runner = RUNNER[:start] + "            self.task.train_epoch(self.model, self.optimizer, loader)\n"
    runner = runner.replace("self.args = args\n", "self.args, self.task = args, None\n            self.task = Task()\n")
    runner = runner.replace("import functools\n", "import functools\n    from task import Task\n")
    after = convert({**FILES, "runner.py": runner, "task.py": TASK}).after("task.py")
    assert "model.backward(model(batch).sum())" in after
    assert "model.step()" in after


def test_a_wrap_that_a_property_makes_when_it_is_read_is_refused() -> None:
    runner = RUNNER.replace(
        "            return self._wrapped\n",
        "            if self._wrapped is None:\n"
        "                self._wrapped = DistributedDataParallel(self.raw)\n"
        "            return self._wrapped\n",
    ).replace("self._wrapped = DistributedDataParallel(model.cuda())", "self._wrapped, self.raw = None, model.cuda()")
    runner = runner.replace("SGD(self._wrapped.parameters()", "SGD(self.raw.parameters()")
    refused({**FILES, "runner.py": runner}, "MG911")


def test_an_engine_that_is_made_once_stays_behind_its_guard() -> None:
    runner = RUNNER.replace(
        "            self._wrapped = DistributedDataParallel(model.cuda())\n",
        "            self._wrapped = None\n            self.raw = model.cuda()\n",
    ).replace("SGD(self._wrapped.parameters()", "SGD(self.raw.parameters()")
    runner = runner.replace(
        "        def train(self, loader):\n",
        "        def train(self, loader):\n"
        "            if self._wrapped is None:\n"
        "                self._wrapped = DistributedDataParallel(self.raw)\n",
    ).replace("self.optimizer", "self._optim")
    after = convert({**FILES, "runner.py": runner}).after("runner.py")
    assert "        if self._wrapped is None:\n            with open(" in after
    assert "            self._wrapped = deepspeed.initialize(model=self.raw, optimizer=self._optim" in after
    assert after.count("deepspeed.initialize(") == 1
