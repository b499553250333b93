"""MG6xx (60x): the client optimizer, and what ZeRO does to it."""

from __future__ import annotations

import libcst as cst

from dsmigrate.codemod.dispatch import lineage
from dsmigrate.codemod.model import Idea, Kind
from dsmigrate.codemod.names import dotted
from dsmigrate.codemod.plan import Plan
from dsmigrate.codemod.roles import OptimizerSite
from dsmigrate.codemod.steps import chosen_parts, thawing
from dsmigrate.codemod.steps.contained_state import contained_state
from dsmigrate.codemod.steps.elementwise_words import ADAGRAD, ELEMENTWISE, LAYERWISE
from dsmigrate.codemod.steps.empty_groups import empty_groups
from dsmigrate.codemod.steps.group_order import group_order
from dsmigrate.codemod.steps.group_params import group_params
from dsmigrate.codemod.steps.optimizer_classes import Meant, meant_by, meant_by_use
from dsmigrate.codemod.steps.own_engine import makes_engine
from dsmigrate.codemod.steps.owned import outsiders
from dsmigrate.codemod.steps.pickled_optimizer import pickled_optimizer
from dsmigrate.codemod.steps.step_hooks import step_hooks
from dsmigrate.codemod.steps.whole_parameters import is_elementwise_of_torch, look_of, names_of_bases
from dsmigrate.codemod.tree import Node

# Classes that DeepSpeed's ZeRO takes without zero_allow_untested_optimizer (deepspeed/runtime/zero/utils.py).
TESTED = frozenset({
    "torch.optim.Adam", "torch.optim.AdamW", "torch.optim.adam.Adam", "torch.optim.adamw.AdamW", "torch.optim.Adagrad",
    "torch.optim.adagrad.Adagrad", "apex.optimizers.FusedAdam",
})  # fmt: skip
IDEAS = (
    Idea(
        "MG601",
        "The optimizer is one ZeRO was not tested with",
        "zero_allow_untested_optimizer is set, so that the script's own optimizer is accepted.",
        "ZeRO refuses every optimizer class outside a short list (SGD included). Update rules that treat each number by "
        "itself work on ZeRO's flat partitions as they are.",
        "deepspeed/runtime/zero/utils.py, ZERO_SUPPORTED_OPTIMIZERS",
        Kind.CONVERTED,
    ),
    Idea(
        "MG602",
        "The optimizer looks at whole layers",
        "LARS, LAMB, Muon and others use the norm or shape of each parameter, which ZeRO 1-3 cuts into flat pieces.",
        "Trained on pieces they would silently give other updates. torch's Adagrad, whose state is there from the start, is "
        "replaced by a new one at ZeRO 1-3: its schedule and the values of its groups are lost. The config is given ZeRO "
        "stage 0.",
        "deepspeed/runtime/zero/stage_1_and_2.py: one flat fp32 partition per parameter group; initialize_optimizer_states",
        Kind.KEPT,
    ),
    Idea(
        "MG603",
        "An optimizer from elsewhere",
        "The optimizer is made by a function of another module, or its class is chosen by name when the script runs; whether "
        "it treats every number by itself is not known.",
        "If it uses per-layer norms or shapes (LARS, LAMB, Adafactor, Muon), set ZeRO stage 0.",
        "deepspeed/runtime/zero/stage_1_and_2.py",
        Kind.KEPT,
    ),
    Idea(
        "MG604",
        "Optimizer offload with the script's optimizer",
        "zero_force_ds_cpu_optimizer is false, so that the script's own optimizer steps on the CPU.",
        "DeepSpeed otherwise insists on its DeepSpeedCPUAdam.",
        "deepspeed/runtime/engine.py, zero_force_ds_cpu_optimizer",
        Kind.CONVERTED,
    ),
    Idea(
        "MG605",
        "Parameter groups added later",
        "add_param_group after deepspeed.initialize is not seen by ZeRO 1-3.",
        "The engine has partitioned the groups by then.",
        "deepspeed/runtime/zero/stage_1_and_2.py",
        Kind.TODO,
    ),
    Idea(
        "MG607",
        "Parameters are frozen or thawed during training",
        "requires_grad switched after deepspeed.initialize is not noticed at ZeRO 1-3.",
        "Thawed parameters would never train, frozen ones would keep moving by momentum and weight decay.",
        "measured against DeepSpeed 0.19.8",
        Kind.KEPT,
    ),
    Idea(
        "MG608",
        "The optimizer owns parameters outside the model",
        "ZeRO 1-3 partition the parameters of the engine's module and fail on others.",
        "deepspeed.initialize raises a KeyError on rank 0 and the other ranks wait.",
        "measured against DeepSpeed 0.19.8",
        Kind.KEPT,
    ),
    Idea(
        "MG609",
        "An optimizer that wraps another",
        "DeepSpeed asserts that the client optimizer is a torch.optim.Optimizer or a callable.",
        "Wrappers such as apex's LARC are neither.",
        "deepspeed/runtime/engine.py, _configure_optimizer",
        Kind.TODO,
    ),
    Idea(
        "MG606",
        "The optimizer moves into the config",
        "--optimizer config: the type and parameters of the script's optimizer are written to the config.",
        "Adam in a config means AdamW unless adam_w_mode is false, and an absent weight_decay is 0.0; both are written out.",
        "deepspeed/runtime/config.py, ADAM_W_MODE_DEFAULT",
        Kind.CONVERTED,
    ),
)

