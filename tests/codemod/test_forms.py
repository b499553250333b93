"""Forms of a training loop that people write, each with what has to become of it."""

from __future__ import annotations

from textwrap import dedent

import pytest

from dsmigrate.codemod.model import Kind
from tests.codemod.checks import Migrated, check_refused, convert, script

HEAD = "for i, (x, y) in enumerate(train_loader):\n    loss = F.cross_entropy(model(x), y)\n"
ENGINE = HEAD + "    model.backward(loss)\n    model.step()\n"


def loop(*lines: str) -> str:
    return HEAD + "".join(f"    {line}\n" for text in lines for line in text.splitlines())


def trained(*lines: str, stage: int | None = None, **parts: str) -> Migrated:
    return convert(loop=loop(*lines), to=None if stage is None else {"zero_stage": stage}, **parts)


# -- zeroing -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "lines",
    [
        ("model.zero_grad(set_to_none=True)", "loss.backward()", "optimizer.step()"),
        ("optimizer.zero_grad(set_to_none=False)", "loss.backward()", "optimizer.step()"),
        ("model.module.zero_grad()", "loss.backward()", "optimizer.step()"),
        ("loss.backward()", "optimizer.step()", "optimizer.zero_grad()"),
        ("optimizer.zero_grad()", "loss.backward()", "optimizer.step()", "optimizer.zero_grad()"),
        ("for p in model.parameters():\n    p.grad = None", "loss.backward()", "optimizer.step()"),
        ("for name, p in model.named_parameters():\n    p.grad = None", "loss.backward()", "optimizer.step()"),
        (
            "for p in model.parameters():\n    if p.grad is not None:\n        p.grad.data.zero_()",
            "loss.backward()",
            "optimizer.step()",
        ),
        (
            'for group in optimizer.param_groups:\n    for p in group["params"]:\n        p.grad = None',
            "loss.backward()",
            "optimizer.step()",
        ),
    ],
)
@pytest.mark.parametrize("stage", [None, 3])
def test_gradients_are_zeroed_by_the_step_alone(lines: tuple[str, ...], stage: int | None) -> None:
    migrated = trained(*lines, stage=stage)
    assert migrated.section("loop") == ENGINE
    migrated.silent("MG407", "MG408", "MG409")


def test_a_zero_grad_between_backward_and_step_is_left_to_the_person() -> None:
    migrated = trained("loss.backward()", "optimizer.zero_grad()", "optimizer.step()")
    migrated.said("MG408", "optimizer.zero_grad()", Kind.TODO)
    assert "    ds_compat.drop_gradients(model)\n    model.step()\n" in migrated.section("loop")


def test_a_zero_grad_between_two_backwards_is_not_one_of_those() -> None:
    migrated = trained("loss.backward()", "optimizer.zero_grad()", "model(y).sum().backward()", "optimizer.step()")
    assert all(change.kind is not Kind.TODO for change in migrated.changes if change.code == "MG408")


@pytest.mark.parametrize(
    "clear",
    [
        "for p in model.parameters():\n    p.grad.mul_(0.5)",
        'for group in optimizer.param_groups:\n    for p in group["other"]:\n        p.grad = None',
        "for p in other.parameters():\n    p.grad = None",
    ],
)
def test_a_loop_that_does_more_or_less_is_no_zeroing(clear: str) -> None:
    migrated = trained(clear, "loss.backward()", "optimizer.step()", data=_OTHER)
    migrated.said("MG407", "loss.backward()", Kind.TODO)


def test_what_a_zeroing_loop_does_besides_stays() -> None:
    clear = "for p in model.parameters():\n    p.grad.zero_()\n    p.data.zero_()"
    migrated = trained(clear, "loss.backward()", "optimizer.step()")
    migrated.said("MG403", "p.grad.zero_()")
    found = migrated.section("loop")
    assert "    for p in model.parameters():\n        p.data.zero_()\n    ds_compat.refresh_masters(model)\n" in found


_OTHER = """
dataset, other = Digits("train"), Net()
train_loader = DataLoader(dataset, batch_size=args.batch_size, sampler=DistributedSampler(dataset))
"""


def test_gradients_of_a_bad_batch_are_dropped() -> None:
    bad = "if torch.isnan(loss):\n    optimizer.zero_grad()\n    continue"
    migrated = trained("loss.backward()", bad, "optimizer.step()", "optimizer.zero_grad()")
    assert "        ds_compat.drop_gradients(model)\n        continue\n" in migrated.section("loop")


# -- gradients that are read, changed and clipped ----------------------------------------------------------------------

CLIPS = {
    "reads": "norm = sum(p.grad.norm() ** 2 for p in model.parameters() if p.grad is not None) ** 0.5\nprint(norm)",
    "scales": "for p in model.parameters():\n    p.grad.mul_(0.5)",
    "averages": "for p in model.parameters():\n    dist.all_reduce(p.grad)\n    p.grad /= dist.get_world_size()",
    "by value": "nn.utils.clip_grad_value_(model.parameters(), 0.5)",
    "own function": "clip_gradient(optimizer, args.clip)",
    "another module's": "adaptive_clip_grad(model.parameters(), args.clip)",
}
CLIP = """
def clip_gradient(optimizer, limit):
    for group in optimizer.param_groups:
        for param in group["params"]:
            if param.grad is not None:
                param.grad.data.clamp_(-limit, limit)
"""


