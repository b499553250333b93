"""Copies of the communication hooks of torch in a script."""

from __future__ import annotations

import pytest

from tests.codemod.steps.comm_hook_scripts import chosen, hooked, refused

COPY = """
import torch.distributed as d

def compress(
    process_group: d.ProcessGroup, bucket: d.GradBucket
) -> torch.futures.Future[torch.Tensor]:
    \"\"\"Casts to half precision.\"\"\"
    group = process_group if process_group is not None else d.group.WORLD
    world_size = group.size()

    compressed = bucket.buffer().to(torch.float16).div_(world_size)
    fut = d.all_reduce(compressed, group=group, async_op=True).get_future()

    def decompress(fut):
        decompressed = bucket.buffer()
        # in place
        decompressed.copy_(fut.value()[0])
        return decompressed

    return fut.then(decompress)
"""
OWN = "model.register_comm_hook(None, compress)"


@pytest.mark.parametrize(
    ("old", "new", "format_"),
    [
        ("", "", "fp16"),
        ("torch.float16", "torch.half", "fp16"),
        ("torch.float16", "torch.bfloat16", "bf16"),
        ("bucket.buffer()", "bucket.get_tensor()", "fp16"),
        ("group.size()", "process_group.size() if process_group is not None else d.get_world_size()", "fp16"),
    ],
)
def test_a_copy_of_a_hook_of_any_release_is_that_hook(old: str, new: str, format_: str) -> None:
    migrated = hooked(OWN, helpers=COPY.replace(old, new) if old else COPY)
    assert chosen(migrated) == f'"{format_}"'


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (".div_(world_size)", ""),
        ("(torch.float16)", "(torch.float8_e4m3fn)"),
        ("group.size()", "2"),
        ("import torch.distributed as d", "import torch.distributed as d\nfrom mine import world as d"),
        ("import torch.distributed as d", "import mine as d"),
        ("        decompressed = bucket.buffer()", "        decompressed = bucket.buffer().mul_(2)"),
        ("compressed = bucket", "other = bucket"),
        ("    return fut.then(decompress)", "    return fut"),
    ],
)
def test_a_hook_that_differs_from_torchs_in_anything_is_refused(old: str, new: str) -> None:
    assert old in COPY
    refused(OWN, OWN, "compress", helpers=COPY.replace(old, new))
