"""Checkpoints stay files: whole states are gathered where all ranks are, before the save; loads reach the masters."""

from __future__ import annotations

import itertools
import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import pytest

from dsmigrate.codemod.model import Kind, Status
from tests.codemod.converting import HEAD, Converted, converted

STATE = '{"model": model.module.state_dict(), "optimizer": optimizer.state_dict(), "epoch": epoch}'
SAVE = f'torch.save({STATE}, "last.pt")'
SCRIPT = (
    HEAD
    + """
import argparse
import atexit
import signal
from pathlib import Path
from lab import data, fill, is_main_process, rank_zero_only, remap, save_model
{imports}
parser = argparse.ArgumentParser()
parser.add_argument("--epochs", type=int, default=4)
parser.add_argument("--resume", default="")
args = parser.parse_args()


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.head = nn.Linear(4, 4)

    def forward(self, x):
        return self.head(x)


{helpers}
def main():
    dist.init_process_group("nccl")
    rank, local_rank = dist.get_rank(), int(os.environ["LOCAL_RANK"])
    model = {model}
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.1)
    {resume}
    epoch = 0
    {before}
    for epoch in range(args.epochs):
        for x in torch.utils.data.DataLoader(data, batch_size=8):
            loss = model(x.cuda()).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            {step}
        {save}
    {end}


main()
"""
)


def trained(
    save: str = "pass",
    *,
    model: str = "DDP(Net().cuda())",
    zero_stage: int | None = None,
    options: Mapping[str, Any] = MappingProxyType({}),
    **parts: str,
) -> Converted:
    given = dict.fromkeys(("imports", "helpers", "resume", "before", "step", "end"), "") | parts
    indents = {"resume": 4, "before": 4, "step": 12, "end": 4}
    texts = {name: text.replace("\n", "\n" + " " * indents.get(name, 0)) for name, text in given.items()}
    return converted(
        SCRIPT.format(model=model, save=save.replace("\n", "\n" + " " * 8), **texts),
        **{"zero_stage": zero_stage, **options},
    )


def gathers(found: Converted) -> list[str]:
    """The lines that gather, each with the one behind it."""
    lines = [line.strip() for line in found.text.splitlines()]
    return [
        f"{line} / {behind}"
        for line, behind in itertools.pairwise(lines)
        if line.startswith("ds_compat.gather_checkpoint(")
    ]


# -- what needs nothing ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "save",
    [
        "pass",
        'torch.save(model.module.state_dict(), "weights.pt")',
        'if rank == 0:\n    torch.save({"model": model.module.state_dict(), "epoch": 3}, "weights.pt")',
        'torch.save({"accuracy": 0.5}, "scores.pt")\nprint(os.path.isfile("scores.pt"))',
        'torch.save({"lr": optimizer.param_groups[0]["lr"]}, "a.pt")',
        'torch.save({"name": type(optimizer).__name__}, "a.pt")',
    ],
)
def test_weights_below_stage_3_and_other_files_need_nothing(save: str) -> None:
    found = trained(save)
    assert found.status is Status.CONVERTED
    assert not found.parts & {"gather_checkpoint", "keep_torch_checkpoints"}
    assert not found.todos


def test_at_stage_3_weights_are_gathered_too() -> None:
    found = trained('if rank == 0:\n    torch.save(model.module.state_dict(), "weights.pt")', zero_stage=3)
    assert gathers(found) == ["ds_compat.gather_checkpoint(model, optimizer=False) / if rank == 0:"]


# -- saves -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "guard",
    [
        "rank == 0",
        "dist.get_rank() == 0",
        "not rank",
        "local_rank == 0",
        "local_rank in [-1, 0]",
        "rank % torch.cuda.device_count() == 0",
    ],
)
def test_a_guarded_save_is_gathered_for_before_its_guard(guard: str) -> None:
    found = trained(f"if {guard}:\n    {SAVE}")
    assert len(gathers(found)) == 1
    assert f"if {guard}:\n            {SAVE}" in found.text  # the script's own lines stay
    assert "ds_compat.keep_torch_checkpoints(model)\n" in found.text
    assert not found.todos


