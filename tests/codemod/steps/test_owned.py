"""Optimizers that own more or less than the model; scales that are updated without a step."""

from __future__ import annotations

import pytest

from dsmigrate.codemod.model import Kind
from tests.codemod.checks import convert
from tests.codemod.steps.test_clipping import loop

CRITERION = """
criterion = nn.Linear(10, 10).cuda()
optimizer = torch.optim.SGD([*model.parameters(), *criterion.parameters()], lr=args.lr)
"""
METRIC = """
metric = nn.Linear(10, 10).cuda()
params = list(model.parameters()) + list(metric.parameters())
optimizer = torch.optim.SGD(params, lr=args.lr)
"""
GROUPS = """
metric = nn.Linear(10, 10)
metric.to("cuda")
groups = [{"params": model.parameters()}]
groups.append({"params": metric.parameters(), "lr": 0.01})
optimizer = torch.optim.SGD(groups, lr=args.lr)
"""
ADDED = """
metric = nn.Linear(10, 10).cuda()
params = list(model.parameters())
params += metric.parameters()
optimizer = torch.optim.SGD(params, lr=args.lr)
"""
LOG_VARS = """
log_vars = nn.Parameter(torch.zeros(2, device="cuda"))
optimizer = torch.optim.SGD(list(model.parameters()) + [log_vars], lr=args.lr)
"""
TEMPERATURE = LOG_VARS.replace('nn.Parameter(torch.zeros(2, device="cuda"))', "torch.ones(1, requires_grad=True)")


@pytest.mark.parametrize("optimizer", [CRITERION, METRIC, GROUPS, ADDED, LOG_VARS, TEMPERATURE])
def test_parameters_outside_of_the_model_are_found_and_cleared(optimizer: str) -> None:
    migrated = convert(optimizer=optimizer)
    migrated.said("MG608", "optimizer = ", Kind.KEPT)
    assert migrated.config["zero_optimization"] == {"stage": 0}
    migrated.said("MG408", "optimizer.zero_grad()", Kind.CONVERTED)
    assert "    drop_gradients(model)\n    model.backward(loss)\n    model.step()\n" in migrated.section("loop")


def test_parameters_outside_of_the_model_are_cleared_after_a_gated_step() -> None:
    migrated = convert(
        optimizer=CRITERION,
        loop="""
            for i, (x, y) in enumerate(train_loader):
                loss = criterion(model(x)).sum() / 2
                loss.backward()
                if (i + 1) % 2 == 0:
                    optimizer.step()
                    optimizer.zero_grad()
            """,
    )
    assert "        model.step()\n        drop_gradients(model)\n" in migrated.section("loop")


def test_clearing_the_model_alone_is_what_the_engine_does() -> None:
    migrated = convert(optimizer=CRITERION, loop=loop().replace("optimizer.zero_grad", "model.zero_grad"))
    migrated.said("MG403", "model.zero_grad()", Kind.CONVERTED)


@pytest.mark.parametrize(
    ("wrap", "optimizer"),
    [
        (
            "body = nn.Linear(8, 8)\nhead = nn.Linear(8, 2)\nmodel = DDP(nn.Sequential(body, head).cuda())",
            "optimizer = torch.optim.SGD([*model.module[1].parameters(), *body.parameters()], lr=args.lr)",
        ),
        (
            "net = Net()\ns = nn.Parameter(torch.ones(1))\nnet.register_parameter('s', s)\nmodel = DDP(net.cuda())",
            "optimizer = torch.optim.SGD([*net.body.parameters(), *net.head.parameters(), s], lr=args.lr)",
        ),
        (
            "net = Net()\nextra = nn.Linear(2, 2)\nnet.extra = extra\nmodel = DDP(net.cuda())",
            "optimizer = torch.optim.SGD([*net.body.parameters(), *extra.parameters()], lr=args.lr)",
        ),
    ],
)
def test_parameters_that_were_put_into_the_model_are_its_own(wrap: str, optimizer: str) -> None:
    migrated = convert(wrap=wrap, optimizer=optimizer)
    migrated.silent("MG608", "MG408")
    assert migrated.config["zero_optimization"] == {"stage": 2}


PART = "params = list(model.module.head.parameters())\noptimizer = torch.optim.SGD(params, lr=args.lr)"
CLIP = loop("nn.utils.clip_grad_norm_(model.parameters(), 0.5)")
HEAD = "optimizer = torch.optim.SGD(model.module.head.parameters(), lr=args.lr)"


