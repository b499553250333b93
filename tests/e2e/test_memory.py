"""The memory and communication model against real engines: tensors and collectives of small models on CPU.

Every part that the model calls exact is measured to the byte, whatever it only bounds or estimates within what its
docstring allows: whole tensors at the borders of a shard, whole layers that are kept for backward.
"""

from __future__ import annotations

import itertools
import json
import math
import os
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from dsmigrate.document import parse
from dsmigrate.editing.view import View
from dsmigrate.knowledge import knowledge
from dsmigrate.memory import Model, Place, Surety, Traffic, Usage, What, When, traffic, usage
from dsmigrate.memory.activations import Workload
from dsmigrate.memory.estimate import Machine
from dsmigrate.memory.shape import Described
from dsmigrate.memory.variants import VARIANTS
from dsmigrate.recommend import Request
from dsmigrate.recommend.config import TUNINGS, config_for
from dsmigrate.rules import Settings
from dsmigrate.rules.context import Context

from .launching import torch_python, training_environment

pytestmark = [pytest.mark.deepspeed, pytest.mark.e2e, pytest.mark.xdist_group("memory")]

ROOT = Path(__file__).resolve().parents[2]
WIDTHS = (64, 96, 128, 64)
ODD_WIDTHS = (61, 97, 129, 67)
LARGE_WIDTHS = (1024, 1024, 1024)
"""Shards of the weights have 1 MiB in bf16, from which they are swapped."""
SMALL_OR_ALIGNED = 2**16
"""Bytes by which memory with NVMe may differ: biases are not swapped, and buffers are aligned to 1024 bytes."""
BUCKET = 20_000
Config = dict[str, Any]
FP32_SUMS = {"data_types": {"grad_accum_dtype": "fp32"}}
STATIC = {"fp16": {"loss_scale": 1}}
"""No overflow at the start skips the step that makes the optimizer states."""
ADAMW = {"optimizer": {"type": "AdamW", "params": {"lr": 1e-3}}}
TO_HOST = {"offload_optimizer": {"device": "cpu", "pin_memory": False}}
SHARDS_TO_HOST = {"offload_param": {"device": "cpu", "pin_memory": False}}


@dataclass(frozen=True)
class Case:
    """A config that is measured on some ranks."""

    name: str
    config: Config
    ranks: int = 2
    widths: tuple[int, ...] = WIDTHS


@dataclass(frozen=True)
class Measured:
    """What the ranks of a case held and sent, and the model's figures for the same."""

    case: Case
    ranks: list[dict[str, Any]]
    usage: Usage
    traffic: Traffic
    model: Model


def config(stage: int, half: str = "", steps: int = 1, top: Config | None = None, **zero: object) -> Config:
    """Return a config of a stage with small buckets, and no tensor at stage 3 that is too small to be sharded."""
    section: Config = {"stage": stage, "reduce_bucket_size": BUCKET, "stage3_param_persistence_threshold": 0, **zero}
    found: Config = {"train_micro_batch_size_per_gpu": 2, "gradient_accumulation_steps": steps, **(top or {})}
    if half:
        found[half] = {"enabled": True, **found.get(half, {})}
    return found | {"zero_optimization": section}


def cases() -> Iterator[Case]:
    """Yield stages 0 to 3 in each format, with and without offload, on one and two ranks, and all others."""
    for stage in range(4):
        yield Case(f"stage {stage}, fp32", config(stage))
        yield Case(f"stage {stage}, bf16, 2 micro-batches", config(stage, "bf16", 2))
        yield Case(f"stage {stage}, bf16, alone", config(stage, "bf16"), ranks=1)
    for stage in (1, 2, 3):
        yield Case(f"stage {stage}, bf16, offload", config(stage, "bf16", 1, ADAMW, **TO_HOST))
        yield Case(f"stage {stage}, bf16, offload, 2 micro-batches", config(stage, "bf16", 2, ADAMW, **TO_HOST))
        yield Case(f"stage {stage}, fp16, offload", config(stage, "fp16", 1, STATIC | ADAMW, **TO_HOST))
        yield Case(f"stage {stage}, fp16", config(stage, "fp16", 1, STATIC))
        yield Case(f"stage {stage}, fp32, offload", config(stage, "", 1, ADAMW, **TO_HOST))
        yield Case(f"stage {stage}, fp32, offload, alone", config(stage, "", 1, ADAMW, **TO_HOST), ranks=1)
        yield Case(f"stage {stage}, bf16, odd sizes", config(stage, "bf16"), widths=ODD_WIDTHS)
    yield from other_cases()


