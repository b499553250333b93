"""Optimizers: which need whole parameters, what ZeRO does not see of them, and which cannot be followed."""

from __future__ import annotations

import pytest

from dsmigrate.codemod.model import Kind, Status
from tests.codemod.converting import HEAD, Converted, converted

SCRIPT = (
    HEAD
    + """
import argparse
import random
from functools import partial
import timm.optim
parser = argparse.ArgumentParser()
parser.add_argument("--opt", default="sgd")
args = parser.parse_args()
{helpers}
dist.init_process_group("nccl")
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Linear(4, 4)
        self.head = nn.Linear(4, 4)
    def forward(self, x):
        return self.head(self.body(x))
net = Net()
{before}
model = DDP(net)
optimizer = {made}
loader = torch.utils.data.DataLoader(data, batch_size=8)
{ahead}
for x in loader:
    optimizer.zero_grad()
    loss = model(x).sum()
    loss.backward()
    optimizer.step()
{inside}
"""
)
SGD = "torch.optim.SGD(model.parameters(), lr=0.1)"


def script(
    made: str = SGD, helpers: str = "", before: str = "", ahead: str = "", inside: str = "", **options: object
) -> Converted:
    body = "".join(f"    {line}\n" for line in inside.splitlines())
    return converted(SCRIPT.format(made=made, helpers=helpers, before=before, ahead=ahead, inside=body), **options)


def own(*lines: str) -> str:
    """A class whose step does something to each gradient ``d``."""
    body = "".join(f"                {line}\n" for line in lines)
    return f"""
def scaled(d):
    return d / d.norm()
def doubled(d):
    return d * 2
class Mine(torch.optim.Optimizer):
    def __init__(self, params, lr=0.1):
        super().__init__(params, dict(lr=lr))
    @torch.no_grad()
    def step(self, closure=None):
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is None:
                    continue
                d = p.grad
                state = self.state[p]
                if len(state) == 0:
                    state["m"] = torch.zeros(p.shape)
{body}                state["m"].mul_(0.9).add_(d)
                p.add_(state["m"], alpha=-group["lr"])
"""


@pytest.mark.parametrize(
    "line",
    [
        "d = d / d.norm()",
        "d = scaled(d)",
        "d = d / torch.linalg.vector_norm(d)",
        "d = d / d.abs().max()",
        "d = d @ d",
        "d = d / len(p)",
        "d = d * torch.randn_like(d)",
        "d = d * p.scale",
        "d = d * self.scales[p]",
        "d = d * self.rule(d)",
        "dist.all_reduce(d)",
    ],
)
def test_a_step_that_looks_at_whole_parameters_stays_whole(line: str) -> None:
    found = script("Mine(model.parameters())", own(line))
    assert found.said("MG602", Kind.KEPT)
    assert found.config["zero_optimization"] == {"stage": 0}


@pytest.mark.parametrize(
    "line",
    [
        "d = d.sign()",
        "d = doubled(d)",
        "d = torch.maximum(d, state['m'])",
        "d = d.clamp(-1, 1).lerp(d, 0.5)",
        "d = d + p * group['lr']",
    ],
)
def test_a_step_of_each_number_by_itself_keeps_the_stage(line: str) -> None:
    found = script("Mine(model.parameters())", own(line))
    assert not found.codes(Kind.KEPT) & {"MG602", "MG603"}
    assert found.config["zero_optimization"] == {"stage": 2}


@pytest.mark.parametrize(
    ("made", "code", "stage"),
    [
        ("timm.optim.Lamb(model.parameters())", "MG602", 0),
        ("torch.optim.Adafactor(model.parameters())", "MG602", 0),
        ("partial(timm.optim.Lamb, lr=0.1)(model.parameters())", "MG602", 0),
        ("getattr(torch.optim, args.opt)(model.parameters(), lr=0.1)", "MG603", 2),
    ],
)
def test_classes_by_name_or_table(made: str, code: str, stage: int) -> None:
    found = script(made)
    assert found.said(code, Kind.KEPT)
    assert found.config["zero_optimization"] == {"stage": stage}
    assert not found.todos


@pytest.mark.parametrize(
    "made",
    [
        SGD,
        "torch.optim.AdamW(model.parameters())",
        '{"a": torch.optim.SGD, "b": torch.optim.AdamW}[args.opt](model.parameters())',
    ],
)
def test_elementwise_classes_say_nothing(made: str) -> None:
    found = script(made)
    assert not found.codes(Kind.KEPT) & {"MG602", "MG603"}
    assert found.config["zero_optimization"] == {"stage": 2}
    assert not found.todos


def test_where_a_stage_is_asked_for_it_is_left_to_the_person() -> None:
    assert script("timm.optim.Lamb(model.parameters())", zero_stage=2).said("MG602", Kind.TODO)


def test_a_stage_follows_what_the_run_chooses() -> None:
    found = script('{"sgd": torch.optim.SGD, "lars": timm.optim.Lars}[args.opt](model.parameters(), lr=0.1)')
    assert found.said("MG602", Kind.KEPT)
    assert found.config["zero_optimization"] == {"stage": 2}
    assert 'zero_optimization={"stage": 0 if args.opt' in found.text


