"""ResNet image classification in the shape of the well-known ImageNet reference script.

    torchrun --nproc_per_node=2 imagenet_resnet.py --epochs 4
    torchrun --nproc_per_node=2 imagenet_resnet.py --epochs 8 --resume checkpoint.pth.tar

Images are generated, so that the script runs anywhere.
"""

import argparse
import os
import shutil

import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F
import torch.nn.parallel
import torch.optim
import torch.utils.data
import torch.utils.data.distributed
from torch.optim.lr_scheduler import StepLR

parser = argparse.ArgumentParser(description="PyTorch ImageNet-style training")
parser.add_argument("-a", "--arch", metavar="ARCH", default="resnet_tiny")
parser.add_argument("--epochs", default=4, type=int, metavar="N", help="number of total epochs to run")
parser.add_argument("-b", "--batch-size", default=16, type=int, metavar="N",
                    help="total batch size over all GPUs on the node")
parser.add_argument("--lr", "--learning-rate", default=0.05, type=float, metavar="LR", dest="lr")
parser.add_argument("--momentum", default=0.9, type=float, metavar="M", help="momentum")
parser.add_argument("--wd", "--weight-decay", default=1e-4, type=float, metavar="W", dest="weight_decay")
parser.add_argument("-p", "--print-freq", default=1, type=int, metavar="N", help="print frequency")
parser.add_argument("--resume", default="", type=str, metavar="PATH", help="path to latest checkpoint")
parser.add_argument("--dist-url", default="env://", type=str, help="url used to set up distributed training")
parser.add_argument("--dist-backend", default="nccl" if torch.cuda.is_available() else "gloo", type=str)
parser.add_argument("--seed", default=0, type=int, help="seed for initializing training")

best_acc1 = 0.0


