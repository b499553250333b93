"""MG508: names of weights between the old wrap and the engine."""

from __future__ import annotations

import pytest

from dsmigrate.codemod.model import Kind
from tests.codemod.checks import check_section, convert

HELPER = """
    def load_weights(net, path):
        net.load_state_dict(torch.load(path), strict=False)
    """


@pytest.mark.parametrize(
    "wrap",
    [
        "model = Net().cuda()\nmodel.load_state_dict(torch.load(args.resume))\nmodel = DDP(model)",
        "model = DDP(Net().cuda())\nmodel.module.load_state_dict(torch.load(args.resume))",
        "model = DDP(Net().cuda())\nraw = model.module\nraw.load_state_dict(torch.load(args.resume))",
        'model = DDP(Net().cuda())\nfor name, p in model.named_parameters():\n    p.requires_grad = "bias" not in name',
        "model = DDP(Net().cuda())\nmodel = model.module\nmodel.load_state_dict(torch.load(args.resume))",
    ],
)
def test_names_without_the_prefix_stay_so(wrap: str) -> None:
    migrated = convert(wrap=wrap)
    assert "ModuleDict" not in migrated.code
    migrated.silent("MG508")


def test_names_behind_the_engine_are_the_engines() -> None:
    migrated = convert(end='print([n for n, _ in model.named_parameters() if n.startswith("module.head")])')
    migrated.silent("MG508")


def test_a_state_dict_of_the_wrapper_still_fits() -> None:
    migrated = check_section(
        "wrap",
        "model = DDP(Net().cuda())\nmodel.load_state_dict(torch.load(args.resume), strict=False)\n",
        """
        model = Net().cuda()
        torch.nn.ModuleDict({"module": model}).load_state_dict(torch.load(args.resume), strict=False)
        """,
    )
    migrated.said("MG508", "model.load_state_dict(", Kind.CONVERTED)


@pytest.mark.parametrize(
    "test", ['name.startswith("module.head")', '"module.head" in name', r're.match(r"module\.", name)']
)
def test_tests_for_names_of_the_wrapper_still_hold(test: str) -> None:
    migrated = check_section(
        "wrap",
        f"model = DDP(Net().cuda())\nfor name, p in model.named_parameters():\n    p.requires_grad = bool({test})\n",
        f"""
        model = Net().cuda()
        for name, p in torch.nn.ModuleDict({{"module": model}}).named_parameters():
            p.requires_grad = bool({test})
        """,
        imports="import re",
    )
    migrated.said("MG508", "for name, p in model.named_parameters()", Kind.CONVERTED)


def test_a_helper_that_gets_the_wrapper() -> None:
    migrated = convert(wrap="model = DDP(Net().cuda())\nload_weights(model, args.resume)", helpers=HELPER)
    assert 'torch.nn.ModuleDict({"module": net}).load_state_dict(torch.load(path), strict=False)' in migrated.code


def test_a_helper_that_gets_the_plain_model_stays() -> None:
    migrated = convert(
        wrap="model = Net().cuda()\nload_weights(model, args.resume)\nmodel = DDP(model)", helpers=HELPER
    )
    assert "    net.load_state_dict(torch.load(path), strict=False)" in migrated.code
    migrated.silent("MG508")


def test_a_helper_that_gets_both_is_for_the_person() -> None:
    migrated = convert(
        wrap='model = Net().cuda()\nload_weights(model, "a.pt")\nmodel = DDP(model)\nload_weights(model, args.resume)',
        helpers=HELPER,
    )
    migrated.said("MG508", "net.load_state_dict(", Kind.TODO)


