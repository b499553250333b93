"""Variables of the environment that the script writes, and that its launcher or DeepSpeed has read before."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from dsmigrate.codemod.analysis.code import holds_by_default
from dsmigrate.codemod.analysis.conditions import atoms_of
from dsmigrate.codemod.analysis.events import BlockKind, Event, Happening
from dsmigrate.codemod.analysis.processes import Teller, groups, leaves, spawn_around
from dsmigrate.codemod.analysis.training import Training
from dsmigrate.codemod.analysis.values import Const
from dsmigrate.codemod.decision import Decision
from dsmigrate.codemod.idioms.facts import Facts
from dsmigrate.codemod.model import Idea, Kind
from dsmigrate.codemod.program.edits import ReplaceStatement
from dsmigrate.languages import told

IDEAS = (
    Idea(
        "MG203",
        "MASTER_ADDR and MASTER_PORT become defaults",
        "The address that torchrun sets is no longer overwritten by the script.",
        "Under torchrun every process is a client of a store at the launcher's port; another port leaves all of them "
        "waiting for a server that nobody starts.",
        "torch/distributed/elastic, TORCHELASTIC_USE_AGENT_STORE",
        Kind.CONVERTED,
    ),
    Idea(
        "MG225",
        "CUDA_VISIBLE_DEVICES that the script sets by itself",
        "Set after `import deepspeed` the variable has no effect: other GPUs than those asked for are used.",
        "DeepSpeed asks torch.cuda.is_available() when it is imported, and CUDA reads the variable once, when it is first asked. "
        "Set it for the launcher: CUDA_VISIBLE_DEVICES=2,3 torchrun …, or deepspeed --include localhost:2,3.",
        "deepspeed/accelerator/real_accelerator.py, get_accelerator; torch/cuda/__init__.py, is_available",
        Kind.TODO,
    ),
)
_VISIBLE = Const("CUDA_VISIBLE_DEVICES")
_ADDRESS = (Const("MASTER_ADDR"), Const("MASTER_PORT"))


def address(training: Training, facts: Facts) -> Iterator[Decision]:  # noqa: ARG001 - an idiom's signature
    """Let the launcher's address stand."""
    if not any(Teller.LAUNCHER in group.tellers for group in groups(training)):
        return
    written = [
        event
        for event in training.events(Happening.ENVIRONMENT)
        if event["name"] in _ADDRESS and "default" not in event.what
    ]
    for node in dict.fromkeys(event.node for event in written):
        here = [event for event in written if event.node is node]
        event = here[0]
        statement = event.module.step(node).node
        if (
            any(_is_of_manager(training, one) for one in here)
            or not isinstance(statement, ast.Assign)
            or len(statement.targets) != 1
        ):
            continue
        target = statement.targets[0]
        if not isinstance(target, ast.Subscript):
            continue
        code = (target.value, ".setdefault(", target.slice, ", ", statement.value, ")")
        yield Decision(
            "MG203", Kind.CONVERTED, event.module, statement, told("{name} is only set where the launcher did not", name=event["name"].value),  # type: ignore[union-attr]
            "torchrun's processes meet at the launcher's address", edits=(ReplaceStatement(event.module, statement, (code,)),), suits_all=True,
        )  # fmt: skip


def _is_of_manager(training: Training, event: Event) -> bool:
    """Whether a variable is written where no launcher is: in a worker that was spawned, for SLURM, where it is missing."""
    if spawn_around(training.analysis, event.block) is not None or event.number > training.wraps[-1].number:
        return True
    if any(block.kind is BlockKind.SPAWNED for block in training.wraps[0].block.around()):
        return True
    return any(leaf.op in {"env", "is set"} for atom in atoms_of(event.condition) for leaf in leaves(atom))


def visible_devices(training: Training, facts: Facts) -> Iterator[Decision]:
    """Mark where the devices are chosen after DeepSpeed was imported."""
    seen: set[ast.AST] = set()
    for event in training.events(Happening.ENVIRONMENT):
        if event["name"] != _VISIBLE or event.node in seen or not training.is_before(event):
            continue
        if _is_before_import(event, facts) or _is_of_parent(event, training.wraps):
            continue
        seen.add(event.node)
        if any(_is_of_parent(event, (wrap,)) for wrap in training.wraps):
            yield Decision(
                "MG225", Kind.KEPT, event.module, event.node, "Where no processes are spawned, set CUDA_VISIBLE_DEVICES for the launcher.",
                "CUDA is asked for its devices when deepspeed is imported", differs=True,
            )  # fmt: skip
            continue
        is_asked = holds_by_default(training.analysis, event.condition) is False  # by an option
        yield Decision(
            "MG225", Kind.KEPT if is_asked else Kind.TODO, event.module, event.node, "set CUDA_VISIBLE_DEVICES for the launcher: here it has no effect any more",
            "CUDA is asked for its devices when deepspeed is imported", differs=True,
        )  # fmt: skip


def _is_of_parent(event: Event, wraps: tuple[Event, ...]) -> bool:
    """Whether the process that writes it only starts those that train: they find it when they are started."""
    around = {block for block in event.block.around() if block.kind is BlockKind.SPAWNED}
    return all(
        any(block.kind is BlockKind.SPAWNED and block not in around for block in wrap.block.around()) for wrap in wraps
    )


def _is_before_import(event: Event, facts: Facts) -> bool:
    """Whether a statement of the entry's top level stands above the first import of torch, where deepspeed's import comes."""
    entry = facts.training.analysis.project.entry
    step = event.module.step(event.node)
    if event.module.path != entry or step.function is not None:
        return False
    first = next((node.lineno for node in event.module.tree.body if _imports_torch(node)), 0)
    return step.node.lineno < first


def _imports_torch(node: ast.stmt) -> bool:
    names = (
        [alias.name for alias in node.names]
        if isinstance(node, ast.Import)
        else [node.module or ""]
        if isinstance(node, ast.ImportFrom)
        else []
    )
    return any(name.split(".")[0] == "torch" for name in names)
