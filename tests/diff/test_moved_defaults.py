"""Each default that has moved in some release is told by the family of its key, with what it does."""

from __future__ import annotations

import pytest

from dsmigrate.diff.model import Severity
from dsmigrate.diff.run import compare_views
from dsmigrate.knowledge import knowledge, store

from .examples import view

_STAGE_3 = '{"train_batch_size": 8, "zero_optimization": {"stage": 3, "%s": {"device": "cpu"}}}'
_BF16 = '{"train_batch_size": 8, "bf16": {"enabled": true}, "data_types": {"grad_accum_dtype": "fp32"}%s}'
ALIVE = {
    "bf16.check_grad_overflow": _BF16 % ', "zero_optimization": {"stage": 2}',
    "bf16.immediate_grad_update": _BF16 % ', "zero_optimization": {"stage": 1}',
    "gradient_clipping": '{"train_batch_size": 8}',
    "steps_per_print": '{"train_batch_size": 8}',
    "zero_optimization.offload_optimizer.pin_memory": _STAGE_3 % "offload_optimizer",
    "zero_optimization.offload_param.pin_memory": _STAGE_3 % "offload_param",
}
"""A config in which each key acts that some release has given another default."""

MOVED = [
    pytest.param(path, event.version, id=f"{path}-{event.version}")
    for path in knowledge().every_path()
    if (key := knowledge().key(path)) is not None
    for event in key.history
    if event.kind.value == "default"
]


@pytest.mark.parametrize(("path", "version"), MOVED)
def test_a_moved_default_is_told_by_the_family_of_its_key(path: str, version: str) -> None:
    assert path in ALIVE, "a config in which the key acts, and an explanation of what the other default does"
    every = store.index()["releases"]
    before = every[every.index(version) - 1]
    result = compare_views(view(ALIVE[path], version=before), view(ALIVE[path], version=version))
    assert path in result.changes
    told = [said for said in result.explained if path in said.paths and said.severity is not Severity.NONE]
    assert [said.code for said in told if said.code in {"DF901", "DF999"}] == []
    assert told, [said.message for said in result.explained]
