"""backward, step, zero_grad and gradient accumulation."""

from __future__ import annotations

import pytest

from dsmigrate.codemod.model import Kind
from tests.codemod.checks import check_refused, check_section, convert, script

PLAIN = """
for x, y in train_loader:
    loss = F.cross_entropy(model(x), y)
    model.backward(loss)
    model.step()
"""


# -- refusals ----------------------------------------------------------------------------------------------------------


def loop(*lines: str) -> str:
    body = "".join(f"    {line}\n" for line in lines)
    return f"for x, y in train_loader:\n    loss = F.cross_entropy(model(x), y)\n{body}"


@pytest.mark.parametrize(
    ("lines", "at", "message"),
    [
        (
            ("optimizer.zero_grad()", "loss.backward(create_graph=True)", "optimizer.step()"),
            "create_graph",
            "graph of grad",
        ),
        (
            ("optimizer.zero_grad()", "loss.backward(retain_graph=True)", "(2 * loss).backward()", "optimizer.step()"),
            "retain_graph",
            "share a graph",
        ),
        (
            ("optimizer.zero_grad()", "torch.autograd.backward([loss])", "loss.backward()", "optimizer.step()"),
            "torch.autograd.backward",
            "directly",
        ),
    ],
)
def test_backwards_that_the_engine_cannot_do_are_refused(lines: tuple[str, ...], at: str, message: str) -> None:
    check_refused(script(loop=loop(*lines)), "MG905", at, message)


def test_a_closure_is_refused() -> None:
    check_refused(script(loop=loop("loss.backward()", "optimizer.step(lambda: loss)")), "MG906", "lambda", "closure")


def test_optimizers_stepped_in_a_loop_are_refused() -> None:
    source = script(
        optimizer="""
            optimizers = [torch.optim.SGD(model.module.body.parameters(), lr=0.1),
                          torch.optim.AdamW(model.module.head.parameters(), lr=args.lr)]
            """,
        loop="""
            for x, y in train_loader:
                loss = F.cross_entropy(model(x), y)
                model.zero_grad()
                loss.backward()
                for opt in optimizers:
                    opt.step()
            """,
    )
    check_refused(source, "MG902", "opt.step()", "in a loop")


def test_a_backward_where_nothing_names_the_model_is_refused() -> None:
    source = script(
        helpers="""
            def optimize(loss, optimizer):
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
            """,
        loop="phases = [optimize]\n" + loop("phases[0](loss, optimizer)"),
    )
    check_refused(source, "MG913", "    loss.backward()")


def test_a_helper_that_gets_only_the_loss_is_given_the_engine() -> None:
    helper = """
        def optimize(loss, optimizer, scale=1.0):
            optimizer.zero_grad()
            (loss * scale).backward()
            optimizer.step()
        """
    code = convert(helpers=helper, loop=loop("optimize(loss, optimizer)")).code
    assert "def optimize(loss, optimizer, scale=1.0, *, engine):" in code
    assert "engine.backward(loss * scale)" in code
    assert "optimize(loss, optimizer, engine=model)" in code


def test_a_step_in_another_module_is_refused() -> None:
    source = script(imports="from engine import step", loop=loop("loss.backward()", "step(optimizer)"))
    check_refused(source, "MG910", "loss.backward()", "stepped in another module")


# -- backward and step -------------------------------------------------------------------------------------------------


def test_a_plain_loop() -> None:
    migrated = check_section("loop", loop("optimizer.zero_grad()", "loss.backward()", "optimizer.step()"), PLAIN)
    migrated.said("MG403", "optimizer.zero_grad()", Kind.CONVERTED)
    migrated.said("MG401", "loss.backward()", Kind.CONVERTED)
    migrated.said("MG402", "optimizer.step()", Kind.CONVERTED)
    assert "managed_gradient_accumulation" not in migrated.config
    assert migrated.config["gradient_accumulation_steps"] == 1


def test_backward_of_an_expression() -> None:
    check_section(
        "loop",
        """
        for x, y in train_loader:
            optimizer.zero_grad()
            (F.cross_entropy(model(x), y) + 0.1).backward()
            optimizer.step()
        """,
        """
        for x, y in train_loader:
            model.backward(F.cross_entropy(model(x), y) + 0.1)
            model.step()
        """,
    )


@pytest.mark.parametrize("arguments", ["retain_graph=False", "create_graph=False"])
def test_default_arguments_of_backward_go(arguments: str) -> None:
    check_section("loop", loop("optimizer.zero_grad()", f"loss.backward({arguments})", "optimizer.step()"), PLAIN)


def test_one_backward_may_retain_its_graph() -> None:
    migrated = convert(loop=loop("optimizer.zero_grad()", "loss.backward(retain_graph=True)", "optimizer.step()"))
    assert "model.backward(loss, retain_graph=True)" in migrated.section("loop")


def test_comments_of_a_loop_stay() -> None:
    check_section(
        "loop",
        """
        for x, y in train_loader:
            loss = F.cross_entropy(model(x), y)
            # backward pass
            optimizer.zero_grad()
            loss.backward()  # accumulates
            # update
            optimizer.step()
        """,
        """
        for x, y in train_loader:
            loss = F.cross_entropy(model(x), y)
            # backward pass
            model.backward(loss)  # accumulates
            # update
            model.step()
        """,
    )


