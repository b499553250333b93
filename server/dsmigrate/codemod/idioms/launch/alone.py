"""Runs that had no process group, and scripts that train on the CPU alone: the engine needs more than they had."""

from __future__ import annotations

import posixpath
from collections.abc import Iterator

from dsmigrate.codemod.analysis.analysis import implies
from dsmigrate.codemod.analysis.conditions import atoms_of, decided, either, literals_of
from dsmigrate.codemod.analysis.events import Happening
from dsmigrate.codemod.analysis.processes import groups, leaves
from dsmigrate.codemod.analysis.site import Site
from dsmigrate.codemod.analysis.training import Training
from dsmigrate.codemod.analysis.values import Const, Expr, Lib, Value, each
from dsmigrate.codemod.decision import Decision
from dsmigrate.codemod.idioms.facts import Facts
from dsmigrate.codemod.model import Idea, Kind
from dsmigrate.languages import told

IDEAS = (
    Idea(
        "MG213",
        "The engine takes the machine's accelerator",
        "deepspeed.initialize moves the model to a GPU where there is one; a script for the CPU alone keeps its batches there.",
        "The first forward would stop with tensors on two devices. DS_ACCELERATOR=cpu in the environment of the launcher "
        "keeps the engine on the CPU.",
        "deepspeed/accelerator/real_accelerator.py, get_accelerator; deepspeed/runtime/engine.py, _configure_distributed_model",
        Kind.KEPT,
    ),
    Idea(
        "MG216",
        "One process needs a launcher too",
        "A script that set up a process group and wrapped its model under a condition also trained when Python alone "
        "started it; that start stops now.",
        "The engine is there in every run. deepspeed.initialize sets up a process group where none is, and looks for MPI "
        "where no launcher has set RANK, LOCAL_RANK and the address: without mpi4py it raises ModuleNotFoundError. A launcher "
        "gives one process the local rank 0: what a script does only at -1 is then passed over.",
        "deepspeed/comm/comm.py, init_distributed",
        Kind.KEPT,
    ),
)


def alone(training: Training, facts: Facts) -> Iterator[Decision]:
    """Say that a run without a process group needs a launcher now."""
    made = groups(training)
    if not made:
        return
    for run in training.runs or (training,):
        site = run.site
        if not isinstance(site, Site):
            continue
        here = site.block.condition
        if implies(here, either(*(wrap.condition for wrap in run.wraps))):
            continue
        together = either(*(group.event.condition for group in made))
        if decided(together, {literal.atom: literal.holds for literal in literals_of(here)}) is True:
            continue
        yield _said(training)
        return
    nodes = {event.node for event in training.backwards}
    unwrapped = [
        event
        for event in training.events(Happening.BACKWARD)
        if event.node in nodes and event not in training.backwards
    ]
    if any(not any(implies(event.condition, group.event.condition) for group in made) for event in unwrapped):
        yield _said(training)
    del facts


def _said(training: Training) -> Decision:
    script = posixpath.basename(training.analysis.project.entry)
    missed = " Local rank is 0, not -1." if _asks_for_none(training) else ""
    event = training.wraps[0]
    return Decision(
        "MG216", Kind.KEPT, event.module, event.node, told("Start one process with `torchrun --nproc_per_node 1`; `python {script}` no longer works.{missed}", script=script, missed=missed),
        "deepspeed.initialize needs what a launcher sets", differs=True,
    )  # fmt: skip


def _asks_for_none(training: Training) -> bool:
    """Whether anything depends on a local rank of -1, which stands for no launcher."""
    return any(
        atom.op == "==" and Const(-1) in atom.args and any(_is_rank(leaf) for leaf in leaves(atom))
        for block in training.analysis.root.blocks()
        for atom in atoms_of(block.test)
    )


def _is_rank(leaf: Expr) -> bool:
    return leaf.op in {"local_rank", "rank"} or leaf.args[0] in {"LOCAL_RANK", "local_rank", "RANK"}


def on_cpu(training: Training, facts: Facts) -> Iterator[Decision]:
    """Say how a script that knows no device but the CPU stays there: its process groups are gloo's."""
    made = groups(training)
    if not made or any(group.event.what.get("backend") != Const("gloo") for group in made):
        return
    if any(True for _ in training.events(Happening.DEVICE)):
        return
    moves = [event for event in training.events(Happening.PLACED) if training.is_model(event["of"])]
    if any(not _is_cpu(one) for event in moves for one in each(event["device"])):
        return
    site = facts.site
    yield Decision(
        "MG213", Kind.KEPT, site.module, site.node, "On a machine with GPUs start it with DS_ACCELERATOR=cpu: your batches stay on the CPU.",
        "the engine would move the model to a GPU", differs=True, lines=(site.node.lineno, site.node.lineno),
    )  # fmt: skip


def _is_cpu(device: Value) -> bool:
    if isinstance(device, Expr) and device.op == "torch.device":
        return bool(device.args[0] == Const("cpu"))
    return device == Const("cpu") or (isinstance(device, Lib) and device.name.startswith("torch."))
