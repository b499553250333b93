"""Where the engine is made, and under which name."""

from __future__ import annotations

import pytest

from dsmigrate.codemod.migrate import migrate_source
from dsmigrate.codemod.model import Options
from tests.codemod.checks import check_section, convert, migrate, script

ENGINE = """
    model = deepspeed.initialize(
        model=model,
        optimizer=optimizer,
        config=os.path.join(os.path.dirname(os.path.abspath(__file__)), "ds_config.json"),
    )[0]
"""
TWO = """
    optimizer = torch.optim.AdamW(model.parameters(), lr=args.lr)
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "ds_config.json")) as ds_config_file:
        ds_config = json.load(ds_config_file)
    ds_config["train_micro_batch_size_per_gpu"] = args.batch_size
    model = deepspeed.initialize(model=model, optimizer=optimizer, config=ds_config)[0]
"""


def test_the_engine_follows_an_optimizer_that_is_built_after_the_wrap() -> None:
    migrated = convert()
    assert migrated.section("wrap") == "model = Net().cuda()\n"
    migrated.said("MG101", "model = DDP(Net()")
    check_section("optimizer", "optimizer = torch.optim.AdamW(model.parameters(), lr=args.lr)", TWO)


def test_the_engine_replaces_a_wrap_that_comes_after_the_optimizer() -> None:
    migrated = convert(
        order="group data optimizer wrap resume loop end",
        data="train_loader = DataLoader(Digits(), batch_size=8)",
        optimizer="""
            model = Net().cuda()
            optimizer = torch.optim.AdamW(model.parameters(), lr=args.lr)
            """,
        wrap="model = DDP(model)",
    )
    assert migrated.section("optimizer") == (
        "model = Net().cuda()\noptimizer = torch.optim.AdamW(model.parameters(), lr=args.lr)\n"
    )
    assert migrated.section("wrap") == (
        "model = deepspeed.initialize(\n    model=model,\n    optimizer=optimizer,\n"
        '    config=os.path.join(os.path.dirname(os.path.abspath(__file__)), "ds_config.json"),\n)[0]\n'
    )


def test_a_wrap_under_a_new_name_gives_the_engine_that_name() -> None:
    migrated = convert(
        wrap="""
            net = Net().cuda()
            ddp_model = DDP(net)
            """,
        optimizer="optimizer = torch.optim.AdamW(net.parameters(), lr=args.lr)",
        loop="""
            for x, y in train_loader:
                loss = F.cross_entropy(ddp_model(x), y)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
            """,
    )
    assert "ddp_model = deepspeed.initialize(model=" in migrated.section("optimizer")
    assert "ddp_model.backward(loss)\n    ddp_model.step()\n" in migrated.section("loop")


def test_an_alias_of_the_raw_model_stays_the_raw_model() -> None:
    migrated = convert(
        wrap="""
            model = Net().cuda()
            model_without_ddp = model
            model = DDP(model)
            model_without_ddp = model.module
            """,
        optimizer="optimizer = torch.optim.AdamW(model_without_ddp.parameters(), lr=args.lr)",
        end="torch.save(model_without_ddp.state_dict(), 'weights.pt')",
    )
    assert migrated.section("wrap") == "model = Net().cuda()\nmodel_without_ddp = model\nmodel_without_ddp = model\n"
    assert "model = deepspeed.initialize(model=model, optimizer=optimizer" in migrated.section("optimizer")


def test_a_model_of_an_object_is_called_by_its_attribute() -> None:
    migrated = migrate("""
        import os

        import torch
        import torch.distributed as dist
        from torch import nn
        from torch.nn.parallel import DistributedDataParallel as DDP


        class Net(nn.Module):
            def forward(self, x):
                return x


        class Trainer:
            def __init__(self, model, optimizer, loader):
                self.gpu = int(os.environ["LOCAL_RANK"])
                self.loader = loader
                self.optimizer = optimizer
                self.model = DDP(model.to(self.gpu), device_ids=[self.gpu])

            def train(self):
                for x, y in self.loader:
                    self.optimizer.zero_grad()
                    loss = nn.functional.cross_entropy(self.model(x), y)
                    loss.backward()
                    self.optimizer.step()


        def main(loader):
            dist.init_process_group("nccl")
            model = Net()
            Trainer(model, torch.optim.SGD(model.parameters(), lr=0.1), loader).train()
        """)
    assert "self.model = deepspeed.initialize(" in migrated.code
    assert "            self.model.backward(loss)\n            self.model.step()\n" in migrated.code
    assert "zero_grad" not in migrated.code


def test_the_engine_is_passed_on_by_a_helper_that_returns_a_tuple() -> None:
    migrated = convert(
        helpers="""
            def build(args, local_rank):
                model = Net().cuda()
                model = DDP(model)
                optimizer = torch.optim.SGD(model.parameters(), lr=args.lr)
                return model, optimizer
            """,
        wrap="net, opt = build(args, local_rank)",
        optimizer="",
        loop="""
            for x, y in train_loader:
                loss = F.cross_entropy(net(x), y)
                opt.zero_grad()
                loss.backward()
                opt.step()
            """,
    )
    assert "model = deepspeed.initialize(" in migrated.section("helpers")
    assert migrated.section("wrap") == "net, opt = build(args, local_rank)\n"
    assert "    net.backward(loss)\n    net.step()\n" in migrated.section("loop")


