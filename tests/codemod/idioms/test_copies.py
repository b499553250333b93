"""Copies and files of the model, and copies that are made between the wrap and the engine."""

from __future__ import annotations

import pytest

from dsmigrate.codemod.model import Kind, Status
from tests.codemod.idioms.test_model import trained


@pytest.mark.parametrize(
    ("line", "after"),
    [
        ("best = copy.deepcopy(model)", "best = ds_compat.copy_of_module(model.module)"),
        ("best = copy.deepcopy(model.module).half()", "best = ds_compat.copy_of_module(model.module).half()"),
        ('torch.save(model, "a.pt")', 'torch.save(ds_compat.copy_of_module(model.module), "a.pt")'),
        (
            'torch.save({"net": model.module, "epoch": 1}, "a.pt")',
            'torch.save({"net": ds_compat.copy_of_module(model.module), "epoch": 1}, "a.pt")',
        ),
        (
            'torch.save(dict(net=model, epoch=1), "a.pt")',
            'torch.save(dict(net=ds_compat.copy_of_module(model.module), epoch=1), "a.pt")',
        ),
        ('raw = model.module\ntorch.save(raw, "a.pt")', 'torch.save(ds_compat.copy_of_module(raw), "a.pt")'),
        ('torch.save(model.module.head, "a.pt")', 'torch.save(ds_compat.copy_of_module(model.module.head), "a.pt")'),
        (
            'torch.jit.script(model.module).save("a.pt")',
            'torch.jit.script(ds_compat.copy_of_module(model.module)).save("a.pt")',
        ),
        ("average = AveragedModel(model)", "average = AveragedModel(ds_compat.copy_of_module(model.module))"),
    ],
)
def test_the_engines_hooks_stay_behind(line: str, after: str) -> None:
    found = trained(end=line)
    assert after in found.text
    assert found.status is Status.CONVERTED


@pytest.mark.parametrize(
    "line",
    [
        'torch.save(model.module.state_dict(), "a.pt")',
        'torch.save(model.module.head.state_dict(), "a.pt")',
        'torch.save(model.module.head.weight.data, "a.pt")',
        'torch.save({n: p.detach() for n, p in model.named_parameters()}, "a.pt")',
        'torch.save(args, "a.pt")',
        "history = copy.deepcopy(args)",
        'torch.save(copy.deepcopy(list(model.parameters())), "a.pt")',
    ],
)
def test_values_stay(line: str) -> None:
    found = trained(end=line)
    assert line in found.text
    assert found.status is Status.CONVERTED


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ('torch.save(list(model.parameters()), "a.pt")', "detach"),
        ('torch.save({n: p for n, p in model.named_parameters()}, "a.pt")', "detach"),
        ('torch.save(model.module.cpu(), "a.pt")', "copy_of_module"),
        ('state = {"epoch": 1}\nstate["net"] = model.module\ntorch.save(state, "a.pt")', "copy_of_module"),
    ],
)
def test_others_are_marked(line: str, said: str) -> None:
    assert said in trained(end=line).said("MG506", Kind.TODO).message


def test_at_stage_3_the_whole_model_is_left_to_the_person() -> None:
    assert "MG506" in {code for code, _ in trained(end='torch.save(model, "a.pt")', zero_stage=3).todos}


# -- between the wrap and the engine -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "line",
    [
        "ema = copy.deepcopy(model)",
        "ema = AveragedModel(model)",
        "twin.load_state_dict(model.module.state_dict())",
        "for p, q in zip(model.parameters(), twin.parameters()): q.data.copy_(p.data)",
    ],
)
@pytest.mark.parametrize(
    ("seed", "sent"),
    [
        ("", True),
        ("torch.manual_seed(args.seed + dist.get_rank())", True),
        ("if args.half:\n    torch.manual_seed(1)", True),
        ("torch.manual_seed(1)", False),
    ],
)
def test_rank_0s_weights_are_sent_before_a_copy(line: str, seed: str, sent: bool) -> None:
    found = trained(model="twin = Net().cuda()\nmodel = DDP(Net().cuda())", seed=seed, before=line)
    assert ("broadcast_model" in found.parts) is sent
    if sent:
        assert found.text.index("ds_compat.broadcast_model(model)") < found.text.index(line.partition("(")[0])
    assert not found.todos


@pytest.mark.parametrize(
    "line",
    ["print(sum(p.numel() for p in model.parameters()))", "if dist.get_rank() == 0:\n    ema = copy.deepcopy(model)"],
)
def test_nothing_is_sent_where_nothing_is_taken_by_all(line: str) -> None:
    assert "broadcast_model" not in trained(before=line).parts


def test_one_module_less_leads_to_the_copy_of_the_plain_model() -> None:
    found = trained(
        before="ema = copy.deepcopy(model)",
        end='torch.save(ema.module.state_dict(), "a.pt")',
        seed="torch.manual_seed(1)",
    )
    assert 'torch.save(ema.state_dict(), "a.pt")' in found.text
    found = trained(
        before="ema = copy.deepcopy(model)", end='torch.save(ema.state_dict(), "a.pt")', seed="torch.manual_seed(1)"
    )
    assert 'torch.save({f"module.{name}": weight for name, weight in ema.state_dict().items()}, "a.pt")' in found.text
    assert not found.todos
