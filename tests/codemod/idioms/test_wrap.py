"""The wrap goes, and the engine is made where model and optimizer are both there."""

from __future__ import annotations

import pytest

from dsmigrate.codemod.model import Kind, Status
from tests.codemod.converting import HEAD, converted
from tests.codemod.idioms.models import LOOP, trained


def engine(text: str) -> str:
    """The line or lines that make the engine, as one line without blanks."""
    start = text.index("deepspeed.initialize(")
    start = text.rindex("\n", 0, start) + 1
    return "".join(text[start : text.index(")[0]", start) + 4].split()).replace(",)", ")")


# -- what stays -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "script",
    [
        "",
        "import torch\nprint(torch.ones(2))\n",
        HEAD
        + "model = nn.DataParallel(nn.Linear(4, 4))\noptimizer = torch.optim.SGD(model.parameters(), 0.1)\n"
        + LOOP,
        HEAD + "class Net(nn.Module):\n    def forward(self, x):\n        return x\n",
        HEAD + "model = DDP(nn.Linear(4, 4))\nprint(model(torch.ones(4)))\n",
    ],
)
def test_what_trains_no_wrapped_model_is_left_alone(script: str) -> None:
    found = converted(script)
    assert found.status is Status.UNCHANGED
    assert not found.texts


def test_a_model_and_an_optimizer_that_never_meet_are_refused() -> None:
    found = converted(
        HEAD
        + """
    class Holder:
        def __init__(self):
            self.__dict__["o"] = torch.optim.SGD(load(), 0.1)

        def update(self):
            self.__dict__["o"].step()

    def main(holder):
        model = DDP(nn.Linear(4, 4))
        for x in loader:
            model(x).mean().backward()
            holder.update()

    main(Holder())
    """
    )
    assert found.codes(Kind.REFUSED) <= {"MG911", "MG913"}
    assert found.status is Status.REFUSED


def test_a_wrapped_model_that_nothing_trains_stays() -> None:
    found = trained(
        wrap="model = DDP(Net())\nteacher = DDP(Net())", end="print(isinstance(teacher, DDP), teacher.module)"
    )
    assert "teacher = DDP(Net())" in found.text
    assert "isinstance(teacher, DDP), teacher.module" in found.text
    assert "MG105" in found.codes(Kind.KEPT)


def test_a_process_group_of_its_own_is_refused() -> None:
    found = trained(wrap="model = DDP(Net(), process_group=dist.new_group([0, 1]))")
    assert found.codes(Kind.REFUSED) == {"MG903"}


# -- the wrap ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("imports", "wrap"),
    [
        ("", "DDP"),
        ("from torch.nn.parallel import DistributedDataParallel", "DistributedDataParallel"),
        ("from torch.nn.parallel import DistributedDataParallel as Wrapped", "Wrapped"),
        ("from torch.nn.parallel.distributed import DistributedDataParallel", "DistributedDataParallel"),
        ("import torch.nn.parallel", "torch.nn.parallel.DistributedDataParallel"),
        ("", "nn.parallel.DistributedDataParallel"),
        ("import torch.nn.parallel as parallel", "parallel.DistributedDataParallel"),
        ("from torch.nn import parallel", "parallel.DistributedDataParallel"),
        ("from torch import nn as layers", "layers.parallel.DistributedDataParallel"),
        ("import torch as th", "th.nn.parallel.DistributedDataParallel"),
        ("from apex.parallel import DistributedDataParallel as ApexDDP", "ApexDDP"),
        ("import apex", "apex.parallel.DistributedDataParallel"),
        (("try:\n    from apex.parallel import DistributedDataParallel as Any\n"
         "except ImportError:\n    from torch.nn.parallel import DistributedDataParallel as Any"), "Any"),
    ],
)  # fmt: skip
def test_every_spelling_of_the_class_is_known(imports: str, wrap: str) -> None:
    found = trained(helpers=imports, wrap=f"model = {wrap}(Net())")
    assert found.status is Status.CONVERTED
    assert f"{wrap}(Net())" not in found.text
    assert engine(found.text).startswith("model=deepspeed.initialize(model=model,optimizer=optimizer,")


