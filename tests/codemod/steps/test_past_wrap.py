"""A training forward that runs the module inside DDP was never averaged; the engine averages it, which is marked."""

from __future__ import annotations

import pytest

from dsmigrate.codemod.model import Kind
from tests.codemod.checks import convert

LOOP = """
    for x, y in train_loader:
        {before}
        loss = {loss}
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    """


COMPUTE = "def compute(net, x, y):\n    return F.cross_entropy(net(x), y)\n\n\n"
OPTIMIZER = "optimizer = torch.optim.SGD(model.parameters(), lr=0.1)"
UNWRAP = "def unwrap(net):\n    if hasattr(net, 'module'):\n        return net.module\n    return net\n\n\n"
CHOICE = "plain = model.module if hasattr(model, 'module') else model"
PLAIN = "F.cross_entropy(plain(x), y)"


def loop(loss: str, before: str = "x, y = x.cuda(), y.cuda()") -> str:
    return LOOP.format(loss=loss, before=before)


@pytest.mark.parametrize(
    "parts",
    [
        {"loop": loop("F.cross_entropy(model.module(x), y)")},
        {"loop": loop("F.cross_entropy(out, y)", before="out = model.module(x)")},
        {"loop": loop(PLAIN), "optimizer": f"plain = model.module\n{OPTIMIZER}"},
        {"loop": loop(PLAIN), "wrap": "model = Net().cuda()\nplain = model\nmodel = DDP(model)"},
        {"loop": loop("compute(model.module, x, y)"), "helpers": COMPUTE},
        {"loop": loop("unwrap(model).encode(x).mean()"), "helpers": UNWRAP},
        {"loop": loop("plain.encode(x).mean()"), "optimizer": f"{OPTIMIZER}\nplain = unwrap(model)", "helpers": UNWRAP},
        {"loop": loop(PLAIN, before=CHOICE)},
    ],
    ids=["module", "through a variable", "taken out", "kept before the wrap", "in a function", "by a call",
         "by a call before", "by a choice"],
)  # fmt: skip
def test_a_forward_past_the_wrapper_is_marked(parts: dict[str, str]) -> None:
    migrated = convert(**parts)
    [change] = [change for change in migrated.changes if change.code == "MG121"]
    assert change.kind is Kind.TODO
    assert "TODO(dsmigrate MG121): DDP did not see this forward" in migrated.code


@pytest.mark.parametrize(
    "parts",
    [
        {"loop": loop("F.cross_entropy(model(x), y)")},
        {"loop": loop("F.cross_entropy(model(x), y) + sum(p.pow(2).sum() for p in model.module.parameters())")},
        {"loop": loop("F.cross_entropy(model(x), model.module(x).argmax(1))")},
        {"loop": loop("compute(model, x, y)"), "helpers": COMPUTE},
        {"loop": loop("F.cross_entropy(model(x), y) + unwrap(model).penalty()"), "helpers": UNWRAP},
        {"loop": loop("F.cross_entropy(model(x), y)"), "end": "with torch.no_grad():\n    print(model.module(x))\n"},
    ],
    ids=["engine", "a penalty on weights", "engine and module", "in a function", "a penalty by a call", "evaluation"],
)  # fmt: skip
def test_what_the_wrapper_sees_is_not(parts: dict[str, str]) -> None:
    convert(**parts).silent("MG121")
