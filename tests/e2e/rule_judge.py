"""Reads configs as JSON lines and says how far the real DeepSpeed comes: its config class, its engine, a first step.

Runs in a child process that has torch and deepspeed, as one process of a gloo group of one. Each line asks
``{"config": …, "text": …, "worlds": […], "deep": …}``: the config, or the text of the file; the world sizes of which
one must fit; whether to go on to the engine. Each answer is ``{"verdict": …, "error": …}`` with a verdict of
``accepted``, ``config``, ``engine`` or ``step``: where it failed.

Compiled kernels, which need a compiler or a GPU, are replaced by ones that do nothing but look at their arguments.
What is up to the script is tried in every way that the config leaves open, and the config is refused when all of them
fail: a config that names no optimizer with AdamW, DeepSpeed's CPU Adam and Adagrad, lists of rates with as many
parameter groups as they have values.
"""

from __future__ import annotations

import contextlib
import copy
import gc
import itertools
import json
import os
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

Config = dict[str, Any]
Answer = dict[str, Any]
MOST_MICRO_STEPS = 2
MOST_ROUNDS = 8
"""Optimizer steps, of which fp16 skips some until its loss scale is low enough."""
ROUNDS_OF_ZENFLOW = 5
"""Optimizer steps of ZenFlow, which updates most weights every fourth time."""
BATCH = ("train_batch_size", "train_micro_batch_size_per_gpu", "gradient_accumulation_steps")
ONLY_WITH_MORE_PROCESSES = ("sequence_parallel_size", "data_parallel_size")
FORCED = "ZeRO-Offload with a client provided optimizer"
"""What DeepSpeed says of torch's AdamW under offload; with its own CPU Adam another error may be behind it."""
HALF_STATES = "bf16_optimizer_states"
"""The switch for which a script makes the CPU Adam without fp32 states."""
MOST_GROUPS = 4
STEPS = ("adam", "lion", "lamb", "adagrad")
MOST_OF_C = 2**31
SWITCHES = {"create_adam": 6, "adam_update": 7, "adam_rollback": 7}
AHEAD = (0, 1, 10, 999, 1000, 1001, 2000, 3999, 4001, 10**6)
"""Steps of a schedule of DeepSpeed that are tried once the first one is taken."""
FURTHER = 16
"""Steps that a schedule of torch goes on: past the usual patience."""
PLACES = ("path", "dir", "file", "directory")


class Kernel(int):
    """A compiled extension that does nothing: every attribute is a function, every call gives the number 1."""

    def __getattr__(self, name: str) -> Kernel:
        if name.startswith("__") and name.endswith("__"):
            raise AttributeError(name)
        if name == "aio_handle":
            return Handle(1)
        return Step.of(name) if any(word in name for word in STEPS) else self

    def __call__(self, *_: object, **__: object) -> Kernel:
        return self


class Step(Kernel):
    """A function of an optimizer's extension, which takes tensors, lists of lists of them, and numbers."""

    switch: int | None = None
    """The place of its truth value, for which null does as well."""

    @classmethod
    def of(cls, name: str) -> Step:
        """Return the function of a name."""
        step = cls(1)
        step.switch = SWITCHES.get(name)
        return step

    def __call__(self, *arguments: object, **_: object) -> Kernel:
        """Do nothing with them."""
        for place, argument in enumerate(arguments):
            numbers = isinstance(argument, list) and not (argument and all(isinstance(one, list) for one in argument))
            if numbers or isinstance(argument, (str, dict)) or (argument is None and place != self.switch):
                raise TypeError(f"incompatible function arguments: {argument!r} for a number")
        return self


class Handle(Kernel):
    """The constructor of an I/O handle, which takes C integers and truth values, by name or in this order."""

    names = ("block_size", "queue_depth", "single_submit", "overlap_events", "intra_op_parallelism")

    def __call__(self, *placed: object, **settings: object) -> Kernel:
        """Open nothing."""
        for name, value in (*zip(self.names, placed, strict=False), *settings.items()):
            if name in {"single_submit", "overlap_events"}:
                fits = value is None or isinstance(value, (int, float))
            else:
                fits = isinstance(value, int) and -MOST_OF_C <= value < MOST_OF_C
            if not fits:
                raise TypeError(f"incompatible constructor arguments: {name}={value!r}")
        return Kernel(1)