def other_cases() -> Iterator[Case]:
    """Yield what else moves memory or bytes: formats, buckets, how much is gathered, parts on the host."""
    yield Case("stage 0, fp16, config optimizer", config(0, "fp16", 1, ADAMW))
    yield Case("stage 1, bf16, fp32 sums", config(1, "bf16", 2, FP32_SUMS))
    at_once = {"bf16": {"immediate_grad_update": True}}
    yield Case("stage 1, bf16, fp32 sums at once", config(1, "bf16", 2, FP32_SUMS | at_once))
    aligned = config(2, "bf16", parameter_alignment=True)
    yield Case("stage 2, bf16, aligned", aligned, widths=ODD_WIDTHS)
    yield Case("stage 1, bf16, fp32 sums, offload", config(1, "bf16", 2, FP32_SUMS | ADAMW, **TO_HOST))
    yield Case("stage 1, fp16, fp32 sums", config(1, "fp16", 2, FP32_SUMS))
    yield Case("stage 2, bf16, fp32 sums", config(2, "bf16", 2, FP32_SUMS))
    yield Case("stage 3, bf16, fp32 sums", config(3, "bf16", 2, FP32_SUMS))
    yield Case("stage 2, bf16, fp32 sums, offload", config(2, "bf16", 2, FP32_SUMS | ADAMW, **TO_HOST))
    yield Case("stage 1, bf16, overlap", config(1, "bf16", 2, overlap_comm=True))
    yield Case("stage 2, bf16, overlap", config(2, "bf16", overlap_comm=True))
    yield Case("stage 2, bf16, no bucket", config(2, "bf16", contiguous_gradients=False))
    yield Case("stage 2, bf16, all-reduce", config(2, "bf16", reduce_scatter=False))
    yield Case("stage 2, bf16, by owner", config(2, "bf16", use_multi_rank_bucket_allreduce=False))
    yield Case("stage 2, bf16, fp32 on the wire", config(2, "bf16", 1, {"communication_data_type": "fp32"}))
    yield Case("stage 3, bf16, fp32 on the wire", config(3, "bf16", 1, {"communication_data_type": "fp32"}))
    yield Case("stage 3, bf16, all-reduce", config(3, "bf16", reduce_scatter=False))
    yield Case("stage 3, bf16, all-reduced weights", config(3, "bf16", stage3_use_all_reduce_for_fetch_params=True))
    near = {"stage3_max_reuse_distance": 0, "stage3_prefetch_bucket_size": 0}
    yield Case("stage 3, bf16, nothing kept", config(3, "bf16", 2, **near))
    yield Case("stage 3, bf16, half kept", config(3, "bf16", **near | {"stage3_max_reuse_distance": 20_000}))
    yield Case("stage 3, bf16, one ahead", config(3, "bf16", **near, stage3_allgather_sequential=True))
    yield Case("stage 3, bf16, small stay", config(3, "bf16", **near, stage3_param_persistence_threshold=7000))
    yield Case("stage 3, bf16, groups", config(3, "bf16", 2, **near, zero_hpz_partition_size=2))
    yield Case("stage 3, bf16, no bucket", config(3, "bf16", contiguous_gradients=False))
    yield Case("stage 3, bf16, both on host", config(3, "bf16", 1, ADAMW, **TO_HOST, **SHARDS_TO_HOST))
    yield Case("stage 3, bf16, weights on host", config(3, "bf16", **SHARDS_TO_HOST))
    partly = {"offload_optimizer": {"device": "cpu", "pin_memory": False, "ratio": 0.5}, "sub_group_size": 5000}
    yield Case("stage 3, bf16, partly on host", config(3, "bf16", 1, ADAMW, **partly))
    yield from disk_cases()
    masters = {"bf16": {"bf16_master_weights_and_grads": True}}
    yield Case("stage 2, bf16 masters, offload", config(2, "bf16", 1, ADAMW | masters, **TO_HOST))
    states = {"bf16": {"bf16_master_weights_and_grads": True, "bf16_optimizer_states": True}}
    yield Case("stage 2, bf16 states, offload", config(2, "bf16", 1, ADAMW | states, **TO_HOST))
    yield Case("stage 3, bf16 states", config(3, "bf16", 1, states))


