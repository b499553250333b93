"""What ds_config.json takes from the script and from the options: batch size, stage, offload, precision, optimizer."""

from __future__ import annotations

from typing import Any

import pytest

from dsmigrate.codemod.model import Kind, Status
from tests.codemod.converting import HEAD, Converted, converted
from tests.support.migrating import migrate_files

MICRO = "train_micro_batch_size_per_gpu"
START = (
    HEAD
    + """
import argparse
from torch.utils.data import DataLoader
parser = argparse.ArgumentParser()
parser.add_argument("--batch-size", type=int, default=64)
parser.add_argument("--lr", type=float, default=3e-4)
parser.add_argument("--local", type=int)
args = parser.parse_args()
dist.init_process_group("nccl")
"""
)
MODEL = """
model = DDP(nn.Linear(4, 4).cuda())
optimizer = torch.optim.AdamW(model.parameters(), lr=0.1)
"""
DATA = "loader = DataLoader(data, batch_size=8)\n"
LOOP = """
for x in loader:
    optimizer.zero_grad()
    loss = model(x).sum()
    loss.backward()
    optimizer.step()
"""


def script(data: str = DATA, *, model: str = MODEL, loop: str = LOOP, imports: str = "") -> str:
    return f"{START}{imports}{model}{data}{loop}"


# -- the batch size ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "data",
    [
        "loader = DataLoader(data, batch_size=48)",
        "loader = DataLoader(data, 48, shuffle=True)",
        "size = 48\nloader = torch.utils.data.DataLoader(data, batch_size=size)",
        "loader = DataLoader(data, batch_size=8 * 6)",
        "given = dict(batch_size=48)\nloader = DataLoader(data, **given)",
        "loader = DataLoader(data, batch_sampler=torch.utils.data.BatchSampler(order, 48, False))",
        "loader = DataLoader(data, batch_sampler=torch.utils.data.sampler.BatchSampler(order, 48, False))",
        (
            "other = DataLoader(data, batch_size=3)\nloader = DataLoader(data, batch_size=48)\n"
            "for x in other:\n    print(x)"
        ),
        "class Mine(DataLoader):\n    pass\nloader = Mine(data, batch_size=48)",
        "def made(size):\n    return None, DataLoader(data, batch_size=size)\n_, loader = made(48)",
        "from factory import made\nloader = made(data, batch_size=48)",
        "loader = enumerate(DataLoader(data, batch_size=48))",
        (
            "class Mine:\n    def __init__(self, data):\n        self.data = data\n    def __iter__(self):\n"
            "        for x in self.data:\n            yield x.cuda()\nloader = Mine(DataLoader(data, batch_size=48))"
        ),
    ],
)
def test_a_known_batch_size_is_in_the_config(data: str) -> None:
    found = converted(script(f"{data}\n"))
    assert found.config[MICRO] == 48
    assert MICRO not in found.text
    assert found.said("MG701", Kind.CONVERTED)


@pytest.mark.parametrize(
    ("data", "code", "static"),
    [
        ("loader = DataLoader(data, batch_size=args.batch_size)", "args.batch_size", 64),
        ("size = args.batch_size // 2\nloader = DataLoader(data, batch_size=size)", "size", 32),
        (
            "loader = DataLoader(data, batch_size=args.batch_size // dist.get_world_size())",
            "args.batch_size // dist.get_world_size()",
            None,
        ),
        (
            "def made(opts):\n    return DataLoader(data, batch_size=opts.batch_size)\nloader = made(args)",
            "args.batch_size",
            64,
        ),
        (
            (
                "if args.local:\n    args.batch_size = args.batch_size // 2\n"
                "loader = DataLoader(data, batch_size=args.batch_size)"
            ),
            "args.batch_size",
            64,
        ),
    ],
)
def test_a_batch_size_that_the_script_works_out_follows_it(data: str, code: str, static: int | None) -> None:
    found = converted(script(data=LOOP.join(["", ""]), model=f"{data}\n{MODEL}"))
    assert f"{MICRO}={code}" in "".join(found.text.split("\n        "))
    assert found.config.get(MICRO) == static


def test_a_batch_size_that_changes_where_processes_share_it_has_one_name() -> None:
    wrap = "    args.batch_size = args.batch_size // dist.get_world_size()\n    model = DDP(model)"
    data = "loader = DataLoader(data, batch_size=args.batch_size)"
    model = f"model = nn.Linear(4, 4).cuda()\nif args.local:\n{wrap}\n{data}\n"
    found = converted(script("optimizer = torch.optim.SGD(model.parameters(), 0.1)\n", model=model))
    assert f"{MICRO}=args.batch_size" in found.text
    assert found.said("MG701", Kind.CONVERTED)


