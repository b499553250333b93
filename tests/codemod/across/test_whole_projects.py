"""What a whole repository adds to a training: names that only look alike, helpers of other purposes, shared makers."""

from __future__ import annotations

from tests.codemod.across.together import ENGINE, ENTRY, convert, refused


def test_a_variable_is_no_reference_to_a_function_of_the_same_name() -> None:
    tools = """
    def profile(x, ops):
        for op in ops:
            op(x).sum().backward()

    def autocast_for(model, profile=False):
        if profile:
            return model.eval()
        return model.train()
    """
    entry = ENTRY.replace("import engine", "import engine\n    import tools")
    entry = entry.replace("engine.train_one", "tools.autocast_for(model)\n        engine.train_one")
    project = convert({"train.py": entry, "engine.py": ENGINE, "tools.py": tools})
    assert "op(x).sum().backward()" in project.after("tools.py")


def test_an_import_inside_a_function_hides_the_modules_own_definition() -> None:
    tools = """
    def profile(x, ops):
        for op in ops:
            op(x).sum().backward()

    def count(model):
        from thop import profile
        model.eval()
        return profile(model)
    """
    entry = ENTRY.replace("import engine", "import engine\n    import tools")
    entry = entry.replace("engine.train_one", "tools.count(model)\n        engine.train_one")
    project = convert({"train.py": entry, "engine.py": ENGINE, "tools.py": tools})
    assert "op(x).sum().backward()" in project.after("tools.py")


def test_a_function_that_profiles_and_is_called_is_still_refused() -> None:
    tools = "def profile(x, ops):\n    for op in ops:\n        op(x).sum().backward()\n"
    entry = ENTRY.replace("import engine", "import engine\n    import tools")
    entry = entry.replace("engine.train_one", "tools.profile(x, [])\n        engine.train_one")
    refused({"train.py": entry, "engine.py": ENGINE, "tools.py": tools}, "MG913", "tools.py:3: ")


def test_how_an_optimizer_class_steps_is_its_own_affair() -> None:
    optim = """
    from torch.optim import Optimizer

    class Slow(Optimizer):
        def __init__(self, inner):
            self.optimizer = inner

        def step(self, closure=None):
            loss = self.optimizer.step(closure)
            return loss

    def make_optimizer(model):
        import torch
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        return Slow(optimizer)
    """
    entry = ENTRY.replace("import engine", "import engine\n    import optim_tools")
    entry = entry.replace("torch.optim.SGD(model.parameters(), lr=0.1)", "optim_tools.make_optimizer(model)")
    project = convert({"train.py": entry, "engine.py": ENGINE, "optim_tools.py": optim})
    assert "self.optimizer.step(closure)" in project.after("optim_tools.py")


def test_two_models_of_one_maker_are_two_models() -> None:
    factory = """
    import torch

    def make(name):
        model = torch.nn.Linear(4, 4)
        return model.train()
    """
    entry = """
    import engine
    import factory
    import torch
    import torch.distributed as dist
    from torch.nn.parallel import DistributedDataParallel

    def main():
        dist.init_process_group("nccl")
        model = factory.make("student")
        teacher = factory.make("teacher")
        model = DistributedDataParallel(model.cuda())
        teacher = DistributedDataParallel(teacher.cuda())
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        engine.train_one_epoch(model, loader, optimizer)

    main()
    """
    project = convert({"train.py": entry, "engine.py": ENGINE, "factory.py": factory})
    assert "teacher = DistributedDataParallel(teacher.cuda())" in project.after("train.py")
    assert "model = deepspeed.initialize(" in project.after("train.py")


def test_a_helper_that_walks_the_model_by_itself_runs_before_the_engine() -> None:
    layers = """
    import torch

    def freeze(module):
        module.eval()
        state = module.training
        for child in module.children():
            freeze(child)
        return module
    """
    entry = ENTRY.replace("import engine", "import engine\n    import layers")
    entry = entry.replace(
        "model = DistributedDataParallel(torch.nn.Linear(4, 4).cuda())",
        "model = torch.nn.Linear(4, 4).cuda()\n        model = layers.freeze(model)\n"
        "        model = DistributedDataParallel(model)",
    )
    project = convert({"train.py": entry, "engine.py": ENGINE, "layers.py": layers})
    assert "state = module.training" in project.after("layers.py")


