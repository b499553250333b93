"""What is written for older releases of DeepSpeed, and for those in between that need something of their own."""

from __future__ import annotations

import pytest

from dsmigrate.codemod.model import Kind
from tests.codemod.idioms.models import LOOP, trained

CLIPPED = LOOP.replace(
    "    optimizer.step()", "    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)\n    optimizer.step()"
)
REGION = LOOP.replace(
    "    loss = model(x.cuda()).mean()",
    '    with torch.autocast("cuda", torch.bfloat16):\n        loss = model(x.cuda()).mean()',
)
WINDOWS = """
for i, x in enumerate(torch.utils.data.DataLoader(data, batch_size=8)):
    (model(x.cuda()).mean() / 4).backward()
    if (i + 1) % 4 == 0:
        optimizer.step()
        optimizer.zero_grad()
"""
SCALED = (
    REGION.replace("bfloat16", "float16")
    .replace("loss.backward()", "scaler.scale(loss).backward()")
    .replace("optimizer.step()", "scaler.step(optimizer)\n    scaler.update()")
)
FORGET = "ds_compat.forget_first_step(model)"


@pytest.mark.parametrize(
    ("release", "stage", "marked"),
    [("0.13.1", 0, False), ("0.13.2", 0, True), ("0.13.2", 2, False), ("0.13.3", 0, False)],
)
def test_a_clip_is_marked_where_the_release_clips_the_wrong_way_round(release: str, stage: int, marked: bool) -> None:
    found = trained(loop=CLIPPED, target_version=release, zero_stage=stage)
    assert ("MG424" in found.codes(Kind.TODO)) is marked
    assert "MG424" not in trained(target_version=release, zero_stage=stage).codes(Kind.TODO)


@pytest.mark.parametrize(
    ("release", "managed", "stage"),
    [
        ("0.12.6", False, 1),
        ("0.17.5", False, 1),
        ("0.17.6", False, 1),
        ("0.18.2", False, 1),
        ("0.19.3", False, 1),
        ("0.19.4", True, 1),
        ("0.19.8", True, 1),
    ],
)
def test_windows_are_written_as_the_release_knows_them(release: str, managed: bool, stage: int) -> None:
    found = trained(loop=WINDOWS, target_version=release)
    assert ("managed_gradient_accumulation" in found.config) is managed
    assert ("model.set_gradient_accumulation_boundary((i + 1) % 4 == 0)\n" in found.text) is not managed
    assert found.config["zero_optimization"]["stage"] == stage
    assert not found.todos


@pytest.mark.parametrize(
    ("release", "stage", "marked"),
    [
        ("0.17.5", 2, False),
        ("0.17.6", 2, True),
        ("0.18.2", 2, True),
        ("0.18.2", 3, False),
        ("0.18.2", 1, False),
        ("0.18.3", 2, False),
    ],
)
def test_a_stage_that_loses_micro_batches_is_marked_where_it_was_asked_for(
    release: str, stage: int, marked: bool
) -> None:
    found = trained(loop=WINDOWS, target_version=release, zero_stage=stage)
    assert ("MG406" in found.codes(Kind.TODO)) is marked


@pytest.mark.parametrize(("release", "there"), [("0.12.6", True), ("0.13.1", True), ("0.13.2", False)])
@pytest.mark.parametrize("stage", [None, 1, 3])
def test_the_first_step_is_undone(release: str, there: bool, stage: int | None) -> None:
    found = trained(target_version=release, zero_stage=stage)
    assert (FORGET in found.text) is there
    assert found.config["zero_optimization"]["stage"] == (2 if stage is None else stage)


@pytest.mark.parametrize(
    ("release", "key", "entered"),
    [
        ("0.12.6", False, False),
        ("0.17.1", False, False),
        ("0.17.2", False, True),
        ("0.17.5", False, True),
        ("0.17.6", True, False),
    ],
)
def test_a_region_stays_where_the_engine_leaves_it_alone(release: str, key: bool, entered: bool) -> None:
    found = trained(loop=REGION, target_version=release)
    assert "torch.autocast(" in found.text
    assert ("torch_autocast" in found.config) is key
    assert ("ds_compat.enter_in_forward(" in found.text) is entered


@pytest.mark.parametrize("release", ["0.12.6", "0.17.5", "0.17.6", "0.18.0", "0.19.8"])
@pytest.mark.parametrize("stage", [0, 2])
def test_a_scaler_drives_the_engine_of_every_release(release: str, stage: int) -> None:
    found = trained(
        wrap="model = DDP(Net())\nscaler = torch.amp.GradScaler()",
        loop=SCALED,
        target_version=release,
        zero_stage=stage,
    )
    assert "ds_compat.use_grad_scaler(model, scaler)" in found.text
    assert "MG302" not in found.codes(Kind.TODO)


@pytest.mark.parametrize(("release", "name"), [("0.14.0", "bfp16"), ("0.14.1", "bf16")])
def test_the_format_of_gradients_is_spelt_as_the_release_spells_it(release: str, name: str) -> None:
    found = trained(
        helpers="from torch.distributed.algorithms.ddp_comm_hooks import default_hooks as hooks\n",
        wrap="model = DDP(Net())\nmodel.register_comm_hook(None, hooks.bf16_compress_hook)", target_version=release,
    )  # fmt: skip
    assert found.config["communication_data_type"] == name


@pytest.mark.parametrize(("release", "sent"), [("0.19.7", False), ("0.19.8", True)])
def test_parameters_without_dimensions_are_sent_where_the_engine_cannot(release: str, sent: bool) -> None:
    helper = (
        "class Scaled(Net):\n    def __init__(self):\n        super().__init__()\n"
        "        self.scale = nn.Parameter(torch.tensor(0.07))\n"
    )
    assert (
        "send_odd_parameters" in trained(helpers=helper, wrap="model = DDP(Scaled())", target_version=release).text
    ) is sent