def main() -> None:
    """Judge what standard input asks for."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # DeepSpeed's own talk
    if "--errors" not in sys.argv:
        os.dup2(1, 2)
    os.chdir(tempfile.mkdtemp())
    os.environ.update(HOME=str(Path.cwd()), TORCHDYNAMO_DISABLE="1")
    judge = Judge(sys.argv[1])
    for line in sys.stdin:
        answers.write(json.dumps(judge.answer(json.loads(line))) + "\n")
        answers.flush()
    os._exit(0)


class Judge:
    """DeepSpeed, imported once."""

    def __init__(self, port: str) -> None:
        """Import DeepSpeed and join a group of one at ``port``."""
        import cpuinfo  # noqa: PLC0415

        cpuinfo.get_cpu_info = lambda: {"vendor_id_raw": "any"}  # asks for a second, each time
        import deepspeed  # noqa: PLC0415 - after its talk was sent elsewhere
        import deepspeed.comm.torch  # noqa: PLC0415
        import hjson  # noqa: PLC0415
        import torch  # noqa: PLC0415
        from deepspeed.ops.adam import DeepSpeedCPUAdam  # noqa: PLC0415
        from deepspeed.ops.op_builder.builder import OpBuilder  # noqa: PLC0415
        from deepspeed.runtime import config  # noqa: PLC0415

        self.deepspeed, self.torch, self.hjson, self.runtime = deepspeed, torch, hjson, config
        self.cpu_adam = DeepSpeedCPUAdam
        deepspeed.comm.torch.build_shm_op = lambda: None
        OpBuilder.load = lambda *_, **__: Kernel(1)
        with contextlib.suppress(ImportError):  # before 0.9.1 there is none
            from deepspeed.ops.op_builder.cpu import NotImplementedBuilder  # noqa: PLC0415

            NotImplementedBuilder.load = OpBuilder.load
        accelerator = type(deepspeed.accelerator.get_accelerator())
        accelerator.is_fp16_supported = lambda *_: True
        accelerator.supported_dtypes = lambda *_: [torch.float, torch.half, torch.bfloat16]
        accelerator.device_count = lambda *_: 1  # some releases ask numactl
        os.environ.update(RANK="0", WORLD_SIZE="1", LOCAL_RANK="0", MASTER_ADDR="127.0.0.1", MASTER_PORT=port)
        deepspeed.init_distributed("gloo")
        torch.set_num_threads(1)
        gc.freeze()
        gc.collect = lambda *_: 0  # DeepSpeed collects garbage for every engine
        self.world_size, self.dtype = config.dist.get_world_size, torch.get_default_dtype()

    def answer(self, asked: Answer) -> Answer:
        """Return how far one config comes."""
        stage, error = "config", ""
        for world in asked["worlds"]:
            try:
                resolved = self.shallow(asked, world)
                break
            except BaseException as problem:  # noqa: BLE001 - the answer is whatever DeepSpeed says
                error = error or told(problem)
        else:
            return {"verdict": stage, "error": error}
        if not asked.get("deep"):
            return {"verdict": "accepted", "error": ""}
        config = for_one_process(self.read(asked), resolved)
        first: Answer | None = None
        for groups, optimizer in itertools.product(numbers_of_groups(config), self.optimizers(config)):
            stage = "engine"
            try:
                with self.engine(copy.deepcopy(config), groups, optimizer) as engine:
                    stage = "step"
                    self.step(engine)
            except BaseException as problem:  # noqa: BLE001 - the answer is whatever DeepSpeed says
                here = {"verdict": stage, "error": told(problem)}
                if first is None or FORCED in first["error"] or (first["verdict"], stage) == ("engine", "step"):
                    first = here
            else:
                return {"verdict": "accepted", "error": ""}
        return first or {"verdict": "accepted", "error": ""}

    def read(self, asked: Answer) -> Config:
        """Return the config as ``deepspeed.initialize`` loads it."""
        if "text" not in asked:
            return copy.deepcopy(asked["config"])
        Path("ds_config.json").write_text(asked["text"], encoding="utf-8")
        with Path("ds_config.json").open(encoding="utf-8") as file:
            return self.hjson.load(file, object_pairs_hook=self.runtime.dict_raise_error_on_duplicate_keys)

    def shallow(self, asked: Answer, world: int) -> object:
        """Return what DeepSpeedConfig makes of the config for a world size."""
        self.runtime.dist.get_world_size = lambda *_, **__: world
        try:
            return self.runtime.DeepSpeedConfig(self.read(asked))
        finally:
            self.runtime.dist.get_world_size = self.world_size

    def optimizers(self, config: Config) -> Iterator[Callable[[Any], Any] | None]:
        """Yield what a training script might pass: makers of optimizers, None for the config's own."""
        own = config.get("optimizer")
        if isinstance(own, dict) and own.get("type") is not None:
            yield None
            return
        yield lambda parameters: self.torch.optim.AdamW(parameters, lr=1e-3)
        yield lambda parameters: self.cpu_adam(parameters, lr=1e-3)
        if HALF_STATES in str(config):
            yield lambda parameters: self.cpu_adam(parameters, lr=1e-3, fp32_optimizer_states=False)
        yield lambda parameters: self.torch.optim.Adagrad(parameters, lr=1e-3)

    @contextlib.contextmanager
    def engine(self, config: Config, groups: int, optimizer: Callable[[Any], Any] | None) -> Iterator[Any]:
        """Build the engine around a tiny model whose optimizer has so many parameter groups, and take it down."""
        model = self.torch.nn.Sequential(self.torch.nn.Linear(4, 4), self.torch.nn.Linear(4, 2))
        for parameter in model.parameters():
            parameter.use_muon = parameter.ndim > 1
        parameters = in_groups(list(model.parameters()), groups, muon=is_muon(config))
        engine = None
        try:
            engine, *_ = self.deepspeed.initialize(
                model=model,
                optimizer=optimizer and optimizer(parameters),
                model_parameters=parameters,
                config=config,
            )
            yield engine
        finally:
            with contextlib.suppress(Exception):
                if engine is not None:
                    engine.destroy()
            self.torch.set_default_dtype(self.dtype)
            self.torch.set_grad_enabled(True)

    def step(self, engine: Any) -> None:
        """Train until an optimizer step was due, and taken."""
        if engine.optimizer is None or not hasattr(engine.optimizer, "step"):
            engine.eval()
            engine(self.torch.ones(1, 4, dtype=next(engine.module.parameters()).dtype))
            return
        least = ROUNDS_OF_ZENFLOW if getattr(engine, "zenflow", False) else 1 + bool(engine.flops_profiler_enabled())
        for done in range(1, MOST_ROUNDS + 1):
            skipped = engine.skipped_steps
            for _ in range(MOST_MICRO_STEPS):
                loss = engine(self.torch.ones(1, 4, dtype=next(engine.module.parameters()).dtype)).float().sum()
                engine.backward(loss)
                engine.step()
            if engine.skipped_steps == skipped and done >= least:
                break
        if engine.lr_scheduler is not None:
            run_ahead(engine.lr_scheduler)


