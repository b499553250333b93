"""``--local_rank``: torchrun sets LOCAL_RANK, the deepspeed launcher and torch.distributed.launch give an option."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from dsmigrate.codemod.analysis.processes import leaves, spawn_around
from dsmigrate.codemod.analysis.training import Training
from dsmigrate.codemod.analysis.values import Value
from dsmigrate.codemod.decision import Decision
from dsmigrate.codemod.idioms.facts import Facts
from dsmigrate.codemod.model import Idea, Kind
from dsmigrate.codemod.program.edits import AddArgument, Edit, Import, RemoveArgument, Replace
from dsmigrate.codemod.program.module import Module

IDEAS = (
    Idea(
        "MG204",
        "--local_rank works under both launchers",
        "The option's default comes from LOCAL_RANK, and both spellings are accepted.",
        "The deepspeed launcher passes --local_rank=N, torch.distributed.launch --local-rank=N; torchrun sets LOCAL_RANK and "
        "passes nothing.",
        "https://github.com/deepspeedai/DeepSpeed/issues/131",
        Kind.CONVERTED,
    ),
)
SPELLINGS = ("--local_rank", "--local-rank")


def local_rank(training: Training, facts: Facts) -> Iterator[Decision]:  # noqa: ARG001 - an idiom's signature
    """A decision for each definition of the option."""
    if spawn_around(training.analysis, training.wraps[0].block) is not None and not training.runs:
        return
    for option in (option for parser in training.analysis.parsers for option in parser.data["options"].values()):
        node, module = option["node"], option["module"]
        if (
            not set(SPELLINGS) & set(option["flags"])
            or not isinstance(node, ast.Call)
            or not isinstance(module, Module)
        ):
            continue
        if _asks_environment(option.get("default")):
            continue
        yield Decision(
            "MG204", Kind.CONVERTED, module, node, "--local_rank takes its default from LOCAL_RANK, in either spelling",
            "torchrun sets the variable and passes no option", edits=tuple(_edits(module, node, option["flags"])), imports=(Import(module, "os"),), suits_all=True,
        )  # fmt: skip


def _asks_environment(default: Value | None) -> bool:
    return default is not None and any(leaf.op == "env" and leaf.args[0] == "LOCAL_RANK" for leaf in leaves(default))


def _edits(module: Module, node: ast.Call, flags: list[str]) -> Iterator[Edit]:
    """The other spelling, the type that a number from the command line needs, and the default."""
    keywords = {keyword.arg: keyword.value for keyword in node.keywords}
    other = [spelling for spelling in SPELLINGS if spelling not in flags]
    written = next((arg for arg in node.args if isinstance(arg, ast.Constant) and arg.value in SPELLINGS), None)
    if other and written is not None:
        ordered = sorted((str(written.value), *other), key=SPELLINGS.index)
        yield Replace(module, written, (", ".join(f'"{one}"' for one in ordered),))
    required = keywords.get("required")
    if required is not None:
        yield RemoveArgument(module, required)
    if "type" not in keywords:
        yield AddArgument(module, node, "type", ("int",))
    default = keywords.get("default")
    if default is None or (isinstance(default, ast.Constant) and default.value is None):
        code: tuple[str | ast.expr, ...] = ('int(os.environ.get("LOCAL_RANK", 0))',)
    else:
        code = ('int(os.environ.get("LOCAL_RANK", ', default, "))")
    yield AddArgument(module, node, "default", code) if default is None else Replace(module, default, code)
