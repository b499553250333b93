import torch.nn as nn
import torch.nn.functional as F


class TinyEncoder(nn.Module):
    """Gives the loss where labels are given, as the classes of that family do."""

    def __init__(self, words=30, dim=16, labels=4):
        super().__init__()
        self.embed = nn.Embedding(words, dim)
        self.mix = nn.Linear(dim, dim)
        self.LayerNorm = nn.LayerNorm(dim)
        self.classifier = nn.Linear(dim, labels)

    def forward(self, input_ids, labels=None):
        hidden = self.embed(input_ids)
        hidden = self.LayerNorm(hidden + self.mix(hidden.roll(1, 1)).tanh())
        logits = self.classifier(hidden)
        if labels is None:
            return (logits,)
        return F.cross_entropy(logits.flatten(0, 1), labels.flatten()), logits
