import argparse
import os

import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, Dataset
from torch.utils.data.distributed import DistributedSampler

parser = argparse.ArgumentParser(description="Semantic segmentation with gradient accumulation")
parser.add_argument("--epochs", type=int, default=3)
parser.add_argument("--batch-size", type=int, default=2, help="per process")
parser.add_argument("--accum-steps", type=int, default=3, help="mini-batches per update")
parser.add_argument("--base-lr", type=float, default=0.05)
parser.add_argument("--momentum", type=float, default=0.9)
parser.add_argument("--power", type=float, default=0.9, help="exponent of the polynomial decay")
parser.add_argument("--clip", type=float, default=1.0)
parser.add_argument("--seed", type=int, default=11)


def conv_block(cin, cout):
    return nn.Sequential(nn.Conv2d(cin, cout, 3, padding=1), nn.GroupNorm(2, cout), nn.ReLU(inplace=True))


class TinyUNet(nn.Module):
    def __init__(self, classes=4, base=6):
        super().__init__()
        self.enc1 = conv_block(3, base)
        self.enc2 = conv_block(base, 2 * base)
        self.bottleneck = conv_block(2 * base, 2 * base)
        self.dec2 = conv_block(4 * base, base)
        self.dec1 = conv_block(2 * base, base)
        self.classifier = nn.Conv2d(base, classes, 1)

    def forward(self, x):
        e1 = self.enc1(x)
        e2 = self.enc2(F.max_pool2d(e1, 2))
        b = self.bottleneck(F.max_pool2d(e2, 2))
        d2 = self.dec2(torch.cat([F.interpolate(b, scale_factor=2), e2], dim=1))
        d1 = self.dec1(torch.cat([F.interpolate(d2, scale_factor=2), e1], dim=1))
        return self.classifier(d1)


class Shapes(Dataset):
    """Rectangles of one class on a background of class 0."""

    def __init__(self, n, size=16, seed=0):
        g = torch.Generator().manual_seed(seed)
        self.samples = []
        colours = torch.randn(4, 3, generator=g)
        for _ in range(n):
            label = int(torch.randint(1, 4, (1,), generator=g))
            top, left = torch.randint(0, size // 2, (2,), generator=g).tolist()
            mask = torch.zeros(size, size, dtype=torch.long)
            mask[top:top + size // 2, left:left + size // 2] = label
            image = colours[mask].permute(2, 0, 1) + 0.5 * torch.randn(3, size, size, generator=g)
            self.samples.append((image, mask))

    def __len__(self):
        return len(self.samples)

    def __getitem__(self, idx):
        return self.samples[idx]


def main():
    args = parser.parse_args()
    gpu = torch.cuda.is_available()
    dist.init_process_group("nccl" if gpu else "gloo", init_method="env://")
    rank, world = dist.get_rank(), dist.get_world_size()
    local_rank = int(os.environ["LOCAL_RANK"])
    device = torch.device("cuda", local_rank) if gpu else torch.device("cpu")
    torch.manual_seed(args.seed)

    net = TinyUNet().to(device)
    net = nn.parallel.DistributedDataParallel(net, device_ids=[local_rank] if gpu else None,
                                              output_device=local_rank if gpu else None)
    trainset = Shapes(44, seed=args.seed)
    sampler = DistributedSampler(trainset, num_replicas=world, rank=rank, shuffle=True)
    trainloader = DataLoader(trainset, batch_size=args.batch_size, sampler=sampler, num_workers=0, pin_memory=gpu)

    # 11 mini-batches with 3 per update: the last update of an epoch sees only two
    updates_per_epoch = (len(trainloader) + args.accum_steps - 1) // args.accum_steps
    total_updates = updates_per_epoch * args.epochs
    criterion = nn.CrossEntropyLoss(weight=torch.tensor([0.4, 1.0, 1.0, 1.0], device=device))
    optimizer = torch.optim.SGD(net.parameters(), lr=args.base_lr, momentum=args.momentum, weight_decay=5e-4)
    poly = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda it: (1 - it / (total_updates + 1)) ** args.power)

    update = 0
    for epoch in range(args.epochs):
        sampler.set_epoch(epoch)
        net.train()
        running = 0.0
        optimizer.zero_grad()
        for i, (image, mask) in enumerate(trainloader):
            image = image.to(device, non_blocking=True)
            mask = mask.to(device, non_blocking=True)
            loss = criterion(net(image), mask)
            loss = loss / args.accum_steps
            loss.backward()
            running += loss.item()
            if (i + 1) % args.accum_steps == 0 or i + 1 == len(trainloader):
                nn.utils.clip_grad_norm_(net.parameters(), args.clip)
                optimizer.step()
                poly.step()
                optimizer.zero_grad()
                update += 1
                if rank == 0:
                    print(f"epoch {epoch} update {update}/{total_updates} loss {running:.9f} "
                          f"lr {poly.get_last_lr()[0]:.8f}")
                running = 0.0
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
