import torch
import torch.nn as nn
from torch.utils.data import Dataset


class Mixer(nn.Module):
    """Patches and channels mixed in turns."""

    def __init__(self, patches=16, dim=24, classes=4):
        super().__init__()
        self.embed = nn.Conv2d(3, dim, 4, stride=4)
        self.norm1 = nn.LayerNorm(dim)
        self.tokens = nn.Sequential(nn.Linear(patches, 32), nn.GELU(), nn.Linear(32, patches))
        self.norm2 = nn.LayerNorm(dim)
        self.channels = nn.Sequential(nn.Linear(dim, 48), nn.GELU(), nn.Linear(48, dim))
        self.head = nn.Linear(dim, classes)

    def forward(self, x):
        x = self.embed(x).flatten(2).transpose(1, 2)
        x = x + self.tokens(self.norm1(x).transpose(1, 2)).transpose(1, 2)
        x = x + self.channels(self.norm2(x))
        return self.head(x.mean(1))


class Blobs(Dataset):
    """A bright blob whose quadrant is the class."""

    def __init__(self, n=72):
        generator = torch.Generator().manual_seed(5)
        self.y = torch.randint(0, 4, (n,), generator=generator)
        self.x = 0.8 * torch.randn(n, 3, 16, 16, generator=generator)
        for i, label in enumerate(self.y.tolist()):
            row, column = divmod(label, 2)
            self.x[i, :, 8 * row : 8 * row + 8, 8 * column : 8 * column + 8] += 1.0

    def __len__(self):
        return len(self.y)

    def __getitem__(self, i):
        return self.x[i], self.y[i]
