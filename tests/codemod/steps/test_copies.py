"""MG506: copies and files of the whole model."""

from __future__ import annotations

import pytest

from dsmigrate.codemod.model import Kind
from tests.codemod.checks import check_kept, check_section, convert, migrate


@pytest.mark.parametrize(
    "text",
    [
        'torch.save(model.module.state_dict(), "weights.pt")\n',
        'torch.save({"epoch": 3, "weights": model.module.state_dict()}, "weights.pt")\n',
        'torch.save(args, "args.pt")\n',
        "history = copy.deepcopy(args)\nprint(history)\n",
    ],
)
def test_what_is_not_the_whole_model_stays(text: str) -> None:
    check_kept("end", text).silent("MG506")


def test_a_copy_from_before_the_engine_stays() -> None:
    migrated = convert(wrap="net = Net().cuda()\naverage = copy.deepcopy(net)\nmodel = DDP(net)\n")
    assert "average = copy.deepcopy(net)" in migrated.section("wrap")
    migrated.silent("MG506")


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("best = copy.deepcopy(model)\n", "best = copy_of_module(model.module)\n"),
        ("best = copy.deepcopy(model.module).half()\n", "best = copy_of_module(model.module).half()\n"),
        ('torch.save(model, "net.pt")\n', 'torch.save(copy_of_module(model.module), "net.pt")\n'),
        ('torch.save(model.module, "net.pt")\n', 'torch.save(copy_of_module(model.module), "net.pt")\n'),
        (
            'raw = model.module\ntorch.save({"net": raw, "epoch": 1}, "net.pt")\n',
            'raw = model.module\ntorch.save({"net": copy_of_module(raw), "epoch": 1}, "net.pt")\n',
        ),
        (
            'state = {"epoch": 1}\nstate["net"] = model.module\ntorch.save(state, "net.pt")\n',
            'state = {"epoch": 1}\nstate["net"] = copy_of_module(model.module)\ntorch.save(state, "net.pt")\n',
        ),
        (
            'torch.save(dict(net=model, o=optimizer.state_dict()), "net.pt")\n',
            (
                'request_checkpoint(dict(net=copy_of_module(model.module), o="saved by the engine"), "net.pt")\n'
                "save_requested_checkpoints(model)\n"
            ),
        ),
    ],
)
def test_the_engine_hooks_stay_behind(before: str, after: str) -> None:
    migrated = check_section("end", before, after)
    assert "def copy_of_module(module):" in migrated.code
    assert "import copy\n" in migrated.code
    migrated.said("MG506", before.splitlines()[-2 if "state[" in before else -1], Kind.CONVERTED)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (
            'torch.jit.script(model.module).save("net.pt")\n',
            'torch.jit.script(copy_of_module(model.module)).save("net.pt")\n',
        ),
        (
            'torch.jit.save(torch.jit.script(model.module.eval()), "net.pt")\n',
            'torch.jit.save(torch.jit.script(copy_of_module(model.module.eval())), "net.pt")\n',
        ),
        (
            "scripted = torch.jit.script(model.module)\n",
            "scripted = torch.jit.script(copy_of_module(model.module))\n",
        ),
        (
            "program = torch.export.export(model.module, (batch,))\n",
            "program = torch.export.export(copy_of_module(model.module), (batch,))\n",
        ),
    ],
)
def test_what_compiles_hooks_gets_a_copy_without_them(before: str, after: str) -> None:
    check_section("end", before, after).said("MG506", before.splitlines()[-1], Kind.CONVERTED)


def test_a_scripted_model_that_is_used_while_it_trains_is_marked() -> None:
    line = "scripted = torch.jit.script(model.module)"
    migrated = convert(optimizer=f"optimizer = torch.optim.SGD(model.parameters(), lr=0.1)\n{line}\n")
    assert "stops at the hooks" in migrated.said("MG506", line, Kind.TODO).message


@pytest.mark.parametrize(
    "text",
    [
        "loss_of = torch.jit.script(torch.nn.functional.mse_loss)\n",
        'torch.jit.trace(model.module, batch).save("net.pt")\n',
    ],
)
def test_what_compiles_no_hooks_stays(text: str) -> None:
    check_kept("end", text).silent("MG506")


def test_a_copy_made_in_a_helper() -> None:
    migrated = convert(
        helpers="""
            def snapshot(net):
                return copy.deepcopy(net.module if hasattr(net, "module") else net).cpu()
            """,
        end='torch.save({"net": snapshot(model)}, "net.pt")',
    )
    assert 'copy_of_module(net.module if hasattr(net, "module") else net).cpu()' in migrated.section("helpers")


