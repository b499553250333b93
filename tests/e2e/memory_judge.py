"""Measures what real engines hold and send: one job per line of standard input, one answer per line.

A job ``{"config": …, "ranks": …, "widths": […]}`` builds a model of linear layers on so many gloo processes, trains
four optimizer steps, and answers for each rank: the bytes of all live tensors after the engine was made (``init``),
after each backward of the last step and after it, the most while gradients are reduced (``reducing``), the elements
that are gathered between forward and backward (``turn``), the bytes of buckets and of kinds of tensors, and the
elements that went through each collective in the last step. ``{"optimizer": …, "params": …}`` answers with the elements
of state that a torch optimizer keeps per parameter, ``{"estimate": …, "arguments": {…}}`` with what an estimator of
DeepSpeed says.

Compiled kernels are replaced by ones that do nothing; they would change numbers and no sizes.
"""

from __future__ import annotations

import contextlib
import functools
import gc
import itertools
import json
import os
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

from tests.e2e.disk import Disk
from tests.e2e.rule_judge import Kernel

STEPS = 4
"""Stage 3 knows the order of modules, and gathers as in the rest of a run, from the third micro-batch on."""
SMALLEST = 64
"""Bytes up to which a tensor is a counter, a flag or a norm."""
ALIKE, MOST_READINGS = 3, 100
"""Equal readings in a row that are taken for the truth, and the readings after which the last one is."""
REDUCES = ("all_reduce", "reduce", "reduce_scatter_tensor")
SENDS = (*REDUCES, "all_gather_into_tensor", "all_to_all_single")
Answer = dict[str, Any]


class Kernels(Kernel):
    """Compiled extensions that do nothing, but for the one that reads and writes files."""

    def __getattr__(self, name: str) -> Any:
        return Disk if name == "aio_handle" else super().__getattr__(name)


def main() -> None:
    """Answer what standard input asks for."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # DeepSpeed's own talk
    jobs = [json.loads(line) for line in sys.stdin]
    prepare()
    told: list[Answer] = [{}] * len(jobs)
    for ranks in sorted({job.get("ranks", 1) for job in jobs}):
        wanted = [index for index, job in enumerate(jobs) if job.get("ranks", 1) == ranks]
        for index, answer in zip(wanted, on_ranks(ranks, [jobs[index] for index in wanted]), strict=True):
            told[index] = answer
    answers.writelines(json.dumps(answer) + "\n" for answer in told)
    answers.flush()


def prepare() -> None:
    """Import DeepSpeed and replace what needs a compiler."""
    os.environ.update(TORCHDYNAMO_DISABLE="1")
    import cpuinfo  # noqa: PLC0415 - after DeepSpeed's talk was sent elsewhere

    cpuinfo.get_cpu_info = lambda: {"vendor_id_raw": "any"}  # asks for a second, each time
    import deepspeed  # noqa: PLC0415
    import torch  # noqa: PLC0415
    from deepspeed.ops.op_builder.builder import OpBuilder  # noqa: PLC0415
    from deepspeed.ops.op_builder.cpu import NotImplementedBuilder  # noqa: PLC0415

    torch.set_num_threads(1)
    type(deepspeed.get_accelerator()).is_fp16_supported = lambda *_: True  # whatever this processor multiplies fast
    for builder in (OpBuilder, NotImplementedBuilder):
        builder.load = lambda *_, **__: Kernels(1)


def on_ranks(ranks: int, jobs: Sequence[Answer]) -> list[Answer]:
    """Return the answers to jobs that run on so many processes, one job after the other; each holds what ranks say."""
    with tempfile.TemporaryDirectory() as folder:
        children = [fork(rank, ranks, jobs, Path(folder)) for rank in range(ranks)]
        for child in children:
            os.waitpid(child, 0)
        said = [json.loads((Path(folder) / f"{rank}.json").read_text()) for rank in range(ranks)]
    return [{"ranks": list(of_ranks)} for of_ranks in zip(*said, strict=True)]


def fork(rank: int, ranks: int, jobs: Sequence[Answer], folder: Path) -> int:
    """Start a rank that does the jobs; return its process id."""
    child = os.fork()
    if child:
        return child
    os.environ.update(RANK=str(rank), LOCAL_RANK=str(rank), WORLD_SIZE=str(ranks), LOCAL_WORLD_SIZE=str(ranks))
    import deepspeed  # noqa: PLC0415
    import torch  # noqa: PLC0415

    os.chdir(folder)  # paths on "NVMe" are relative
    store = torch.distributed.FileStore(str(folder / "store"), ranks)
    torch.distributed.init_process_group(
        "gloo", store=store, rank=rank, world_size=ranks, timeout=timedelta(seconds=60)
    )
    deepspeed.init_distributed("gloo", verbose=False)
    sent, reducing = listen()
    said = []
    for job in jobs:
        try:
            said.append(done(job, sent, reducing))
        except Exception as error:  # noqa: BLE001 - whatever it is, it is the answer
            said.append({"error": f"{type(error).__name__}: {error}"})
    (folder / f"{rank}.json").write_text(json.dumps(said))
    os._exit(0)  # gloo aborts now and then at interpreter exit


def done(job: Answer, sent: Counter[str], reducing: list[int]) -> Answer:
    """Return the answer to a job."""
    if "optimizer" in job:
        return states(job["optimizer"], job["params"])
    if "estimate" in job:
        return {"bytes": estimated(job["estimate"], job["arguments"])}
    return measured(job, sent, reducing)


def estimated(stage: int, arguments: Answer) -> list[float]:
    """Return the first two figures of DeepSpeed's estimator: bytes of a GPU, and of the host of a node."""
    from deepspeed.runtime.zero import stage3, stage_1_and_2  # noqa: PLC0415

    if stage == 2:
        host, gpu = stage_1_and_2.estimate_zero2_model_states_mem_needs(**arguments)
        return [gpu, host]
    host, gpu, _ = stage3.estimate_zero3_model_states_mem_needs(**arguments)
    return [gpu, host]


