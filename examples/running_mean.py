"""
Sensor classification with inputs centred by a running mean, which every step updates from its own batch.
"""
import os

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

SENSORS, KINDS = 12, 4


class Centred(nn.Module):
    def __init__(self, sensors=SENSORS, decay=0.8):
        super().__init__()
        self.decay = decay
        self.register_buffer("mean", torch.zeros(sensors))

    @torch.no_grad()
    def update(self, x):
        self.mean.mul_(self.decay).add_(x.mean(0), alpha=1 - self.decay)

    def forward(self, x):
        if self.training:
            self.update(x)
        return x - self.mean


class Classifier(nn.Module):
    def __init__(self):
        super().__init__()
        self.centred = Centred()
        self.layers = nn.Sequential(nn.Linear(SENSORS, 32), nn.Tanh(), nn.Linear(32, KINDS))

    def forward(self, x):
        return self.layers(self.centred(x))


def readings(count=96):
    generator = torch.Generator().manual_seed(5)
    kind = torch.randint(0, KINDS, (count,), generator=generator)
    drift = torch.linspace(0, 3, count)[:, None]
    x = torch.randn(KINDS, SENSORS, generator=generator)[kind] + torch.randn(count, SENSORS, generator=generator) + drift
    return TensorDataset(x, kind)


def main(epochs=3):
    use_cuda = torch.cuda.is_available()
    dist.init_process_group("nccl" if use_cuda else "gloo")
    local_rank = int(os.environ["LOCAL_RANK"])
    device = torch.device(f"cuda:{local_rank}" if use_cuda else "cpu")
    if use_cuda:
        torch.cuda.set_device(device)
    torch.manual_seed(11)
    data = readings()
    loader = DataLoader(data, batch_size=8, sampler=DistributedSampler(data))
    model = DDP(Classifier().to(device), device_ids=[local_rank] if use_cuda else None)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    for epoch in range(epochs):
        loader.sampler.set_epoch(epoch)
        model.train()
        for step, (x, kind) in enumerate(loader):
            loss = F.cross_entropy(model(x.to(device)), kind.to(device))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if dist.get_rank() == 0:
                print(f"epoch {epoch} step {step} loss {loss.item():.9f}")
        model.eval()
        with torch.no_grad():
            x, kind = data.tensors
            right = (model(x.to(device)).argmax(1).cpu() == kind).float().mean().item()
        if dist.get_rank() == 0:
            print(f"epoch {epoch} accuracy {right:.4f}")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
