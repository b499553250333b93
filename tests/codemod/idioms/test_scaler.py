"""Gradient scalers: torch's, those of libraries, apex."""

from __future__ import annotations

import pytest

from dsmigrate.codemod.model import Kind, Status
from tests.codemod.converting import HEAD, Converted, converted

SCRIPT = (
    HEAD
    + """
import argparse
import timm.utils
from timm.utils import NativeScaler
parser = argparse.ArgumentParser()
parser.add_argument("--amp", action="store_true")
parser.add_argument("--clip", type=float, default=1.0)
parser.add_argument("--accum", type=int, default=4)
args = parser.parse_args()
{helpers}
dist.init_process_group("nccl")
model = DDP(nn.Linear(4, 4))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
scaler = {made}
for i, x in enumerate(torch.utils.data.DataLoader(data, batch_size=8)):
    with torch.autocast("cuda", torch.float16):
        loss = model(x).sum()
{body}
"""
)
BODY = "optimizer.zero_grad()\nscaler.scale(loss).backward()\nscaler.step(optimizer)\nscaler.update()"


def script(
    body: str = BODY, made: str = 'torch.amp.GradScaler("cuda")', helpers: str = "", **options: object
) -> Converted:
    return converted(
        SCRIPT.format(helpers=helpers, made=made, body="".join(f"    {line}\n" for line in body.splitlines())),
        **options,
    )


@pytest.mark.parametrize(
    "made",
    [
        'torch.amp.GradScaler("cuda")',
        "torch.cuda.amp.GradScaler()",
        'torch.GradScaler("cuda", enabled=args.amp)',
        "torch.cuda.amp.GradScaler(init_scale=1024.0)",
    ],
)
def test_the_scaler_drives_the_engine(made: str) -> None:
    found = script(made=made)
    assert not found.todos
    assert "ds_compat.use_grad_scaler(model, scaler)" in found.text
    assert "model.backward(loss)" in found.text
    assert "model.step()\n    scaler.update()" in found.text
    assert "scaler.scale" not in found.text


@pytest.mark.parametrize(
    "body",
    [
        (
            "scaled = scaler.scale(loss)\noptimizer.zero_grad()\nscaled.backward()\n"
            "scaler.step(optimizer)\nscaler.update()"
        ),
        "loss = scaler.scale(loss)\nloss.backward()\nscaler.step(optimizer)\nscaler.update()\noptimizer.zero_grad()",
        (
            "scaler.scale(loss / args.accum).backward()\nif (i + 1) % args.accum == 0:\n"
            "    scaler.step(optimizer)\n    scaler.update()\n    optimizer.zero_grad()"
        ),
    ],
)
def test_other_spellings(body: str) -> None:
    found = script(body)
    assert found.status is Status.CONVERTED, found.todos
    assert ".scale(" not in found.text
    assert "model.step()" in found.text


def test_unscaling_and_the_clip_go() -> None:
    found = script(
        BODY.replace(
            "scaler.step",
            "scaler.unscale_(optimizer)\nnn.utils.clip_grad_norm_(model.parameters(), args.clip)\nscaler.step",
        )
    )
    assert not found.todos
    assert "unscale_" not in found.text
    assert "gradient_clipping=args.clip" in found.text


def test_a_clip_of_scaled_gradients_is_marked() -> None:
    found = script(BODY.replace("scaler.step", "nn.utils.clip_grad_norm_(model.parameters(), 1.0)\nscaler.step"))
    assert found.said("MG427", Kind.TODO)


def test_unscaling_stays_where_gradients_are_looked_at() -> None:
    found = script(
        BODY.replace("scaler.step", "scaler.unscale_(optimizer)\nprint(model.module.weight.grad.norm())\nscaler.step")
    )
    assert found.said("MG426", Kind.KEPT)
    assert "scaler.unscale_(optimizer)" in found.text
    assert found.config["zero_optimization"] == {"stage": 0}


def test_a_scaler_that_may_be_none_is_asked_for() -> None:
    found = script(
        (
            "optimizer.zero_grad()\nif scaler is not None:\n    scaler.scale(loss).backward()\n"
            "    scaler.step(optimizer)\n    scaler.update()\nelse:\n    loss.backward()\n"
            "    optimizer.step()"
        ),
        "torch.cuda.amp.GradScaler() if args.amp else None",
    )
    assert "if scaler is not None:\n    ds_compat.use_grad_scaler(model, scaler)" in found.text


def test_a_scaler_that_is_off_drives_nothing_in_float32() -> None:
    text = SCRIPT.replace('with torch.autocast("cuda", torch.float16):', "if True:")
    found = converted(
        text.format(
            helpers="",
            made="torch.cuda.amp.GradScaler(enabled=False)",
            body="".join(f"    {line}\n" for line in BODY.splitlines()),
        )
    )
    assert "use_grad_scaler" not in found.text
    assert not found.todos


def test_an_update_without_a_step_is_marked() -> None:
    found = script(
        "optimizer.zero_grad()\nscaler.scale(loss).backward()\nscaler.unscale_(optimizer)\n"
        "if args.amp:\n    scaler.step(optimizer)\nscaler.update()"
    )
    assert found.said("MG303", Kind.TODO)


