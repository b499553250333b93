"""Backward, step and zeroed gradients, however a script spells them."""

from __future__ import annotations

from pathlib import Path

import pytest

from dsmigrate.codemod.model import Status
from tests.codemod.converting import HEAD, converted

START = (
    HEAD
    + """
dist.init_process_group("nccl")
model = DDP(nn.Linear(4, 4).cuda())
optimizer = torch.optim.AdamW(model.parameters(), lr=0.1)
loader = torch.utils.data.DataLoader(data, batch_size=8)
"""
)
LOOPS = {
    "plain": """
for x in loader:
    optimizer.zero_grad()
    loss = model(x).sum()
    loss.backward()
    optimizer.step()
""",
    "another name": """
net = model
opt = optimizer
for x in loader:
    opt.zero_grad()
    net(x).sum().backward()
    opt.step()
""",
    "a function": """
def update(loss, opt):
    opt.zero_grad()
    loss.backward()
    opt.step()

for x in loader:
    update(model(x).sum(), optimizer)
""",
    "by turns": """
batches = iter(loader)
while True:
    try:
        x = next(batches)
    except StopIteration:
        break
    model.zero_grad()
    loss = model(x).sum()
    getattr(loss, "backward")()
    optimizer.step()
""",
}


@pytest.mark.parametrize("loop", LOOPS.values(), ids=LOOPS)
def test_the_engine_runs_backward_and_steps(loop: str) -> None:
    found = converted(START + loop)
    assert found.status is Status.CONVERTED
    assert not found.todos
    assert "backward(" in found.text
    assert ".step()" in found.text
    assert "zero_grad" not in found.text
    assert found.config["gradient_clipping"] == 0.0
    assert found.config["train_micro_batch_size_per_gpu"] == 8
    assert found.config["zero_optimization"] == {"stage": 2}


def test_a_callable_object_in_loops_is_given_the_engine() -> None:
    folder = Path(__file__).parents[3] / "examples" / "two_entries"
    files = {path.relative_to(folder).as_posix(): path.read_text() for path in folder.rglob("*.py")}
    found = converted(files["pretrain.py"], files)
    assert found.status is Status.CONVERTED
    assert "def __call__(self, loss, engine):" in found.texts["lab/stepper.py"]
    assert "stepper(F.mse_loss(model(noisy.to(device)), clean.to(device)), engine=model)" in found.text
