"""Several groups of an optimizer that leave a part of the model out, while the norm of the whole model is taken."""

from __future__ import annotations

import pytest

from dsmigrate.codemod.model import Kind
from tests.codemod.checks import Migrated, convert
from tests.codemod.steps.test_clipping import loop

NET = """
class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.proj = nn.Linear(64, 64)
        self.norm = nn.LayerNorm(64)

    def forward(self, x):
        return self.norm(self.proj(x))


class Three(nn.Module):
    def __init__(self, width=64):
        super().__init__()
        self.width = width
        self.body = nn.Sequential(nn.Linear(32, 64), nn.ReLU())
        self.neck = Block()
        self.act = nn.ReLU()
        self.head = nn.Linear(64, 10)

    def forward(self, x):
        return self.head(self.act(self.neck(self.body(x))))

    def in_two_groups(self, lr):
        named = {n: p for n, p in self.named_parameters() if p.requires_grad}
        flat = [p for n, p in named.items() if p.dim() < 2]
        groups = [{"params": [p for n, p in named.items() if p.dim() >= 2]}, {"params": flat, "weight_decay": 0.0}]
        optimizer = torch.optim.AdamW(groups, lr=lr)
        return optimizer

    def without_neck(self, lr):
        groups = [{"params": self.body.parameters()}, {"params": self.head.parameters()}]
        return torch.optim.AdamW(groups, lr=lr)


def parts_of(net):
    return [{"params": net.body.parameters()}, {"params": net.head.parameters(), "lr": 1.0}]


def is_plain(name, p):
    return p.ndim < 2 or name.endswith("bias")


def grad_norm(parameters):
    norms = [p.grad.norm() for p in parameters if p.grad is not None]
    return torch.norm(torch.stack(norms))
"""
CLIP = loop("nn.utils.clip_grad_norm_(model.parameters(), 0.5)")
TWO = """
groups = [{"params": model.module.body.parameters()}, {"params": model.module.head.parameters(), "lr": 1.0}]
optimizer = torch.optim.SGD(groups, lr=args.lr)
"""
SUM = "params = list(model.module.body.parameters())\nparams += list(model.module.head.parameters())\n"
BODY_THEN_HEAD = """
optimizer = torch.optim.SGD(model.module.body.parameters(), lr=args.lr)
optimizer.add_param_group({"params": model.module.head.parameters()})
"""
LOOP = """
decay, no_decay = [], []
for n, p in model.named_parameters():
    if not p.requires_grad:
        continue
    if p.ndim <= 1 or n.endswith(".bias"):
        no_decay.append(p)
    else:
        decay.append(p)
optimizer = torch.optim.AdamW([{"params": decay}, {"params": no_decay, "weight_decay": 0.0}], lr=args.lr)
"""
SKIPPED = LOOP.replace("    if p.ndim", '    if "neck" in n:\n        continue\n    if p.ndim')
NAMED = """
body, head = [], []
for n, p in model.named_parameters():
    if "body" in n:
        body.append(p)
    elif n.startswith("module.head"):
        head.append(p)
optimizer = torch.optim.AdamW([{"params": body}, {"params": head, "lr": 1.0}], lr=args.lr)
"""
NO_DECAY = """
named = list(model.named_parameters())
no_decay = ["bias", "norm.weight"]
groups = [
    {"params": [p for n, p in named if not any(nd in n for nd in no_decay)], "weight_decay": 0.1},
    {"params": [p for n, p in named if any(nd in n for nd in no_decay)], "weight_decay": 0.0},
]
optimizer = torch.optim.AdamW(groups, lr=args.lr)
"""
BY_LAMBDA = """
plain = lambda n, p: p.ndim < 2 or "norm" in n
other = lambda n, p: not plain(n, p)
named = list(model.named_parameters())
groups = [
    {"params": [p for n, p in named if plain(n, p) and p.requires_grad], "weight_decay": 0.0},
    {"params": [p for n, p in named if other(n, p) and p.requires_grad]},
]
optimizer = torch.optim.AdamW(groups, lr=args.lr)
"""
OVER_PARTS = """
groups = []
for part in (model.module.body, model.module.head):
    groups.append({"params": part.parameters()})
optimizer = torch.optim.SGD(groups, lr=args.lr)
"""
WITHOUT_NECK = "named = [pair for pair in named if 'neck' not in pair[0]]\nno_decay = ["


def converted(optimizer: str, body: str = CLIP, wrap: str = "model = DDP(Three().cuda())") -> Migrated:
    return convert(helpers=NET, wrap=wrap, optimizer=optimizer, loop=body)


def told(migrated: Migrated) -> list[Kind]:
    return [c.kind for c in migrated.changes if c.code in ("MG421", "MG423") and c.kind is not Kind.CONVERTED]


