"""Scalers of an installed library, which run backward and step out of the project's sight."""

from __future__ import annotations

from dsmigrate.codemod.migrate import migrate_source
from dsmigrate.codemod.model import Options, Status
from tests.codemod.across.together import Project, convert, refused

ENTRY = """
    import torch
    import torch.distributed as dist
    from timm.utils import NativeScaler, get_state_dict
    from torch.nn.parallel import DistributedDataParallel
    from engine import train_one_epoch

    def main(args):
        dist.init_process_group("nccl")
        model = DistributedDataParallel(torch.nn.Linear(4, 4).cuda())
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        loss_scaler = NativeScaler()
        for epoch in range(3):
            train_one_epoch(model, loader, optimizer, loss_scaler, args.clip_grad)
        torch.save(get_state_dict(model), "last.pt")

    main(parse())
    """
ENGINE = """
    import torch

    def train_one_epoch(net, loader, opt, loss_scaler, max_norm=0):
        for x, y in loader:
            with torch.cuda.amp.autocast():
                loss = net(x).sum()
            opt.zero_grad()
            second = hasattr(opt, "is_second_order") and opt.is_second_order
            loss_scaler(loss, opt, clip_grad=max_norm, parameters=net.parameters(), create_graph=second)
    """


def _changed(text: str, *changes: tuple[str, str]) -> str:
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    return text


def _convert(entry: str = ENTRY, engine: str = ENGINE) -> Project:
    return convert({"train.py": entry, "engine.py": engine})


def test_the_library_s_scaler_becomes_a_class_of_the_script() -> None:
    project = _convert()
    after = project.after("train.py")
    assert "loss_scaler = EngineNativeScaler()" in after
    assert "from timm.utils import get_state_dict" in after
    assert "self._scaler.engine_backward(engine, loss)" in after
    assert "        self._scaler.engine_step(engine)" in after
    assert "unscale_" not in after
    assert "create_graph=second, engine=net)" in project.after("engine.py")


def test_a_scaler_of_the_script_s_own_class_stands_before_what_uses_it() -> None:
    after = _convert().after("train.py")
    assert after.count("class EngineGradScaler(torch.cuda.amp.GradScaler):") == 1
    assert after.index("class EngineGradScaler") < after.index("class EngineNativeScaler")


def test_the_limit_of_its_clipping_is_the_config_s() -> None:
    project = _convert()
    assert 'ds_config["gradient_clipping"] = args.clip_grad or 0.0' in project.after("train.py")
    assert 'assert clip_mode == "norm"' in project.after("train.py")


def test_one_backward_belongs_to_each_step_where_nobody_speaks_of_updates() -> None:
    project = _convert()
    assert project.result.entry.config is not None
    assert "managed_gradient_accumulation" not in project.result.entry.config
    assert "need_update" not in project.after("train.py")


def test_where_updates_are_gated_accumulation_is_the_script_s() -> None:
    project = _convert(engine=_changed(ENGINE, ("create_graph=second", "need_update=len(x) > 1, create_graph=second")))
    assert project.result.entry.config is not None
    assert project.result.entry.config["managed_gradient_accumulation"] is False
    assert "        if need_update:\n" in project.after("train.py")


def test_a_mode_of_clipping_keeps_the_library_s_own_clip_at_stage_zero() -> None:
    project = _convert(engine=_changed(ENGINE, ("create_graph=second", "clip_mode=mode, create_graph=second")))
    assert project.result.entry.config is not None
    assert project.result.entry.config["zero_optimization"]["stage"] == 0
    assert "from timm.utils import dispatch_clip_grad" in project.after("train.py")
    assert "dispatch_clip_grad(parameters, clip_grad, mode=clip_mode)" in project.after("train.py")


def test_the_device_that_it_is_made_for_is_that_of_the_scaler() -> None:
    after = _convert(_changed(ENTRY, ("NativeScaler()", 'NativeScaler(device="cuda")'))).after("train.py")
    assert 'loss_scaler = EngineNativeScaler(device="cuda")' in after
    assert "class EngineGradScaler(torch.amp.GradScaler):" in after
    assert "self._scaler = EngineGradScaler(device=device)" in after


def test_other_ways_to_name_it() -> None:
    ways = {
        "import timm\n": ("timm.utils.NativeScaler()", "import timm.utils\n"),
        "as": ("Scaler()", "from timm.utils import NativeScaler as Scaler\n"),
        "module": ("utils.NativeScaler()", "from timm import utils\n"),
        "cuda": ("NativeScaler()", "from timm.utils.cuda import NativeScaler\n"),
        "star": ("NativeScaler()", "from timm.utils import *\n"),
    }
    for made, line in ways.values():
        entry = _changed(ENTRY, ("from timm.utils import NativeScaler, get_state_dict\n", line))
        entry = _changed(entry, ("= NativeScaler()", f"= {made}"), ("get_state_dict(model)", "model.state_dict()"))
        assert "loss_scaler = EngineNativeScaler()" in _convert(entry).after("train.py"), line


def test_apex_and_native_scalers_of_one_variable_both_get_the_engine() -> None:
    entry = _changed(
        ENTRY,
        ("import NativeScaler, get_state_dict", "import ApexScaler, NativeScaler, get_state_dict"),
        ("loss_scaler = NativeScaler()", "loss_scaler = ApexScaler() if args.apex else NativeScaler()"),
    )
    after = _convert(entry).after("train.py")
    assert "loss_scaler = EngineApexScaler() if args.apex else EngineNativeScaler()" in after
    assert after.count("        create_graph=False,\n        *,\n        engine,\n    ):") == 2
    assert "apex import" not in after


def test_a_scaler_that_may_be_of_an_unknown_class_is_not_given_the_engine() -> None:
    entry = _changed(
        ENTRY, ("loss_scaler = NativeScaler()", "loss_scaler = other.Scaler() if args.odd else NativeScaler()")
    )
    refused({"train.py": entry, "engine.py": ENGINE}, "MG913", "timm.utils: backward runs where neither")


def test_a_project_that_has_such_a_package_itself_is_read_as_it_stands() -> None:
    own = """
    class NativeScaler:
        def __call__(self, loss, optimizer, clip_grad=None, parameters=None, create_graph=False):
            loss.backward()
            optimizer.step()
    """
    files = {"train.py": ENTRY, "engine.py": ENGINE, "timm/__init__.py": "", "timm/utils.py": own}
    project = convert(files)
    assert "engine.backward(loss)" in project.after("timm/utils.py")
    assert "EngineNativeScaler" not in project.after("train.py")


def test_a_script_that_is_alone_is_converted_as_well() -> None:
    body = ENTRY.replace("    from engine import train_one_epoch\n", "") + ENGINE.replace("    import torch\n", "")
    lines = [line[4:] for line in body.replace("    main(parse())\n", "").splitlines()]
    result = migrate_source("\n".join(lines).encode(), path="alone.py", options=Options())
    assert result.status is Status.CONVERTED
    assert result.path == "alone.py"
    assert b"class EngineNativeScaler:" in (result.new_source or b"")


def test_a_loop_that_cannot_be_read_is_said_to_be_in_another_module() -> None:
    lines = [line[4:] for line in ENTRY.splitlines()]
    for end in ("\n", "\r", "\r\n"):
        result = migrate_source(end.join(lines).encode(), path="alone.py", options=Options())
        assert result.status is Status.REFUSED
        assert [(change.code, change.line) for change in result.changes] == [("MG910", 10)]