def test_a_save_of_all_ranks_gathers_by_itself() -> None:
    found = trained(SAVE)
    assert not gathers(found)
    assert "keep_torch_checkpoints" in found.parts


@pytest.mark.parametrize(
    ("save", "line"),
    [
        (
            f"if rank == 0 and epoch % 5 == 0:\n    {SAVE}",
            "if epoch % 5 == 0:\n            ds_compat.gather_checkpoint(model)\n        if rank == 0 and",
        ),
        (
            f"if epoch % 5 == 0:\n    if rank == 0:\n        {SAVE}",
            "if epoch % 5 == 0:\n            ds_compat.gather_checkpoint(model)\n            if rank",
        ),
        (f"if rank != 0:\n    continue\n{SAVE}", "ds_compat.gather_checkpoint(model)\n        if rank != 0:"),
        (
            "if rank == 0:\n    save(model, optimizer, epoch)",
            "ds_compat.gather_checkpoint(model)\n        if rank == 0:\n            save(",
        ),
        (
            f"state = {STATE}\nif rank == 0:\n    torch.save(state, 'last.pt')",
            f"state = {STATE}\n        if rank == 0:\n            torch.save(state",
        ),
    ],
)
def test_where_all_ranks_meet(save: str, line: str) -> None:
    assert line in trained(save, helpers=f"def save(model, optimizer, epoch):\n    {SAVE}\n\n\n").text


@pytest.mark.parametrize(
    "body", [f"if dist.get_rank() != 0:\n        return\n    {SAVE}", f"if dist.get_rank() == 0:\n        {SAVE}"]
)
def test_a_helper_with_the_guard_in_it(body: str) -> None:
    found = trained("save(model, optimizer, epoch)", helpers=f"def save(model, optimizer, epoch):\n    {body}\n\n\n")
    assert len(gathers(found)) == 1
    assert "def save(model, optimizer, epoch):\n    ds_compat.gather_checkpoint(model)\n" in found.text


@pytest.mark.parametrize(
    ("save", "line"),
    [
        (f"if is_main_process():\n    {SAVE}", "ds_compat.gather_checkpoint(model, keep=is_main_process())"),
        (f"if args.is_master:\n    {SAVE}", "ds_compat.gather_checkpoint(model, keep=args.is_master)"),
        (
            f"if epoch % 2 == 0 and is_main_process():\n    {SAVE}",
            "ds_compat.gather_checkpoint(model, keep=is_main_process())",
        ),
        ("end(model, optimizer, epoch)", "ds_compat.gather_checkpoint(model, keep=True)"),
    ],
)
def test_what_is_not_read_may_let_the_first_rank_through_alone(save: str, line: str) -> None:
    found = trained(save, helpers=f"@rank_zero_only\ndef end(model, optimizer, epoch):\n    {SAVE}\n\n\n")
    assert [one.partition(" / ")[0] for one in gathers(found)] == [line]
    assert "MG635" not in found.codes(Kind.KEPT)


@pytest.mark.parametrize("leave", ["is_main_process()", "fill() and args.resume", "rank > 64"])
def test_an_exit_before_the_training_does_not_part_those_who_train(leave: str) -> None:
    found = trained(f"if rank == 0:\n    {SAVE}", before=f"if {leave}:\n    return")
    assert gathers(found) == ["ds_compat.gather_checkpoint(model) / if rank == 0:"]


@pytest.mark.parametrize(
    "save",
    [
        f"if loss.item() < 3:\n    {SAVE}",
        f"best = loss.item() < 3\nif best:\n    {SAVE}",
        f"if loss.item() >= 3:\n    continue\n{SAVE}",
    ],
)
def test_a_save_by_a_metric_of_each_rank_is_spoken_of(save: str) -> None:
    found = trained(save)
    assert any(keep in gathers(found)[0] for keep in ("keep=True", "keep=best"))  # which each rank knows of itself
    found.said("MG635", Kind.KEPT)


