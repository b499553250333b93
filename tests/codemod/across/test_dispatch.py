"""Calls that may run one of several functions: overrides, and objects of several classes."""

from __future__ import annotations

from tests.codemod.across.together import convert

ENTRY = """
    import torch
    import torch.distributed as dist
    from torch.nn.parallel import DistributedDataParallel
    from special import SpecialTrainer

    def main():
        dist.init_process_group("nccl")
        trainer = SpecialTrainer()
        model = DistributedDataParallel(torch.nn.Linear(4, 4).cuda())
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        trainer.fit(model, optimizer, loader)

    main()
    """
BASE = """
    class Trainer:
        def training_step(self, model, optimizer, batch):
            optimizer.zero_grad()
            loss = model(batch).sum()
            loss.backward()
            self.apply(optimizer)

        def apply(self, optimizer):
            optimizer.step()

        def fit(self, model, optimizer, loader):
            for batch in loader:
                self.training_step(model, optimizer, batch)
    """
SPECIAL = """
    from base import Trainer

    class SpecialTrainer(Trainer):
        def training_step(self, net, opt, batch):
            opt.zero_grad()
            (net(batch).sum() * 2).backward()
            net.module.bias
            self.apply(opt)

        def apply(self, opt):
            opt.step()
            print("stepped")
    """


def test_an_override_gets_what_the_call_in_the_base_class_gives() -> None:
    project = convert({"train.py": ENTRY, "special.py": SPECIAL, "base.py": BASE})
    assert "net.backward(net(batch).sum() * 2)" in project.after("special.py")
    assert "model.backward(loss)" in project.after("base.py")


def test_the_engine_is_taken_by_the_method_and_by_its_override() -> None:
    project = convert({"train.py": ENTRY, "special.py": SPECIAL, "base.py": BASE})
    assert "def apply(self, optimizer, *, engine):" in project.after("base.py")
    assert "def apply(self, opt, *, engine):" in project.after("special.py")
    assert "self.apply(optimizer, engine=model)" in project.after("base.py")
    assert "self.apply(opt, engine=net)" in project.after("special.py")


def test_an_override_further_down_gets_it_too() -> None:
    more = """
    from special import SpecialTrainer

    class MoreTrainer(SpecialTrainer):
        def apply(self, opt):
            opt.step()
    """
    entry = ENTRY.replace("from special import SpecialTrainer", "from more import MoreTrainer").replace(
        "SpecialTrainer()", "MoreTrainer()"
    )
    project = convert({"train.py": entry, "more.py": more, "special.py": SPECIAL, "base.py": BASE})
    assert "def apply(self, opt, *, engine):\n        engine.step()" in project.after("more.py")


SCALERS = """
    import torch

    class Plain:
        def __call__(
            self,
            loss,
            optimizer,
        ):
            loss.backward()
            optimizer.step()

    class Scaled:
        def __init__(self):
            self.scaler = torch.cuda.amp.GradScaler()

        def __call__(self, loss, optimizer):
            self.scaler.scale(loss).backward()
            self.scaler.step(optimizer)
            self.scaler.update()
    """
CHOOSING = """
    import torch
    import torch.distributed as dist
    from torch.nn.parallel import DistributedDataParallel
    from scalers import Plain, Scaled

    def main(amp):
        dist.init_process_group("nccl")
        model = DistributedDataParallel(torch.nn.Linear(4, 4).cuda())
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        stepper = None
        if not amp:
            stepper = Plain()
        else:
            stepper = Scaled()
        for x in loader:
            optimizer.zero_grad()
            with torch.cuda.amp.autocast():
                loss = model(x).sum()
            stepper(
                loss,
                optimizer,
            )

    main(True)
    """


def test_objects_of_two_classes_in_one_variable_both_take_the_engine() -> None:
    project = convert({"train.py": CHOOSING, "scalers.py": SCALERS})
    after = project.after("scalers.py")
    assert "def __call__(self, loss, optimizer, *, engine):" in after
    assert "engine.backward(loss)\n        engine.step()" in after
    assert "self.scaler.engine_step(engine)" in after


def test_parameters_and_arguments_over_several_lines_stay_so() -> None:
    project = convert({"train.py": CHOOSING, "scalers.py": SCALERS})
    assert "        optimizer,\n        *,\n        engine,\n    ):" in project.after("scalers.py")
    assert "            optimizer,\n            engine=model,\n        )" in project.after("train.py")


def test_a_clip_beside_the_hook_that_steps_is_the_engine_s() -> None:
    clip = "\n            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)\n            self.apply"
    base = "\n    import torch\n" + BASE.replace("\n            self.apply", clip)
    special = SPECIAL.replace("\n            self.apply", clip.replace("model", "net")).replace(
        "from base", "import torch\n    from base"
    )
    project = convert({"train.py": ENTRY, "special.py": special, "base.py": base})
    assert "MG424" not in project.told()
    assert project.result.entry.config is not None
    assert project.result.entry.config["gradient_clipping"] == 1.0


def test_a_step_of_the_hook_that_no_clip_comes_before_is_marked() -> None:
    clip = "\n            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)\n            self.apply"
    base = "\n    import torch\n" + BASE.replace("\n            self.apply", clip)
    project = convert({"train.py": ENTRY, "special.py": SPECIAL, "base.py": base})
    assert "MG424 todo the script did not clip before this step" in project.told()
