"""Gradients that a script looks at after the step, which has cleared them, by itself or in a function."""

from __future__ import annotations

from dsmigrate.codemod.model import Kind
from tests.codemod.checks import Migrated, convert

HELPER = """
def largest(net):
    return max(p.grad.abs().max().item() for p in net.parameters())


"""
READ = "print(largest(model))"


def migrated(*lines: str, helpers: str = HELPER) -> Migrated:
    loop = ["for x, y in train_loader:", "optimizer.zero_grad()", "F.cross_entropy(model(x), y).backward()", *lines]
    return convert(loop="\n    ".join(loop), helpers=helpers)


def test_a_function_that_looks_after_the_step_is_marked_where_it_is_called() -> None:
    result = migrated("optimizer.step()", READ)
    assert "read after the step, which has cleared it" in result.said("MG410", READ, Kind.TODO).message
    result.silent("MG409")


def test_a_function_that_looks_before_the_step_works_at_stage_zero() -> None:
    result = migrated(READ, "optimizer.step()")
    result.silent("MG410")
    result.said("MG409", "p.grad.abs()", Kind.KEPT)
    assert result.config["zero_optimization"] == {"stage": 0}


def test_a_function_that_looks_before_and_after_it_is_both() -> None:
    result = migrated(f"{READ}  # before", "optimizer.step()", f"{READ}  # after")
    result.said("MG410", "# after", Kind.TODO)
    result.said("MG409", "p.grad.abs()", Kind.KEPT)


def test_functions_in_between_are_looked_through() -> None:
    between = "def shown(net):\n    return largest(net)\n\n\n"
    result = migrated("optimizer.step()", "print(shown(model))", helpers=HELPER + between)
    result.said("MG410", "print(shown(model))", Kind.TODO)


def test_a_look_in_the_test_of_a_branch_counts_too() -> None:
    test = "if any(torch.isnan(p.grad).any() for p in model.parameters() if p.grad is not None):"
    result = migrated(test, "    continue", "optimizer.step()")
    result.said("MG409", "torch.isnan(p.grad)", Kind.KEPT)
    assert result.config["zero_optimization"] == {"stage": 0}


def test_a_step_in_the_other_branch_is_no_step_before() -> None:
    loop = f"""
        for x, y in train_loader:
            optimizer.zero_grad()
            loss = F.cross_entropy(model(x), y)
            if args.amp:
                loss.backward()
                optimizer.step()
            else:
                loss.backward()
                {READ}
                optimizer.step()
        """
    convert(loop=loop, helpers=HELPER).silent("MG410")
    other = loop.replace(f"                {READ}\n", "").replace("else:\n", f"else:\n                {READ}\n")
    convert(loop=other, helpers=HELPER).silent("MG410")


PROBE = """
def probed(net, x, y):
    F.cross_entropy(net(x), y).backward()
    return max(p.grad.abs().max().item() for p in net.parameters())


"""


def test_a_backward_of_its_own_behind_cleared_gradients_is_what_is_read() -> None:
    result = migrated("optimizer.step()", "optimizer.zero_grad()", "print(probed(model, x, y))", helpers=PROBE)
    result.silent("MG410")
    result.said("MG409", "p.grad.abs()", Kind.KEPT)


def test_a_backward_of_its_own_had_added_to_the_gradients_of_the_step() -> None:
    result = migrated("optimizer.step()", "print(probed(model, x, y))", helpers=PROBE)
    told = result.said("MG410", "print(probed(model, x, y))", Kind.TODO)
    assert "it had been added to the gradients of that step" in told.message