@pytest.mark.parametrize(
    ("wrap", "left"),
    [
        ("model = Net()\nmodel = DDP(model, device_ids=[0], find_unused_parameters=False)", "model = Net()\n"),
        ("model = DDP(module=Net(), bucket_cap_mb=100)", "model = Net()\n"),
        ("model = Net()\nif args.distributed:\n    model = DDP(model)", "model = Net()\n"),
        ("model = Net()\nmodel = DDP(model) if args.distributed else model", "model = Net()\n"),
        (
            (
                "model = Net()\nif torch.cuda.is_available():\n"
                "    model = DDP(model, device_ids=[0])\nelse:\n    model = DDP(model)"
            ),
            "model = Net()\n",
        ),
        (
            (
                "model = Net()\nif args.distributed:\n    model = DDP(model)\nelif args.seed:\n"
                "    model = nn.DataParallel(model)"
            ),
            "model = Net()\n",
        ),
        (
            "model = Net()\nif args.distributed:\n    args.seed += 1\n    model = DDP(model)",
            "model = Net()\nif args.distributed:\n    args.seed += 1\n",
        ),
    ],
)
def test_nothing_is_left_of_the_wrap(wrap: str, left: str) -> None:
    found = trained(wrap=wrap)
    assert left + "optimizer = torch.optim.SGD(model.parameters(), lr=0.1)\n" in found.text
    assert found.text.count("deepspeed.initialize(") == 1


def test_the_engine_takes_the_place_of_a_wrap_behind_the_optimizer() -> None:
    found = trained(
        wrap="model = Net()", optimizer="optimizer = torch.optim.SGD(model.parameters(), lr=0.1)\nmodel = DDP(model)"
    )
    assert engine(found.text).startswith("model=deepspeed.initialize(model=model,optimizer=optimizer,")


def test_a_name_of_its_own_for_the_wrapper_is_the_engines() -> None:
    for optimizer in ("torch.optim.SGD(net.parameters(), 0.1)", "torch.optim.SGD(ddp.parameters(), 0.1)"):
        found = trained(
            wrap="net = Net()\nddp = DDP(net)",
            optimizer=f"optimizer = {optimizer}",
            loop=LOOP.replace("model(", "ddp("),
        )
        assert engine(found.text).startswith("ddp=deepspeed.initialize(model=net,")
        assert "ddp = net" not in found.text
        assert "optimizer = torch.optim.SGD(net.parameters(), 0.1)" in found.text
        assert "ddp.backward(loss)" in found.text


def test_who_held_the_wrapped_model_gets_the_engine() -> None:
    helpers = "class Trainer:\n    def __init__(self, model):\n        self.model = model\n"
    wrap = "model = DDP(Net())\nnet = model\ntrainer = Trainer(model)\nboth = {'a': model}"
    loop = LOOP.replace("model(x.cuda())", "net(x.cuda()) + trainer.model(x.cuda()) + both['a'](x)")
    found = trained(helpers=helpers, wrap=wrap, loop=loop)
    for line in ("net = model", "trainer.model = model", 'both["a"] = model'):
        assert found.text.index(line, found.text.index("deepspeed.initialize")) > 0


@pytest.mark.parametrize(
    ("use", "codes"),
    [
        ("return self.model(torch.rand(4, 4))", ["MG101"]),
        ("return self.model.state_dict()", ["MG101"]),
        ("print(self.model)", []),
        ("self.model.apply(print)", []),
    ],
)
def test_what_no_name_leads_to_is_marked_where_it_needs_the_engine(use: str, codes: list[str]) -> None:
    helpers = f"""
class Keeper:
    def __init__(self, model):
        self.model = model

    def show(self):
        {use}

def shown(model):
    keeper = Keeper(model)
    return keeper.show
"""
    found = trained(helpers=helpers, wrap="model = DDP(Net())\nshow = shown(model)", end="show()")
    assert [code for code, _ in found.todos] == codes


HELPERS = """
def wrapped(net):
    if args.distributed:
        return DDP(net), 1
    return net, 0

def build(net):
    if args.seed:
        return torch.optim.AdamW(net.parameters())
    return torch.optim.SGD(net.parameters(), 0.1)
"""


def test_a_helper_that_wraps_and_one_that_makes_the_optimizer() -> None:
    found = trained(helpers=HELPERS, wrap="model, flag = wrapped(Net())", optimizer="optimizer = build(model)")
    assert "return net, 1" in found.text
    assert found.text.index("optimizer = build(model)\nmodel = deepspeed.initialize(") > 0
    assert found.status is Status.CONVERTED


