"""Measures what autograd keeps of small models of the transformers library, in bytes, logits and loss left aside.

One job ``{"values": {…}, "samples": …, "tokens": …}`` per line of standard input; one answer ``{"bytes": …}`` per line,
or ``{"error": …}``. Weights are not counted, what several operations keep once. ``{"loss": …, "format": …}`` asks for
the peak of a loss (loss_judge.py).
"""

from __future__ import annotations

import json
import os
import sys
from typing import Any

SMALLEST = 1024
"""Bytes up to which a tensor is an index, a scale or a mask of positions."""


def main() -> None:
    """Answer what standard input asks for."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    for line in sys.stdin:
        try:
            answer = kept(json.loads(line))
        except Exception as error:  # noqa: BLE001 - whatever it is, it is the answer
            answer = {"error": f"{type(error).__name__}: {error}"}
        answers.write(json.dumps(answer) + "\n")
    answers.flush()


def kept(job: dict[str, Any]) -> dict[str, Any]:
    """Return the bytes that a forward without the head keeps in bf16."""
    import torch  # noqa: PLC0415 - after the library's talk was sent elsewhere
    import transformers  # noqa: PLC0415

    torch.set_num_threads(1)
    if "loss" in job:
        from loss_judge import peak  # noqa: PLC0415

        return dict(peak(job))
    values = dict(job["values"])
    config = transformers.AutoConfig.for_model(values.pop("model_type"), attn_implementation="sdpa", **values)
    config.use_cache = False
    model = transformers.AutoModel.from_config(config).to(torch.bfloat16).train()
    weights = {parameter.untyped_storage().data_ptr() for parameter in model.parameters()}
    held: dict[int, int] = {}
    alive: list[Any] = []

    def pack(tensor: Any) -> Any:
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in weights and storage.nbytes() > SMALLEST:
            held[storage.data_ptr()] = storage.nbytes()
            alive.append(tensor)
        return tensor

    words = torch.randint(0, config.vocab_size, (job["samples"], job["tokens"]))
    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        model(words)
    return {"bytes": sum(held.values())}


if __name__ == "__main__":
    main()
