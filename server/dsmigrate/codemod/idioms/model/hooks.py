"""DDP's communication hooks: those that round gradients become ``communication_data_type``."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from dsmigrate.codemod.analysis.code import condition_said, holds_by_default
from dsmigrate.codemod.analysis.conditions import FALSE, TRUE, Condition, Literal, both, literals_of, under
from dsmigrate.codemod.analysis.events import Event, Happening
from dsmigrate.codemod.analysis.training import Training
from dsmigrate.codemod.analysis.values import NONE, UNBOUND, Choice, Expr, Lib, Obj, Value, each
from dsmigrate.codemod.decision import Decision, Setting
from dsmigrate.codemod.idioms.facts import Facts, constant, is_statement
from dsmigrate.codemod.model import Idea, Kind
from dsmigrate.codemod.program.edits import Remove, ReplaceStatement, Template
from dsmigrate.codemod.targets import holds
from dsmigrate.languages import told

IDEAS = (
    Idea(
        "MG309",
        "A communication hook becomes communication_data_type",
        "fp16_compress_hook and bf16_compress_hook go, and the config says in which format gradients travel; allreduce_hook, DDP's "
        "default, just goes. A hook under a flag follows the flag.",
        "The hooks round gradients to 16 bit, divide them by the number of ranks, add them up and go back to the former format. With "
        "communication_data_type DeepSpeed does the same: with bf16 the losses are those of the hook at ZeRO 0 to 3, with fp16 at "
        "ZeRO 3, and at ZeRO 0 with prescale_gradients; ZeRO 1 and 2 divide before they round. ZeRO 1 to 3 skip a step in which a "
        "gradient overflows float16. With torch_autocast ZeRO 1 to 3 do not look at the key.",
        "deepspeed/runtime/engine.py, allreduce_bucket; runtime/zero/stage_1_and_2.py, average_tensor; tests/e2e, comm_hooks",
        Kind.CONVERTED,
    ),
    Idea(
        "MG310",
        "A branch for a communication hook that DeepSpeed has nothing for",
        "A branch that is off by default and registers such a hook (PowerSGD, quantisation, one of the script's own) raises an error.",
        "Left out, the option would be accepted and do nothing. A script that registers such a hook by default is refused with MG903.",
        "torch/distributed/algorithms/ddp_comm_hooks",
        Kind.TODO,
    ),
)
KEY = "communication_data_type"
_FORMATS = {"fp16_compress_hook": "fp16", "bf16_compress_hook": "bf16", "allreduce_hook": None,
            "FP16_COMPRESS": "fp16", "BF16_COMPRESS": "bf16", "ALLREDUCE": None}  # fmt: skip


@dataclass(frozen=True, slots=True)
class _Case:
    """A hook under a condition: ``name`` is what it is called, ``format`` None for DDP's default."""

    event: Event
    condition: Condition
    name: str
    format: str | None
    is_known: bool


def hooks(training: Training, facts: Facts) -> Iterator[Decision]:
    """The decisions about communication hooks of the trained model."""
    registered = [
        event
        for event in training.events(Happening.HOOK)
        if constant(event["name"]) == "register_comm_hook" and training.is_wrapper(event["of"])
    ]
    cases = [case for event in registered for case in _cases(training, event)]
    known = [case for case in cases if case.is_known]
    for node, event in {event.node: event for event in registered}.items():
        here = [case for case in cases if case.event.node is node]
        unknown = [case for case in here if not case.is_known]
        if unknown:
            yield _unknown(training, unknown[0], alone=len(unknown) == len(here))
        elif is_statement(event):
            statement = event.module.step(node).node
            group = any(one != NONE and not isinstance(one, Lib) for one in each(event["state"]))
            kind = Kind.TODO if group else Kind.CONVERTED
            message = (
                "the hook's process group goes: the engine averages over all ranks"
                if group
                else f"{here[0].name} → {KEY}"
            )
            yield Decision(
                "MG309",
                kind,
                event.module,
                node,
                message,
                "the config says how gradients travel",
                edits=(Remove(event.module, statement),),
            )
        else:
            yield Decision(
                "MG309",
                Kind.TODO,
                event.module,
                node,
                told("take this hook out and set {key} in the config", key=KEY),
                "the engine has no hooks",
            )
    if any(case.format for case in known):
        yield _setting(training, facts, known)


