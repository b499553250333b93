"""Gradient scalers, apex, half precision, and versions without torch_autocast."""

from __future__ import annotations

import textwrap

import pytest

from dsmigrate.codemod.model import Kind
from tests.codemod.checks import check_section, convert
from tests.codemod.steps.precision_scripts import autocast, region

# -- scalers -----------------------------------------------------------------------------------------------------------


def scaled(make: str, *between: str, loss: str = "loss", before: str = "") -> str:
    lines = "".join(f"    {line}\n" for line in between)
    return (
        f"{before}scaler = {make}\nfor x, y in train_loader:\n"
        '    with torch.autocast("cuda", dtype=torch.float16):\n        loss = F.cross_entropy(model(x), y)\n'
        f"    optimizer.zero_grad()\n    scaler.scale({loss}).backward()\n{lines}"
        "    scaler.step(optimizer)\n    scaler.update()\n"
    )


SCALED = """scaler = {}
for x, y in train_loader:
    with torch.autocast("cuda", dtype=torch.float16):
        loss = F.cross_entropy(model(x), y)
    scaler.engine_backward(model, loss)
    scaler.engine_step(model)
"""


BARE = """scaler = torch.amp.GradScaler("cuda")
for x, y in train_loader:
    loss = F.cross_entropy(model(x), y)
    optimizer.zero_grad()
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
"""


def test_a_scaler_without_any_autocast_works_as_it_is() -> None:
    migrated = convert(loop=BARE)
    migrated.said("MG302", "scaler = ", Kind.CONVERTED)
    assert not [change for change in migrated.changes if change.kind is Kind.TODO], migrated.told()
    assert "torch_autocast" not in migrated.config


def test_a_scaler_beside_an_autocast_region_that_cannot_be_followed_is_marked() -> None:
    helpers = "def region(device):\n    return getattr(torch, device).amp.autocast()\n"
    migrated = convert(helpers=helpers, loop=BARE)
    assert "enable torch_autocast" in migrated.said("MG302", "scaler = ", Kind.TODO).message
    assert migrated.config["torch_autocast"]["enabled"] is False


@pytest.mark.parametrize(
    ("imports", "make", "after", "base"),
    [
        ("", "torch.cuda.amp.GradScaler()", "EngineGradScaler()", "torch.cuda.amp.GradScaler"),
        ("", 'torch.amp.GradScaler("cuda")', 'EngineGradScaler("cuda")', "torch.amp.GradScaler"),
        ("from torch.cuda.amp import GradScaler", "GradScaler()", "EngineGradScaler()", "torch.cuda.amp.GradScaler"),
        (
            "from torch.cuda import amp",
            "amp.GradScaler(enabled=args.amp, init_scale=1024.0)",
            "EngineGradScaler(enabled=args.amp, init_scale=1024.0)",
            "torch.cuda.amp.GradScaler",
        ),
        pytest.param(
            "",
            'torch.GradScaler("cuda", enabled=args.amp)',
            'EngineGradScaler("cuda", enabled=args.amp)',
            "torch.GradScaler",
        ),
    ],
)
def test_every_scaler_lends_its_scale_to_the_engine(imports: str, make: str, after: str, base: str) -> None:
    migrated = check_section("loop", scaled(make), SCALED.format(after), imports=imports)
    migrated.said("MG302", f"scaler = {make}", Kind.CONVERTED)
    migrated.said("MG303", "scaler.update()", Kind.CONVERTED)
    assert f"class EngineGradScaler({base}):" in migrated.code
    assert migrated.config["torch_autocast"] == autocast("float16")


def test_unscaling_and_clipping_go_with_the_scaler() -> None:
    migrated = check_section(
        "loop",
        scaled(
            "torch.cuda.amp.GradScaler()",
            "scaler.unscale_(optimizer)",
            "nn.utils.clip_grad_norm_(model.parameters(), 2.0)",
        ),
        SCALED.format("EngineGradScaler()"),
    )
    migrated.said("MG425", "scaler.unscale_(optimizer)", Kind.CONVERTED)
    assert migrated.config["gradient_clipping"] == 2.0


