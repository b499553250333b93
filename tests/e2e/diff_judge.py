"""Reads configs as JSON lines and says what DeepSpeed loads: the error, or a digest of each part of its config object.

Runs in a child process that has torch and deepspeed. Each line asks ``{"text": …, "world": …, "fills": {…},
"puts": {…}, "strict": …}``: the text of the file, the world size, what a consumer puts in the place of "auto" by dotted
path, what it writes in any case, and whether the text is read as strict JSON. Each answer is ``{"error": …}`` or
``{"parts": {attribute: digest}}``; with ``--values`` the parts are whole.

What DeepSpeedConfig only carries is judged where DeepSpeed uses it: the optimizer and the schedule of the config are
built, with compiled kernels that do nothing, and stand for their parameters. Left out is what nobody reads: the raw
dictionary, keys of a deprecated name that DeepSpeed moved, unknown keys that stay in a dictionary. A device of
offload that is "none" is no offload, and two spellings of a number format are one.
"""

from __future__ import annotations

import copy
import hashlib
import json
import math
import os
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))
from fact_judge import plain
from rule_judge import Kernel

Config = dict[str, Any]
MOVED = ("cpu_offload", "cpu_offload_param", "cpu_offload_use_pin_memory", "stage3_gather_fp16_weights_on_model_save")
PIPELINE = (
    "stages",
    "partition",
    "seed_layers",
    "activation_checkpoint_interval",
    "pipe_partitioned",
    "grad_partitioned",
    "use_reentrant",
)
FORMATS = ("grad_accum_dtype", "param_dtype", "buffer_dtype")
STEPS = (0, 1, 2, 10, 99, 100, 1000, 5000)


