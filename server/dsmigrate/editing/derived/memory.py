"""What a number of elements takes in bytes: the buffer or bound behind a key, in the formats of this file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from dsmigrate.editing.derived.force import in_force
from dsmigrate.editing.derived.precision import WIDTHS, buckets_by_parameter, precision
from dsmigrate.editing.derived.sizes import bytes_text, count_text, whole
from dsmigrate.knowledge import Key
from dsmigrate.knowledge.versions import order
from dsmigrate.languages import mark, say
from dsmigrate.rules.context import Context
from dsmigrate.rules.precision._shared import uses_bf16_optimizer

_BUCKET = "zero_optimization.reduce_bucket_size"
_HALF = mark("16 bit")


@dataclass(frozen=True, slots=True)
class Size:
    """The memory behind a number of elements.

    ``format`` is the short name of the format, None while it is open; ``copies`` how many such buffers there are, and
    ``twice`` the key because of which there are two. ``means`` ends a sentence that begins with the bytes.
    """

    elements: int
    format: str | None
    copies: int
    means: str
    twice: str = ""

    @property
    def bytes(self) -> int | None:
        """The bytes of one of the buffers; None while the format is open."""
        return None if self.format is None else self.elements * WIDTHS[self.format]

    @property
    def text(self) -> str:
        """The bytes with their format: "0.93 GiB in bf16"; two possibilities while the format is open."""
        return (
            self.short
            if self.format is not None
            else say(
                "{short}, {times}{number} in fp32",
                short=self.short,
                times=self._times,
                number=bytes_text(4 * self.elements),
            )
        )

    @property
    def short(self) -> str:
        """The bytes with their format; those in 16 bit while it is open."""
        if self.bytes is not None:
            return say(
                "{times}{bytes} in {format}", times=self._times, bytes=bytes_text(self.bytes), format=self.format
            )
        return say(
            "{times}{number} in {half}", times=self._times, number=bytes_text(2 * self.elements), half=say(_HALF)
        )

    @property
    def sentence(self) -> str:
        """What it is: "500 M elements: 0.93 GiB in bf16, the gradient buffer on each GPU."."""
        en_joint = ", " if self.means.startswith("the ") else " "
        why = say(", two because `{twice}` is on", twice=self.twice) if self.twice else ""
        return say(
            "{count}: {text}{en_joint}{means}{why}.",
            count=self.count,
            text=self.text,
            en_joint=en_joint,
            means=self.means,
            why=why,
        )

    @property
    def _times(self) -> str:
        return f"{self.copies} × " if self.copies != 1 else ""

    @property
    def count(self) -> str:
        """The number of elements in short."""
        return say("{elements} elements", elements=count_text(self.elements))


def size(context: Context, key: Key, value: object) -> Size | None:
    """Return the memory behind ``value`` elements of a key; None where there is none in this file, or it is open."""
    elements = whole(value)
    if elements is None or not key.memory or (key.path == _BUCKET and uses_bf16_optimizer(context)):
        return None
    record = _record(context, key)
    if record is None:
        return None
    copies = _copies(context, key, record)
    if copies is None:
        return None
    twice = record["twice"] if copies == 2 and "twice" in record else ""
    return Size(elements, precision(context).of(record["of"]), copies, record["is"], twice)


def _record(context: Context, key: Key) -> Mapping[str, Any] | None:
    """Return the first record that fits the stage and the release."""
    now = order(context.known.version)
    for record in key.memory:
        if "stages" in record and context.stage not in record["stages"]:
            continue
        if order(record.get("since", "0")) <= now and ("until" not in record or now < order(record["until"])):
            return record
    return None


def _copies(context: Context, key: Key, record: Mapping[str, Any]) -> int | None:
    """Return how many buffers there are; None when there is none, or nobody knows."""
    if "needs" in record and in_force(context, record["needs"]) is not True:
        return None
    copies = 1
    if "twice" in record:
        twice = in_force(context, record["twice"])
        if not isinstance(twice, bool):
            return None
        copies = 2 if twice else 1
    if "times" in record:
        times = whole(in_force(context, record["times"]))
        if not times:
            return None
        copies *= times
    if key.path == _BUCKET and buckets_by_parameter(context) is not False:
        return None  # a bucket for each format that autocast gives to a parameter: it depends on the model
    return copies