def test_a_choice_by_scaler_becomes_one_path() -> None:
    migrated = convert(
        loop="""
            scaler = torch.cuda.amp.GradScaler(enabled=args.amp)
            for x, y in train_loader:
                with torch.cuda.amp.autocast(enabled=args.amp):
                    loss = F.cross_entropy(model(x), y)
                optimizer.zero_grad()
                if args.amp:
                    scaler.scale(loss).backward()
                    scaler.step(optimizer)
                    scaler.update()
                else:
                    loss.backward()
                    optimizer.step()
            """
    )
    code = migrated.section("loop")
    assert "scaler.engine_backward(model, loss)" in code
    assert "scaler.engine_step(model)" in code
    assert ".backward()" not in code
    assert "optimizer.step()" not in code


def test_reading_and_saving_the_scale_stay() -> None:
    migrated = convert(
        loop=scaled("torch.cuda.amp.GradScaler()") + "    print(scaler.get_scale(), scaler.state_dict())\n"
    )
    assert "    print(scaler.get_scale(), scaler.state_dict())\n" in migrated.section("loop")


def test_a_scaler_with_accumulation_steps_at_the_end_of_a_window() -> None:
    check_section(
        "loop",
        """
        scaler = torch.cuda.amp.GradScaler()
        for i, (x, y) in enumerate(train_loader):
            with torch.cuda.amp.autocast():
                loss = F.cross_entropy(model(x), y) / args.accum
            scaler.scale(loss).backward()
            if (i + 1) % args.accum == 0:
                scaler.step(optimizer)
                scaler.update()
                optimizer.zero_grad(set_to_none=True)
        """,
        """
        scaler = EngineGradScaler()
        for i, (x, y) in enumerate(train_loader):
            with torch.cuda.amp.autocast():
                loss = F.cross_entropy(model(x), y) / args.accum
            scaler.engine_backward(model, loss)
            if (i + 1) % args.accum == 0:
                scaler.engine_step(model)
        """,
    )


def test_a_scaler_that_is_passed_on_keeps_its_name_there() -> None:
    migrated = convert(
        helpers="""
            def train(model, loader, optimizer, scaler):
                for x, y in loader:
                    with torch.cuda.amp.autocast(enabled=scaler is not None):
                        loss = F.cross_entropy(model(x), y)
                    optimizer.zero_grad()
                    if scaler is not None:
                        scaler.scale(loss).backward()
                        scaler.step(optimizer)
                        scaler.update()
                    else:
                        loss.backward()
                        optimizer.step()
            """,
        loop="""
            scaler = torch.cuda.amp.GradScaler() if args.amp else None
            train(model, train_loader, optimizer, scaler)
            """,
    )
    code = migrated.section("helpers")
    assert "scaler.engine_backward(model, loss)" in code
    assert "model.backward(loss)" in code
    assert "EngineGradScaler() if args.amp else None" in migrated.section("loop")


# -- apex, half, as asked for ------------------------------------------------------------------------------------------


def test_apex_amp_is_replaced_and_marked() -> None:
    migrated = convert(
        imports="from apex import amp\nfrom apex.parallel import DistributedDataParallel as ApexDDP",
        wrap="model = Net().cuda()",
        optimizer="""
            optimizer = torch.optim.SGD(model.parameters(), lr=args.lr)
            model, optimizer = amp.initialize(model, optimizer, opt_level="O1")
            model = ApexDDP(model)
            """,
        loop="""
            for x, y in train_loader:
                loss = F.cross_entropy(model(x), y)
                optimizer.zero_grad()
                with amp.scale_loss(loss, optimizer) as scaled_loss:
                    scaled_loss.backward()
                optimizer.step()
            """,
    )
    assert "apex" not in migrated.code.replace("apex amp", "")
    migrated.said("MG304", "amp.initialize", Kind.CONVERTED)
    migrated.said("MG304", "amp.scale_loss", Kind.TODO)
    assert "torch_autocast_gradscaler = None" in migrated.code  # the scale has to be driven: see facts, precision


def test_the_conditions_of_apex_keep_their_order_and_their_branches() -> None:
    migrated = convert(
        imports="from apex import amp",
        optimizer="""
            optimizer = torch.optim.SGD(model.parameters(), lr=args.lr)
            if args.level != "O0":
                kind = args.kind
            if args.level != "O0":
                if kind == "native" or args.plain:
                    print("no apex")
                else:
                    model, optimizer = amp.initialize(model, optimizer, opt_level=args.level)
            """,
        wrap="model = Net().cuda()",
        loop="""
            model = DDP(model)
            for x, y in train_loader:
                loss = F.cross_entropy(model(x), y)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
            """,
    )
    assert "bool(args.level != 'O0' and not (kind == " in migrated.code.replace('"', "'")


