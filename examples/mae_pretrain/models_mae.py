"""A small masked autoencoder."""
import torch
from torch import nn


class MaskedAutoencoder(nn.Module):
    def __init__(self, img_size=16, patch_size=4, dim=32, decoder_dim=24, heads=4):
        super().__init__()
        self.patch_size = patch_size
        self.num_patches = (img_size // patch_size) ** 2
        self.patch_embed = nn.Conv2d(3, dim, patch_size, stride=patch_size)
        self.pos_embed = nn.Parameter(torch.randn(1, self.num_patches, dim) * 0.02)
        self.encoder = nn.TransformerEncoderLayer(dim, heads, 2 * dim, dropout=0.0, batch_first=True, norm_first=True)
        self.norm = nn.LayerNorm(dim)
        self.decoder_embed = nn.Linear(dim, decoder_dim)
        self.mask_token = nn.Parameter(torch.zeros(1, 1, decoder_dim))
        self.decoder_pos_embed = nn.Parameter(torch.randn(1, self.num_patches, decoder_dim) * 0.02)
        self.decoder = nn.TransformerEncoderLayer(decoder_dim, heads, 2 * decoder_dim, dropout=0.0, batch_first=True)
        self.decoder_pred = nn.Linear(decoder_dim, patch_size ** 2 * 3)

    def patchify(self, imgs):
        p, h = self.patch_size, imgs.shape[2] // self.patch_size
        x = imgs.reshape(imgs.shape[0], 3, h, p, h, p)
        return torch.einsum("nchpwq->nhwpqc", x).reshape(imgs.shape[0], h * h, p * p * 3)

    def forward(self, imgs, noise, mask_ratio=0.5):
        x = self.patch_embed(imgs).flatten(2).transpose(1, 2) + self.pos_embed
        keep = int(self.num_patches * (1 - mask_ratio))
        ids_shuffle = noise.argsort(dim=1)
        ids_restore = ids_shuffle.argsort(dim=1)
        ids_keep = ids_shuffle[:, :keep]
        mask = (ids_restore >= keep).float()
        visible = torch.gather(x, 1, ids_keep.unsqueeze(-1).expand(-1, -1, x.size(2)))
        latent = self.decoder_embed(self.norm(self.encoder(visible)))
        tokens = self.mask_token.expand(x.size(0), self.num_patches - keep, -1).to(latent.dtype)
        full = torch.cat([latent, tokens], dim=1)
        full = torch.gather(full, 1, ids_restore.unsqueeze(-1).expand(-1, -1, full.size(2)))
        pred = self.decoder_pred(self.decoder(full + self.decoder_pos_embed))
        loss = ((pred.float() - self.patchify(imgs)) ** 2).mean(dim=-1)
        return (loss * mask).sum() / mask.sum(), pred, mask
