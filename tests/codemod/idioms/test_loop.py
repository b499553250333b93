"""Backward, step and zeroed gradients, however a script spells them."""

from __future__ import annotations

from pathlib import Path

import pytest

from dsmigrate.codemod.model import Kind, Status
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


def body(*lines: str, helpers: str = "") -> str:
    return f"{helpers}\nfor x in loader:\n    optimizer.zero_grad()\n    loss = model(x).sum()\n" + "".join(
        f"    {line}\n" for line in lines
    )


@pytest.mark.parametrize(
    ("line", "after"),
    [
        ("loss.backward()", "model.backward(loss)"),
        ("(loss + 1).backward()", "model.backward(loss + 1)"),
        ("torch.autograd.backward(loss)", "model.backward(loss)"),
        ("loss.backward(retain_graph=False)", "model.backward(loss)"),
        ("loss.backward(torch.tensor(0.5))", "model.backward((loss * torch.tensor(0.5)).sum())"),
        ("loss.backward(gradient=torch.ones_like(loss))", "model.backward((loss * torch.ones_like(loss)).sum())"),
        ("torch.autograd.backward([loss, 2 * loss])", "model.backward(loss + 2 * loss)"),
    ],
)
def test_every_spelling_of_backward(line: str, after: str) -> None:
    found = converted(START + body(line, "optimizer.step()"))
    assert found.status is Status.CONVERTED
    assert after in found.text


@pytest.mark.parametrize(
    ("line", "code"),
    [
        ("loss.backward(create_graph=True)", "MG905"),
        ("loss.backward(inputs=list(model.parameters()))", "MG905"),
        ("loss.backward(given)", "MG905"),
        ("loss.backward(*given)", "MG905"),
        ("loss.backward(retain_graph=True); (2 * loss).backward()", "MG905"),
        ("loss.backward(); optimizer.step(lambda: loss)", "MG906"),
        ("loss.backward(); tricks.step(optimizer)", "MG910"),
    ],
)
def test_what_the_engine_cannot_be_given_is_refused(line: str, code: str) -> None:
    last = [] if "step(" in line else ["optimizer.step()"]
    found = converted(START + body(line, *last, helpers="import tricks\nfrom tricks import given"))
    assert found.codes(Kind.REFUSED) == {code}


@pytest.mark.parametrize(
    "test", ["if not torch.isnan(loss):", "if loss < 3:", "if loss.item() < 100 and x.shape[0] > 1:"]
)
def test_a_step_that_each_rank_decides_about_is_marked(test: str) -> None:
    assert converted(START + body("loss.backward()", test, "    optimizer.step()")).said("MG428", Kind.TODO)


@pytest.mark.parametrize(
    "lines",
    [
        ("dist.all_reduce(loss)", "if not torch.isnan(loss):"),
        ("if len(loader) > 3:",),
        ("if dist.get_world_size() > 1:",),
    ],
)
def test_a_step_that_all_ranks_decide_about_alike_is_not(lines: tuple[str, ...]) -> None:
    found = converted(START + body("loss.backward()", *lines, "    optimizer.step()"))
    assert "MG428" not in found.codes(Kind.TODO)


def test_gradients_that_are_taken_through_the_engine_are_marked() -> None:
    found = converted(
        START
        + body(
            "grad = torch.autograd.grad(loss, list(model.parameters()), retain_graph=True)",
            "loss.backward()",
            "optimizer.step()",
        )
    )
    assert found.said("MG413", Kind.TODO)


def test_the_engine_is_called_by_the_name_that_always_holds_it() -> None:
    found = converted(
        HEAD
        + """
import unread

class Trainer:
    def __init__(self, model, optimizer):
        self.model = model
        self.optimizer = optimizer

    def train(self, loader):
        for x in loader:
            loss = self.model(x).sum()
            bare = self.model.module if hasattr(self.model, "module") else self.model
            if hasattr(bare, "scale"):
                bare.scale.sum()
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()

dist.init_process_group("nccl")
model = unread.model().cuda()
if int(os.environ["WORLD_SIZE"]) > 1:
    model = DDP(model)
optimizer = torch.optim.AdamW(model.parameters(), lr=0.1)
Trainer(model, optimizer).train(torch.utils.data.DataLoader(data, batch_size=8))
"""
    )
    assert "self.model.backward(loss)" in found.text
    assert "bare.backward" not in found.text
