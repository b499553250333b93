"""Precision as a whole: apex, half-precision models, autocast regions and gradient scalers, in this order."""

from __future__ import annotations

from dsmigrate.codemod.plan import Plan
from dsmigrate.codemod.steps.apex import apex
from dsmigrate.codemod.steps.autocast import autocast, autocast_elsewhere
from dsmigrate.codemod.steps.half import half_as_asked, half_model
from dsmigrate.codemod.steps.half_weights import half_weights
from dsmigrate.codemod.steps.regions import regions_around_engine
from dsmigrate.codemod.steps.scaler import scalers


def run(plan: Plan) -> None:
    """Convert precision; runs after the loop, which has found out whether a scaler is used."""
    apex(plan)
    half_model(plan)
    half_weights(plan)
    regions = regions_around_engine(plan)
    if plan.options.precision != "keep":
        half_as_asked(plan, regions)
    has_regions = bool(regions)
    if plan.options.precision == "keep" and regions:
        has_regions = autocast(plan, regions)
    if plan.options.precision == "keep" and not has_regions and "torch_autocast" not in plan.config:
        has_regions = autocast_elsewhere(plan)
    scalers(plan, has_regions=has_regions)