def test_logging_of_the_loss_is_not_touched() -> None:
    check_section(
        "loop",
        loop("optimizer.zero_grad()", "loss.backward()", "optimizer.step()", "print(loss.item())"),
        PLAIN + "    print(loss.item())\n",
    )


def test_both_branches_of_an_if_run_backward_and_step() -> None:
    migrated = check_section(
        "loop",
        """
        for x, y in train_loader:
            loss = F.cross_entropy(model(x), y)
            optimizer.zero_grad()
            if args.amp:
                loss.backward()
                optimizer.step()
            else:
                loss.backward()
                optimizer.step()
        """,
        PLAIN,
    )
    assert "managed_gradient_accumulation" not in migrated.config


def test_a_step_that_a_bad_loss_skips_is_not_managed() -> None:
    migrated = convert(
        loop="""
            for x, y in train_loader:
                loss = F.cross_entropy(model(x), y)
                optimizer.zero_grad()
                loss.backward()
                if not torch.isfinite(loss):
                    continue
                optimizer.step()
            """
    )
    assert migrated.config["managed_gradient_accumulation"] is False


# -- the scheduler -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("where", ["optimizer", "resume"])
def test_a_scheduler_stays_in_the_script(where: str) -> None:
    scheduler = "scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=args.epochs)"
    usual = "optimizer = torch.optim.AdamW(model.parameters(), lr=args.lr)\n"
    migrated = convert(
        **({"optimizer": usual + scheduler} if where == "optimizer" else {"resume": scheduler}),
        loop="""
            for epoch in range(args.epochs):
                for x, y in train_loader:
                    loss = F.cross_entropy(model(x), y)
                    optimizer.zero_grad()
                    loss.backward()
                    optimizer.step()
                scheduler.step()
            """,
    )
    assert scheduler in migrated.code
    assert migrated.section("loop").endswith("        model.step()\n    scheduler.step()\n")
    assert "scheduler" not in migrated.config
    assert "lr_scheduler=" not in migrated.code


def test_learning_rates_written_by_hand_stay() -> None:
    check_section(
        "loop",
        loop(
            "for group in optimizer.param_groups:",
            '    group["lr"] = 0.5 * args.lr',
            "optimizer.zero_grad()",
            "loss.backward()",
            "optimizer.step()",
        ),
        """
        for x, y in train_loader:
            loss = F.cross_entropy(model(x), y)
            for group in optimizer.param_groups:
                group["lr"] = 0.5 * args.lr
            model.backward(loss)
            model.step()
        """,
    )


# -- zero_grad ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "spelling",
    [
        "optimizer.zero_grad()",
        "optimizer.zero_grad(set_to_none=True)",
        "model.zero_grad()",
        "model.zero_grad(set_to_none=True)",
        "model.module.zero_grad()",
    ],
)
@pytest.mark.parametrize("place", ["before", "after"])
def test_every_zero_grad_beside_the_step_goes(spelling: str, place: str) -> None:
    lines = ["loss.backward()", "optimizer.step()"]
    lines.insert(0 if place == "before" else 2, spelling)
    migrated = check_section("loop", loop(*lines), PLAIN)
    migrated.said("MG403", spelling, Kind.CONVERTED)


def test_a_loop_over_the_gradients_is_a_zero_grad() -> None:
    migrated = check_section(
        "loop", loop("for p in model.parameters():", "    p.grad = None", "loss.backward()", "optimizer.step()"), PLAIN
    )
    migrated.silent("MG409")
    assert migrated.config["zero_optimization"] == {"stage": 2}


def test_a_zero_grad_before_the_loop_goes_too() -> None:
    check_section(
        "loop",
        "optimizer.zero_grad()\n" + loop("loss.backward()", "optimizer.step()", "optimizer.zero_grad()"),
        PLAIN,
    )


def test_a_loop_that_never_zeroes_is_named() -> None:
    migrated = convert(loop=loop("loss.backward()", "optimizer.step()"))
    migrated.said("MG407", "optimizer.step()", Kind.TODO)
    assert "    # TODO(dsmigrate MG407)" in migrated.section("loop")


def test_a_zero_grad_at_the_start_of_an_epoch_drops_what_is_left() -> None:
    migrated = check_section(
        "loop",
        """
        for epoch in range(args.epochs):
            optimizer.zero_grad()
            for i, (x, y) in enumerate(train_loader):
                (F.cross_entropy(model(x), y) / args.accum).backward()
                if (i + 1) % args.accum == 0:
                    optimizer.step()
                    optimizer.zero_grad()
        """,
        """
        for epoch in range(args.epochs):
            drop_gradients(model)
            for i, (x, y) in enumerate(train_loader):
                model.backward(F.cross_entropy(model(x), y) / args.accum)
                if (i + 1) % args.accum == 0:
                    model.step()
        """,
    )
    migrated.said("MG408", "    optimizer.zero_grad()", Kind.CONVERTED)
    assert "engine.optimizer.all_grad_tensors.clear()" in migrated.code


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
    assert "    model.set_gradient_accumulation_boundary((i + 1) % args.accum == 0)\n" in migrated.section("loop")
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
