"""Autocast that is switched on where no region around the model shows it, and the type that the config gets then."""

from __future__ import annotations

import pytest

from dsmigrate.codemod.model import Kind
from tests.codemod.checks import convert
from tests.codemod.steps.precision_scripts import autocast, region

BF16 = 'torch.autocast("cuda", dtype=torch.bfloat16)'
SET = 'torch.set_autocast_enabled("cuda", True)\ntorch.set_autocast_dtype("cuda", torch.bfloat16)'
STEP = "    optimizer.zero_grad()\n    loss.backward()\n    optimizer.step()\n"


def loop(*lines: str, before: str = "") -> str:
    body = "".join(f"    {line}\n" for line in lines)
    return f"{before}\nfor x, y in train_loader:\n{body}{STEP}"


PLAIN = "loss = F.cross_entropy(model(x), y)"


@pytest.mark.parametrize(
    ("text", "line"),
    [
        (loop("loss = F.cross_entropy(run(x), y)", before=f"run = {BF16}(model)"), "run = "),
        (loop(f"ctx = {BF16}", "ctx.__enter__()", PLAIN, "ctx.__exit__(None, None, None)"), "ctx = "),
        (loop(PLAIN, before=f"{BF16}.__enter__()"), "__enter__"),
        (
            loop("with contextlib.ExitStack() as stack:", f"    stack.enter_context({BF16})", f"    {PLAIN}"),
            "enter_context",
        ),
        (
            loop(PLAIN, before=SET),
            "set_autocast_enabled",
        ),
        (
            loop(PLAIN, before="torch.set_autocast_enabled(True)\ntorch.set_autocast_gpu_dtype(torch.bfloat16)"),
            "set_autocast_enabled",
        ),
    ],
    ids=["wrapped", "entered", "entered once", "stack", "set", "set for CUDA"],
)  # fmt: skip
def test_autocast_without_a_with_statement_is_marked(text: str, line: str) -> None:
    migrated = convert(loop=text)
    assert migrated.config["torch_autocast"] == autocast("bfloat16")
    migrated.said("MG307", line, Kind.TODO)


def test_a_manager_that_a_stack_enters_is_marked() -> None:
    helpers = f"@contextlib.contextmanager\ndef mixed():\n    with {BF16}:\n        yield\n"
    text = loop("with contextlib.ExitStack() as stack:", "    stack.enter_context(mixed())", f"    {PLAIN}")
    convert(helpers=helpers, loop=text).said("MG307", f"with {BF16}", Kind.TODO)


def test_a_region_around_what_a_function_is_given_is_marked() -> None:
    helpers = f"def mixed(function, *inputs):\n    with {BF16}:\n        return function(*inputs)\n"
    text = loop("loss = mixed(lambda: F.cross_entropy(model(x), y))")
    convert(helpers=helpers, loop=text).said("MG307", f"with {BF16}", Kind.TODO)


@pytest.mark.parametrize(
    "form",
    ["    @{}\n    def forward(self, net, x, y):\n", "    def forward(self, net, x, y):\n        with {}:\n    "],
)
def test_a_loss_that_runs_the_model_it_is_given_in_a_region_is_marked(form: str) -> None:
    helpers = f"class Loss(nn.Module):\n{form.format(BF16)}        return F.cross_entropy(net(x), y)\n"
    migrated = convert(helpers=helpers, loop=loop("loss = criterion(model, x, y)", before="criterion = Loss()"))
    assert migrated.config["torch_autocast"] == autocast("bfloat16")
    migrated.said("MG307", BF16, Kind.TODO)


def test_regions_that_cannot_run_the_engine_say_nothing() -> None:
    helpers = """
class Exact(Net):
    def forward(self, x):
        region = torch.autocast("cuda", dtype=torch.bfloat16)
        region.__enter__()
        out = self.body(x)
        region.__exit__(None, None, None)
        return self.head(out)


def targets(y, enabled):
    with torch.autocast("cuda", enabled=False):
        return y.softmax(-1)


@torch.cuda.amp.autocast(enabled=False)
def full(x):
    return x * 2
"""
    text = loop("loss = F.cross_entropy(model(full(x)), targets(y, True))", before="torch.set_autocast_enabled(False)")
    migrated = convert(helpers=helpers, wrap="model = DDP(Exact().cuda())", loop=text)
    assert "torch_autocast" not in migrated.config
    migrated.silent("MG301", "MG307")


