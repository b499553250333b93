"""Reads configs as JSON lines and says, one line each, what DeepSpeed's config class and engine make of them.

The loader reads every config; of those that differ in numbers alone, stages aside, the engine trains the first.

Runs in a child process that has torch and deepspeed, as one process of a gloo group of one.
"""

from __future__ import annotations

import json
import os
import sys
from typing import Any


def shape(value: object, key: str = "") -> object:
    """Return a config without its numbers; the stage stays, as it decides what the engine is made of."""
    if isinstance(value, dict):
        return {name: shape(inner, name) for name, inner in value.items()}
    return 0 if type(value) in (int, float) and key != "stage" else value


def main() -> None:
    """Judge the configs on standard input: ``ok`` or the error, per line of standard output."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # DeepSpeed's own talk
    import deepspeed  # noqa: PLC0415 - after its talk was sent elsewhere
    import torch  # noqa: PLC0415 - after its talk was sent elsewhere
    from deepspeed.runtime.config import DeepSpeedConfig  # noqa: PLC0415 - after its talk was sent elsewhere

    def train(config: dict[str, Any]) -> None:
        model = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.Linear(4, 2))
        own = "optimizer" in config
        if own and config["optimizer"]["type"] in ("Adam", "AdamW"):
            config["optimizer"]["params"]["torch_adam"] = True  # no compiler needed for a judgement
        tested = not config.get("zero_allow_untested_optimizer")
        kind = torch.optim.AdamW if tested else torch.optim.SGD
        optimizer = None if own else kind(model.parameters(), lr=0.1)
        engine, *_ = deepspeed.initialize(
            model=model, optimizer=optimizer, model_parameters=model.parameters() if own else None, config=config
        )
        half = next(model.parameters()).dtype
        engine.backward(engine(torch.ones(1, 4, dtype=half)).float().sum())
        engine.step()
        engine.destroy()

    type(deepspeed.get_accelerator()).is_fp16_supported = lambda *_: True  # whatever this processor multiplies fast
    os.environ.update(RANK="0", WORLD_SIZE="1", LOCAL_RANK="0", MASTER_ADDR="127.0.0.1", MASTER_PORT=sys.argv[1])
    deepspeed.init_distributed("gloo")
    trained = set()
    for line in sys.stdin:
        config = json.loads(line)
        try:
            DeepSpeedConfig(json.loads(line))
            made = json.dumps(shape(config), sort_keys=True)
            if made not in trained:
                train(config)
                trained.add(made)
            answers.write("ok\n")
        except Exception as error:  # noqa: BLE001 - the answer is whatever DeepSpeed says
            answers.write(f"{type(error).__name__}: {' '.join(str(error).split())[:300]}\n")
        answers.flush()
    os._exit(0)


if __name__ == "__main__":
    main()
