"""Autocast regions, gradient scalers, apex amp and half-precision models."""

from __future__ import annotations

import pytest

from dsmigrate.codemod.model import Kind
from tests.codemod.checks import check_section, convert
from tests.codemod.steps.precision_scripts import autocast, region

# -- regions -----------------------------------------------------------------------------------------------------------


def test_a_script_without_autocast_says_nothing_of_precision() -> None:
    config = convert().config
    assert not {"torch_autocast", "fp16", "bf16", "amp"} & set(config)


def test_a_region_around_something_else_says_nothing_of_precision() -> None:
    migrated = convert(
        loop="""
            for x, y in train_loader:
                logits = model(x)
                with torch.autocast("cuda", dtype=torch.bfloat16):
                    target = y.softmax(-1)
                loss = F.cross_entropy(logits, target)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
            """
    )
    assert "torch_autocast" not in migrated.config


@pytest.mark.parametrize(
    ("imports", "context", "dtype"),
    [
        ("", 'torch.autocast("cuda", dtype=torch.bfloat16)', "bfloat16"),
        ("", 'torch.autocast(device_type="cuda", dtype=torch.float16)', "float16"),
        ("", 'torch.autocast("cuda")', "float16"),
        ("", 'torch.autocast("cpu")', "bfloat16"),
        ("", "torch.cuda.amp.autocast()", "float16"),
        ("", "torch.cuda.amp.autocast(True)", "float16"),
        ("", "torch.cuda.amp.autocast(dtype=torch.bfloat16)", "bfloat16"),
        ("", "torch.cuda.amp.autocast(True, torch.bfloat16)", "bfloat16"),
        ("from torch.cuda.amp import autocast", "autocast()", "float16"),
        ("from torch.cuda import amp", "amp.autocast()", "float16"),
        ("from torch import autocast as cast", 'cast("cuda", torch.bfloat16)', "bfloat16"),
        ("from torch.amp import autocast", 'autocast("cuda", dtype=torch.bfloat16)', "bfloat16"),
    ],
)
def test_every_spelling_of_autocast(imports: str, context: str, dtype: str) -> None:
    migrated = check_section(
        "loop",
        region(context),
        f"""
        for x, y in train_loader:
            with {context}:
                loss = F.cross_entropy(model(x), y)
            model.backward(loss)
            model.step()
        """,
        imports=imports,
    )
    migrated.said("MG301", f"with {context}:", Kind.CONVERTED)
    assert migrated.config["torch_autocast"] == autocast(dtype)


def test_a_region_that_an_option_switches_follows_it() -> None:
    migrated = convert(loop=region('torch.autocast("cuda", dtype=torch.float16, enabled=args.amp)'))
    assert 'ds_config["torch_autocast"]["enabled"] = bool(args.amp)\n' in migrated.section("optimizer")
    assert migrated.config["torch_autocast"]["dtype"] == "float16"


def test_a_region_that_is_never_on_is_off_in_the_config() -> None:
    migrated = convert(loop=region("torch.cuda.amp.autocast(enabled=False)"))
    assert migrated.config["torch_autocast"] == autocast("float16", enabled=False)


def test_a_type_from_an_option_follows_it() -> None:
    migrated = convert(
        options='parser.add_argument("--dtype", default="bfloat16")',
        optimizer="""
            ptdtype = {'float32': torch.float32, 'bfloat16': torch.bfloat16, 'float16': torch.float16}[args.dtype]
            optimizer = torch.optim.AdamW(model.parameters(), lr=args.lr)
            """,
        loop=region('torch.autocast("cuda", dtype=ptdtype)'),
    )
    assert 'ds_config["torch_autocast"]["dtype"] = str(' in migrated.section("optimizer")


@pytest.mark.parametrize(
    ("choice", "condition"),
    [
        (
            "contextlib.nullcontext() if args.device == 'cpu' else torch.autocast('cuda', torch.bfloat16)",
            "not (args.device",
        ),
        ("torch.autocast('cuda', torch.bfloat16) if args.amp else contextlib.nullcontext()", "bool(args.amp)"),
    ],
)
def test_a_choice_between_autocast_and_nothing_follows_its_condition(choice: str, condition: str) -> None:
    migrated = convert(
        options='parser.add_argument("--device", default="cuda")',
        group=f"""
            dist.init_process_group("nccl")
            local_rank = int(os.environ["LOCAL_RANK"])
            ctx = {choice}
            """,
        loop=region("ctx"),
    )
    assert 'ds_config["torch_autocast"]["enabled"] = bool(' in migrated.code
    assert condition in migrated.section("optimizer")
    assert migrated.config["torch_autocast"]["dtype"] == "bfloat16"
    assert "with ctx:" in migrated.section("loop")


def test_a_region_in_one_branch_is_on_under_its_condition() -> None:
    migrated = convert(
        loop="""
            for x, y in train_loader:
                if args.amp:
                    with torch.cuda.amp.autocast():
                        loss = F.cross_entropy(model(x), y)
                else:
                    loss = F.cross_entropy(model(x), y)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
            """
    )
    assert 'ds_config["torch_autocast"]["enabled"] = bool(args.amp)' in migrated.section("optimizer")


def test_a_region_known_only_in_the_loop_is_left_to_the_person() -> None:
    context = 'torch.autocast("cuda", dtype=torch.bfloat16, enabled=x.numel() > 8)'
    convert(loop=region(context)).said("MG307", f"with {context}:", Kind.TODO)