_PIECES = "ZeRO 1-3 hand it flat pieces of the parameters"
_ANOTHER = "ZeRO 1-3 step another Adagrad, made of its defaults, which no schedule and no group of the script reaches"


def run(plan: Plan) -> None:
    """Decide what the config has to say about the optimizer."""
    sites = plan.roles.optimizers
    untested = False
    for site in sites:
        if site.call is not None and any(plan.roles.is_optimizer(arg.value) for arg in site.call.args):
            plan.todo("MG609", site.statement, f"{dotted(site.call.func) or 'this'} wraps another optimizer: DeepSpeed takes torch.optim.Optimizer objects only",
                      "apex's LARC, for one, is no subclass of it, and initialize raises an AssertionError")  # fmt: skip
        if site.call is not None and makes_engine(plan, site.call, site.statement.function):
            continue
        meant = meant_by(plan, site.call) if site.call is not None else meant_by_use(plan, site)
        untested |= any(not made.names & TESTED for made in meant)
        layerwise = [said for made in meant if (said := _replaced(plan, made) or _layerwise(plan, made)) is not None]
        for message, reason in layerwise:
            plan.needs_stage_zero("MG602", site.statement, message, reason)
        for made in meant if not layerwise else ():
            _unknown(plan, site, made)
    if untested or not sites:
        plan.config["zero_allow_untested_optimizer"] = True
        for site in sites[:1]:
            plan.converted("MG601", site.statement, "zero_allow_untested_optimizer: true",
                           "ZeRO's list of tested optimizers is short")  # fmt: skip
    group_order(plan)
    empty_groups(plan)
    _added_groups(plan)
    thawing.run(plan)
    chosen_parts.run(plan)
    _foreign_parameters(plan, sites)
    group_params(plan)
    contained_state(plan)
    step_hooks(plan)
    pickled_optimizer(plan)


def _replaced(plan: Plan, made: Meant) -> tuple[str, str] | None:
    """What is said, and why, of torch's Adagrad and classes derived from it, which ZeRO does not step itself."""
    if made.cls is not None:
        names = {name for cls in lineage(plan.flow, made.cls) for name in names_of_bases(plan, cls)}
        return (f"{made.cls.name} derives from torch.optim.Adagrad", _ANOTHER) if names & ADAGRAD else None
    return ("torch.optim.Adagrad makes its state at once", _ANOTHER) if made.names & ADAGRAD else None


def _layerwise(plan: Plan, made: Meant) -> tuple[str, str] | None:
    """What is said, and why, of a class that looks at whole parameters, or may do so; None for all others."""
    if made.cls is not None:
        look = None if LAYERWISE.search(made.cls.name) else look_of(plan, made.cls)
        if look is not None and not look.is_sure:
            return f"{made.cls.name} may work layer by layer: what {_shown(plan, look.node)} does is not known", _PIECES
        return (f"{made.cls.name} works layer by layer", _PIECES) if look or LAYERWISE.search(made.cls.name) else None
    last = {name.rpartition(".")[2] for name in made.names}
    if any(LAYERWISE.search(name) for name in last) and not is_elementwise_of_torch(made.names, last):
        return f"{min(last)} works layer by layer", _PIECES
    return None


def _shown(plan: Plan, node: Node) -> str:
    func = node.func if isinstance(node, cst.Call) else node
    return dotted(func) or (f".{func.attr.value}" if isinstance(func, cst.Attribute) else plan.code(func))


def _unknown(plan: Plan, site: OptimizerSite, made: Meant) -> None:
    """Say that an optimizer may look at whole parameters, where its class is not seen."""
    last = {name.rpartition(".")[2] for name in made.names}
    if made.cls is not None or last & ELEMENTWISE:
        return
    shown = made.text if site.call is not None else plan.code(site.node)
    message = f"{shown or 'the optimizer'} comes from elsewhere: use ZeRO stage 0 if it works layer by layer (LARS, LAMB, Muon)"
    if made.is_any_of_torch:
        message = (
            f"{shown} may be Adafactor or Muon, which work layer by layer, or Adagrad, which ZeRO makes anew: "
            "use ZeRO stage 0 with those"
        )
    plan.note("MG603", Kind.KEPT, site.statement, message, "ZeRO 1-3 hand the optimizer flat pieces of the parameters")


def _foreign_parameters(plan: Plan, sites: list[OptimizerSite]) -> None:
    """An optimizer that also owns parameters of something else than the model (a loss with weights)."""
    for site in sites:
        for outsider in outsiders(plan, site):
            plan.needs_stage_zero("MG608", site.statement, f"the optimizer owns parameters of {outsider} too",
                                  "ZeRO 1-3 know the parameters of the engine's module only")  # fmt: skip


def _added_groups(plan: Plan) -> None:
    for call in plan.tree.calls:
        func = call.func
        if not isinstance(func, cst.Attribute) or func.attr.value != "add_param_group":
            continue
        if plan.roles.is_optimizer(func.value) and not plan.is_before_engine(call):
            plan.todo("MG605", call, "add_param_group has to run before deepspeed.initialize",
                      "the engine partitions the groups once")  # fmt: skip
