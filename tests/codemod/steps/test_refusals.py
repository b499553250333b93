"""What is not converted, with the reason and the line."""

from __future__ import annotations

import pytest

from dsmigrate.codemod.migrate import migrate_source
from dsmigrate.codemod.model import Kind, Options, Status
from tests.codemod.checks import check_refused, convert, migrate, script


@pytest.mark.parametrize(
    ("source", "line", "says"),
    [
        (b"import torch\nprint 'x'\n", 2, "Python 2"),
        (b"import torch\nif x:\n", 2, ""),
        (b"import torch\nx = 'DDP\n", 2, ""),
        (b"x = 1\n\x00", 2, "NUL"),
        (b"# -*- coding: nothing -*-\n", 1, "nothing"),
        (b"\xff\xfe\x00", 1, ""),
    ],
)
def test_what_cannot_be_read_is_an_error_with_its_line(source: bytes, line: int, says: str) -> None:
    result = migrate_source(source, path="train.py", options=Options())
    assert result.status is Status.ERROR
    (change,) = result.changes
    assert change.code == "MG900"
    assert change.line in {line, line - 1, line + 1}
    assert says in change.message


@pytest.mark.parametrize(
    ("imports", "line", "what"),
    [
        ("import torch.distributed.rpc as rpc", 'rpc.init_rpc("worker")', "RPC"),
        (
            "from torch.distributed.optim import DistributedOptimizer",
            "DistributedOptimizer(torch.optim.SGD, [])",
            "Distr",
        ),
        ("import dgl.distributed", 'dgl.distributed.initialize("ip.txt")', "dgl.distributed"),
        ("import horovod.torch as hvd", "hvd.init()", "Horovod"),
    ],
)
def test_another_kind_of_distributed_training_is_refused(imports: str, line: str, what: str) -> None:
    check_refused(script(imports=imports, resume=line), "MG903", line, what)


def test_joining_uneven_inputs_is_refused() -> None:
    source = script(
        loop="""
            with model.join():
                for x, y in train_loader:
                    loss = F.cross_entropy(model(x), y)
                    optimizer.zero_grad()
                    loss.backward()
                    optimizer.step()
            """
    )
    check_refused(source, "MG903", "with model.join():", "join")


def test_joining_threads_and_paths_is_another_matter() -> None:
    convert(end='print(os.path.join("a", "b"), ", ".join(["a"]))')


def test_sparse_gradients_are_refused() -> None:
    source = script(wrap="model = DDP(nn.Sequential(nn.Embedding(10, 32, sparse=True), Net()).cuda())")
    check_refused(source, "MG903", "sparse=True", "sparse")


def test_a_script_that_runs_deepspeed_beside_ddp_is_refused() -> None:
    source = script(
        imports="import deepspeed",
        end="""
            if args.distributed:
                model = deepspeed.initialize(model=model, config="c.json")[0]
            """,
    )
    check_refused(source, "MG904", "deepspeed.initialize(", "already")


def test_a_fsdp_branch_beside_the_ddp_branch_stays() -> None:
    migrated = convert(
        imports="from torch.distributed.fsdp import FullyShardedDataParallel as FSDP",
        wrap="""
            model = Net().cuda()
            if args.amp:
                model = FSDP(model)
            else:
                model = DDP(model)
            """,
    )
    assert "FSDP(model)" in migrated.code
    migrated.said("MG113", "FSDP(model)", Kind.TODO)


@pytest.mark.parametrize("stage", [2, 3])
def test_a_branch_with_fully_shard_is_marked(stage: int) -> None:
    migrated = convert(
        imports="from torch.distributed.fsdp import fully_shard",
        wrap="""
            model = Net().cuda()
            if args.amp:
                fully_shard(model)
            else:
                model = DDP(model)
            """,
        to={"zero_stage": stage},
    )
    migrated.said("MG113", "fully_shard(model)", Kind.TODO)


@pytest.mark.parametrize(
    ("imports", "wrap"),
    [
        ("from torch.distributed.fsdp import fully_shard", "model = Net().cuda()\nfully_shard(model)"),
        ("from torch.distributed.fsdp import FullyShardedDataParallel as FSDP", "model = FSDP(Net().cuda())"),
        ("import horovod.torch as hvd", "model = Net()\nhvd.broadcast_parameters(model.state_dict(), root_rank=0)"),
    ],
)
def test_a_script_without_ddp_is_refused_for_what_it_uses_instead(imports: str, wrap: str) -> None:
    check_refused(script(imports=imports, wrap=wrap), "MG903", wrap.splitlines()[-1])


