"""Forwards that only some ranks run: marked at ZeRO 3, where a forward is collective; one sentence below it."""

from __future__ import annotations

import pytest

from dsmigrate.codemod.model import Kind
from tests.codemod.checks import Migrated, check_kept, convert

VALIDATE = """
@torch.no_grad()
def validate(net, loader):
    for x, y in loader:
        print(F.cross_entropy(net(x), y))
"""


def at(stage: int, end: str, **parts: str) -> Migrated:
    return convert(end=end, to={"zero_stage": stage}, **({"helpers": VALIDATE} | parts))


@pytest.mark.parametrize(
    "guard",
    [
        "if rank == 0:",
        "if 0 == rank:",
        "if not rank:",
        "if local_rank in [-1, 0]:",
        "if dist.get_rank() == 0:",
        'if int(os.environ["RANK"]) == 0:',
        "if not args.distributed or rank == 0:",
        "if args.distributed and dist.get_rank() != 0:",
        "if rank < 1:",
        "if is_main_process():",
        "if args.is_master:",
        "if rank == 0 and args.epochs > 3:",
    ],
)
def test_an_evaluation_under_a_rank_guard(guard: str) -> None:
    parts = {"imports": "from utils import is_main_process"}
    end = f"{guard}\n    validate(model, train_loader)"
    at(3, end, **parts).said("MG711", "    validate(model, train_loader)", Kind.TODO)
    check_kept("end", end + "\n", to={"zero_stage": 2}, helpers=VALIDATE, **parts).said(
        "MG711", "    validate(model, train_loader)", Kind.KEPT
    )


@pytest.mark.parametrize(
    "guard",
    [
        "if args.distributed:",
        "if local_rank != -1:",
        "if rank >= 0:",
        "if rank is not None:",
        "if args.epochs > 3:",
        "if dist.is_initialized():",
        "if args.output == 'main':",
        "if os.environ.get('RANK') is not None:",
    ],
)
def test_a_guard_with_one_answer_on_all_ranks(guard: str) -> None:
    at(3, f"{guard}\n    validate(model, train_loader)").silent("MG711")


def test_what_only_one_rank_does_with_the_result() -> None:
    helpers = VALIDATE.replace("        print(", "        return (")
    end = "loss = validate(model, train_loader)\nif rank == 0:\n    print(loss, model.module.training)"
    at(3, end, helpers=helpers).silent("MG711")


@pytest.mark.parametrize(
    "text",
    [
        "if rank == 0:\n    print([model(x) for x, y in train_loader])",
        "if rank == 0:\n    print(model.module(torch.zeros(1, 32)))",
        "if rank == 0:\n    print(model.module.generate(torch.zeros(1, 32)))",
        "loss = validate(model, train_loader) if rank == 0 else None",
        "print(rank == 0 and validate(model, train_loader))",
        "main_rank = rank == 0\nif main_rank:\n    validate(model, train_loader)",
        "first = rank == 0\nif first:\n    validate(model, train_loader)",
        "if rank != 0:\n    return\nvalidate(model, train_loader)",
        "if rank == 0:\n    print('done')\nelse:\n    validate(model, train_loader)",
    ],
)
def test_other_ways_to_let_only_some_ranks_in(text: str) -> None:
    at(3, text).said("MG711", text.splitlines()[-1], Kind.TODO)


def test_a_guard_around_the_call_of_a_function_that_evaluates() -> None:
    helpers = VALIDATE + "\ndef report(net, loader):\n    validate(net, loader)\n"
    migrated = at(3, "if rank == 0:\n    report(model, train_loader)", helpers=helpers)
    migrated.said("MG711", "    report(model, train_loader)", Kind.TODO)


def test_a_guard_inside_of_the_function_that_evaluates() -> None:
    helpers = VALIDATE.replace("    for x", "    if dist.get_rank() != 0:\n        return\n    for x")
    migrated = at(3, "validate(model, train_loader)", helpers=helpers)
    migrated.said("MG711", "print(F.cross_entropy(net(x), y))", Kind.TODO)


def test_a_loop_of_forwards_is_marked_once_above_it() -> None:
    migrated = at(3, "if rank == 0:\n    for x, y in train_loader:\n        print(model(x))\n        print(model(y))")
    assert "guard for its result\n    for x, y in train_loader:\n        print(model(x))" in migrated.section("end")
    assert [change.code for change in migrated.changes].count("MG711") == 1


def test_a_test_of_the_rank_in_a_function_of_the_script() -> None:
    helpers = VALIDATE + "\ndef first():\n    return dist.get_rank() == 0\n"
    migrated = at(3, "if first():\n    validate(model, train_loader)", helpers=helpers)
    migrated.said("MG711", "    validate(model, train_loader)", Kind.TODO)


def test_a_decorator_that_lets_only_one_rank_in() -> None:
    migrated = at(
        3, "validate(model, train_loader)", helpers="@rank_zero_only" + VALIDATE, imports="from u import rank_zero_only"
    )
    migrated.said("MG711", "net(x)", Kind.TODO)


def test_an_evaluation_of_another_module_under_a_guard() -> None:
    end = "if rank == 0:\n    evaluate(model.module, train_loader)"
    at(3, end, imports="from evaluation import evaluate").said("MG711", "    evaluate(", Kind.TODO)


def test_another_function_of_another_module_under_a_guard() -> None:
    end = "if rank == 0:\n    count_parameters(model.module)"
    at(3, end, imports="from utils import count_parameters").silent("MG711")


def test_a_model_that_is_not_trained_may_be_run_by_one_rank() -> None:
    parts = {"wrap": "net = Net().cuda()\nema = copy.deepcopy(net)\nmodel = DDP(net)"}
    at(3, "if rank == 0:\n    validate(ema, train_loader)", **parts).silent("MG711")


def test_a_forward_before_the_engine_is_made() -> None:
    wrap = "net = Net().cuda()\nif rank == 0:\n    print(net(torch.zeros(1, 32)))\nmodel = DDP(net)"
    convert(wrap=wrap, to={"zero_stage": 3}).silent("MG711")


def test_below_stage_3_one_sentence_is_enough() -> None:
    end = "if rank == 0:\n    validate(model, train_loader)\nif rank == 0:\n    validate(model.module, train_loader)"
    assert [change.code for change in at(2, end).changes].count("MG711") == 1
    assert [change.code for change in at(3, end).changes].count("MG711") == 2
