"""Windows, no_sync, and code that works on gradients."""

from __future__ import annotations

import pytest

from dsmigrate.codemod.model import Kind
from tests.codemod.checks import check_section, convert
from tests.codemod.steps.loop_scripts import loop

# -- accumulation ------------------------------------------------------------------------------------------------------

WINDOWS = [
    "(i + 1) % args.accum == 0",
    "(i + 1) % args.accum == 0 or (i + 1) == len(train_loader)",
    "i % 4 == 3",
    "((i + 1) % args.accum == 0) or (i + 1 == len(train_loader))",
]


@pytest.mark.parametrize("gate", WINDOWS)
def test_a_gated_step_is_not_managed(gate: str) -> None:
    migrated = check_section(
        "loop",
        f"""
        for i, (x, y) in enumerate(train_loader):
            loss = F.cross_entropy(model(x), y)
            loss = loss / args.accum
            loss.backward()
            if {gate}:
                optimizer.step()
                optimizer.zero_grad()
                scheduler.step()
        """,
        f"""
        for i, (x, y) in enumerate(train_loader):
            loss = F.cross_entropy(model(x), y)
            loss = loss / args.accum
            model.backward(loss)
            if {gate}:
                model.step()
                scheduler.step()
        """,
        resume="scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 10)",
    )
    migrated.said("MG404", "optimizer.step()")
    assert migrated.config["managed_gradient_accumulation"] is False
    assert migrated.config["gradient_accumulation_steps"] == 1


def test_an_inner_loop_of_micro_batches_is_not_managed() -> None:
    migrated = check_section(
        "loop",
        """
        for step in range(1000):
            optimizer.zero_grad(set_to_none=True)
            for micro_step in range(args.accum):
                model.require_backward_grad_sync = micro_step == args.accum - 1
                x, y = next(iter(train_loader))
                loss = F.cross_entropy(model(x), y) / args.accum
                loss.backward()
            optimizer.step()
        """,
        """
        for step in range(1000):
            for micro_step in range(args.accum):
                x, y = next(iter(train_loader))
                loss = F.cross_entropy(model(x), y) / args.accum
                model.backward(loss)
            model.step()
        """,
    )
    assert migrated.config["managed_gradient_accumulation"] is False
    migrated.said("MG405", "require_backward_grad_sync", Kind.CONVERTED)


def test_two_losses_of_one_step_are_not_managed() -> None:
    migrated = check_section(
        "loop",
        """
        for x, y in train_loader:
            optimizer.zero_grad()
            F.cross_entropy(model(x), y).backward()
            F.mse_loss(model(-x), model(x).detach()).backward()
            optimizer.step()
        """,
        """
        for x, y in train_loader:
            model.backward(F.cross_entropy(model(x), y))
            model.backward(F.mse_loss(model(-x), model(x).detach()))
            model.step()
        """,
    )
    assert migrated.config["managed_gradient_accumulation"] is False


def test_leftovers_behind_the_loop_are_not_managed() -> None:
    migrated = check_section(
        "loop",
        """
        for i, (x, y) in enumerate(train_loader):
            (F.cross_entropy(model(x), y) / args.accum).backward()
            if (i + 1) % args.accum == 0:
                optimizer.step()
                optimizer.zero_grad()
        if (i + 1) % args.accum:
            optimizer.step()
            optimizer.zero_grad()
        """,
        """
        for i, (x, y) in enumerate(train_loader):
            model.backward(F.cross_entropy(model(x), y) / args.accum)
            if (i + 1) % args.accum == 0:
                model.step()
        if (i + 1) % args.accum:
            model.step()
        """,
    )
    assert migrated.config["managed_gradient_accumulation"] is False


