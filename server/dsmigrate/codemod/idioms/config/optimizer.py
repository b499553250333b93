"""``--optimizer config``: type and parameters of the optimizer move into the config, where that is provable."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from dsmigrate.codemod.analysis.training import Training
from dsmigrate.codemod.decision import Decision, Setting
from dsmigrate.codemod.idioms.facts import Facts
from dsmigrate.codemod.model import Idea, Kind
from dsmigrate.codemod.program.edits import Insert, Remove
from dsmigrate.languages import told

IDEAS = (
    Idea(
        "MG606",
        "The optimizer moves into the config",
        "--optimizer config: the type and parameters of the script's optimizer are written to the config.",
        "Adam in a config means AdamW unless adam_w_mode is false, and an absent weight_decay is 0.0; both are written out.",
        "deepspeed/runtime/engine.py, _configure_basic_optimizer",
        Kind.CONVERTED,
    ),
)


def in_config(training: Training, facts: Facts) -> Iterator[Decision]:  # noqa: ARG001 - an idiom's signature
    """The optimizer's line goes, and its name is bound to the one that DeepSpeed makes."""
    if facts.options.optimizer != "config":
        return
    site, moved = facts.site, facts.moved
    if isinstance(moved, str):
        yield Decision(
            "MG606", Kind.TODO, site.module, site.node, told("the optimizer stays in the script: {moved}", moved=moved), "--optimizer config needs one plain torch optimizer",
        )  # fmt: skip
        return
    settings = {"optimizer.type": Setting(None, static=moved.kind)}
    settings |= {
        f"optimizer.params.{name}": Setting(value, static, code)
        for name, (value, static, code) in moved.options.items()
    }
    settings["zero_allow_untested_optimizer"] = Setting(None, static=moved.kind not in {"Adam", "AdamW", "Adagrad"})
    assert isinstance(moved.statement, ast.Assign)
    bound = moved.module.text(moved.statement.targets[0])
    yield Decision(
        "MG606", Kind.CONVERTED, moved.module, moved.statement, told("{kind} moves into the config", kind=moved.kind), "asked for by --optimizer config",
        config=settings, edits=(
            Remove(moved.module, moved.statement),
            Insert(site.module, site.node, ((f"{bound} = {site.target}.basic_optimizer",),), after=True, rank=0),
        ),
    )  # fmt: skip
