"""Small scripts around a wrapped model, of which the tests of the model's idioms replace a part."""

from __future__ import annotations

from typing import Any

from tests.codemod.converting import HEAD, Converted, converted

OPTIONS = """
import argparse
import copy

parser = argparse.ArgumentParser()
parser.add_argument("--distributed", action="store_true")
parser.add_argument("--resume")
parser.add_argument("--seed", type=int, default=0)
args = parser.parse_args()


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.head = nn.Linear(4, 4)

    def forward(self, x):
        return self.head(x)

"""
LOOP = """
for x in torch.utils.data.DataLoader(data, batch_size=8):
    loss = model(x.cuda()).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""


def trained(
    wrap: str = "model = DDP(Net())",
    optimizer: str = "optimizer = torch.optim.SGD(model.parameters(), lr=0.1)",
    end: str = "",
    helpers: str = "",
    loop: str = LOOP,
    **options: Any,
) -> Converted:
    """Convert a script that wraps a model, makes its optimizer, trains, and ends somehow."""
    return converted(f"{HEAD}{OPTIONS}{helpers}\n{wrap}\n{optimizer}\n{loop}\n{end}\n", **options)
