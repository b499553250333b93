"""Trainings whose parts are held by objects, configs and other optimizers, or stand on some ways only."""

from __future__ import annotations

import textwrap

import pytest

from dsmigrate.codemod.model import Kind, Status
from tests.codemod.converting import HEAD as TORCH
from tests.codemod.converting import Converted, converted

HEAD = TORCH + "import sys\n"

LOOP = """
for x in torch.utils.data.DataLoader(data, batch_size=8):
    loss = model(x).sum()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""
CONFIG = """
import yaml
class Config(dict):
    def __getattr__(self, name):
        return self[name]
    def __setattr__(self, name, value):
        self[name] = value
"""


def script(text: str, loop: str = LOOP) -> Converted:
    return converted(HEAD + textwrap.dedent(text) + textwrap.dedent(loop))


def test_a_scaler_of_an_object_is_used_where_it_is_made() -> None:
    found = converted(
        HEAD
        + """
import argparse
class Trainer:
    def __init__(self, args):
        self.args = args
        self.model = nn.Linear(4, 4).cuda()
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.1)
        if args.half == True:
            self.scaler = torch.amp.GradScaler("cuda")
        self.model = DDP(self.model)

    def train(self):
        for x in torch.utils.data.DataLoader(data, batch_size=8):
            with torch.autocast("cuda", torch.float16, self.args.half):
                loss = self.model(x).sum()
            self.optimizer.zero_grad()
            if self.args.half:
                self.scaler.scale(loss).backward()
                self.scaler.step(self.optimizer)
                self.scaler.update()
            else:
                loss.backward()
                self.optimizer.step()
parser = argparse.ArgumentParser()
parser.add_argument("--half", type=bool, default=False)
dist.init_process_group("nccl")
Trainer(parser.parse_args()).train()
"""
    )
    assert found.status is Status.CONVERTED
    assert "        if args.half == True:\n            ds_compat.use_grad_scaler(self.model, self.scaler)" in found.text


@pytest.mark.parametrize("switch", ["config.half", 'config["half"]'])
def test_a_region_is_switched_by_what_holds_the_switch(switch: str) -> None:
    loop = f"""
    for x in torch.utils.data.DataLoader(data, batch_size=8):
        with torch.autocast("cuda", torch.float16, {switch}):
            loss = model(x).sum()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    """
    found = script(
        CONFIG
        + """
config = Config(yaml.safe_load(open("x")))
if len(sys.argv) > 1:
    config = Config({**config})
dist.init_process_group("nccl")
model = DDP(nn.Linear(4, 4).cuda())
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
""",
        loop,
    )
    assert not found.todos
    assert 'torch_autocast={"enabled": config["half"]}' in found.text


def test_a_worker_that_is_spawned_or_called_gathers_before_the_save() -> None:
    found = converted(
        HEAD
        + CONFIG
        + """
import torch.multiprocessing as mp

def is_main():
    return not config.spawned or (config.spawned and config.rank % config.count == 0)

def main():
    config = Config(yaml.safe_load(open("x")))
    config.count = len(config.devices)
    os.environ["CUDA_VISIBLE_DEVICES"] = "0,1"
    if config.count == 1:
        config.spawned = False
    if config.spawned:
        mp.spawn(worker, nprocs=config.count, args=(config.count, config))
    else:
        worker(0, config.count, config)

def worker(gpu, count, given):
    global config
    config = given
    if config.spawned:
        config.rank = config.rank * count + gpu
        dist.init_process_group("nccl", rank=config.rank, world_size=count, init_method="tcp://127.0.0.1:1")
    model = nn.Linear(4, 4).cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    if config.spawned:
        model = DDP(model)
    for x in torch.utils.data.DataLoader(data, batch_size=8):
        loss = model(x).sum()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if is_main():
            torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict()}, "x.pt")
