"""What ZeRO has to know of the script's optimizer."""

from __future__ import annotations

from collections.abc import Iterator

from dsmigrate.codemod.analysis.classes import bases_of
from dsmigrate.codemod.analysis.training import Training
from dsmigrate.codemod.analysis.values import Obj
from dsmigrate.codemod.decision import Decision, Setting
from dsmigrate.codemod.idioms.facts import Facts
from dsmigrate.codemod.model import Idea, Kind

IDEAS = (
    Idea(
        "MG601",
        "The optimizer is one ZeRO was not tested with",
        "zero_allow_untested_optimizer is set, so that the script's own optimizer is accepted.",
        "ZeRO's list of tested optimizers is short; elementwise ones train as before.",
        "deepspeed/runtime/zero/utils.py, is_zero_supported_optimizer",
        Kind.CONVERTED,
    ),
)
_TESTED = frozenset(
    {"torch.optim.Adam", "torch.optim.AdamW", "deepspeed.ops.adam.FusedAdam", "deepspeed.ops.adam.DeepSpeedCPUAdam"}
)


def untested(training: Training, facts: Facts) -> Iterator[Decision]:
    """Allow an optimizer that ZeRO does not know."""
    names = {name for one in training.optimizers if isinstance(one, Obj) for name in list(bases_of(one))[:1]}
    if names and names <= _TESTED and all(isinstance(one, Obj) and one.cls is None for one in training.optimizers):
        return
    site = facts.site
    yield Decision(
        "MG601", Kind.CONVERTED, site.module, site.node, "zero_allow_untested_optimizer: true", "ZeRO's list of tested optimizers is short",
        config={"zero_allow_untested_optimizer": Setting(None, static=True)}, lines=(0, 0),
    )  # fmt: skip