@pytest.mark.parametrize(
    "save",
    [
        f"if loss.item() < 3 and rank == 0:\n    {SAVE}",
        f"dist.all_reduce(loss)\nif loss.item() < 3:\n    if rank == 0:\n        {SAVE}",
        f"who = rank % 8 if args.resume else rank\nif who == 0:\n    {SAVE}",
    ],
)
def test_that_of_rank_0_or_of_all_ranks_is_not(save: str) -> None:
    assert "MG635" not in trained(save).codes(Kind.KEPT)


def test_hyperparameters_out_of_the_state_are_not_gathered() -> None:
    found = trained('print(optimizer.state_dict()["param_groups"][0]["lr"])')
    assert 'print(optimizer.param_groups[0]["lr"])' in found.text
    assert "keep_torch_checkpoints" not in found.parts


# -- ranks that come alone ---------------------------------------------------------------------------------------------

LOOP = f"""try:
    for x in torch.utils.data.DataLoader(data, batch_size=8):
        loss = model(x.cuda()).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
{{}}
    if rank == 0:
        {SAVE}"""


@pytest.mark.parametrize(
    "head", ["except KeyboardInterrupt:", "except (OSError, RuntimeError) as error:", "except:", "except Exception:"]
)
def test_a_save_of_a_rank_that_fails_is_marked(head: str) -> None:
    assert "MG633" in {code for code, _ in trained(end=LOOP.replace("{}", head)).todos}


def test_a_save_that_ends_the_training_is_gathered_for() -> None:
    assert not trained(end=LOOP.replace("{}", "except StopIteration:")).todos
    found = trained(end=LOOP.replace("{}", "finally:"))
    assert len(gathers(found)) == 1
    assert "waits for the others" in found.said("MG633", Kind.KEPT).message
    other = f'try:\n        {SAVE}\n    except OSError:\n        torch.save({STATE}, "other.pt")'
    assert not trained(
        "save(model, optimizer, epoch)",
        helpers=f"def save(model, optimizer, epoch):\n    if dist.get_rank() != 0:\n        return\n    {other}\n\n\n",
    ).todos


@pytest.mark.parametrize("register", ["signal.signal(signal.SIGTERM, leave)", "atexit.register(leave)"])
def test_a_save_in_a_handler_is_marked(register: str) -> None:
    found = trained(before=f"def leave(*_):\n    if rank == 0:\n        {SAVE}\n{register}")
    assert "MG633" in {code for code, _ in found.todos}
    assert not trained(before="def leave(*_):\n    print(1)\nsignal.signal(signal.SIGTERM, leave)").todos


# -- what is not read --------------------------------------------------------------------------------------------------


def test_an_unread_function_that_gets_model_and_optimizer_finds_whole_states() -> None:
    assert gathers(trained("save_model(args, epoch, model, optimizer)")) == [
        "ds_compat.gather_checkpoint(model, keep=True) / save_model(args, epoch, model, optimizer)"
    ]
    assert "keep_torch_checkpoints" in trained(resume="save_model(model, optimizer)").parts
    found = trained(step="save_model(model, optimizer)")
    assert not gathers(found)
    assert "if this saves" in found.said("MG626", Kind.TODO).message


@pytest.mark.parametrize(
    "save",
    [
        'torch.save({"optimizer": optimizer, "epoch": 1}, "a.pt")',
        "state = dict(epoch=1)\nstate['o'] = optimizer\ntorch.save(state, 'a.pt')",
        "torch.save(optimizer, 'a.pt')",
    ],
)
@pytest.mark.parametrize("stage", [0, 2])
def test_the_optimizer_itself_in_a_file_is_marked(save: str, stage: int) -> None:
    trained(save, zero_stage=stage).said("MG631", Kind.TODO)


# -- loads -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "resume",
    [
        (
            'state = torch.load(args.resume)\nmodel.module.load_state_dict(state["model"])\n'
            'optimizer.load_state_dict(state["optimizer"])'
        ),
        (
            'state = torch.load(args.resume)["model"]\nstate.pop("head.weight")\n'
            "model.module.load_state_dict(state, strict=False)"
        ),
        (
            "if args.resume and os.path.isfile(args.resume):\n"
            '    optimizer.load_state_dict(torch.load(args.resume)["optimizer"])'
        ),
        "try:\n    model.module.head.load_state_dict(torch.load(args.resume))\nexcept OSError:\n    pass",
    ],
)
def test_states_are_loaded_as_before(resume: str) -> None:
    found = trained(resume=resume)
    assert resume.replace("\n", "\n    ") in found.text
    assert found.text.index("ds_compat.keep_torch_checkpoints(model)") < found.text.index("torch.load(")
    assert not found.todos