def _cases(training: Training, event: Event) -> Iterator[_Case]:
    wrap = next((one for one in training.wraps if event["of"] in set(each(one["wrapper"]))), training.wraps[0])
    assumed = {literal.atom: literal.holds for literal in literals_of(wrap.condition)}
    hook = event["hook"]
    options: list[tuple[Condition, Value]] = list(hook.options) if isinstance(hook, Choice) else [(TRUE, hook)]
    for condition, one in options:
        when = under(both(event.condition, condition), assumed)
        if one is UNBOUND or when is FALSE:
            continue
        name = (
            one.name.rpartition(".")[2]
            if isinstance(one, Lib)
            else str(one.data.get("name", "this hook"))
            if isinstance(one, Obj)
            else "this hook"
        )
        known = isinstance(one, Lib) and name in _FORMATS
        yield _Case(event, when, name, _FORMATS.get(name) if known else None, known)


def _unknown(training: Training, case: _Case, *, alone: bool) -> Decision:
    event = case.event
    test = "True" if alone else condition_said(case.condition, event.names)
    if holds_by_default(training.analysis, case.condition) is False and is_statement(event) and test is not None:
        line = f'raise NotImplementedError("{case.name}: DeepSpeed has no such communication hook")'
        statement = event.module.step(event.node).node
        code: tuple[Template, ...] = ((line,),) if alone else ((f"if {test}:",), (f"    {line}",))
        return Decision(
            "MG310", Kind.TODO, event.module, event.node, told("this option raises an error now: DeepSpeed has no {name}", name=case.name),
            "left out, it would be accepted and do nothing", edits=(ReplaceStatement(event.module, statement, code),),
        )  # fmt: skip
    return Decision(
        "MG903", Kind.REFUSED, event.module, event.node, told("{name} is a communication hook that DeepSpeed does not have", name=case.name), _nearest(case.name),
    )  # fmt: skip


def _nearest(name: str) -> str:
    """What DeepSpeed has nearest to a hook."""
    said = {"powerSGD": "communication_data_type rounds gradients", "localSGD": "gradient accumulation sends less often",
            "quantization": "zero_quantized_gradients, at ZeRO 3"}  # fmt: skip
    near = next((text for word, text in said.items() if word in name), "")
    return told("the nearest that it has: {near}", near=near) if near else "the engine has its own communication"


def _setting(training: Training, facts: Facts, known: list[_Case]) -> Decision:
    event = known[0].event
    parts: list[str] = []
    static: str | None = None
    before: dict[Expr, bool] = {}
    for case in known:
        left = under(case.condition, before)
        test = condition_said(left, facts.site.names)
        if isinstance(left, Literal):
            before[left.atom] = not left.holds
        if test is None:
            return Decision("MG309", Kind.TODO, event.module, event.node, told("set {key} in the config where {name} was registered", key=KEY, name=case.name),
                            "its condition is not known where the engine is made")  # fmt: skip
        shown = f'"{_format(facts, case)}"' if case.format else "None"
        parts.append(shown if test == "True" else f"{shown} if {test}")
        if case.format and holds_by_default(training.analysis, case.condition):
            static = _format(facts, case)
    code = " else ".join([*parts, *([] if any(" if " not in part for part in parts) else ["None"])])
    config = {KEY: Setting(None, static=static, code="" if " if " not in code else code)}
    if facts.options.zero_stage == 0 and any(case.format == "fp16" for case in known):
        config["prescale_gradients"] = Setting(None, static=True)
    return Decision("MG309", Kind.CONVERTED, event.module, event.node, f"{KEY}: {code}", "gradients travel as the hook rounded them",
                    config=config, lines=(0, 0))  # fmt: skip


def _format(facts: Facts, case: _Case) -> str | None:
    return "bfp16" if case.format == "bf16" and not holds("bf16_name", facts.options.target_version) else case.format
