"""The process group: DeepSpeed sets it up where a launcher says who the processes are; elsewhere the script's own stays."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from dsmigrate.codemod.analysis.analysis import library_name
from dsmigrate.codemod.analysis.events import Event, Happening
from dsmigrate.codemod.analysis.processes import Group, Teller, groups
from dsmigrate.codemod.analysis.training import Training
from dsmigrate.codemod.analysis.values import NONE, Const, Expr, Value
from dsmigrate.codemod.decision import Decision
from dsmigrate.codemod.idioms.facts import Facts
from dsmigrate.codemod.model import Idea, Kind
from dsmigrate.codemod.program.edits import Import, Replace

IDEAS = (
    Idea(
        "MG201",
        "init_process_group becomes deepspeed.init_distributed",
        "DeepSpeed sets up the process group, with the script's backend and time-out.",
        "Where the script passes ranks or an address, or a backend with another default time-out, its own call stays: "
        "DeepSpeed uses the group that is there.",
        "deepspeed/comm/comm.py, init_distributed",
        Kind.CONVERTED,
    ),
    Idea(
        "MG205",
        "The process group is made by deepspeed.initialize",
        "A script whose process group is set up by code that is not read still runs under a launcher: initialize makes the group.",
        "Under a launcher deepspeed.initialize calls init_distributed itself if nothing did before.",
        "deepspeed/__init__.py, initialize",
        Kind.KEPT,
    ),
)
_NAMES = {"backend": "dist_backend", "timeout": "timeout"}
_IMPLIED: dict[str, tuple[Value, ...]] = {
    "init_method": (Const("env://"), NONE),
    "timeout": (NONE,),
    "store": (NONE,),
    "pg_options": (NONE,),
}
_NUMBERS = {"rank": "RANK", "world_size": "WORLD_SIZE"}


def group(training: Training, facts: Facts) -> Iterator[Decision]:
    """A decision for each place that sets up the process group."""
    found = groups(training)
    nodes = {event.node: event for event in training.events(Happening.GROUP) if _is_torchs(event)}
    obstacles = {
        node: _obstacle(node, [one for one in found if one.event.node is node] or [Group(event, None, ())])
        for node, event in nodes.items()
    }
    for node, event in nodes.items():
        obstacle = obstacles[node] or next(filter(None, obstacles.values()), "")
        if obstacle or not isinstance(node, ast.Call):
            yield Decision(
                "MG201", Kind.KEPT, event.module, node, "your init_process_group stays: DeepSpeed uses the group that it makes", obstacle,
            )  # fmt: skip
            continue
        parts: list[str | ast.expr] = ["deepspeed.init_distributed("]
        given = [("backend", value) for value in node.args[:1]] + [
            (keyword.arg, keyword.value) for keyword in node.keywords
        ]
        for index, (argument, value) in enumerate(
            pair for pair in given if pair[0] in _NAMES and not _is_none(pair[1])
        ):
            parts += [", " if index else "", f"{_NAMES[str(argument)]}=", value]
        yield Decision(
            "MG201", Kind.CONVERTED, event.module, node, "init_process_group → deepspeed.init_distributed",
            "DeepSpeed sets up the process group",
            edits=(Replace(event.module, node, (*parts, ")")),), imports=(Import(event.module, "deepspeed"),), suits_all=True,
        )  # fmt: skip
    if not any(True for _ in training.events(Happening.GROUP)):
        site = facts.site
        yield Decision(
            "MG205", Kind.KEPT, site.module, site.node, "no process group is set up here; deepspeed.initialize does it where nothing did",
            "under a launcher it calls init_distributed itself", lines=(site.node.lineno, site.node.lineno),
        )  # fmt: skip


def _is_torchs(event: Event) -> bool:
    return isinstance(event.node, ast.Call) and (library_name(event.node.func, event.names) or "").endswith(
        "init_process_group"
    )


def _obstacle(node: ast.AST, found: list[Group]) -> str:
    """Why DeepSpeed's call would not set up the same group; "" where it does."""
    assert isinstance(node, ast.Call)
    if (
        len(node.args) > 1
        or any(isinstance(arg, ast.Starred) for arg in node.args)
        or any(keyword.arg is None for keyword in node.keywords)
    ):
        return "its arguments are not given by name"
    for one in found:
        if one.tellers - {Teller.LAUNCHER}:
            return "its ranks are not a launcher's"
        for name, value in one.event.what.items():
            if name in _NUMBERS and not (
                isinstance(value, Expr) and value.op == "env" and value.args[0] == _NUMBERS[name]
            ):
                return "it passes ranks"
            if name in _IMPLIED and value not in _IMPLIED[name] and name not in _NAMES:
                return "it passes an address"
        if one.event.what.get("timeout", NONE) == NONE and not _is_nccl(one.event.what.get("backend", NONE)):
            return "the default time-out of this backend is not DeepSpeed's"
    given = {keyword.arg for keyword in node.keywords}
    return "" if given <= {*_NAMES, *_IMPLIED, *_NUMBERS} else "it passes more than DeepSpeed's call takes"


def _is_nccl(backend: Value) -> bool:
    return isinstance(backend, Const) and isinstance(backend.value, str) and backend.value.lower() == "nccl"


def _is_none(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is None
