"""Reads questions as JSON lines and says what the Transformers Trainer or Accelerate hands to DeepSpeed for a config.

Runs in a child process that has torch, deepspeed, accelerate and transformers, as the first of ``sys.argv[1]``
processes, of which the others are not there. Each line asks ``{"consumer": "transformers" or "accelerate", "config": …,
"environment": …, "model": …}``, the last being attributes of the model's config, with what a script says beside it:

- Trainer: the ``arguments`` of TrainingArguments, and ``samples``, the length of the dataset;
- Accelerate: arguments of the ``plugin`` and the ``accelerator``, of the ``optimizer`` and the ``scheduler`` (null for
  none), and the batch sizes of the ``loaders``. Where the config has a section for them, the two are the dummies that
  Accelerate asks for.

``config`` is an object, or a text: the content of a file. Each answer is ``{"config": …}`` as ``deepspeed.initialize``
gets it, or ``{"error": …}``. What is replaced before that call has no part in the config: see ``install``.
"""

from __future__ import annotations

import functools
import gc
import importlib
import importlib.metadata
import json
import os
import sys
import tempfile
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NoReturn
from unittest import mock

Asked = dict[str, Any]
FEATURES = 4


class Handed(BaseException):
    """Carries the config away from the place where DeepSpeed would begin."""

    def __init__(self, config: dict[str, Any]) -> None:
        super().__init__()
        self.config = config


def main() -> None:
    """Print the versions of the packages, then an answer for each line of standard input."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # the packages' own talk
    os.chdir(tempfile.mkdtemp())
    install(processes=int(sys.argv[1]))
    versions = {name: importlib.metadata.version(name) for name in ("transformers", "accelerate", "deepspeed")}
    print(json.dumps(versions), file=answers, flush=True)
    for line in sys.stdin:
        print(json.dumps(answer(json.loads(line))), file=answers, flush=True)
    os._exit(0)


def install(processes: int) -> None:
    """Import the packages as one of several processes, and let them end where DeepSpeed begins."""
    os.environ.update(RANK="0", LOCAL_RANK="0", WORLD_SIZE=str(processes), HF_HUB_OFFLINE="1")
    for name in ("version", "metadata"):  # both ask for every model which packages there are
        setattr(importlib.metadata, name, functools.lru_cache(getattr(importlib.metadata, name)))
    import torch  # noqa: PLC0415
    from torch.testing._internal.distributed.fake_pg import FakeStore  # noqa: PLC0415

    torch.distributed.init_process_group("fake", rank=0, world_size=processes, store=FakeStore())
    import deepspeed  # noqa: PLC0415 - after its talk was sent elsewhere
    from accelerate import accelerator  # noqa: PLC0415
    from accelerate.state import DistributedType, PartialState  # noqa: PLC0415
    from transformers import training_args  # noqa: PLC0415

    deepspeed.initialize = hand_over
    training_args.is_torch_bf16_gpu_available = lambda: True  # without a GPU the Trainer refuses to train in bf16
    accelerator.map_pytorch_optim_to_deepspeed = lambda optimizer: optimizer  # else compiled, under offload
    # Accelerate counts processes where it knows a backend for the machine's accelerator; for a bare CPU it does not.
    PartialState._prepare_backend = lambda *_, **__: ("fake", DistributedType.NO)
    gc.freeze()
    gc.collect = lambda *_: 0  # both collect garbage for every model


def hand_over(*, config_params: dict[str, Any], **_: object) -> NoReturn:
    """Take the place of ``deepspeed.initialize``."""
    raise Handed(config_params)


def answer(asked: Asked) -> dict[str, Any]:
    """Return the config that DeepSpeed gets, or the error that comes before."""
    from accelerate.state import AcceleratorState, GradientState  # noqa: PLC0415

    AcceleratorState._reset_state(reset_partial_state=True)
    GradientState._reset_state()
    if isinstance(asked["config"], str):
        asked["config"] = Path("ds_config.json").write_text(asked["config"], encoding="utf-8") and "ds_config.json"
    with mock.patch.dict(os.environ, asked.get("environment", {})):
        try:
            {"transformers": train, "accelerate": prepare}[asked["consumer"]](asked)
        except Handed as handed:
            return {"config": handed.config}
        except Exception as error:  # noqa: BLE001 - the answer is whatever they say
            return {"error": f"{type(error).__name__}: {' '.join(str(error).split())[:3000]}"}
    raise AssertionError("DeepSpeed was not reached")


def train(asked: Asked) -> None:
    """Train with the Trainer."""
    from transformers import Trainer, TrainingArguments  # noqa: PLC0415

    arguments = TrainingArguments(
        output_dir="out", deepspeed=asked["config"], report_to=[], disable_tqdm=True, **asked["arguments"]
    )
    Trainer(model=model(asked), args=arguments, train_dataset=[{}] * asked["samples"]).train()


def prepare(asked: Asked) -> None:
    """Prepare a model, its optimizer, scheduler and data loaders with an Accelerator."""
    import torch  # noqa: PLC0415
    from accelerate import Accelerator, DeepSpeedPlugin  # noqa: PLC0415
    from accelerate.utils import DummyOptim, DummyScheduler  # noqa: PLC0415

    plugin = DeepSpeedPlugin(hf_ds_config=asked["config"], **asked["plugin"])
    accelerator = Accelerator(deepspeed_plugin=plugin, **asked["accelerator"])
    network = model(asked)
    make_optimizer = DummyOptim if "optimizer" in asked["config"] else torch.optim.AdamW
    optimizer = make_optimizer(network.parameters(), **asked["optimizer"])
    parts = [network, optimizer]
    if "scheduler" in asked["config"] and asked["scheduler"] is not None:
        parts.append(DummyScheduler(optimizer, **asked["scheduler"]))
    parts += [torch.utils.data.DataLoader([{}] * size, batch_size=size) for size in asked["loaders"]]
    accelerator.prepare(*parts)


def model(asked: Asked) -> Any:
    """Return a tiny model whose config says what is asked for; without a config when that is null."""
    import torch  # noqa: PLC0415

    network = torch.nn.Linear(FEATURES, 1)
    if asked["model"] is not None:
        network.config = nested(asked["model"])
    return network


def nested(facts: dict[str, Any]) -> SimpleNamespace:
    """Return facts as attributes."""
    return SimpleNamespace(
        **{name: nested(value) if isinstance(value, dict) else value for name, value in facts.items()}
    )


if __name__ == "__main__":
    main()