main()
"""
    )
    assert not found.todos
    assert "    if config.spawned:\n        model = DDP(model)" not in found.text
    assert "\n    model = deepspeed.initialize(" in found.text
    assert "ds_compat.gather_checkpoint(model" in found.text
    assert found.said("MG225", Kind.KEPT)


def test_a_run_without_a_group_has_an_engine_too() -> None:
    found = script(
        """
        if int(os.environ.get("WORLD_SIZE", 1)) > 1:
            dist.init_process_group("nccl")
        model = nn.Linear(4, 4).cuda()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        if dist.is_initialized():
            model = DDP(model)
        """
    )
    assert "\nmodel = deepspeed.initialize(" in found.text
    assert found.said("MG216", Kind.KEPT)


def test_gradients_of_another_module_are_still_cleared() -> None:
    found = script(
        """
        dist.init_process_group("nccl")
        head = nn.Linear(4, 4).cuda()
        model = DDP(nn.Linear(4, 4).cuda())
        optimizer = torch.optim.SGD([*model.parameters(), *head.parameters()], lr=0.1)
        """,
        LOOP.replace("model(x)", "head(model(x))"),
    )
    assert "optimizer.zero_grad()" in found.text
    assert found.said("MG403", Kind.KEPT)


def test_parameters_of_an_unread_part_are_the_model_s() -> None:
    found = script(
        """
        from zoo import backbone
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.backbone = backbone()
                self.head = nn.Linear(4, 4)
            def forward(self, x):
                return self.head(self.backbone(x))
        dist.init_process_group("nccl")
        model = Net()
        groups = [{"params": model.backbone.parameters()}, {"params": model.head.parameters()}]
        optimizer = torch.optim.SGD(groups, lr=0.1)
        model = DDP(model.cuda())
        """
    )
    assert found.config["zero_optimization"] == {"stage": 2}


def test_an_optimizer_within_another_one_zeroes_the_gradients() -> None:
    found = script(
        """
        class Lars(torch.optim.Optimizer):
            def __init__(self, inner):
                self.inner = inner
            @property
            def param_groups(self):
                return self.inner.param_groups
            def zero_grad(self):
                self.inner.zero_grad()
            def step(self):
                for group in self.param_groups:
                    for p in group["params"]:
                        p.grad.mul_(p.norm() / p.grad.norm())
                self.inner.step()
        dist.init_process_group("nccl")
        model = DDP(nn.Linear(4, 4).cuda())
        optimizer = Lars(torch.optim.SGD(model.parameters(), lr=0.1))
        """
    )
    assert "MG407" not in {change.code for change in found.changes}


def test_a_clamp_of_an_unread_model_s_weight_lasts() -> None:
    found = script(
        """
        from zoo import build
        dist.init_process_group("nccl")
        model = build().cuda()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        model = DDP(model)
        """,
        LOOP + "    model.module.scale.data.clamp_(0, 4)\n",
    )
    assert "ds_compat.refresh_masters(model)" in found.text


def test_an_average_that_is_made_anew_of_the_wrapper_says_so() -> None:
    found = script(
        """
        import copy
        from zoo import build
        class Average:
            def __init__(self, model):
                self.module = copy.deepcopy(model)
        dist.init_process_group("nccl")
        model = build().cuda()
        average = Average(model)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        model = DDP(model)
        if len(sys.argv) > 1:
            average = Average(model)
        """,
        LOOP + '    torch.save(average.module.state_dict(), f"{dist.get_rank()}.pt")\n',
    )
    assert found.said("MG508", Kind.KEPT).message == "names of weights begin with 'module.' in no run here"
    assert "refresh_masters" not in found.text
    assert not found.todos


def test_an_arm_that_does_nothing_stays() -> None:
    found = script(
        """
        dist.init_process_group("nccl")
        model = DDP(nn.Linear(4, 4).cuda())
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        """,
        LOOP + "    if quiet():\n        pass\n    else:\n        print(loss)\n",
    )
    assert "    if quiet():\n        pass\n    else:\n" in found.text


def test_names_that_are_only_shown_are_no_work() -> None:
    found = script(
        """
        dist.init_process_group("nccl")
        model = DDP(nn.Linear(4, 4).cuda())
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        print({n: p.numel() for n, p in model.named_parameters()})
        """
    )
    assert not found.todos


def test_a_trainer_that_one_rank_makes_otherwise_is_one_training() -> None:
    found = script(
        """
        class Trainer:
            def __init__(self, name=""):
                self.model = DDP(nn.Linear(4, 4).cuda())
                self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.1)

            def train(self, x):
                loss = self.model(x).sum()
                self.optimizer.zero_grad()
                loss.backward()
                self.optimizer.step()
        dist.init_process_group("nccl")
        if dist.get_rank() == 0:
            trainer = Trainer("first")
        else:
            trainer = Trainer()
        """,
        "for x in torch.utils.data.DataLoader(data, batch_size=8):\n    trainer.train(x)\n",
    )
    assert found.status is Status.CONVERTED
    assert "        self.model = deepspeed.initialize(" in found.text


@pytest.mark.parametrize("encoder", ["nn.Linear(4, 4)", "zoo.encoder()"])
def test_frozen_weights_that_the_forward_averages_need_whole_weights(encoder: str) -> None:
    text = f"""
    import zoo
    class Moco(nn.Module):
        def __init__(self):
            super().__init__()
            self.base = {encoder}
            self.slow = {encoder}
            for b, m in zip(self.base.parameters(), self.slow.parameters()):
                m.data.copy_(b.data)
                m.requires_grad = False
        def forward(self, x):
            with torch.no_grad():
                for b, m in zip(self.base.parameters(), self.slow.parameters()):
                    m.data = m.data * 0.9 + b.data * 0.1
            return self.base(x) - self.slow(x)
    dist.init_process_group("nccl")
    model = DDP(Moco().cuda())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    """
    assert script(text).said("MG509", Kind.KEPT)
    found = converted(HEAD + textwrap.dedent(text) + LOOP, zero_stage=3)
    assert "GatheredParameters" in found.said("MG509", Kind.TODO).message


def test_the_engine_is_made_where_its_name_reaches_the_training() -> None:
    found = script("""
