"""Keyword spotting. The loop lives in a function that gets everything it needs, also a scaler or None."""

import argparse
import os

import torch
import torch.distributed as dist
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset, distributed


class DSBlock(nn.Module):
    """Depthwise separable convolution."""

    def __init__(self, channels):
        super().__init__()
        self.depthwise = nn.Conv2d(channels, channels, 3, padding=1, groups=channels)
        self.pointwise = nn.Conv2d(channels, channels, 1)
        self.norm = nn.GroupNorm(4, channels)

    def forward(self, x):
        return torch.relu(self.norm(self.pointwise(self.depthwise(x))))


class KeywordNet(nn.Module):
    def __init__(self, n_words=6, channels=16):
        super().__init__()
        self.conv = nn.Conv2d(1, channels, 5, stride=2, padding=2)
        self.blocks = nn.Sequential(DSBlock(channels), DSBlock(channels))
        self.fc1 = nn.Linear(channels, 32)
        self.fc2 = nn.Linear(32, n_words)

    def forward(self, spectrogram):
        h = self.blocks(torch.relu(self.conv(spectrogram)))
        return self.fc2(torch.relu(self.fc1(h.mean(dim=(2, 3)))))


def synthetic_commands(count, seed):
    g = torch.Generator().manual_seed(seed)
    words = torch.randint(0, 6, (count,), generator=g)
    time_axis = torch.arange(16).view(1, 1, 1, 16)
    mel_axis = torch.arange(12).view(1, 1, 12, 1)
    ridge = torch.exp(-((mel_axis - 2 * words.view(-1, 1, 1, 1) - 0.1 * time_axis) ** 2) / 4.0)
    return TensorDataset(ridge + 0.4 * torch.randn(count, 1, 12, 16, generator=g), words)


def train_one_epoch(net, data_iter, opt, loss_fn, dev, epoch, grad_scaler=None, max_norm=None, verbose=False):
    net.train()
    for n_iter, (x, y) in enumerate(data_iter):
        x, y = x.to(dev), y.to(dev)
        opt.zero_grad(set_to_none=True)
        if grad_scaler is not None:
            with torch.autocast(dev.type, dtype=torch.float16):
                loss = loss_fn(net(x), y)
            grad_scaler.scale(loss).backward()
            if max_norm is not None:
                grad_scaler.unscale_(opt)
                nn.utils.clip_grad_norm_(net.parameters(), max_norm)
            grad_scaler.step(opt)
            grad_scaler.update()
        else:
            loss = loss_fn(net(x), y)
            loss.backward()
            if max_norm is not None:
                nn.utils.clip_grad_norm_(net.parameters(), max_norm)
            opt.step()
        if verbose:
            print(f"Train Epoch: {epoch} [{n_iter}/{len(data_iter)}]\tLoss: {loss.item():.9f}")


@torch.no_grad()
def test(net, data_iter, loss_fn, dev):
    net.eval()
    loss_sum = torch.zeros((), device=dev)
    for x, y in data_iter:
        loss_sum += loss_fn(net(x.to(dev)), y.to(dev))
    dist.all_reduce(loss_sum)
    return loss_sum.item() / (len(data_iter) * dist.get_world_size())


def main():
    parser = argparse.ArgumentParser(description="Keyword spotting (DDP)")
    parser.add_argument("--batch-size", type=int, default=8, metavar="N")
    parser.add_argument("--epochs", type=int, default=3, metavar="N")
    parser.add_argument("--lr", type=float, default=0.3, metavar="LR")
    parser.add_argument("--gamma", type=float, default=0.5, metavar="M")
    parser.add_argument("--max-norm", type=float, default=None)
    parser.add_argument("--fp16", action="store_true", default=False)
    parser.add_argument("--save-model", action="store_true", default=False)
    args = parser.parse_args()

    dist.init_process_group(backend="nccl" if torch.cuda.is_available() else "gloo")
    lrank = int(os.environ["LOCAL_RANK"])
    dev = torch.device("cuda", lrank) if torch.cuda.is_available() else torch.device("cpu")
    torch.manual_seed(5)

    train_ds, test_ds = synthetic_commands(80, 1), synthetic_commands(24, 2)
    train_sampler = distributed.DistributedSampler(train_ds)
    train_loader = DataLoader(train_ds, batch_size=args.batch_size, sampler=train_sampler, num_workers=0)
    test_loader = DataLoader(test_ds, batch_size=6, sampler=distributed.DistributedSampler(test_ds, shuffle=False))

    network = KeywordNet().to(dev)
    network = nn.parallel.DistributedDataParallel(network, [lrank] if dev.type == "cuda" else None)
    adadelta = torch.optim.Adadelta(network.parameters(), lr=args.lr)
    decay = torch.optim.lr_scheduler.StepLR(adadelta, step_size=1, gamma=args.gamma)
    xent = nn.CrossEntropyLoss()
    scaler = torch.amp.GradScaler(dev.type) if args.fp16 else None

    is_chief = dist.get_rank() == 0
    for epoch in range(1, args.epochs + 1):
        train_sampler.set_epoch(epoch)
        train_one_epoch(network, train_loader, adadelta, xent, dev, epoch,
                        grad_scaler=scaler, max_norm=args.max_norm, verbose=is_chief)
        test_loss = test(network, test_loader, xent, dev)
        if is_chief:
            print(f"Test set: epoch {epoch}, average loss: {test_loss:.9f}")
        decay.step()

    if args.save_model and is_chief:
        torch.save(network.module.state_dict(), "keywords.pt")


if __name__ == "__main__":
    main()