@pytest.mark.parametrize(
    "optimizer",
    [
        TWO,
        f"{SUM}optimizer = torch.optim.SGD(params, lr=args.lr)",
        BODY_THEN_HEAD,
        "optimizer = torch.optim.SGD(parts_of(model.module), lr=args.lr)",
        SKIPPED,
        NAMED,
        OVER_PARTS,
        "optimizer = model.module.without_neck(args.lr)",
        NO_DECAY.replace("no_decay = [", WITHOUT_NECK, 1),
        BY_LAMBDA.replace("not plain(n, p)", "not plain(n, p) and 'neck' not in n"),
        NO_DECAY.replace("if not any", 'if "neck" not in n and not any').replace(
            "if any", 'if "neck" not in n and any'
        ),
    ],
)
def test_groups_without_a_part_of_the_model_are_marked(optimizer: str) -> None:
    message = converted(optimizer).said("MG421", "clip_grad_norm_", Kind.TODO).message
    assert "(not neck.proj.weight) only, which is a part of the parameters" in message


BOTH_IDS = """
ids = list(map(id, model.module.head.parameters()))
rest = filter(lambda p: id(p) not in ids, model.parameters())
optimizer = torch.optim.SGD([{"params": rest}, {"params": model.module.head.parameters(), "lr": 1.0}], lr=args.lr)
"""
BY_RANK = """
params = {n: p for n, p in model.named_parameters()}
params = {n: p for n, p in params.items() if p.requires_grad}
decay = [p for n, p in params.items() if p.dim() >= 2]
rest = [p for n, p in params.items() if p.dim() < 2]
optimizer = torch.optim.AdamW([{"params": decay}, {"params": rest, "weight_decay": 0.0}], lr=args.lr)
"""
EITHER_LIST = NAMED.replace(
    '    if "body" in n:\n        body.append(p)\n', "    (body if 'body' in n else head).append(p)\n"
)
EITHER_LIST = EITHER_LIST.replace('    elif n.startswith("module.head"):\n        head.append(p)\n', "")


@pytest.mark.parametrize(
    "optimizer",
    [
        TWO.replace("[{", '[{"params": model.module.neck.parameters()}, {', 1),
        f"{BODY_THEN_HEAD}optimizer.add_param_group({{'params': model.module.neck.parameters()}})",
        LOOP,
        NAMED.replace('elif n.startswith("module.head"):', "else:"),
        NAMED.replace('"body" in n', '"body" in n or "neck" in n'),
        NO_DECAY,
        NO_DECAY.replace('["bias", "norm.weight"]', "args.output.split()"),
        NO_DECAY.replace("if any(nd in n for", "if not all(nd not in n for"),
        BOTH_IDS,
        BY_RANK,
        "optimizer = model.module.in_two_groups(args.lr)",
        BY_LAMBDA,
        BY_LAMBDA.replace("plain(n, p) and", "is_plain(n, p) and").replace("other(n", "not is_plain(n"),
        EITHER_LIST,
    ],
)
def test_groups_that_make_up_the_model_need_no_word(optimizer: str) -> None:
    assert not told(converted(optimizer))


@pytest.mark.parametrize(
    ("optimizer", "wrap"),
    [
        (f"model.module.neck.requires_grad_(False)\n{TWO}", "model = DDP(Three().cuda())"),
        (TWO, "model = DDP(torch.hub.load('some/where', 'some_net').cuda())"),
        (NAMED, "model = DDP(torch.hub.load('some/where', 'some_net').cuda())"),
    ],
)
def test_what_may_be_frozen_or_is_not_seen_gets_a_line_of_the_report(optimizer: str, wrap: str) -> None:
    migrated = converted(optimizer, wrap=wrap)
    assert "what the optimizer owns" in migrated.said("MG421", "clip_grad_norm_", Kind.KEPT).message
    assert told(migrated) == [Kind.KEPT]


def test_a_model_that_is_cleared_whole_keeps_its_norm_at_stage_zero() -> None:
    migrated = converted(TWO, CLIP.replace("optimizer.zero_grad", "model.zero_grad"))
    migrated.said("MG423", "clip_grad_norm_", Kind.KEPT)
    assert migrated.config["zero_optimization"] == {"stage": 0}


def test_a_norm_that_is_only_measured_is_told_of() -> None:
    body = loop("norm = grad_norm(model.parameters())", after=("print(norm)",))
    converted(TWO, body).said("MG421", "grad_norm(model.parameters())", Kind.TODO)
    assert not told(converted(LOOP, body))


ALL_FROZEN = "for p in model.parameters():\n    p.requires_grad = False\n"
THAWED = "for p in model.module.head.parameters():\n    p.requires_grad = True\n"
HEAD = "optimizer = torch.optim.SGD(model.module.head.parameters(), lr=args.lr)"


@pytest.mark.parametrize("freezes", [ALL_FROZEN, "model.requires_grad_(False)\n"])
def test_a_model_that_was_frozen_whole_trains_what_was_thawed(freezes: str) -> None:
    assert not told(converted(f"{freezes}{THAWED}{HEAD}"))
    assert told(converted(f"{ALL_FROZEN.replace('False', 'True')}{HEAD}"))


STAYS = ("nn.utils.clip_grad_norm_(model.parameters(), 0.5)", "nn.utils.clip_grad_value_(model.parameters(), 0.1)")


def test_a_clip_that_stays_finds_no_gradients_of_earlier_steps() -> None:
    assert "add up" in converted(TWO, loop(*STAYS)).said("MG423", "clip_grad_norm_", Kind.TODO).message
    cleared = converted(TWO, loop(*STAYS).replace("optimizer.zero_grad", "model.zero_grad"))
    assert Kind.TODO not in told(cleared)