def test_a_test_for_a_file_of_the_data_stays() -> None:
    data = """
    import os
    from torch.utils.data import DataLoader

    def make_loader(path):
        files = [path] if os.path.isfile(path) else os.listdir(path)
        return DataLoader(files)
    """
    entry = """
    import os
    import data
    import engine
    import torch
    import torch.distributed as dist
    from torch.nn.parallel import DistributedDataParallel

    def main(args):
        dist.init_process_group("nccl")
        model = DistributedDataParallel(torch.nn.Linear(4, 4).cuda())
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        if os.path.isfile(args.start):
            state = torch.load(args.start)
            model.load_state_dict(state["model"])
            optimizer.load_state_dict(state["optimizer"])
        engine.train_one_epoch(model, data.make_loader(args.data), optimizer)
        if dist.get_rank() == 0:
            torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict()}, args.start)

    main(parse())
    """
    project = convert({"train.py": entry, "engine.py": ENGINE, "data.py": data})
    assert "os.path.isfile(path)" in project.after("data.py")
    assert "if os.path.exists(args.start):" in project.after("train.py")


def test_a_module_that_does_not_change_gets_no_import() -> None:
    files = """
    def size(path, loader):
        import os
        loader.dataset.eval()
        return os.path.getsize(path)
    """
    entry = ENTRY.replace("import engine", "import engine\n    import files")
    entry = entry.replace("engine.train_one", "files.size('data', loader)\n        engine.train_one")
    project = convert({"train.py": entry, "engine.py": ENGINE, "files.py": files})
    assert project.after("files.py") == project.before["files.py"]


def test_a_saver_that_only_rank_0_has_is_asked_by_rank_0_and_followed_by_all() -> None:
    saver = """
    import torch

    class Saver:
        def __init__(self, model, optimizer):
            self.model = model
            self.optimizer = optimizer

        def save(self, path):
            torch.save({"model": self.model.state_dict(), "optimizer": self.optimizer.state_dict()}, path)
    """
    entry = """
    import torch
    import torch.distributed as dist
    from torch.nn.parallel import DistributedDataParallel
    from lib import tools

    def main():
        dist.init_process_group("nccl")
        model = DistributedDataParallel(torch.nn.Linear(4, 4).cuda())
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        saver = tools.Saver(model, optimizer) if dist.get_rank() == 0 else None
        for x, y in loader:
            loss = model(x).sum()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if saver is not None:
                saver.save("last.pt")

    main()
    """
    files = {"train.py": entry, "lib/__init__.py": "from .tools import *\n", "lib/tools/saver.py": saver}
    project = convert({**files, "lib/tools/__init__.py": "from .saver import Saver\n"})
    assert "from lib.tools.saver import save_requested_checkpoints" in project.after("train.py")
    assert "    save_requested_checkpoints(model)\n" in project.after("train.py")
    assert "request_checkpoint(" in project.after("lib/tools/saver.py")
    assert "        save_requested_checkpoints" not in project.after("lib/tools/saver.py")


def test_an_evaluation_outside_autocast_in_a_module_still_takes_a_plain_model() -> None:
    entry = ENTRY.replace("optimizer)\n\n", "optimizer)\n        engine.evaluate(model, loader)\n\n")
    step = """
    import torch
    import torch.nn.functional as F

    def train_one_epoch(net, loader, optimizer):
        for x, y in loader:
            with torch.autocast("cuda", dtype=torch.bfloat16):
                loss = F.mse_loss(net(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()

    def evaluate(net, loader):
        with torch.no_grad():
            return [F.mse_loss(net(x), y) for x, y in loader]
    """
    project = convert({"train.py": entry, "engine.py": step})
    assert 'F.mse_loss(getattr(net, "module", net)(x), y) for x, y in loader' in project.after("engine.py")
