"""Which elements of which parameter the optimizer of this rank updates, and in which fp32 copy they are.

Reads what DeepSpeed does not document: ``fp16_groups``, ``fp32_partitioned_groups_flat`` and ``sub_group_to_group_id``
of its optimizer, ``partition_numel()`` and ``ds_numel`` of a parameter at ZeRO 3; ``bit16_groups``,
``round_robin_bit16_groups`` and ``single_partition_of_fp32_groups`` at ZeRO 1 and 2; ``bf16_groups`` and
``fp32_groups_flat_partition`` for bf16 at ZeRO 1; ``fp32_groups`` and ``fp32_groups_flat`` for half precision without
ZeRO. The public ``deepspeed.utils.safe_set_full_optimizer_state`` fails before the first step, and at ZeRO 3 for a
parameter whose size the ranks do not divide.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
import torch.distributed as dist


@dataclass(frozen=True)
class Piece:
    """The elements of a parameter that this rank's optimizer updates: ``count`` of them, from ``start`` on.

    They begin at ``at`` in ``master``, a flat fp32 copy, which is None if ``master`` copies the parameter alone.
    """

    parameter: Any
    group: int
    master: torch.Tensor
    at: int | None
    start: int
    count: int

    def of_master(self, values: torch.Tensor) -> torch.Tensor:
        """A view of these elements in ``master``, or in a state of its shape."""
        return values if self.at is None else values[self.at : self.at + self.count]

    def of_parameter(self, values: torch.Tensor) -> torch.Tensor:
        """These elements in values of the parameter's shape."""
        return values if self.at is None else values.flatten()[self.start : self.start + self.count]


def pieces_of(zero: Any) -> list[Piece]:
    """The pieces that one of DeepSpeed's optimizers holds on this rank, in the order of its groups."""
    if not hasattr(zero, "optimizer"):  # fp32 without ZeRO: no copies, but the parameters themselves
        return [
            Piece(parameter, group, parameter, None, 0, parameter.numel())
            for group, options in enumerate(zero.param_groups)
            for parameter in options["params"]
        ]
    if hasattr(zero, "fp32_partitioned_groups_flat"):
        return pieces_at_stage_3(zero)
    if hasattr(zero, "fp32_groups"):  # half precision without ZeRO: copies of single parameters
        return [
            Piece(parameter, group, master, None, 0, parameter.numel())
            for group, masters in enumerate(zero.fp32_groups)
            for parameter, master in zip(zero.fp16_groups[group], masters)
        ]
    if hasattr(zero, "fp32_groups_flat"):  # the same for FusedAdam: copies of whole groups
        return pieces_of_flat(zero.fp16_groups, zero.fp16_groups, zero.fp32_groups_flat, 0)
    rank = dist.get_rank(zero.dp_process_group)
    if hasattr(zero, "bf16_groups"):  # bf16 at ZeRO 1
        return pieces_of_flat(zero.bf16_groups, zero.bf16_groups, zero.fp32_groups_flat_partition, rank)
    masters = zero.single_partition_of_fp32_groups
    begins = getattr(zero, "round_robin_bit16_offsets", None)  # newer releases may leave gaps
    return pieces_of_flat(zero.bit16_groups, zero.round_robin_bit16_groups, masters, rank, begins)


def pieces_of_flat(groups: Any, orders: Any, masters: Any, rank: int, begins: Any = None) -> list[Piece]:
    """The pieces in ``masters``, this rank's part of each flat group, in which parameters follow ``orders``."""
    found = []
    for group, master in enumerate(masters):
        first, places, end = rank * master.numel(), {}, 0
        for number, parameter in enumerate(orders[group]):
            places[parameter] = end if begins is None else begins[group][number]
            end = places[parameter] + parameter.numel()
        for parameter in groups[group]:
            begin, size = places[parameter], parameter.numel()
            start = min(max(first - begin, 0), size)
            stop = min(max(first + master.numel() - begin, start), size)
            found.append(Piece(parameter, group, master, begin + start - first, start, stop - start))
    return found


def pieces_at_stage_3(zero: Any) -> list[Piece]:
    """The pieces at ZeRO 3, where each parameter is divided among the ranks."""
    rank, found = dist.get_rank(zero.dp_process_group), []
    for number, master in enumerate(zero.fp32_partitioned_groups_flat):
        at = 0
        for parameter in zero.fp16_groups[number]:
            size = parameter.partition_numel()
            start = min(rank * size, parameter.ds_numel)
            count = min(size, parameter.ds_numel - start)
            found.append(Piece(parameter, zero.sub_group_to_group_id[number], master, at, start, count))
            at += size
    return found
