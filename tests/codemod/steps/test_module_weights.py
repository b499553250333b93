"""Weights that the methods of a model write while it trains: undone by ZeRO 1-3 at each step."""

from __future__ import annotations

from textwrap import dedent, indent

import pytest

from dsmigrate.codemod.model import Kind
from tests.codemod.checks import Migrated, convert

NET = """
    class {name}({bases}):
        def __init__(self):
            super().__init__()
    {makes}
            self.head = nn.Linear(32, 10)

    {methods}
        def forward(self, x):
    {body}
            return self.head(x)
    """


def model(body: str, makes: str = "pass", bases: str = "nn.Module", methods: str = "", name: str = "Clamped") -> str:
    parts = {"makes": makes, "body": body}
    filled = {key: indent(dedent(text).strip("\n"), " " * 8) for key, text in parts.items()}
    return dedent(NET).format(name=name, bases=bases, methods=indent(dedent(methods), " " * 4), **filled)


def trained(helpers: str, made: str = "Clamped()", **sections: str) -> Migrated:
    return convert(helpers=helpers, wrap=f"model = DDP({made}.cuda())", **sections)


def kept(migrated: Migrated, line: str) -> None:
    migrated.said("MG509", line, Kind.KEPT)
    assert migrated.config["zero_optimization"]["stage"] == 0


KEY = "self.k = nn.Linear(8, 8)"
BOTH = "self.head.parameters(), self.k.parameters()"
MOVED = f"for q, k in zip({BOTH}): k.data = 0.9 * k.data + 0.1 * q.data"
PARAMETER = "self.w = nn.Parameter(torch.randn(8))"


@pytest.mark.parametrize(
    ("makes", "line"),
    [
        (PARAMETER, "self.w.data.clamp_(-1, 1)"),
        ("self.w: nn.Parameter = nn.Parameter(torch.randn(8))", "self.w.data.clamp_(-1, 1)"),
        ('self.register_parameter("w", nn.Parameter(torch.randn(8)))', "self.w.data = self.w.data.clamp(-1, 1)"),
        ("w = nn.Parameter(torch.randn(8))\nself.w = w", "self.w.data.clamp_(-1, 1)"),
        ("self.w = nn.Parameter(torch.randn(8)) if scaled else None", "self.w.data.clamp_(-1, 1)"),
        ("self.w = nn.ParameterList([nn.Parameter(torch.randn(8))])", "self.w[0].data.clamp_(-1, 1)"),
        ("self.layers = nn.ModuleList([nn.Linear(8, 8)])", "self.layers[0].weight.data.clamp_(-1, 1)"),
        (PARAMETER, "torch.clamp(self.w, -1, 1, out=self.w.data)"),
        (PARAMETER, "self.w *= 0.9"),
        (PARAMETER, "w = self.w.data; w *= 0.9"),
        (PARAMETER, "w = self.w; w.data.clamp_(-1, 1)"),
        ("pass", "for p in self.parameters(): p.data.clamp_(-1, 1)"),
        ("pass", "for name, p in self.head.named_parameters(): p.data.clamp_(-1, 1)"),
        ("pass", "for m in self.modules(): m.weight.data.clamp_(-1, 1)"),
        ("self.layers = nn.ModuleList([nn.Linear(8, 8)])", "for m in self.layers: m.weight.data.clamp_(-1, 1)"),
        ("self.ws = nn.ParameterList([nn.Parameter(a)])", "for w in self.ws: w.data.clamp_(-1, 1)"),
        ("pass", "self.head.reset_parameters()"),
    ],
)
def test_a_model_that_writes_its_own_parameters_needs_stage_zero(makes: str, line: str) -> None:
    kept(trained(model(line, makes)), line.rpartition("; ")[2])