@pytest.mark.parametrize(("method", "section"), [("half", "fp16"), ("bfloat16", "bf16")])
@pytest.mark.parametrize(
    "wrap",
    [
        "model = Net().cuda()\nmodel = model.{}()\nmodel = DDP(model)",
        "model = Net().cuda()\nmodel.{}()\nmodel = DDP(model)",
        pytest.param("model = Net().cuda().{}()\nmodel = DDP(model)"),
        pytest.param("model = Net().{}().cuda()\nmodel = DDP(model)"),
        pytest.param("model = DDP(Net().{}().cuda())"),
    ],
)
def test_a_half_precision_model_gets_its_section(wrap: str, method: str, section: str) -> None:
    migrated = convert(wrap=wrap.format(method))
    assert migrated.config[section]["enabled"] is True
    migrated.said("MG305", f".{method}()", Kind.TODO)


def test_a_half_precision_copy_for_evaluation_is_another_matter() -> None:
    migrated = convert(end="copied = copy.deepcopy(model.module).half()\nprint(copied)")
    assert "fp16" not in migrated.config


@pytest.mark.parametrize("precision", ["fp16", "bf16"])
def test_half_precision_as_asked_for(precision: str) -> None:
    migrated = convert(loop=region('torch.autocast("cuda", dtype=torch.bfloat16)'), to={"precision": precision})
    assert migrated.config[precision]["enabled"] is True
    assert "torch_autocast" not in migrated.config
    migrated.said("MG308", "with torch.autocast", Kind.TODO)


def test_half_precision_as_asked_for_takes_the_scaler_away() -> None:
    migrated = convert(loop=scaled("torch.cuda.amp.GradScaler()"), to={"precision": "fp16"})
    assert "engine_backward" not in migrated.code
    assert "model.backward(loss)\n    model.step()\n" in migrated.section("loop")


# -- older versions ----------------------------------------------------------------------------------------------------


def test_where_torch_autocast_trains_wrongly_the_region_is_entered_in_forward() -> None:
    migrated = convert(loop=region('torch.autocast("cuda", dtype=torch.bfloat16)'), to={"target_version": "0.17.5"})
    assert "torch_autocast" not in migrated.config
    assert 'enter_in_forward(model, torch.autocast("cuda", dtype=torch.bfloat16' in migrated.section("optimizer")


def test_before_torch_autocast_the_region_stays_for_the_model_too() -> None:
    migrated = convert(loop=region('torch.autocast("cuda", dtype=torch.bfloat16)'), to={"target_version": "0.16.9"})
    assert "torch_autocast" not in migrated.config
    assert "enter_in_forward" not in migrated.code
    assert 'with torch.autocast("cuda", dtype=torch.bfloat16):' in migrated.code
    migrated.said("MG301", "with torch.autocast", Kind.KEPT)


@pytest.mark.parametrize("release", ["0.16.9", "0.17.5"])
def test_before_torch_autocast_a_scaler_is_left_to_the_person(release: str) -> None:
    migrated = convert(loop=scaled("torch.cuda.amp.GradScaler()"), to={"target_version": release})
    migrated.said("MG302", "GradScaler()", Kind.TODO)


def skipping(read: str) -> str:
    return (
        'scaler = torch.amp.GradScaler("cuda")\nfor x, y in train_loader:\n'
        '    with torch.autocast("cuda", dtype=torch.float16):\n        loss = F.cross_entropy(model(x), y)\n'
        f"    optimizer.zero_grad()\n    scaler.scale(loss).backward()\n    scaler.step(optimizer)\n    {read}\n"
        "    scaler.update()\n    if scale <= scaler.get_scale():\n        scheduler.step()\n"
    )