def disk_cases() -> Iterator[Case]:
    """Yield what is swapped to NVMe: optimizer states in one or two sub-groups, and weights."""
    states = {"device": "nvme", "buffer_count": 5, "pin_memory": False}
    weights = {"device": "nvme", "max_in_cpu": 0, "buffer_size": 1_100_000, "pin_memory": False}
    groups = {"sub_group_size": 500_000}
    for name, members in {
        "states": {"offload_optimizer": states | {"nvme_path": "states"}},
        "states in groups": {"offload_optimizer": states | {"nvme_path": "groups"}, **groups},
        "states and weights": {
            "offload_optimizer": states | {"nvme_path": "both"},
            "offload_param": weights | {"nvme_path": "both"},
        },
        "weights": {**TO_HOST, "offload_param": weights | {"nvme_path": "weights"}, **groups},
    }.items():
        yield Case(f"stage 3, bf16, {name} on NVMe", config(3, "bf16", 1, ADAMW, **members), widths=LARGE_WIDTHS)


def recommended_cases() -> Iterator[Case]:
    """Yield what ``recommend`` writes for each stage and offload, with buckets as small as the model is.

    Small tensors are sharded as well, which makes the figures sharper.
    """
    model = Described("small", Model(sum(WIDTHS[:-1]) * 100), None, "", exact=False)
    request = Request(model, Machine(gpus=2), Workload(2), nvme_path="small")
    for variant in VARIANTS:
        if not variant.uses_nvme:
            found = config_for(request, variant, TUNINGS[0], knowledge())
            found["zero_optimization"]["stage3_param_persistence_threshold"] = 0
            for section in ("offload_optimizer", "offload_param"):
                found["zero_optimization"].get(section, {}).update({"pin_memory": False} if variant.stage else {})
            yield Case(f"recommended {variant.name}", found)


CASES = (*cases(), *recommended_cases())


def context(wanted: Config) -> Context:
    """Return a config as rules see it."""
    return View(parse(json.dumps(wanted)), Settings()).context


def ask(jobs: list[dict[str, Any]]) -> list[list[dict[str, Any]]]:
    """Return what each rank of each job answers."""
    environment = training_environment()
    environment["PYTHONPATH"] += f"{os.pathsep}{ROOT}"
    child = subprocess.run(
        [torch_python(), str(Path(__file__).with_name("memory_judge.py"))],
        input="".join(json.dumps(job) + "\n" for job in jobs),
        capture_output=True,
        text=True,
        env=environment,
        timeout=600,
        check=False,
    )
    told = [json.loads(line)["ranks"] for line in child.stdout.splitlines()]
    assert len(told) == len(jobs), child.stderr[-2000:]
    return told


ESTIMATES: tuple[tuple[int, dict[str, Any]], ...] = tuple(
    (stage, {"total_params": 7_000_000_000, "num_gpus_per_node": 4, "num_nodes": nodes, "cpu_offload": offload, **more})
    for nodes in (1, 2)
    for stage, offload, more in (
        (2, False, {}),
        (2, True, {}),
        (3, False, {"largest_layer_params": 0, "cpu_offload_params": False, "zero_init": True}),
        (3, True, {"largest_layer_params": 0, "cpu_offload_params": False, "zero_init": True}),
        (3, True, {"largest_layer_params": 0, "cpu_offload_params": True, "zero_init": True}),
    )
)


def optimizers() -> list[tuple[str, dict[str, Any], int]]:
    """Return the classes of torch with parameters, and the elements of state that the facts say they keep."""
    found: list[tuple[str, dict[str, Any], int]] = []
    known = knowledge()
    for name in ("SGD", "RMSprop", "ASGD", "Adadelta", "Adamax", "NAdam", "RAdam", "Rprop", "SparseAdam", "Adagrad"):
        facts = known.optimizer(name)
        assert facts is not None
        assert facts.states is not None
        found.append((name, {"lr": 0.01}, facts.states))
        found += [(name, {"lr": 0.01, one: 0.9}, facts.states + more) for one, more in facts.switched_states.items()]
    for name in ("Adam", "AdamW"):
        facts = known.optimizer(name)
        assert facts is not None
        assert facts.states is not None
        found += [(name, {}, facts.states), (name, {"amsgrad": True}, facts.states + facts.switched_states["amsgrad"])]
    return found


@pytest.fixture(scope="module")
def told() -> dict[str, Any]:
    """What one child process answers to everything that this module asks."""
    jobs = [{"config": case.config, "ranks": case.ranks, "widths": case.widths} for case in CASES]
    jobs += [{"optimizer": name, "params": params} for name, params, _ in optimizers()]
    jobs += [{"estimate": stage, "arguments": more | {"additional_buffer_factor": 1}} for stage, more in ESTIMATES]
    answers = ask(jobs)
    return {
        "cases": dict(zip([case.name for case in CASES], answers, strict=False)),
        "optimizers": answers[len(CASES) : len(CASES) + len(optimizers())],
        "estimates": answers[-len(ESTIMATES) :],
    }