@pytest.mark.parametrize("version", ["0.9.0", "0.19.3"])
def test_older_versions_are_told_where_a_window_ends(version: str) -> None:
    migrated = check_section(
        "loop",
        """
        for i, (x, y) in enumerate(train_loader):
            (F.cross_entropy(model(x), y) / args.accum).backward()
            if (i + 1) % args.accum == 0 or i + 1 == len(train_loader):
                optimizer.step()
                optimizer.zero_grad()
        """,
        """
        for i, (x, y) in enumerate(train_loader):
            model.set_gradient_accumulation_boundary((i + 1) % args.accum == 0 or i + 1 == len(train_loader))
            model.backward(F.cross_entropy(model(x), y) / args.accum)
            if (i + 1) % args.accum == 0 or i + 1 == len(train_loader):
                model.step()
        """,
        to={"target_version": version},
    )
    assert "managed_gradient_accumulation" not in migrated.config
    migrated.said("MG406", ".backward()", Kind.CONVERTED)


def test_older_versions_and_an_inner_loop() -> None:
    migrated = convert(
        loop="""
            for step in range(1000):
                for micro_step in range(args.accum):
                    x, y = next(iter(train_loader))
                    (F.cross_entropy(model(x), y) / args.accum).backward()
                optimizer.step()
                optimizer.zero_grad()
            """,
        to={"target_version": "0.18.0"},
    )
    assert "        model.set_gradient_accumulation_boundary(micro_step == args.accum - 1)\n" in migrated.section(
        "loop"
    )


# -- no_sync -----------------------------------------------------------------------------------------------------------

SYNCED = """
for i, (x, y) in enumerate(train_loader):
    last = (i + 1) % args.accum == 0
    loss = F.cross_entropy(model(x), y) / args.accum
    model.backward(loss)
    if last:
        model.step()
"""


@pytest.mark.parametrize(
    "block",
    [
        """
            with contextlib.nullcontext() if last else model.no_sync():
                loss = F.cross_entropy(model(x), y) / args.accum
                loss.backward()
        """,
        """
            with model.no_sync() if not last else contextlib.nullcontext():
                loss = F.cross_entropy(model(x), y) / args.accum
                loss.backward()
        """,
        """
            if last:
                loss = F.cross_entropy(model(x), y) / args.accum
                loss.backward()
            else:
                with model.no_sync():
                    loss = F.cross_entropy(model(x), y) / args.accum
                    loss.backward()
        """,
        """
            model.require_backward_grad_sync = last
            loss = F.cross_entropy(model(x), y) / args.accum
            loss.backward()
        """,
    ],
    ids=["choice", "choice the other way round", "branches", "switch"],
)
def test_no_sync_goes_in_all_its_forms(block: str) -> None:
    before = (
        "for i, (x, y) in enumerate(train_loader):\n    last = (i + 1) % args.accum == 0\n"
        + "\n".join("    " + line[12:] for line in block.rstrip().splitlines()[1:])
        + "\n    if last:\n        optimizer.step()\n        optimizer.zero_grad()\n"
    )
    migrated = check_section("loop", before, SYNCED)
    assert any(change.code == "MG405" for change in migrated.changes)


def test_a_context_that_may_be_no_sync_becomes_an_empty_one() -> None:
    migrated = convert(
        loop="""
            for i, (x, y) in enumerate(train_loader):
                last = (i + 1) % args.accum == 0
                context = contextlib.nullcontext if last else model.no_sync
                with context():
                    loss = F.cross_entropy(model(x), y) / args.accum
                    loss.backward()
                if last:
                    optimizer.step()
                    optimizer.zero_grad()
            """
    )
    assert "no_sync" not in migrated.code
    assert "context = contextlib.nullcontext\n" in migrated.section("loop")


def test_no_sync_in_an_exit_stack_goes() -> None:
    migrated = convert(
        loop="""
            for i, (x, y) in enumerate(train_loader):
                with contextlib.ExitStack() as stack:
                    if (i + 1) % args.accum:
                        stack.enter_context(model.no_sync())
                    (F.cross_entropy(model(x), y) / args.accum).backward()
                if (i + 1) % args.accum == 0:
                    optimizer.step()
                    optimizer.zero_grad()
            """
    )
    assert "no_sync" not in migrated.code


