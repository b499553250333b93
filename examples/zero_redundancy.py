"""Denoising autoencoder whose optimizer state is sharded over the ranks by ZeroRedundancyOptimizer, with resume."""

import argparse
import os

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn
from torch.distributed.optim import ZeroRedundancyOptimizer
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.optim.lr_scheduler import CosineAnnealingLR
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset


def get_args():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=4)
    parser.add_argument("--stop-epoch", type=int, default=4)
    parser.add_argument("--batch-size", type=int, default=8)
    parser.add_argument("--lr", type=float, default=0.05)
    parser.add_argument("--weight-decay", type=float, default=0.01)
    parser.add_argument("--no-zero", dest="use_zero", action="store_false", help="keep the whole optimizer state")
    parser.add_argument("--resume", default="")
    return parser.parse_args()


class Autoencoder(nn.Module):
    def __init__(self, dim=20, width=32, code=6):
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(dim, width), nn.Tanh(), nn.LayerNorm(width), nn.Linear(width, code))
        self.decoder = nn.Sequential(nn.Linear(code, width), nn.Tanh(), nn.Linear(width, dim))

    def forward(self, x):
        return self.decoder(self.encoder(x))


def param_groups(model, weight_decay):
    """Matrices decay, vectors do not."""
    matrices = [p for p in model.parameters() if p.ndim > 1]
    vectors = [p for p in model.parameters() if p.ndim <= 1]
    return [{"params": matrices, "weight_decay": weight_decay}, {"params": vectors, "weight_decay": 0.0}]


def build_optimizer(args, model):
    groups = param_groups(model, args.weight_decay)
    settings = dict(lr=args.lr, momentum=0.9, nesterov=True)
    if args.use_zero:
        return ZeroRedundancyOptimizer(
            groups, optimizer_class=torch.optim.SGD, parameters_as_bucket_view=True, overlap_with_ddp=False, **settings)
    return torch.optim.SGD(groups, **settings)


def make_data(n=128, dim=20, seed=3):
    g = torch.Generator().manual_seed(seed)
    clean = torch.randn(n, 5, generator=g) @ torch.randn(5, dim, generator=g)
    return TensorDataset(clean + 0.3 * torch.randn(n, dim, generator=g), clean)


def main():
    args = get_args()
    use_cuda = torch.cuda.is_available()
    dist.init_process_group("nccl" if use_cuda else "gloo")
    local_rank = int(os.environ["LOCAL_RANK"])
    device = torch.device("cuda", local_rank) if use_cuda else torch.device("cpu")
    torch.manual_seed(17)

    model = DDP(Autoencoder().to(device), device_ids=[local_rank] if use_cuda else None)
    optimizer = build_optimizer(args, model)
    scheduler = CosineAnnealingLR(optimizer, T_max=args.epochs)

    start_epoch = 0
    if args.resume:
        checkpoint = torch.load(args.resume, map_location="cpu", weights_only=False)
        model.module.load_state_dict(checkpoint["model"])
        optimizer.load_state_dict(checkpoint["optimizer"])
        scheduler.load_state_dict(checkpoint["scheduler"])
        start_epoch = checkpoint["epoch"] + 1

    dataset = make_data()
    sampler = DistributedSampler(dataset, seed=1)
    loader = DataLoader(dataset, batch_size=args.batch_size, sampler=sampler)
    for epoch in range(start_epoch, min(args.epochs, args.stop_epoch)):
        sampler.set_epoch(epoch)
        for step, (noisy, clean) in enumerate(loader):
            loss = F.mse_loss(model(noisy.to(device)), clean.to(device))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if dist.get_rank() == 0:
                print(f"epoch {epoch} step {step} loss {loss.item():.8f} lr {optimizer.param_groups[0]['lr']:.8f}")
        scheduler.step()

        if isinstance(optimizer, ZeroRedundancyOptimizer):
            optimizer.consolidate_state_dict(to=0)
        if dist.get_rank() == 0:
            torch.save(
                {
                    "epoch": epoch,
                    "model": model.module.state_dict(),
                    "optimizer": optimizer.state_dict(),
                    "scheduler": scheduler.state_dict(),
                },
                "autoencoder.pt",
            )
        dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
