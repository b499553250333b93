import torch
from torch.utils.data import TensorDataset


def series(n=84, length=12):
    g = torch.Generator().manual_seed(8)
    t = torch.arange(length + 1.0) * 0.5 + 6 * torch.rand(n, 1, generator=g)
    wave = torch.stack([t.sin(), (t * 0.7).cos()], dim=2)
    return TensorDataset(wave[:, :-1], wave[:, 1:])
