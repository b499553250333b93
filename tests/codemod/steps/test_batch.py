"""The values of the config that the script knows: batch size, ZeRO section, offload."""

from __future__ import annotations

import pytest

from dsmigrate.codemod.model import Kind
from tests.codemod.checks import convert

FROZEN = """
optimizer = torch.optim.AdamW([{"params": net.body.parameters()}, {"params": net.head.parameters()}])
"""


def data(loader: str) -> str:
    return f'dataset = Digits("train")\n{loader}\n'


def test_the_accumulation_is_one_in_any_case() -> None:
    assert convert().config["gradient_accumulation_steps"] == 1


def test_the_config_has_nothing_but_what_the_script_needs() -> None:
    assert convert().config == {
        "train_micro_batch_size_per_gpu": 64,
        "gradient_accumulation_steps": 1,
        "gradient_clipping": 0.0,
        "zero_optimization": {"stage": 2},
    }


@pytest.mark.parametrize(
    ("loader", "size"),
    [
        ("train_loader = DataLoader(dataset, batch_size=48)", 48),
        ("train_loader = DataLoader(dataset, 48, shuffle=True)", 48),
        ("train_loader = torch.utils.data.DataLoader(dataset, batch_size=48)", 48),
        ("size = 48\ntrain_loader = DataLoader(dataset, batch_size=size)", 48),
        ("train_loader = DataLoader(dataset, batch_size=8 * 6)", 48),
    ],
)
def test_a_known_batch_size_is_in_the_config(loader: str, size: int) -> None:
    migrated = convert(data=data(loader))
    assert migrated.config["train_micro_batch_size_per_gpu"] == size
    assert 'ds_config["train_micro_batch_size_per_gpu"]' not in migrated.code
    migrated.said("MG701", "train_loader = ", Kind.CONVERTED)


@pytest.mark.parametrize(
    ("loader", "expression"),
    [
        ("train_loader = DataLoader(dataset, batch_size=args.batch_size)", "args.batch_size"),
        (
            "train_loader = DataLoader(dataset, batch_size=args.batch_size // dist.get_world_size())",
            "args.batch_size // dist.get_world_size()",
        ),
    ],
)
def test_a_batch_size_from_an_option_follows_it(loader: str, expression: str) -> None:
    migrated = convert(data=data(loader))
    assert f'ds_config["train_micro_batch_size_per_gpu"] = {expression}\n' in migrated.section("optimizer")


@pytest.mark.parametrize("given", ["dict(batch_size=args.batch_size // 2)", '{"batch_size": args.batch_size // 2}'])
def test_a_batch_size_among_keywords_is_found(given: str) -> None:
    migrated = convert(data=data(f"keywords = {given}\ntrain_loader = DataLoader(dataset, **keywords)"))
    assert 'ds_config["train_micro_batch_size_per_gpu"] = args.batch_size // 2\n' in migrated.section("optimizer")
    assert migrated.said("MG701", "train_loader = ").reason == "the training loader's batch size"


def test_a_size_that_only_an_option_names_is_not_called_the_loaders() -> None:
    migrated = convert(data="train_loader = Digits.loader(args.batch_size)\n")
    assert "not seen here" in migrated.said("MG701", '"--batch-size"').reason


def test_the_loader_of_the_loop_counts() -> None:
    migrated = convert(
        data=data(
            "val_loader = DataLoader(dataset, batch_size=256)\n"
            "train_loader = DataLoader(dataset, batch_size=16, shuffle=True)"
        )
    )
    assert migrated.config["train_micro_batch_size_per_gpu"] == 16


def test_a_loader_without_a_readable_size_is_named() -> None:
    migrated = convert(data="train_loader = Digits.loader()\n", options="parser.set_defaults(batch_size=None)")
    assert migrated.config["train_micro_batch_size_per_gpu"] in {1, 64}


def test_a_batch_sampler_is_named() -> None:
    migrated = convert(
        imports="from samplers import sampler, loader",
        data="train_loader = loader(sampler)\n",
        wrap="model = DDP(Net())",
    )
    assert any(change.code in {"MG701", "MG702"} for change in migrated.changes)


@pytest.mark.parametrize("stage", [0, 1, 2, 3])
def test_the_stage_that_was_asked_for(stage: int) -> None:
    migrated = convert(to={"zero_stage": stage})
    assert migrated.config["zero_optimization"] == {"stage": stage}
    assert f"ZeRO stage {stage}" in migrated.said("MG703", "optimizer = ", Kind.CONVERTED).message


@pytest.mark.parametrize(("stage", "has_parameters"), [(1, False), (2, False), (3, True)])
def test_offload_to_the_cpu(stage: int, has_parameters: bool) -> None:
    section = convert(to={"zero_stage": stage, "offload": "cpu"}).config["zero_optimization"]
    assert section["offload_optimizer"] == {"device": "cpu"}
    assert ("offload_param" in section) is has_parameters


def test_offload_lets_the_optimizer_of_the_script_step() -> None:
    migrated = convert(to={"offload": "cpu"})
    assert migrated.config["zero_force_ds_cpu_optimizer"] is False
    migrated.said("MG604", "model = DDP(", Kind.CONVERTED)


def test_offload_to_a_disk_has_its_path() -> None:
    section = convert(to={"zero_stage": 3, "offload": "nvme", "nvme_path": "/local"}).config["zero_optimization"]
    assert section["offload_optimizer"] == {"device": "nvme", "nvme_path": "/local"}
    assert section["offload_param"] == {"device": "nvme", "nvme_path": "/local"}


def test_a_frozen_group_is_left_to_the_person() -> None:
    migrated = convert(
        wrap="net = Net().cuda()\nnet.body.requires_grad_(False)\nmodel = DDP(net)",
        optimizer=FROZEN,
    )
    migrated.said("MG706", "optimizer = ", Kind.TODO)


@pytest.mark.parametrize("stage", [0, 3])
def test_a_frozen_group_is_fine_at_other_stages(stage: int) -> None:
    migrated = convert(
        wrap="net = Net().cuda()\nnet.body.requires_grad_(False)\nmodel = DDP(net)",
        optimizer=FROZEN,
        to={"zero_stage": stage},
    )
    migrated.silent("MG706")


def test_a_default_that_stands_in_the_config_is_the_one_that_is_said() -> None:
    migrated = convert(
        data='train_loader = Digits.loader("train")\n', helpers="def show(opts):\n    print(opts.batch_size)"
    )
    assert migrated.config["train_micro_batch_size_per_gpu"] == 64
    said = [change.message for change in migrated.changes if change.code == "MG702"]
    assert len(said) == 1
    assert said[0].startswith("train_micro_batch_size_per_gpu is 64 in the config")