def test_a_batch_size_that_no_name_holds_is_told_by_the_loader() -> None:
    data = "sampler = torch.utils.data.BatchSampler(order, len(data) // 7, False)\n"
    found = converted(script("", model=f"{data}loader = DataLoader(data, batch_sampler=sampler)\n{MODEL}"))
    assert f"{MICRO}=loader.batch_sampler.batch_size" in found.text
    unread = "from samplers import Buckets\nloader = DataLoader(data, batch_sampler=Buckets(order, len(data) // 7))\n"
    assert converted(script("", model=f"{unread}{MODEL}")).said("MG702", Kind.KEPT)
    own = "class Endless(DataLoader):\n    pass\n"
    found = converted(script("", model=f"{own}loader = Endless(data, batch_size=len(data) // 7)\n{MODEL}"))
    assert f"{MICRO}=loader.batch_size" in found.text


OF_TORCH = "torch.utils.data.BatchSampler(order, args.batch_size, drop_last=True)"
GROUPED = """
class Grouped(torch.utils.data.BatchSampler):
    def __init__(self, sampler, groups, size):
        {kept}
        self.groups = groups

"""


@pytest.mark.parametrize(
    ("before", "sampler"),
    [
        ("", OF_TORCH),
        ("class Mine(torch.utils.data.BatchSampler):\n    pass\n", "Mine(order, args.batch_size, True)"),
        (GROUPED.format(kept="self.batch_size = size"), "Grouped(order, groups, args.batch_size)"),
        (GROUPED.format(kept="super().__init__(sampler, size, False)"), "Grouped(order, groups, args.batch_size)"),
        (
            GROUPED.format(kept="self.batch_size = size"),
            f"Grouped(order, groups, args.batch_size) if args.local else {OF_TORCH}",
        ),
        ("", "Buckets(order, batch_size=args.batch_size)"),
    ],
)
def test_the_batch_size_is_that_of_the_batch_sampler(before: str, sampler: str) -> None:
    data = f"{before}batches = {sampler}\nloader = DataLoader(data, batch_sampler=batches, num_workers=2)\n"
    found = converted(script(data, imports="from samplers import Buckets\n"))
    assert f"{MICRO}=args.batch_size" in found.text
    assert found.config[MICRO] == 64


def test_a_batch_sampler_that_keeps_its_size_to_itself_is_not_asked() -> None:
    own = GROUPED.format(kept="self.size = size")
    data = f"{own}loader = DataLoader(data, batch_sampler=Grouped(order, groups, args.batch_size))\n"
    assert converted(script(data)).said("MG702", Kind.KEPT)


def test_what_a_model_samples_after_an_epoch_is_no_batch_of_the_training() -> None:
    shared = "def run(model, x):\n    return model(x)\n\n\n"
    sample = (
        "def sample(model, size):\n    for _ in range(4):\n        kind = torch.randint(0, 10, (size,))\n"
        "        with torch.no_grad():\n            run(model, kind)\n\n\n"
    )
    before = "if args.local:\n    sample(model, 16)\n"
    loop = LOOP.replace("model(x)", "run(model, x)")
    found = converted(script(loop=f"{shared}{sample}{before}{loop}"))
    assert found.config[MICRO] == 8


def test_settings_that_are_imported_are_followed_to_the_engine() -> None:
    settings = "class Node(dict):\n    pass\n\n\nconfig = Node()\nconfig.batch = int(open('b').read())\n"
    train = (
        "def train(model, optimizer, config):\n    import torch\n"
        "    for x in torch.utils.data.DataLoader(data, batch_size=config.batch):\n        optimizer.zero_grad()\n"
        "        model(x).sum().backward()\n        optimizer.step()\n"
    )
    imports = "from settings import config\nfrom engine import train\n"
    found = converted(
        script("", imports=imports, loop="train(model, optimizer, config)\n"),
        {"settings.py": settings, "engine.py": train},
    )
    assert f"{MICRO}=config.batch" in found.text


def test_a_batch_size_by_a_number_of_processes_that_some_runs_lack_is_told_by_the_loader() -> None:
    loader = "loader = DataLoader(data, batch_size=args.batch_size"
    loop = (
        "if args.local:\n    dist.init_process_group('nccl')\n    model = DDP(model)\n"
        f"    {loader} // dist.get_world_size())\n"
        f"else:\n    {loader})\n{LOOP}"
    )
    model = "model = nn.Linear(4, 4).cuda()\noptimizer = torch.optim.SGD(model.parameters(), 0.1)\n"
    found = converted(script("", model=model, loop=loop).replace('dist.init_process_group("nccl")\n', ""))
    assert "train_micro_batch_size_per_gpu=loader.batch_size" in found.text
    assert found.said("MG701", Kind.CONVERTED)