@pytest.mark.parametrize("made", ["torch.optim.Adagrad(model.parameters())", "Own(model.parameters())"])
def test_the_own_adagrad_is_put_back(made: str) -> None:
    found = script(made, "class Own(torch.optim.Adagrad):\n    pass")
    assert "ds_compat.use_own_adagrad(model)" in found.text


PIECES = {
    "a group that is added": ("MG605", {"inside": 'optimizer.add_param_group({"params": net.head.parameters()})'}),
    "a part that is thawed": ("MG607", {"inside": "model.module.head.requires_grad_(True)"}),
    "each parameter of a part": (
        "MG607",
        {"inside": "for p in model.module.body.parameters():\n    p.requires_grad = False"},
    ),
    "parameters of a loss": (
        "MG608",
        {
            "before": "loss_of = nn.Linear(4, 4)",
            "made": "torch.optim.SGD([*model.parameters(), *loss_of.parameters()], lr=0.1)",
        },
    ),
    "a hook": ("MG520", {"ahead": "optimizer.register_step_post_hook(print)"}),
    "another step": ("MG520", {"ahead": "plain = optimizer.step\noptimizer.step = lambda: plain()"}),
    "a schedule of one rank": (
        "MG613",
        {
            "ahead": "schedule = torch.optim.lr_scheduler.StepLR(optimizer, 2)",
            "inside": "if dist.get_rank() == 0:\n    schedule.step()",
        },
    ),
    "a rate by the rank's loss": (
        "MG613",
        {"inside": 'if loss.item() > 3:\n    optimizer.param_groups[0]["lr"] *= 0.1'},
    ),
    "a plateau by the rank's loss": (
        "MG613",
        {
            "ahead": "schedule = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer)",
            "inside": "schedule.step(loss.item())",
        },
    ),
    "a set": ("MG614", {"made": "torch.optim.SGD(list(set(model.parameters())), lr=0.1)"}),
    "a comprehension over a set": (
        "MG614",
        {"before": "kept = set(net.parameters())", "made": 'torch.optim.SGD([{"params": [p for p in kept]}], lr=0.1)'},
    ),
    "parameters of groups": (
        "MG630",
        {"inside": 'print(sum(p.norm() for g in optimizer.param_groups for p in g["params"]))'},
    ),
}


@pytest.mark.parametrize(("code", "parts"), PIECES.values(), ids=PIECES)
def test_what_the_pieces_of_zero_do_not_see(code: str, parts: dict[str, str]) -> None:
    found = script(**parts)
    assert found.said(code, Kind.KEPT)
    assert found.config["zero_optimization"] == {"stage": 0}
    assert script(**parts, zero_stage=2).said(code, Kind.TODO)


@pytest.mark.parametrize(
    "parts",
    [
        {"before": "net.body.requires_grad_(False)"},
        {"before": "net.body.requires_grad_(False)", "inside": "model.module.body.requires_grad_(False)"},
        {"made": "torch.optim.SGD(sorted(set(model.parameters()), key=id), lr=0.1)"},
        {"inside": 'for group in optimizer.param_groups:\n    group["lr"] *= 0.9'},
        {
            "ahead": "schedule = torch.optim.lr_scheduler.StepLR(optimizer, 2)",
            "inside": "if dist.get_rank() != -1:\n    schedule.step()",
        },
        {
            "ahead": "schedule = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer)",
            "inside": "dist.all_reduce(loss)\nschedule.step(loss)",
        },
    ],
)
def test_what_is_alike_for_all_pieces_keeps_the_stage(parts: dict[str, str]) -> None:
    found = script(**parts)
    assert found.config["zero_optimization"] == {"stage": 2}, [
        change.message for change in found.changes if change.kind is Kind.KEPT
    ]


REFUSED = {
    "several": ("MG902", {"ahead": "other = torch.optim.SGD(net.head.parameters(), lr=0.1)", "inside": "other.step()"}),
    "a closure": ("MG906", {"inside": "optimizer.step(lambda: model(x).sum())"}),
    "LBFGS": ("MG906", {"made": "torch.optim.LBFGS(model.parameters())"}),
}


@pytest.mark.parametrize(("code", "parts"), REFUSED.values(), ids=REFUSED)
def test_optimizers_that_no_engine_takes(code: str, parts: dict[str, str]) -> None:
    found = script(**parts)
    assert found.status is Status.REFUSED
    assert found.codes(Kind.REFUSED) == {code}


def test_an_unread_step_may_be_that_of_a_schedule() -> None:
    text = SCRIPT.format(made="build(model)", helpers="from factory import build", before="", ahead="", inside="")
    found = converted(text.replace("optimizer.zero_grad()", "model.zero_grad()"))
    assert found.status is Status.REFUSED
    assert found.codes(Kind.REFUSED) == {"MG911"}


