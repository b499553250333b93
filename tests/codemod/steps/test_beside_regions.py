"""Forward passes beside autocast regions: the engine has one setting for all of them."""

from __future__ import annotations

from dsmigrate.codemod.model import Kind
from tests.codemod.checks import convert

REGION = 'torch.autocast("cuda", dtype=torch.bfloat16)'
BOTH = """
def train_mixed(model, optimizer, loader):
    for x, y in loader:
        optimizer.zero_grad()
        with torch.autocast("cuda", dtype=torch.bfloat16):
            loss = F.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()


def train_plain(model, optimizer, loader):
    for x, y in loader:
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
"""
EVALUATE = """
@torch.no_grad()
def evaluate(model, loader):
    total = 0.0
    for x, y in loader:
        with torch.autocast("cuda", dtype=torch.float16):
            total += F.cross_entropy(model(x), y).item()
    return total
"""


def loop(*lines: str) -> str:
    body = "\n".join(f"    {line}" for line in lines)
    return f"for x, y in train_loader:\n    optimizer.zero_grad()\n{body}\n    loss.backward()\n    optimizer.step()\n"


def test_two_functions_of_which_an_option_chooses_one() -> None:
    migrated = convert(
        helpers=BOTH,
        loop="if args.amp:\n    train_mixed(model, optimizer, train_loader)\n"
        "else:\n    train_plain(model, optimizer, train_loader)",
    )
    assert 'ds_config["torch_autocast"]["enabled"] = bool(args.amp)' in migrated.code
    migrated.silent("MG307")


def test_two_functions_that_both_run_are_marked() -> None:
    migrated = convert(
        helpers=BOTH,
        loop="train_plain(model, optimizer, train_loader)\ntrain_mixed(model, optimizer, train_loader)",
    )
    plain = [c for c in migrated.changes if c.code == "MG307"]
    assert [c.kind for c in plain] == [Kind.TODO]
    assert "loss = F.cross_entropy(model(x), y)" in migrated.before.splitlines()[plain[0].line - 1]


def test_a_forward_beside_a_region_in_one_step_is_marked() -> None:
    second = "loss = F.cross_entropy(out, y) + model(x * 2).mean()"
    migrated = convert(loop=loop(f"with {REGION}:", "    out = model(x)", second))
    migrated.said("MG307", second, Kind.TODO)


def test_a_branch_that_leaves_the_loop_tells_two_forwards_apart() -> None:
    migrated = convert(
        loop=f"""
for x, y in train_loader:
    optimizer.zero_grad()
    if args.amp:
        with {REGION}:
            loss = F.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        continue
    loss = F.cross_entropy(model(x), y)
    loss.backward()
    optimizer.step()
"""
    )
    assert 'ds_config["torch_autocast"]["enabled"] = bool(args.amp)' in migrated.code
    migrated.silent("MG307")


def test_opposite_tests_tell_two_forwards_apart() -> None:
    lines = (f"if args.amp:\n        with {REGION}:\n            loss = F.cross_entropy(model(x), y)",
             "if not args.amp:\n        loss = F.cross_entropy(model(x), y)")  # fmt: skip
    migrated = convert(loop=loop(*lines))
    assert 'ds_config["torch_autocast"]["enabled"] = bool(args.amp)' in migrated.code
    migrated.silent("MG307")


def test_two_branches_with_regions_are_on_under_either_condition() -> None:
    lines = (f"if args.amp:\n        with {REGION}:\n            loss = F.cross_entropy(model(x), y)",
             f"elif args.fast:\n        with {REGION}:\n            loss = F.cross_entropy(model(x), y).mean()",
             "else:\n        loss = F.cross_entropy(model(x), y)")  # fmt: skip
    migrated = convert(loop=loop(*lines))
    line = next(line for line in migrated.code.splitlines() if '["torch_autocast"]["enabled"]' in line)
    for amp, fast in ((True, False), (False, True), (False, False)):
        names = {"args": type("Args", (), {"amp": amp, "fast": fast}), "ds_config": {"torch_autocast": {}}}
        exec(line.strip(), names)  # noqa: S102 - the line that the conversion wrote
        assert names["ds_config"]["torch_autocast"]["enabled"] is (amp or fast)  # type: ignore[index]


def test_a_region_around_evaluation_alone_leaves_training_as_it_was() -> None:
    migrated = convert(
        helpers=EVALUATE, loop=loop("loss = F.cross_entropy(model(x), y)"), end="print(evaluate(model, train_loader))"
    )
    assert "torch_autocast" not in migrated.config
    assert "F.cross_entropy(model.module(x), y).item()" in migrated.section("helpers")
    assert "loss = F.cross_entropy(model(x), y)" in migrated.section("loop")


def test_an_evaluation_in_another_region_than_training_runs_the_module() -> None:
    migrated = convert(
        helpers=EVALUATE,
        loop=loop(f"with {REGION}:", "    loss = F.cross_entropy(model(x), y)"),
        end="print(evaluate(model, train_loader))",
    )
    assert migrated.config["torch_autocast"]["dtype"] == "bfloat16"
    assert "F.cross_entropy(model.module(x), y).item()" in migrated.section("helpers")
    assert "loss = F.cross_entropy(model(x), y)" in migrated.section("loop")


def test_an_evaluation_without_no_grad_is_none_of_training() -> None:
    evaluate = EVALUATE.replace("@torch.no_grad()\n", "").replace("total = 0.0", "model.eval()\n    total = 0.0")
    plain = evaluate.replace('with torch.autocast("cuda", dtype=torch.float16):', "if x is not None:")
    migrated = convert(
        helpers=plain,
        loop=loop(f"with {REGION}:", "    loss = F.cross_entropy(model(x), y)"),
        end="print(evaluate(model, train_loader))",
    )
    assert "F.cross_entropy(model.module(x), y).item()" in migrated.section("helpers")
    migrated.silent("MG307")


def test_what_training_and_an_evaluation_in_another_region_share_is_marked() -> None:
    helpers = """
def run(model, x):
    return model(x)


def evaluate(model, loader):
    with torch.no_grad():
        for x, y in loader:
            with torch.autocast("cuda", dtype=torch.float16):
                print(F.cross_entropy(run(model, x), y).item())
"""
    migrated = convert(
        helpers=helpers,
        loop=loop(f"with {REGION}:", "    loss = F.cross_entropy(run(model, x), y)"),
        end="evaluate(model, train_loader)",
    )
    migrated.said("MG307", "dtype=torch.float16", Kind.TODO)