def test_a_scale_between_step_and_update_is_read_before_the_step() -> None:
    before = skipping("scale = scaler.get_scale()")
    optimizer = (
        "optimizer = torch.optim.AdamW(model.parameters())\nscheduler = torch.optim.lr_scheduler.StepLR(optimizer, 9)\n"
    )
    migrated = convert(optimizer=optimizer, loop=before)
    assert migrated.section("loop").endswith(
        "    scaler.engine_backward(model, loss)\n"
        "    scale = scaler.get_scale()\n"
        "    scaler.engine_step(model)\n"
        "    if scale <= scaler.get_scale():\n"
        "        scheduler.step()\n"
    )
    migrated.said("MG303", "scale = scaler.get_scale()", Kind.CONVERTED)


@pytest.mark.parametrize("read", ["print(scaler.get_scale())", "if args.amp: scale = scaler.get_scale()"])
def test_another_look_at_the_scale_before_the_update_is_marked(read: str) -> None:
    migrated = convert(loop=skipping(read).replace("scheduler.step()", "print(1)"))
    assert [c.kind for c in migrated.changes if c.code == "MG303"].count(Kind.TODO) == 1, migrated.told()


def test_what_does_not_look_at_the_scale_stays_between() -> None:
    migrated = convert(loop=skipping("scale = 1.0").replace("scheduler.step()", "print(1)"))
    assert "    scaler.engine_step(model)\n    scale = 1.0\n" in migrated.section("loop")


@pytest.mark.parametrize(
    ("dtype", "is_told"), [("torch.float16", True), ("torch.bfloat16", False), ("getattr(torch, args.dtype)", True)]
)
def test_a_loss_that_the_script_does_not_scale_is_not_scaled(dtype: str, *, is_told: bool) -> None:
    migrated = convert(loop=region(f'torch.autocast("cuda", dtype={dtype})'))
    assert ("\nleave_loss_unscaled(model)\n" in migrated.code.replace("    ", "")) is is_told
    assert ("def leave_loss_unscaled(engine):" in migrated.code) is is_told


def test_a_path_without_a_scaler_beside_one_with_it() -> None:
    migrated = convert(
        optimizer="optimizer = torch.optim.AdamW(model.parameters())\n"
        "scaler = torch.amp.GradScaler() if args.amp else None\n",
        loop="""
            for x, y in train_loader:
                with torch.autocast("cuda", dtype=torch.float16):
                    loss = F.cross_entropy(model(x), y)
                optimizer.zero_grad()
                if scaler is not None:
                    scaler.scale(loss).backward()
                    scaler.step(optimizer)
                    scaler.update()
                else:
                    loss.backward()
                    optimizer.step()
            """,
    )
    assert "leave_loss_unscaled(model)" in migrated.code
    assert "scaler.engine_backward(model, loss)" in migrated.code


REGION = "with torch.autocast('cuda', dtype=torch.float16{}):\n    {}loss = criterion(model(x), y)"


@pytest.mark.parametrize(
    ("region", "branch"),
    [
        ("", "if scaler is not None:\n    " + REGION.format("", "    ")),
        (REGION.format(", enabled=args.amp", ""), "if args.amp:"),
    ],
    ids=["a branch of its own", "the switch of the region"],
)
def test_a_path_without_a_scaler_is_not_spoken_of_where_autocast_is_off_too(region: str, branch: str) -> None:
    plain = "" if region else "    loss = criterion(model(x), y)\n"
    loop = (
        f"{region}\noptimizer.zero_grad()\n{branch}\n    scaler.scale(loss).backward()\n    scaler.step(optimizer)\n"
        f"    scaler.update()\nelse:\n{plain}    loss.backward()\n    optimizer.step()\n"
    )
    migrated = convert(
        optimizer="criterion = nn.CrossEntropyLoss()\noptimizer = torch.optim.AdamW(model.parameters())\n"
        "scaler = torch.amp.GradScaler() if args.amp else None\n",
        loop="for x, y in train_loader:\n" + textwrap.indent(loop, "    "),
    )
    assert "leave_loss_unscaled" not in migrated.code
    assert "scaler.engine_backward(model, loss)" in migrated.code


@pytest.mark.parametrize("name", ["_found_inf_per_device", "_check_inf_per_device"])
def test_what_unscale_would_have_found_is_marked_where_it_went(name: str) -> None:
    lines = ("scaler.unscale_(optimizer)", f"found = sum(v.item() for v in scaler.{name}(optimizer).values())")
    migrated = convert(loop=scaled('torch.amp.GradScaler("cuda")', *lines))
    assert "get_scale() before and after" in migrated.said("MG425", name, Kind.TODO).message
