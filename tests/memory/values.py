"""Any values at the keys that memory and communication depend on."""

from __future__ import annotations

import copy
from typing import Any

from hypothesis import strategies as st

from dsmigrate.knowledge import knowledge

SECTIONS = ("zero_optimization", "bf16", "fp16", "aio", "data_types", "optimizer", "torch_autocast", "tensor_parallel")
TOP = ("communication_data_type", "gradient_accumulation_steps", "train_batch_size", "sequence_parallel_size")
PATHS = sorted(path for path in knowledge().every_path() if path.partition(".")[0] in SECTIONS or path in TOP)
VALUES: st.SearchStrategy[Any] = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-2, 5),
    st.sampled_from([10**30, -(10**30), 1e308, -1e308, 0.5, 5e8, 2**63]),
    st.sampled_from(["auto", "cpu", "nvme", "none", "fp32", "bf16", "3", "", "x", "AdamW", "Lion"]),
    st.sampled_from([[], {}, [1], ["x"], [{}], {"enabled": True}, {"device": "cpu"}, {"lr": "x"}]),
)
CONFIGS = st.dictionaries(st.sampled_from(PATHS), VALUES, max_size=8)


def nested(flat: dict[str, Any], stage: int) -> dict[str, Any]:
    """Return a config from values by dotted paths; a value in the way of another gives way to it."""
    config: dict[str, Any] = {"zero_optimization": {"stage": stage}}
    for path, value in flat.items():
        inner = config
        *sections, name = path.replace("[]", "").replace("*", "any").split(".")
        for section in sections:
            if not isinstance(inner.get(section), dict):
                inner[section] = {}
            inner = inner[section]
        inner[name] = copy.deepcopy(value)
    return config
