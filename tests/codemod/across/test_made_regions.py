"""An autocast region that a function of the project makes is asked for once more where the engine is made."""

from __future__ import annotations

import pytest

from tests.codemod.across.together import Project, convert
from tests.codemod.checks import convert as convert_script

PRECISION = """
    import torch
    from contextlib import suppress
    from functools import partial

    def chosen_autocast(precision, device_type="cuda", off=False):
        if off:
            return suppress
        if precision == "amp":
            dtype = torch.float16
        elif precision == "amp_bf16":
            dtype = torch.bfloat16
        else:
            return suppress
        return partial(torch.amp.autocast, device_type=device_type, dtype=dtype)
    """
LOOP = """
    import torch
    import torch.nn.functional as F
    from lib.precision import chosen_autocast

    def step(net, x, y, optimizer, autocast):
        with autocast():
            loss = F.mse_loss(net(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

    def train_one_epoch(net, loader, optimizer, args):
        device = torch.device(args.device)
        autocast = chosen_autocast(args.precision, device_type=device.type, off=getattr(args, "off", False))
        for x, y in loader:
            step(net, x.to(device), y.to(device), optimizer, autocast)
    """
ENTRY = """
    import argparse
    import torch
    import torch.distributed as dist
    from torch.nn.parallel import DistributedDataParallel
    from loop import train_one_epoch

    def main():
        parser = argparse.ArgumentParser()
        parser.add_argument("--precision", default="amp_bf16")
        parser.add_argument("--device", default="cuda")
        args = parser.parse_args()
        dist.init_process_group("nccl")
        model = DistributedDataParallel(torch.nn.Linear(4, 4).cuda())
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        train_one_epoch(model, loader, optimizer, args)

    main()
    """


def project(*, precision: str = PRECISION, loop: str = LOOP, entry: str = ENTRY) -> Project:
    return convert({"train.py": entry, "loop.py": loop, "lib/precision.py": precision})


def test_the_config_follows_what_the_function_gives() -> None:
    result = project()
    assert (
        "    from lib.precision import chosen_autocast\n"
        "    with chosen_autocast(args.precision, device_type=(torch.device(args.device)).type, "
        'off=getattr(args, "off", False))():\n'
        '        ds_config["torch_autocast"] = {\n'
        '            "enabled": torch.is_autocast_enabled(deepspeed.get_accelerator().device_name()),\n'
    ) in result.after("train.py")
    assert "MG301" in result.told()
    assert "MG307" not in result.told()


def test_a_region_of_the_same_file_is_followed() -> None:
    migrated = convert_script(
        helpers="def region(args):\n    return torch.autocast('cuda', dtype=torch.bfloat16, enabled=args.amp)\n\n\n",
        loop="""
            for x, y in train_loader:
                with region(args):
                    loss = F.cross_entropy(model(x), y)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
            """,
    )
    assert 'ds_config["torch_autocast"]["enabled"] = bool(args.amp)' in migrated.code
    migrated.silent("MG307")


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("        if off:", "        calls.append(precision)\n        if off:"),
        ("        if off:", "        global last\n        last = precision\n        if off:"),
        ("    def chosen", "    @once\n    def chosen"),
    ],
)
def test_a_function_that_does_more_than_choose_is_left_to_the_person(old: str, new: str) -> None:
    result = project(precision=PRECISION.replace(old, new))
    assert "loop.py:6 MG307 todo torch_autocast is on in bfloat16 in the config" in result.told()
    assert "chosen_autocast" not in result.after("train.py")


def test_a_choice_that_is_known_only_inside_the_loop_is_left_to_the_person() -> None:
    result = project(loop=LOOP.replace("args.precision,", "pick(loader),"))
    assert "loop.py:6 MG307 todo" in result.told()
    assert "chosen_autocast" not in result.after("train.py")


def test_a_name_that_the_entry_script_has_for_something_else_is_left_to_the_person() -> None:
    entry = ENTRY.replace("        args = parser", "        chosen_autocast = 3\n        args = parser")
    assert "loop.py:6 MG307 todo" in project(entry=entry).told()


@pytest.mark.parametrize(
    ("imports", "folder", "now"),
    [
        ("from lib.loop import train_one_epoch", "lib/", "from lib.precision import chosen_autocast"),
        ("from lib.inner.loop import train_one_epoch", "lib/inner/", "from lib.inner.precision import chosen_autocast"),
    ],
)
def test_what_another_file_imports_relatively_has_its_full_name_at_the_engine(
    imports: str, folder: str, now: str
) -> None:
    loop = LOOP.replace("from lib.precision import", "from .precision import")
    entry = ENTRY.replace("from loop import train_one_epoch", imports)
    files = {"train.py": entry, f"{folder}loop.py": loop, f"{folder}precision.py": PRECISION, "lib/__init__.py": ""}
    result = convert({**files, f"{folder}__init__.py": ""})
    assert f"    {now}\n    with chosen_autocast(args.precision" in result.after("train.py")
    assert "MG307" not in result.told()
