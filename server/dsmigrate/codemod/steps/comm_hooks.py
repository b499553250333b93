"""MG309, MG310: DDP's communication hooks that round gradients become ``communication_data_type``."""

from __future__ import annotations

from dataclasses import dataclass

import libcst as cst

from dsmigrate.codemod.bindings import bound_values
from dsmigrate.codemod.deciding import Condition, text_of, truth
from dsmigrate.codemod.hooks import Hook, Registration, chosen, conditions, registrations
from dsmigrate.codemod.model import Idea, Kind
from dsmigrate.codemod.plan import Plan
from dsmigrate.codemod.steps.redundancy import is_whole_world
from dsmigrate.codemod.targets import holds
from dsmigrate.codemod.values import by_default, settled

IDEAS = (
    Idea(
        "MG309",
        "A communication hook becomes communication_data_type",
        "fp16_compress_hook and bf16_compress_hook go, and the config says in which format gradients travel; "
        "allreduce_hook, DDP's default, just goes. A hook under a flag follows the flag.",
        "The hooks round gradients to 16 bit, divide them by the number of ranks, add them up and go back to the former "
        "format. With communication_data_type DeepSpeed does the same. Measured beside DDP on two processes: with bf16 the "
        "losses are those of the hook at ZeRO 0 to 3. With fp16 they are at ZeRO 3, and at ZeRO 0 with prescale_gradients, "
        "which the config gets there (ZeRO 2 and 3 refuse that key); ZeRO 1 and 2 divide before they round, so that losses "
        "are 1e-7 off after 12 steps, and more where gradients are so small that float16 has few bits for them. What "
        "differs in the last bit, for this or another reason (clipping), is passed on by the rounding of later steps: with a "
        "high learning rate losses were up to 1e-4 apart after 32 clipped steps at every stage, and 6e-4 after 20 unclipped "
        "ones at ZeRO 1 and 2, where ZeRO 0 and 3 stayed equal. Where a gradient overflows float16, DDP trains on infinities; "
        "so does ZeRO 0, and ZeRO 1 to 3 skip the step. Gradients that are accumulated without no_sync are rounded by the "
        "hook at every backward, by the engine when they are sent. With torch_autocast "
        "ZeRO 1 to 3 do not look at the key: gradients travel as their parameters are, in float32, which is more exact and "
        "twice the traffic. A function of the script that is torch's own hook of any release, line by line, counts as that "
        "hook.",
        "deepspeed/runtime/engine.py, allreduce_bucket; runtime/zero/stage_1_and_2.py, average_tensor; "
        "runtime/base_optimizer.py, get_param_comm_dtype; tests/e2e, comm_hooks",
        Kind.CONVERTED,
    ),
    Idea(
        "MG310",
        "A branch for a communication hook that DeepSpeed has nothing for",
        "A branch that is off by default and registers such a hook (PowerSGD, quantisation, one of the script's own) raises "
        "an error.",
        "Left out, the option would be accepted and do nothing. A script that registers such a hook by default is refused "
        "with MG903.",
        "torch/distributed/algorithms/ddp_comm_hooks",
        Kind.TODO,
    ),
)
KEY = "communication_data_type"
_PARAMETERS = 3
"""The ZeRO stage that partitions the parameters."""


@dataclass(frozen=True, slots=True)
class _Case:
    """A format, and the conditions under which gradients travel in it."""

    found: Registration
    hook: Hook
    conditions: tuple[Condition, ...]


def run(plan: Plan) -> None:
    """Put the formats of hooks into the config; raises ``RefusedError`` for a hook that is something else."""
    cases: list[_Case] = []
    for found in registrations(plan):
        if not _concerns_us(plan, found):
            continue
        if not isinstance(found.statement.node, cst.Expr) or found.statement.node.value is not found.call:
            raise _refused(
                plan, found, "a DDP communication hook is registered inside of an expression", "it cannot be taken out"
            )
        cases.extend(_of_registration(plan, found))
    if cases:
        _configure(plan, cases)


def _refused(plan: Plan, found: Registration, message: str, reason: str) -> Exception:
    return plan.refuse("MG903", found.statement, message, reason)


def _concerns_us(plan: Plan, found: Registration) -> bool:
    """Whether the hook is one of the trained model; that of a model that stays wrapped stays too."""
    tags = plan.tags(found.model) if found.model is not None else set()
    models = {tag[1:] for tag in tags if tag[0] in "ER"}
    if not models and _is_uncalled(plan, found):
        plan.todo("MG309", found.statement, f"nothing seen calls this; the engine has no such method, the config has {KEY}",
                  "whether the trained model comes here is not known")  # fmt: skip
        return False
    if not models:
        raise _refused(plan, found, "a DDP communication hook is registered, for a model that cannot be told",
                       "it may be the trained one")  # fmt: skip
    return bool(models & plan.group)


def _is_uncalled(plan: Plan, found: Registration) -> bool:
    """Whether the model is a parameter of a function that no call in sight runs."""
    function = found.statement.function
    is_given = isinstance(found.model, cst.Name) and found.model.value in function.params
    return is_given and not plan.flow.callers.get(function)