dist.init_process_group("nccl")
def make_optimizer(net):
    made = torch.optim.AdamW(net.parameters(), lr=0.1)
    return made
def setup():
    net = DDP(nn.Linear(4, 4).cuda())
    optimizer = make_optimizer(net)
    return net, optimizer
model, optimizer = setup()
""")
    assert not found.todos
    lines = [line.strip() for line in found.text.splitlines()]
    assert lines[lines.index("optimizer = make_optimizer(net)") + 1].startswith("net = deepspeed.initialize(")


@pytest.mark.parametrize(
    "register", ["signal.signal(signal.SIGTERM, leave)", "atexit.register(leave)", "tools.on_error(leave)"]
)
def test_a_handler_that_ends_the_process_ends_no_training(register: str) -> None:
    found = script(f"""
import atexit, signal, tools
stop = False
def leave(*_):
    global stop
    stop = True
    sys.exit(1)
{register}
dist.init_process_group("nccl")
model = DDP(nn.Linear(4, 4).cuda())
optimizer = torch.optim.AdamW(model.parameters(), lr=0.1)
""")
    assert found.status is Status.CONVERTED, found.changes


def test_what_a_handler_writes_may_not_be_written() -> None:
    found = converted(
        HEAD
        + """
import signal
stop = False
def note(*_):
    global stop
    stop = True
signal.signal(signal.SIGTERM, note)
dist.init_process_group("nccl")
model = DDP(nn.Linear(4, 4).cuda())
optimizer = torch.optim.AdamW(model.parameters(), lr=0.1)
for x in torch.utils.data.DataLoader(data, batch_size=8):
    if stop:
        break
    loss = model(x).sum()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""
    )
    assert found.status is Status.CONVERTED, found.changes


@pytest.mark.parametrize(
    "made", ["torch.optim.SGD.__init__(self, params, lr=lr)", "super(Clipped, self).__init__(params, lr=lr)"]
)
def test_an_optimizer_is_made_by_its_base_however_that_is_said(made: str) -> None:
    found = script(f"""
class Net(nn.Module):
    def __init__(self):
        nn.Module.__init__(self)
        self.body = nn.Linear(4, 4)
    def forward(self, x):
        return self.body(x)
class Clipped(torch.optim.SGD):
    def __init__(self, params, lr):
        {made}
    def step(self, closure=None):
        for group in self.param_groups:
            for p in group["params"]:
                p.data.add_(p.grad, alpha=-group["lr"] / max(1, p.grad.norm(2).item()))
dist.init_process_group("nccl")
model = DDP(Net().cuda())
if len(sys.argv) > 1:
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
else:
    optimizer = Clipped(model.parameters(), lr=0.1)
""")
    assert not found.todos
    assert found.config["zero_optimization"] == {"stage": 0}
    assert "works layer by layer" in found.said("MG602", Kind.KEPT).message


