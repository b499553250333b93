"""A compiled wrapper around DDP: the model is compiled in place, at every stage."""

from __future__ import annotations

import pytest

from dsmigrate.codemod.model import Kind
from tests.codemod.checks import check_kept, check_section, convert

NAMES = "print(list(model.module.state_dict()))"


@pytest.mark.parametrize("stage", [0, 2, 3])
@pytest.mark.parametrize("rest", ["", 'mode="max-autotune"'])
def test_what_was_compiled_around_ddp_is_compiled_in_place(stage: int, rest: str) -> None:
    given = f", {rest}" if rest else ""
    migrated = check_section(
        "wrap",
        f"model = DDP(Net().cuda())\nif args.amp:\n    model = torch.compile(model{given})",
        f"model = Net().cuda()\nif args.amp:\n    model.compile({rest})",
        end=NAMES,
        to={"zero_stage": stage},
    )
    migrated.said("MG708", "torch.compile(model", Kind.CONVERTED)


def test_a_wrap_within_the_call_goes_with_it() -> None:
    check_section(
        "wrap",
        "model = torch.compile(DDP(Net().cuda()), dynamic=True)",
        "model = Net().cuda()\nmodel.compile(dynamic=True)",
        end=NAMES,
    )


def test_what_is_compiled_behind_the_engine_is_its_module() -> None:
    migrated = convert(
        resume="fast = torch.compile(model)", loop="""
            for x, y in train_loader:
                loss = F.cross_entropy(fast(x.cuda()), y.cuda())
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
            """,
    )  # fmt: skip
    assert migrated.section("resume").endswith("model.module.compile()\nfast = model\n")


def test_the_compiled_wrapper_is_looked_through_no_more() -> None:
    migrated = convert(
        wrap="model = DDP(Net().cuda())\nmodel = torch.compile(model)",
        end="torch.save(model._orig_mod.module.state_dict(), 'weights.pt')",
    )
    assert migrated.section("end") == "torch.save(model.module.state_dict(), 'weights.pt')\n"


def test_what_is_compiled_in_another_way_is_marked() -> None:
    migrated = convert(
        helpers="def fast(model):\n    return torch.compile(model)",
        wrap="model = DDP(Net().cuda())\nmodel = fast(model)",
        end=NAMES,
    )
    migrated.said("MG708", "return torch.compile(model)", Kind.TODO)


@pytest.mark.parametrize(
    "compiled", ["model = Net().cuda()\nmodel = torch.compile(model)", "model = torch.compile(Net().cuda())"]
)
def test_what_is_compiled_before_the_wrap_stays(compiled: str) -> None:
    migrated = check_section("wrap", f"{compiled}\nmodel = DDP(model)", compiled, end=NAMES)
    migrated.silent("MG708")


def test_another_model_that_is_compiled_stays() -> None:
    check_kept("end", "teacher = torch.compile(Net().cuda())\nprint(teacher._orig_mod)\n")


def test_the_plain_model_that_is_compiled_beside_the_wrapper_stays() -> None:
    wrap = "net = Net().cuda()\nmodel = DDP(net)\nfast = torch.compile(net)"
    convert(wrap=wrap, end="print(fast(torch.ones(1)))").silent("MG708")


@pytest.mark.parametrize(
    "body",
    [
        "    if hasattr(m, '_orig_mod'):\n        return unwrap(m._orig_mod)\n    return m",
        "    return unwrap(m._orig_mod) if hasattr(m, '_orig_mod') else m",
    ],
)
def test_a_helper_that_asks_for_the_compiled_wrapper_stays(body: str) -> None:
    helpers = f"def unwrap(m):\n{body}"
    migrated = convert(
        helpers=helpers,
        wrap="model = DDP(Net().cuda())\nmodel = torch.compile(model)\nother = torch.compile(Net())",
        end="print(unwrap(model), unwrap(other))",
    )
    assert migrated.section("helpers") == helpers + "\n"
    assert "model.compile()" in migrated.section("wrap")


def test_a_method_that_compiles_before_the_wrap_stays() -> None:
    helpers = """
        class Task:
            def __init__(self):
                self.net = Net().cuda()

            def wrap(self):
                self.net = DDP(self.net)

            def compile(self):
                self.net = torch.compile(self.net)
        """
    convert(
        helpers=helpers,
        wrap="task = Task()\ntask.compile()\ntask.wrap()\nmodel = task.net",
    ).silent("MG708")


HOLDER = """
class Task:
    def __init__(self, net):
        self.net = net

    def wrap(self):
        self.net = DDP(self.net)

    def speed_up(self):
        self.net = torch.compile(self.net)
"""
LOOP = """
for x, y in train_loader:
    loss = F.cross_entropy(task.net(x.cuda()), y.cuda())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""
OPTIMIZER = "optimizer = torch.optim.AdamW(task.net.parameters(), lr=args.lr)"


@pytest.mark.parametrize(
    ("before", "after", "compiled"),
    [
        ("task.speed_up()\n", "", "self.net.compile()"),
        ("", "task.speed_up()", "self.net.module.compile()"),
        (
            "if args.amp:\n    task.speed_up()\n",
            "if not args.amp:\n    task.speed_up()",
            "(self.net.module if isinstance(self.net, deepspeed.DeepSpeedEngine) else self.net).compile()",
        ),
    ],
)
def test_a_method_compiles_what_it_finds_where_it_is_called(before: str, after: str, compiled: str) -> None:
    migrated = convert(
        helpers=HOLDER, wrap=f"task = Task(Net().cuda())\n{before}task.wrap()", optimizer=OPTIMIZER, loop=LOOP,
        resume=after, end="print(task.net.training)", to={"zero_stage": 3},
    )  # fmt: skip
    assert f"        {compiled}\n" in migrated.code
