"""Saves and resumes for the tests of checkpoints."""

from __future__ import annotations

STATE = '{"model": model.module.state_dict(), "optimizer": optimizer.state_dict(), "epoch": epoch}'
TAKEN_STATE = STATE.replace("model.module", "model")
HOLLOW = '{"model": "saved by the engine", "optimizer": "saved by the engine", "epoch": epoch}'
RESUME = """
start_epoch = 0
if args.resume:
    checkpoint = torch.load(args.resume, map_location="cpu")
    model.module.load_state_dict(checkpoint["model"])
    optimizer.load_state_dict(checkpoint["optimizer"])
    start_epoch = checkpoint["epoch"] + 1
"""
EPOCHS = """
for epoch in range(args.epochs):
    for x, y in train_loader:
        loss = F.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
"""
TRAINED = """for epoch in range(args.epochs):
    for x, y in train_loader:
        loss = F.cross_entropy(model(x), y)
        model.backward(loss)
        model.step()
"""


def saving(text: str) -> str:
    return EPOCHS + "".join(f"    {line}\n" for line in text.strip("\n").splitlines())


def saved(text: str) -> str:
    return TRAINED + "".join(f"    {line}\n" for line in text.strip("\n").splitlines())