def test_a_trainer_makes_the_engine_of_its_own_attributes() -> None:
    found = converted(
        HEAD
        + """
    class Trainer:
        def __init__(self, model):
            self.model = DDP(model)
            self.optimizer = self.build()

        def build(self):
            return torch.optim.SGD(self.model.parameters(), lr=0.1)

        def fit(self, loader):
            for x in loader:
                self.optimizer.zero_grad()
                self.model(x.cuda()).mean().backward()
                self.optimizer.step()

    Trainer(nn.Linear(4, 4)).fit(torch.utils.data.DataLoader(data, batch_size=8))
    """
    )
    assert found.status is Status.CONVERTED
    assert engine(found.text).startswith("self.model=deepspeed.initialize(model=self.model,optimizer=self.optimizer,")
    assert found.text.index("self.optimizer = self.build()") < found.text.index("deepspeed.initialize(")


def test_a_function_that_makes_the_optimizer_and_trains_makes_the_engine() -> None:
    found = converted(
        HEAD
        + """
    def train(model, loader):
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for x in loader:
            optimizer.zero_grad()
            model(x.cuda()).mean().backward()
            optimizer.step()
        report(model)

    def report(net):
        print(net.module)

    def main(loader):
        model = DDP(nn.Linear(4, 4))
        train(model, loader)
        print(model.module, model(0))
        report(model)

    main(torch.utils.data.DataLoader(data, batch_size=8))
    """
    )
    assert found.status is Status.CONVERTED
    assert "print(model, model(0))" in found.text  # main goes on with the plain model, which holds the trained weights
    assert 'print(getattr(net, "module", net))' in found.text
    assert "MG504" in found.codes(Kind.CONVERTED)


def test_what_leaves_before_the_optimizer_is_made_changes_nothing() -> None:
    for leave in ("if args.seed > 3:\n    raise NotImplementedError", "if not args.seed:\n    exit()"):
        found = trained(wrap=f"model = DDP(Net())\n{leave}")
        assert (
            found.text.index("optimizer = torch.optim.SGD(model.parameters(), lr=0.1)\nmodel = deepspeed.initialize(")
            > 0
        )


@pytest.mark.parametrize(
    "params", ["make_groups(model)", "make_groups(model.head, 0.1)", "[p for g in make_groups(model) for p in g]"]
)
def test_parameters_from_an_unread_function_are_the_models(params: str) -> None:
    found = trained(
        helpers="from somewhere import make_groups", optimizer=f"optimizer = torch.optim.SGD({params}, lr=0.1)"
    )
    assert found.status in {Status.CONVERTED, Status.CONVERTED_WITH_TODOS}
    assert "deepspeed.initialize(" in found.text


@pytest.mark.parametrize(
    "part",
    [
        "model = Net()\nmodel.head = nn.Sequential(nn.Linear(4, 4))\nmodel = DDP(model)",
        "body = nn.Linear(4, 4)\nmodel = DDP(nn.Sequential(body))",
    ],
)
def test_an_optimizer_of_a_part_is_the_models(part: str) -> None:
    inner = "model.module.head" if "head" in part else "body"
    found = trained(wrap=part, optimizer=f"optimizer = torch.optim.SGD({inner}.parameters(), lr=0.1)")
    assert found.status is Status.CONVERTED


def test_a_training_in_a_loop_makes_an_engine_in_each_turn() -> None:
    body = (
        "model = DDP(Net())\noptimizer = torch.optim.SGD(model.parameters(), lr=0.1)"
        + LOOP
        + "dist.destroy_process_group()"
    )
    found = trained(
        wrap="", optimizer="", loop="for fold in range(3):\n" + "\n".join(f"    {line}" for line in body.splitlines())
    )
    assert "MG712" in found.codes(Kind.KEPT)
    assert [code for code, _ in found.todos] == ["MG712"]


