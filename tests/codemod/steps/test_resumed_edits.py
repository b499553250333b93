"""State that a script changes between a checkpoint and ``load_state_dict``: the engine brings back what was saved."""

from __future__ import annotations

from textwrap import indent

import pytest

from dsmigrate.codemod.model import Kind
from tests.codemod.checks import Migrated, convert
from tests.codemod.steps.checkpoint_scripts import STATE, saving

READ = 'checkpoint = torch.load(args.resume, map_location="cpu")\n'
OPTIMIZER = 'optimizer.load_state_dict(checkpoint["optimizer"])\n'
MODEL = 'model.module.load_state_dict(checkpoint["model"])\n'
STATES = "model.module.load_state_dict(state)\n"
SOME = "model.module.load_state_dict(state, strict=False)\n"
LOOP = saving(f'torch.save({STATE}, "last.pt")')


def resumed(text: str) -> Migrated:
    return convert(
        imports="from other import interpolate, remap",
        resume="extra = {}\nif args.resume:\n" + indent(READ + text, "    "),
        loop=LOOP,
    )


def is_marked(migrated: Migrated) -> bool:
    return any(c.code == "MG622" and c.kind is Kind.TODO for c in migrated.changes)


CHANGED = [
    ('checkpoint["model"].pop("head.weight")\n' + MODEL + OPTIMIZER, 'checkpoint["model"].pop("head.weight")'),
    ('del checkpoint["model"]["head.weight"]\n' + MODEL + OPTIMIZER, 'del checkpoint["model"]["head.weight"]'),
    (
        'state = checkpoint["model"]\nfor key in list(state):\n    if "head" in key:\n        del state[key]\n'
        + STATES
        + OPTIMIZER,
        "del state[key]",
    ),
    (
        'state = checkpoint["model"]\nstate["head.weight"] = torch.zeros(10, 64)\n' + STATES + OPTIMIZER,
        'state["head.weight"] = torch.zeros(10, 64)',
    ),
    ('state = checkpoint["model"]\nstate["head.weight"].zero_()\n' + MODEL + OPTIMIZER, 'state["head.weight"].zero_()'),
    (
        'state = checkpoint["model"]\nstate["head.weight"] = F.interpolate(state["head.weight"])\n'
        + STATES
        + OPTIMIZER,
        'state["head.weight"] = F.interpolate(state["head.weight"])',
    ),
    (
        'state = {k: v for k, v in checkpoint["model"].items() if "head" not in k}\n' + SOME + OPTIMIZER,
        'state = {k: v for k, v in checkpoint["model"].items() if "head" not in k}',
    ),
    (
        'state = {k: v.half() for k, v in checkpoint["model"].items()}\n' + STATES + OPTIMIZER,
        'state = {k: v.half() for k, v in checkpoint["model"].items()}',
    ),
    ('state = checkpoint["model"]\nstate.update(extra)\n' + STATES + OPTIMIZER, "state.update(extra)"),
    ('interpolate(model, checkpoint["model"])\n' + MODEL + OPTIMIZER, 'interpolate(model, checkpoint["model"])'),
    (
        'model.module.load_state_dict(remap(checkpoint["model"]))\n' + OPTIMIZER,
        'model.module.load_state_dict(remap(checkpoint["model"]))',
    ),
    (
        'checkpoint["model"] = remap(checkpoint["model"])\n' + MODEL + OPTIMIZER,
        'checkpoint["model"] = remap(checkpoint["model"])',
    ),
    (
        'checkpoint["optimizer"]["param_groups"][0]["lr"] = args.lr\n' + MODEL + OPTIMIZER,
        'checkpoint["optimizer"]["param_groups"][0]["lr"] = args.lr',
    ),
    (
        MODEL + 'for group in checkpoint["optimizer"]["param_groups"]:\n    group["lr"] = args.lr\n' + OPTIMIZER,
        'group["lr"] = args.lr',
    ),
    (
        'new = {}\nfor k, v in checkpoint["model"].items():\n    if "head" in k:\n        continue\n'
        "    new[k] = v\nmodel.module.load_state_dict(new, strict=False)\n" + OPTIMIZER,
        "new[k] = v",
    ),
    (
        "own = model.module.state_dict()\n"
        'own.update({k: v for k, v in checkpoint["model"].items() if "head" not in k})\n'
        "model.module.load_state_dict(own)\n" + OPTIMIZER,
        'own.update({k: v for k, v in checkpoint["model"].items() if "head" not in k})',
    ),
    ('for v in checkpoint["model"].values():\n    v.mul_(2)\n' + MODEL + OPTIMIZER, "v.mul_(2)"),
    (
        'groups = checkpoint["optimizer"]["param_groups"]\ngroups[0]["lr"] = 3\n' + MODEL + OPTIMIZER,
        'groups[0]["lr"] = 3',
    ),
]


@pytest.mark.parametrize(("text", "line"), CHANGED)
def test_a_change_on_the_way_is_marked(text: str, line: str) -> None:
    told = resumed(text).said("MG622", line, Kind.TODO)
    assert "the engine brings back what was saved" in told.message