def states(name: str, params: Answer) -> Answer:
    """Return the elements of state per parameter of an optimizer of torch after a step."""
    import torch  # noqa: PLC0415

    weight = torch.nn.Parameter(torch.ones(32, 32))
    optimizer = getattr(torch.optim, name)([weight], **params)
    weight.grad = torch.ones_like(weight).to_sparse() if name == "SparseAdam" else torch.ones_like(weight)
    optimizer.step()
    held = [value for value in optimizer.state[weight].values() if isinstance(value, torch.Tensor)]
    return {"states": sum(value.numel() for value in held if value.numel() > 1) / weight.numel()}


def listen() -> tuple[Counter[str], list[int]]:
    """Return a count of the elements that go through collectives, "kind dtype", and the bytes held meanwhile.

    Both grow as collectives go on; the bytes are noted at reductions of gradients, after the list was given one entry.
    """
    import deepspeed  # noqa: PLC0415
    import torch  # noqa: PLC0415

    sent: Counter[str] = Counter()
    reducing: list[int] = []
    backend = deepspeed.comm.comm.cdb

    def heard(kind: str, send: Any, *arguments: Any, **named: Any) -> Any:
        tensors = [one for one in (*arguments, *named.values()) if isinstance(one, torch.Tensor)]
        largest = max(tensors, key=lambda one: int(one.numel()))
        if largest.numel() * largest.element_size() > SMALLEST:
            sent[f"{kind} {str(largest.dtype).removeprefix('torch.')}"] += largest.numel()
            if reducing and kind in REDUCES and held() > max(reducing):
                reducing.append(live())
        return send(*arguments, **named)

    for kind in SENDS:
        setattr(backend, kind, functools.partial(heard, kind, getattr(backend, kind)))
    return sent, reducing


def measured(job: Answer, sent: Counter[str], reducing: list[int]) -> Answer:
    """Train a small model and return what the rank held and sent in the last step."""
    import deepspeed  # noqa: PLC0415
    import torch  # noqa: PLC0415
    from deepspeed.utils import groups  # noqa: PLC0415

    gc.collect()
    gc.freeze()  # what is there already is none of the job's
    groups._ZERO_PARAM_INTRA_PARALLEL_GROUP = None  # kept from engine to engine
    torch.manual_seed(0)
    widths = job["widths"]
    layers = [torch.nn.Linear(*pair) for pair in itertools.pairwise(widths)]
    model = torch.nn.Sequential(*layers)
    tensors = [parameter.numel() for parameter in model.parameters()]
    own = None if "optimizer" in job["config"] else torch.optim.AdamW(model.parameters(), lr=1e-3)
    engine, optimizer, *_ = deepspeed.initialize(
        model=model, model_parameters=list(model.parameters()), optimizer=own, config=job["config"]
    )
    answer: Answer = {"tensors": tensors, "wrapper": type(optimizer).__name__, "init": live()}
    buckets = watched(optimizer)
    half = next((kind for kind in ("fp16", "bf16") if job["config"].get(kind, {}).get("enabled")), "")
    dtype = {"": torch.float32, "fp16": torch.float16, "bf16": torch.bfloat16}[half]
    steps = engine.gradient_accumulation_steps()
    for step in range(STEPS):
        sent.clear()
        reducing[:] = [0] if step == STEPS - 1 else []
        answer["backward"] = []
        for _ in range(steps):
            loss = engine(torch.randn(2, widths[0]).to(dtype)).float().pow(2).mean()
            answer["turn"] = gathered(list(model.parameters()))
            engine.backward(loss)
            del loss
            if step == STEPS - 1:
                answer["backward"].append(live())
            engine.step()
    answer |= {"after": live(), "sent": dict(sent), "buckets": max(buckets, default=0), "reducing": max(reducing)}
    answer |= {"kinds": kinds(engine, optimizer), "disk": on_disk(job["config"], torch.distributed.get_rank())}
    engine.destroy()
    return answer