NAMED = [
    "torch.optim.SGD(model.module.layers[2].parameters(), lr=args.lr)",
    "torch.optim.SGD([p for n, p in model.named_parameters() if n.startswith('module.head')], lr=args.lr)",
    "torch.optim.SGD((p for n, p in model.named_parameters() if p.requires_grad and 'head' in n), lr=args.lr)",
    "torch.optim.SGD([{'params': [p for p in model.parameters() if p.ndim > 1]}], lr=args.lr)",
]
APPENDED = """
chosen = []
for n, p in model.named_parameters():
    if "head" in n:
        chosen.append(p)
optimizer = torch.optim.SGD(chosen, lr=args.lr)
"""


@pytest.mark.parametrize(
    "optimizer",
    [HEAD, PART, f"head = model.module.head\n{HEAD.replace('model.module.head', 'head')}", APPENDED]
    + [f"optimizer = {made}" for made in NAMED],
)
def test_a_norm_over_more_than_the_optimizer_owns_is_marked(optimizer: str) -> None:
    migrated = convert(optimizer=optimizer, loop=CLIP)
    assert "part of the parameters" in migrated.said("MG421", "clip_grad_norm_", Kind.TODO).message


def test_a_norm_of_a_model_that_is_cleared_whole_is_torchs_at_stage_zero() -> None:
    migrated = convert(optimizer=HEAD, loop=CLIP.replace("optimizer.zero_grad", "model.zero_grad"))
    migrated.said("MG423", "clip_grad_norm_", Kind.KEPT)
    assert migrated.config["zero_optimization"] == {"stage": 0}


@pytest.mark.parametrize(
    "optimizer",
    [
        f"for p in model.module.body.parameters():\n    p.requires_grad = False\n{HEAD}",
        f"model.module.body.requires_grad_(False)\n{HEAD}",
        f"{HEAD}\noptimizer.add_param_group({{'params': model.module.body.parameters()}})",
        "optimizer = torch.optim.SGD([*model.module.body.parameters(), *model.module.head.parameters()])",
        "optimizer = torch.optim.SGD([p for n, p in model.named_parameters() if p.requires_grad], lr=args.lr)",
        f"mark_only_head_as_trainable(model)\noptimizer = {NAMED[1]}",
        f"{APPENDED.replace(' if ', ' if p.requires_grad and ')}optimizer.add_param_group({{'params': rest}})",
        APPENDED.replace('"head" in n', "p.requires_grad"),
        """
        named = list(model.named_parameters())
        groups = [
            {"params": [p for n, p in model.named_parameters() if "bias" in n]},
            {"params": [p for n, p in model.named_parameters() if "bias" not in n]},
        ]
        optimizer = torch.optim.SGD(groups, lr=args.lr)
        """,
        "optimizer = torch.optim.SGD(model.module.parameters())",
    ],
)
def test_a_norm_over_what_the_optimizer_owns_is_the_engines(optimizer: str) -> None:
    migrated = convert(optimizer=optimizer, loop=CLIP)
    assert not [change for change in migrated.changes if change.code == "MG421" and change.kind is Kind.TODO]


def scaled(*lines: str) -> str:
    body = "".join(f"    {line}\n" for line in lines)
    return (
        'scaler = torch.amp.GradScaler("cuda")\nfor x, y in train_loader:\n'
        '    with torch.autocast("cuda", dtype=torch.float16):\n        loss = F.cross_entropy(model(x), y)\n'
        "    optimizer.zero_grad()\n    scaler.scale(loss).backward()\n    scaler.unscale_(optimizer)\n"
        f"    norm = nn.utils.clip_grad_norm_(model.parameters(), 1.0)\n{body}"
    )


@pytest.mark.parametrize(
    "lines",
    [
        ("if torch.isfinite(norm):", "    scaler.step(optimizer)", "scaler.update()"),
        ("if not torch.isfinite(norm):", "    scaler.update()", "    continue", "scaler.step(optimizer)"),
    ],
)
def test_an_update_without_a_step_is_marked(lines: tuple[str, ...]) -> None:
    migrated = convert(loop=scaled(*lines))
    migrated.said("MG303", "scaler.update()", Kind.TODO)


@pytest.mark.parametrize(
    "lines",
    [
        ("scaler.step(optimizer)", "scaler.update()"),
        ("if args.amp:", "    scaler.step(optimizer)", "if args.amp:", "    scaler.update()"),
        ("if args.amp:", "    scaler.step(optimizer)", "    scaler.update()"),
        ("if args.amp:", "    scaler.step(optimizer)", "else:", "    optimizer.step()", "scaler.update()"),
    ],
)
def test_an_update_beside_its_step_is_not_marked(lines: tuple[str, ...]) -> None:
    migrated = convert(loop=scaled(*lines))
    assert not [change for change in migrated.changes if change.code == "MG303" and change.kind is Kind.TODO]
