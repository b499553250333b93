"""Scripts for the Trainer and for Accelerate in which every source of a value says something else.

And what the facts mean by the source that they name: the value for what a script says.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dsmigrate.knowledge import Auto, Consumer

Config = dict[str, Any]
Answer = dict[str, Any]
PROCESSES = 3
SAMPLES = 120
"""Length of the dataset of a Trainer."""


@dataclass(frozen=True)
class Script:
    """What a script says beside the config: the fields of a question to consumer_judge.py."""

    consumer: Consumer
    stage: int
    said: Mapping[str, Any]

    def asks(self, config: Config | str, **changed: Any) -> Answer:
        """Return the question what becomes of a config under this script, or under one with something changed."""
        return {"consumer": self.consumer.value, "config": config, **self.said, **changed}

    @property
    def precision(self) -> str:
        """The mixed precision that it trains with."""
        arguments = self.said["arguments" if self.consumer is Consumer.TRANSFORMERS else "accelerator"]
        return str(
            arguments.get("mixed_precision", next((kind for kind in ("fp16", "bf16") if kind in arguments), "no"))
        )


def trainer(stage: int, hidden: int, environment: Mapping[str, str] | None = None, **arguments: Any) -> Script:
    """Return a script that trains with the Trainer."""
    said = {"arguments": arguments, "samples": SAMPLES, "model": {"hidden_size": hidden}}
    return Script(Consumer.TRANSFORMERS, stage, {**said, "environment": dict(environment or {})})


def loop(stage: int, hidden: int, loaders: Sequence[int], **said: Mapping[str, Any]) -> Script:
    """Return a script with a loop of its own under Accelerate."""
    return Script(
        Consumer.ACCELERATE, stage, {"plugin": {}, **said, "loaders": loaders, "model": {"hidden_size": hidden}}
    )


SCRIPTS: Mapping[Consumer, Sequence[Script]] = {
    Consumer.TRANSFORMERS: (
        trainer(
            3,
            7,
            environment={
                "ACCELERATE_DEEPSPEED_ZERO_STAGE": "1",
                "ACCELERATE_DEEPSPEED_OFFLOAD_OPTIMIZER_DEVICE": "cpu",
                "ACCELERATE_DEEPSPEED_OFFLOAD_OPTIMIZER_NVME_PATH": "/first",
                "ACCELERATE_DEEPSPEED_OFFLOAD_PARAM_DEVICE": "nvme",
                "ACCELERATE_DEEPSPEED_OFFLOAD_PARAM_NVME_PATH": "/second",
                "ACCELERATE_DEEPSPEED_ZERO3_SAVE_16BIT_MODEL": "true",
            },
            per_device_train_batch_size=5,
            gradient_accumulation_steps=2,
            max_steps=40,
            warmup_steps=6,
            learning_rate=3e-4,
            weight_decay=0.013,
            adam_beta1=0.81,
            adam_beta2=0.93,
            adam_epsilon=1e-7,
            max_grad_norm=0.37,
            fp16=True,
        ),
        trainer(
            2,
            9,
            per_device_train_batch_size=2,
            gradient_accumulation_steps=4,
            num_train_epochs=3,
            learning_rate=2e-3,
            weight_decay=0.02,
            adam_beta1=0.7,
            adam_beta2=0.8,
            adam_epsilon=1e-6,
            max_grad_norm=0.5,
            bf16=True,
        ),
        trainer(
            1,
            16,
            per_device_train_batch_size=4,
            gradient_accumulation_steps=1,
            max_steps=90,
            warmup_steps=0.25,  # a part of all steps
            learning_rate=4e-5,
            weight_decay=0.03,
            adam_beta1=0.6,
            adam_beta2=0.65,
            adam_epsilon=1e-5,
            max_grad_norm=2.5,
            fp16_full_eval=True,
        ),
    ),
    Consumer.ACCELERATE: (
        loop(
            3,
            7,
            loaders=(6, 4),
            plugin={
                "gradient_accumulation_steps": 5,
                "gradient_clipping": 0.41,
                "zero_stage": 1,
                "offload_optimizer_device": "cpu",
                "offload_optimizer_nvme_path": "/first",
                "offload_param_device": "nvme",
                "offload_param_nvme_path": "/second",
                "zero3_save_16bit_model": True,
            },
            accelerator={"mixed_precision": "fp16", "gradient_accumulation_steps": 8},
            optimizer={"lr": 2.1e-3, "weight_decay": 0.017},
            scheduler={"total_num_steps": 100, "warmup_num_steps": 9},
        ),
        loop(
            2,
            9,
            loaders=(8,),
            accelerator={"mixed_precision": "bf16", "gradient_accumulation_steps": 3},
            optimizer={"lr": 3e-4, "weight_decay": 0.02},
            scheduler={"total_num_steps": 50, "warmup_num_steps": 0},
        ),
        loop(
            1,
            16,
            loaders=(2,),
            plugin={
                "gradient_clipping": 0.9,
                "zero_stage": 3,
                "offload_param_device": "cpu",
                "zero3_save_16bit_model": True,
            },
            accelerator={"mixed_precision": "no"},
            optimizer={"lr": 5e-5, "weight_decay": 0.03},
            scheduler={"total_num_steps": 61, "warmup_num_steps": 4},
        ),
    ),
}
"""For each consumer, scripts in which every source of a value says something else. The last has no 16-bit training."""


SILENT = trainer(0, 4)
"""A script that leaves every argument of the Trainer at its default."""


def scalar(text: str) -> object:
    """Return the value that a text of the facts means: 2, 1.0, true, infinity, or the text itself."""
    try:
        return json.loads(text.replace("infinity", "Infinity"))
    except json.JSONDecodeError:
        return text


def steps(said: Mapping[str, Any]) -> int:
    """Return the optimizer steps that a Trainer takes."""
    arguments = said["arguments"]
    batch = PROCESSES * arguments["per_device_train_batch_size"] * arguments["gradient_accumulation_steps"]
    return int(arguments.get("max_steps") or arguments["num_train_epochs"] * SAMPLES // batch)


def warmup_steps(said: Mapping[str, Any]) -> int:
    """Return the steps of the warm-up of a Trainer, which takes less than 1 as a part of all steps."""
    asked = said["arguments"].get("warmup_steps", 0)
    return max(1, int(asked) if asked >= 1 else math.ceil(asked * steps(said)))


def accumulation(said: Mapping[str, Any], name: str = "gradient_accumulation_steps") -> int:
    """Return the micro-batches of a step under Accelerate."""
    return int(said["plugin"].get(name, said["accelerator"].get(name, 1)))


Source = Callable[[Mapping[str, Any], tuple[str, ...]], object]
SOURCES: Mapping[str, Source] = {
    r"0|true|infinity": lambda _, named: scalar(named[0]),
    r"hidden_size squared": lambda said, _: said["model"]["hidden_size"] ** 2,
    r"0\.9 × hidden_size squared": lambda said, _: int(0.9 * said["model"]["hidden_size"] ** 2),
    r"10 × hidden_size": lambda said, _: 10 * said["model"]["hidden_size"],
    # of the Trainer
    r"TrainingArguments\.(\w+)": lambda said, named: said["arguments"][named[1]],
    r"TrainingArguments\.(\w+) or (\w+)": lambda said, named: any(said["arguments"].get(one) for one in named[1:]),
    r"\[TrainingArguments\.(\w+), TrainingArguments\.(\w+)\]": lambda said, named: [
        said["arguments"][one] for one in named[1:]
    ],
    r"world size × per_device_train_batch_size × gradient_accumulation_steps": lambda said, _: (
        PROCESSES * said["arguments"]["per_device_train_batch_size"] * said["arguments"]["gradient_accumulation_steps"]
    ),
    r"TrainingArguments\.get_warmup_steps\(num_training_steps\), at least 1": lambda said, _: warmup_steps(said),
    r"the number of optimizer steps of the run": lambda said, _: steps(said),
    r"the environment variable (\w+), else (?:the text )?(\w+)": lambda said, named: scalar(
        said["environment"].get(named[1], named[2])
    ),
    # of Accelerate
    r"DeepSpeedPlugin\.(\w+), else (?:the text )?([\w.]+)": lambda said, named: said["plugin"].get(
        named[1], scalar(named[2])
    ),
    r"DeepSpeedPlugin\.(\w+), else Accelerator\(\1=…\)": lambda said, named: accumulation(said, named[1]),
    r"the batch size of the prepared data loaders, the smallest by default": lambda said, _: min(said["loaders"]),
    r"micro-batch × gradient accumulation steps × number of processes": lambda said, _: (
        min(said["loaders"]) * accumulation(said) * PROCESSES
    ),
    r"DummyOptim\((\w+)=…\)": lambda said, named: said["optimizer"][named[1]],
    r"the learning rate of the optimizer": lambda said, _: said["optimizer"]["lr"],
    r"DummyScheduler\(warmup_num_steps=…\), at least 1": lambda said, _: max(1, said["scheduler"]["warmup_num_steps"]),
    r"DummyScheduler\(total_num_steps=…\) divided by the number of processes": lambda said, _: math.ceil(
        said["scheduler"]["total_num_steps"] / PROCESSES
    ),
    r'Accelerator\(mixed_precision="(\w+)"\)': lambda said, named: said["accelerator"]["mixed_precision"] == named[1],
}
"""What the texts of the facts mean, by the whole text: the value for what a script says."""


def expected(auto: Auto, script: Script) -> object:
    """Return the value that a script gives by the source that the facts name; an error if the text is not known."""
    for pattern, value in SOURCES.items():
        named = re.fullmatch(pattern, auto.source)
        if named:
            return value(script.said, (named[0], *named.groups()))
    raise AssertionError(f"no script can tell what is meant by {auto.source!r}")