def test_weights_that_are_loaded_before_the_engine_need_nothing() -> None:
    found = trained(model='Net().cuda()\n    model.load_state_dict(torch.load("a.pt"))\n    model = DDP(model)')
    assert found.status is Status.CONVERTED
    assert "keep_torch_checkpoints" not in found.parts


def test_frozen_parameters_count_in_the_optimizers_format() -> None:
    found = trained(SAVE, model="Net().cuda()\n    model.head.bias.requires_grad = False\n    model = DDP(model)")
    assert "groups = ds_compat.parameter_groups(optimizer)\n" in found.text
    assert "ds_compat.keep_torch_checkpoints(model, groups)" in found.text


@pytest.mark.parametrize(
    "taken",
    [
        "self.stem = base.head",
        "self.stem = nn.Sequential(*base.children())",
        "self.stem = nn.ModuleDict({name: one for name, one in base.named_children()})",
        "self.stem = nn.Sequential(*list(base.children())[:-1])",
        "self.stem = nn.ModuleDict()\n        for name, one in base.named_children(): self.stem[name] = one",
    ],
)
@pytest.mark.parametrize("way", ["one.requires_grad_(False)", "one.requires_grad = False"])
def test_parameters_that_were_frozen_in_a_module_of_which_the_model_takes_parts_count_too(taken: str, way: str) -> None:
    helpers = f"""
class Whole(nn.Module):
    def __init__(self, base):
        super().__init__()
        {taken}

    def forward(self, x):
        return self.stem(x)


def made(trained=3):
    base = Net()
    wanted = ["head", "tail"][:trained]
    for name, one in base.named_parameters():
        if all([not name.startswith(layer) for layer in wanted]):
            {way}
    return Whole(base)
"""
    found = trained(SAVE, model="made().cuda()\n    model = DDP(model)", helpers=helpers)
    assert "ds_compat.keep_torch_checkpoints(model, groups)" in found.text


def test_frozen_parameters_of_another_module_do_not_count() -> None:
    found = trained(SAVE, model="Net().cuda()\n    Net().requires_grad_(False)\n    model = DDP(model)")
    assert "ds_compat.keep_torch_checkpoints(model)" in found.text


@pytest.mark.parametrize(
    "call", ["fill(model.module, torch.load(args.resume))", 'fill(model, torch.load(args.resume)["model"])']
)
def test_an_unread_function_that_fills_the_model_reaches_the_masters(call: str) -> None:
    assert f"{call}\n    ds_compat.refresh_masters(model)\n" in trained(resume=call).text


def test_a_function_of_others_that_renames_is_nothing() -> None:
    assert "refresh_masters" not in trained(resume="model.module.load_state_dict(remap(torch.load(args.resume)))").parts


def _shown(over: str, **options: object) -> Converted:
    return converted(
        HEAD
        + f"""
        from tqdm import tqdm

        class Loader(torch.utils.data.DataLoader):
            def __iter__(self):
                return iter(list(super().__iter__()))

        dist.init_process_group("nccl")
        rank = dist.get_rank()
        model = DDP(nn.Linear(4, 2).cuda())
        optimizer = torch.optim.Adam(model.parameters(), lr=0.1)
        loader = Loader(list(range(4)))
        bar = {over} if rank == 0 else loader
        for step, x in enumerate(bar):
            loss = model(x.cuda()).sum()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if rank == 0:
                if step % 100 == 0:
                    torch.save(optimizer.state_dict(), "last.pt")
        """,
        **options,
    )


@pytest.mark.parametrize("over", ["tqdm(loader)", "Loader(list(range(8)))"])
def test_what_one_rank_goes_over_does_not_part_ranks_that_step_together(over: str) -> None:
    found = _shown(over)
    line = "    if step % 100 == 0:\n        ds_compat.gather_checkpoint(model)\n    if rank == 0:\n"
    assert line in found.text
    assert not found.todos


