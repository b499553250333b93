"""``loss.backward()`` becomes ``engine.backward(loss)``."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from dsmigrate.codemod.analysis.training import Training
from dsmigrate.codemod.decision import Decision
from dsmigrate.codemod.idioms.facts import Facts
from dsmigrate.codemod.model import Idea, Kind
from dsmigrate.codemod.program.edits import Replace

IDEAS = (
    Idea(
        "MG401",
        "loss.backward() becomes engine.backward(loss)",
        "The engine runs backward and averages the gradients.",
        "DDP averages gradients in hooks of the wrapper, which is gone. At ZeRO 0 a plain backward would train each rank by "
        "itself; at ZeRO 1-3 the engine stops.",
        "deepspeed/runtime/engine.py, backward",
        Kind.CONVERTED,
    ),
)


def backward(training: Training, facts: Facts) -> Iterator[Decision]:
    """A decision for each place that runs backward."""
    seen: set[ast.AST] = set()
    for event in training.backwards:
        node = event.node
        if node in seen or not isinstance(node, ast.Call) or "library" in event.what:
            continue
        seen.add(node)
        engine = facts.engine(event)
        if engine is None:
            continue
        loss = _loss(node, "function" in event.what)
        if loss is None:
            yield Decision("MG401", Kind.TODO, event.module, node, f"call {engine}.backward(loss) here", "how it is written hides the loss")
            continue
        more = ", retain_graph=True" if "retain_graph" in event.what else ""
        yield Decision(
            "MG401", Kind.CONVERTED, event.module, node, f"loss.backward() → {engine}.backward(loss)",
            "the engine averages the gradients",
            edits=(Replace(event.module, node, (f"{engine}.backward(", loss, f"{more})")),),
        )  # fmt: skip


def _loss(node: ast.Call, by_function: bool) -> ast.expr | None:  # noqa: FBT001 - torch.autograd.backward(loss)
    """The expression of the loss in a call that runs its backward."""
    if by_function:
        return node.args[0] if node.args else None
    if isinstance(node.func, ast.Attribute):
        return node.func.value
    if isinstance(node.func, ast.Call) and len(node.func.args) == 2:  # getattr(loss, "backward")()
        return node.func.args[0]
    return None
