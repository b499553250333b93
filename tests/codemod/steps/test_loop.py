"""backward, step, zero_grad and gradient accumulation."""

from __future__ import annotations

import pytest

from dsmigrate.codemod.model import Kind
from tests.codemod.checks import check_refused, check_section, convert, script
from tests.codemod.steps.loop_scripts import loop

PLAIN = """
for x, y in train_loader:
    loss = F.cross_entropy(model(x), y)
    model.backward(loss)
    model.step()
"""


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


BEFORE_THE_LOOP = """
    optimizer.zero_grad()
    for x, y in train_loader:
        F.cross_entropy(model(x), y).backward()
        optimizer.step()
    """
EVERY_EPOCH = """
    for epoch in range(9):
        optimizer.zero_grad()
        for x, y in train_loader:
            F.cross_entropy(model(x), y).backward()
            optimizer.step()
    """
EVERY_OTHER_STEP = """
    for i, (x, y) in enumerate(train_loader):
        if i % 2 == 0:
            optimizer.zero_grad()
        F.cross_entropy(model(x), y).backward()
        optimizer.step()
    """
A_WINDOW = """
    for i, (x, y) in enumerate(train_loader):
        if i % 2 == 0:
            optimizer.zero_grad()
        F.cross_entropy(model(x), y).backward()
        if i % 2 == 1:
            optimizer.step()
    """
A_LOOP_FOR_EACH_WINDOW = """
    for i in range(9):
        optimizer.zero_grad()
        for x, y in train_loader:
            F.cross_entropy(model(x), y).backward()
        optimizer.step()
    """
IN_A_FUNCTION = """
    for x, y in train_loader:
        clear(optimizer)
        F.cross_entropy(model(x), y).backward()
        optimizer.step()
    """


@pytest.mark.parametrize("text", [BEFORE_THE_LOOP, EVERY_EPOCH, EVERY_OTHER_STEP])
def test_a_loop_that_steps_more_often_than_it_zeroes_is_named(text: str) -> None:
    convert(loop=text).said("MG407", "optimizer.step()", Kind.TODO)


@pytest.mark.parametrize("text", [A_WINDOW, A_LOOP_FOR_EACH_WINDOW, IN_A_FUNCTION])
def test_a_step_with_a_zero_grad_of_its_own_is_not(text: str) -> None:
    convert(loop=text, helpers="def clear(optimizer):\n    optimizer.zero_grad()\n\n\n").silent("MG407")


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
    assert 'zero.all_grad_tensors if hasattr(zero, "all_grad_tensors") else zero.averaged_gradients' in migrated.code
