"""Files of models without a word of training: looked at for what they write, and no part of the set otherwise."""

from __future__ import annotations

from textwrap import dedent

import pytest

from tests.codemod.across.together import Project, convert, migrate

ENTRY = """
    import torch
    import torch.distributed as dist
    from torch.nn.parallel import DistributedDataParallel
    from models import Net

    def main():
        dist.init_process_group("nccl")
        model = DistributedDataParallel(Net().cuda())
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for x, y in loader:
            loss = torch.nn.functional.mse_loss(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            TAIL

    main()
    """
MODELS = """
    import torch
    import torch.nn as nn

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.fc = nn.Linear(8, 8)
            self.w = nn.Parameter(torch.randn(8))
            self.register_buffer("mean", torch.zeros(8))

        def unfreeze(self):
            for p in self.fc.parameters():
                p.requires_grad = True

        def forward(self, x):
            LINE
            return self.fc(x)
    """


def of(line: str = "pass", tail: str = "pass", **files: str) -> Project:
    texts = {f"{name}.py": text for name, text in files.items()}
    models = texts.pop("models.py", MODELS.replace("LINE", line))
    return convert({"train.py": ENTRY.replace("TAIL", tail), "models.py": models, **texts})


@pytest.mark.parametrize(
    "line",
    [
        "self.w.data.clamp_(-1, 1)",
        "self.fc.weight.data = self.fc.weight.data.abs()",
        "torch.clamp(self.w, -1, 1, out=self.w.data)",
        "for p in self.parameters(): p.data.clamp_(-1, 1)",
        "self.fc.weight *= 0.9",
        "torch._foreach_mul_(list(self.parameters()), 0.9)",
    ],
)
def test_weights_that_a_quiet_model_writes_need_stage_zero(line: str) -> None:
    project = of(line)
    assert "models.py:16 MG509 kept" in project.told()
    assert project.result.entry.config is not None
    assert project.result.entry.config["zero_optimization"] == {"stage": 0}
    assert project.after("models.py") == project.before["models.py"]


@pytest.mark.parametrize(
    "line",
    ["self.mean = 0.9 * self.mean + 0.1 * x.mean(0)", "self.mean.mul_(0.9).add_(x.mean(0))", "self.mean[0] = x.mean()"],
)
def test_buffers_that_a_quiet_model_writes_are_sent(line: str) -> None:
    project = of(line)
    assert "send_buffers(model)" in project.after("train.py")
    assert "MG128 converted" in project.told()
    assert project.result.looked_at == ("train.py",)


def test_parameters_that_a_quiet_model_thaws_need_stage_zero() -> None:
    assert "models.py:13 MG607 kept" in of(tail="model.module.unfreeze()").told()
    assert "MG607" not in of().told()


def test_a_function_of_a_quiet_file_that_writes_weights_is_followed() -> None:
    clip = "def clip(net):\n    for p in net.parameters():\n        p.data.clamp_(-1, 1)\n"
    entry = ENTRY.replace("import Net\n", "import Net\n    import tools\n").replace("TAIL", "tools.clip(model)")
    project = convert({"train.py": entry, "models.py": MODELS.replace("LINE", "pass"), "tools.py": clip})
    assert "tools.py:3 MG509 kept" in project.told()


def test_a_function_that_initialises_is_known_by_its_name() -> None:
    clip = "def weights_init(m):\n    m.weight.data.normal_(0, 0.02)\n"
    entry = ENTRY.replace("import Net\n", "import Net\n    import tools\n").replace(
        "TAIL", "model.apply(tools.weights_init)"
    )
    project = convert({"train.py": entry, "models.py": MODELS.replace("LINE", "pass"), "tools.py": clip})
    assert "MG509 kept" in project.told()


def test_a_base_in_a_third_file_may_make_what_is_written() -> None:
    base = """
    import torch
    import torch.nn as nn

    class Base(nn.Module):
        def __init__(self):
            super().__init__()
            self.w = nn.Parameter(torch.randn(8))
    """
    models = """
    from base import Base

    class Net(Base):
        def forward(self, x):
            self.w.data.clamp_(-1, 1)
            return x * self.w
    """
    assert "models.py:5 MG509 kept" in of(models=models, base=base).told()