def test_two_trainings_of_a_file_have_an_engine_each() -> None:
    one = """
    def first(loader):
        net = DDP(nn.Linear(4, 4))
        optimizer = torch.optim.SGD(net.parameters(), 0.1)
        for x in loader:
            optimizer.zero_grad()
            net(x.cuda()).mean().backward()
            optimizer.step()
    """
    loader = "torch.utils.data.DataLoader(data, batch_size=8)"
    found = converted(
        HEAD
        + one
        + one.replace("first", "second").replace("4, 4", "4, 1")
        + f"\n    first({loader})\n    second({loader})\n"
    )
    assert found.status is Status.CONVERTED
    assert found.text.count("deepspeed.initialize(") == 2
    assert found.text.count("net.backward(") == 2


HOOKED = (
    HEAD
    + """
dist.init_process_group("nccl")

class Trainer:
    def __init__(self, net, clip):
        self.net = net
        self.model = DDP(self.net)
        self.optimizer = self.configured()
        self.clip = clip

    def configured(self):
        decay = [p for p in self.model.parameters() if p.ndim > 1]
        rest = [p for p in self.model.parameters() if {rest}]
        return torch.optim.SGD([{{"params": decay}}, {{"params": rest, "weight_decay": 0.0}}], lr=0.1)

    def fit(self):
        for x in torch.utils.data.DataLoader(data, batch_size=8):
            self.model(x).sum().backward()
            nn.utils.clip_grad_norm_(self.model.parameters(), self.clip)
            self.optimizer.step()
            self.optimizer.zero_grad()

Trainer(nn.Linear(4, 4).cuda(), 0.5).fit()
"""
)


@pytest.mark.parametrize("rest", ["p.ndim <= 1", "not p.ndim > 1", "p.dim() < 2", "len(p.shape) < 2"])
def test_an_attribute_that_a_method_reads_before_the_engine_is_the_plain_model_until_then(rest: str) -> None:
    found = converted(HOOKED.format(rest=rest))
    assert (
        "self.model = self.net\n        self.optimizer = self.configured()\n        self.model = deepspeed.initialize("
        in found.text
    )
    assert found.status is Status.CONVERTED  # the groups together have all parameters


def test_an_optimizer_that_moves_into_the_config_has_the_plain_models_parameters() -> None:
    found = converted(HEAD + """
dist.init_process_group("nccl")
def main():
    net = nn.Linear(4, 4).cuda()
    ddp = DDP(net)
    optimizer = torch.optim.SGD(ddp.parameters(), lr=0.1)
    for x in torch.utils.data.DataLoader(data, batch_size=8):
        ddp(x).sum().backward()
        optimizer.step()
        optimizer.zero_grad()
main()
""", optimizer="config")  # fmt: skip
    assert found.status is Status.CONVERTED
    assert "model_parameters=net.parameters()" in found.text


@pytest.mark.parametrize("test", ["world > 1", "args.multi"])
def test_a_worker_that_is_spawned_or_called_alone_may_share_the_model(test: str) -> None:
    found = converted(
        HEAD
        + f"""
    import argparse
    import torch.multiprocessing as mp

    def worker(rank, net, world):
        dist.init_process_group("nccl", rank=rank, world_size=world)
        model = DDP(net.to(rank), device_ids=[rank])
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for x in torch.utils.data.DataLoader(data, batch_size=8):
            optimizer.zero_grad()
            model(x.to(rank)).sum().backward()
            optimizer.step()

    if __name__ == "__main__":
        parser = argparse.ArgumentParser()
        parser.add_argument("--multi", action="store_true")
        args = parser.parse_args()
        world = torch.cuda.device_count()
        net = nn.Linear(4, 4)
        if {test}:
            mp.spawn(worker, args=(net, world), nprocs=world)
        else:
            worker(0, net, world)
    """
    )
    assert found.status is Status.CONVERTED, found.todos
    assert found.text.count("deepspeed.initialize(") == 1


# -- runs of the same lines without a wrapper --------------------------------------------------------------------------

