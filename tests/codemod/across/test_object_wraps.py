"""Objects that wrap their model in a method, while somebody else makes the optimizer."""

from __future__ import annotations

from tests.codemod.across.together import convert

ENTRY = """
    import torch
    import torch.distributed as dist
    from loop import train_one_epoch
    from task import Task

    def main(args):
        dist.init_process_group("nccl")
        net = torch.nn.Linear(4, 4).cuda()
        task = Task(net, torch.nn.MSELoss())
        optimizer = torch.optim.SGD(task.net.parameters(), lr=0.1)
        task.distribute()
        for epoch in range(3):
            train_one_epoch(task, loader, optimizer)

    main(parse())
    """
TASK = """
    import torch
    from torch.nn.parallel import DistributedDataParallel

    class Task:
        def __init__(self, net, criterion):
            self.net = net
            self.criterion = criterion

        def distribute(self):
            self.net = DistributedDataParallel(self.net)
            return self

        def __call__(self, x, y):
            return self.criterion(self.net(x), y)

        def export(self):
            return self.net.module
    """
LOOP = """
    import torch

    def train_one_epoch(work, loader, opt):
        for x, y in loader:
            with torch.autocast("cuda", dtype=torch.bfloat16):
                loss = work(x, y)
            opt.zero_grad()
            loss.backward()
            opt.step()
    """
FILES = {"train.py": ENTRY, "task.py": TASK, "loop.py": LOOP}


def _changed(path: str, *changes: tuple[str, str]) -> dict[str, str]:
    text = FILES[path]
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    return {**FILES, path: text}


def test_the_engine_is_kept_where_the_object_keeps_its_model() -> None:
    project = convert(FILES)
    made = "    task.net = deepspeed.initialize(\n        model=task.net,\n        optimizer=optimizer,"
    assert f"    task.distribute()\n{made}" in project.after("train.py")
    assert "DistributedDataParallel" not in project.after("task.py")
    assert "self.criterion(self.net(x), y)" in project.after("task.py")


def test_the_loop_reaches_the_engine_through_the_object() -> None:
    after = convert(FILES).after("loop.py")
    assert "work.net.backward(loss)" in after
    assert "work.net.step()" in after


def test_a_region_around_the_object_s_call_is_one_around_the_engine() -> None:
    config = convert(FILES).result.entry.config
    assert config is not None
    assert config["torch_autocast"] == {"enabled": True, "dtype": "bfloat16", "lower_precision_safe_modules": []}


def test_a_region_around_the_call_of_a_module_is_one_too() -> None:
    files = _changed(
        "task.py",
        ("class Task:", "class Task(torch.nn.Module):"),
        ("def __call__(", "def forward("),
        ("            self.net = net\n", "            super().__init__()\n            self.net = net\n"),
    )
    project = convert(files)
    assert project.result.entry.config is not None
    assert project.result.entry.config["torch_autocast"]["enabled"] is True
    assert "self.criterion(self.net(x), y)" in project.after("task.py")


def test_a_region_around_an_evaluation_alone_leaves_training_as_it_is() -> None:
    loop = LOOP.replace(
        '            with torch.autocast("cuda", dtype=torch.bfloat16):\n                loss', "            loss"
    )
    loop = (
        loop.rstrip()
        + """

    @torch.no_grad()
    def evaluate(work, loader):
        for x, y in loader:
            with torch.autocast("cuda", dtype=torch.bfloat16):
                print(work(x, y))
    """
    )
    files = _changed("train.py", ("import train_one_epoch", "import evaluate, train_one_epoch"))
    entry = files["train.py"].replace("optimizer)\n\n", "optimizer)\n            evaluate(task, loader)\n\n")
    config = convert({**files, "train.py": entry, "loop.py": loop}).result.entry.config
    assert config is not None
    assert "torch_autocast" not in config


def test_an_optimizer_that_is_made_behind_the_wrap() -> None:
    files = _changed(
        "train.py",
        ("        optimizer = torch.optim.SGD(task.net.parameters(), lr=0.1)\n        task.distribute()\n",
         "        task.distribute()\n        optimizer = torch.optim.SGD(task.net.parameters(), lr=0.1)\n"),
    )  # fmt: skip
    after = convert(files).after("train.py")
    assert after.index("task.distribute()") < after.index("optimizer = ") < after.index("task.net = deepspeed")


def test_a_wrap_under_a_condition_gives_the_engine_on_both_branches() -> None:
    files = _changed(
        "train.py", ("        task.distribute()\n", "        if args.distributed:\n            task.distribute()\n")
    )
    assert "        task.distribute()\n    task.net = deepspeed.initialize(" in convert(files).after("train.py")


def test_a_variable_that_was_given_the_model_out_of_the_object_means_the_engine() -> None:
    files = _changed(
        "train.py",
        ("task.distribute()\n", "task.distribute()\n        model = task.net\n"),
        (
            "train_one_epoch(task, loader, optimizer)",
            "model.train()\n            train_one_epoch(task, loader, optimizer)",
        ),
    )
    assert "\n    model = task.net\n" in convert(files).after("train.py").partition("deepspeed.initialize(")[2]


def test_an_object_that_wraps_when_it_is_made() -> None:
    files = _changed(
        "task.py",
        ("            self.net = net\n", "            self.net = DistributedDataParallel(net)\n"),
        (
            "            self.net = DistributedDataParallel(self.net)\n            return self",
            "            return self",
        ),
    )
    project = convert(files)
    assert "self.net = net" in project.after("task.py")
    assert "task.net = deepspeed.initialize(" in project.after("train.py")


def test_a_region_around_a_forward_whose_loss_is_handed_to_a_helper_is_one_of_training() -> None:
    loop = LOOP.replace(
        "            opt.zero_grad()\n            loss.backward()\n            opt.step()\n",
        "            update(work, opt, loss)\n",
    )
    helper = (
        "\n    def update(work, opt, loss):\n        opt.zero_grad()\n        loss.backward()\n        opt.step()\n"
    )
    config = convert({**FILES, "loop.py": loop.rstrip() + "\n" + helper}).result.entry.config
    assert config is not None
    assert config["torch_autocast"]["enabled"] is True


def test_the_region_of_the_training_decides_and_not_that_of_an_evaluation_beside_it() -> None:
    loop = (
        LOOP.replace("    import torch\n", "    import torch\n\n    def check(work, x, y):\n"
                     '        with torch.autocast("cuda", dtype=torch.float16):\n            print(work.net(x))\n')
        .rstrip() + "\n            check(work, x, y)\n"
    )  # fmt: skip
    project = convert({**FILES, "loop.py": loop})
    assert project.result.entry.config is not None
    assert project.result.entry.config["torch_autocast"]["dtype"] == "bfloat16"
    assert "MG307" not in project.told()


def test_another_attribute_that_held_the_model_before_is_not_taken_for_the_engine() -> None:
    files = _changed(
        "task.py",
        ("self.criterion = criterion\n", "self.criterion = criterion\n            self.copy = self.net\n"),
    )
    after = convert(files).after("loop.py")
    assert "work.net.backward(loss)" in after
    assert "work.copy" not in after