def test_a_todo_is_written_into_the_quiet_file_alone() -> None:
    files = {
        "train.py": ENTRY.replace("TAIL", "pass"),
        "models.py": MODELS.replace("LINE", "self.w.data.clamp_(-1, 1)"),
    }
    project = convert(files, zero_stage=2)
    assert "TODO(dsmigrate MG509)" in project.after("models.py")
    assert project.result.looked_at == ("train.py", "models.py")


def test_a_quiet_model_that_writes_nothing_is_not_looked_at() -> None:
    files = {"train.py": dedent(ENTRY).replace("TAIL", "pass"), "models.py": MODELS.replace("LINE", "x = x.data")}
    files["models.py"] = files["models.py"].replace("p.requires_grad = True", "pass")
    assert migrate(files) is None


@pytest.mark.parametrize(
    "scalar",
    [
        "nn.Parameter(torch.tensor(0.07))",
        "nn.Parameter(\n                torch.ones([]) * 2.6\n            )",
        "nn.Parameter(\n                torch.tensor(\n                    0.07\n                )\n            )",
        "nn.Parameter(torch.ones(\n                ()\n            ), requires_grad=(1 > 0))",
    ],
)
def test_a_parameter_without_dimensions_in_a_quiet_file_is_sent(scalar: str) -> None:
    models = MODELS.replace("nn.Parameter(torch.randn(8))", scalar).replace("p.requires_grad = True", "pass")
    project = of(models=models.replace("LINE", "pass"))
    assert "send_odd_parameters(model)" in project.after("train.py")
    assert project.result.looked_at == ("train.py",)


def test_a_tensor_beside_a_parameter_says_nothing() -> None:
    models = MODELS.replace("torch.randn(8))", "torch.randn(8)); self.one = torch.tensor(1.0)").replace(
        "p.requires_grad = True", "pass"
    )
    assert migrate({"train.py": ENTRY.replace("TAIL", "pass"), "models.py": models.replace("LINE", "pass")}) is None


def test_a_tensor_that_is_given_dimensions_has_some() -> None:
    made = "nn.Parameter(\n                torch.tensor(0.0).view((1,)).repeat(3))"
    models = MODELS.replace("nn.Parameter(torch.randn(8))", made).replace("p.requires_grad = True", "pass")
    assert migrate({"train.py": ENTRY.replace("TAIL", "pass"), "models.py": models.replace("LINE", "pass")}) is None


def test_a_quiet_file_says_nothing_of_layers_that_stand_elsewhere() -> None:
    models = MODELS.replace("nn.Linear(8, 8)", "Norms()").replace(
        "import torch.nn as nn", "import torch.nn as nn\n    from norms import Norms"
    )
    loss = (
        "\n    class Loss(torch.nn.Module):\n        def forward(self, x):\n            return x.sum()\n\n    def main"
    )
    entry = ENTRY.replace("\n    def main", loss).replace("TAIL", "pass")
    entry = entry.replace("model = Dist", "net = Net().cuda()\n        model = Dist").replace("(Net().cuda())", "(net)")
    norms = "import torch\nNorms = torch.nn.BatchNorm1d\n"
    files = {"train.py": entry, "models.py": models.replace("LINE", "self.w.data.clamp_(-1, 1)"), "norms.py": norms}
    assert "MG104" in convert(files).told()


def test_a_layer_that_a_quiet_model_makes_in_its_forward_is_marked() -> None:
    line = "if not hasattr(self, 'proj'): self.proj = nn.Linear(8, 8)"
    assert "models.py:16 MG519 todo" in of(line).told()
    assert "MG519" not in of().told()


def test_parameters_that_a_helper_steps_by_itself_need_stage_zero() -> None:
    helper = "def shrink(net):\n    for p in net.parameters():\n        p -= 0.1 * p\n"
    project = of(tail="from shrinking import shrink; shrink(model)", shrinking=helper)
    assert "shrinking.py:3 MG509 kept" in project.told()


def test_parameters_that_a_model_of_another_file_keeps_from_ddp_are_named_with_their_place() -> None:
    models = MODELS.replace("LINE", 'self._ddp_params_and_buffers_to_ignore = ["w"]')
    told = convert({"train.py": ENTRY.replace("TAIL", "pass"), "models.py": models}).told()
    assert "MG114 todo DDP was told at models.py:" in told