@pytest.mark.parametrize(
    "loop",
    [
        (
            "\nstream = iter(loader)\nfor step in range(9):\n    optimizer.zero_grad()\n"
            "    model(next(stream)).sum().backward()\n    optimizer.step()\n"
        ),
        (
            "\nfor epoch in range(3):\n    for x in val:\n        print(x)\n    for x in loader:\n"
            "        optimizer.zero_grad()\n        model(x).sum().backward()\n"
            "        optimizer.step()\n"
        ),
        (
            "\ndef batch():\n    places = torch.randint(9, (8,))\n"
            "    return torch.stack([data[i] for i in places])\nwhile True:\n"
            "    optimizer.zero_grad()\n    model(batch()).sum().backward()\n    optimizer.step()\n"
        ),
        (
            "\nfor (x, y) in zip(loader, val):\n    optimizer.zero_grad()\n"
            "    model(x).sum().backward()\n    optimizer.step()\n"
        ),
    ],
)
def test_the_loader_that_feeds_the_training_counts(loop: str) -> None:
    found = converted(script(f"val = DataLoader(data, batch_size=5)\n{DATA}", loop=loop))
    assert found.config[MICRO] == 8


@pytest.mark.parametrize(
    "data",
    [
        "from factory import made\nloader = made(args)\n",
        "loader = DataLoader(data, batch_size=None)\n",
        "from factory import Batches\nloader = DataLoader(data, batch_sampler=Batches(data))\n",
    ],
)
def test_a_batch_size_that_cannot_be_read_is_named(data: str) -> None:
    found = converted(script(data))
    assert found.config[MICRO] == 1
    assert found.said("MG702", Kind.KEPT).message == f"put your batch size in {MICRO}"


# -- the stage ---------------------------------------------------------------------------------------------------------

WINDOWS = """
for i, x in enumerate(loader):
    (model(x).sum() / 4).backward()
    if (i + 1) % 4 == 0:
        optimizer.step()
        optimizer.zero_grad()
"""


@pytest.mark.parametrize(
    ("loop", "stage"),
    [
        (LOOP, 2),
        (WINDOWS, 1),
        (LOOP.replace("    loss.backward()", "    with model.no_sync():\n        loss.backward()"), 1),
    ],
)
def test_the_stage_that_fits(loop: str, stage: int) -> None:
    found = converted(script(loop=loop))
    assert found.config["zero_optimization"] == {"stage": stage}
    assert found.said("MG703").message.startswith(f"ZeRO-{stage}: each GPU keeps 1/N")


@pytest.mark.parametrize("stage", [0, 1, 2, 3])
def test_the_stage_that_was_asked_for(stage: int) -> None:
    found = converted(script(), zero_stage=stage)
    assert found.config["zero_optimization"] == {"stage": stage}
    assert found.said("MG703").message.startswith(f"ZeRO-{stage}:")
    assert all(len(change.message) <= 120 for change in found.changes)


def test_whoever_asks_for_stage_two_with_windows_is_told_what_it_sends() -> None:
    assert "--zero-stage 1" in converted(script(loop=WINDOWS), zero_stage=2).said("MG703").message


def test_a_choice_by_size_names_what_it_was_made_for() -> None:
    found = converted(
        script(), zero_stage=3, chosen_for="7B parameters on 8 GPUs", chosen_sizes={"reduce_bucket_size": 5}
    )
    assert "the fastest that fits 7B parameters on 8 GPUs" in found.said("MG703").reason
    assert found.config["zero_optimization"] == {"stage": 3, "reduce_bucket_size": 5}


@pytest.mark.parametrize(("stage", "has_parameters"), [(1, False), (2, False), (3, True)])
def test_offload(stage: int, has_parameters: bool) -> None:
    found = converted(script(), zero_stage=stage, offload="nvme", nvme_path="/local")
    section = found.config["zero_optimization"]
    device = {"device": "nvme", "nvme_path": "/local"}
    assert section["offload_optimizer"] == device
    assert section.get("offload_param") == (device if has_parameters else None)
    assert found.config["zero_force_ds_cpu_optimizer"] is False


def test_offload_at_stage_zero_is_left_to_the_person() -> None:
    found = converted(script(), zero_stage=0, offload="cpu")
    assert found.config["zero_optimization"] == {"stage": 0}
    assert found.said("MG604", Kind.TODO).message == "offload needs ZeRO 1 or higher: nothing is offloaded at stage 0"