def on_disk(config: Answer, rank: int) -> int:
    """Return the bytes of the files that a rank has below the paths of a config."""
    zero = config["zero_optimization"]
    paths = {zero.get(name, {}).get("nvme_path", "") for name in ("offload_optimizer", "offload_param")} - {""}
    files = [file for path in paths for file in Path(path).rglob(f"rank{rank}/*")]
    return sum(file.stat().st_size for file in files)


def gathered(parameters: Sequence[Any]) -> int:
    """Return the elements of the parameters that are whole now, at stage 3."""
    return sum(one.ds_numel for one in parameters if hasattr(one, "ds_status") and one.ds_status.name == "AVAILABLE")


def live() -> int:
    """Return the bytes of all tensors that were made since the last job, gradients included.

    Threads of gloo let go of a tensor some time after its collective; the reading is taken when it stays as it is.
    """
    readings = [held()]
    while len(readings) < MOST_READINGS and (len(readings) < ALIKE or len(set(readings[-ALIKE:])) > 1):
        time.sleep(0.005)
        readings.append(held())
    return readings[-1]


def held() -> int:
    """Return the bytes of all tensors that are there now."""
    import torch  # noqa: PLC0415

    gc.collect()
    found = [one for one in gc.get_objects() if isinstance(one, torch.Tensor)]
    found += [one.grad for one in found if one.is_leaf and one.grad is not None]
    return size(found)


def size(tensors: Sequence[Any]) -> int:
    """Return the bytes behind some tensors, each storage once."""
    import torch  # noqa: PLC0415

    held = {}
    for one in tensors:
        if one.layout is torch.strided and not one.is_meta:
            storage = one.untyped_storage()
            if storage.nbytes() > SMALLEST:
                held[storage.data_ptr()] = storage.nbytes()
    return sum(held.values())


def watched(optimizer: Any) -> list[int]:
    """Return a list that fills with the bytes of the standing buckets, each time gradients are reduced."""
    found: list[int] = []
    for name in ("average_tensor", "partition_grads"):
        inner = getattr(optimizer, name, None)
        if inner is None:
            continue

        def seen(*arguments: Any, _inner: Any = inner, **named: Any) -> Any:
            buffers = [bucket.buffer for bucket in optimizer.ipg_buckets.values()]
            flat = [one for buffer in buffers for one in (buffer if isinstance(buffer, list) else [buffer])]
            found.append(size([one for one in flat if one is not None]))
            return _inner(*arguments, **named)

        setattr(optimizer, name, seen)
    return found


def kinds(engine: Any, optimizer: Any) -> Answer:
    """Return the bytes of weights, master weights and optimizer states."""
    import torch  # noqa: PLC0415

    parameters = list(engine.module.parameters())
    shards = [one.ds_tensor for one in parameters if hasattr(one, "ds_tensor")]
    masters: list[Any] = []
    for name in ("single_partition_of_fp32_groups", "fp32_groups_flat_partition", "fp32_partitioned_groups_flat"):
        masters += getattr(optimizer, name, [])
    for name in ("fp32_groups_flat", "fp32_groups"):
        masters += flattened(getattr(optimizer, name, []))
    basic = getattr(optimizer, "optimizer", optimizer)
    held = [value for state in basic.state.values() for value in state.values() if isinstance(value, torch.Tensor)]
    return {"parameters": size(shards or parameters), "master weights": size(masters), "optimizer states": size(held)}


def flattened(values: Any) -> Iterator[Any]:
    """Yield the tensors of nested lists."""
    for value in values:
        if isinstance(value, list):
            yield from flattened(value)
        else:
            yield value


if __name__ == "__main__":
    with contextlib.suppress(BrokenPipeError):
        main()