def test_a_save_in_the_arm_of_one_rank_that_trains_there_is_marked() -> None:
    found = converted(
        HEAD
        + """
        dist.init_process_group("nccl")
        model = DDP(nn.Linear(4, 2).cuda())
        optimizer = torch.optim.Adam(model.parameters(), lr=0.1)
        loader = torch.utils.data.DataLoader(list(range(4)))

        def step(x):
            loss = model(x.cuda()).sum()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()

        if dist.get_rank() == 0:
            for x in loader:
                step(x)
                torch.save(optimizer.state_dict(), "last.pt")
        else:
            for x in loader:
                step(x)
        """
    )
    assert found.said("MG633", Kind.TODO)
    assert "gather_checkpoint" not in found.text


def test_a_save_of_a_rank_that_stops_by_its_own_loss_is_marked() -> None:
    found = trained(
        step="""if not torch.isfinite(loss):
    torch.save({"optimizer": optimizer.state_dict()}, "nan.pt")
    raise SystemExit(1)"""
    )
    assert found.said("MG633", Kind.TODO)
    assert "gather_checkpoint" not in found.text


def test_a_save_that_each_step_may_come_to_is_marked() -> None:
    found = trained(
        imports="from lab import due", step=f"if due(loss.item()):\n    {SAVE}".replace(', "epoch": epoch', "")
    )
    assert "gathering at every step takes too long" in found.said("MG633", Kind.TODO).message
    assert "gather_checkpoint" not in found.text


def test_a_save_in_some_steps_is_gathered_for_in_those() -> None:
    found = trained(step=f"if epoch % 2 == 0:\n    if args.resume and unknown(rank):\n        {SAVE}")
    assert gathers(found) == [
        "ds_compat.gather_checkpoint(model, keep=unknown(rank)) / if args.resume and unknown(rank):"
    ]


def test_a_function_that_one_way_comes_to_alone_is_gathered_for_around_it() -> None:
    helper = f"def save(model, optimizer, epoch):\n    {SAVE}\n\n\n"
    found = trained("save(model, optimizer, epoch)", helpers=helper, end="if rank == 0:\n    save(model, optimizer, 9)")
    assert gathers(found) == [
        "ds_compat.gather_checkpoint(model, keep=True) / save(model, optimizer, epoch)",
        "ds_compat.gather_checkpoint(model) / if rank == 0:",
    ]


def test_the_rank_of_the_group_is_that_of_the_process() -> None:
    found = trained(
        f"if args.number == 0:\n    {SAVE}",
        imports="from lab import settings",
        before="args = settings()\ndist.destroy_process_group()\ndist.init_process_group('nccl', rank=args.number)",
    )
    assert gathers(found) == ["ds_compat.gather_checkpoint(model) / if args.number == 0:"]


def test_nothing_is_gathered_at_stage_0() -> None:
    found = _shown("tqdm(loader)", zero_stage=0)
    assert "keep_torch_checkpoints" in found.text
    assert "gather_checkpoint" not in found.text


def test_a_state_is_gathered_when_the_tests_around_the_save_say_also_if_their_values_cannot_be_said() -> None:
    found = converted(
        HEAD
        + """
        import argparse
        from lab import data

        class Trainer:
            def __init__(self, model, loader, args):
                self.model, self.loader, self.args, self.turn = model, loader, args, 0
                self.optimizer = torch.optim.Adam(model.parameters(), lr=0.1)
                self.is_first = dist.get_rank() == 0

            def fit(self):
                for x in self.loader:
                    loss = self.model(x.cuda()).mean()
                    self.optimizer.zero_grad()
                    loss.backward()
                    self.optimizer.step()
                    best = self.turn == 7
                    if self.is_first:
                        print(loss.item())
                        if self.turn % len(self.loader) == 0 and self.args.every > 0:
                            self.save()
                        if self.turn % self.args.every == 0:
                            best = self.turn == 7
                            if best:
                                self.save()
                    self.turn += 1

            def save(self):
                torch.save(self.optimizer.state_dict(), "last.pt")

        parser = argparse.ArgumentParser()
        parser.add_argument("--every", type=int, default=4)
        args = parser.parse_args()
        dist.init_process_group("nccl")
        loader = torch.utils.data.DataLoader(data(args)) if args.every else data(4)
        Trainer(DDP(nn.Linear(4, 2).cuda()), loader, args).fit()
        """
    )
    line = next(one.strip() for one in found.text.splitlines() if "self.turn % len(self.loader) == 0" in one)
    assert line.startswith("if (self.turn % len(self.loader) == 0 and self.args.every > 0)")
    assert ") or (self.turn == 7 and self.turn % args.every == 0):" in line
    assert "best" not in line