@pytest.mark.parametrize(
    ("release", "there"), [("0.12.6", True), ("0.13.1", True), ("0.13.2", False), ("0.11.2", False), ("0.19.8", False)]
)
def test_the_step_of_older_releases_is_undone(release: str, there: bool) -> None:
    assert ("ds_compat.forget_first_step(model)\n" in converted(script(), target_version=release).text) is there


def test_the_name_of_the_config_is_the_persons() -> None:
    assert 'Path(__file__).with_name("mine.json")' in converted(script(), config_name="mine.json").text
    found = converted(script(DATA.replace("8", "args.batch_size")), config_name="mine.json")
    assert 'load_config(__file__,"mine.json",' in "".join(found.text.split())


# -- a config that is there --------------------------------------------------------------------------------------------

CLIPPED = LOOP.replace(
    "    optimizer.step()", "    nn.utils.clip_grad_norm_(model.parameters(), 0.5)\n    optimizer.step()"
)
SAME = {MICRO: 8, "gradient_accumulation_steps": 1, "gradient_clipping": 0.5, "zero_optimization": {"stage": 2}}


def fitted(config: dict[str, Any], loop: str = CLIPPED, data: str = DATA) -> Converted:
    return converted(script(data, loop=loop), config=config)


def test_a_config_that_says_the_same_stays() -> None:
    found = fitted(SAME)
    assert found.config == SAME
    assert not {"MG704", "MG709"} & {change.code for change in found.changes}


def test_other_keys_stay_and_missing_ones_are_added() -> None:
    found = fitted({"steps_per_print": 7, MICRO: "auto"})
    assert found.config == {"steps_per_print": 7, **SAME}
    assert {change.message for change in found.changes if change.code == "MG709"} == {
        f"{MICRO} = 8 is added to the config",
        "gradient_accumulation_steps = 1 is added to the config",
        "gradient_clipping = 0.5 is added to the config",
        "zero_optimization = {'stage': 2} is added to the config",
    }


@pytest.mark.parametrize("stage", [0, 1, 2, 3])
def test_the_stage_of_the_config_is_the_stage(stage: int) -> None:
    found = fitted({**SAME, "zero_optimization": {"stage": stage, "overlap_comm": False}})
    assert found.config["zero_optimization"] == {"stage": stage, "overlap_comm": False}
    assert found.said("MG703").message.startswith(f"ZeRO-{stage}:")


@pytest.mark.parametrize(
    ("more", "says"),
    [
        ({"gradient_clipping": 1.0}, "gradient_clipping is 1.0 in the config, but the script does 0.5"),
        ({"optimizer": {"type": "Adam"}}, "remove optimizer from the config: the script keeps its own optimizer"),
        (
            {"scheduler": {"type": "WarmupLR"}},
            "remove scheduler from the config: the script keeps its own learning-rate schedule",
        ),
        ({"fp16": {"enabled": True}}, "fp16 is on in the config, but the script trains float32 parameters"),
    ],
)
def test_contradictions_are_named(more: dict[str, Any], says: str) -> None:
    found = fitted({**SAME, **more})
    assert found.said("MG704", Kind.TODO).message == says
    assert found.config == {**SAME, **more}


def test_a_number_as_another_type_is_the_same_and_a_whole_batch_counts() -> None:
    assert not {"MG704"} & {change.code for change in fitted({**SAME, MICRO: 8.0}).changes}
    found = fitted({key: value for key, value in SAME.items() if key != MICRO} | {"train_batch_size": 16})
    assert MICRO not in found.config


def test_what_the_script_sets_when_it_runs_is_no_contradiction() -> None:
    found = fitted(SAME, data=DATA.replace("8", "args.batch_size"))
    assert (
        found.said("MG704", Kind.KEPT).message == f"{MICRO}: the config says 8, the script sets it from its own options"
    )


# -- precision ---------------------------------------------------------------------------------------------------------

AMP = """
scaler = torch.cuda.amp.GradScaler()
for x in loader:
    optimizer.zero_grad()
    with torch.autocast("cuda", torch.float16):
        loss = model(x).sum()
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
"""


@pytest.mark.parametrize(
    ("kind", "section"), [("fp16", {"enabled": True, "auto_cast": True}), ("bf16", {"enabled": True})]
)
@pytest.mark.parametrize("loop", [LOOP, AMP])
def test_half_precision_parameters_as_asked_for(kind: str, section: dict[str, bool], loop: str) -> None:
    found = converted(script(loop=loop), precision=kind)
    assert found.config[kind] == section
    assert "torch_autocast" not in found.config
    assert "scaler.update()" not in found.text
    assert "use_grad_scaler" not in found.text
    assert "ds_compat.forget_first_step(model)" in found.text
    assert found.said("MG308", Kind.TODO).message.startswith(f"the parameters are {kind} now")
    assert (loop is AMP) is any(change.code == "MG308" and change.kind is Kind.KEPT for change in found.changes)