def test_rates_written_to_an_optimizer_of_the_config_are_read_back() -> None:
    """Found by fuzzing: the engine's own optimizer has groups as well."""
    found = converted(
        HEAD
        + """
dist.init_process_group("nccl")
model = DDP(nn.Linear(4, 4).cuda())
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step, x in enumerate(torch.utils.data.DataLoader(data, batch_size=8)):
    for group in optimizer.param_groups:
        group["lr"] = 0.1 * min(1.0, step / 6)
    optimizer.zero_grad()
    model(x.cuda()).sum().backward()
    optimizer.step()
""",
        optimizer="config",
    )
    assert not found.todos
    assert "basic_optimizer" in found.text


def test_parts_of_an_unread_model_that_are_named_by_itself_are_no_other_module() -> None:
    found = converted(
        HEAD
        + """
        from lab import build

        dist.init_process_group("nccl")
        model = build(4).cuda()
        groups = [{"params": getattr(model, name).parameters(), "lr": 0.1} for name in model.trained]
        optimizer = torch.optim.Adam(groups, lr=0.01)
        model = DDP(model)
        for x in torch.utils.data.DataLoader(list(range(4))):
            loss = model(x.cuda()).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        """
    )
    assert "MG608" not in found.codes(Kind.KEPT)
    assert "optimizer.zero_grad()" not in found.text


@pytest.mark.parametrize(
    ("made", "helpers"),
    [
        ("hydra.utils.instantiate(cfg, model.parameters())", "import hydra\ncfg = hydra.compose('config')"),
        ("factory.build_optimizer(cfg, model)", "import factory\ncfg = factory.read('config')"),
        ("OPTIMIZERS[kind](net.parameters())", "from registry import OPTIMIZERS\nkind = random.choice(['a', 'b'])"),
        (
            "make(kind)",
            "from elsewhere import factories\nkind = 'sgd'\ndef make(name):\n    return factories.get(name)()",
        ),
        ("build_optimizer(net)", "from elsewhere import build_optimizer"),
    ],
)
def test_what_is_used_as_an_optimizer_is_one_whatever_made_it(made: str, helpers: str) -> None:
    found = script(made, helpers)
    assert found.status is Status.CONVERTED
    assert "optimizer = " + made.replace("cfg, model)", "cfg, net)").replace("model.p", "net.p") + "\n" in found.text
    assert "model.step()" in found.text
    assert "optimizer.step()" not in found.text
    assert found.said("MG602", Kind.KEPT)
    assert found.config["zero_optimization"] == {"stage": 0}


def test_what_has_a_step_alone_may_be_a_schedule() -> None:
    ahead = "import factory\nschedule = factory.build_schedule(optimizer)"
    found = script(ahead=ahead, inside="schedule.step()")
    assert found.status is Status.CONVERTED
    assert "schedule.step()" in found.text


@pytest.mark.parametrize(
    ("opt", "code", "stage"), [("adamw", "MG603", 2), ("Momentum", "MG603", 2), ("lamb", "MG602", 0)]
)
def test_timm_makes_what_its_option_says_by_default(opt: str, code: str, stage: int) -> None:
    found = script("timm.optim.create_optimizer(args, net)", f"args.opt = {opt!r}")
    assert found.said(code, Kind.KEPT)
    assert found.config["zero_optimization"] == {"stage": stage}


LENGTHS = """
import math
from loaders import make
def adjust(optimizer, done):
    rate = 0.1 if done < 1 else 0.1 * 0.5 ** done
    for group in optimizer.param_groups:
        group["lr"] = rate
loader = make(data, rank=dist.get_rank())
val_loader = make(data, rank=dist.get_rank())
done = 0
"""
WRITTEN = 'optimizer.param_groups[0]["lr"]'


@pytest.mark.parametrize(
    ("inside", "own"),
    [
        (f"done += 1\n{WRITTEN} = 0.1 * math.cos(done / len(loader))", False),
        ("done += 1\nadjust(optimizer, done / len(loader))", False),
        (f"done += 1\nif done < 0.1 * len(loader): {WRITTEN} = 0.1 * done", False),
        (f"{WRITTEN} = 0.1 / len(val_loader)", True),
        (f"{WRITTEN} = 0.1 / len(loader.dataset)", True),
        (f"{WRITTEN} = 0.1 / (len(loader) + dist.get_rank())", True),
        (f"if loss.item() < len(loader): {WRITTEN} = 0.1", True),
    ],
)
def test_each_rank_of_a_training_has_as_many_batches(inside: str, own: bool) -> None:
    found = script(ahead=LENGTHS, inside=inside)
    assert ("MG613" in found.codes(Kind.KEPT)) is own
    assert found.config["zero_optimization"]["stage"] == (0 if own else 2)


def test_batches_that_a_function_hands_on_are_as_many_for_each_rank() -> None:
    handed = "def shown(batches):\n    for batch in batches:\n        yield batch\n"
    loader = "loader = make(data, rank=dist.get_rank(), batch_size=8)\nbatches = loader\nloader = shown(batches)\n"
    found = script(ahead=LENGTHS + handed + loader, inside=f"{WRITTEN} = 0.1 / len(batches)")
    assert "MG613" not in found.codes(Kind.KEPT)