def test_a_model_that_is_not_read_may_have_frozen_parameters() -> None:
    found = trained(SAVE, model='fill.__dict__["net"](4).cuda()\n    model = DDP(model)')
    assert "groups = ds_compat.parameter_groups(optimizer)\n" in found.text
    assert "ds_compat.keep_torch_checkpoints(model, groups)" in found.text


@pytest.mark.parametrize(
    ("first", "second", "test"),
    [
        ("args.b", "args.a and args.b", "args.b"),
        ("args.b", "args.x or (args.a and args.b)", "(args.b) or (args.x or (args.a and args.b))"),
        ('args.kind == "b and c"', 'args.kind == "b"', """(args.kind == "b and c") or (args.kind == "b")"""),
    ],
)
def test_of_two_saves_at_a_place_the_wider_test_alone_gathers(first: str, second: str, test: str) -> None:
    found = converted(
        HEAD
        + f"""
        import argparse

        parser = argparse.ArgumentParser()
        for name in ("--a", "--b", "--x"):
            parser.add_argument(name, action="store_true")
        parser.add_argument("--kind", default="b")
        args = parser.parse_args()
        dist.init_process_group("nccl")
        model = DDP(nn.Linear(4, 2).cuda())
        optimizer = torch.optim.Adam(model.parameters(), lr=0.1)
        for x in torch.utils.data.DataLoader(torch.randn(8, 4), batch_size=2):
            optimizer.zero_grad()
            model(x.cuda()).mean().backward()
            optimizer.step()
        if dist.get_rank() == 0:
            if {first}:
                torch.save(optimizer.state_dict(), "a.pt")
            if {second}:
                torch.save(optimizer.state_dict(), "b.pt")
        """
    )
    lines = found.text.splitlines()
    at = next(index for index, line in enumerate(lines) if "gather_checkpoint" in line)
    assert lines[at - 1].strip() == f"if {test}:"


def test_arms_that_become_the_same_are_one() -> None:
    save = "torch.save(model.module.state_dict() if args.wrap else model.state_dict(), 'w.pt')"
    found = converted(
        f"""{HEAD}
import argparse
parser = argparse.ArgumentParser()
parser.add_argument("--wrap", action="store_true")
args = parser.parse_args()
dist.init_process_group("nccl")
model = nn.Linear(4, 4).cuda()
optimizer = torch.optim.SGD(model.parameters(), 0.1)
if args.wrap:
    model = DDP(model)
for x in data:
    optimizer.zero_grad()
    model(x).sum().backward()
    optimizer.step()
{save}
"""
    )
    assert "torch.save(model.module.state_dict(), 'w.pt')" in found.text


SAVER = """
class Saver:
    def __init__(self, model, optimizer):
        self.model = model
        self.optimizer = optimizer

    def save_recovery(self):
        torch.save(self.optimizer.state_dict(), "last.pt")


def train_epoch(model, loader, optimizer, saver):
    last_idx = len(loader) - 1
    for batch_idx, x in enumerate(loader):
        last_batch = batch_idx == last_idx
        loss = model(x.cuda()).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if saver is not None and args.every and (last_batch or (batch_idx + 1) % args.every == 0):
            saver.save_recovery()


parser = argparse.ArgumentParser()
parser.add_argument("--every", type=int, default=0)
parser.add_argument("--local_rank", type=int, default=0)
args = parser.parse_args()
dist.init_process_group("nccl")
loader = create_loader(data, rank=args.local_rank)
model = DDP(nn.Linear(4, 2).cuda())
optimizer = torch.optim.AdamW(model.parameters(), lr=0.1)
saver = None
if args.local_rank == 0:
    saver = CLASS(model=model, optimizer=optimizer)
for epoch in range(4):
    train_epoch(model, loader, optimizer, saver)
    if saver is not None:
        saver.save_recovery()
"""


