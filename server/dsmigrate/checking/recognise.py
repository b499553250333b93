"""Whether a file is a DeepSpeed config: by its name where that is plain, and by its keys."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import PurePath

from dsmigrate.document import Document, Object
from dsmigrate.knowledge import knowledge

SUFFIXES = frozenset({".json", ".jsonc", ".hjson", ".json5"})
YAML = frozenset({".yaml", ".yml"})
"""Suffixes of the files of ``accelerate launch``."""
_NAME = re.compile(
    r"(^|[_\-. ])(ds|deepspeed|zero-?[0-3])([_\-. ]|config|conf|cfg|$)|deepspeed|^zero[_-]?[0-3]", re.IGNORECASE
)
_PLAIN = re.compile(r"^(ds|deepspeed)[_-]?(config|conf|cfg)", re.IGNORECASE)
"""What a file is called that can be nothing else, whatever keys it has so far."""
_OTHERS = re.compile(
    r"^(package(-lock)?|tsconfig|composer|manifest|settings|launch|tasks|.*\.schema)\.json$", re.IGNORECASE
)
_TEMPLATE = re.compile(r"(^|[_\-. ])(template|tmpl)([_\-. ]|$)", re.IGNORECASE)
"""What a file is called that a script fills in: nothing loads it as it stands."""
_ACCELERATE = re.compile(
    rb"(?m)^(?:deepspeed_config[ \t]*:[ \t]*(?:\r?$|[#&]|\{(?![ \t]*\}))|distributed_type:[ \t]*[\"']?DEEPSPEED)"
)
"""What the YAML of ``accelerate launch`` holds that says something of DeepSpeed: a mapping, not the path of another
program's file."""
STRONG = frozenset(
    {
        "zero_optimization",
        "train_micro_batch_size_per_gpu",
        "zero_allow_untested_optimizer",
        "zero_force_ds_cpu_optimizer",
        "steps_per_print",
        "wall_clock_breakdown",
        "flops_profiler",
        "comms_logger",
        "csv_monitor",
        "torch_autocast",
        "data_efficiency",
        "activation_checkpointing",
        "gradient_predivide_factor",
        "prescale_gradients",
        "communication_data_type",
        "hybrid_engine",
        "sparse_attention",
        "compression_training",
    }
)
"""Top-level keys that hardly anything but a DeepSpeed config has."""

USUAL = frozenset({"train_batch_size", "gradient_accumulation_steps", "gradient_clipping"})
"""Top-level keys that other configs have too: they make one of DeepSpeed's where most of its keys are DeepSpeed's."""


_WORDS = tuple(name.encode() for name in sorted(STRONG | USUAL | {"fp16", "bf16"}))


def may_be_config(name: str, data: bytes) -> bool:
    """Return whether a file is worth to be parsed: it is called like a config, or holds a key that tells one."""
    return is_config_name(name) or any(word in data for word in _WORDS)


def is_config_name(name: str) -> bool:
    """Return whether a file is called as configs are: ``ds_config.json``, ``zero3.json``, ``deepspeed.hjson``."""
    path = PurePath(name)
    return path.suffix.lower() in SUFFIXES and bool(_NAME.search(path.stem)) and not _OTHERS.match(path.name)


def is_accelerate(data: bytes) -> bool:
    """Return whether the content of a YAML file is that of ``accelerate launch``, and says something of DeepSpeed."""
    return bool(_ACCELERATE.search(data))


def looks_like_config(document: Document) -> bool:
    """Return whether a text has the keys of a DeepSpeed config.

    One telling key is enough, or one that is usual among at least as many keys of DeepSpeed as others (the arguments of
    a Trainer have a few of them), or an ``fp16`` or ``bf16`` section that is an object with ``enabled``. Text that is
    not an object, or that is a JSON Schema, is none.
    """
    root = document.root
    if not isinstance(root, Object):
        return False
    names = {member.name for member in root if member.name is not None}
    if _is_schema(names):
        return False
    if names & STRONG:
        return True
    known = names & {key.name for key in knowledge().children()}
    switches = [document.node_at((section, "enabled")) for section in ("fp16", "bf16") if section in names]
    usual = len(known) > 1 and bool(known & USUAL) and 2 * len(known) >= len(names)
    return usual or any(switch is not None for switch in switches)


def is_config(name: str, document: Document) -> bool:
    """Return whether a file found in a directory is to be checked.

    One that is called like a config must have some key of DeepSpeed at its top level, or be empty or too broken to
    tell, unless its name begins as that of nothing else does (``ds_config``); one that is not, must look like a config.
    """
    path = PurePath(name)
    if path.suffix.lower() not in SUFFIXES or _OTHERS.match(path.name) or _TEMPLATE.search(path.stem):
        return False
    if looks_like_config(document):
        return True
    if not is_config_name(name):
        return False
    root = document.root
    if not isinstance(root, Object):
        return root is None or not document.is_readable
    names = {member.name for member in root if member.name is not None}
    if _PLAIN.match(path.stem) and not _is_schema(names):
        return True
    return bool(names & {key.name for key in knowledge().children()}) or not names


def _is_schema(names: Iterable[str]) -> bool:
    """Return whether an object with these keys is a JSON Schema."""
    found = set(names)
    return "properties" in found and bool(found & {"$schema", "type"})