class BasicBlock(nn.Module):
    def __init__(self, inplanes, planes, stride=1):
        super().__init__()
        self.conv1 = nn.Conv2d(inplanes, planes, 3, stride=stride, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(planes)
        self.conv2 = nn.Conv2d(planes, planes, 3, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(planes)
        self.downsample = None
        if stride != 1 or inplanes != planes:
            self.downsample = nn.Conv2d(inplanes, planes, 1, stride=stride, bias=False)

    def forward(self, x):
        identity = x if self.downsample is None else self.downsample(x)
        out = F.relu(self.bn1(self.conv1(x)))
        out = self.bn2(self.conv2(out))
        return F.relu(out + identity)


class ResNet(nn.Module):
    def __init__(self, num_classes=8, width=8):
        super().__init__()
        self.stem = nn.Conv2d(3, width, 3, padding=1, bias=False)
        self.bn = nn.BatchNorm2d(width)
        self.layer1 = BasicBlock(width, width)
        self.layer2 = BasicBlock(width, 2 * width, stride=2)
        self.hidden = nn.Linear(2 * width, 32)
        self.fc = nn.Linear(32, num_classes)

    def forward(self, x):
        x = F.relu(self.bn(self.stem(x)))
        x = self.layer2(self.layer1(x))
        x = x.mean(dim=(2, 3))
        return self.fc(F.relu(self.hidden(x)))


class FakeImages(torch.utils.data.Dataset):
    """Class-dependent patterns plus noise, always the same for one index."""

    def __init__(self, size, seed):
        g = torch.Generator().manual_seed(seed)
        self.targets = torch.randint(0, 8, (size,), generator=g)
        patterns = torch.randn(8, 3, 12, 12, generator=torch.Generator().manual_seed(99))
        self.images = patterns[self.targets] + 1.5 * torch.randn(size, 3, 12, 12, generator=g)

    def __len__(self):
        return len(self.targets)

    def __getitem__(self, index):
        return self.images[index], self.targets[index]


def main():
    global best_acc1
    args = parser.parse_args()
    torch.manual_seed(args.seed)
    args.distributed = int(os.environ.get("WORLD_SIZE", 1)) > 1
    args.gpu = int(os.environ.get("LOCAL_RANK", 0))
    args.rank = 0
    world_size = 1
    if args.distributed:
        dist.init_process_group(backend=args.dist_backend, init_method=args.dist_url)
        args.rank = dist.get_rank()
        world_size = dist.get_world_size()
    if torch.cuda.is_available():
        torch.cuda.set_device(args.gpu)
        device = torch.device("cuda", args.gpu)
    else:
        device = torch.device("cpu")

    print(f"=> creating model '{args.arch}'")
    model = ResNet()
    if args.distributed:
        model.to(device)
        # the batch size is given for the node: divide it among the processes
        args.batch_size = int(args.batch_size / world_size)
        model = torch.nn.parallel.DistributedDataParallel(
            model, device_ids=[args.gpu] if torch.cuda.is_available() else None)
    elif torch.cuda.device_count() > 1:
        # DataParallel will divide and allocate batch_size to all available GPUs
        model = torch.nn.DataParallel(model).cuda()
    else:
        model = model.to(device)

    criterion = nn.CrossEntropyLoss().to(device)
    optimizer = torch.optim.SGD(model.parameters(), args.lr, momentum=args.momentum,
                                weight_decay=args.weight_decay)
    # the learning rate is divided by 5 every 3 epochs
    scheduler = StepLR(optimizer, step_size=3, gamma=0.2)

    start_epoch = 0
    if args.resume:
        if os.path.isfile(args.resume):
            print(f"=> loading checkpoint '{args.resume}'")
            checkpoint = torch.load(args.resume, map_location=device)
            start_epoch = checkpoint["epoch"]
            best_acc1 = checkpoint["best_acc1"]
            model.load_state_dict(checkpoint["state_dict"])
            optimizer.load_state_dict(checkpoint["optimizer"])
            scheduler.load_state_dict(checkpoint["scheduler"])
            print(f"=> loaded checkpoint '{args.resume}' (epoch {checkpoint['epoch']})")
        else:
            print(f"=> no checkpoint found at '{args.resume}'")

    train_dataset, val_dataset = FakeImages(64, seed=1), FakeImages(16, seed=2)
    train_sampler = torch.utils.data.distributed.DistributedSampler(train_dataset) if args.distributed else None
    train_loader = torch.utils.data.DataLoader(
        train_dataset, batch_size=args.batch_size, shuffle=(train_sampler is None), sampler=train_sampler)
    val_loader = torch.utils.data.DataLoader(val_dataset, batch_size=args.batch_size, shuffle=False)

    for epoch in range(start_epoch, args.epochs):
        if args.distributed:
            train_sampler.set_epoch(epoch)
        train(train_loader, model, criterion, optimizer, epoch, device, args)
        acc1 = validate(val_loader, model, criterion, device, args)
        scheduler.step()

        is_best = acc1 > best_acc1
        best_acc1 = max(acc1, best_acc1)
        if not args.distributed or args.rank == 0:
            save_checkpoint({
                "epoch": epoch + 1,
                "arch": args.arch,
                "state_dict": model.state_dict(),
                "best_acc1": best_acc1,
                "optimizer": optimizer.state_dict(),
                "scheduler": scheduler.state_dict(),
            }, is_best)


def train(train_loader, model, criterion, optimizer, epoch, device, args):
    model.train()
    for i, (images, target) in enumerate(train_loader):
        images = images.to(device, non_blocking=True)
        target = target.to(device, non_blocking=True)
        output = model(images)
        loss = criterion(output, target)
        acc1 = (output.argmax(dim=1) == target).float().mean() * 100

        # compute gradient and do SGD step
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

        if i % args.print_freq == 0 and args.rank == 0:
            print(f"Epoch: [{epoch}][{i}/{len(train_loader)}]\tLoss {loss.item():.9f}\tAcc@1 {acc1.item():6.2f}")


def validate(val_loader, model, criterion, device, args):
    model.eval()
    losses, correct, count = 0.0, 0, 0
    with torch.no_grad():
        for images, target in val_loader:
            images, target = images.to(device), target.to(device)
            output = model(images)
            losses += criterion(output, target).item() * len(target)
            correct += (output.argmax(dim=1) == target).sum().item()
            count += len(target)
    if args.rank == 0:
        print(f" * Acc@1 {100 * correct / count:.3f} Val loss {losses / count:.9f}")
    return 100 * correct / count


def save_checkpoint(state, is_best, filename="checkpoint.pth.tar"):
    torch.save(state, filename)
    if is_best:
        shutil.copyfile(filename, "model_best.pth.tar")


if __name__ == "__main__":
    main()
