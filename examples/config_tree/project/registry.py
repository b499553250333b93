import torch
import torch.nn as nn

MODELS = {}


def register(name):
    def keep(cls):
        MODELS[name] = cls
        return cls

    return keep


@register("gru")
class Gru(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.gru = nn.GRU(2, width, batch_first=True)
        self.head = nn.Linear(width, 2)

    def forward(self, x):
        return self.head(self.gru(x)[0])


@register("mlp")
class Mlp(nn.Sequential):
    def __init__(self, width):
        super().__init__(nn.Linear(2, width), nn.ReLU(), nn.Linear(width, 2))


def build_model(settings):
    return MODELS[settings.kind](settings.width)


def build_optimizer(parameters, settings):
    return torch.optim.SGD(parameters, lr=settings.lr, momentum=0.9)


def build_schedule(optimizer, settings):
    return torch.optim.lr_scheduler.MultiStepLR(optimizer, milestones=[settings.drop_at], gamma=0.5)
