"""``.module``, ``isinstance`` and other ways to look through the wrapper."""

from __future__ import annotations

import pytest

from dsmigrate.codemod.model import Kind
from tests.codemod.checks import check_kept, check_section, convert

BEFORE_ENGINE = """
    model = Net().cuda()
    optimizer = torch.optim.AdamW(model.parameters(), lr=args.lr)
    """
FLAG = {
    "wrap": """
        model = Net().cuda()
        if args.distributed:
            model = DDP(model)
        """,
}


@pytest.mark.parametrize(
    "text",
    [
        "print(model.module.head)\n",
        "weights = model.module.state_dict()\nprint(weights)\n",
        "raw = model.module\nprint(raw.head)\n",
        'raw = model.module if hasattr(model, "module") else model\nprint(raw)\n',
        'if hasattr(model, "module"):\n    print(model.module.head)\nelse:\n    print(model.head)\n',
        "print(sum(p.numel() for p in model.parameters()))\n",
        "model.train()\nmodel.eval()\n",
    ],
)
def test_what_works_on_the_engine_as_on_the_wrapper_stays(text: str) -> None:
    check_kept("end", text)


def test_module_of_something_else_stays() -> None:
    check_kept("end", "print(args.module.name)\n")


def test_a_teacher_in_ddp_is_still_asked_for_ddp() -> None:
    migrated = convert(
        wrap="""
            model = DDP(Net().cuda())
            teacher = DDP(Net().cuda())
            """,
        end="print(isinstance(teacher, DDP), teacher.module)",
    )
    assert "isinstance(teacher, DDP), teacher.module" in migrated.section("end")


def test_module_before_the_engine_goes() -> None:
    migrated = check_section(
        "optimizer",
        "optimizer = torch.optim.AdamW(model.module.parameters(), lr=1e-3)\nprint(optimizer)",
        """
        optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
        with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "ds_config.json")) as ds_config_file:
            ds_config = json.load(ds_config_file)
        ds_config["train_micro_batch_size_per_gpu"] = args.batch_size
        model = deepspeed.initialize(model=model, optimizer=optimizer, config=ds_config)[0]
        print(optimizer)
        """,
    )
    migrated.said("MG501", "model.module.parameters()", Kind.CONVERTED)


def test_the_module_is_taken_back_before_the_engine() -> None:
    migrated = convert(wrap="model = DDP(Net().cuda())\nmodel_without_ddp = model.module\n")
    assert migrated.section("wrap") == "model = Net().cuda()\nmodel_without_ddp = model\n"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (
            "return model.module if isinstance(model, DDP) else model",
            "return model.module if isinstance(model, deepspeed.DeepSpeedEngine) else model",
        ),
        (
            "if isinstance(model, (DDP, nn.DataParallel)):\n    return model.module\nreturn model",
            (
                "if isinstance(model, (deepspeed.DeepSpeedEngine, nn.DataParallel)):\n"
                "    return model.module\nreturn model"
            ),
        ),
        (
            "if isinstance(model, nn.parallel.DistributedDataParallel):\n    return model.module\nreturn model",
            "if isinstance(model, deepspeed.DeepSpeedEngine):\n    return model.module\nreturn model",
        ),
        (
            "if type(model) is DDP:\n    return model.module\nreturn model",
            "if type(model) is deepspeed.DeepSpeedEngine:\n    return model.module\nreturn model",
        ),
        (
            "while isinstance(model, DDP):\n    model = model.module\nreturn model",
            "while isinstance(model, deepspeed.DeepSpeedEngine):\n    model = model.module\nreturn model",
        ),
    ],
)
def test_every_unwrap_helper_that_asks_for_the_class(before: str, after: str) -> None:
    def helper(body: str) -> str:
        return "def unwrap(model):\n" + "".join(f"    {line}\n" for line in body.splitlines())

    migrated = check_section("helpers", helper(before), helper(after), end="print(unwrap(model).head)")
    migrated.said("MG502", before.splitlines()[0].strip(), Kind.CONVERTED)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("raw = model.module if args.distributed else model", "raw = model.module"),
        ("raw = model if not args.distributed else model.module", "raw = model.module"),
        ("raw = model.module if dist.is_initialized() else model", "raw = model.module"),
        (
            "torch.save((model.module if args.distributed else model).state_dict(), 'weights.pt')",
            "torch.save(model.module.state_dict(), 'weights.pt')",
        ),
    ],
)
def test_unwrapping_that_depended_on_a_flag(before: str, after: str) -> None:
    migrated = check_section("end", before, after, **FLAG)
    migrated.said("MG503", before, Kind.CONVERTED)


def test_a_statement_that_unwraps_under_a_flag_does_so_always() -> None:
    """Under one process the engine is there too, so the raw model is its module on both branches."""
    migrated = convert(
        **FLAG,
        end="""
            raw = model
            if args.distributed:
                raw = model.module
            print(raw.head)
            """,
    )
    code = migrated.section("end")
    assert "if args.distributed:" not in code or "getattr(" in code


def test_a_function_called_before_and_behind_the_engine_takes_both() -> None:
    migrated = convert(
        helpers="""
            def size(model):
                return sum(p.numel() for p in model.module.parameters())
            """,
        wrap="model = DDP(Net().cuda())\nprint(size(model))",
        end="print(size(model))",
    )
    assert 'getattr(model, "module", model).parameters()' in migrated.section("helpers")
    migrated.said("MG504", "model.module.parameters()", Kind.CONVERTED)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        pytest.param("model = model.eval()", "model.eval()"),
        ("net = model.train()", "model.train()\nnet = model"),
        ("print(model.training)", "print(model.module.training)"),
        ("model._set_static_graph()\nprint(model)", "print(model)"),
    ],
)
def test_modes_and_private_switches(before: str, after: str) -> None:
    migrated = check_section("end", before, after)
    migrated.said("MG505", before.splitlines()[0], Kind.CONVERTED)


def test_a_mode_that_is_restored_is_read_from_the_module() -> None:
    check_section(
        "end",
        """
        was_training = model.training
        model.eval()
        model.train(was_training)
        """,
        """
        was_training = model.module.training
        model.eval()
        model.train(was_training)
        """,
    )


def test_the_mode_of_the_engine_is_asked_of_its_module_in_a_test_too() -> None:
    migrated = convert(end="if model.training:\n    print(rank)\nwhile model.training:\n    model.eval()\n")
    assert "if model.module.training:\n    print(rank)\nwhile model.module.training:\n" in migrated.section("end")


def test_a_static_graph_that_goes_is_spoken_of_like_the_keyword() -> None:
    migrated = convert(wrap="model = DDP(Net().cuda())\nmodel._set_static_graph()")
    assert "_set_static_graph" not in migrated.code
    migrated.said("MG110", "model._set_static_graph()", Kind.KEPT)


def test_the_mode_of_a_name_that_is_unwrapped_already_stays() -> None:
    check_section(
        "end",
        'plain = model.module if hasattr(model, "module") else model\nprint(plain.training)',
        'plain = model.module if hasattr(model, "module") else model\nprint(plain.training)\n',
    )
