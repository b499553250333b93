"""A sequence tagger whose wrap, options, loop and checkpoints each stand in a module of their own."""

import checkpoints
import parallel
import torch
import torch.nn as nn
from options import parse_options
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler
from train import train_epoch


class Tagger(nn.Module):
    def __init__(self, words=40, dim=24, tags=5):
        super().__init__()
        self.embed = nn.Embedding(words, dim)
        self.conv = nn.Conv1d(dim, dim, 3, padding=1)
        self.norm = nn.LayerNorm(dim)
        self.out = nn.Linear(dim, tags)

    def forward(self, tokens):
        x = self.embed(tokens)
        x = x + self.conv(x.transpose(1, 2)).transpose(1, 2).relu()
        return self.out(self.norm(x))


def sentences(n=60, length=10):
    g = torch.Generator().manual_seed(2)
    tokens = torch.randint(0, 40, (n, length), generator=g)
    tags = (tokens + tokens.roll(1, 1)) % 5
    return TensorDataset(tokens, tags)


def main():
    opt = parse_options()
    device = parallel.setup(opt)
    torch.manual_seed(7)
    data = sentences()
    sampler = DistributedSampler(data)
    loader = DataLoader(data, batch_size=opt.batch_size, sampler=sampler)

    net = parallel.distribute(Tagger(), device)
    optimizer = torch.optim.SGD(net.parameters(), lr=opt.lr, momentum=0.9)
    scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda it: min(1.0, (it + 1) / 6))
    first = checkpoints.load(opt.resume, net, optimizer, scheduler) if opt.resume else 0
    for epoch in range(first, opt.epochs):
        sampler.set_epoch(epoch)
        train_epoch(net, loader, optimizer, scheduler, device, epoch, opt)
        checkpoints.save("tagger.pt", net, optimizer, scheduler, epoch)
    torch.distributed.destroy_process_group()


if __name__ == "__main__":
    main()
