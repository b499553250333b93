"""What stands in the place of CUDA under ``dsmigrate verify``, asked as scripts ask it, in a real torch."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from .conversion import REPOSITORY
from .launching import torch_python

pytestmark = [pytest.mark.deepspeed, pytest.mark.e2e]

START = """
import sys
sys.path.insert(0, {server!r})
import torch
from dsmigrate.verify.harness import determinism, shim
from dsmigrate.verify.harness.job import Job
"""
PRETEND = START + "shim.pretend(torch, Job(trace='', work={work!r}, origin='', steps=1, processes=2, port=1))\n"


def run(folder: Path, source: str, start: str = PRETEND) -> None:
    script = folder / "script.py"
    script.write_text(start.format(server=str(REPOSITORY / "server"), work=str(folder)) + source, encoding="utf-8")
    done = subprocess.run(
        [torch_python(), str(script)],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )
    assert done.returncode == 0, done.stderr[-3000:]


def test_typed_tensors_of_cuda_are_tensors_of_the_cpu(tmp_path: Path) -> None:
    run(tmp_path, """
assert torch.cuda.FloatTensor([1, 2]).dtype is torch.float32
assert torch.cuda.ByteTensor([1]).dtype is torch.uint8
assert torch.cuda.DoubleTensor(2, 3).shape == (2, 3)
assert torch.cuda.BoolTensor([True]).all()
assert isinstance(torch.ones(1), torch.cuda.FloatTensor)
assert not isinstance(torch.ones(1), torch.cuda.LongTensor)
assert torch.ones(2).type(torch.cuda.LongTensor).dtype is torch.int64
assert torch.ones(2).type("torch.cuda.HalfTensor").dtype is torch.float16
assert torch.ones(2).type() == "torch.FloatTensor"
assert torch.ones(2).type(torch.int32).dtype is torch.int32
torch.set_default_tensor_type(torch.cuda.DoubleTensor)
assert torch.zeros(1).dtype is torch.float64
torch.set_default_tensor_type("torch.cuda.FloatTensor")
assert torch.zeros(1).dtype is torch.float32
""")  # fmt: skip


def test_the_rarer_calls_of_cuda_answer(tmp_path: Path) -> None:
    run(tmp_path, """
assert torch.cuda.memory.max_memory_allocated() == 0
assert torch.cuda.nccl.version() >= (2, 0)
assert torch.cuda.random.get_rng_state().equal(torch.get_rng_state())
torch.cuda.profiler.start()
with torch.cuda.profiler.profile():
    torch.cuda.memory._record_memory_history()
torch.cuda.profiler.stop()
torch.cuda.cudart().cudaProfilerStart()
assert torch.cuda.default_generators[0].initial_seed() >= 0
torch.set_default_device("cuda:1")
assert torch.ones(2).device.type == "cpu"
torch.set_default_device(None)
""")  # fmt: skip


def test_norms_on_the_cpu_are_as_exact_as_on_a_gpu(tmp_path: Path) -> None:
    run(tmp_path, """
torch.manual_seed(0)
weight = torch.nn.Parameter(torch.zeros(2048, 2048))
gradient = torch.randn(2048, 2048) * 1e-2
exact = float(gradient.double().norm())
plain = float(torch.linalg.vector_norm(gradient))
assert abs(plain / exact - 1) > 1e-5  # or there is nothing to mend
determinism.settle(torch, cpu=True)
norms = torch.linalg.vector_norm(gradient), gradient.norm(), torch.norm(gradient), torch._foreach_norm([gradient])[0]
for norm in norms:
    assert norm.dtype is torch.float32
    assert abs(float(norm) / exact - 1) < 1e-6
weight.grad = gradient.clone()
assert abs(float(torch.nn.utils.clip_grad_norm_([weight], 0.5)) / exact - 1) < 1e-6
assert abs(float(weight.grad.double().norm()) / 0.5 - 1) < 1e-6
assert torch.linalg.vector_norm(gradient, dim=1).shape == (2048,)
assert torch.linalg.vector_norm(gradient, float("inf")) == gradient.abs().max()
assert torch.linalg.vector_norm(gradient, dtype=torch.float64).dtype is torch.float64
assert torch.linalg.vector_norm(gradient.double()).dtype is torch.float64
needed = gradient.clone().requires_grad_()
needed.norm().backward()
assert needed.grad is not None
""", START + "torch.set_num_threads(1)\n")  # fmt: skip


def test_a_script_cannot_ask_for_kernels_that_differ_from_run_to_run(tmp_path: Path) -> None:
    run(tmp_path, """
determinism.settle(torch, cpu=True)
torch.backends.cudnn.benchmark = True
torch.backends.cudnn.deterministic = False
torch.backends.cudnn.allow_tf32 = True
assert torch.backends.cudnn.benchmark is True  # as the script has set it
assert torch.backends.cudnn.deterministic is False
torch.backends.cuda.matmul.allow_tf32 = True
torch.set_float32_matmul_precision("high")
assert torch._C._get_cudnn_benchmark() is False
assert torch._C._get_cudnn_deterministic() is True
assert torch._C._get_cudnn_allow_tf32() is False
assert torch._C._get_cublas_allow_tf32() is False
assert torch.get_float32_matmul_precision() == "highest"
""", START)  # fmt: skip


def test_the_norm_of_gradients_is_taken_in_64_bits(tmp_path: Path) -> None:
    run(tmp_path, """
from dsmigrate.verify.harness.gradients import norm
torch.set_num_threads(1)
weight = torch.nn.Parameter(torch.zeros(2048, 2048))
weight.grad = torch.randn(2048, 2048) * 1e-2
assert abs(norm(torch, [weight]) / float(weight.grad.double().norm()) - 1) < 1e-12
wave = torch.nn.Parameter(torch.zeros(3, dtype=torch.complex64))
wave.grad = torch.tensor([3 + 4j, 0, 0])
assert norm(torch, [wave]) == 5.0
assert norm(torch, [torch.nn.Parameter(torch.zeros(1))]) is None
""", START)  # fmt: skip


def test_inputs_are_told_by_every_bit_and_its_place(tmp_path: Path) -> None:
    run(tmp_path, """
from types import SimpleNamespace
from dsmigrate.verify.harness import inputs
batch = torch.randn(8, 3, generator=torch.Generator().manual_seed(0))
number, product, norm, kind = inputs.seen(torch, batch)
assert inputs.seen(torch, batch.clone())[0] == number
assert inputs.seen(torch, batch.flip(0))[0] != number
assert abs(inputs.seen(torch, batch.flip(0))[1] - product) > 1e-2 * norm
assert abs(inputs.seen(torch, batch.bfloat16())[1] - product) < 1e-2 * norm
assert kind == "float32"
for other in (torch.tensor(3.0), torch.tensor([True]), batch.t(), batch.half(), torch.ones(3, dtype=torch.complex64)):
    assert inputs.seen(torch, other)[2] > 0
weights, _ = inputs._weights_on(torch, batch.device)
class Elsewhere(torch.Tensor):  # as on a GPU, where the bits are weighed and added up
    device = property(lambda self: SimpleNamespace(type="cuda"))
torch.zeros = (lambda zeros: lambda *sizes, device=None, **words: zeros(*sizes, **words))(torch.zeros)
flat = batch.reshape(-1)
numbers = {int(inputs._number(torch, one.as_subclass(Elsewhere), weights)) for one in (flat, flat + 0, flat.flip(0))}
assert len(numbers) == 2
""", START)  # fmt: skip