@pytest.mark.parametrize("kind", ["Saver", "CheckpointSaver"])
def test_a_saver_of_rank_0_is_gathered_for_where_it_saves_and_not_where_it_is_made(kind: str) -> None:
    imports = "import argparse\nfrom lab import CheckpointSaver, create_loader, data\n"
    text = converted(f"{HEAD}{imports}{SAVER.replace('CLASS', kind)}").text
    lines = text.splitlines()
    places = [index for index, line in enumerate(lines) if "gather_checkpoint(" in line]
    tests = [lines[index - 1].strip() for index in places if lines[index - 1].strip().startswith("if ")]
    assert [re.sub("batch_idx == last_idx", "last_batch", one) for one in tests] == [
        "if args.every and (last_batch or (batch_idx + 1) % args.every == 0):"
    ]
    assert len(places) == 2
    assert text.index(f"{kind}(model=model") < text.rindex("gather_checkpoint(")
    assert lines[places[1] + 1] == "    if saver is not None:"


def test_a_save_on_two_ways_of_which_one_is_taken_is_gathered_for_without_asking_which() -> None:
    made = "optimizer = torch.optim.AdamW(model.parameters(), lr=0.1)\n"
    both = f"if args.resume:\n    {made}if not args.resume:\n    {made.replace('0.1', '0.2')}"
    script = SAVER.replace("CLASS", "Saver").replace(made, both)
    script = script.replace("parser.add_argument", 'parser.add_argument("--resume")\nparser.add_argument', 1)
    imports = "import argparse\nfrom lab import create_loader, data\n"
    text = converted(f"{HEAD}{imports}{script}").text.replace("batch_idx == last_idx or", "last_batch or")
    tests = [one.strip() for one in text.splitlines() if "args.every" in one]
    assert tests[0] == "if args.every and (last_batch or (batch_idx + 1) % args.every == 0):"


# -- states that are not gathered --------------------------------------------------------------------------------------

WHOLE = f"if rank == 0:\n    {SAVE}"
OFFLOADED: dict[str, Any] = {"zero_stage": 3, "offload": "nvme", "nvme_path": "/local"}


def in_a_config(**offload: object) -> dict[str, Any]:
    return {"config": {"train_batch_size": 8, "zero_optimization": {"stage": 3, "offload_optimizer": offload}}}


@pytest.mark.parametrize(
    "options", [OFFLOADED, {**OFFLOADED, "offload": "none", **in_a_config(device="nvme", nvme_path="/local")}]
)
@pytest.mark.parametrize("given", [{"save": WHOLE}, {"resume": 'optimizer.load_state_dict(torch.load("last.pt"))'}])
def test_checkpoints_as_files_with_states_on_nvme_are_refused(options: dict[str, Any], given: dict[str, str]) -> None:
    found = trained(options=options, **given)
    assert found.status is Status.REFUSED
    assert "--checkpoints engine" in found.said("MG915", Kind.REFUSED).message
    assert trained(options={**options, "checkpoints": "engine"}, save=WHOLE).status is Status.CONVERTED
    assert trained(options=options).status is Status.CONVERTED


@pytest.mark.parametrize("checkpoints", ["files", "engine"])
def test_a_part_of_the_states_that_no_checkpoint_holds_is_refused(checkpoints: str) -> None:
    options = {**in_a_config(device="cpu", ratio=0.5), "checkpoints": checkpoints}
    assert "ratio of 1" in trained(options=options, save=WHOLE).said("MG915", Kind.REFUSED).message
    assert trained(options=in_a_config(device="cpu", ratio=1.0), save=WHOLE).status is Status.CONVERTED