# -- the optimizer in the config ---------------------------------------------------------------------------------------


def moved(expression: str, before: str = "", after: str = "") -> Converted:
    model = f"\nmodel = nn.Linear(4, 4).cuda()\noptimizer = {expression}\n{before}model = DDP(model)\n{after}"
    return converted(
        script(model=model, imports="from timm.optim import Lamb\nfrom factory import build\n"), optimizer="config"
    )


def test_an_optimizer_that_a_helper_moves_is_known_to_its_caller() -> None:
    """It is saved and restored as before, and nothing is said to have become something else."""
    made = "    net = DDP(net)\n    made = torch.optim.SGD(net.parameters(), lr=0.1)\n"
    helper = f"def prepare(net):\n{made}    return net, made\n"
    resumed = 'if args.resume:\n    optimizer.load_state_dict(torch.load(args.resume)["optimizer"])\n'
    saved = 'if dist.get_rank() == 0:\n    torch.save({"optimizer": optimizer.state_dict()}, "last.pt")\n'
    text = f"""{HEAD}import argparse
parser = argparse.ArgumentParser()
parser.add_argument("--resume")
args = parser.parse_args()
{helper}dist.init_process_group("nccl")
model, optimizer = prepare(nn.Linear(4, 4).cuda())
{resumed}for x in torch.utils.data.DataLoader(torch.zeros(8, 4), batch_size=8):
    optimizer.zero_grad()
    model(x.cuda()).sum().backward()
    optimizer.step()
{saved}"""
    found = converted(text, optimizer="config")
    assert "made = net.basic_optimizer" in found.text
    assert not any(change.code == "MG999" for change in found.changes)


@pytest.mark.parametrize(
    "expression",
    [
        "Lamb(model.parameters())",
        "torch.optim.ASGD(model.parameters())",
        "torch.optim.AdamW(model.parameters(), **vars(args))",
        "torch.optim.AdamW(model.parameters(), lr=build())",
    ],
)
def test_an_optimizer_that_cannot_be_moved_stays(expression: str) -> None:
    found = moved(expression)
    assert "optimizer" not in found.config
    assert f"optimizer = {expression}" in found.text
    assert found.said("MG606", Kind.TODO)


@pytest.mark.parametrize(
    "before",
    ["schedule = torch.optim.lr_scheduler.StepLR(optimizer, 10)\n", "optimizer.load_state_dict(torch.load('a'))\n"],
)
def test_an_optimizer_that_is_used_before_the_engine_stays(before: str) -> None:
    assert (
        "before the engine is made"
        in moved("torch.optim.AdamW(model.parameters())", before).said("MG606", Kind.TODO).message
    )


@pytest.mark.parametrize(
    ("expression", "section"),
    [
        (
            "torch.optim.AdamW(model.parameters(), lr=1e-4)",
            {"type": "AdamW", "params": {"lr": 1e-4, "weight_decay": 0.01}},
        ),
        (
            "torch.optim.Adam(model.parameters(), 1e-4, (0.9, 0.95))",
            {"type": "Adam", "params": {"lr": 1e-4, "weight_decay": 0.0, "adam_w_mode": False, "betas": [0.9, 0.95]}},
        ),
        (
            "torch.optim.AdamW(model.parameters(), weight_decay=0.1, fused=True)",
            {"type": "AdamW", "params": {"lr": 1e-3, "weight_decay": 0.1}},
        ),
        (
            "torch.optim.SGD(model.parameters(), lr=0.1, nesterov=True)",
            {"type": "SGD", "params": {"lr": 0.1, "nesterov": True}},
        ),
        (
            "torch.optim.AdamW(model.parameters(), lr=args.lr)",
            {"type": "AdamW", "params": {"lr": 3e-4, "weight_decay": 0.01}},
        ),
    ],
)
def test_type_and_parameters_are_written_out(expression: str, section: dict[str, Any]) -> None:
    found = moved(expression, after="schedule = torch.optim.lr_scheduler.StepLR(optimizer, 10)\n")
    assert found.status is Status.CONVERTED
    assert found.config["optimizer"] == section
    assert "torch.optim.A" not in found.text
    assert "model_parameters=model.parameters()" in found.text
    assert found.text.index("optimizer = model.basic_optimizer\n") < found.text.index("StepLR(optimizer")
    if "args.lr" in expression:
        assert 'optimizer={"params": {"lr": args.lr}}' in found.text.replace("\n        ", "").replace("\n    ", "")


