"""The number formats of a file: of weights, gradients, sums, communication, and what autocast computes in."""

from __future__ import annotations

from dataclasses import dataclass

from dsmigrate.knowledge import Status
from dsmigrate.knowledge.versions import order
from dsmigrate.rules.batch._shared import DATA, SEQUENCE, degree
from dsmigrate.rules.context import UNKNOWN, Context
from dsmigrate.rules.precision._shared import (
    ACCUMULATION,
    AUTOCAST,
    BF16_MASTERS,
    FP16_MASTERS,
    dtype,
    low_masters,
    mode,
)

WIDTHS = {"fp16": 2, "bf16": 2, "fp32": 4, "int8": 1}
"""Bytes of one element, by the short name of its format."""

_COMMUNICATION = "communication_data_type"
_SEQUENCE_COMMUNICATION = "seq_parallel_communication_data_type"
_BY_PARAMETER_SINCE = "0.17.2"
"""Since when ZeRO keeps a gradient bucket for each format that autocast gives to a parameter."""


@dataclass(frozen=True, slots=True)
class Precision:
    """Formats by their short names (fp16, bf16, fp32); None where the script or the consumer decides.

    ``weights`` without ``fp16`` and ``bf16`` is fp32, although DeepSpeed then leaves the model as it is. ``autocast``
    is "" where it is off. ``sums`` is what gradients are accumulated in, ``communication`` what they travel in,
    ``masters`` what the optimizer updates.
    """

    weights: str | None
    autocast: str | None
    sums: str | None
    communication: str | None
    masters: str | None

    @property
    def activations(self) -> str | None:
        """What a forward computes in, by and large."""
        return self.autocast if self.autocast != "" else self.weights

    def of(self, what: str) -> str | None:
        """Return the format of what ``Key.memory`` calls ``weights``, ``sums`` or another of the five."""
        formats = {
            "weights": self.weights,
            "sums": self.sums,
            "communication": self.communication,
            "masters": self.masters,
            "activations": self.activations,
        }
        return formats.get(what)


def precision(context: Context) -> Precision:
    """Return the formats of a file."""
    weights = mode(context)
    return Precision(
        weights=weights,
        autocast=_autocast(context),
        sums=_stated(context, ACCUMULATION, weights),
        communication=_communication(context, weights),
        masters=_masters(context),
    )


def buckets_by_parameter(context: Context) -> bool | None:
    """Return whether ZeRO has one gradient bucket for the parameters under autocast and one for the others.

    None when that is unknown. An empty list of modules leaves one bucket.
    """
    if order(context.known.version) < order(_BY_PARAMETER_SINCE):
        return False
    on = context.is_on(AUTOCAST)
    return on and context.value("torch_autocast.lower_precision_safe_modules") != []


def _autocast(context: Context) -> str | None:
    key = context.known.key(AUTOCAST)
    if key is None or key.status not in {Status.PRESENT, Status.DEPRECATED}:
        return ""
    on = context.is_on(AUTOCAST)
    if not on:
        return None if on is None else ""
    return _known(context.value("torch_autocast.dtype"))


def _communication(context: Context, weights: str | None) -> str | None:
    """Return what gradients travel in; a mesh with sequence parallelism has a key of its own for it."""
    sequence, data = degree(context, SEQUENCE), degree(context, DATA)
    if data and sequence and sequence > 1:
        return _stated(context, _SEQUENCE_COMMUNICATION, weights)
    return _stated(context, _COMMUNICATION, weights)


def _stated(context: Context, path: str, otherwise: str | None) -> str | None:
    value = context.value(path)
    if isinstance(value, str):
        return _known(value.lower() if path != ACCUMULATION else value)
    return None if value is UNKNOWN else otherwise


def _masters(context: Context) -> str | None:
    on = low_masters(context)
    return "fp16" if FP16_MASTERS in on else "bf16" if BF16_MASTERS in on else "fp32"


def _known(value: object) -> str | None:
    short = dtype(value)
    return short if short in WIDTHS else None