@pytest.mark.parametrize(
    ("makes", "line"),
    [
        ("pass", "self.seen = x"),
        ("self.w = nn.Parameter(torch.randn(8), requires_grad=False)", "self.w.data.clamp_(-1, 1)"),
        (f"{PARAMETER}\nself.w.requires_grad_(False)", "self.w.data.clamp_(-1, 1)"),
        ('self.register_buffer("w", torch.randn(8))', "self.w.clamp_(-1, 1)"),
        ('self.register_parameter("w", None)', "self.w.clamp_(-1, 1)"),
        (PARAMETER, "w = self.w * 2; w.clamp_(-1, 1)"),
        (PARAMETER, "w = self.w; w = w.abs() ; w.clamp_(-1, 1)"),
        (PARAMETER, "self.w.grad.data.zero_()"),
        ("pass", "self.late = nn.Linear(8, 8).cuda(); self.late.weight.data[:2].zero_()"),
        ("self.teach = nn.Linear(8, 8)\nself.teach.requires_grad_(False)", "self.teach.weight.data.mul_(0.9)"),
        (f"{KEY}\nfor p in self.k.parameters():\n    p.requires_grad = False", MOVED),
        (f"{KEY}\nfor q, k in zip({BOTH}): k.data.copy_(q.data); k.requires_grad = False", MOVED),
        (f"{KEY}\nset_requires_grad(self.k, False)", "for p in self.k.parameters(): p.data.mul_(0.9)"),
    ],
)
def test_what_the_optimizer_does_not_hold_is_free(makes: str, line: str) -> None:
    trained(model(line, makes)).silent("MG509")


@pytest.mark.parametrize("base", ["nn.Conv2d", "torch.nn.Linear"])
def test_a_layer_that_is_derived_has_the_parameters_of_its_base(base: str) -> None:
    line = "self.weight.data = torch.renorm(self.weight.data, p=2, dim=0, maxnorm=1)"
    layer = f"""
        class Constrained({base}):
            def forward(self, x):
                {line}
                return super().forward(x)


        """
    net = model("x = self.inner(x)", "self.inner = Constrained(8, 8)")
    kept(trained(dedent(layer) + net), line)


@pytest.mark.parametrize(
    "makes",
    [
        f"{KEY}\nif frozen:\n    self.k.requires_grad_(False)",
        f"{KEY}\nfor n, p in self.k.named_parameters():\n    if 'bn' in n:\n        p.requires_grad = False",
    ],
)
def test_a_part_that_may_be_frozen_is_written_as_one_that_trains(makes: str) -> None:
    kept(trained(model("self.k.weight.data.mul_(0.9)", makes)), "self.k.weight.data.mul_(0.9)")


def test_a_layer_that_freezes_its_weight_may_write_it() -> None:
    layer = """
        class Table(nn.Embedding):
            def __init__(self, n, d):
                super().__init__(n, d)
                self.weight.requires_grad = False

            def forward(self, x):
                self.weight.data[0] = 0
                return super().forward(x)


        """
    trained(dedent(layer) + model("pass", "self.table = Table(8, 8)")).silent("MG509")


def test_a_base_of_the_project_may_stand_between_and_make_the_parameter() -> None:
    base = model("pass", PARAMETER, name="Base")
    line = "self.w.data.clamp_(-1, 1)"
    kept(trained(base + model(line, bases="Base")), line)


def test_a_base_may_write_what_its_heirs_make() -> None:
    line = "self.w.data.clamp_(-1, 1)"
    base = model(line, name="Base")
    kept(trained(base + model("x = super().forward(x)", PARAMETER, bases="Base")), line)


def test_a_parameter_of_a_part_is_found_by_its_class() -> None:
    line = "self.inner.w.data.clamp_(-1, 1)"
    inner = model("pass", PARAMETER, name="Inner")
    kept(trained(inner + model(line, "self.inner = Inner()")), line)


def test_an_average_of_the_model_is_no_part_of_it() -> None:
    helpers = """
        class Averaged(nn.Module):
            def __init__(self, net):
                super().__init__()
                self.module = copy.deepcopy(net)

            def update(self, net):
                for a, b in zip(self.module.parameters(), net.parameters()):
                    a.data.mul_(0.9).add_(b.data, alpha=0.1)


        class Copy(Averaged):
            pass


        """
    for name in ("Averaged", "Copy"):
        made = f"shadow = {name}(model)\nmodel = DDP(model)"
        wrap = f"model = Net().cuda()\n{made}"
        migrated = convert(helpers=dedent(helpers), wrap=wrap, imports="import copy", end="shadow.update(model.module)")
        migrated.silent("MG509")


METHOD = "def tidy(self):\n    self.head.weight.data.clamp_(-1, 1)\n\n"


def test_a_method_that_nobody_speaks_of_is_never_run() -> None:
    trained(model("pass", methods=METHOD)).silent("MG509")
    kept(trained(model("self.tidy()", methods=METHOD)), "self.head.weight.data.clamp_(-1, 1)")
    kept(trained(model("pass", methods=METHOD), end="model.module.tidy()"), "self.head.weight.data.clamp_(-1, 1)")
    trained(model("pass", "self.tidy()", methods=METHOD)).silent("MG509")
