"""Where all ranks evaluate, BatchNorm's statistics are rank 0's on all of them, as under DDP."""

from __future__ import annotations

import pytest

from dsmigrate.codemod.model import Kind
from tests.codemod.checks import Migrated, convert

HELPERS = """
    @torch.no_grad()
    def validate(model, loader):
        model.eval()
        return sum(F.cross_entropy(model(x), y).item() for x, y in loader)


    def measure(model, loader):
        model.eval()
        total = 0.0
        for x, y in loader:
            total += F.cross_entropy(model(x), y).item()
        return total


    def run_batch(model, x, y):
        return F.cross_entropy(model(x), y)
    """
MADE = "nn.Sequential(nn.Linear(32, 32), nn.BatchNorm1d(32), Net())"
WRAP = f"model = DDP({MADE}.cuda())"
LOOP = """
    for epoch in range(args.epochs):
        for x, y in train_loader:
            loss = {loss}
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        {evaluate}
    """
LOSS = "run_batch(model, x, y)"


def evaluated(evaluate: str, *, wrap: str = WRAP, loss: str = LOSS, **sections: str) -> Migrated:
    loop = LOOP.format(loss=loss, evaluate=evaluate.replace("\n", "\n        "))
    return convert(wrap=wrap, loop=loop, **{"helpers": HELPERS, **sections})


@pytest.mark.parametrize(
    "evaluate",
    [
        "scheduler.step(validate(model, loader))",
        "if measure(model, loader) > best:\n    break",
        "with torch.no_grad():\n    print(run_batch(model, x, y))",
        "if epoch % 2 == 0:\n    value = validate(model.module, loader)",
        "value = validate(model, loader)\nif rank == 0:\n    print(validate(model.module, loader))",
    ],
)
def test_statistics_are_sent_where_all_ranks_evaluate(evaluate: str) -> None:
    migrated = evaluated(evaluate)
    assert "\nsend_buffers(model)\n" in migrated.section("optimizer")
    migrated.said("MG129", WRAP, Kind.CONVERTED)
    migrated.silent("MG104")


@pytest.mark.parametrize(
    "evaluate",
    [
        "if rank == 0:\n    validate(model.module, loader)",
        "if rank == 0:\n    validate(model, loader)",
        "if args.epochs == 3:\n    print(epoch)",
        "if rank == -1 and args.amp:\n    validate(model, loader)",
    ],
)
def test_an_evaluation_of_rank_0_has_its_statistics_anyway(evaluate: str) -> None:
    migrated = evaluated(evaluate)
    assert "send_buffers" not in migrated.code
    migrated.said("MG104", WRAP, Kind.KEPT)
    migrated.silent("MG129")


TOOLS = """
    def preview(model, loader):
        for x, y in loader:
            show(validate(model, loader))
            preview_again(model, loader)


    def preview_again(model, loader):
        preview(model, loader)
    """


def test_an_evaluation_in_functions_that_nobody_calls_is_none() -> None:
    migrated = evaluated("print(epoch)", helpers=HELPERS + TOOLS)
    assert "send_buffers" not in migrated.code
    migrated.silent("MG129")


@pytest.mark.parametrize("use", ["preview_again(model, loader)", "tools.run(show)", "getattr(tools, 'show')()"])
def test_an_evaluation_in_functions_that_are_called_or_handed_on_is_one(use: str) -> None:
    evaluate = f"def show():\n    return validate(model, loader)\n\n{use}"
    evaluated(evaluate, helpers=HELPERS + TOOLS).said("MG129", WRAP, Kind.CONVERTED)


@pytest.mark.parametrize("alone", ["measure", "validate"])
def test_where_some_ranks_run_the_wrapped_model_too_it_is_left_to_the_person(alone: str) -> None:
    migrated = evaluated(f"value = validate(model, loader)\nif rank == 0:\n    print({alone}(model, loader))")
    assert "send_buffers" not in migrated.code
    migrated.said("MG129", "return sum(F.cross_entropy(model(x), y).item()", Kind.TODO)


