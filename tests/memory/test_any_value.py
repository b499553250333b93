"""Whatever stands at the keys that memory and communication depend on, figures are figures, or there are none."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from dsmigrate.memory import Model, Place, text, traffic, usage

from .configs import context
from .values import CONFIGS, nested


@settings(max_examples=300)
@given(
    CONFIGS,
    st.integers(0, 3),
    st.sampled_from([None, "0.9.0", "0.14.4", "0.19.7"]),
    st.one_of(st.none(), st.integers(-1, 10**20)),
    st.one_of(st.none(), st.integers(-1, 10**10)),
)
def test_any_value(
    flat: dict[str, Any], stage: int, version: str | None, parameters: int | None, world_size: int | None
) -> None:
    seen = context(nested(flat, stage), version, world_size, parameters)
    found, sent = usage(seen), traffic(seen)
    assert (found is None) is (sent is None)
    if found is None or sent is None:
        return
    for place in Place:
        assert text(found.select(place))
        assert (found.bytes(place) or 0) >= 0
        assert (found.peak(place) or 0) >= 0
    for part in found.parts:
        assert part.width > 0
        assert part.says
    assert sent.formula()
    for one in sent.transfers:
        assert one.elements(Model(10**9), 4) >= 0
        assert one.sent(Model(10**9), 4, 8) >= 0
