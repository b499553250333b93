"""Modules that stage 3 takes as one unit."""

from __future__ import annotations

from collections.abc import Iterator

from dsmigrate.diff.explanations.zero._shared import elements, moved, told
from dsmigrate.diff.model import Effect, Explained, Severity
from dsmigrate.diff.pair import Pair
from dsmigrate.diff.registry import Example, explanation
from dsmigrate.editing.derived.sizes import whole
from dsmigrate.languages import mark, say

_THREE = '{"train_batch_size": 8, "zero_optimization": {"stage": 3'
_KINDS = {
    "leaf_module.classes": mark("of the class"),
    "leaf_module.names": mark("of the name"),
    "leaf_module.name_suffixes": mark("with names that end in"),
}
_MOST = 3


@explanation(
    "DF423",
    "leaf-modules",
    summary="Other modules are gathered and released as one unit at stage 3.",
    why=(
        "A leaf module is gathered whole when it runs, its experts and all, and nothing inside it is gathered by"
        " itself. That keeps ranks in step where the order inside depends on the data, and costs the memory of the"
        " whole block. Classes of one's own take the place of the default ones."
    ),
    source=(
        "deepspeed/utils/z3_leaf_module.py:apply_zero_leaf_module_config",
        "deepspeed/runtime/zero/parameter_offload.py:_set_z3_leaf_modules_by_threshold",
    ),
    examples=(
        Example(
            _THREE + "}}",
            _THREE + ', "leaf_module": {"names": ["decoder.moe"]}}}',
            "Modules of the name `decoder.moe` are gathered and released as one unit now",
            paths=("zero_optimization.leaf_module.names",),
            effects=(Effect.MEMORY, Effect.COMMUNICATION, Effect.SPEED),
            severity=Severity.INFO,
        ),
        Example(
            _THREE + ', "leaf_module": {"classes": ["Block", "Expert"]}}}',
            _THREE + ', "leaf_module": {"classes": ["Block"]}}}',
            "Modules of the class `Expert` are no longer gathered as one unit",
            severity=Severity.WARNING,
        ),
        Example(
            _THREE + "}}",
            _THREE + ', "stage3_module_granularity_threshold": 100000}}',
            "Modules with up to 100 k elements per submodule are gathered and released as one unit now",
            paths=("zero_optimization.stage3_module_granularity_threshold",),
        ),
        Example(_THREE + "}}", _THREE + ', "leaf_module": {"names": []}}}', ""),
    ),
)
def explain(pair: Pair) -> Iterator[Explained]:
    """Yield which modules become units, and which no longer are."""
    for name, kind in _KINDS.items():
        move = moved(pair, name)
        if move is None:
            continue
        before, after = _texts(move.before), _texts(move.after)
        if before is None or after is None:
            continue
        come, gone = [one for one in after if one not in before], [one for one in before if one not in after]
        clauses = (
            [say("{listed} are gathered and released as one unit now", listed=_listed(kind, come))] if come else []
        )
        clauses += [say("{listed} are no longer gathered as one unit", listed=_listed(kind, gone))] if gone else []
        if clauses:
            said = say("; ").join(say("modules {clause}", clause=clause) for clause in clauses)
            severity = Severity.WARNING if gone else Severity.INFO
            yield told(pair, move, said[:1].upper() + said[1:], severity=severity, brief=say("other leaf modules"))
    move = moved(pair, "stage3_module_granularity_threshold")
    count = whole(move.after) if move is not None else None
    if move is None or count is None or whole(move.before) is None:
        return
    if count:
        was = say(" instead of {before}", before=elements(move.before)) if move.before and not move.begins else ""
        which = say("Modules with up to {count} elements per submodule{was}", count=elements(count), was=was)
        message = say("{which} are gathered and released as one unit now", which=which)
    else:
        message = say("Modules are no longer gathered as one unit for having few elements per submodule")
    yield told(pair, move, message)


def _texts(value: object) -> list[str] | None:
    if isinstance(value, str):
        return [value]
    if isinstance(value, (list, tuple)) and all(isinstance(one, str) for one in value):
        return list(value)
    return None


def _listed(kind: str, names: list[str]) -> str:
    shown = say(", ").join(f"`{name.rpartition('.')[2] if 'class' in kind else name}`" for name in names[:_MOST])
    more = say(" and {number} more", number=len(names) - _MOST) if len(names) > _MOST else ""
    return say("{kind} {names}{more}", kind=say(kind), names=shown, more=more)
