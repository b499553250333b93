"""Weights of a checkpoint that come back without the optimizer, or in another function than it."""

from __future__ import annotations

import pytest

from dsmigrate.codemod.model import Kind
from tests.codemod.checks import convert
from tests.codemod.steps.checkpoint_scripts import RESUME, STATE, saving

PLAIN = {
    "wrap": "net = Net().cuda()\nmodel = DDP(net)",
    "optimizer": "optimizer = torch.optim.AdamW(net.parameters(), lr=args.lr)",
    "resume": "if args.resume:\n    load(args, net, optimizer)",
    "loop": saving(f'torch.save({STATE}, "last.pt")'),
}
LOAD = """
def load(args, model, optimizer):
    state = torch.load(args.resume, map_location="cpu")
    report = model.load_state_dict(state["model"])
    print(report)
    if not args.eval_only and "optimizer" in state:
        optimizer.load_state_dict(state["optimizer"])
"""


def test_a_helper_whose_plain_model_has_the_name_of_the_engine_gets_the_engine() -> None:
    migrated = convert(helpers=LOAD, **PLAIN)
    assert "def load(args, model, optimizer, *, engine):\n" in migrated.code
    assert "resume_engine(engine)" in migrated.code
    assert "load(args, net, optimizer, engine=model)" in migrated.section("resume")


@pytest.mark.parametrize("test", ["not args.eval_only", "not config.EVAL_MODE", "not args.only_test"])
def test_weights_whose_loading_is_reported_come_back_for_an_evaluation(test: str) -> None:
    code = convert(helpers=LOAD.replace("not args.eval_only", test), **PLAIN).code
    body = code[code.index("def load(") :]
    read, resumed, said = (body.index(part) for part in ("read_checkpoint(", "resume_engine(", "print(report)"))
    assert read < resumed < said


def test_another_condition_around_the_optimizer_is_marked() -> None:
    migrated = convert(helpers=LOAD.replace("not args.eval_only", "args.keep_momentum"), **PLAIN)
    migrated.said("MG622", 'report = model.load_state_dict(state["model"])', Kind.TODO)


@pytest.mark.parametrize("leaves", ["if args.test_only:\n    return", "if args.dry_run:\n    return"])
def test_a_return_between_weights_and_optimizer_is_marked(leaves: str) -> None:
    load = 'checkpoint = torch.load(args.resume)\nmodel.module.load_state_dict(checkpoint["model"])\n'
    migrated = convert(
        resume=f'{load}{leaves}\nif args.resume:\n    optimizer.load_state_dict(checkpoint["optimizer"])',
        loop=PLAIN["loop"],
    )
    where = migrated.section("resume")
    assert "resume_engine(model)" in where
    assert "return" not in where[: where.index("resume_engine(model)")] or "TODO(dsmigrate MG622)" in where


@pytest.mark.parametrize(("stage", "told"), [(None, True), (1, True), (0, False)])
def test_a_resume_by_another_number_of_processes_is_spoken_of(stage: int | None, told: bool) -> None:
    migrated = convert(to={"zero_stage": stage}, resume=RESUME, loop=saving(f'torch.save({STATE}, "last.pt")'))
    kept = [change.message for change in migrated.changes if change.code == "MG622" and change.kind is Kind.KEPT]
    assert any(message.startswith("resume with as many processes as saved") for message in kept) == told