@pytest.mark.parametrize("form", CLIPS)
def test_what_works_on_gradients_gets_stage_0_or_a_mark(form: str) -> None:
    parts = {"helpers": CLIP, "imports": "from timm.utils import adaptive_clip_grad"}
    lines = ("optimizer.zero_grad()", "loss.backward()", CLIPS[form], "optimizer.step()")
    migrated = trained(*lines, **parts)
    assert migrated.config["zero_optimization"]["stage"] == 0
    assert migrated.config["gradient_clipping"] == 0.0
    for line in CLIPS[form].splitlines():
        assert line in migrated.section("loop")
    marked = [change for change in trained(*lines, stage=2, **parts).changes if change.kind is Kind.TODO]
    assert {change.code for change in marked} <= {"MG409", "MG423"}
    assert marked


def test_hooks_of_parameters_stay() -> None:
    """Measured: a clamp in a hook gives the losses of DDP at ZeRO 0, 2 and 3."""
    hooks = "for p in net.parameters():\n    p.register_hook(lambda g: g.clamp(-1, 1))\n"
    wrap = f"net = Net().cuda()\n{hooks}model = DDP(net)"
    migrated = convert(wrap=wrap)
    assert "    p.register_hook(lambda g: g.clamp(-1, 1))\n" in migrated.section("wrap")
    migrated.said("MG409", "register_hook", Kind.KEPT)


# -- compiled models ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("stage", [0, 1, 2])
@pytest.mark.parametrize(
    ("wrap", "optimizer", "compiled"),
    [
        ("model = Net().cuda()\nmodel = torch.compile(model)\nmodel = DDP(model)", "", "model = torch.compile(model)"),
        ("model = DDP(Net().cuda())\nmodel = torch.compile(model)", "", "model.module.compile()"),
        ("model = DDP(Net().cuda())", "model = torch.compile(model)", "model.module.compile()"),
    ],
)
def test_a_compiled_model_is_trained_compiled(wrap: str, optimizer: str, compiled: str, stage: int) -> None:
    """Measured: torch.compile of the model and of the engine give the losses of DDP at ZeRO 0 and 2."""
    made = "optimizer = torch.optim.AdamW(model.parameters(), lr=args.lr)\n"
    migrated = convert(wrap=wrap, optimizer=made + optimizer, to={"zero_stage": stage})
    assert migrated.code.count(compiled) == migrated.code.count("compile(") == 1
    assert not [change for change in migrated.changes if change.kind is Kind.TODO]


# -- students, teachers, averages --------------------------------------------------------------------------------------

TEACHER = {
    "wrap": "student = DDP(Net().cuda())\nteacher = Net().cuda()\nteacher.load_state_dict(student.module.state_dict())",
    "optimizer": "optimizer = torch.optim.AdamW(student.parameters(), lr=args.lr)",
}


def distilled(after: str) -> str:
    return (
        "for x, y in train_loader:\n    loss = F.mse_loss(student(x), teacher(x).detach())\n"
        "    optimizer.zero_grad()\n    loss.backward()\n    optimizer.step()\n"
        + "".join(f"    {line}\n" for line in after.splitlines())
    )


AVERAGE = "for t, s in zip(teacher.parameters(), student.parameters()):\n    t.data.lerp_(s.data, 0.01)"


def test_a_teacher_that_follows_the_student_stays_below_stage_3() -> None:
    migrated = convert(**TEACHER, loop=distilled(AVERAGE))
    assert migrated.section("loop").endswith(distilled(AVERAGE).partition("optimizer.step()\n")[2])
    assert migrated.config["zero_optimization"]["stage"] == 2
    migrated.silent("MG610", "MG625")


def test_a_teacher_that_follows_the_student_sees_whole_parameters_at_stage_3() -> None:
    migrated = convert(**TEACHER, loop=distilled(AVERAGE), to={"zero_stage": 3})
    assert "    with deepspeed.zero.GatheredParameters(list(student.parameters())):\n" in migrated.section("loop")


def test_a_student_that_is_set_to_its_teacher_keeps_what_it_is_set_to() -> None:
    reset = "student.module.load_state_dict(teacher.state_dict())"
    migrated = convert(**TEACHER, loop=distilled(reset))
    assert "ds_compat.keep_torch_checkpoints(student" in migrated.code


def test_averaged_models_of_torch_follow_the_engine() -> None:
    wrap = "model = DDP(Net().cuda())\nswa = torch.optim.swa_utils.AveragedModel(model.module)"
    migrated = trained(
        "optimizer.zero_grad()", "loss.backward()", "optimizer.step()", "swa.update_parameters(model)", wrap=wrap
    )
    assert "swa.update_parameters(model" in migrated.section("loop")


# -- what else distributes ---------------------------------------------------------------------------------------------


def test_uneven_inputs_are_refused() -> None:
    body = "".join(
        f"    {line}\n" for line in loop("optimizer.zero_grad()", "loss.backward()", "optimizer.step()").splitlines()
    )
    imports = "from torch.distributed.algorithms.join import Join"
    check_refused(
        script(imports=imports, loop="with Join([model]):\n" + body), "MG903", "with Join([model]):", "uneven"
    )
    check_refused(script(loop="with model.join():\n" + body), "MG903", "with model.join():", "uneven")


def test_a_script_with_a_deepspeed_branch_is_refused() -> None:
    wrap = """
        model = Net().cuda()
        if args.deepspeed:
            model, optimizer, _, _ = deepspeed.initialize(model=model, config="ds.json")
        else:
            model = DDP(model)
            optimizer = torch.optim.AdamW(model.parameters(), lr=args.lr)
        """
    branch = """
        if args.deepspeed:
            model.backward(loss)
            model.step()
        else:
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        """
    source = script(
        imports="import deepspeed",
        options='parser.add_argument("--deepspeed", action="store_true")',
        wrap=wrap,
        optimizer="",
        loop=loop(dedent(branch).strip()),
    )
    check_refused(source, "MG904", "deepspeed.initialize(", "already")
