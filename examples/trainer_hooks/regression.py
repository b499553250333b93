import torch
import torch.nn.functional as F
from core import BaseTrainer


class RegressionTrainer(BaseTrainer):
    """Huber regression with clipping and a momentum optimizer of its own."""

    def configure_optimizer(self):
        decay = [p for p in self.model.parameters() if p.ndim > 1]
        rest = [p for p in self.model.parameters() if p.ndim <= 1]
        groups = [{"params": decay, "weight_decay": 1e-3}, {"params": rest, "weight_decay": 0.0}]
        return torch.optim.SGD(groups, lr=self.config.lr, momentum=0.9)

    def compute_loss(self, batch):
        x, y = batch
        return F.huber_loss(self.model(x), y)

    def before_step(self):
        torch.nn.utils.clip_grad_norm_(self.model.parameters(), self.config.max_norm)