def test_the_wrap_in_a_helper_and_the_optimizer_in_main_meet_in_main() -> None:
    migrated = convert(
        helpers="""
            def wrap(model, local_rank):
                return DDP(model.cuda())
            """,
        wrap="model = wrap(Net(), local_rank)",
    )
    assert "return model.cuda()" in migrated.section("helpers")
    assert "model = deepspeed.initialize(model=model" in migrated.section("optimizer")


def test_an_optimizer_from_a_factory_of_the_file_is_handed_over() -> None:
    migrated = convert(
        helpers="""
            def make_optimizer(model, lr):
                decay = [p for p in model.parameters() if p.ndim > 1]
                rest = [p for p in model.parameters() if p.ndim <= 1]
                groups = [{"params": decay, "weight_decay": 0.1}, {"params": rest, "weight_decay": 0.0}]
                return torch.optim.AdamW(groups, lr=lr)
            """,
        optimizer="optimizer = make_optimizer(model, args.lr)",
    )
    assert "model = deepspeed.initialize(model=model, optimizer=optimizer" in migrated.section("optimizer")
    migrated.silent("MG602", "MG603")


def test_a_method_of_the_model_makes_the_optimizer() -> None:
    migrated = convert(
        wrap="""
            model = Net().cuda()
            optimizer = model.configure_optimizers(0.1, args.lr, (0.9, 0.95), "cuda")
            model = DDP(model)
            """,
        optimizer="",
    )
    assert "model = deepspeed.initialize(model=model, optimizer=optimizer" in migrated.section("wrap")


def test_the_loop_in_another_function_uses_its_own_names() -> None:
    migrated = convert(
        helpers="""
            def train_one_epoch(net, criterion, loader, opt, epoch):
                net.train()
                for x, y in loader:
                    loss = criterion(net(x), y)
                    opt.zero_grad()
                    loss.backward()
                    opt.step()
            """,
        loop="""
            for epoch in range(args.epochs):
                train_one_epoch(model, F.cross_entropy, train_loader, optimizer, epoch)
            """,
    )
    assert "        net.backward(loss)\n        net.step()\n" in migrated.section("helpers")


def test_a_teacher_keeps_its_wrap_beside_the_student() -> None:
    migrated = convert(
        wrap="""
            student = DDP(Net().cuda())
            teacher = DDP(Net().cuda())
            """,
        optimizer="optimizer = torch.optim.AdamW(student.parameters(), lr=args.lr)",
        loop="""
            for x, y in train_loader:
                with torch.no_grad():
                    target = teacher(x)
                loss = F.mse_loss(student(x), target)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
            """,
    )
    assert migrated.section("wrap") == ("student = Net().cuda()\nteacher = DDP(Net().cuda())\n")
    migrated.said("MG105", "teacher = DDP")
    assert "student.backward(loss)" in migrated.section("loop")


def test_a_script_at_module_level_is_converted() -> None:
    migrated = migrate("""
        import os
        import torch
        import torch.distributed as dist
        from torch.nn.parallel import DistributedDataParallel

        dist.init_process_group(backend="nccl")
        model = torch.nn.Linear(4, 4).cuda()
        optimizer = torch.optim.Adam(model.parameters())
        model = DistributedDataParallel(model)
        for x in torch.randn(8, 2, 4):
            loss = model(x).sum()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        """)
    assert ENGINE.replace("\n    ", "\n").rstrip(" ") in migrated.code
    assert "\n    model.backward(loss)\n    model.step()\n" in migrated.code


@pytest.mark.parametrize("newline", ["\r\n", "\r"])
def test_line_ends_stay(newline: str) -> None:
    source = script().replace("\n", newline).encode()
    result = migrate_source(source, path="train.py", options=Options())
    assert result.new_source is not None
    expected = convert().code.replace("\n", newline).encode()
    assert result.new_source == expected


def test_a_byte_order_mark_and_latin_1_stay() -> None:
    text = script(end='print("été")')
    marked = migrate_source(b"\xef\xbb\xbf" + text.encode(), path="train.py", options=Options())
    assert marked.new_source is not None
    assert marked.new_source.startswith(b"\xef\xbb\xbfimport argparse")
    assert 'print("été")'.encode() in marked.new_source
    latin = migrate_source(("# -*- coding: latin-1 -*-\n" + text).encode("latin-1"), path="train.py", options=Options())
    assert latin.new_source is not None
    assert latin.new_source.startswith(b"# -*- coding: latin-1 -*-\n")
    assert 'print("été")'.encode("latin-1") in latin.new_source


def test_tabs_stay_and_new_lines_use_them() -> None:
    text = script().replace("    ", "\t")
    result = migrate_source(text.encode(), path="train.py", options=Options())
    assert result.new_source is not None
    code = result.new_source.decode()
    compile(code, "train.py", "exec")
    assert "\t\tmodel.backward(loss)\n\t\tmodel.step()\n" in code
    assert "\n    " not in code
