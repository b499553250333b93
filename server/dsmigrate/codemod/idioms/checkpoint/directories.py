"""Checkpoints as the engine's directories, where the person asks for them: the same lines with other calls."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from dsmigrate.codemod.analysis.directories import TOUCHES, Directories, Kept, changed_in, name_of
from dsmigrate.codemod.analysis.events import Event
from dsmigrate.codemod.analysis.meeting import Meeting
from dsmigrate.codemod.analysis.training import Training
from dsmigrate.codemod.decision import Decision
from dsmigrate.codemod.idioms.facts import Facts
from dsmigrate.codemod.model import Idea, Kind
from dsmigrate.codemod.program.edits import Import, Insert, Replace, Template
from dsmigrate.codemod.program.module import Module
from dsmigrate.languages import told

IDEAS = (
    Idea(
        "MG636",
        "A checkpoint becomes a directory of DeepSpeed",
        "With --checkpoints engine, what is saved together with the optimizer's state is saved by engine.save_checkpoint: each "
        "rank writes its part. load_checkpoint gives the script's dictionary back, and still reads files.",
        "Nothing is gathered, and each rank writes only its share. Weights that are saved alone stay files. A directory of ZeRO 1 "
        "to 3 is resumed by as many processes as saved it; ds_to_universal.py converts it for another number.",
        "deepspeed/runtime/engine.py, save_checkpoint and load_checkpoint",
        Kind.CONVERTED,
    ),
    Idea(
        "MG637",
        "Other code uses a path that becomes a directory",
        "With --checkpoints engine, code outside the training reads, copies or removes a checkpoint as a file.",
        "torch.load, os.path.isfile, copies and uploads of one file do not work with a directory: use ds_compat.load_checkpoint, or "
        "zero_to_fp32.py, which DeepSpeed puts into the directory.",
        "deepspeed/utils/zero_to_fp32.py",
        Kind.KEPT,
    ),
    Idea(
        "MG638",
        "Checkpoints stay files although directories were asked for",
        "With --checkpoints engine, there is a checkpoint that cannot become a directory.",
        "All ranks have to save a directory together, from a dictionary with the weights and the optimizer's state, and all have "
        "to load it.",
        "deepspeed/runtime/engine.py, save_checkpoint",
        Kind.KEPT,
    ),
)


def directories(training: Training, facts: Facts) -> Iterator[Decision]:
    """The decisions about checkpoints that become directories, or why they do not."""
    found = facts.directories
    if isinstance(found, Kept):
        yield Decision(
            "MG638", Kind.KEPT, found.event.module, found.event.node, told("checkpoints stay files: {why}", why=found.why),
            "directories were asked for", differs=True,
        )  # fmt: skip
    if not isinstance(found, Directories):
        return
    for event in {event.node: event for event in found.saves}.values():
        yield _called(event.module, event.node, "save_checkpoint", "engine.save_checkpoint writes a directory")
    first = min(found.saves, key=lambda event: event.number)
    yield Decision(
        "MG636", Kind.KEPT, first.module, first.node, "checkpoints are directories now; at ZeRO 1-3 only the same number of processes resumes one",
        "each rank writes its part", differs=True,
    )  # fmt: skip
    for event in {event.node: event for event in found.reads}.values():
        yield _called(event.module, event.node, "load_checkpoint", "of a file it gives what torch.load gives")
    places: dict[ast.AST, list[tuple[Event, Meeting]]] = {}
    for event, place in found.saves.items():
        places.setdefault(place.node, []).append((event, place))
    for pairs in places.values():
        yield _written(training, pairs)
        for event in {event.node: event for event, place in pairs if place.by_data}.values():
            yield Decision(
                "MG636", Kind.KEPT, event.module, event.node, "ranks save here by a value of their own: all_reduce it, or the first of them wins",
                "one rank's entries are saved", differs=True,
            )  # fmt: skip
    touched = {event.node: (event.module, name_of(event)) for event in found.touches}
    for node, (module, name) in (touched | {node: (module, name) for module, node, name in found.unseen}).items():
        what = TOUCHES[name]
        yield (
            _exists(module, node)
            if what == "exists"
            else _called(module, node, f"{what}_checkpoint", "of a file it does the same")
        )
    for event in {event.node: event for event in found.given}.values():
        assert isinstance(event.node, ast.Call)
        yield Decision(
            "MG637", Kind.KEPT, event.module, event.node, told("{unparse} is given the path of a checkpoint, which is a directory", unparse=ast.unparse(event.node.func)),
            "it may need a file", differs=True,
        )  # fmt: skip


def _called(module: Module, node: ast.AST, name: str, why: str) -> Decision:
    assert isinstance(node, ast.Call)
    return Decision(
        "MG636", Kind.CONVERTED, module, node, f"{ast.unparse(node.func)} → ds_compat.{name}", why,
        edits=(Replace(module, node.func, (f"ds_compat.{name}",)),), parts=frozenset({name}), suits_all=True,
    )  # fmt: skip


def _written(training: Training, pairs: list[tuple[Event, Meeting]]) -> Decision:
    """The line behind the saves on which all ranks write; under the test for them where that still holds there."""
    place = pairs[0][1]
    line = f"ds_compat.write_checkpoint({place.engine})"
    tests = {found.test for _, found in pairs}
    test = next(iter(tests)) if len(tests) == 1 else ""
    code: tuple[Template, ...] = ((line,),)
    if test and not changed_in(training, place, test):
        code = ((f"if {test}:",), (f"    {line}",))
    return Decision(
        "MG636", Kind.CONVERTED, place.module, place.node, told("{line} after the save", line=line), "all ranks write their part",
        edits=(Insert(place.module, place.node, code, after=True),), parts=frozenset({"write_checkpoint"}), lines=(0, 0), suits_all=True,
    )  # fmt: skip


def _exists(module: Module, node: ast.AST) -> Decision:
    """A test for a file that is one for a directory too."""
    assert isinstance(node, ast.Call)
    func = node.func
    code: Template = (func.value, ".exists") if isinstance(func, ast.Attribute) else ("os.path.exists",)
    return Decision(
        "MG636", Kind.CONVERTED, module, node, f"{ast.unparse(func)} → exists", "a directory is no file",
        edits=(Replace(module, func, code),), imports=() if isinstance(func, ast.Attribute) else (Import(module, "os"),), suits_all=True,
    )  # fmt: skip
