"""Estimates as JSON: the contract of schemas/output/memory.schema.json."""

from __future__ import annotations

import json
from typing import Any

from dsmigrate.memory.estimate import Estimate, Machine
from dsmigrate.memory.model import Part, Place
from dsmigrate.memory.shape import Described
from dsmigrate.memory.traffic import Transfer

VERSION = 1


def render(estimates: list[Estimate], version: str) -> str:
    """Return the document as text."""
    first = estimates[0]
    found = {
        "version": VERSION,
        "deepspeed_version": version,
        "model": model(first.described),
        "machine": machine(first.machine),
        "workload": workload(first),
        "estimates": [estimate(one) for one in estimates],
    }
    return json.dumps(found, indent=2) + "\n"


def model(described: Described) -> dict[str, Any]:
    """Return the model: what was counted, and how."""
    shape = described.shape
    return {
        "name": described.name,
        "parameters": described.model.parameters,
        "frozen": sum(described.model.frozen),
        "tensors": len(described.model.tensors),
        "source": described.source,
        "exact": described.exact,
        "shape": None
        if shape is None
        else {
            "layers": shape.layers,
            "hidden": shape.hidden,
            "heads": shape.heads,
            "key_value_heads": shape.key_value_heads,
            "head_size": shape.head_size,
            "inner": shape.inner,
            "vocabulary": shape.vocabulary,
        },
        "notes": list(described.notes),
    }


def machine(found: Machine) -> dict[str, Any]:
    """Return the machines; sizes in bytes."""
    return {
        "gpus": found.gpus,
        "nodes": found.nodes,
        "gpu_bytes": found.gpu,
        "reserved_bytes": found.reserved,
        "host_bytes": found.host,
        "nvme_bytes": found.nvme,
    }


def workload(one: Estimate) -> dict[str, Any]:
    """Return what a rank works on."""
    return {
        "micro_batch": one.work.micro_batch,
        "sequence": one.work.sequence if one.described.shape is None else one.work.tokens(one.described.shape),
        "micro_batches_per_step": one.traffic.steps,
        "activation_checkpointing": one.work.checkpointing.value,
        "attention": one.work.attention.value,
        "loss": None if one.described.shape is None else one.work.computed(one.described.shape).value,
    }


def estimate(one: Estimate) -> dict[str, Any]:
    """Return one estimate; sizes in bytes, null where they are not known."""
    return {
        "name": one.name,
        "stage": one.usage.stage,
        "fits": one.fits,
        "lacks": list(one.lacks),
        "gpu_bytes": one.peak,
        "peak_at": one.moment or None,
        "gpu_at_peak": {what.value: count for what, count in one.by_kind.items()},
        "host_bytes_per_node": one.on_node(Place.HOST),
        "nvme_bytes_per_node": one.on_node(Place.NVME),
        "sent_bytes_per_step": one.sent,
        "sent_elements": one.traffic.formula(),
        "largest_micro_batch": one.largest_micro_batch,
        "assumes": list(one.assumes),
        "rejected": [{"code": finding.code, "message": finding.message} for finding in one.rejected],
        "parts": [_part(part) for part in one.usage.parts],
        "transfers": [_transfer(transfer) for transfer in one.traffic.transfers],
    }


def _part(part: Part) -> dict[str, Any]:
    return {
        "what": part.what.value,
        "place": part.place.value,
        "when": part.when.value,
        "bytes": part.bytes,
        "surety": part.surety.value,
        "pinned": part.pinned,
        "says": part.says,
    }


def _transfer(transfer: Transfer) -> dict[str, Any]:
    return {
        "collective": transfer.collective.value,
        "what": transfer.what,
        "bytes_per_element": transfer.width,
        "per_micro_batch": transfer.rounds,
        "per_step": transfer.extra,
        "portion": transfer.portion,
        "group": transfer.group or None,
        "surety": transfer.surety.value,
    }