def test_a_region_in_a_function_that_is_called_out_of_sight_is_marked() -> None:
    helpers = f"""
def make(model):
    @{BF16}
    def run(x):
        return model(x)

    return run
"""
    text = loop("loss = F.cross_entropy(run(x), y)", before="run = make(model)")
    migrated = convert(helpers=helpers, loop=text)
    assert migrated.config["torch_autocast"] == autocast("bfloat16")
    assert "return model(x)" in migrated.section("helpers")
    assert "is not seen" in migrated.said("MG307", f"@{BF16}", Kind.TODO).message


def test_a_region_whose_arguments_are_unpacked_is_marked() -> None:
    wrap = 'kinds = {"device_type": "cuda", "dtype": torch.bfloat16}\nmodel = DDP(Net().cuda())'
    migrated = convert(wrap=wrap, loop=region("torch.autocast(**kinds)"))
    migrated.said("MG307", "**kinds", Kind.TODO)


def test_autocast_that_getattr_gives_is_seen_and_an_option_of_that_name_is_none() -> None:
    seen = convert(loop=region('getattr(torch, "autocast")("cuda", dtype=torch.bfloat16)'))
    assert seen.config["torch_autocast"] == autocast("bfloat16")
    convert(loop=loop(PLAIN, before='mixed = getattr(args, "autocast", False)')).silent("MG307")


def test_autocast_by_hand_in_an_evaluation_leaves_training_as_it_was() -> None:
    helpers = f"""
@torch.no_grad()
def evaluate(model, loader):
    with contextlib.ExitStack() as stack:
        stack.enter_context({BF16})
        return sum(F.cross_entropy(model(x), y).item() for x, y in loader)
"""
    migrated = convert(helpers=helpers, end="print(evaluate(model, train_loader))")
    assert "torch_autocast" not in migrated.config
    assert "call the engine's module" in migrated.said("MG307", "enter_context", Kind.TODO).message


def test_a_region_without_a_type_is_float16_on_a_gpu() -> None:
    text = region("torch.cuda.amp.autocast(len(y) > 2)")
    migrated = convert(loop=text)
    assert migrated.config["torch_autocast"] == autocast("float16")
    assert "in float16 in the config" in migrated.said("MG307", "len(y) > 2", Kind.TODO).message
    assert "leave_loss_unscaled(model)" in migrated.code


def test_a_region_without_a_type_follows_a_type_that_the_script_sets() -> None:
    migrated = convert(
        loop="torch.set_autocast_gpu_dtype(torch.bfloat16)\n" + loop(f"with torch.autocast('cuda'):\n        {PLAIN}")
    )
    assert migrated.config["torch_autocast"] == autocast("bfloat16")
    migrated.said("MG307", "with torch.autocast", Kind.TODO)


BETWEEN = "model.train()\nrate = optimizer.param_groups[0]['lr']\n"
SCALED = """
def train(model, optimizer, loader, scaler):
    for x, y in loader:
        with torch.cuda.amp.autocast(scaler is not None):
            loss = F.cross_entropy(model(x), y)
        optimizer.zero_grad()
        if scaler is None:
            loss.backward()
            optimizer.step()
        else:
            scaler.scale(loss).backward()
            scaler.step(optimizer)
            scaler.update()
"""


@pytest.mark.parametrize(
    "made",
    [
        "scaler = None\nif args.amp:\n    scaler = torch.cuda.amp.GradScaler()",
        "scaler = torch.cuda.amp.GradScaler() if args.amp else None",
    ],
)
def test_a_region_that_is_on_where_there_is_a_scaler_follows_the_option(made: str) -> None:
    migrated = convert(helpers=SCALED, loop=f"{BETWEEN}{made}\ntrain(model, optimizer, train_loader, scaler)")
    assert 'ds_config["torch_autocast"]["enabled"] = bool(args.amp)' in migrated.code
    assert migrated.config["torch_autocast"]["dtype"] == "float16"
    migrated.silent("MG307")


def test_a_scaler_that_is_made_under_two_tests_is_marked() -> None:
    made = "scaler = None\nif args.amp:\n    if args.distributed:\n        scaler = torch.cuda.amp.GradScaler()"
    migrated = convert(helpers=SCALED, loop=f"{BETWEEN}{made}\ntrain(model, optimizer, train_loader, scaler)")
    assert migrated.config["torch_autocast"]["dtype"] == "float16"
    migrated.said("MG307", "scaler is not None", Kind.TODO)
