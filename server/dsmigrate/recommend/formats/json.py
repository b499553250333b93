"""A recommendation as JSON: the contract of schemas/output/recommend.schema.json."""

from __future__ import annotations

import json
from typing import Any

from dsmigrate.knowledge import knowledge
from dsmigrate.memory.formats.json import estimate, machine, model
from dsmigrate.recommend.choose import Candidate, Recommendation
from dsmigrate.recommend.decisions import topics
from dsmigrate.recommend.reasons import advice, lacking, notes, reasons

VERSION = 1


def render(found: Recommendation) -> str:
    """Return the document as text; ``chosen`` is null where nothing fits."""
    request, chosen = found.request, found.chosen
    document = {
        "version": VERSION,
        "deepspeed_version": found.version,
        "consumer": request.consumer.value,
        "global_batch": request.samples,
        "loss": None if request.described.shape is None else request.work.computed(request.described.shape).value,
        "interconnect": request.link,
        "model": model(request.described),
        "machine": machine(request.machine),
        "chosen": None if chosen is None else _candidate(chosen, chosen) | {"config": chosen.config},
        "fitting": [_candidate(one, chosen) for one in found.fitting],
        "failing": [{"name": one.variant.name, "reason": lacking(one), **_variant(one)} for one in found.failing],
        "advice": list(advice(found)) if chosen is None else [],
        "notes": list(notes(found)),
        "decisions": [] if chosen is None else _decisions(found, chosen),
    }
    return json.dumps(document, indent=2) + "\n"


def _variant(one: Candidate) -> dict[str, Any]:
    return {
        "stage": one.variant.stage,
        "offload_optimizer": one.variant.optimizer,
        "offload_param": one.variant.weights,
        "zero_hpz_partition_size": one.variant.group or None,
        "quantized_gathers": one.variant.quantised,
        "bf16_states": one.variant.low,
        "sequence_parallel_size": one.variant.sequence,
        "activation_checkpointing": one.checkpointing.value,
        "gpu_bytes": one.estimate.peak,
    }


def _candidate(one: Candidate, chosen: Candidate | None) -> dict[str, Any]:
    found = estimate(one.estimate)
    kept = ("gpu_at_peak", "host_bytes_per_node", "nvme_bytes_per_node", "sent_bytes_per_step", "largest_micro_batch")
    return {
        "name": one.variant.name,
        **_variant(one),
        **{name: found[name] for name in kept},
        "micro_batch": one.estimate.work.micro_batch,
        "accumulation": one.estimate.traffic.steps,
        "relative_time": None if chosen is None else round(one.seconds.total / chosen.seconds.total, 3),
        "reasons": list(reasons(one)),
    }


def _decisions(found: Recommendation, chosen: Candidate) -> list[dict[str, Any]]:
    return [
        {
            "title": topic.title,
            "steps": [
                {"text": step.text, "keys": [{"key": key, "url": url} for key, url in step.links]}
                for step in topic.steps
            ],
        }
        for topic in topics(chosen.variant, found.request.half, knowledge(found.version))
    ]