def run_ahead(schedule: Any) -> None:
    """Try later steps of a schedule, as far as it goes."""
    if type(schedule).__module__.startswith("deepspeed."):
        for ahead in AHEAD:
            schedule.step(ahead)
        return
    metric = (1.0,) if "Plateau" in type(schedule).__name__ else ()
    for _ in range(min(FURTHER, getattr(schedule, "total_steps", FURTHER) - MOST_MICRO_STEPS)):
        schedule.step(*metric)


def numbers_of_groups(config: Config) -> list[int]:
    """Return how many parameter groups a script may pass: as many as a list of the schedule has values, or one."""
    schedule = config.get("scheduler")
    params = schedule.get("params") if isinstance(schedule, dict) else None
    lists = [value for value in params.values() if isinstance(value, list)] if isinstance(params, dict) else []
    usual = 2 if is_muon(config) else 1
    return list(dict.fromkeys([*(len(one) for one in lists if 0 < len(one) <= MOST_GROUPS), usual]))


def is_muon(config: Config) -> bool:
    """Return whether the optimizer is the one that makes two groups of one: matrices, and the rest."""
    own = config.get("optimizer")
    name = own.get("type") if isinstance(own, dict) else None
    return isinstance(name, str) and name.lower() == "muon"


def in_groups(parameters: list[Any], groups: int, *, muon: bool) -> list[Any]:
    """Return the parameters so that the optimizer has a number of groups."""
    if muon and groups % 2:
        for parameter in parameters:
            parameter.requires_grad_(parameter.use_muon)
    elif muon:
        groups //= 2
    if groups == 1:
        return parameters
    size = len(parameters) // groups
    cuts = [size * index for index in range(groups)] + [len(parameters)]
    return [{"params": parameters[start:end]} for start, end in itertools.pairwise(cuts)]


def for_one_process(config: Config, resolved: Any) -> Config:
    """Return the config with batch keys that fit one process, and with every file in the current folder."""
    for key in (*BATCH, *ONLY_WITH_MORE_PROCESSES):
        config.pop(key, None)
    steps = resolved.gradient_accumulation_steps
    config["train_micro_batch_size_per_gpu"] = resolved.train_micro_batch_size_per_gpu
    config["gradient_accumulation_steps"] = min(steps, MOST_MICRO_STEPS)
    return here(config)


def here(value: Any, name: str = "") -> Any:
    """Return a value whose texts at places of files lead to the current folder."""
    if isinstance(value, dict):
        return {key: here(inner, str(key)) for key, inner in value.items()}
    if isinstance(value, str) and name.endswith(PLACES) and value != "auto":
        return str(Path.cwd() / Path(value).name) if value else value
    return value


def told(problem: BaseException) -> str:
    """Return an error in one line."""
    return f"{type(problem).__name__}: {' '.join(str(problem).split())[:600]}"


if __name__ == "__main__":
    main()
