"""Windows of accumulation, and what switched DDP's exchange off in them."""

from __future__ import annotations

import pytest

from dsmigrate.codemod.model import Kind, Status
from tests.codemod.converting import HEAD, Converted, converted

START = (
    HEAD
    + """
import argparse
import contextlib
parser = argparse.ArgumentParser()
parser.add_argument("--accum", type=int, default=4)
args = parser.parse_args()
dist.init_process_group("nccl")
model = DDP(nn.Linear(4, 4).cuda())
optimizer = torch.optim.AdamW(model.parameters(), lr=0.1)
loader = torch.utils.data.DataLoader(data, batch_size=8)
"""
)
STEP = "optimizer.step()\n        optimizer.zero_grad()"


def script(loop: str, **options: object) -> Converted:
    return converted(START + loop, **options)


WINDOWS = {
    "a test": """
for i, x in enumerate(loader):
    (model(x).sum() / args.accum).backward()
    if (i + 1) % args.accum == 0:
        optimizer.step()
        optimizer.zero_grad()
""",
    "the last batch too": """
for i, x in enumerate(loader):
    (model(x).sum() / args.accum).backward()
    if (i + 1) % args.accum == 0 or i + 1 == len(loader):
        optimizer.step()
        optimizer.zero_grad()
""",
    "an inner loop": """
batches = iter(loader)
for step in range(1000):
    optimizer.zero_grad(set_to_none=True)
    for micro in range(args.accum):
        (model(next(batches)).sum() / args.accum).backward()
    optimizer.step()
""",
    "leftovers": """
for i, x in enumerate(loader):
    (model(x).sum() / args.accum).backward()
    if (i + 1) % args.accum == 0:
        optimizer.step()
        optimizer.zero_grad()
if (i + 1) % args.accum:
    optimizer.step()
    optimizer.zero_grad()
""",
    "two losses": """
for x in loader:
    optimizer.zero_grad()
    model(x).sum().backward()
    model(-x).mean().backward()
    optimizer.step()
""",
}


@pytest.mark.parametrize("loop", WINDOWS.values(), ids=WINDOWS)
def test_windows_stay_the_scripts_own(loop: str) -> None:
    found = script(loop)
    assert found.status is Status.CONVERTED
    assert found.config["managed_gradient_accumulation"] is False
    assert found.config["gradient_accumulation_steps"] == 1
    assert found.config["zero_optimization"]["stage"] == 1
    assert found.said("MG404", Kind.KEPT)
    assert "zero_grad" not in found.text


def test_a_loop_without_windows_says_nothing_of_them() -> None:
    found = script("for x in loader:\n    optimizer.zero_grad()\n    model(x).sum().backward()\n    optimizer.step()\n")
    assert "managed_gradient_accumulation" not in found.config
    assert "MG404" not in found.codes(Kind.KEPT)


SYNC = {
    "choice": (
        "with contextlib.nullcontext() if last else model.no_sync():\n        (model(x).sum() / args.accum).backward()"
    ),
    "the other way round": (
        "with model.no_sync() if not last else contextlib.nullcontext():\n"
        "        (model(x).sum() / args.accum).backward()"
    ),
    "branches": (
        "if last:\n        (model(x).sum() / args.accum).backward()\n    else:\n"
        "        with model.no_sync():\n            (model(x).sum() / args.accum).backward()"
    ),
    "switch": "model.require_backward_grad_sync = last\n    (model(x).sum() / args.accum).backward()",
    "a function as a value": (
        "context = contextlib.nullcontext if last else model.no_sync\n    with context():\n"
        "        (model(x).sum() / args.accum).backward()"
    ),
    "a stack": (
        "with contextlib.ExitStack() as stack:\n        if not last:\n"
        "            stack.enter_context(model.no_sync())\n"
        "        (model(x).sum() / args.accum).backward()"
    ),
}


@pytest.mark.parametrize("body", SYNC.values(), ids=SYNC)
def test_no_sync_goes_in_all_its_forms(body: str) -> None:
    found = script(
        f"for i, x in enumerate(loader):\n    last = (i + 1) % args.accum == 0\n    {body}\n"
        f"    if last:\n        {STEP}\n"
    )
    assert found.status is Status.CONVERTED
    assert "no_sync()" not in found.text
    assert "require_backward_grad_sync" not in found.text
    assert found.said("MG405", Kind.CONVERTED)


def test_gradients_that_are_looked_at_in_a_window_are_averaged_at_every_backward() -> None:
    found = script("""
for i, x in enumerate(loader):
    (model(x).sum() / args.accum).backward()
    if (i + 1) % args.accum == 0:
        model.module.weight.grad.mul_(0.1)
        optimizer.step()
        optimizer.zero_grad()
""")
    assert found.config["zero_optimization"] == {"stage": 0}
    assert "managed_gradient_accumulation" not in found.config


