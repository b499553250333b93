"""A script that registers a communication hook, and what became of it."""

from __future__ import annotations

from typing import Any

from tests.codemod.checks import Migrated, check_refused, convert, script

HOOKS = "torch.distributed.algorithms.ddp_comm_hooks"
IMPORTS = f"""
from {HOOKS} import default as hooks
from {HOOKS} import powerSGD_hook as powersgd
from {HOOKS} import quantization_hooks, post_localSGD_hook, debugging_hooks, ddp_zero_hook, optimizer_overlap_hooks
"""
OPTIONS = """
parser.add_argument("--fp16-hook", action="store_true")
parser.add_argument("--plain", action="store_false", dest="compress")
parser.add_argument("--hook", default="none")
"""
FP16 = "model.register_comm_hook(None, hooks.fp16_compress_hook)"
HALF, BF = "fp16", "bf16"
BF16 = "model.register_comm_hook(None, hooks.bf16_compress_hook)"


def hooked(registration: str, *, to: dict[str, Any] | None = None, **parts: str) -> Migrated:
    """The script with a registration, converted."""
    parts.setdefault("imports", IMPORTS)
    parts.setdefault("options", OPTIONS)
    return convert(to=to, resume=registration, **parts)


def chosen(migrated: Migrated) -> str | None:
    """The expression that the script gives the key, or what the config says."""
    for line in migrated.code.splitlines():
        left, separator, right = line.strip().partition(" = ")
        if separator and left == 'ds_config["communication_data_type"]':
            return right
    found = migrated.config.get("communication_data_type")
    return None if found is None else f'"{found}"'


def refused(registration: str, line: str, message: str, **parts: str) -> None:
    source = script(imports=IMPORTS, options=OPTIONS, resume=registration, **parts)
    check_refused(source, "MG903", line, message)