def test_two_types_are_left_to_the_person() -> None:
    migrated = convert(
        loop="""
            for x, y in train_loader:
                with torch.autocast("cuda", dtype=torch.bfloat16):
                    loss = F.cross_entropy(model(x), y)
                with torch.autocast("cuda", dtype=torch.float16):
                    loss = loss + F.cross_entropy(model(-x), y)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
            """
    )
    migrated.said("MG307", "dtype=torch.bfloat16", Kind.TODO)


def test_a_region_in_the_function_of_the_loop_sets_the_config_of_main() -> None:
    migrated = convert(
        helpers="""
            def train(model, loader, optimizer, amp):
                for x, y in loader:
                    with torch.autocast("cuda", enabled=amp):
                        loss = F.cross_entropy(model(x), y)
                    optimizer.zero_grad()
                    loss.backward()
                    optimizer.step()
            """,
        loop="train(model, train_loader, optimizer, args.amp)",
    )
    assert 'ds_config["torch_autocast"]["enabled"] = bool(args.amp)' in migrated.section("optimizer")


# -- evaluation --------------------------------------------------------------------------------------------------------

EVALUATE = """
@torch.no_grad()
def evaluate(model, loader):
    model.eval()
    total = 0.0
    for x, y in loader:
        {}
    return total
"""


def test_evaluation_without_autocast_runs_the_module() -> None:
    migrated = convert(
        helpers=EVALUATE.format("total += F.cross_entropy(model(x), y).item()"),
        loop=region('torch.autocast("cuda", dtype=torch.bfloat16)') + "    print(evaluate(model, train_loader))\n",
    )
    assert "total += F.cross_entropy(model.module(x), y).item()" in migrated.section("helpers")
    migrated.said("MG306", "total += ", Kind.CONVERTED)


def test_what_another_module_does_without_gradients_and_autocast_gets_the_module() -> None:
    line = "print(score(model, train_loader))"
    migrated = convert(
        helpers="from metrics import score\n",
        loop=region('torch.autocast("cuda", dtype=torch.bfloat16)') + f"    with torch.no_grad():\n{' ' * 16}{line}\n",
    )
    assert "print(score(model.module, train_loader))" in migrated.section("loop")
    migrated.said("MG306", line, Kind.CONVERTED)


@pytest.mark.parametrize("context", ["torch.no_grad(), torch.autocast('cuda', dtype=torch.bfloat16)", "timed()"])
def test_what_another_module_does_under_autocast_or_may_train_keeps_the_engine(context: str) -> None:
    migrated = convert(
        helpers="from metrics import score, timed\n",
        loop=region('torch.autocast("cuda", dtype=torch.bfloat16)')
        + f"    with {context}:\n{' ' * 16}print(score(model, train_loader))\n",
    )
    assert "print(score(model, train_loader))" in migrated.section("loop")


def test_a_part_of_the_model_is_not_taken_for_the_engine_in_its_own_forward() -> None:
    wrapper = """
class Crops(nn.Module):
    def __init__(self, backbone):
        super().__init__()
        self.backbone = backbone

    def forward(self, x):
        return self.backbone(x)
"""
    migrated = convert(
        helpers=wrapper,
        wrap="model = Net()\nmodel = Crops(model).cuda()\nmodel = DDP(model)\n",
        loop=region('torch.autocast("cuda", dtype=torch.bfloat16)'),
    )
    assert "self.backbone.module(x)" not in migrated.section("helpers")


def test_evaluation_under_autocast_runs_the_engine() -> None:
    migrated = convert(
        helpers=EVALUATE.format(
            'with torch.autocast("cuda", dtype=torch.bfloat16):\n'
            "            total += F.cross_entropy(model(x), y).item()"
        ),
        loop=region('torch.autocast("cuda", dtype=torch.bfloat16)') + "    print(evaluate(model, train_loader))\n",
    )
    assert "F.cross_entropy(model(x), y)" in migrated.section("helpers")


def test_evaluation_of_a_full_precision_script_runs_the_engine() -> None:
    migrated = convert(
        helpers=EVALUATE.format("total += F.cross_entropy(model(x), y).item()"),
        end="print(evaluate(model, train_loader))",
    )
    assert "F.cross_entropy(model(x), y)" in migrated.section("helpers")


def test_an_averaged_copy_is_no_engine() -> None:
    migrated = convert(
        helpers=EVALUATE.format("total += F.cross_entropy(model(x), y).item()"),
        wrap="""
            net = Net().cuda()
            ema = copy.deepcopy(net)
            model = DDP(net)
            """,
        loop=region('torch.autocast("cuda", dtype=torch.bfloat16)') + "    print(evaluate(ema, train_loader))\n",
    )
    assert ".module(x)" not in migrated.section("helpers")


def test_a_region_that_is_off_leaves_torch_autocast_off() -> None:
    line = 'with torch.autocast("cuda", dtype=torch.bfloat16, enabled=False):'
    migrated = convert(
        loop=f"""
            for x, y in train_loader:
                {line}
                    loss = F.cross_entropy(model(x), y)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
            """,
        end="with torch.no_grad():\n    print(model(torch.ones(4, 32)))",
    )
    assert migrated.config["torch_autocast"]["enabled"] is False
    assert migrated.said("MG301", line).message == "the region stays: it is off, and so is torch_autocast"
    migrated.silent("MG306")
