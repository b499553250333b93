"""FSDP, read as ZeRO-3."""

from __future__ import annotations

from dsmigrate.convert import codes
from dsmigrate.convert.explained.model import Example, Explained
from dsmigrate.convert.model import Kind

_HEAD = "distributed_type: FSDP\nfsdp_config:\n  fsdp_sharding_strategy: FULL_SHARD\n"

CODES = (
    Explained(
        code=codes.FSDP_LOST,
        name="fsdp-without-counterpart",
        kinds=(Kind.LOST, Kind.CHANGED),
        summary="A setting of FSDP without a counterpart in ZeRO-3.",
        why="`FULL_SHARD` shards parameters, gradients and optimizer states, as ZeRO-3 does; other settings of FSDP "
        "ask for what ZeRO-3 does in another way, in code, or not at all. Clipping is one of them: FSDP clips where "
        "the script says so, DeepSpeed's engine in each step.",
        advice="The note names what comes near. `--set gradient_clipping=VALUE` says the limit, `--set "
        "zero_optimization.stage=N` takes a stage for a sharding that is not ZeRO-3's.",
        source=("accelerate/utils/dataclasses.py:FullyShardedDataParallelPlugin", "schemas/deepspeed/forms.toml"),
        examples=(Example(f"{_HEAD}  fsdp_activation_checkpointing: true\n"),),
    ),
    Explained(
        code=codes.FSDP_TOLD,
        name="fsdp-not-needed",
        kinds=(Kind.TOLD,),
        summary="A setting of FSDP that ZeRO-3 does not need.",
        why="Wrapping, prefetching and the limit of gathered parameters are settings of how FSDP gathers. ZeRO-3 "
        "gathers each module when it runs, and prefetches in the order of the last step.",
        advice="Nothing is to be done; the note names the key of DeepSpeed that decides about the same.",
        source=("deepspeed/runtime/zero/partitioned_param_coordinator.py", "schemas/deepspeed/forms.toml"),
        examples=(
            Example(
                f"{_HEAD}  fsdp_auto_wrap_policy: TRANSFORMER_BASED_WRAP\n",
                instead=_HEAD,
            ),
        ),
    ),
)
