"""
Speaker recognition, for the launcher that passes --local_rank:

    python -m torch.distributed.launch --nproc_per_node=2 launch_local_rank.py
"""
import argparse
import os

import torch
import torch.nn as nn
import torch.nn.functional as F

parser = argparse.ArgumentParser()
# FOR DISTRIBUTED: parse for the local_rank argument, which torch.distributed.launch supplies
parser.add_argument("--local_rank", "--local-rank", default=int(os.environ.get("LOCAL_RANK", 0)), type=int)
parser.add_argument("--max-epoch", default=3, type=int)
parser.add_argument("--batch-size", default=8, type=int)
parser.add_argument("--lr", default=0.03, type=float)
parser.add_argument("--lr-decay", default=0.7, type=float, help="factor per epoch")
parser.add_argument("--margin", default=0.1, type=float)
parser.add_argument("--scale", default=12.0, type=float)
parser.add_argument("--test-interval", default=1, type=int)
args = parser.parse_args()

# FOR DISTRIBUTED: if we are running under torch.distributed.launch, WORLD_SIZE is set
args.distributed = False
if "WORLD_SIZE" in os.environ:
    args.distributed = int(os.environ["WORLD_SIZE"]) > 1

args.world_size = 1
use_cuda = torch.cuda.is_available()
if args.distributed:
    if use_cuda:
        torch.cuda.set_device(args.local_rank)
    torch.distributed.init_process_group(backend="nccl" if use_cuda else "gloo", init_method="env://")
    args.world_size = torch.distributed.get_world_size()
device = torch.device("cuda:%d" % args.local_rank if use_cuda else "cpu")
torch.manual_seed(1)

SPEAKERS = 7


class SpeakerNet(nn.Module):
    """1-d convolutions over filter-bank frames, statistics pooling, an embedding, and cosine logits."""

    def __init__(self, n_mels=20, channels=24, embedding=32):
        super(SpeakerNet, self).__init__()
        self.conv1 = nn.Conv1d(n_mels, channels, 5, padding=2)
        self.norm1 = nn.GroupNorm(4, channels)
        self.conv2 = nn.Conv1d(channels, channels, 3, padding=2, dilation=2)
        self.norm2 = nn.GroupNorm(4, channels)
        self.fc = nn.Linear(2 * channels, embedding)
        self.bn = nn.LayerNorm(embedding)
        self.weight = nn.Parameter(torch.empty(SPEAKERS, embedding))
        nn.init.xavier_normal_(self.weight, gain=1)

    def forward(self, x):
        x = F.relu(self.norm1(self.conv1(x)))
        x = F.relu(self.norm2(self.conv2(x)))
        x = torch.cat((x.mean(2), torch.sqrt(x.var(2) + 1e-5)), dim=1)
        x = self.bn(self.fc(x))
        return F.linear(F.normalize(x), F.normalize(self.weight))


class Utterances(torch.utils.data.Dataset):
    def __init__(self, n):
        g = torch.Generator().manual_seed(2)
        self.speaker = torch.randint(0, SPEAKERS, (n,), generator=g)
        timbre = torch.randn(SPEAKERS, 20, 1, generator=g)
        self.frames = timbre[self.speaker] + 5.0 * torch.randn(n, 20, 30, generator=g)

    def __len__(self):
        return len(self.speaker)

    def __getitem__(self, i):
        return self.frames[i], self.speaker[i]


def am_softmax(cosine, label):
    one_hot = F.one_hot(label, SPEAKERS).to(cosine.dtype)
    return F.cross_entropy(args.scale * (cosine - args.margin * one_hot), label)


model = SpeakerNet().to(device)
# FOR DISTRIBUTED: after the model has been placed on its device, wrap it
if args.distributed:
    model = torch.nn.parallel.DistributedDataParallel(
        model,
        device_ids=[args.local_rank] if use_cuda else None,
        output_device=args.local_rank if use_cuda else None,
        find_unused_parameters=False,
    )

optimizer = torch.optim.SGD(model.parameters(), lr=args.lr, momentum=0.9, weight_decay=2e-4)
train_set = Utterances(80)
train_sampler = None
if args.distributed:
    train_sampler = torch.utils.data.distributed.DistributedSampler(train_set)
train_loader = torch.utils.data.DataLoader(
    train_set, batch_size=args.batch_size, sampler=train_sampler, shuffle=train_sampler is None)


def adjust_learning_rate(epoch):
    lr = args.lr * args.lr_decay ** epoch
    for group in optimizer.param_groups:
        group["lr"] = lr
    return lr


for epoch in range(args.max_epoch):
    lr = adjust_learning_rate(epoch)
    if train_sampler is not None:
        train_sampler.set_epoch(epoch)
    model.train()
    correct = 0
    for num, (frames, speaker) in enumerate(train_loader, start=1):
        frames, speaker = frames.to(device), speaker.to(device)
        model.zero_grad()
        cosine = model(frames)
        nloss = am_softmax(cosine, speaker)
        nloss.backward()
        optimizer.step()
        correct += (cosine.argmax(1) == speaker).sum().item()
        if args.local_rank == 0:
            print("[%2d] step %2d, lr: %.6f, loss: %.9f, ACC %5.2f%%" % (
                epoch, num, lr, nloss.item(), 100.0 * correct / (num * args.batch_size)))
    if epoch % args.test_interval == 0 and args.local_rank == 0:
        state = model.module.state_dict() if args.distributed else model.state_dict()
        torch.save(state, "model_%04d.model" % epoch)