@pytest.mark.parametrize(
    "line",
    [
        'for n, p in {model}.named_parameters(): p.requires_grad_(n.split(".")[1] == "body")',
        "average = {{n[7:]: p.detach().clone() for n, p in {model}.named_parameters()}}",
        'kept = [p for n, p in {model}.named_parameters() if n.startswith("body")]',
        "named = dict({model}.named_parameters())",
    ],
)
def test_what_stands_where_in_a_name_stays_so(line: str) -> None:
    migrated = convert(wrap="model = DDP(Net().cuda())\n" + line.format(model="model"))
    assert line.format(model='torch.nn.ModuleDict({"module": model})') in migrated.code


@pytest.mark.parametrize(
    "line",
    [
        'kept = [p for n, p in model.named_parameters() if not any(part in n for part in ("bias", "norm"))]',
        "for n, p in model.named_parameters(): print(n, p.shape)",
        "for _, part in model.named_modules(): part.eval()",
        "count = len(list(model.named_parameters()))",
    ],
)
def test_names_that_are_only_searched_need_no_prefix(line: str) -> None:
    convert(wrap=f"model = DDP(Net().cuda())\n{line}").silent("MG508")


LOAD = "model.load_state_dict(torch.load(args.resume), strict=False)"
PREFIXED = 'torch.nn.ModuleDict({"module": model})'


@pytest.mark.parametrize(
    ("wrap", "test"),
    [
        ("if args.distributed:\n    model = DDP(model)", "args.distributed"),
        ("model = DDP(model) if args.distributed else model", "args.distributed"),
        ("if args.resume or args.amp:\n    pass\nelse:\n    model = DDP(model)", "not (args.resume or args.amp)"),
        ("if args.amp:\n    pass\nelif args.distributed:\n    model = DDP(model)", "not args.amp and args.distributed"),
        (
            "if args.distributed:\n  if args.amp:\n    model = DDP(model, None)\n  else:\n    model = DDP(model)",
            "args.distributed",
        ),
        (
            "if args.distributed:\n    model = DDP(model)\nelif args.amp:\n    model = nn.DataParallel(model)",
            "(args.distributed) or (not args.distributed and args.amp)",
        ),
    ],
)
def test_a_wrap_under_a_condition_gave_the_prefix_under_it(wrap: str, test: str) -> None:
    migrated = convert(wrap=f"model = Net().cuda()\n{wrap}\n{LOAD}")
    assert LOAD.replace("model", f"({PREFIXED} if {test} else model)", 1) in migrated.section("wrap")
    assert "no prefix" not in migrated.said("MG508", LOAD, Kind.CONVERTED).reason


@pytest.mark.parametrize(
    "wrap",
    [
        f"if args.distributed:\n    model = DDP(model)\n    {LOAD}",
        f"if args.distributed:\n    model = DDP(model)\nelse:\n    model = nn.DataParallel(model)\n{LOAD}",
    ],
)
def test_a_condition_that_holds_wherever_the_names_are_read_is_left_out(wrap: str) -> None:
    migrated = convert(wrap=f"model = Net().cuda()\n{wrap}")
    assert LOAD.replace("model", PREFIXED, 1) in migrated.section("wrap")
    assert "no prefix" not in migrated.said("MG508", LOAD, Kind.CONVERTED).reason


@pytest.mark.parametrize(
    ("wrap", "helpers", "line"),
    [
        (f"if args.distributed:\n    model = DDP(model)\nargs.distributed = False\n{LOAD}", "", LOAD),
        (f"if asks(args.distributed):\n    model = DDP(model)\n{LOAD}", "def asks(x):\n    return x", LOAD),
        (
            "if args.distributed:\n    model = DDP(model)\nload_weights(model, args.resume)",
            HELPER,
            "net.load_state_dict(",
        ),
    ],
)
def test_a_condition_that_cannot_be_asked_again_is_told(wrap: str, helpers: str, line: str) -> None:
    migrated = convert(wrap=f"model = Net().cuda()\n{wrap}", helpers=helpers)
    assert 'torch.nn.ModuleDict({"module": ' in migrated.code
    assert "the original had no prefix where it did not wrap" in migrated.said("MG508", line, Kind.CONVERTED).reason