SAME = [
    MODEL + OPTIMIZER,
    'state = {k.replace("module.", ""): v for k, v in checkpoint["model"].items()}\n' + STATES + OPTIMIZER,
    'state = checkpoint["model"]\nstate = {k[7:]: v.cuda() for k, v in state.items()}\n' + SOME + OPTIMIZER,
    'state = {k: v for k, v in checkpoint["model"].items() if k in model.module.state_dict()}\n' + SOME + OPTIMIZER,
    "own = model.module.state_dict()\n"
    'state = {k: v for k, v in checkpoint["model"].items() if k in own and v.shape == own[k].shape}\n'
    + SOME
    + OPTIMIZER,
    'own = model.module.state_dict()\nstate = checkpoint["model"]\n'
    'for k in ("head.weight", "head.bias"):\n    if k in state and state[k].shape != own[k].shape:\n'
    "        del state[k]\n" + STATES + OPTIMIZER,
    'state = checkpoint["model"]\nfor k in list(state):\n    state[k.replace("module.", "")] = state.pop(k)\n'
    + STATES
    + OPTIMIZER,
    'state = checkpoint["model"]\nfor k in list(state):\n    if k.startswith("module."):\n'
    "        state[k[7:]] = state[k]\n        del state[k]\n" + STATES + OPTIMIZER,
    'new = {}\nfor k, v in checkpoint["model"].items():\n'
    '    name = k[7:] if k.startswith("module.") else k\n    new[name] = v\nmodel.module.load_state_dict(new)\n'
    + OPTIMIZER,
    MODEL
    + OPTIMIZER
    + 'checkpoint["epoch"] += 1\ndel checkpoint["model"]\ncheckpoint.pop("args", None)\nprint(checkpoint)',
    'checkpoint["epoch"] = 3\nlast = checkpoint.pop("epoch")\n' + MODEL + OPTIMIZER,
    'torch.nn.modules.utils.consume_prefix_in_state_dict_if_present(checkpoint["model"], "module.")\n'
    + MODEL
    + OPTIMIZER,
    MODEL + OPTIMIZER + 'for group in optimizer.param_groups:\n    group["lr"] = args.lr\n',
    'state = checkpoint["model"] if "model" in checkpoint else checkpoint\n' + STATES + OPTIMIZER,
]


@pytest.mark.parametrize("text", SAME)
def test_what_leaves_a_checkpoint_of_its_own_as_it_is_stays(text: str) -> None:
    assert not is_marked(resumed(text))


PRETRAINED = """
state = torch.load("pretrained.pt")
for key in list(state):
    if "head" in key:
        del state[key]
"""


def test_pretrained_weights_that_are_changed_before_the_engine_are_loaded_so() -> None:
    wrap = f"net = Net().cuda(){PRETRAINED}net.load_state_dict(state, strict=False)\nmodel = DDP(net)"
    resume = "if args.resume:\n    state = torch.load(args.resume)\n" + indent(
        'model.module.load_state_dict(state["model"])\noptimizer.load_state_dict(state["optimizer"])\n', "    "
    )
    assert not is_marked(convert(wrap=wrap, loop=LOOP))
    assert not is_marked(convert(wrap=wrap, resume=resume, loop=LOOP))


def test_a_variable_that_held_something_else_before() -> None:
    assert not is_marked(
        convert(resume=PRETRAINED.replace("state", "checkpoint") + READ + MODEL + OPTIMIZER, loop=LOOP)
    )


def test_a_variable_that_is_read_anew_in_both_branches() -> None:
    early = "\nif args.amp:" + indent(PRETRAINED.replace("state", "checkpoint"), "    ") + "\n"
    resume = (
        "if args.resume:\n    if rank == 0:\n        checkpoint = torch.load(args.resume)\n"
        '    else:\n        checkpoint = torch.load(args.resume, map_location="cpu")\n'
        + indent(MODEL + OPTIMIZER, "    ")
    )
    assert not is_marked(convert(resume=early + resume, loop=LOOP))


def test_a_function_of_others_may_change_the_state() -> None:
    told = resumed('state = remap(checkpoint["model"], model.state_dict())\n' + STATES + OPTIMIZER)
    assert "may be changed" in told.said("MG622", "state = remap(", Kind.TODO).message


def test_a_change_before_the_engine_is_marked_where_the_engine_resumes_later() -> None:
    migrated = convert(
        wrap="net = Net().cuda()",
        optimizer="optimizer = torch.optim.AdamW(net.parameters(), lr=args.lr)\nif args.resume:\n"
        + indent(READ + 'checkpoint["model"].pop("head.bias")\nnet.load_state_dict(checkpoint["model"], strict=False)\n'
                 + OPTIMIZER, "    ")
        + "model = DDP(net)\n",
        loop=LOOP,
    )  # fmt: skip
    migrated.said("MG622", 'checkpoint["model"].pop("head.bias")', Kind.TODO)


CLEANS = """
def clean(state):
    {body}

def resume(model, optimizer, path):
    checkpoint = torch.load(path)
    model.load_state_dict(clean(checkpoint["model"]), strict=False)
    optimizer.load_state_dict(checkpoint["optimizer"])
"""


@pytest.mark.parametrize(
    ("body", "changes"),
    [
        ('state.pop("head.bias")\n    return state', True),
        ('return {k.replace("module.", ""): v for k, v in state.items()}', False),
        ('return {k: v for k, v in state.items() if "head" not in k}', True),
    ],
)
def test_a_helper_that_gets_the_state(body: str, changes: bool) -> None:
    migrated = convert(
        helpers=CLEANS.format(body=body), resume="resume(model.module, optimizer, args.resume)", loop=LOOP
    )
    assert is_marked(migrated) is changes


def test_what_the_other_branch_changes_is_not_resumed() -> None:
    resume = (
        "if args.resume:\n"
        + indent(READ + 'state = {k: v for k, v in checkpoint["model"].items()}\n' + STATES + OPTIMIZER, "    ")
        + 'elif args.output:\n    state = torch.load("pretrained.pt")\n    state.pop("head.bias")\n'
        "    new = {k: state[k] for k in list(state)}\n    model.module.body.load_state_dict(new, strict=False)\n"
    )
    assert not is_marked(convert(resume=resume, loop=LOOP))
