"""On which device to train: the GPUs there are, or the CPU."""

from __future__ import annotations

import os
import shutil
import subprocess
from dataclasses import dataclass

from dsmigrate.verify.model import VerifyError


@dataclass(frozen=True, slots=True)
class Device:
    """Where to train, why, and whether the script is told that the CPU is a CUDA device."""

    cpu: bool
    pretend: bool
    why: str


def choose(asked: str, processes: int) -> Device:
    """Return the device for ``asked``, one of request.DEVICES; VerifyError where GPUs are asked for and lack."""
    there = gpus()
    if asked == "cpu":
        return Device(cpu=True, pretend=False, why="CPU, as on a machine without CUDA")
    if asked == "pretend":
        return Device(cpu=True, pretend=True, why="CPU in the place of CUDA devices")
    if there >= processes:
        return Device(cpu=False, pretend=False, why=f"{processes} of {there} GPUs")
    if asked == "cuda":
        raise VerifyError(
            f"--device cuda with {processes} processes needs as many GPUs, and there are {there}: "
            "fewer --processes, or --device pretend"
        )
    said = "there is no GPU" if there == 0 else f"{processes} processes do not fit on {there} GPU"
    return Device(cpu=True, pretend=True, why=f"CPU in the place of CUDA devices, as {said}")


def gpus() -> int:
    """Return how many NVIDIA GPUs this process may use."""
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    if visible is not None and visible.strip() in {"", "-1"}:
        return 0
    tool = shutil.which("nvidia-smi")
    if tool is None:
        return 0
    try:
        listed = subprocess.run([tool, "-L"], capture_output=True, text=True, timeout=30, check=False)  # noqa: S603
    except (OSError, subprocess.TimeoutExpired):
        return 0
    count = sum(line.startswith("GPU ") for line in listed.stdout.splitlines()) if listed.returncode == 0 else 0
    return min(count, len(visible.split(","))) if visible is not None else count
