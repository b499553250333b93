import torch.nn.functional as F
from parallel import rank0, reduce_dict
from torch.nn.utils import clip_grad_norm_


def train_epoch(net, loader, optim, sched, device, epoch, opt):
    net.train()
    for step, (tokens, tags) in enumerate(loader):
        tokens, tags = tokens.to(device), tags.to(device)
        scores = net(tokens)
        loss = F.cross_entropy(scores.flatten(0, 1), tags.flatten())
        net.zero_grad()
        loss.backward()
        clip_grad_norm_(net.parameters(), opt.max_norm)
        optim.step()
        sched.step()
        logs = reduce_dict({"loss": loss.detach()})
        if rank0():
            print(f"epoch {epoch} step {step} lr {sched.get_last_lr()[0]:.6f} loss {logs['loss'].item():.9f}", flush=True)
