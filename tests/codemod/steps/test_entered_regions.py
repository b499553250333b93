"""Autocast regions that are entered by a decorator, or through a manager, class, table or lambda of the script."""

from __future__ import annotations

import itertools

import pytest

from dsmigrate.codemod.model import Kind
from tests.codemod.checks import Migrated, convert
from tests.codemod.steps.precision_scripts import autocast, region

BF16 = 'torch.autocast("cuda", dtype=torch.bfloat16)'
STEP = f"""
@{BF16}
def step_loss(model, x, y):
    return F.cross_entropy(model(x), y)
"""
LOOP = """
for x, y in train_loader:
    loss = step_loss(model, x, y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""
MANAGER = f"""
@contextlib.contextmanager
def mixed():
    with {BF16}:
        yield
"""
CLASS = f"""
class Mixed:
    def __enter__(self):
        self.region = {BF16}
        return self.region.__enter__()

    def __exit__(self, *error):
        return self.region.__exit__(*error)
"""
SUBCLASS = """
class Mixed(torch.autocast):
    def __init__(self):
        super().__init__("cuda", dtype=torch.bfloat16)
"""


def is_probed(migrated: Migrated, context: str) -> bool:
    """Whether the script asks the context itself what it switches on, before the engine is made."""
    lines = migrated.code.splitlines()
    return any(
        f"with {context}:" in line and 'ds_config["torch_autocast"] = {' in after
        for line, after in itertools.pairwise(lines)
    )


def test_a_decorator_around_the_forward_is_a_region() -> None:
    migrated = convert(helpers=STEP, loop=LOOP)
    assert migrated.config["torch_autocast"] == autocast("bfloat16")
    migrated.said("MG301", f"@{BF16}", Kind.CONVERTED)
    migrated.silent("MG307")


def test_a_decorator_that_follows_an_option_is_carried() -> None:
    helpers = STEP.replace("torch.bfloat16)", "torch.bfloat16, enabled=MIXED)")
    migrated = convert(options='MIXED = os.environ.get("MIXED") == "1"', helpers=helpers, loop=LOOP)
    assert 'ds_config["torch_autocast"]["enabled"] = bool(MIXED)' in migrated.code


def test_a_decorator_on_the_function_that_trains_is_a_region() -> None:
    helpers = f"""
@{BF16}
def train(model, optimizer, loader):
    for x, y in loader:
        loss = F.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
"""
    migrated = convert(helpers=helpers, loop="train(model, optimizer, train_loader)")
    assert migrated.config["torch_autocast"] == autocast("bfloat16")
    migrated.silent("MG307")


def test_a_region_around_the_call_that_trains_is_one() -> None:
    helpers = """
def train(model, optimizer, loader):
    for x, y in loader:
        loss = F.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
"""
    migrated = convert(helpers=helpers, loop=f"with {BF16}:\n    train(model, optimizer, train_loader)")
    assert migrated.config["torch_autocast"] == autocast("bfloat16")
    migrated.silent("MG306", "MG307")


def test_a_decorator_on_the_models_own_forward_needs_nothing() -> None:
    helpers = f"""
class Mixed(Net):
    @{BF16}
    def forward(self, x):
        return self.head(self.body(x))
"""
    migrated = convert(helpers=helpers, wrap="model = DDP(Mixed().cuda())")
    assert "torch_autocast" not in migrated.config
    migrated.silent("MG301", "MG307")


def test_a_decorator_of_the_script_that_enters_a_region_counts() -> None:
    helpers = f"""
def mixed(function):
    def inner(*args, **kwargs):
        with {BF16}:
            return function(*args, **kwargs)

    return inner


@mixed
def step_loss(model, x, y):
    return F.cross_entropy(model(x), y)
"""
    migrated = convert(helpers=helpers, loop=LOOP)
    assert migrated.config["torch_autocast"]["dtype"] == "bfloat16"
    migrated.said("MG301", "@mixed", Kind.CONVERTED)


def test_a_forward_beside_a_decorated_one_is_marked() -> None:
    loop = LOOP.replace("step_loss(model, x, y)", "step_loss(model, x, y) + model(x).mean()")
    migrated = convert(helpers=STEP, loop=loop)
    migrated.said("MG307", "model(x).mean()", Kind.TODO)


def test_a_decorated_and_a_plain_function_of_which_an_option_chooses_one() -> None:
    plain = "\n\ndef plain_loss(model, x, y):\n    return F.cross_entropy(model(x), y)\n"
    loop = LOOP.replace(
        "    loss = step_loss(model, x, y)\n",
        "    if args.amp:\n        loss = step_loss(model, x, y)\n    else:\n        loss = plain_loss(model, x, y)\n",
    )
    migrated = convert(helpers=STEP + plain, loop=loop)
    assert 'ds_config["torch_autocast"]["enabled"] = bool(args.amp)' in migrated.code
    migrated.silent("MG307")


def test_a_decorated_evaluation_leaves_training_as_it_was() -> None:
    helpers = f"""
@torch.no_grad()
@{BF16}
def evaluate(model, loader):
    return sum(F.cross_entropy(model(x), y).item() for x, y in loader)
"""
    migrated = convert(helpers=helpers, end="print(evaluate(model, train_loader))")
    assert "torch_autocast" not in migrated.config
    assert "F.cross_entropy(model.module(x), y)" in migrated.section("helpers")


@pytest.mark.parametrize("helpers", [MANAGER, CLASS.replace("Mixed", "mixed")], ids=["manager", "class"])
def test_what_the_script_makes_of_a_region_is_one(helpers: str) -> None:
    migrated = convert(helpers=helpers, loop=region("mixed()"))
    assert migrated.config["torch_autocast"] == autocast("bfloat16")
    migrated.said("MG301", "with mixed():", Kind.CONVERTED)
    migrated.silent("MG307")


def test_a_manager_that_follows_its_argument_is_carried() -> None:
    helpers = MANAGER.replace("mixed()", "mixed(enabled)").replace(
        "torch.bfloat16)", "torch.bfloat16, enabled=enabled)"
    )
    migrated = convert(helpers=helpers, loop=region("mixed(args.amp)"))
    assert 'ds_config["torch_autocast"]["enabled"] = bool(args.amp)' in migrated.code


def test_a_manager_that_asks_something_first_is_marked() -> None:
    helpers = f"""
@contextlib.contextmanager
def mixed(step):
    if step > 100:
        with {BF16}:
            yield
    else:
        yield
"""
    migrated = convert(helpers=helpers, loop=region("mixed(len(y))"))
    migrated.said("MG307", "with mixed(len(y)):", Kind.TODO)


def test_a_subclass_of_autocast_is_asked_itself() -> None:
    assert is_probed(convert(helpers=SUBCLASS, loop=region("Mixed()")), "Mixed()")


def test_a_lambda_is_read() -> None:
    migrated = convert(wrap=f"mixed = lambda: {BF16}\nmodel = DDP(Net().cuda())", loop=region("mixed()"))
    assert migrated.config["torch_autocast"] == autocast("bfloat16")


def test_a_table_is_asked_itself() -> None:
    table = f'mixed = {{"bf16": {BF16}, "none": contextlib.nullcontext()}}[args.output]\n'
    migrated = convert(wrap=f"{table}model = DDP(Net().cuda())", loop=region("mixed"))
    assert is_probed(migrated, "mixed")


def test_a_table_in_the_loop_is_marked() -> None:
    table = f"{{True: {BF16}, False: contextlib.nullcontext()}}[args.amp]"
    convert(loop=region(table)).said("MG307", table, Kind.TODO)