@pytest.fixture(params=CASES, ids=lambda case: case.name)
def measured(request: pytest.FixtureRequest, told: dict[str, Any]) -> Measured:
    """What was measured of a case, beside the figures of the model."""
    case: Case = request.param
    ranks = told["cases"][case.name]
    assert not any("error" in rank for rank in ranks), ranks[0]["error"]
    model, seen = Model.of(ranks[0]["tensors"]), context(case.config)
    held, sent = usage(seen, model, case.ranks), traffic(seen, model, case.ranks)
    assert held is not None
    assert sent is not None
    return Measured(case, ranks, held, sent, model)


def bytes_of(found: Measured, *what: What, when: When | None = None) -> int:
    """Return the bytes of kinds of parts, wherever they lie in memory: on CPU all lie together."""
    parts = found.usage.select(what=what, when=None if when is None else (when,))
    parts = tuple(part for part in parts if part.place is not Place.NVME)
    assert all(part.bytes is not None for part in parts)
    return sum(part.bytes or 0 for part in parts)


def slack(found: Measured, *what: What) -> int:
    """Return by how many bytes estimated parts may differ: two tensors at the borders of the shard."""
    if found.usage.select(Place.NVME):
        return SMALL_OR_ALIGNED
    estimated = [part for part in found.usage.select(what=what) if part.surety is not Surety.EXACT]
    return sum(math.ceil(2 * (found.model.largest or 0) * part.width) for part in estimated)


def test_weights_masters_and_states_are_what_the_engine_holds(measured: Measured) -> None:
    allowed = SMALL_OR_ALIGNED if measured.usage.select(Place.NVME) else 0
    for rank in measured.ranks:
        parameters = bytes_of(measured, What.PARAMETERS, when=When.ALWAYS)
        assert rank["kinds"]["parameters"] == pytest.approx(parameters, abs=allowed)
        assert rank["kinds"]["master weights"] == pytest.approx(bytes_of(measured, What.MASTERS), abs=allowed)
        assert rank["kinds"]["optimizer states"] == pytest.approx(bytes_of(measured, What.OPTIMIZER), abs=allowed)


def test_files_hold_what_is_said_to_be_on_nvme(measured: Measured) -> None:
    said = measured.usage.bytes(Place.NVME)
    assert said is not None
    for rank in measured.ranks:
        assert rank["disk"] == pytest.approx(said, abs=SMALL_OR_ALIGNED * bool(said))


def test_between_steps_the_engine_holds_what_always_exists(measured: Measured) -> None:
    standing = bytes_of(measured, *What, when=When.ALWAYS)
    for rank in measured.ranks:
        assert rank["after"] == pytest.approx(standing, abs=64 + slack(measured, What.STAGING))


def test_after_backward_the_gradients_are_there(measured: Measured) -> None:
    """Of stage 1 before the gradient accumulation boundary, of the others at the end of each backward."""
    stage = measured.usage.stage
    first = stage == 1 and len(measured.ranks[0]["backward"]) > 1
    if stage == 1 and not first:
        return
    standing = bytes_of(measured, *What, when=When.ALWAYS)
    gradients = bytes_of(measured, What.GRADIENTS, when=When.BACKWARD)
    groups = bytes_of(measured, What.PARAMETERS, when=When.BACKWARD)
    buckets = bytes_of(measured, What.BUCKETS, when=When.BACKWARD) if first else 0
    allowed = 64 + slack(measured, What.STAGING, What.GRADIENTS)
    for rank in measured.ranks:
        assert rank["backward"][0] == pytest.approx(standing + gradients + groups + buckets, abs=allowed)


def test_buckets_are_as_large_as_said(measured: Measured) -> None:
    for rank in measured.ranks:
        assert rank["buckets"] == bytes_of(measured, What.BUCKETS)


def test_what_is_kept_for_backward_is_whole_layers_of_about_that_size(measured: Measured) -> None:
    layer = max(before * after + after for before, after in itertools.pairwise(measured.case.widths))
    parts = measured.usage.select(what=(What.GATHERED,))
    for rank in measured.ranks:
        assert rank["turn"] == pytest.approx(sum(part.count or 0 for part in parts), abs=layer * bool(parts))