def _of_registration(plan: Plan, found: Registration) -> list[_Case]:
    """What a registration asks for; the call is taken out, or refused."""
    around = conditions(plan, found.statement)
    around = None if around is None else _open(plan, around)
    hooks = [hook for hook in (_decided(plan, hook) for hook in chosen(plan, found)) if hook is not None]
    for hook in hooks:
        if not hook.obstacle:
            continue
        if len(hooks) == 1 and around and any(truth(plan, c, by_default) is False for c in around):
            _raise_instead(plan, found, hook)
            return []
        where = f" where {plan.code(hook.conditions[-1].node)} says so" if hook.conditions else ""
        raise _refused(plan, found, f"{hook.name}, a DDP communication hook, is registered{where}", hook.obstacle)
    _check_group(plan, found)
    if any(truth(plan, c, settled) is False for c in around or ()):
        plan.edits.remove(found.statement.node)
        plan.converted("MG309", found.statement, "this hook was never registered: what decides about it is always the other way",
                       "the condition is a constant")  # fmt: skip
        return []
    if around is None and any(hook.format for hook in hooks):
        _left_to_the_person(plan, found, hooks)
        return []
    return [_Case(found, hook, (*(around or ()), *hook.conditions)) for hook in hooks]


def _open(plan: Plan, conditions: tuple[Condition, ...]) -> tuple[Condition, ...]:
    """The conditions that do not hold anyway."""
    return tuple(c for c in conditions if truth(plan, c, settled) is not True)


def _decided(plan: Plan, hook: Hook) -> Hook | None:
    """A hook with the conditions that only a run decides; None where it is never chosen."""
    if any(truth(plan, c, settled) is False for c in hook.conditions):
        return None
    spelt = "bfp16" if hook.format == "bf16" and not holds("bf16_name", plan.options.target_version) else hook.format
    return Hook(hook.name, spelt, hook.obstacle, _open(plan, hook.conditions))


def _check_group(plan: Plan, found: Registration) -> None:
    """The state of DDP's own hooks is the process group over which they average."""
    state = found.state
    if state is None or is_whole_world(state):
        return
    bound = bound_values(plan, state, found.statement.function)
    if not bound or not all(is_whole_world(value) for value, _ in bound):
        raise _refused(plan, found, f"a DDP communication hook averages over {plan.code(state)}",
                       "the engine averages over all ranks")  # fmt: skip


def _raise_instead(plan: Plan, found: Registration, hook: Hook) -> None:
    """The branch of an option that has no counterpart says so when somebody takes it."""
    message = f"DeepSpeed has nothing like DDP's {hook.name}"
    plan.edits.substitute(found.statement.node, f"raise NotImplementedError({message!r})")
    plan.todo("MG310", found.statement, f"{hook.name}: {hook.obstacle}", "this branch raises an error now")


def _left_to_the_person(plan: Plan, found: Registration, hooks: list[Hook]) -> None:
    formats = " or ".join(sorted({f'"{hook.format}"' for hook in hooks if hook.format}))
    plan.edits.remove(found.statement.node)
    plan.todo("MG309", found.statement, f"where this hook was registered, put {KEY} {formats} into the config",
              "what decides about it is not known where the engine is made; without the key gradients are not rounded")  # fmt: skip


def _configure(plan: Plan, cases: list[_Case]) -> None:
    """Write the format to the config, or let the script choose it where it chose the hook."""
    known = _readable(plan, cases)
    for case, _ in known:
        plan.edits.remove(case.found.statement.node)
    if any(case.hook.format for case, _ in known):
        _write(plan, known)
    for position, (case, texts) in enumerate(known):
        if not case.hook.format:
            plan.converted(
                "MG309",
                case.found.statement,
                f"{case.hook.name} removed",
                "DDP and the engine average gradients like this anyway",
            )
            continue
        text = _not_implied(case, texts, [earlier for earlier, _ in known[:position]])
        where = f" where {' and '.join(text)}" if text else ""
        plan.converted(
            "MG309",
            case.found.statement,
            f"{case.hook.name} → {KEY} {_shown(case.hook)}{where}",
            _numbers(plan, case.hook),
        )


def _readable(plan: Plan, cases: list[_Case]) -> list[tuple[_Case, list[str]]]:
    """The cases whose conditions can be had where the engine is made; registrations with others are left to the person.

    A condition of the wrap itself that cannot be had there is left out: the engine is made on both of its branches.
    """
    known: list[tuple[_Case, list[str]]] = []
    lost: list[Registration] = []
    for case in cases:
        texts = {c: text for c in case.conditions if (text := text_of(plan, c)) is not None}
        if all(c in texts or c.is_shared for c in case.conditions):
            known.append((_Case(case.found, case.hook, tuple(texts)), list(texts.values())))
        elif case.found not in lost:
            lost.append(case.found)
    for found in lost:
        _left_to_the_person(plan, found, [case.hook for case in cases if case.found is found])
    return [(case, texts) for case, texts in known if case.found not in lost]


