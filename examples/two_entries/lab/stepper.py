from torch.nn.utils import clip_grad_norm_

from .distributed import is_first


class Stepper:
    """What both scripts do with a loss: accumulate, clip, step, count."""

    def __init__(self, optimizer, parameters, every, max_norm):
        self.optimizer = optimizer
        self.parameters = list(parameters)
        self.every = every
        self.max_norm = max_norm
        self.seen = 0

    def __call__(self, loss):
        self.seen += 1
        (loss / self.every).backward()
        if self.seen % self.every == 0:
            clip_grad_norm_(self.parameters, self.max_norm)
            self.optimizer.step()
            self.optimizer.zero_grad()
        if is_first():
            print(f"micro-batch {self.seen} loss {loss.item():.9f}", flush=True)