REGION_LOOP = """
    for x, y in train_loader:
        with torch.autocast("cuda", dtype=torch.bfloat16):
            loss = F.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    {evaluate}
    """


def test_an_evaluation_outside_autocast_has_the_buffers_sent_before_it() -> None:
    loop = REGION_LOOP.format(evaluate="measure(model, train_loader)")
    migrated = convert(helpers=HELPERS, wrap=WRAP, loop=loop)
    helper = migrated.section("helpers")
    assert "        model.send_buffers()\n        total += F.cross_entropy(model.module(x), y).item()" in helper
    assert migrated.section("optimizer").endswith("\nsend_buffers(model)\n")
    assert "    model.send_buffers = send\n" in migrated.code


@pytest.mark.parametrize("alone", ["measure(ema, loader)", "torch.save(ema, 'ema.pt')", "draw(model.module)"])
def test_no_hook_comes_where_rank_0_runs_the_module_or_a_copy_alone(alone: str) -> None:
    evaluate = f"validate(model, train_loader)\n    if rank == 0:\n        {alone}"
    wrap = f"{WRAP}\nema = copy.deepcopy(model.module)"
    migrated = convert(imports="import copy", helpers=HELPERS, wrap=wrap, loop=REGION_LOOP.format(evaluate=evaluate))
    assert "send_buffers(model.module)" not in migrated.code
    assert "    send_buffers(model)\n" in migrated.code
    assert "    model.send_buffers()\n    return sum(F.cross_entropy(model.module(x), y)" in migrated.code


def test_a_helper_that_gets_plain_models_too_sends_for_the_engine_alone() -> None:
    evaluate = "measure(model, train_loader)\n    if rank == 0:\n        measure(model.module, train_loader)"
    migrated = convert(helpers=HELPERS, wrap=WRAP, loop=REGION_LOOP.format(evaluate=evaluate))
    assert '        getattr(model, "send_buffers", bool)()\n' in migrated.code
    assert 'getattr(model, "module", model)(x)' in migrated.code


def test_an_evaluation_in_a_test_behind_another_is_left_to_the_person() -> None:
    branches = "if args.amp:\n            pass\n        elif model(x).sum() > 1:\n            print(x)"
    evaluate = f"with torch.no_grad():\n        {branches}"
    migrated = convert(helpers=HELPERS, wrap=WRAP, loop=REGION_LOOP.format(evaluate=evaluate))
    assert "send_buffers" not in migrated.code
    migrated.said("MG129", "elif model(x).sum() > 1:", Kind.TODO)


@pytest.mark.parametrize(
    "wrap",
    [
        f"model = DDP({MADE}.cuda(), broadcast_buffers=False)",
        f"model = DDP(nn.SyncBatchNorm.convert_sync_batchnorm({MADE}).cuda())",
        "model = DDP(Net().cuda())",
    ],
)
def test_statistics_that_ddp_did_not_send_or_that_are_equal_are_left_alone(wrap: str) -> None:
    migrated = evaluated("scheduler.step(validate(model, loader))", wrap=wrap)
    assert "send_buffers" not in migrated.code
    migrated.silent("MG104", "MG129")


def test_a_choice_of_the_person_is_spoken_of() -> None:
    wrap = f"model = DDP({MADE}.cuda(), broadcast_buffers=args.amp)"
    migrated = evaluated("scheduler.step(validate(model, loader))", wrap=wrap)
    assert "send_buffers" not in migrated.code
    migrated.said("MG104", wrap, Kind.KEPT)


def test_a_report_says_that_no_sync_kept_ddp_from_sending() -> None:
    loop = LOOP.replace("loss = {loss}", "with model.no_sync():\n                loss = {loss}")
    text = loop.format(loss=LOSS, evaluate="validate(model, loader)")
    migrated = convert(wrap=WRAP, loop=text, helpers=HELPERS)
    assert "under no_sync DDP sent no buffers" in migrated.said("MG129", "model(x), y", Kind.KEPT).message
    assert not [c for c in evaluated("validate(model, loader)").changes if "no_sync" in c.message]