def test_reductions_find_room_in_what_is_said_of_backward(measured: Measured) -> None:
    """The most is counted as if all were held at once, without activations: up to a fifth less is, or a tenth more."""
    said = bytes_of(measured, *What, when=When.ALWAYS) + bytes_of(measured, *What, when=When.BACKWARD)
    for rank in measured.ranks:
        assert 0.8 * said < rank["reducing"] < 1.1 * said


WIDTH = {"float32": 4, "bfloat16": 2, "float16": 2}
KIND = {
    "all_reduce": "all-reduce",
    "reduce": "reduce",
    "all_gather_into_tensor": "all-gather",
    "reduce_scatter_tensor": "reduce-scatter",
}


def test_collectives_move_as_many_bytes_as_said(measured: Measured) -> None:
    if measured.case.ranks == 1:
        assert not measured.traffic.transfers
        return
    steps = measured.traffic.steps
    assert steps is not None
    said: dict[tuple[str, float], int] = {}
    for one in measured.traffic.transfers:
        kind = one.collective.value, one.width
        said[kind] = said.get(kind, 0) + one.elements(measured.model, steps)
    padding = 2 * measured.case.ranks * len(measured.model.tensors) * max(1, steps) * 2
    estimated = any(one.surety is Surety.ESTIMATE for one in measured.traffic.transfers)
    layer = (max(measured.model.tensors) + max(measured.case.widths)) * steps if estimated else 0
    for rank in measured.ranks:
        heard: dict[tuple[str, float], int] = {}
        for name, elements in rank["sent"].items():
            kind, _, dtype = name.partition(" ")
            heard[KIND[kind], WIDTH[dtype]] = heard.get((KIND[kind], WIDTH[dtype]), 0) + elements
        assert heard.keys() == {kind for kind, elements in said.items() if elements}
        for kind, elements in heard.items():
            allowed = padding + (layer if kind[0] == "all-gather" else 0)
            assert elements == pytest.approx(said[kind], abs=allowed)


def test_optimizers_of_torch_keep_as_many_states_as_the_facts_say(told: dict[str, Any]) -> None:
    found = {
        f"{name} {params}": (ranks[0].get("states", ranks[0]), said)
        for (name, params, said), ranks in zip(optimizers(), told["optimizers"], strict=True)
    }
    assert {name: pair for name, pair in found.items() if pair[0] != pair[1]} == {}


@pytest.mark.parametrize("number", range(len(ESTIMATES)), ids=lambda number: str(ESTIMATES[number]))
def test_estimators_of_deepspeed_agree_but_for_what_they_leave_out(told: dict[str, Any], number: int) -> None:
    """They count weights in 16 bit, and gradients, master weights and Adam in fp32; at stage 2 16-bit gradients too.

    What they leave out are the 16-bit gradients that stage 3 sums up beside the fp32 ones of the step, and the copy of
    the updated weights that stage 1 and 2 keep on the host. Both are there in the engines that this module measures:
    the model is right. The host memory of stage 2 is theirs for a node while each process of the job loads the model
    in fp32, or for all nodes together; a node then holds its share of 16 bytes per parameter.
    """
    stage, arguments = ESTIMATES[number]
    offload = bool(arguments["cpu_offload"])
    away = (TO_HOST if offload else {}) | (SHARDS_TO_HOST if arguments.get("cpu_offload_params") else {})
    wanted = config(stage, "bf16", 1, ADAMW, **away, sub_group_size=10**12)
    total, nodes = arguments["total_params"], arguments["num_nodes"]
    ranks = arguments["num_gpus_per_node"] * nodes
    found = usage(context(wanted), Model(total), ranks)
    assert found is not None
    gpu, host = told["estimates"][number][0]["bytes"]
    kinds = [What.PARAMETERS, What.MASTERS, What.OPTIMIZER, What.STEP]
    kinds += [What.GRADIENTS] if stage == 2 and not offload else []
    assert found.bytes(Place.GPU, kinds) == pytest.approx(gpu)
    if offload:
        parts = found.select(Place.HOST, (What.MASTERS, What.OPTIMIZER, What.GRADIENTS))
        counted = [part for part in parts if part.width >= WIDTH["float32"]]
        counted += found.select(Place.HOST, (What.PARAMETERS,))
        on_node = sum(part.bytes or 0 for part in counted) * ranks / nodes
        assert on_node == pytest.approx(16 * total / nodes if stage == 2 else host)
        if stage == 2:
            assert host == pytest.approx(max(on_node * nodes, 4 * ranks * total))
        assert sum(part.width for part in found.select(Place.HOST) if part not in counted) == 2