def _write(plan: Plan, known: list[tuple[_Case, list[str]]]) -> None:
    first = known[0][0].found.statement
    default = next(
        (case.hook.format for case, _ in known if all(truth(plan, c, by_default) for c in case.conditions)), ""
    )
    plan.config[KEY] = default or None
    if any(text for _, text in known):
        plan.set_at_run_time((KEY,), _expression(known), first)
    stage = plan.zero_stage
    if stage == 0 and any(case.hook.format == "fp16" for case, _ in known):
        plan.config["prescale_gradients"] = True
    if "torch_autocast" in plan.config and stage:
        plan.kept("MG309", first,
                  f"under autocast ZeRO {stage} sends gradients in float32 whatever {KEY} says: more exact, twice the traffic",
                  "torch_autocast without lower_precision_safe_modules sends those of Linear and Conv layers in its format")  # fmt: skip


def _numbers(plan: Plan, hook: Hook) -> str:
    """What differs from the hook at the ZeRO stage of the config."""
    stage = plan.zero_stage
    if "torch_autocast" in plan.config and stage:
        return f"ZeRO {stage} looks at the key where there is no autocast"
    if stage == 0:
        return "averaged gradients are those of the hook" + (
            ", with prescale_gradients" if hook.format == "fp16" else ""
        )
    if hook.format != "fp16":
        return f"averaged gradients at ZeRO {stage} are those of the hook"
    skipped = "a step whose gradients overflow float16 is skipped"
    if stage == _PARAMETERS:
        return f"averaged gradients at ZeRO 3 are those of the hook; {skipped}"
    return f"ZeRO {stage} divides before it rounds, the hook after: a difference in the last bits; {skipped}"


# -- the expression ------------------------------------------------------------------------------------------------


def _expression(known: list[tuple[_Case, list[str]]]) -> str:
    """``"fp16" if flag else None``, ``{"half": "fp16", …}[name]``, or the format itself."""
    parts: list[tuple[str, list[str]]] = []
    position = 0
    while position < len(known):
        case, texts = known[position]
        table = _table(known[position:])
        left = _not_implied(case, texts, [earlier for earlier, _ in known[:position]])
        shown = _shown(case.hook)
        if table:
            names = ", ".join(f"{c.conditions[-1].equals}: {_shown(c.hook)}" for c, _ in table)
            shown = f"{{{names}}}[{texts[-1].rpartition(' == ')[0]}]"
            left = left[:-1]
        parts.append((shown, left))
        if not left:
            break
        position += len(table) or 1
    while parts and parts[-1][0] == "None":
        parts.pop()
    looked_up = _looked_up(parts) if len(parts) > 1 else None
    if looked_up is not None:
        return looked_up
    last = [] if parts and not parts[-1][1] else ["None"]
    return " else ".join([f"{shown} if {' and '.join(left)}" if left else shown for shown, left in parts] + last)


def _looked_up(parts: list[tuple[str, list[str]]]) -> str | None:
    """``{"fp16": "fp16", "bf16": "bf16"}.get(name)`` for ``name == "fp16"``, ``name == "bf16"``; None for anything else."""
    found: dict[str, str] = {}
    subjects = set()
    for shown, left in parts:
        test = cst.parse_expression(left[0]) if len(left) == 1 else None
        if not isinstance(test, cst.Comparison) or not isinstance(test.comparisons[0].operator, cst.Equal):
            return None
        if shown.startswith("{"):
            return None
        literal = test.comparisons[0].comparator
        if len(test.comparisons) > 1 or not isinstance(literal, cst.SimpleString):
            return None
        subjects.add(cst.Module([]).code_for_node(test.left))
        found.setdefault(literal.value, shown)
    if len(subjects) != 1:
        return None
    return f"{{{', '.join(f'{name}: {shown}' for name, shown in found.items())}}}.get({subjects.pop()})"


def _shown(hook: Hook) -> str:
    return f'"{hook.format}"' if hook.format else "None"


def _table(known: list[tuple[_Case, list[str]]]) -> list[tuple[_Case, list[str]]]:
    """The cases at the beginning that a table of hooks holds, if the hook is looked up in one."""
    first = known[0][0]
    if not first.conditions or not first.conditions[-1].equals:
        return []
    around = first.conditions[:-1]
    return [
        (case, texts)
        for case, texts in known
        if case.found is first.found and case.conditions[:-1] == around and case.conditions[-1].equals
    ]


def _not_implied(case: _Case, texts: list[str], earlier: list[_Case]) -> list[str]:
    """The conditions without those that hold because no earlier case was taken (the ``not`` of an ``elif``)."""
    positive = [c for c in case.conditions if c.wanted]
    kept = []
    for condition, text in zip(case.conditions, texts, strict=True):
        opposite = condition.negated()
        implied = not condition.wanted and any(
            any(c.is_like(opposite) and c.wanted for c in before.conditions)
            and all(c.is_like(opposite) or any(c == p for p in positive) for c in before.conditions)
            for before in earlier
        )
        if not implied:
            kept.append(text)
    return kept