def test_what_is_made_anew_in_each_turn_keeps_the_conditions_of_its_own() -> None:
    found = script(
        """
import argparse, time
parser = argparse.ArgumentParser()
parser.add_argument("--launcher", default="none")
parser.add_argument("--every", type=int, default=5)
args = parser.parse_args()
def on_cpu(state):
    return type(state)((name, value.cpu()) for name, value in state.items())
def state_of(model):
    if isinstance(model, DDP):
        weights = on_cpu(model.module.state_dict())
    else:
        weights = model.state_dict()
    return {"weights": weights}
def save(state):
    torch.save(state, "last.pt")
start, saves = time.time(), 1
if args.launcher != "none":
    dist.init_process_group("nccl")
model = nn.Linear(4, 4).cuda()
optimizer = torch.optim.AdamW(model.parameters(), lr=0.1)
if args.launcher != "none":
    model = DDP(model)
""",
        loop="""
for epoch in range(100):
    for x in torch.utils.data.DataLoader(data, batch_size=8):
        loss = model(x).sum()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if time.time() - start > saves * args.every:
            save(state_of(model))
            saves += 1
    if epoch % args.every == 0:
        save(state_of(model))
""",
    )
    assert not found.todos


def test_what_is_sorted_is_a_list() -> None:
    found = script("""
import glob
paths = sorted(path for path in glob.glob("*") if os.path.isfile(path))
assert isinstance(paths, list)
dist.init_process_group("nccl")
model = DDP(nn.Linear(4, 4).cuda())
optimizer = torch.optim.AdamW(model.parameters(), lr=0.1)
""")
    assert found.status is Status.CONVERTED, found.changes


SCALED = """
class Trainer:
    def __init__(self, config):
        self.config = config
        self.model, self.optimizer = self.made()
        {early}
    def made(self):
        model = nn.Linear(4, 4).cuda()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        return DDP(model), optimizer
    def train(self):
        {late}
        for x in torch.utils.data.DataLoader(data, batch_size=8):
            with torch.autocast("cuda", torch.float16, "fp16" in self.config):
                loss = self.model(x).sum()
            self.optimizer.zero_grad()
            if "fp16" in self.config:
                self.scaler.scale(loss).backward()
                self.scaler.step(self.optimizer)
                self.scaler.update()
            else:
                loss.backward()
                self.optimizer.step()
dist.init_process_group("nccl")
Trainer(sys.argv).train()
"""


def test_the_engine_is_told_of_a_scaler_behind_both() -> None:
    made = "self.scaler = torch.amp.GradScaler('cuda')"
    early = script(SCALED.format(early=made, late="pass"), loop="")
    late = script(SCALED.format(early="pass", late=made), loop="")
    for found in (early, late):
        assert "MG302" not in {code for code, _ in found.todos}
        lines = [line.strip() for line in found.text.splitlines()]
        assert lines.index(made) < lines.index("ds_compat.use_grad_scaler(self.model, self.scaler)")


def test_a_scaler_that_an_object_may_not_have_is_asked_for() -> None:
    made = "self.scaler = torch.amp.GradScaler('cuda')"
    early = f"if unread(config):\n            {made}"
    found = script(SCALED.format(early=early, late="pass"), loop="")
    assert "MG302" not in {code for code, _ in found.todos}
    assert "ds_compat.use_grad_scaler(self.model, self.scaler)" in found.text


def test_what_stands_behind_unpacking_that_cannot_fit_does_not_count() -> None:
    found = script(
        """
def resumed(path, optimizer):
    optimizer.load_state_dict(torch.load(path))
    return optimizer, 1

dist.init_process_group("nccl")
model = DDP(nn.Linear(4, 4).cuda())
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
if len(sys.argv) > 1:
    model, optimizer, epoch = resumed(sys.argv[1], optimizer)
""",
        """
for x in torch.utils.data.DataLoader(data, batch_size=8):
    model(x).sum().backward()
    optimizer.step()
    optimizer.zero_grad()
""",
    )
    assert not found.todos


def test_a_library_that_asks_for_the_wrapper_is_not_the_only_one_asked() -> None:
    found = converted(
        f"""{TORCH}
from ultralytics.utils.torch_utils import autocast, is_parallel
def plain(model):
    return model.module if is_parallel(model) else model
dist.init_process_group("nccl")
model = DDP(nn.Linear(4, 4).cuda())
optimizer = torch.optim.SGD(model.parameters(), 0.1)
scaler = torch.cuda.amp.GradScaler()
for x in data:
    optimizer.zero_grad()
    with autocast(True):
        loss = model(x).sum()
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
print(plain(model).weight.shape)
"""
    )
    assert not found.todos
    assert (
        "model.module if (is_parallel(model) or isinstance(model, deepspeed.DeepSpeedEngine)) else model" in found.text
    )
    assert found.config["torch_autocast"]["enabled"] is True
