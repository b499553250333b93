"""Keys that change and fall silent, because the stage or a device changes with them."""

from __future__ import annotations

from collections.abc import Iterator

from dsmigrate.diff.explanations.zero._shared import STAGE, ZERO
from dsmigrate.diff.model import Effect, Explained, Severity
from dsmigrate.diff.pair import Pair
from dsmigrate.diff.registry import Example, explanation
from dsmigrate.editing.derived.inert import unmet
from dsmigrate.languages import say

_SECTIONS = (f"{ZERO}.", "aio.")
_THREE = '{"train_batch_size": 8, "zero_optimization": {"stage": 3, "stage3_max_live_parameters": 1e8}}'


@explanation(
    "DF419",
    "falls-silent",
    summary="A key of ZeRO or of NVMe goes, or changes, and does nothing any more because another key changed.",
    why=(
        "What a key of stage 3 did ends with stage 3, whatever becomes of the key. The change of the stage, the device"
        " or the switch tells what that does."
    ),
    source=("schemas/deepspeed/keys/zero_optimization.toml",),
    examples=(
        Example(
            _THREE,
            '{"train_batch_size": 8, "zero_optimization": {"stage": 2}}',
            "It no longer does anything, as `zero_optimization.stage` changes too",
            paths=("zero_optimization.stage3_max_live_parameters",),
            effects=(Effect.NONE,),
            severity=Severity.NONE,
        ),
        Example(_THREE, '{"train_batch_size": 8, "zero_optimization": {"stage": 3}}', ""),
    ),
)
def explain(pair: Pair) -> Iterator[Explained]:
    """Yield the keys that act on the old side alone."""
    for path in pair.changes:
        if not path.startswith(_SECTIONS) or path == STAGE or pair.change(path) is None or not pair.new.reads(path):
            continue
        key = pair.new.known.key(path)
        if pair.lives(path) != (True, False) or key is None:
            continue
        found = unmet(pair.new.context, key, pair.new.place(path))
        cause = (
            say(", as `{found_path}` changes too", found_path=found.path)
            if found is not None and found.path in pair.changes
            else ""
        )
        message = say("It no longer does anything{cause}", cause=cause)
        yield pair.says(path, effects=(Effect.NONE,), severity=Severity.NONE, message=message)
