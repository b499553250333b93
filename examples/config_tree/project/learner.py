import os

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel


class Learner:
    """The loop over a tree of settings; everything it trains is handed in by ``prepare``."""

    def __init__(self, cfg):
        self.cfg = cfg
        gpu = torch.cuda.is_available()
        dist.init_process_group(backend="nccl" if gpu else "gloo")
        self.device = torch.device("cuda", int(os.environ["LOCAL_RANK"])) if gpu else torch.device("cpu")
        self.model = self.optimizer = self.schedule = None

    def prepare(self, model, build_optimizer, build_schedule):
        model = model.to(self.device)
        ids = [self.device.index] if self.device.type == "cuda" else None
        self.model = DistributedDataParallel(model, device_ids=ids)
        self.optimizer = build_optimizer(self.model.parameters(), self.cfg.train)
        self.schedule = build_schedule(self.optimizer, self.cfg.train)

    def run_epoch(self, loader, epoch):
        window = self.cfg.train.accumulate
        self.model.train()
        self.optimizer.zero_grad()
        for index, (x, y) in enumerate(loader):
            loss = F.mse_loss(self.model(x.to(self.device)), y.to(self.device))
            (loss / window).backward()
            if (index + 1) % window == 0 or index + 1 == len(loader):
                torch.nn.utils.clip_grad_norm_(self.model.parameters(), self.cfg.train.clip)
                self.optimizer.step()
                self.optimizer.zero_grad()
            if dist.get_rank() == 0:
                print(f"epoch {epoch} batch {index} loss {loss.item():.9f}", flush=True)
        self.schedule.step()

    def save(self, epoch):
        state = {
            "model": self.model.module.state_dict(),
            "optimizer": self.optimizer.state_dict(),
            "schedule": self.schedule.state_dict(),
            "epoch": epoch,
        }
        if dist.get_rank() == 0:
            torch.save(state, self.cfg.run.path)

    def resume(self, path):
        state = torch.load(path, map_location=self.device, weights_only=False)
        self.model.module.load_state_dict(state["model"])
        self.optimizer.load_state_dict(state["optimizer"])
        self.schedule.load_state_dict(state["schedule"])
        return state["epoch"] + 1
