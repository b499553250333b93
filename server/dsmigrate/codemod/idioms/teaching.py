"""The line behind the engine that keeps checkpoints files, which several topics ask for."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping

from dsmigrate.codemod.analysis.directories import Directories
from dsmigrate.codemod.analysis.events import Event, Happening
from dsmigrate.codemod.analysis.training import Training
from dsmigrate.codemod.analysis.values import Expr, Tensor
from dsmigrate.codemod.decision import Decision
from dsmigrate.codemod.idioms.facts import Facts, constant
from dsmigrate.codemod.model import Idea, Kind, Options
from dsmigrate.codemod.program.edits import Insert

IDEAS = (
    Idea(
        "MG915",
        "Checkpoints as files, with states that are not gathered",
        "A script that saves or loads checkpoints is refused where its optimizer's states go to NVMe and checkpoints stay files, and "
        "with an offload ratio below 1.",
        "The ranks gather their states from memory for a file; what is on NVMe is only copied into a directory of DeepSpeed, since "
        "0.13.0. With a ratio below 1 a second optimizer has a part of the states, which no checkpoint holds.",
        "deepspeed/runtime/zero/stage3.py, backup_optimizer and _rigid_state_dict; deepspeed/runtime/engine.py, save_checkpoint",
        Kind.REFUSED,
    ),
)


def taught(training: Training, facts: Facts, loads: Iterable[Event] = ()) -> Iterator[Decision]:
    """The line that teaches the optimizer and the model, and the one that notes the groups; ``loads`` are those of the optimizer."""
    site = facts.site
    engine = site.target
    groups = ""
    directories = isinstance(facts.directories, Directories)
    lost = _not_gathered(facts.options, directories=directories)
    if lost:
        yield Decision("MG915", Kind.REFUSED, site.module, site.node, *lost)
    if _may_be_frozen(training):
        names = {name for scope in site.names for name in scope}
        groups = next(name for name in ("groups", "optimizer_groups", "parameter_groups") if name not in names)
        yield _noted(training, facts, groups, loads)
    given = f"{engine}, {groups}" if groups else engine
    name = "keep_directories" if directories else "keep_torch_checkpoints"
    line = f"ds_compat.{name}({given})"
    why = "the engine saves and loads its state" if directories else "checkpoints stay files with the whole state"
    yield Decision(
        "MG622", Kind.CONVERTED, site.module, site.node, line, why,
        edits=(Insert(site.module, site.node, ((line,),), after=True, rank=1),),
        parts=frozenset({name}), lines=(0, 0),
    )  # fmt: skip


def _not_gathered(options: Options, *, directories: bool) -> tuple[str, str] | None:
    """What is said where the optimizer's states cannot get into a checkpoint."""
    section = (options.config or {}).get("zero_optimization")
    given = section if isinstance(section, Mapping) and options.zero_stage == 3 else {}
    places = [place for name in ("optimizer", "param") if isinstance(place := given.get(f"offload_{name}"), Mapping)]
    if any(place.get("ratio", 1) != 1 for place in places):
        return "offload with a ratio of 1: the rest of the states gets into no checkpoint", "a second optimizer has it"
    if not directories and (options.offload == "nvme" or any(place.get("device") == "nvme" for place in places)):
        return (
            "states on NVMe are not gathered for a file: --checkpoints engine (DeepSpeed 0.13 or newer), or offload to the CPU",
            "they are only copied into DeepSpeed's directories",
        )
    return None


def _may_be_frozen(training: Training) -> bool:
    """Whether parameters of the model may be frozen: torch's format counts them, DeepSpeed drops them."""
    if any(isinstance(one, Expr) and one.op == "unknown" for one in training.models):
        return True
    for event in training.events(Happening.THAW, Happening.MADE):
        if event.kind is Happening.THAW:
            of = event["of"]
            if constant(event["value"]) is not True and (training.is_model(of) or training.holds_parameters(of)):
                return True
        elif constant(event["role"]) == "parameter" and constant(event["trained"]) is not True:
            what = event["what"]
            if isinstance(what, Tensor) and what.of is not None and training.is_model(what.of):
                return True
    return False


def _noted(training: Training, facts: Facts, groups: str, loads: Iterable[Event] = ()) -> Decision:
    """``groups = parameter_groups(optimizer)``: before the optimizer loads its state and DeepSpeed takes it."""
    site = facts.site
    line = f"{groups} = ds_compat.parameter_groups({site.optimizer})"
    node: ast.stmt = site.node
    after = site.wrap is None
    early = [event for event in loads if training.is_before(event)]
    own = site.module.step(node)
    for event in training.events(Happening.MADE):
        if (
            early
            and constant(event["role"]) == "optimizer"
            and training.is_optimizer(event["what"])
            and event.module is site.module
        ):
            made = site.module.step(event.node)
            if made.body is own.body:
                node, after = made.node, True
    return Decision(
        "MG622", Kind.CONVERTED, site.module, node, line, "frozen parameters count in torch's format",
        edits=(Insert(site.module, node, ((line,),), after=after, rank=-1),), parts=frozenset({"parameter_groups"}), lines=(0, 0),
    )  # fmt: skip
