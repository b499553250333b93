"""Optimizers that look at whole parameters, which ZeRO 1-3 cut into flat pieces; those of which this is not known."""

from __future__ import annotations

from collections.abc import Iterator

from dsmigrate.codemod.analysis.analysis import static_value
from dsmigrate.codemod.analysis.classes import bases_of
from dsmigrate.codemod.analysis.conditions import Condition, either
from dsmigrate.codemod.analysis.elementwise import rule_of
from dsmigrate.codemod.analysis.events import Event, Happening
from dsmigrate.codemod.analysis.optimizer_words import ELEMENTWISE
from dsmigrate.codemod.analysis.summaries.registry import CHOSEN
from dsmigrate.codemod.analysis.training import Training
from dsmigrate.codemod.analysis.values import NONE, Const, Obj, each
from dsmigrate.codemod.decision import Decision
from dsmigrate.codemod.idioms.facts import Facts, by_place
from dsmigrate.codemod.model import Idea, Kind
from dsmigrate.codemod.program.edits import Insert
from dsmigrate.languages import told

IDEAS = (
    Idea(
        "MG602",
        "The optimizer looks at whole layers",
        "LARS, LAMB, Muon and others use the norm or shape of each parameter, which ZeRO 1-3 cut into flat pieces.",
        "Trained on pieces they would silently give other updates, so that the config is given ZeRO stage 0. torch's Adagrad makes its state "
        "at once, for which ZeRO 1-3 step another one made of its defaults: use_own_adagrad puts the script's own back.",
        "deepspeed/runtime/zero/stage_1_and_2.py: one flat fp32 partition per parameter group; initialize_optimizer_states",
        Kind.KEPT,
    ),
    Idea(
        "MG603",
        "The optimizer's class is chosen by name",
        "Which optimizer is made is chosen when the script runs. By default it treats every number by itself.",
        "If you choose one that uses norms or shapes of layers (LARS, LAMB, Adafactor, Muon), set ZeRO stage 0.",
        "deepspeed/runtime/zero/stage_1_and_2.py",
        Kind.KEPT,
    ),
)
_ADAGRAD = frozenset({"torch.optim.Adagrad", "torch.optim.adagrad.Adagrad"})
_WHY = "ZeRO 1-3 hand it flat pieces of the parameters"


def layers(training: Training, facts: Facts) -> Iterator[Decision]:
    """A decision for each place that makes an optimizer of the training."""
    made = [
        event
        for event in training.events(Happening.MADE)
        if event["role"] == Const("optimizer") and training.is_optimizer(event["what"])
    ]
    adagrad: Event | None = None
    for events in by_place(made).values():
        things = [one for event in events for one in each(event["what"]) if isinstance(one, Obj)]
        if any(_ADAGRAD & set(bases_of(one)) for one in things):
            adagrad = events[0]
        told = {one: said for one in things if (said := _said(training, one)) is not None}
        reasons = list(dict.fromkeys(told.values()))
        sure = [one for one in reasons if one[0] == "MG602"] or reasons
        for code, message in sure[:1]:
            whole = [
                event
                for event in events
                if any(one in told and told[one][0] == code for one in each(event["what"]) if isinstance(one, Obj))
            ]
            yield _decision(events[0], code, message, either(*(event.condition for event in whole)))
    if adagrad is not None:
        site = facts.site
        line = f"ds_compat.use_own_adagrad({site.target})"
        yield Decision(
            "MG602", Kind.CONVERTED, site.module, site.node, line, "ZeRO 1-3 would step an Adagrad made of its defaults",
            edits=(Insert(site.module, site.node, ((line,),), after=True, rank=1),), parts=frozenset({"use_own_adagrad"}), lines=(0, 0),
        )  # fmt: skip


def _said(training: Training, one: Obj) -> tuple[str, str] | None:
    rule = rule_of(one)
    if rule.whole:
        return "MG602", told("{name} works layer by layer", name=rule.name)
    if rule.whole is None:
        if rule.what:
            return "MG602", told(
                "{name} may work layer by layer: what {what} does is not known", name=rule.name, what=rule.what[:40]
            )
        if rule.name == CHOSEN and _is_likely(training, one):
            return "MG603", told(
                "its class is chosen by name: LARS, LAMB and others that work layer by layer need ZeRO 0"
            )
        known = rule.name if rule.name not in {CHOSEN, "Optimizer"} else ""
        return "MG602", told("{name} may work layer by layer: its code is not read", name=known or "this optimizer")
    return None


def _is_likely(training: Training, one: Obj) -> bool:
    """Whether an optimizer that is chosen by name treats every number by itself where nothing else is asked for."""
    if one.made_by.startswith("torch.optim."):  # few of torch's do anything else
        return True
    name = static_value(training.analysis, one.get("chosen", NONE))
    return isinstance(name, str) and name.lower() in {"momentum", *map(str.lower, ELEMENTWISE)}


def _decision(event: Event, code: str, message: str, when: Condition) -> Decision:
    if code == "MG603":
        return Decision(code, Kind.KEPT, event.module, event.node, message, _WHY, differs=True)
    return Decision(
        code, Kind.KEPT, event.module, event.node, told("{message}: ZeRO 0", message=message), _WHY, stage=0, when=when,
        otherwise=Decision(code, Kind.TODO, event.module, event.node, told("{message}; that needs ZeRO 0", message=message), _WHY),
    )  # fmt: skip
