"""The helper that lets the engine know the norm at ZeRO stage 0, run beside an engine that only notes its calls."""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any

import pytest

from dsmigrate.codemod.steps import grad_norm


@pytest.mark.parametrize(("limit", "taken"), [(-1.0, math.inf), (0.0, math.inf), (0.5, 0.5)])
def test_a_limit_that_switches_clipping_off_leaves_gradients_alone(limit: float, taken: float) -> None:
    """torch multiplies every gradient by limit / norm, which for -1 turns it round; DeepSpeed takes -1 for off."""
    limits: list[float] = []
    utils = SimpleNamespace(clip_grad_norm_=lambda _parameters, most: limits.append(most))
    names: dict[str, Any] = {"torch": SimpleNamespace(nn=SimpleNamespace(utils=utils))}
    exec(grad_norm._NORM_HELPER, names)  # noqa: S102
    engine = SimpleNamespace(
        zero_optimization=lambda: False,
        gradient_clipping=lambda: limit,
        module=SimpleNamespace(parameters=list),
        optimizer=None,
        _take_model_step=lambda: None,
    )
    names["keep_grad_norm"](engine)
    step = engine.clip_fp32_gradients if limit > 0 else engine._take_model_step
    step()
    assert limits == [taken]
