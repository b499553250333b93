import os

import torch
from torch.nn.parallel import DistributedDataParallel

from .dist import get_rank


class BaseTrainer:
    """The loop; subclasses say what a step is, and may add to the hooks."""

    def __init__(self, config, model, loader, device):
        self.config = config
        self.device = device
        self.loader = loader
        self.start_epoch = 0
        self.raw_model = model.to(device)
        self.model = DistributedDataParallel(
            self.raw_model, device_ids=[device.index] if device.type == "cuda" else None)
        self.optimizer = self.configure_optimizer()
        if config.resume:
            self.resume(config.resume)

    def configure_optimizer(self):
        return torch.optim.AdamW(self.model.parameters(), lr=self.config.lr, weight_decay=0.02)

    def compute_loss(self, batch):
        raise NotImplementedError

    def before_step(self):
        pass

    def after_epoch(self, epoch):
        if get_rank() == 0:
            self.save(epoch)

    def train_step(self, batch):
        self.optimizer.zero_grad()
        loss = self.compute_loss(batch)
        loss.backward()
        self.before_step()
        self.optimizer.step()
        return loss

    def fit(self):
        for epoch in range(self.start_epoch, self.config.epochs):
            self.loader.sampler.set_epoch(epoch)
            self.model.train()
            for index, batch in enumerate(self.loader):
                loss = self.train_step([item.to(self.device) for item in batch])
                if get_rank() == 0:
                    print(f"epoch {epoch} batch {index} loss {loss.item():.9f}", flush=True)
            self.after_epoch(epoch)

    def save(self, epoch):
        os.makedirs(self.config.output, exist_ok=True)
        state = {"model": self.model.module.state_dict(), "optimizer": self.optimizer.state_dict(), "epoch": epoch}
        torch.save(state, os.path.join(self.config.output, "last.pt"))

    def resume(self, path):
        state = torch.load(path, map_location=self.device, weights_only=False)
        self.model.module.load_state_dict(state["model"])
        self.optimizer.load_state_dict(state["optimizer"])
        self.start_epoch = state["epoch"] + 1