def test_a_higher_gradient_is_refused() -> None:
    source = script(
        loop="""
            for x, y in train_loader:
                loss = F.cross_entropy(model(x), y)
                (slope,) = torch.autograd.grad(loss, x, create_graph=True)
                optimizer.zero_grad()
                (loss + slope.norm()).backward()
                optimizer.step()
            """
    )
    check_refused(source, "MG905", "create_graph=True", "gradients of gradients")


@pytest.mark.parametrize("arguments", ["gradient=args.start", "inputs=[model.module.head.weight]"])
def test_a_backward_from_given_gradients_is_refused(arguments: str) -> None:
    source = script(
        loop=f"""
            for x, y in train_loader:
                loss = F.cross_entropy(model(x), y)
                optimizer.zero_grad()
                loss.backward({arguments})
                optimizer.step()
            """
    )
    check_refused(source, "MG905", f"loss.backward({arguments})")


def test_the_loop_in_another_module_is_refused_at_the_wrap() -> None:
    source = script(imports="from engine import train", loop="train(model, train_loader, optimizer)")
    check_refused(source, "MG910", "model = DDP(", "another module")


def test_the_wrap_in_another_module_is_refused_at_the_loop() -> None:
    source = script(imports="from build import build", wrap="model = build(args)")
    check_refused(source, "MG912", "loss.backward()", "the DistributedDataParallel wrap is not")


def test_a_path_that_makes_an_engine_of_its_own_is_marked_and_left() -> None:
    """``deepspeed.initialize`` behind an option: backward and step of that engine are no loss's and no optimizer's."""
    migrated = convert(
        helpers="""
            def engine_maker(wanted):
                if not wanted:
                    return None
                import deepspeed

                return deepspeed.initialize
            """,
        wrap="maker = engine_maker(args.accum == 0)\nmodel = DDP(Net().cuda())",
        loop="""
            for x, y in train_loader:
                loss = F.cross_entropy(model(x), y)
                if maker is not None:
                    model.backward(loss / 2)
                    model.step()
                else:
                    optimizer.zero_grad()
                    loss.backward()
                    optimizer.step()
            """,
    )
    told = migrated.said("MG904", "return deepspeed.initialize", Kind.TODO)
    assert told.message.startswith("this path makes an engine of its own")
    assert "        model.backward(loss / 2)\n        model.step()\n" in migrated.section("loop")
    assert "        model.backward(loss)\n        model.step()\n" in migrated.section("loop")


def test_a_backward_of_the_model_s_own_is_left_and_what_it_does_is_converted() -> None:
    migrated = convert(
        helpers="""
            class Pushed(Net):
                def backward(self, value):
                    print(value.item())
            """,
        wrap="model = DDP(Pushed().cuda())",
        loop="""
            for x, y in train_loader:
                loss = F.cross_entropy(model(x), y)
                model.module.backward(loss)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
            """,
    )
    assert "model.module.backward(loss)\n" in migrated.section("loop")
    assert "    model.backward(loss)\n    model.step()\n" in migrated.section("loop")


def test_a_model_that_is_wrapped_once_more_in_its_training_is_refused_by_that_name() -> None:
    again = (
        "if args.amp:\n        model = DDP(model.module)\n        optimizer.add_param_group({'params': [], 'lr': 1})"
    )
    loop = (
        f"for x, y in train_loader:\n    {again}\n    F.cross_entropy(model(x), y).backward()\n    optimizer.step()\n"
    )
    migrated = migrate(script(loop=loop + "    optimizer.zero_grad()\n"))
    change = migrated.said("MG913", ".backward()", Kind.REFUSED)
    assert "the model is wrapped once more in line " in change.message


def test_a_model_that_a_property_wraps_is_refused_by_that_name() -> None:
    helpers = """
        class Trainer:
            def __init__(self, net):
                self.net, self.wrapped, self.made = net, None, None

            @property
            def model(self):
                if self.wrapped is None:
                    self.wrapped = DDP(self.net)
                return self.wrapped

            @property
            def optimizer(self):
                if self.made is None:
                    self.made = torch.optim.SGD(self.model.parameters(), lr=0.1)
                return self.made

            def step(self, x, y):
                self.optimizer.zero_grad()
                F.cross_entropy(self.model(x), y).backward()
                self.optimizer.step()
        """
    migrated = migrate(
        script(helpers=helpers, wrap="trainer = Trainer(Net().cuda())", optimizer="", loop="trainer.step(1, 2)")
    )
    assert "by the property model" in migrated.said("MG911", "self.wrapped = DDP(self.net)", Kind.REFUSED).message
