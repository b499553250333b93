import torch.nn as nn
import torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel


class Task(nn.Module):
    """A network together with its loss."""

    def __init__(self, net):
        super().__init__()
        self.net = net

    def distribute(self, device_ids=None):
        self.net = DistributedDataParallel(self.net, device_ids=device_ids)

    def loss(self, output, target):
        raise NotImplementedError

    def forward(self, inputs, target):
        return self.loss(self.net(inputs), target)


class Tagger(nn.Module):
    def __init__(self, features, hidden, tags):
        super().__init__()
        self.embed = nn.Linear(features, hidden)
        self.mix = nn.Conv1d(hidden, hidden, 3, padding=1)
        self.norm = nn.LayerNorm(hidden)
        self.head = nn.Linear(hidden, tags)

    def forward(self, x):
        x = F.gelu(self.embed(x))
        x = x + self.mix(x.transpose(1, 2)).transpose(1, 2)
        return self.head(self.norm(x))


class TaggingTask(Task):
    def __init__(self, features, hidden, tags):
        super().__init__(Tagger(features, hidden, tags))

    def loss(self, output, target):
        return F.cross_entropy(output.flatten(0, 1), target.flatten(), label_smoothing=0.05)
