"""Which wrap is converted, and where the engine is made."""

from __future__ import annotations

from tests.codemod.checks import check_noop, check_refused, migrate, script


def test_a_script_without_ddp_is_left_alone() -> None:
    check_noop("""
        import torch

        model = torch.nn.Linear(4, 4)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for x in torch.randn(8, 2, 4):
            optimizer.zero_grad()
            model(x).sum().backward()
            optimizer.step()
        """)


def test_a_module_of_layers_is_left_alone() -> None:
    check_noop("""
        import torch.nn as nn


        class Block(nn.Module):
            \"\"\"Works under DistributedDataParallel (DDP) too.\"\"\"

            def forward(self, x):
                return x
        """)


def test_an_empty_file_is_left_alone() -> None:
    check_noop("")


def test_a_custom_autograd_function_is_left_alone() -> None:
    check_noop("""
        import torch


        class Scale(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                return 2 * x

            @staticmethod
            def backward(ctx, grad):
                return 2 * grad


        def test(x):
            Scale.apply(x).sum().backward()
        """)


def test_a_script_on_data_parallel_alone_is_left_alone() -> None:
    check_noop("""
        import torch

        model = torch.nn.DataParallel(torch.nn.Linear(4, 4)).cuda()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        optimizer.zero_grad()
        model(torch.randn(2, 4)).sum().backward()
        optimizer.step()
        """)


def test_two_trained_models_are_refused() -> None:
    source = script(
        wrap="""
            netG = DDP(Net().cuda())
            netD = DDP(Net().cuda())
            """,
        optimizer="""
            optimizerG = torch.optim.Adam(netG.parameters(), lr=2e-4)
            optimizerD = torch.optim.Adam(netD.parameters(), lr=2e-4)
            """,
        loop="""
            for x, y in train_loader:
                netD.zero_grad()
                netD(netG(x).detach()).mean().backward()
                optimizerD.step()
                netG.zero_grad()
                netD(netG(x)).mean().neg().backward()
                optimizerG.step()
            """,
    )
    check_refused(source, "MG902", "optimizerG.step()", "a second optimizer is stepped")


def test_an_optimizer_in_another_function_than_the_model_is_refused_where_they_never_meet() -> None:
    source = script(
        helpers="""
            def train(model, state, loader):
                for x, y in loader:
                    loss = F.cross_entropy(model(x), y)
                    state.optimizer.zero_grad()
                    loss.backward()
                    state.optimizer.step()
            """,
        imports="from state import State",
        optimizer="state = State(model)",
        loop="train(model, state, train_loader)",
    )
    check_refused(source, "MG911", "model = DDP(Net()")


def test_an_object_that_holds_the_optimizer_is_no_optimizer() -> None:
    migrated = migrate(
        script(
            imports="from optim import OptimizerHolder",
            optimizer="holder = OptimizerHolder(args.lr)\nholder.attach(model)",
            loop="""
                for x, y in train_loader:
                    loss = F.cross_entropy(model(x), y)
                    holder.optimizer.zero_grad()
                    loss.backward()
                    holder.optimizer.step()
                """,
        )
    )
    if migrated.result.new_source is None:
        assert [change.code for change in migrated.changes] == ["MG911"]
    else:
        assert "optimizer=holder.optimizer" in migrated.code
