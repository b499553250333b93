"""Parameters that DeepSpeed 0.19.8 cannot send as bytes: without dimensions, or not dense in their last one."""

from __future__ import annotations

import pytest

from dsmigrate.codemod.model import Kind
from tests.codemod.across.together import ENGINE, ENTRY
from tests.codemod.across.together import convert as convert_project
from tests.codemod.checks import Migrated, convert

LOOP = """
    for x, y in train_loader:
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x.cuda()), y.cuda())
        loss.backward()
        CLIP
        optimizer.step()
    """
SENT = "send_odd_parameters(model)"


def scaled(parameter: str) -> str:
    return (
        "class Scaled(nn.Module):\n    def __init__(self):\n        super().__init__()\n        self.net = Net()\n"
        f"        self.scale = nn.Parameter({parameter})\n\n"
        "    def forward(self, x):\n        return self.net(x) * self.scale\n"
    )


def train(parameter: str, *, clip: str = "pass", **to: object) -> Migrated:
    wrap = "model = DDP(Scaled().cuda(), device_ids=[local_rank])"
    return convert(helpers=scaled(parameter), wrap=wrap, loop=LOOP.replace("CLIP", clip), to=to)


@pytest.mark.parametrize("parameter", ["torch.ones([]) * 2.7", "0.07 * torch.ones(())", "torch.tensor(0.5)"])
def test_a_parameter_without_dimensions_is_sent_before_the_engine_is_made(parameter: str) -> None:
    migrated = train(parameter)
    assert migrated.code.index(f"\n    {SENT}\n") < migrated.code.index("= deepspeed.initialize(")
    migrated.said("MG518", "model = DDP(", Kind.CONVERTED)


@pytest.mark.parametrize("parameter", ["torch.ones(1)", "torch.zeros((4,))", "torch.tensor([0.5])"])
def test_parameters_with_dimensions_are_left_to_the_engine(parameter: str) -> None:
    train(parameter).silent("MG518")


def test_a_model_in_channels_last_is_sent() -> None:
    wrap = "model = DDP(Net().to(memory_format=torch.channels_last).cuda(), device_ids=[local_rank])"
    migrated = convert(loop=LOOP.replace("CLIP", "pass"), wrap=wrap)
    assert SENT in migrated.code
    assert "channels_last" in migrated.said("MG518", "model = DDP(").message


def test_releases_before_send_them_themselves() -> None:
    migrated = train("torch.ones([])", target_version="0.19.7")
    assert "send_odd_parameters" not in migrated.code
    migrated.silent("MG518")


def test_at_zero_3_they_are_left_to_the_person() -> None:
    migrated = train("torch.ones([])", zero_stage=3)
    assert "send_odd_parameters" not in migrated.code
    migrated.said("MG518", "model = DDP(", Kind.TODO)


CLIPS = "nn.utils.clip_grad_norm_(model.parameters(), 1.0)"


@pytest.mark.parametrize(("stage", "is_torchs"), [(0, True), (2, False)])
def test_torch_clips_gradients_without_dimensions_at_stage_0(stage: int, is_torchs: bool) -> None:
    assert ("keep_grad_norm(model)" in train("torch.ones([])", clip=CLIPS, zero_stage=stage).code) is is_torchs


def test_nothing_is_measured_where_nothing_is_clipped() -> None:
    assert "keep_grad_norm" not in train("torch.ones([])", zero_stage=0).code


def test_a_model_that_is_registered_by_a_module_and_made_by_name_is_looked_at() -> None:
    entry = ENTRY.replace("import engine\n", "import engine\n    import registered\n")
    files = {
        "train.py": entry,
        "engine.py": ENGINE,
        "registered.py": "import torch.nn as nn\n" + scaled("torch.ones([])"),
    }
    assert SENT in convert_project(files).after("train.py")


def test_a_layer_that_lays_out_what_passes_it_says_nothing_of_parameters() -> None:
    laid_out = (
        "class Laid(nn.Module):\n    def forward(self, x):\n        return x.to(memory_format=torch.channels_last)\n"
    )
    convert(helpers=laid_out, loop=LOOP.replace("CLIP", "pass")).silent("MG518")