# -- gradients ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "line",
    [
        "norms = [p.grad.norm() for p in model.parameters()]",
        "model.module.head.weight.grad.mul_(0.1)",
        "dist.all_reduce(model.module.head.weight.grad)",
    ],
)
def test_code_that_works_on_gradients_gets_stage_zero(line: str) -> None:
    migrated = convert(loop=loop("optimizer.zero_grad()", "loss.backward()", line, "optimizer.step()"))
    assert line in migrated.section("loop")
    assert migrated.config["zero_optimization"] == {"stage": 0}
    assert "ZeRO stage 0" in migrated.said("MG409", line, Kind.KEPT).message


def test_code_that_works_on_gradients_is_marked_where_another_stage_is_asked_for() -> None:
    line = "model.module.head.weight.grad.mul_(0.1)"
    migrated = convert(
        loop=loop("optimizer.zero_grad()", "loss.backward()", line, "optimizer.step()"), to={"zero_stage": 1}
    )
    assert migrated.config["zero_optimization"] == {"stage": 1}
    migrated.said("MG409", line, Kind.TODO)


def test_gradients_are_whole_at_the_end_of_a_window() -> None:
    migrated = convert(
        loop="""
            for i, (x, y) in enumerate(train_loader):
                (F.cross_entropy(model(x), y) / args.accum).backward()
                if (i + 1) % args.accum == 0:
                    model.module.head.weight.grad.mul_(0.1)
                    optimizer.step()
                    optimizer.zero_grad()
            """
    )
    assert "set_gradient_accumulation_boundary" not in migrated.code
    assert "managed_gradient_accumulation" not in migrated.config
    assert migrated.config["zero_optimization"] == {"stage": 0}


def test_a_helper_for_gradients_from_elsewhere_gets_stage_zero() -> None:
    migrated = convert(
        imports="from utils import scale_gradients",
        loop=loop("optimizer.zero_grad()", "loss.backward()", "scale_gradients(model)", "optimizer.step()"),
    )
    migrated.said("MG409", "    scale_gradients(model)", Kind.KEPT)
    assert migrated.config["zero_optimization"] == {"stage": 0}


def test_gradients_of_inputs_are_another_matter() -> None:
    migrated = convert(
        loop="""
            for x, y in train_loader:
                x.requires_grad_(True)
                loss = F.cross_entropy(model(x), y)
                (slope,) = torch.autograd.grad(loss, x, retain_graph=True)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                print(slope.norm())
            """
    )
    migrated.silent("MG409")


_SEEN = """
    seen = 0
    for x, y in train_loader:
        (F.cross_entropy(model(x), y) / args.accum).backward()
        seen += 1
        if seen % args.accum == 0:
            model.module.head.weight.grad.mul_(0.1)
            optimizer.step()
            optimizer.zero_grad()
    """


def test_a_window_that_only_the_person_can_mark_is_averaged_in_every_backward() -> None:
    migrated = convert(loop=_SEEN)
    assert "averaged in every backward" in migrated.said("MG404", "    optimizer.step()", Kind.KEPT).message
    assert "managed_gradient_accumulation" not in migrated.config
    assert migrated.config["gradient_accumulation_steps"] == 1
    assert migrated.config["zero_optimization"] == {"stage": 0}
    migrated.silent("MG406")


@pytest.mark.parametrize("options", [{"target_version": "0.18.2", "zero_stage": 1}, {"zero_stage": 2}])
def test_a_window_that_only_the_person_can_mark_is_left_to_them_elsewhere(options: dict[str, object]) -> None:
    convert(loop=_SEEN, to=options).said("MG406", "    optimizer.step()", Kind.TODO)


def test_gradients_that_are_clipped_at_every_micro_batch_are_averaged_before() -> None:
    migrated = convert(
        loop="""
            for i, (x, y) in enumerate(train_loader):
                (F.cross_entropy(model(x), y) / args.accum).backward()
                nn.utils.clip_grad_value_(model.parameters(), 0.5)
                if (i + 1) % args.accum == 0:
                    optimizer.step()
                    optimizer.zero_grad()
            """
    )
    assert "set_gradient_accumulation_boundary" not in migrated.code
    assert "managed_gradient_accumulation" not in migrated.config
    migrated.said("MG404", "    optimizer.step()", Kind.KEPT)