def test_a_norm_of_partial_sums_stays() -> None:
    found = script("""
for i, x in enumerate(loader):
    (model(x).sum() / args.accum).backward()
    nn.utils.clip_grad_norm_(model.parameters(), 0.5)
    if (i + 1) % args.accum == 0:
        optimizer.step()
        optimizer.zero_grad()
""")
    assert found.said("MG423", Kind.KEPT)
    assert found.config["gradient_clipping"] == 0.0
    assert found.config["zero_optimization"] == {"stage": 0}


@pytest.mark.parametrize(
    ("loop", "line"),
    [
        (WINDOWS["a test"], "model.set_gradient_accumulation_boundary((i + 1) % args.accum == 0)"),
        (
            (
                "seen = 0\nfor x in loader:\n    model(x).sum().backward()\n    seen += 1\n"
                "    if seen % args.accum == 0:\n        "
            )
            + STEP
            + "\n",
            "model.set_gradient_accumulation_boundary((seen + 1) % args.accum == 0)",
        ),
        (
            WINDOWS["the last batch too"],
            "model.set_gradient_accumulation_boundary(i + 1 == len(loader) or (i + 1) % args.accum == 0)",
        ),
    ],
)
def test_older_releases_are_told_where_a_window_ends(loop: str, line: str) -> None:
    found = script(loop, target_version="0.19.3")
    assert line in found.text
    assert "managed_gradient_accumulation" not in found.config


@pytest.mark.parametrize(
    ("loop", "dropped"),
    [
        (
            (
                "for x in loader:\n    model(x).sum().backward()\n    if x.shape[0] < 8:\n"
                "        optimizer.zero_grad()\n        continue\n    optimizer.step()\n"
                "    optimizer.zero_grad()\n"
            ),
            True,
        ),
        ("for x in loader:\n    model.zero_grad()\n    model(x).sum().backward()\n    optimizer.step()\n", False),
        (
            (
                "for x in loader:\n    for p in model.parameters():\n        p.grad = None\n"
                "    model(x).sum().backward()\n    optimizer.step()\n"
            ),
            False,
        ),
        (
            (
                "for x in loader:\n    for group in optimizer.param_groups:\n"
                "        for p in group['params']:\n            if p.grad is not None:\n"
                "                p.grad.detach_()\n                p.grad.zero_()\n"
                "    model(x).sum().backward()\n    optimizer.step()\n"
            ),
            False,
        ),
    ],
)
def test_gradients_that_no_step_used_are_dropped(loop: str, dropped: bool) -> None:
    found = script(loop)
    assert ("ds_compat.drop_gradients(model)" in found.text) is dropped
    assert "zero_grad()" not in found.text
    assert "p.grad" not in found.text


@pytest.mark.parametrize(
    "loop",
    [
        "for x in loader:\n    model(x).sum().backward()\n    optimizer.step()\n",
        (
            "for x in loader:\n    optimizer.zero_grad()\n    model(x).sum().backward()\n"
            "    optimizer.step()\n    optimizer.step()\n"
        ),
    ],
)
def test_gradients_that_outlive_their_step_are_marked(loop: str) -> None:
    assert script(loop).said("MG407", Kind.TODO)


def test_what_a_layer_of_a_library_gives_holds_no_gradients() -> None:
    found = converted(
        HEAD
        + """
        class Norm(nn.LayerNorm):
            def forward(self, x):
                return super().forward(x.float()).to(x.dtype)

        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.norm = Norm(4)

            def forward(self, x):
                return self.norm(x).permute(1, 0)

        dist.init_process_group("nccl")
        model = DDP(Net().cuda())
        optimizer = torch.optim.Adam(model.parameters(), lr=0.1)
        for i, x in enumerate(torch.utils.data.DataLoader(list(range(4)))):
            loss = model(x.cuda()).mean() / 4
            loss.backward()
            if (i + 1) % 4 == 0:
                optimizer.step()
                optimizer.zero_grad()
        """
    )
    assert "MG409" not in found.codes(Kind.KEPT)
    assert found.config["zero_optimization"]["stage"] == 1


@pytest.mark.parametrize("first", ["i == 0", "not i", "i % args.accum == 0"])
def test_gradients_that_the_first_turn_zeroes_do_not_outlive_their_step(first: str) -> None:
    found = script(
        f"""
for batch in loader:
    for i, x in enumerate(batch.chunk(4)):
        if {first}:
            optimizer.zero_grad()
        loss = model(x).sum()
        if loss.requires_grad:
            loss.backward()
    optimizer.step()
"""
    )
    assert "MG407" not in found.codes(Kind.TODO)


def test_a_loop_over_what_gives_items_by_number_begins_at_the_first() -> None:
    found = script(
        """
class Chunks:
    def __init__(self, batch):
        self.parts = batch.chunk(4)
    def __getitem__(self, number):
        if number == 0:
            optimizer.zero_grad()
        return self.parts[number]
for batch in loader:
    for x in Chunks(batch):
        model(x).sum().backward()
    optimizer.step()
"""
    )
    assert "MG407" not in found.codes(Kind.TODO)
