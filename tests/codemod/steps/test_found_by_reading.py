"""Faults that reading conversions of real scripts has found; each was silent before."""

from __future__ import annotations

import pytest

from dsmigrate.codemod.model import Kind
from tests.codemod.checks import convert
from tests.codemod.steps.checkpoint_scripts import STATE, saving

CHOICE = """
def choose(args):
    if args.amp:
        return functools.partial(torch.amp.autocast, device_type="cuda", dtype=torch.bfloat16)
    return contextlib.suppress


def train_one(args, model, optimizer, loader, autocast):
    for x, y in loader:
        optimizer.zero_grad()
        with autocast():
            loss = F.cross_entropy(model(x.cuda()), y.cuda())
        loss.backward()
        optimizer.step()
"""


def test_a_parameter_that_is_called_autocast_is_not_the_function_of_torch() -> None:
    migrated = convert(
        imports="import contextlib\nimport functools",
        helpers=CHOICE,
        loop="autocast = choose(args)\ntrain_one(args, model, optimizer, train_loader, autocast)",
    )
    told = migrated.told()
    assert migrated.config.get("torch_autocast", {}).get("dtype") != "float16" or "MG307 todo" in told
    assert 'ds_config["torch_autocast"]' in migrated.code or "MG307 todo" in told


REGIONS = """
region = contextlib.suppress
if args.amp:
    region = torch.cuda.amp.autocast
for x, y in train_loader:
    optimizer.zero_grad()
    if args.amp:
        with region(dtype=chosen(args)):
            loss = F.cross_entropy(model(x.cuda()), y.cuda())
    else:
        with region():
            loss = F.cross_entropy(model(x.cuda()), y.cuda())
    loss.backward()
    optimizer.step()
"""


def test_a_region_that_is_only_known_at_run_time_beside_one_that_is_known_is_marked() -> None:
    migrated = convert(imports="from precision import chosen", loop=REGIONS)
    migrated.said("MG307", "with region(", Kind.TODO)


@pytest.mark.parametrize(
    "told",
    [
        'net._ddp_params_and_buffers_to_ignore = ["experts.weight"]',
        'DDP._set_params_and_buffers_to_ignore_for_model(net, ["experts.weight"])',
    ],
)
def test_parameters_that_ddp_was_to_leave_alone_are_marked(told: str) -> None:
    migrated = convert(wrap=f"net = Net().cuda()\n{told}\nmodel = DDP(net, device_ids=[local_rank])")
    migrated.said("MG114", "model = DDP(net", Kind.TODO)


def test_a_checkpoint_that_another_function_reads_under_the_same_option_is_a_directory_there() -> None:
    migrated = convert(
        helpers='def load_average(args, average):\n    average.load_state_dict(torch.load(args.resume)["average"])\n',
        wrap="net = Net().cuda()\naverage = Net().cuda()\nmodel = DDP(net)",
        resume="""
            if args.resume:
                checkpoint = torch.load(args.resume, map_location="cpu")
                net.load_state_dict(checkpoint["model"])
                optimizer.load_state_dict(checkpoint["optimizer"])
                load_average(args, average)
            """,
        loop=saving(f'torch.save({STATE[:-1]}, "average": average.state_dict()}}, "last.pt")'),
    )
    body = migrated.code[migrated.code.index("def load_average") :]
    assert 'average.load_state_dict(read_checkpoint(args.resume, resume=False)["average"])' in body.split("\n\n")[0]


EPOCHS = """
for epoch in range(3):
    for x, y in train_loader:
        loss = F.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
"""


def test_files_that_each_rank_saves_for_itself_are_marked() -> None:
    migrated = convert(loop=f'{EPOCHS}    torch.save({STATE}, f"last.rank{{rank}}.pt")\n')
    (todo,) = [change for change in migrated.changes if change.code == "MG621" and change.kind is Kind.TODO]
    assert "a file of its own" in todo.message


def test_a_file_that_rank_0_saves_is_no_file_of_each_rank() -> None:
    migrated = convert(loop=f'{EPOCHS}    if rank == 0:\n        torch.save({STATE}, f"rank{{rank}}.pt")\n')
    assert "a file of its own" not in migrated.told()


NORM = """
def total_norm(parameters):
    return torch.norm(torch.stack([p.grad.detach().norm(2) for p in parameters if p.grad is not None]), 2)
"""


def test_a_norm_that_one_branch_measures_stays_in_front_of_a_step_in_another() -> None:
    loop = """
        for index, (x, y) in enumerate(train_loader):
            loss = F.cross_entropy(model(x.cuda()), y.cuda()) / args.accum
            loss.backward()
            if args.clip > 0:
                grad_norm = torch.zeros(1)
            else:
                grad_norm = total_norm(model.parameters())
            if (index + 1) % args.accum == 0:
                optimizer.step()
                optimizer.zero_grad()
            print(grad_norm.item())
        """
    section = convert(helpers=NORM, loop=loop).section("loop")
    assert section.index("grad_norm = total_norm") < section.index("model.step()")