def test_a_library_that_steps_by_itself_gets_the_engine() -> None:
    found = script(
        "optimizer.zero_grad()\nscaler(loss, optimizer, clip_grad=args.clip, parameters=model.parameters())",
        "NativeScaler()",
    )
    assert "scaler = ds_compat.EngineScaler(model, scaler)" in found.text
    assert "gradient_clipping=args.clip" in found.text
    assert not found.todos


def test_a_librarys_scaler_drives_the_engine_only_in_runs_that_step_through_it() -> None:
    found = script(
        "optimizer.zero_grad()\nif args.amp:\n    scaler(loss, optimizer, parameters=model.parameters())\n"
        "else:\n    loss.backward()\n    optimizer.step()",
        "NativeScaler()",
    )
    assert "if args.amp:\n    scaler = ds_compat.EngineScaler(model, scaler)\n" in found.text
    assert not found.todos


@pytest.mark.parametrize(("mode", "is_marked"), [("agc", True), ("norm", False)])
def test_a_clip_that_the_engine_cannot_make_is_marked(mode: str, is_marked: bool) -> None:
    call = "scaler(loss, optimizer, clip_grad=args.clip, clip_mode=args.mode, parameters=model.parameters())"
    found = script(f"optimizer.zero_grad()\n{call}", "NativeScaler()", f"args.mode = {mode!r}")
    assert bool(found.todos) is is_marked
    assert not is_marked or "clipping by agc fails" in found.text


def test_a_scaler_that_steps_an_object_around_the_optimizer_is_refused() -> None:
    helpers = (
        "class Noam:\n    def __init__(self, optimizer):\n        self.optimizer = optimizer\n"
        "    def step(self):\n        self.optimizer.param_groups[0]['lr'] *= 0.9\n"
        "        self.optimizer.step()"
    )
    found = script(
        BODY.replace("step(optimizer)", "step(Noam(optimizer) if args.clip else optimizer)"), helpers=helpers
    )
    assert found.codes(Kind.REFUSED) == {"MG913"}


def test_a_region_that_is_not_read_is_marked_beside_a_scaler() -> None:
    text = SCRIPT.replace('with torch.autocast("cuda", torch.float16):', "with tricks.region():")
    found = converted(
        text.format(
            helpers="import tricks",
            made='torch.amp.GradScaler("cuda")',
            body="".join(f"    {line}\n" for line in BODY.splitlines()),
        )
    )
    assert found.said("MG307", Kind.TODO)


def test_a_scaler_that_a_later_method_makes_is_taught_behind_it() -> None:
    found = converted(
        HEAD
        + """
        class Trainer:
            def __init__(self, model):
                self.model = DDP(model)
                self.prepare()

            def prepare(self):
                self.optimizer = torch.optim.Adam(self.model.parameters(), lr=0.1)

            def fit(self, data):
                self.scaler = torch.amp.GradScaler("cuda")
                for x in data:
                    with torch.autocast("cuda", torch.float16):
                        loss = self.model(x.cuda()).sum()
                    self.optimizer.zero_grad()
                    self.scaler.scale(loss).backward()
                    self.scaler.step(self.optimizer)
                    self.scaler.update()

        dist.init_process_group("nccl")
        Trainer(nn.Linear(4, 2).cuda()).fit(torch.utils.data.DataLoader(list(range(4))))
        """
    )
    made = 'self.scaler = torch.amp.GradScaler("cuda")\n        ds_compat.use_grad_scaler(self.model, self.scaler)\n'
    assert made in found.text
    assert not found.todos


@pytest.mark.parametrize("switch", ["args.amp", "settings.amp"])
def test_runs_that_step_without_the_scaler_do_not_ask_it(switch: str) -> None:
    found = converted(
        HEAD
        + f"""
        import argparse
        from lab import load

        parser = argparse.ArgumentParser()
        parser.add_argument("--amp", action="store_true")
        args = parser.parse_args()
        settings = load()
        dist.init_process_group("nccl")
        model = DDP(nn.Linear(4, 4).cuda())
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        scaler = torch.cuda.amp.GradScaler()
        for x in torch.utils.data.DataLoader(data, batch_size=8):
            optimizer.zero_grad()
            loss = model(x).sum()
            if {switch}:
                scaler.scale(loss).backward()
                scaler.step(optimizer)
                scaler.update()
            else:
                loss.backward()
                optimizer.step()
        """
    )
    assert f"if {switch}:\n    ds_compat.use_grad_scaler(model, scaler)\n" in found.text
    assert not found.todos


def test_the_line_stands_behind_the_scaler_where_some_ranks_stop_before() -> None:
    found = converted(
        f"""{HEAD}
import sys
class Trainer:
    def __init__(self):
        if int(os.environ["RANK"]) > open("most").read():
            sys.exit()
        self.model = DDP(nn.Linear(4, 4).cuda())
        self.optimizer = torch.optim.SGD(self.model.parameters(), 0.1)
    def train(self):
        self.scaler = torch.cuda.amp.GradScaler()
        for x in data:
            self.optimizer.zero_grad()
            with torch.autocast("cuda", torch.float16):
                loss = self.model(x).sum()
            self.scaler.scale(loss).backward()
            self.scaler.step(self.optimizer)
            self.scaler.update()
dist.init_process_group("nccl")
trainer = Trainer()
trainer.train()
"""
    )
    made = "        self.scaler = torch.cuda.amp.GradScaler()\n"
    assert f"{made}        ds_compat.use_grad_scaler(self.model, self.scaler)\n" in found.text
