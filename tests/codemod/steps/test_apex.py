"""Apex amp itself, handed to other functions."""

from __future__ import annotations

import pytest

from dsmigrate.codemod.model import Kind
from tests.codemod.checks import Migrated, convert

OPTIMIZER = """
optimizer = torch.optim.SGD(model.parameters(), lr=args.lr)
model, optimizer = apex.amp.initialize(model, optimizer, opt_level="O1")
model = DDP(model)
restart("last.pt", amp=apex.amp)
"""
LOOP = """
for x, y in train_loader:
    loss = F.cross_entropy(model(x), y)
    optimizer.zero_grad()
    with apex.amp.scale_loss(loss, optimizer) as scaled:
        scaled.backward()
    optimizer.step()
"""


def handed_to(line: str) -> Migrated:
    helper = f"def restart(path, **held):\n    for key in held:\n        {line}\n"
    return convert(imports="import apex", helpers=helper, wrap="model = Net().cuda()", optimizer=OPTIMIZER, loop=LOOP)


def test_a_function_that_loads_states_into_it_is_marked() -> None:
    change = handed_to("held[key].load_state_dict(torch.load(path)[key])").said("MG304", "amp=apex.amp", Kind.TODO)
    assert "amp_scaler" in change.message


@pytest.mark.parametrize("line", ["print(key)"])
def test_a_function_that_loads_nothing_is_not(line: str) -> None:
    assert "hand on the engine's amp_scaler" not in handed_to(line).told()
