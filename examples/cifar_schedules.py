"""CIFAR-style training with a choice of per-epoch schedules and optional mixup."""
from __future__ import print_function

import argparse
import os

import torch
import torch.nn as nn
import torch.nn.functional as F
import torch.optim as optim
from torch import distributed
from torch.utils import data


def get_parser():
    parser = argparse.ArgumentParser(description="CIFAR-style training")
    parser.add_argument("--epochs", default=4, type=int)
    parser.add_argument("--bs", default=8, type=int, help="batch size per process")
    parser.add_argument("--lr", default=0.02, type=float, help="for a total batch of 16")
    parser.add_argument("--optim", default="sgd", choices=["sgd", "adam"])
    parser.add_argument("--sched", default="multistep", choices=["step", "multistep", "cosine", "exp"])
    parser.add_argument("--milestones", default=[1, 3], type=int, nargs="+")
    parser.add_argument("--mixup", default=0.2, type=float)
    parser.add_argument("--manual-seed", default=7, type=int)
    return parser


class VGGish(nn.Module):
    cfg = [8, "M", 16, "M"]

    def __init__(self, num_classes=6):
        super(VGGish, self).__init__()
        layers, channels = [], 3
        for v in self.cfg:
            if v == "M":
                layers.append(nn.MaxPool2d(2))
            else:
                layers += [nn.Conv2d(channels, v, 3, padding=1), nn.BatchNorm2d(v), nn.LeakyReLU(0.1)]
                channels = v
        self.features = nn.Sequential(*layers)
        self.classifier = nn.Sequential(nn.Linear(16 * 4, 48), nn.ReLU(), nn.Linear(48, num_classes))

    def forward(self, x):
        return self.classifier(torch.flatten(self.features(x), 1))


def make_dataset(n, seed):
    g = torch.Generator().manual_seed(seed)
    labels = torch.randint(0, 6, (n,), generator=g)
    basis = torch.randn(6, 3, 8, 8, generator=torch.Generator().manual_seed(123))
    return data.TensorDataset(basis[labels] + torch.randn(n, 3, 8, 8, generator=g), labels)


def build_optimizer(net, args, world_size):
    lr = args.lr * args.bs * world_size / 16  # linear scaling rule
    if args.optim == "sgd":
        return optim.SGD(net.parameters(), lr=lr, momentum=0.9, nesterov=True, weight_decay=5e-4)
    return optim.Adam(net.parameters(), lr=lr / 10, betas=(0.9, 0.99))


def build_scheduler(opt, args):
    if args.sched == "step":
        return optim.lr_scheduler.StepLR(opt, 2, gamma=0.1)
    if args.sched == "multistep":
        return optim.lr_scheduler.MultiStepLR(opt, milestones=args.milestones, gamma=0.2)
    if args.sched == "exp":
        return optim.lr_scheduler.ExponentialLR(opt, 0.7)
    return optim.lr_scheduler.CosineAnnealingLR(opt, args.epochs)


def main():
    args = get_parser().parse_args()
    cuda = torch.cuda.is_available()
    distributed.init_process_group(backend="nccl" if cuda else "gloo", init_method="env://")
    rank, world_size = distributed.get_rank(), distributed.get_world_size()
    gpu = int(os.environ["LOCAL_RANK"]) if cuda else None
    device = torch.device("cuda:%d" % gpu if cuda else "cpu")
    torch.manual_seed(args.manual_seed)

    train_set = make_dataset(64, seed=args.manual_seed)
    sampler = data.distributed.DistributedSampler(train_set, num_replicas=world_size, rank=rank)
    loader = data.DataLoader(train_set, batch_size=args.bs, sampler=sampler)

    net = VGGish().to(device)
    if cuda:
        net = nn.SyncBatchNorm.convert_sync_batchnorm(net)
        net = nn.parallel.DistributedDataParallel(net, device_ids=[gpu], output_device=gpu)
    else:
        net = nn.parallel.DistributedDataParallel(net)
    opt = build_optimizer(net, args, world_size)
    scheduler = build_scheduler(opt, args)
    criterion = nn.CrossEntropyLoss()
    mix = torch.Generator().manual_seed(args.manual_seed + rank)

    for epoch in range(args.epochs):
        net.train()
        sampler.set_epoch(epoch)
        total, seen = 0.0, 0
        for batch_idx, (inputs, targets) in enumerate(loader):
            inputs, targets = inputs.to(device), targets.to(device)
            if args.mixup > 0:
                lam = 1 - args.mixup * torch.rand(1, generator=mix).item()
                perm = torch.randperm(inputs.size(0), generator=mix).to(device)
                outputs = net(lam * inputs + (1 - lam) * inputs[perm])
                loss = lam * criterion(outputs, targets) + (1 - lam) * criterion(outputs, targets[perm])
            else:
                outputs = net(inputs)
                loss = F.cross_entropy(outputs, targets)
            opt.zero_grad()
            loss.backward()
            opt.step()
            total += loss.item() * targets.size(0)
            seen += targets.size(0)
            if rank == 0:
                print("Epoch %d [%d/%d] | LR %.7f | Loss: %.9f" % (
                    epoch, batch_idx, len(loader), scheduler.get_last_lr()[0], loss.item()))
        scheduler.step()
        if rank == 0:
            print("Epoch %d done | mean loss: %.9f" % (epoch, total / seen))

    if rank == 0:
        torch.save(net.module.state_dict(), "vggish.pth")
    distributed.barrier()


if __name__ == "__main__":
    main()
