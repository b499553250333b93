import torch
import torch.nn as nn


class MaskedAutoencoder(nn.Module):
    """A small masked autoencoder over sequences of patches."""

    def __init__(self, patches=16, width=24, dim=32, depth=2):
        super().__init__()
        self.embed = nn.Linear(width, dim)
        self.position = nn.Parameter(torch.randn(1, patches, dim) * 0.02)
        self.mask_token = nn.Parameter(torch.zeros(1, 1, dim))
        layer = nn.TransformerEncoderLayer(dim, 4, 2 * dim, dropout=0.0, batch_first=True)
        self.blocks = nn.TransformerEncoder(layer, depth, enable_nested_tensor=False)
        self.head = nn.Linear(dim, width)

    def forward(self, patches, mask):
        x = self.embed(patches)
        x = torch.where(mask.unsqueeze(-1), self.mask_token.to(x.dtype), x) + self.position
        pred = self.head(self.blocks(x))
        loss = ((pred - patches) ** 2).mean(dim=-1)
        return (loss * mask).sum() / mask.sum(), pred
