import torch
from torch.utils.data import Dataset


class Rhythms(Dataset):
    """Sequences whose tag is the phase of a beat."""

    def __init__(self, n=60, length=12):
        generator = torch.Generator().manual_seed(2)
        starts = torch.randint(0, 4, (n, 1), generator=generator)
        self.y = (starts + torch.arange(length)) % 4
        waves = torch.nn.functional.one_hot(self.y, 6).float()
        self.x = waves + 0.4 * torch.randn(n, length, 6, generator=generator)

    def __len__(self):
        return len(self.y)

    def __getitem__(self, i):
        return self.x[i], self.y[i]
