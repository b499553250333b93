"""MG311 again: complex parameters, which no ZeRO stage trains."""

from __future__ import annotations

import re

from dsmigrate.codemod.plan import Plan
from dsmigrate.codemod.steps.written_parameters import calls, written_parameters

_COMPLEX = r"\b(?:torch\.)?(?:cfloat|cdouble|chalf|complex(?:32|64|128)|view_as_complex|ComplexFloatTensor)\b|\btorch\.(?:complex|polar)\("
_IS_COMPLEX = re.compile(_COMPLEX)
_IS_REAL = re.compile(r"\bview_as_real\b|\.(?:real|imag)\b|\.(?:abs|angle)\(|requires_grad\s*=\s*False")
_NAME = re.compile(r"(?<![.\w])[A-Za-z_]\w*(?![\w.(=])")
_LAYER = re.compile(r"\bnn\.(?!Parameter)[A-Z]\w*\(")
_TYPED = re.compile(r"\bdtype\s*=\s*torch\.(?:cfloat|cdouble|complex(?:64|128))\b")
_KNOWN = re.compile(r"^\s*(?:from|import)\s+neuralop\b", re.MULTILINE)
"""Libraries whose layers hold such parameters."""


def complex_weights(plan: Plan) -> None:
    """Mark a model that may have complex parameters; at ZeRO stage 0 the engine stops at them instead of training otherwise."""
    if not any(map(has_complex, plan.facts["texts"])):
        return
    message = "parameters may be complex: hold them as real ones (torch.view_as_real, and view_as_complex in forward), or stay with DDP"
    if (
        plan.options.zero_stage is None
        and plan.options.precision == "keep"
        and not {"fp16", "bf16"} & plan.config.keys()
    ):
        plan.facts["stage_zero"] = True
        message += "; the config gets ZeRO stage 0, which stops at them"
    plan.todo("MG311", plan.wraps[0].statement, message,
              "ZeRO 1-3 drop the imaginary parts of a group of complex parameters, and stage 0 takes no complex gradients")  # fmt: skip


def has_complex(text: str) -> bool:
    """Whether a file makes a parameter or a layer with a complex dtype, or uses a library that is known for it."""
    if _KNOWN.search(text):
        return True
    if not _IS_COMPLEX.search(text):
        return False
    if any(_TYPED.search(inner) for inner in calls(text, _LAYER)):
        return True
    return any(_is_complex(text, inner) for inner in written_parameters(text))


def _is_complex(text: str, inner: str) -> bool:
    """Whether the value of a parameter is complex: by its own text, or by that of a variable in it."""
    if _IS_REAL.search(inner):
        return False
    return bool(_IS_COMPLEX.search(inner)) or any(_is_given_complex(text, name) for name in set(_NAME.findall(inner)))


def _is_given_complex(text: str, name: str) -> bool:
    given = re.findall(rf"^\s*{re.escape(name)}\s*=(?!=)(.*)$", text, re.MULTILINE)
    return any(_IS_COMPLEX.search(value) and not _IS_REAL.search(value) for value in given)
