"""The child side of ``dsmigrate verify``: runs inside the training processes and watches them from outside.

``site/sitecustomize.py`` loads this package by its path under a name of its own, so that the interpreter that has
torch need not have dsmigrate or anything that dsmigrate needs. Nothing here imports torch or deepspeed: hooks wait
until the script does, and get the modules handed in.
"""

from __future__ import annotations


def start() -> None:
    """Read the job of this process and put everything in place that waits for the script."""
    from .boot import boot  # noqa: PLC0415 - only in processes of a verified run

    boot()