# -- where settings stand ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("head", "size", "limit", "rate"),
    [
        (
            'import yaml\nwith open("c.yaml") as f:\n    cfg = yaml.safe_load(f)\n',
            'cfg["batch"]',
            'cfg["clip"]',
            'cfg["optim"]["lr"]',
        ),
        (
            'import yaml\ncfg = yaml.safe_load(open("c.yaml"))\n',
            'cfg.get("batch", 32)',
            'cfg.get("clip", 1.0)',
            'cfg.get("lr", 0.1)',
        ),
        (
            'from omegaconf import OmegaConf\ncfg = OmegaConf.load("c.yaml")\n',
            "cfg.data.batch",
            "cfg.clip",
            "cfg.optim.lr",
        ),
        ("import settings\nfrom settings import CFG\n", "CFG.batch", 'CFG["clip"]', "settings.LR"),
        (
            'SIZE, CLIP, LR = int(os.environ.get("S", 8)), float(os.getenv("C", "1")), float(os.getenv("L", "1"))\n',
            "SIZE",
            "CLIP",
            "LR",
        ),
        ("from absl import flags\nFLAGS = flags.FLAGS\n", "FLAGS.batch", "FLAGS.clip", "FLAGS.lr"),
    ],
)
def test_settings_come_from_where_the_script_has_them(head: str, size: str, limit: str, rate: str) -> None:
    loop = LOOP.replace(
        "    optimizer.step()", f"    torch.nn.utils.clip_grad_norm_(model.parameters(), {limit})\n    optimizer.step()"
    )
    model = MODEL.replace("lr=0.1", f"lr={rate}, weight_decay={rate}")
    text = script(f"loader = DataLoader(data, batch_size={size})\n", imports=head, model=model, loop=loop)
    found = converted(text)
    joined = "".join(found.text.split())
    assert f"{MICRO}={size},gradient_clipping={limit}".replace(" ", "") in joined
    assert found.status is Status.CONVERTED
    moved_too = "".join(converted(text, optimizer="config").text.split())
    assert f'optimizer={{"params":{{"lr":{rate},"weight_decay":{rate}}}}}'.replace(" ", "") in moved_too


NET = """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body, self.head = nn.Linear(4, 4), nn.Linear(4, 4)
net = Net()
"""
SPLIT = """
model = DDP(net)
optimizer = torch.optim.SGD([{"params": net.body.parameters()}, {"params": net.head.parameters()}], lr=0.1)
"""


@pytest.mark.parametrize(
    "freeze", ["net.body.requires_grad_(False)", "for p in net.body.parameters():\n    p.requires_grad = False"]
)
def test_a_group_that_is_frozen_as_a_whole_needs_stage_zero(freeze: str) -> None:
    found = converted(script(model=f"{NET}{freeze}{SPLIT}"))
    assert found.config["zero_optimization"]["stage"] == 0
    assert found.said("MG706", Kind.KEPT)
    assert converted(script(model=f"{NET}{freeze}{SPLIT}"), zero_stage=2).said("MG706", Kind.TODO)
    assert not converted(script(model=f"{NET}{freeze}{SPLIT}"), zero_stage=3).todos
    under = converted(script(model=f"{NET}if args.local:\n    " + freeze.replace("\n", "\n    ") + SPLIT))
    assert '"stage": 0 if args.local else 2' in under.text


@pytest.mark.parametrize("freeze", ["", "net.body.requires_grad_(False)\nnet.body.requires_grad_(True)"])
def test_groups_that_are_trained_need_nothing(freeze: str) -> None:
    assert "MG706" not in {change.code for change in converted(script(model=f"{NET}{freeze}{SPLIT}")).changes}


SETTINGS = (
    HEAD
    + """
import sys
clip = 1.0
{overwritten}
dist.init_process_group("nccl")
model = DDP(nn.Linear(4, 4).cuda())
optimizer = torch.optim.AdamW(model.parameters(), lr=0.1)
for x in torch.utils.data.DataLoader(data, batch_size=8):
    model(x).sum().backward()
    nn.utils.clip_grad_norm_(model.parameters(), {clip})
    optimizer.step()
    optimizer.zero_grad()
"""
)


@pytest.mark.parametrize(
    "overwritten",
    [
        "for one in sys.argv[1:]:\n    key, value = one.split('=')\n    globals()[key] = float(value)",
        "exec(open('configurator.py').read())",
        "for one in sys.argv[1:]:\n    setattr(sys.modules[__name__], one, 2.0)",
    ],
)
def test_a_setting_that_code_may_overwrite_is_taken_when_the_script_runs(overwritten: str) -> None:
    found = converted(SETTINGS.format(overwritten=overwritten, clip="clip"))
    assert "gradient_clipping=clip" in found.text
    assert found.config["gradient_clipping"] == 1.0


