"""Loops that tests of engine facts put into scripts."""

from __future__ import annotations

import ast

from tests.codemod.checks import Migrated

STATE = '{"model": model.module.state_dict(), "optimizer": optimizer.state_dict(), "epoch": epoch}'
RESUME = """
if args.resume and os.path.isfile(args.resume):
    checkpoint = torch.load(args.resume, map_location="cpu")
    model.module.load_state_dict(checkpoint["model"])
    optimizer.load_state_dict(checkpoint["optimizer"])
"""
SAVING = f"""
for epoch in range(args.epochs):
    for x, y in train_loader:
        loss = F.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    if rank == 0:
        torch.save({STATE}, os.path.join(args.output, "last.pt"))
"""
WINDOWS = """
for epoch in range(args.epochs):
    for i, (x, y) in enumerate(train_loader):
        loss = F.cross_entropy(model(x), y) / args.accum
        loss.backward()
        if (i + 1) % args.accum == 0 or i + 1 == len(train_loader):
            optimizer.step()
            optimizer.zero_grad()
            scheduler.step()
            print("lr", scheduler.get_last_lr())
"""
SCHEDULER = "scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=args.epochs)"
AMP = """
scaler = torch.cuda.amp.GradScaler(enabled=args.amp)
for x, y in train_loader:
    with torch.cuda.amp.autocast(enabled=args.amp):
        loss = F.cross_entropy(model(x), y)
    optimizer.zero_grad()
    scaler.scale(loss).backward()
    scaler.unscale_(optimizer)
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    scaler.step(optimizer)
    scaler.update()
"""
BF16 = """
for x, y in train_loader:
    with torch.autocast("cuda", dtype=torch.bfloat16):
        loss = F.cross_entropy(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""


def plain(*lines: str, after: tuple[str, ...] = ()) -> str:
    steps = ("optimizer.zero_grad()", "loss.backward()", *lines, "optimizer.step()", *after)
    return "for x, y in train_loader:\n    loss = F.cross_entropy(model(x), y)\n" + "".join(f"    {s}\n" for s in steps)


def calls(migrated: Migrated, name: str) -> list[ast.Call]:
    """Every call of a function or method of this name in the converted script."""
    return [
        node
        for node in ast.walk(ast.parse(migrated.code))
        if isinstance(node, ast.Call)
        and (
            (isinstance(node.func, ast.Attribute) and node.func.attr == name)
            or (isinstance(node.func, ast.Name) and node.func.id == name)
        )
    ]


def guards(migrated: Migrated, name: str) -> list[str]:
    """The tests of all ``if`` statements of ``main`` under which a function is called."""
    (main,) = [
        node for node in ast.parse(migrated.code).body if isinstance(node, ast.FunctionDef) and node.name == "main"
    ]
    return [
        ast.unparse(node.test)
        for node in ast.walk(main)
        if isinstance(node, ast.If)
        for inner in ast.walk(node)
        if isinstance(inner, ast.Call) and ast.unparse(inner.func) == name
    ]