def test_an_import_inside_of_a_function_leaves_the_helpers_own_alone() -> None:
    code = migrate(
        """
        import torch
        import torch.distributed as dist
        from torch.nn.parallel import DistributedDataParallel as DDP

        def main(batches):
            dist.init_process_group("nccl")
            model = DDP(torch.nn.Linear(4, 1).cuda())
            optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
            for batch in batches:
                loss = model(batch).mean()
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
            import copy
            print(copy.deepcopy(model.module))

        main([])
        """
    ).code
    assert code.startswith("import copy\n")


def test_averaging_classes_of_others_get_the_module() -> None:
    check_section(
        "end",
        "average = torch.optim.swa_utils.AveragedModel(model)\naverage.update_parameters(model)\n",
        "average = torch.optim.swa_utils.AveragedModel(model.module)\naverage.update_parameters(model.module)\n",
    )


def test_at_stage_three_a_file_of_the_whole_model_is_for_the_person() -> None:
    migrated = convert(end='torch.save(model.module, "net.pt")', to={"zero_stage": 3})
    migrated.said("MG705", "torch.save(model.module", Kind.TODO)
    assert "copy_of_module" not in migrated.code


# -- parts of the model, and parameters --------------------------------------------------------------------------------

PARTS = [
    ('torch.save(model.module.body, "b.pt")\n', 'torch.save(copy.deepcopy(model.module.body), "b.pt")\n'),
    ('torch.save(model.module.blocks[0], "b.pt")\n', 'torch.save(copy.deepcopy(model.module.blocks[0]), "b.pt")\n'),
    (
        'body = model.module.body\ntorch.save({"body": body, "n": 1}, "b.pt")\n',
        'body = model.module.body\ntorch.save({"body": copy.deepcopy(body), "n": 1}, "b.pt")\n',
    ),
    ('torch.save(model.module.body.cpu(), "b.pt")\n', 'torch.save(copy.deepcopy(model.module.body).cpu(), "b.pt")\n'),
    ('torch.save(list(model.parameters()), "b.pt")\n', 'torch.save(copy.deepcopy(list(model.parameters())), "b.pt")\n'),
    (
        'torch.save({n: p for n, p in model.named_parameters()}, "b.pt")\n',
        'torch.save(copy.deepcopy({n: p for n, p in model.named_parameters()}), "b.pt")\n',
    ),
]


@pytest.mark.parametrize(("before", "after"), PARTS)
def test_a_copy_of_a_part_goes_into_a_file(before: str, after: str) -> None:
    migrated = check_section("end", before, after)
    migrated.said("MG506", before.splitlines()[-1], Kind.CONVERTED)
    assert "import copy\n" in migrated.code


@pytest.mark.parametrize(("before", "_after"), PARTS)
def test_parts_carry_nothing_of_the_engine_at_stage_0_and_are_partitioned_at_3(before: str, _after: str) -> None:
    check_kept("end", before, to={"zero_stage": 0}).silent("MG506", "MG705")
    convert(end=before, to={"zero_stage": 3}).said("MG705", before.splitlines()[-1], Kind.TODO)


@pytest.mark.parametrize(
    "text",
    [
        'torch.save(model.module.body.state_dict(), "b.pt")\n',
        'torch.save(model.module.head.weight.data, "b.pt")\n',
        'torch.save({n: p.detach() for n, p in model.named_parameters()}, "b.pt")\n',
        'torch.save(model.module.config, "b.pt")\n',
    ],
)
def test_what_was_never_a_parameter_goes_into_a_file_as_it_is(text: str) -> None:
    check_kept("end", text).silent("MG506")


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("model.module.cpu()", "copy_of_module(model.module).cpu()"),
        ("model.cpu()", "copy_of_module(model.module).cpu()"),
        ("model.module.eval()", "copy_of_module(model.module.eval())"),
        ("model.eval().cpu()", "copy_of_module(model.module.eval()).cpu()"),
    ],
)
def test_a_model_that_is_moved_on_its_way_into_a_file(before: str, after: str) -> None:
    migrated = check_section("end", f'torch.save({before}, "net.pt")\n', f'torch.save({after}, "net.pt")\n')
    migrated.said("MG506", "torch.save(", Kind.CONVERTED)