def test_a_setting_of_an_object_that_code_may_overwrite_is_taken_when_the_script_runs() -> None:
    made = "class Settings:\n    def __init__(self):\n        self.clip = 1.0\nsettings = Settings()\n"
    made += "for one in sys.argv[1:]:\n    setattr(settings, one, float(one))"
    found = converted(SETTINGS.format(overwritten=made, clip="settings.clip"))
    assert "gradient_clipping=settings.clip" in found.text


def test_a_setting_that_is_bound_by_its_name_is_known() -> None:
    found = converted(SETTINGS.format(overwritten="globals()['clip'] = 0.5", clip="clip"))
    assert found.config["gradient_clipping"] == 0.5


CONFIGS = {
    "a copy": "config = _C.clone()\nconfig.merge_from_file('x.yaml')",
    "itself": "config = _C\nconfig.merge_from_list(['DATA.BATCH', 8])\nconfig.freeze()",
    "in a function": "def get():\n    made = _C.clone()\n    made.merge_from_file(1)\n    return made\nconfig = get()",
    "handed on": "import unread\nconfig = _C.clone()\nunread.update(config)",
}


@pytest.mark.parametrize("got", CONFIGS.values(), ids=CONFIGS)
def test_a_tree_of_settings_has_defaults_that_files_may_change(got: str) -> None:
    found = converted(
        HEAD
        + f"""
from yacs.config import CfgNode as CN
_C = CN()
_C.TEST = CN()
_C.TEST.BATCH = 4
_C.DATA = CN()
_C.DATA.BATCH = 4
_C.KIND = "a"
{got}
dist.init_process_group("nccl")
net = nn.Linear(4, 4) if config.KIND == "a" else nn.Bilinear(4, 4, 4)
model = DDP(net.cuda())
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for x in torch.utils.data.DataLoader(data, batch_size=config.DATA.BATCH):
    optimizer.zero_grad()
    model(x.cuda()).sum().backward()
    optimizer.step()
"""
    )
    assert not found.todos
    assert "DATA.BATCH" in found.text.split("deepspeed.initialize(")[1].split(")[0]")[0]
    assert found.config["train_micro_batch_size_per_gpu"] == 4


@pytest.mark.parametrize(("kind", "todo"), [("plain", False), ("left", True)])
def test_only_the_default_model_may_need_a_person(kind: str, *, todo: bool) -> None:
    found = converted(
        HEAD
        + f"""
import argparse
class Plain(nn.Module):
    def forward(self, x):
        return x.sum()
class Left(Plain):
    def __init__(self):
        super().__init__()
        self._ddp_params_and_buffers_to_ignore = ["x"]
parser = argparse.ArgumentParser()
parser.add_argument("--kind", default="{kind}")
args = parser.parse_args()
dist.init_process_group("nccl")
net = Left() if args.kind == "left" else Plain()
model = DDP(net.cuda())
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for x in torch.utils.data.DataLoader(data, batch_size=8):
    optimizer.zero_grad()
    model(x.cuda()).backward()
    optimizer.step()
"""
    )
    assert [code for code, _ in found.todos] == ["MG114"] * todo
    assert found.said("MG114").message.startswith("" if todo else "Left: ")


UNUSED = (
    HEAD
    + """
dist.init_process_group("nccl")
model = DDP(nn.Linear(4, 4).cuda(), find_unused_parameters=True)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
for x in torch.utils.data.DataLoader(data, batch_size=8):
    optimizer.zero_grad()
    model(x.cuda()).sum().backward()
    {between}
    optimizer.step()
"""
)


@pytest.mark.parametrize("between", ["pass", "print(model.module.weight.grad.max())"])
def test_the_report_says_what_allows_no_higher_stage(between: str) -> None:
    found = converted(UNUSED.format(between=between))
    said = found.said("MG703")
    if between == "pass":
        assert said.message.startswith("ZeRO-2")
        assert "MG110" in found.codes(Kind.KEPT)
    else:
        assert said.message.startswith("ZeRO-0")
        assert said.reason.startswith("line ")
        assert "MG110" not in found.codes(Kind.KEPT)  # parameters without a gradient are skipped there, as under DDP


