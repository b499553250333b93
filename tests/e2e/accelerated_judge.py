"""Trains nothing: gives Accelerate what configs and scripts say, and answers with the config that it comes to."""

from __future__ import annotations

import json
import os
import sys
import tempfile
from typing import Any

import torch
from accelerate import Accelerator
from accelerate.state import AcceleratorState, GradientState
from accelerate.utils import DummyOptim, DummyScheduler


def prepared(case: dict[str, Any]) -> dict[str, Any]:
    """Return what becomes of a case: the config of the engine, or the error."""
    os.environ.update(case["environment"])
    if case["config"] is not None:
        with tempfile.NamedTemporaryFile("w", suffix=".json", delete=False) as file:
            json.dump(case["config"], file)
        os.environ["ACCELERATE_DEEPSPEED_CONFIG_FILE"] = file.name
    try:
        accelerator = Accelerator(**case["given"])
        model = torch.nn.Linear(4, 4)
        dummy = case["optimizer"] == "DummyOptim"
        optimizer = DummyOptim(model.parameters(), lr=3e-4) if dummy else torch.optim.AdamW(model.parameters())
        loader = torch.utils.data.DataLoader(torch.randn(16, 4), batch_size=2)
        rest = []
        if case["scheduler"] == "DummyScheduler":
            rest = [DummyScheduler(optimizer, warmup_num_steps=2)]
        elif case["scheduler"]:
            rest = [torch.optim.lr_scheduler.LambdaLR(optimizer, lambda _: 1.0)]
        model, *_ = accelerator.prepare(model, optimizer, loader, *rest)
        if case["clips"]:
            getattr(accelerator, case["clips"])(model.parameters(), 0.5)
    except Exception as error:  # noqa: BLE001 - whatever it is, it is the answer
        return {"error": f"{type(error).__name__}: {error}"}
    config = {
        **accelerator.deepspeed_config,
        "steps_per_print": None,
        "counted": accelerator.gradient_accumulation_steps,
    }
    return {"config": {**config, "gradient_clipping": model.gradient_clipping()}}


def main() -> None:
    """Answer each case, a line of JSON, with a line."""
    before = dict(os.environ)
    for line in sys.stdin:
        answer = prepared(json.loads(line))
        print(f"answer {json.dumps(answer, default=str)}", flush=True)
        AcceleratorState._reset_state(reset_partial_state=True)
        GradientState._reset_state()
        os.environ.clear()
        os.environ.update(before)


if __name__ == "__main__":
    main()
