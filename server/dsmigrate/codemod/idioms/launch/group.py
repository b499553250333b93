"""The process group: DeepSpeed sets it up where the launcher says who the processes are; elsewhere the script's own stays."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from dsmigrate.codemod.analysis.events import BlockKind, Event, Happening
from dsmigrate.codemod.analysis.training import Training
from dsmigrate.codemod.decision import Decision
from dsmigrate.codemod.idioms.facts import Facts, constant, library_name
from dsmigrate.codemod.model import Idea, Kind
from dsmigrate.codemod.program.edits import Import, Replace

IDEAS = (
    Idea(
        "MG201",
        "init_process_group becomes deepspeed.init_distributed",
        "DeepSpeed sets up the process group, with the script's backend and time-out.",
        "Where the script hands ranks or an address over by itself, its own call stays: DeepSpeed takes the group that is there.",
        "deepspeed/comm/comm.py, init_distributed",
        Kind.CONVERTED,
    ),
)
_KEPT = {"backend": "dist_backend", "timeout": "timeout"}


def group(training: Training, facts: Facts) -> Iterator[Decision]:  # noqa: ARG001 - an idiom's signature
    """A decision for each place that sets up the process group."""
    seen: set[ast.AST] = set()
    for event in training.events(Happening.GROUP):
        node = event.node
        if node in seen or not isinstance(node, ast.Call):
            continue
        seen.add(node)
        name = library_name(node.func, event.names)
        if name is None or not name.endswith("init_process_group"):
            continue
        if not _is_plain(node, event):
            yield Decision(
                "MG201", Kind.KEPT, event.module, node, "your init_process_group stays: DeepSpeed uses the group that it makes",
                "it hands over ranks or an address",
            )  # fmt: skip
            continue
        parts: list[str | ast.expr] = ["deepspeed.init_distributed("]
        given = [("backend", value) for value in node.args[:1]] + [(keyword.arg, keyword.value) for keyword in node.keywords]
        for index, (argument, value) in enumerate(pair for pair in given if pair[0] in _KEPT):
            parts += [", " if index else "", f"{_KEPT[str(argument)]}=", value]
        yield Decision(
            "MG201", Kind.CONVERTED, event.module, node, "init_process_group → deepspeed.init_distributed",
            "DeepSpeed sets up the process group",
            edits=(Replace(event.module, node, (*parts, ")")),), imports=(Import(event.module, "deepspeed"),),
        )  # fmt: skip


def _is_plain(node: ast.Call, event: Event) -> bool:
    """Whether ranks and address come from the environment, as a launcher sets it."""
    if any(block.kind is BlockKind.SPAWNED for block in event.block.around()) or len(node.args) > 1:
        return False
    for keyword in node.keywords:
        if keyword.arg == "init_method" and constant(event.what.get("init_method", event["backend"] if "backend" in event.what else None)) == "env://":  # type: ignore[arg-type]
            continue
        if keyword.arg not in _KEPT:
            return False
    return True
