"""A small variational autoencoder; set-up, model building and training live in functions of their own."""

import argparse
import os
from types import SimpleNamespace

import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler

CONFIG = SimpleNamespace(latent=6, hidden=56, pixels=64, lr=2e-3, gamma=0.6, batch_size=8, kl_weight=0.05)


def setup():
    """Initialise the process group and return (rank, world_size, device)."""
    cuda = torch.cuda.is_available()
    dist.init_process_group("nccl" if cuda else "gloo")
    rank = dist.get_rank()
    if not cuda:
        return rank, dist.get_world_size(), torch.device("cpu")
    local_rank = int(os.environ["LOCAL_RANK"])
    torch.cuda.set_device(local_rank)
    return rank, dist.get_world_size(), torch.device("cuda", local_rank)


def cleanup():
    dist.barrier()
    dist.destroy_process_group()


class VAE(nn.Module):
    def __init__(self, pixels, hidden, latent):
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(pixels, hidden), nn.ReLU(), nn.Linear(hidden, 2 * latent))
        self.decoder = nn.Sequential(nn.Linear(latent, hidden), nn.ReLU(), nn.Linear(hidden, pixels))

    def forward(self, x, eps):
        mu, logvar = self.encoder(x).chunk(2, dim=1)
        z = mu + eps * torch.exp(0.5 * logvar)
        return self.decoder(z), mu, logvar


def elbo_loss(reconstruction, x, mu, logvar, kl_weight):
    bce = F.binary_cross_entropy_with_logits(reconstruction, x, reduction="none").sum(1).mean()
    kld = -0.5 * torch.sum(1 + logvar - mu.pow(2) - logvar.exp(), dim=1).mean()
    return bce + kl_weight * kld


def build(cfg, device):
    """Return the wrapped model with its optimizer and scheduler."""
    torch.manual_seed(2024)
    vae = VAE(cfg.pixels, cfg.hidden, cfg.latent).to(device)
    optimizer = torch.optim.Adam(vae.parameters(), lr=cfg.lr, weight_decay=1e-4)
    scheduler = torch.optim.lr_scheduler.ExponentialLR(optimizer, gamma=cfg.gamma)
    wrapped = DDP(vae, device_ids=[device.index] if device.type == "cuda" else None, find_unused_parameters=False)
    return wrapped, optimizer, scheduler


def get_loader(cfg, rank, world_size):
    g = torch.Generator().manual_seed(8)
    prototypes = (torch.rand(5, cfg.pixels, generator=g) > 0.6).float()
    images = prototypes[torch.randint(0, 5, (80,), generator=g)]
    flips = (torch.rand(images.shape, generator=g) < 0.05).float()
    dataset = TensorDataset((images - flips).abs())
    sampler = DistributedSampler(dataset, num_replicas=world_size, rank=rank)
    return DataLoader(dataset, batch_size=cfg.batch_size, sampler=sampler), sampler


def train_epoch(model, loader, optimizer, device, epoch, rank, cfg):
    model.train()
    total = torch.zeros(2, device=device)
    noise = torch.Generator().manual_seed(1000 * epoch + rank)
    for step, (x,) in enumerate(loader):
        x = x.to(device)
        eps = torch.randn(x.size(0), cfg.latent, generator=noise).to(device)
        optimizer.zero_grad()
        reconstruction, mu, logvar = model(x, eps)
        loss = elbo_loss(reconstruction, x, mu, logvar, cfg.kl_weight)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 6.0)
        optimizer.step()
        total += torch.tensor([loss.item() * x.size(0), x.size(0)], device=device)
        if rank == 0:
            print(f"epoch {epoch:2d} step {step:3d} | loss {loss.item():.9f}")
    dist.all_reduce(total)
    return (total[0] / total[1]).item()


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--epochs", type=int, default=3)
    epochs = parser.parse_args().epochs

    rank, world_size, device = setup()
    model, optimizer, scheduler = build(CONFIG, device)
    loader, sampler = get_loader(CONFIG, rank, world_size)
    for epoch in range(epochs):
        sampler.set_epoch(epoch)
        average = train_epoch(model, loader, optimizer, device, epoch, rank, CONFIG)
        lr = optimizer.param_groups[0]["lr"]
        scheduler.step()
        if rank == 0:
            print(f"====> Epoch {epoch} average loss: {average:.9f} lr: {lr:.3e}")
            torch.save(model.state_dict(), f"vae_epoch{epoch}.pt")
    cleanup()


if __name__ == "__main__":
    main()
