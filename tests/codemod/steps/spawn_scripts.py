"""Scripts that start their processes by themselves."""

from __future__ import annotations

SPAWNED = """
def worker(gpu, world_size, epochs, args):
    dist.init_process_group("nccl", init_method="tcp://localhost:23456", rank=gpu, world_size=world_size)
    torch.cuda.set_device(gpu)
    loader = DataLoader(Digits("train"), batch_size=32)
    model = DDP(Net().cuda(gpu))
    optimizer = torch.optim.AdamW(model.parameters(), lr=args.lr)
    for x, y in loader:
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
"""
NOTHING_ELSE = dict.fromkeys(("group", "data", "wrap", "optimizer", "resume", "loop"), "")
"""The other sections of a script that does all in its worker."""
