"""The memory and communication model against real engines: tensors and collectives of small models on CPU.

Every part that the model calls exact is measured to the byte, whatever it only bounds or estimates within what its
docstring allows: whole tensors at the borders of a shard, whole layers that are kept for backward.
"""

from __future__ import annotations

import itertools
import json
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from dsmigrate.document import parse
from dsmigrate.editing.view import View
from dsmigrate.knowledge import knowledge
from dsmigrate.memory import Model, Place, Surety, Traffic, Usage, What, When, traffic, usage
from dsmigrate.rules import Settings
from dsmigrate.rules.context import Context

from .judging import ask
from .memory_cases import ADAMW, CASES, SHARDS_TO_HOST, TO_HOST, Case, Config, config

pytestmark = [pytest.mark.deepspeed, pytest.mark.e2e, pytest.mark.xdist_group("memory")]

ROOT = Path(__file__).resolve().parents[2]
SMALL_OR_ALIGNED = 2**16
"""Bytes by which memory with NVMe may differ: biases are not swapped, and buffers are aligned to 1024 bytes."""


@dataclass(frozen=True)
class Measured:
    """What the ranks of a case held and sent, and the model's figures for the same."""

    case: Case
    ranks: list[dict[str, Any]]
    usage: Usage
    traffic: Traffic
    model: Model


def context(wanted: Config) -> Context:
    """Return a config as rules see it."""
    return View(parse(json.dumps(wanted)), Settings()).context


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
    answers = [answer["ranks"] for answer in ask("memory_judge.py", jobs, path=[ROOT])]
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