def main() -> None:
    """Answer what standard input asks."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    if "--errors" not in sys.argv:
        os.dup2(1, 2)
    judge = Judge()
    whole = "--values" in sys.argv
    for line in sys.stdin:
        try:
            parts = judge.parts(json.loads(line))
            answer = {"parts": parts if whole else {name: digest(part) for name, part in parts.items()}}
        except Exception as error:  # noqa: BLE001 - the answer is whatever DeepSpeed says
            answer = {"error": f"{type(error).__name__}: {' '.join(str(error).split())[:300]}"}
        answers.write(json.dumps(answer) + "\n")
        answers.flush()
    os._exit(0)


def digest(part: Any) -> str:
    """Return a short text that is the same for equal values: 1, 1.0 and True are."""
    return hashlib.sha256(json.dumps(even(part), sort_keys=True).encode()).hexdigest()[:16]


def even(value: Any) -> Any:
    """Return a value in which equal numbers are written alike."""
    if isinstance(value, (bool, int, float)):
        return repr(float(value)) if not (isinstance(value, int) and abs(value) > 2**53) else str(value)
    if isinstance(value, dict):
        return {key: even(inner) for key, inner in value.items()}
    return [even(inner) for inner in value] if isinstance(value, list) else value


class UnbuildableError(Exception):
    """The engine cannot build the optimizer, or the schedule."""


class Judge:
    """DeepSpeed, imported once."""

    def __init__(self) -> None:
        """Import DeepSpeed, and put kernels that do nothing in the place of compiled ones."""
        import cpuinfo  # noqa: PLC0415

        cpuinfo.get_cpu_info = lambda: {"vendor_id_raw": "any"}
        import hjson  # noqa: PLC0415
        import torch  # noqa: PLC0415
        from deepspeed.ops.op_builder.builder import OpBuilder  # noqa: PLC0415
        from deepspeed.ops.op_builder.cpu import NotImplementedBuilder  # noqa: PLC0415
        from deepspeed.runtime import config, config_utils, engine  # noqa: PLC0415

        for builder in (OpBuilder, NotImplementedBuilder):
            builder.load = lambda *_, **__: Kernel(1)
        self.torch, self.runtime, self.engine = torch, config, engine.DeepSpeedEngine
        self.twice = config_utils.dict_raise_error_on_duplicate_keys
        self.hjson = hjson

    def parts(self, asked: Config) -> Config:
        """Return what DeepSpeed makes of a text, by the attribute of its config."""
        text = asked["text"]
        config = json.loads(text) if asked.get("strict") else self.hjson.loads(text, object_pairs_hook=self.twice)
        config = json.loads(json.dumps(config))
        for path, value in asked.get("fills", {}).items():
            fill(config, path.split("."), value)
        for path, value in asked.get("puts", {}).items():
            put(config, path.split("."), value)
        self.runtime.dist.get_rank = lambda *_, **__: 0
        self.runtime.dist.get_world_size = lambda *_, **__: asked["world"]
        loaded = self.runtime.DeepSpeedConfig(copy.deepcopy(config))
        parts = {
            name: plain(value) for name, value in vars(loaded).items() if name not in {"_param_dict", "mesh_device"}
        }
        self.settle(parts, loaded)
        mesh = [config.get(name) for name in ("data_parallel_size", "sequence_parallel_size")]
        parts["mesh"] = mesh if all(mesh) else None  # deepspeed.initialize reads them
        optimizer = self.optimizer(loaded)
        parts["optimizer_name"], parts["optimizer_params"] = None, optimizer[1]
        parts["scheduler_name"], parts["scheduler_params"] = None, self.schedule(loaded, optimizer[0])
        return parts

    def settle(self, parts: Config, loaded: Any) -> None:
        """Take out of the parts what nobody reads, and write alike what is the same."""
        zero = parts["zero_config"]
        for name in MOVED:
            zero.pop(name, None)
        zero.pop("gather_fp16_weights_on_model_save", None)
        for name in ("offload_optimizer", "offload_param"):
            section = getattr(loaded.zero_config, name)
            if section is not None and plain(section) == plain(type(section)()):
                zero[name] = None  # the section alone does nothing: its device is "none"
        tensor = parts["tensor_parallel_config"]
        if tensor.get("partition_config") is not None:
            tensor["partition_config"] = plain(self.rules(tensor["partition_config"]))
        pipeline = {"use_reentrant": None, **parts["pipeline"]}
        parts["pipeline"] = {name: value for name, value in pipeline.items() if name in PIPELINE}
        parts.pop("use_node_local_storage_", None)
        for name in FORMATS:
            parts[name] = self.format_named(parts.get(name))

    def rules(self, partition: Config) -> Any:
        """Return what AutoTP makes of its rules; what it refuses is as it is written."""
        from deepspeed.module_inject.autotp_config import AutoTPConfig  # noqa: PLC0415

        try:
            return AutoTPConfig.from_dict(partition)
        except Exception:  # noqa: BLE001 - refused when the engine asks
            return partition

    def format_named(self, name: Any) -> Any:
        """Return one name for every spelling of a number format."""
        try:
            return str(self.runtime.DtypeEnum(name).value) if isinstance(name, str) else name
        except ValueError:
            return name

    def built(self, loaded: Any) -> Any:
        """Return an engine that has a config and nothing else."""
        engine = self.engine.__new__(self.engine)
        self.torch.nn.Module.__init__(engine)
        engine._config = loaded  # where its accessors look
        engine.has_moe_layers = False
        engine.client_optimizer = engine.client_lr_scheduler = None
        engine.zenflow = loaded.zero_config.zenflow is not None
        return engine

    def optimizer(self, loaded: Any) -> tuple[Any, Any]:
        """Return the optimizer of the config and what it is: its class and what it was made with."""
        weight = self.torch.nn.Parameter(self.torch.zeros(4, 4))
        weight.use_muon = True
        if loaded.optimizer_name is None:
            return self.torch.optim.SGD([weight], lr=1.0), None
        try:
            found = self.built(loaded)._configure_basic_optimizer([weight])
        except Exception as error:
            raise UnbuildableError(f"{loaded.optimizer_name}: {error}") from error
        groups = [
            {name: plain(value) for name, value in group.items() if name != "params"} for group in found.param_groups
        ]
        rest = {
            name: plain(getattr(found, name, None))
            for name in ("adam_w_mode", "fp32_optimizer_states", "bias_correction")
        }
        return found, [type(found).__name__, groups, rest]

    def schedule(self, loaded: Any, optimizer: Any) -> Any:
        """Return what the schedule of the config is: its class, what it holds, and the rates of some steps."""
        if loaded.scheduler_name is None:
            return None
        try:
            found = self.built(loaded)._scheduler_from_config(optimizer)
            held = {name: plain(value) for name, value in vars(found).items() if name not in {"optimizer", "org_lrs"}}
            rates = []
            for step in STEPS:
                found.step(step)
                rates.append([rate if math.isfinite(rate) else str(rate) for rate in found.get_last_lr()])
        except Exception as error:
            raise UnbuildableError(f"{loaded.scheduler_name}: {error}") from error
        return [type(found).__name__, held, rates]


def fill(config: Config, path: list[str], value: Any) -> None:
    """Put a value in the place of "auto"."""
    place: Any = config
    for name in path[:-1]:
        place = place.get(name) if isinstance(place, dict) else None
    if isinstance(place, dict) and place.get(path[-1]) == "auto":
        place[path[-1]] = value


def put(config: Config, path: list[str], value: Any) -> None:
    """Write a value, whatever is there."""
    for name in path[:-1]:
        config = config.setdefault(name, {})
    config[path[-1]] = value


if __name__ == "__main__":
    main()
