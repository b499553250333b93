"""A GAN under DDP and with two engines: prints the losses of each way to train it, as JSON, on rank 0.

``turn`` is what the discriminator is in the generator's turn: the engine itself (``whole``), its bare module with
frozen parameters, as ``dsmigrate explain MG901`` says (``bare``), or nothing at all: the generator has a loss of its
own, and each backward reaches the parameters of one model only (``apart``).
"""

from __future__ import annotations

import copy
import json
from typing import Any

import deepspeed
import torch
from torch import nn
from torch.nn.parallel import DistributedDataParallel

STEPS = 6
SGD = {"lr": 0.05, "momentum": 0.5}


def engine(model: nn.Module, stage: int) -> tuple[Any, Any]:
    config = {
        "train_micro_batch_size_per_gpu": 8,
        "gradient_clipping": 0.0,
        "zero_optimization": {"stage": stage, "stage3_param_persistence_threshold": 0},
        "zero_allow_untested_optimizer": True,
    }
    made, optimizer, *_ = deepspeed.initialize(
        model=model, optimizer=torch.optim.SGD(model.parameters(), **SGD), config=config
    )
    return made, optimizer


def backward(model: Any, optimizer: Any, loss: torch.Tensor, *, ddp: bool) -> None:
    if ddp:
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    else:
        model.backward(loss)
        model.step()


def train(generator: Any, critic: Any, *, stage: int | None, turn: str) -> list[float]:
    ddp, bare = stage is None, turn == "bare"
    if stage is None:
        generator, critic = DistributedDataParallel(generator), DistributedDataParallel(critic)
        first, second = (torch.optim.SGD(model.parameters(), **SGD) for model in (generator, critic))
    else:
        (generator, first), (critic, second) = engine(generator, stage), engine(critic, stage)
    noise = torch.Generator().manual_seed(100 + torch.distributed.get_rank())
    criterion, one, zero = nn.BCEWithLogitsLoss(), torch.ones(8, 1), torch.zeros(8, 1)
    losses = []
    for _ in range(STEPS):
        real, z = torch.randn(8, 16, generator=noise) + 2, torch.randn(8, 8, generator=noise)
        fake = generator(z)
        loss = criterion(critic(real), one) + criterion(critic(fake.detach()), zero)
        backward(critic, second, loss, ddp=ddp)
        for parameter in critic.parameters() if bare else ():
            parameter.requires_grad = False
        if turn == "apart":
            other = nn.functional.mse_loss(fake, real)
        else:
            other = criterion((critic.module if bare else critic)(fake), one)
        backward(generator, first, other, ddp=ddp)
        for parameter in critic.parameters() if bare else ():
            parameter.requires_grad = True
        losses += [loss.item(), other.item()]
    return losses


def main() -> None:
    deepspeed.init_distributed("gloo")
    torch.manual_seed(0)
    generator = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 16))
    critic = nn.Sequential(nn.Linear(16, 32), nn.LeakyReLU(0.2), nn.Linear(32, 1))
    found: dict[str, object] = {}
    ways: list[tuple[str, int | None]] = [("whole", None), ("apart", None)]
    ways += [(turn, stage) for turn in ("bare", "apart") for stage in range(4)]
    for turn, stage in [*ways, ("whole", 1), ("whole", 0)]:
        name = f"{turn} {'ddp' if stage is None else stage}"
        try:
            found[name] = train(copy.deepcopy(generator), copy.deepcopy(critic), stage=stage, turn=turn)
        except RuntimeError as error:
            found[name] = str(error)
    if torch.distributed.get_rank() == 0:
        print(f"\nFOUND {json.dumps(found)}", flush=True)
    torch.distributed.barrier()


if __name__ == "__main__":
    main()