DECAY = "Unused parameters now get weight decay."
MOMENTUM = "Parameters no longer used keep moving by momentum."
AT_RANDOM = "Layers skipped at random? Use --zero-stage 0."
SKIPPING = """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(4, 4), nn.Linear(4, 4)])
    def forward(self, x, y=None):
        for layer in self.layers:
            {layer}
        if y is not None:
            loss = nn.MSELoss()(x, y)
            x = (loss, x)
        return x

model = DDP(Net().cuda()"""


@pytest.mark.parametrize(
    ("optimizer", "told"),
    [
        ("torch.optim.AdamW(model.parameters(), lr=0.1)", f"{DECAY} {AT_RANDOM}"),
        ("torch.optim.AdamW(model.parameters(), lr=0.1, weight_decay=0)", f"{MOMENTUM} {AT_RANDOM}"),
        ("torch.optim.AdamW([{'params': model.parameters(), 'weight_decay': 0.0}])", f"{MOMENTUM} {AT_RANDOM}"),
        ("torch.optim.Adam(model.parameters(), 0.1)", f"{MOMENTUM} {AT_RANDOM}"),
        ("torch.optim.Adam(model.parameters(), 0.1, (0.9, 0.99), 1e-8, 0.1)", f"{DECAY} {AT_RANDOM}"),
        ("torch.optim.SGD(model.parameters(), lr=0.1, momentum=given['momentum'])", f"{MOMENTUM} {AT_RANDOM}"),
        ("torch.optim.SGD(model.parameters(), lr=0.1, weight_decay=given['decay'])", f"{DECAY} {AT_RANDOM}"),
        ("torch.optim.SGD([{'params': list(model.parameters()), 'weight_decay': 0.1}], 0.1)", f"{DECAY} {AT_RANDOM}"),
        ("torch.optim.SGD(groups(model), lr=0.1)", f"{DECAY} {AT_RANDOM}"),
        ("torch.optim.SGD(model.parameters(), 0.1)", None),
        ("torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.0, weight_decay=0)", None),
    ],
)  # fmt: skip
def test_what_moves_unused_parameters_is_told_of_the_optimizer_at_hand(optimizer: str, told: str | None) -> None:
    source = UNUSED.format(between="pass").replace(
        "torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)", optimizer
    )
    assert optimizer in source
    found = converted(source.replace("import os\n", "import os\nfrom groups import groups, given\n", 1))
    assert [one.message for one in found.changes if one.code == "MG110"] == ([told] if told else [])


def test_an_option_that_is_written_to_groups_later_is_not_known() -> None:
    source = UNUSED.format(between="optimizer.param_groups[0]['weight_decay'] = 0.1")
    assert converted(source).said("MG110").message == f"{DECAY} {AT_RANDOM}"


@pytest.mark.parametrize(
    ("layer", "told"),
    [
        ("x = layer(x)", False),
        ("x = layer(x) if torch.rand(1) > 0.1 else x", True),
        ("if torch.rand(1) > 0.1: x = layer(x)", True),
        ("if torch.rand(1) < 0.1: continue\n            x = layer(x)", True),
    ],
)
def test_layers_that_a_forward_may_skip_are_told_of_also_where_nothing_else_moves(layer: str, told: bool) -> None:
    source = UNUSED.format(between="pass").replace(", momentum=0.9", "")
    source = source.replace("\nmodel = DDP(nn.Linear(4, 4).cuda()", SKIPPING.format(layer=layer))
    messages = [one.message for one in converted(source).changes if one.code == "MG110"]
    assert messages == ([AT_RANDOM] if told else [])


@pytest.mark.parametrize(
    ("options", "momentum"),
    [
        ("lr=0.1, momentum=given['momentum']", True),
        ("lr=0.1, momentum=0.9", True),
        ("0.1, 0.9", True),
        ("lr=0.1, momentum=args.lr", True),
        ("lr=0.1, momentum=0.0", False),
        ("lr=0.1", False),
    ],
)
def test_a_momentum_that_is_given_is_kept_in_memory(options: str, momentum: bool) -> None:
    model = MODEL.replace("AdamW(model.parameters(), lr=0.1)", f"SGD(model.parameters(), {options})")
    result = migrate_files(
        {"train.py": script(model=model, imports="from settings import given\n").encode()}, "train.py"
    )
    training = result.results["train.py"].training
    assert training is not None
    assert training.optimizer == "SGD"
    assert bool(training.params.get("momentum")) is momentum


def test_an_import_behind_the_engine_keeps_no_new_one_back() -> None:
    data = "from factory import made\nloader = made(data, batch_size=args.batch_size)\n"
    found = converted(script(data))
    assert found.status is Status.CONVERTED
    assert found.text.index("import ds_compat") < found.text.index("ds_compat.load_config")
    assert found.text.index("ds_compat.load_config") < found.text.index("from factory import made")