WORKER = (
    HEAD
    + """
    import argparse
    import torch.multiprocessing as mp

    def fit(model, optimizer, args):
        for x in torch.utils.data.DataLoader(list(range(4))):
            loss = model(x.cuda()).sum()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        if not args.multi or args.rank == 0:
            save(model, args)

    def save(model, args):
        torch.save(model.state_dict(), "a.pt")

    def worker(rank, args):
        args.rank = rank
        if args.multi:
            dist.init_process_group("nccl", init_method="tcp://localhost:1234", rank=rank, world_size=args.n)
        model = nn.Linear(4, 2).cuda(rank)
        optimizer = torch.optim.Adam(model.parameters(), lr=0.1)
        if args.multi:
            model = DDP(model, device_ids=[rank])
            print("one of many")
        else:
            print("alone")
        fit(model, optimizer, args)

    def main():
        parser = argparse.ArgumentParser()
        parser.add_argument("--n", type=int, default=1)
        args = parser.parse_args()
        args.multi = args.n > 1
        if args.multi:
            mp.spawn(worker, nprocs=args.n, args=(args,))
        else:
            worker(0, args)

    main()
"""
)


def test_a_run_without_a_wrapper_gets_the_engine_that_the_shared_loop_asks_for() -> None:
    found = converted(WORKER)
    assert "\n    model = deepspeed.initialize(" in found.text  # not in the arm that only spawned workers take
    assert "is_engine" not in found.parts
    assert not found.todos


def test_names_in_the_file_of_a_run_without_a_wrapper_change_and_it_is_said() -> None:
    assert "not wrapped" in converted(WORKER).said("MG508", Kind.KEPT).message


def test_the_engine_made_in_a_method_of_its_own_is_there_in_a_run_without_a_wrapper() -> None:
    found = converted(
        HEAD
        + """
        import argparse

        class Trainer:
            def __init__(self, model, args):
                self.model = model
                self.args = args
                self.prepare()

            def prepare(self):
                self.optimizer = torch.optim.Adam(self.model.parameters(), lr=0.1)

            def fit(self, data):
                for x in data:
                    loss = self.model(x.cuda()).sum()
                    self.optimizer.zero_grad()
                    loss.backward()
                    self.optimizer.step()

        def build(args):
            model = nn.Linear(4, 2).cuda()
            return DDP(model) if args.multi else model

        def worker(args):
            dist.init_process_group("nccl")
            Trainer(build(args), args).fit(torch.utils.data.DataLoader(list(range(4))))

        def main():
            parser = argparse.ArgumentParser()
            parser.add_argument("--multi", action="store_true")
            args = parser.parse_args()
            if args.multi:
                worker(args)
            else:
                Trainer(build(args), args).fit(torch.utils.data.DataLoader(list(range(4))))

        main()
        """
    )
    assert "is_engine" not in found.parts
    assert found.text.count("self.model.backward(loss)") == 1


def test_a_flag_that_unwraps_in_a_save_of_one_rank_is_dropped() -> None:
    found = converted(
        WORKER.replace(
            'torch.save(model.state_dict(), "a.pt")',
            'if args.multi:\n            model = model.module\n        torch.save(model.state_dict(), "a.pt")',
        )
    )
    assert "    model = model.module\n    torch.save" in found.text
    assert found.said("MG503").line


def test_an_attribute_that_the_wrapper_was_given_needs_no_assignment() -> None:
    found = converted(
        HEAD
        + """
        dist.init_process_group("nccl")
        model = DDP(net.cuda())
        model.layers = model.module.layers
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for x in torch.utils.data.DataLoader(data, batch_size=8):
            optimizer.zero_grad()
            model(x).sum().backward()
            optimizer.step()
        """
    )
    assert ".layers" not in found.text
    assert not found.todos


@pytest.mark.parametrize(
    ("devices", "told"),
    [("", 1), (", device_ids=[0, 1]", 1), (", device_ids=list(range(n))", 1), (", [0]", 0), (", device_ids=(0,)", 0)],
)
def test_what_a_run_of_one_process_loses_with_its_replicas_is_told_once(devices: str, told: int) -> None:
    script = f"""
net = nn.Linear(4, 4).cuda()
if "RANK" in os.environ:
    dist.init_process_group("nccl")
    model = DDP(net)
elif big:
    model = nn.DataParallel(net{devices})
else:
    model = nn.DataParallel(net{devices}).cuda()
optimizer = torch.optim.SGD(model.parameters(), 0.1)
"""
    found = converted(HEAD + "from settings import big, n\n" + script + LOOP)
    assert "DataParallel" not in found.text
    kept = [one.message for one in found.changes if one.code == "MG102" and one.kind is Kind.KEPT]
    assert kept == ["One process now trains on one GPU; DataParallel used several."] * told
