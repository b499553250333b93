"""DS490: offload passes of DeepCompile that exclude each other."""

from __future__ import annotations

from collections.abc import Iterator

from dsmigrate.languages import say
from dsmigrate.rules.context import Context, shown
from dsmigrate.rules.model import Effect, Example, Finding, Severity
from dsmigrate.rules.registry import rule
from dsmigrate.rules.zero._shared import OPTIMIZER_DEVICE, given, offloads_optimizer, switched_on

_STATES = "compile.offload_opt_states"
_ACTIVATIONS = "compile.offload_activation"
_PARAMETERS = "compile.offload_parameters"


@rule(
    "DS490",
    "compile-offload",
    summary="Offload keys of `compile` that exclude one another, or ZeRO's own optimizer offload.",
    why="Each of the passes plans with all the memory there is, so `engine.compile()` refuses two of them at once, "
    "and the one "
    "for optimizer states beside `offload_optimizer`. Without that call they do nothing.",
    severity=Severity.ERROR,
    effect=Effect.CRASH,
    source=("deepspeed/compile/init_z3.py:init_z3",),
    keys=(_STATES, _ACTIVATIONS, _PARAMETERS),
    since="0.19.4",
    examples=(
        Example(
            '{"train_batch_size": 1, "optimizer": {"type": "AdamW", "params": {"lr": 0.001}}, '
            '"compile": {"deepcompile": true, "offload_opt_states": «true»}, "zero_optimization": {"stage": 3, '
            '"offload_optimizer": {"device": "cpu"}}}\n',
            fixed='{"train_batch_size": 1, "optimizer": {"type": "AdamW", "params": {"lr": 0.001}}, '
            '"compile": {"deepcompile": true}, "zero_optimization": {"stage": 3, '
            '"offload_optimizer": {"device": "cpu"}}}\n',
        ),
        Example(
            '{"train_batch_size": 1, "compile": {"deepcompile": true, "offload_activation": true, '
            '"offload_parameters": «true»}, "zero_optimization": {"stage": 3}}\n',
            fixed='{"train_batch_size": 1, "compile": {"deepcompile": true, "offload_activation": true}, '
            '"zero_optimization": {"stage": 3}}\n',
        ),
        Example(
            '{"train_batch_size": 1, "compile": {"deepcompile": true, "offload_opt_states": true}, '
            '"zero_optimization": {"stage": 3}}\n'
        ),
    ),
)
def check(context: Context) -> Iterator[Finding]:
    """Yield a finding at the key to take back."""
    if context.stage != 3 or switched_on(context, "compile.deepcompile") is None:
        return
    on = [path for path in (_ACTIVATIONS, _STATES, _PARAMETERS) if switched_on(context, path) is not None]
    if _STATES in on and offloads_optimizer(context):
        yield context.finding(
            _STATES,
            say(
                "`engine.compile()` refuses it together with {optimizer_device}",
                optimizer_device=shown(OPTIMIZER_DEVICE),
            ),
            fixes=[context.remove(_STATES, say("Remove {states}", states=shown(_STATES)), safe=False)],
            related=[(OPTIMIZER_DEVICE, say("offloaded here"))] if given(context, OPTIMIZER_DEVICE) else [],
        )
    elif len(on) > 1:
        for path in on[1:]:
            yield context.finding(
                path,
                say("`engine.compile()` refuses it together with {on}", on=shown(on[0])),
                fixes=[context.remove(path, say("Remove {path}", path=shown(path)), safe=False)],
                related=[(on[0], say("on as well"))],
            )
