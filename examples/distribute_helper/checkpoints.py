import torch
from parallel import rank0, unwrap


def save(path, net, optim, sched, epoch):
    if rank0():
        torch.save({"net": unwrap(net).state_dict(), "optim": optim.state_dict(), "sched": sched.state_dict(),
                    "epoch": epoch}, path)


def load(path, net, optim, sched):
    state = torch.load(path, map_location="cpu", weights_only=False)
    unwrap(net).load_state_dict(state["net"])
    optim.load_state_dict(state["optim"])
    sched.load_state_dict(state["sched"])
    return state["epoch"] + 1
