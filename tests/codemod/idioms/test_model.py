"""What a script does with the model beside training it: its class, weights, their names, files, copies, hooks."""

from __future__ import annotations

import pytest

from dsmigrate.codemod.model import Kind, Status
from tests.codemod.converting import HEAD, Converted, converted

SCRIPT = (
    HEAD
    + """
import argparse
import copy
from functools import partial
from torch.nn.parallel import DataParallel as DP
from torch.optim.swa_utils import AveragedModel
from lab import loader, make
{imports}
parser = argparse.ArgumentParser()
parser.add_argument("--resume")
parser.add_argument("--half", action="store_true")
args = parser.parse_args()


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.head = nn.Linear(3, 3)

    def forward(self, x):
        return self.head(x)


{helpers}


def main():
    dist.init_process_group("nccl")
    {seed}
    {model}
    {before}
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    {between}
    for x in loader:
        loss = model(x.cuda()).sum()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        {step}
    {end}


main()
"""
)


def trained(*, model: str = "model = DDP(Net().cuda())", **parts: str) -> Converted:
    zero_stage = parts.pop("zero_stage", None)
    given = (
        dict.fromkeys(("imports", "helpers", "seed", "before", "between", "step", "end"), "") | parts | {"model": model}
    )
    indents = {"seed": 4, "model": 4, "before": 4, "between": 4, "step": 8, "end": 4}
    return converted(
        SCRIPT.format(**{name: text.replace("\n", "\n" + " " * indents.get(name, 0)) for name, text in given.items()}),
        zero_stage=zero_stage,
    )


def test_what_holds_the_model_already_is_not_assigned_again() -> None:
    wrap = "raw = model\nif dist.get_world_size() > 1:\n    model = DDP(model)\n    raw = model.module"
    found = trained(model=f"model = Net().cuda()\n{wrap}").text
    assert found.count("raw =") == 1
    assert "get_world_size" not in found
    found = trained(model=f"model = Net().cuda()\n{wrap.replace('raw = model', 'raw = Net()', 1)}").text
    assert "raw = model\n" in found


# -- the class of the wrapper ------------------------------------------------------------------------------------------

ENGINE = "deepspeed.DeepSpeedEngine"
NAME = '"DistributedDataParallel"'


@pytest.mark.parametrize(
    ("before", "test", "after"),
    [
        ("", "isinstance(m, DDP)", f"isinstance(m, {ENGINE})"),
        ("", "isinstance(m, (DDP, DP))", f"isinstance(m, ({ENGINE}, DP))"),
        ("", "type(m) is DDP", f"type(m) is {ENGINE}"),
        ("", "DDP == type(m)", f"{ENGINE} == type(m)"),
        ("", "m.__class__ is DDP", f"m.__class__ is {ENGINE}"),
        ("", "type(m) in {DP, DDP}", f"type(m) in {{DP, {ENGINE}}}"),
        ("KIND = DDP", "isinstance(m, KIND)", f"isinstance(m, {ENGINE})"),
        ("KINDS = (DP, DDP)", "isinstance(m, KINDS)", f"isinstance(m, (KINDS, {ENGINE}))"),
        ("KINDS = [DP, DDP]", "type(m) in KINDS", f"type(m) in (*KINDS, {ENGINE})"),
        ("", "isinstance(m, DP | DDP)", f"isinstance(m, (DP | DDP, {ENGINE}))"),
        ("def kinds():\n    return DP, DDP", "isinstance(m, kinds())", f"isinstance(m, (kinds(), {ENGINE}))"),
        ("", f"type(m).__name__ == {NAME}", f"(type(m).__name__ == {NAME} or isinstance(m, {ENGINE}))"),
        ("", "type(m).__name__ == DDP.__name__", f"(type(m).__name__ == DDP.__name__ or isinstance(m, {ENGINE}))"),
        ("", f"{NAME} in str(type(m))", f"({NAME} in str(type(m)) or isinstance(m, {ENGINE}))"),
        (
            "",
            'm.__class__.__name__.endswith("DataParallel")',
            f'(m.__class__.__name__.endswith("DataParallel") or isinstance(m, {ENGINE}))',
        ),
    ],
)
def test_tests_of_the_class_ask_for_the_engine(before: str, test: str, after: str) -> None:
    helper = f"{before}\n\n\ndef unwrap(m):\n    if {test}:\n        return m.module\n    return m"
    found = trained(helpers=helper, end='torch.save(unwrap(model).state_dict(), "a.pt")')
    assert f"    if {after}:" in found.text
    found.said("MG502", Kind.CONVERTED)
    assert found.status is Status.CONVERTED


@pytest.mark.parametrize("test", ["hasattr(m, 'module')", "isinstance(m, nn.Linear)", "type(m).__name__ == 'Net'"])
def test_others_stay(test: str) -> None:
    found = trained(helpers=f"def unwrap(m):\n    return m.module if {test} else m", end="print(unwrap(model))")
    assert f"return m.module if {test} else m" in found.text


def test_a_teacher_in_ddp_is_still_asked_for_ddp() -> None:
    found = trained(
        model="teacher = DDP(Net().cuda())\nmodel = DDP(Net().cuda())",
        end="print(isinstance(teacher, DDP), teacher.module)",
    )
    assert "print(isinstance(teacher, DDP), teacher.module)" in found.text
    assert "teacher = model" not in found.text
    found.said("MG105", Kind.KEPT)


# -- names of weights --------------------------------------------------------------------------------------------------


def test_names_of_the_wrapper_in_front_of_the_engine() -> None:
    found = trained(before="model.load_state_dict(torch.load(args.resume), strict=False)")
    assert (
        'model.load_state_dict({name.removeprefix("module."): weight '
        "for name, weight in torch.load(args.resume).items()}, strict=False)" in found.text
    )
    assert not found.todos
    found = trained(before='torch.save(model.state_dict(), "first.pt")', seed="torch.manual_seed(1)")
    assert (
        'torch.save({f"module.{name}": weight for name, weight in model.state_dict().items()}, "first.pt")'
        in found.text
    )
    assert not found.todos


@pytest.mark.parametrize(
    "before",
    [
        "model.module.load_state_dict(torch.load(args.resume))",
        "raw = model.module\nraw.load_state_dict(torch.load(args.resume))",
    ],
)
def test_names_without_the_prefix_stay_so(before: str) -> None:
    found = trained(before=before)
    assert "removeprefix" not in found.text
    assert not found.todos


@pytest.mark.parametrize(
    "test",
    [
        'name.startswith("module.head")',
        '"module.head" in name',
        'name.split(".")[1] == "head"',
        '".head" in name',
        '"le.head" not in name',
        '"mod" in name',
        '(lambda n: n.split(".")[1])(name) == "head"',
    ],
)
def test_tests_for_names_of_the_wrapper_are_marked(test: str) -> None:
    trained(before=f"for name, p in model.named_parameters():\n    p.requires_grad = {test}").said("MG508", Kind.TODO)


@pytest.mark.parametrize(
    "lines",
    [
        'kept = [p for n, p in model.named_parameters() if "bias" not in n]',
        "for n, p in model.named_parameters(): print(n, p.shape)",
        (
            'exclude = lambda n: "bn" in n or "bias" in n\ninclude = lambda n: not exclude(n)\n'
            "named = list(model.named_parameters())\nkept = [p for n, p in named if include(n) and p.requires_grad]"
        ),
        (
            "kept = {}\nfor n, p in model.named_parameters():\n    kept[n] = p\n"
            'some = [p for n, p in kept.items() if "bn" in n]'
        ),
    ],
)
def test_names_that_are_only_searched_are_not(lines: str) -> None:
    assert not trained(before=lines).todos


def test_names_under_which_something_is_kept_are_what_it_is_asked_for_by() -> None:
    lines = 'kept = {}\nfor n, p in model.named_parameters():\n    kept[n] = p\nhead = kept["module.head.weight"]'
    assert trained(before=lines).said("MG508", Kind.TODO)


@pytest.mark.parametrize(
    ("imports", "line"),
    [
        ("from fvcore.common.checkpoint import Checkpointer", "Checkpointer({}).load(args.resume)"),
        ("from timm.models import load_checkpoint", "load_checkpoint({}, args.resume)"),
        ("from timm.models import resume_checkpoint", "resume_checkpoint(model={}, checkpoint_path=args.resume)"),
    ],
)
def test_a_library_that_unwraps_nothing_but_ddp_is_given_the_module(imports: str, line: str) -> None:
    found = trained(imports=imports, between=line.format("model"))
    assert line.format("model.module") in found.text


# -- weights -----------------------------------------------------------------------------------------------------------

HELPERS = "def constrain(layer):\n    layer.weight.data.clamp_(-1, 1)"


@pytest.mark.parametrize(
    "step",
    [
        "for p in model.parameters():\n    p.data.clamp_(-0.1, 0.1)",
        "for w in model.state_dict().values():\n    w.mul_(0.5)",
        "with torch.no_grad():\n    for p in model.parameters():\n        p *= 0.9",
        "model.module.head.weight.clamp_(-1, 1)",
        "model.module.head.weight.data = torch.clamp(model.module.head.weight, -1, 1)",
        "with torch.no_grad():\n    model.module.head.weight *= 0.9",
        "model.module.head.bias[0] = 0.0",
        "nn.init.zeros_(model.module.head.bias)",
        "model.module.head.reset_parameters()",
        "model.module.get_parameter('head.bias').data.fill_(3.0)",
        "constrain(model.module.head)",
        "torch._foreach_mul_(list(model.parameters()), 0.9)",
        "torch.clamp(model.module.head.weight, -1, 1, out=model.module.head.weight.data)",
        "nn.utils.vector_to_parameters(torch.zeros(12), model.parameters())",
    ],
)
@pytest.mark.parametrize("model", ["Net()", "make()"])
def test_weights_that_are_written_reach_the_masters(step: str, model: str) -> None:
    found = trained(model=f"model = DDP({model}.cuda())", step=step, helpers=HELPERS)
    assert "ds_compat.refresh_masters(model)\n" in found.text
    assert found.text.count("refresh_masters") == 1
    assert {code for code, _ in found.todos} <= (
        {"MG999"} if model == "make()" else set()
    )  # an unread model is read back otherwise


@pytest.mark.parametrize(
    "step",
    [
        "for t, s in zip(teacher.parameters(), model.parameters()):\n    t.data.mul_(0.9).add_(s.data)",
        "teacher.head.weight.data.zero_()",
        "for p in model.parameters():\n    print(p.norm())",
        "x.clamp_(0, 1)",
        "print(model.module.head.weight.detach().clone())",
    ],
)
def test_what_leaves_the_trained_weights_alone(step: str) -> None:
    found = trained(model="teacher = Net().cuda()\nmodel = DDP(Net().cuda())", step=step)
    assert "refresh_masters" not in found.parts


def test_weights_that_are_written_before_the_engine() -> None:
    assert "refresh_masters" not in trained(before="nn.init.zeros_(model.module.head.bias)").parts


@pytest.mark.parametrize(
    "register",
    [
        "net.head.register_forward_pre_hook(limit)",
        "net.head.register_forward_hook(hook=limit)",
        "net.head.register_forward_pre_hook(partial(limit))",
        "for part in net.modules():\n    part.register_forward_pre_hook(limit)",
        "net.head.register_forward_pre_hook(lambda m, i: m.weight.data.clamp_(-1, 1))",
    ],
)
def test_a_hook_that_writes_weights_is_followed_by_the_masters(register: str) -> None:
    hook = "def limit(module, inputs, *rest):\n    module.weight.data.clamp_(-1, 1)"
    found = trained(helpers=hook, model=f"net = Net().cuda()\n{register}\nmodel = DDP(net)")
    assert "loss = model(x.cuda()).sum()\n        ds_compat.refresh_masters(model)\n" in found.text


def test_a_hook_that_reads_or_of_another_model_is_not() -> None:
    reads = "def seen(module, inputs, *rest):\n    print(module.weight.norm())"
    assert (
        "refresh_masters"
        not in trained(helpers=reads, model="net = Net()\nnet.head.register_forward_hook(seen)\nmodel = DDP(net)").parts
    )
    writes = "def limit(module, inputs, *rest):\n    module.weight.data.zero_()"
    other = "other = nn.Linear(2, 2)\nother.register_forward_hook(limit)\nmodel = DDP(Net())"
    assert "refresh_masters" not in trained(helpers=writes, model=other).parts


def test_complex_parameters_are_marked() -> None:
    layer = (
        "class Filter(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
        "        self.w = nn.Parameter({})\n\n    def forward(self, x):\n        return x * self.w"
    )
    for made in ("torch.randn(9, dtype=torch.cfloat)", "torch.complex(torch.randn(9), torch.zeros(9))"):
        trained(helpers=layer.format(made), model="model = DDP(nn.Sequential(Filter(), Net()))").said(
            "MG311", Kind.TODO
        )
    assert "MG311" not in {
        code
        for code, _ in trained(
            helpers=layer.format("torch.randn(9)"), model="model = DDP(nn.Sequential(Filter(), Net()))"
        ).todos
    }


LAYER = """
class Anchors:
    def __init__(self):
        self.boxes = torch.as_tensor([(1.0, 2.0)])

    def __call__(self, order="ltrb"):
        if order == "xywh":
            return self.boxes


class Filter(nn.Module):
    def __init__(self, size=4):
        super().__init__()
        self.w = nn.Parameter({})

    def forward(self, x):
        return x * self.w
"""
TURNED = [
    "torch.randn(3, 4).t()",
    "torch.randn(3, 4).T",
    "torch.randn(3, 4).mT.clone()",
    "0.1 * torch.randn(3, 4).transpose(0, 1)",
    "torch.transpose(torch.randn(3, 4), 0, 1)",
    "nn.init.normal_(torch.empty(3, 4).t())",
    'Anchors()(order="xywh").transpose(0, 1).unsqueeze(dim=0), requires_grad=False',
    'make("boxes").permute(1, 0).unsqueeze(0)',
    'torch.from_numpy(make("boxes").T)',
    'torch.load("w.pt")["w"].swapaxes(0, 1)',
    "torch.randn(2, 3, 4, 5).contiguous(memory_format=torch.channels_last)",
    "torch.randn(3, 4)[:, :2]",
]
DENSE = [
    "torch.randn(3, 4)",
    "torch.randn(3, 4).t().contiguous()",
    "torch.randn(3, 4).permute(1, 0).reshape(2, 6)",
    "torch.cat([torch.randn(3, 4).t(), torch.randn(4, 3)])",
    "torch.randn(3, 4).view(4, 3)[:2]",
    'torch.load("w.pt")["w"].t().contiguous()',
    "make(torch.randn(3, 4).t())",
]


@pytest.mark.parametrize(("given", "turned"), [*((one, True) for one in TURNED), *((one, False) for one in DENSE)])
def test_parameters_that_may_not_be_contiguous_are_sent_before_the_engine(given: str, turned: bool) -> None:
    model = "model = nn.Sequential(Filter(), Net())\nmodel = DDP(model)"
    found = trained(helpers=LAYER.replace("{}", given), model=model)
    assert ("ds_compat.send_odd_parameters(model)\n" in found.text) is turned
    assert not found.todos
    if turned:
        assert found.said("MG518").reason == "DeepSpeed 0.19.8 cannot send what may not be contiguous"
        at_three = trained(helpers=LAYER.replace("{}", given), model=model, zero_stage=3)  # type: ignore[arg-type]
        assert "make it contiguous" in at_three.said("MG518", Kind.TODO).reason


@pytest.mark.parametrize(
    ("done", "turned"),
    [
        ("net.head.weight.data = net.head.weight.data.t()", True),
        ("net.head.weight.data = net.head.weight.data * 2", False),
        ("net = net.to(memory_format=torch.channels_last)", True),
        ("net = net.to(memory_format=torch.channels_last if args.half else torch.contiguous_format)", True),
        ("net = net.to(memory_format=torch.preserve_format)", False),
        ("Net().to(memory_format=torch.channels_last)", False),
    ],
)
def test_weights_whose_strides_are_changed_are_sent_too(done: str, turned: bool) -> None:
    found = trained(model=f"net = Net()\n{done}\nmodel = DDP(net)")
    assert ("send_odd_parameters" in found.parts) is turned


# -- compiled ----------------------------------------------------------------------------------------------------------


def test_a_compiled_wrapper_is_compiled_in_place() -> None:
    assert "model.module.compile(dynamic=True)" in trained(before="model = torch.compile(model, dynamic=True)").text
    found = trained(helpers="def fast(net):\n    return torch.compile(net)", between="model = fast(model)")
    assert "    net.module.compile()\n    return net\n" in found.text
    found = trained(model="model = torch.compile(Net().cuda())\nmodel = DDP(model)")
    assert "model = torch.compile(Net().cuda())" in found.text
    found.said("MG708", Kind.KEPT)


@pytest.mark.parametrize(("where", "moved"), [(", device=local_rank", set()), ("", {"MG108"})])
def test_inputs_that_are_made_on_a_device_are_there(where: str, moved: set[str]) -> None:
    found = converted(f"""{HEAD}
local_rank = int(os.environ["LOCAL_RANK"])
dist.init_process_group("nccl")
model = DDP(nn.Linear(4, 4).to(local_rank), device_ids=[local_rank])
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(10):
    loss = model(torch.randn(4, 4{where})).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
""")
    assert found.todos == []
    assert found.codes(Kind.CONVERTED) & {"MG108"} == moved


@pytest.mark.parametrize(
    ("moving", "stays"),
    [
        ("y = y.cuda()", True),
        ("y = batch[1].cuda()", True),
        ("x, y = x.cuda(), y.cuda()", False),
        ("batch.to(local_rank)\n    x, y = batch", False),
        ("batch = [part.cuda() for part in batch]\n    x, y = batch", False),
        ("for key in range(2):\n        batch[key] = batch[key].cuda()\n    x = batch[0]", False),
        ("x = x.cuda() if local_rank else x", False),
    ],
)
def test_an_input_that_stays_where_the_loader_gives_it_is_marked(moving: str, stays: bool) -> None:
    found = converted(f"""{HEAD}
local_rank = int(os.environ["LOCAL_RANK"])
dist.init_process_group("nccl")
model = DDP(nn.Linear(4, 4).to(local_rank), device_ids=[local_rank])
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
data = read_data()
for batch in torch.utils.data.DataLoader(data, 8, sampler=torch.utils.data.DistributedSampler(data)):
    x, y = batch
    {moving}
    loss = (model(x) - y).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
""")
    assert [code for code, *_ in found.todos] == ["MG108"] * stays


PAIR = """
class Pair(nn.Module):
    def __init__(self):
        super().__init__()
        self.online = nn.Linear(4, 4)
        self.momentum = nn.Linear(4, 4)
        for weight in self.momentum.parameters():
            weight.requires_grad = {trained}

    def forward(self, x):
        with torch.no_grad():
            for new, old in zip(self.online.parameters(), self.momentum.parameters()):
                old.data = old.data * 0.9 + new.data * 0.1
        return self.online(x)

"""


@pytest.mark.parametrize("trains", [True, False])
def test_the_optimizer_has_no_copies_of_frozen_parts(trains: bool) -> None:
    found = trained(helpers=PAIR.format(trained=trains), model="model = DDP(Pair())")
    assert ("refresh_masters" in found.parts) is trains


def test_an_average_in_copies_of_the_weights_writes_no_weights() -> None:
    found = trained(
        before="shadow = {n: p.detach().clone() for n, p in model.module.named_parameters()}",
        step="for n, p in model.module.named_parameters():\n    shadow[n] += 0.1 * (p.data - shadow[n])",
    )
    assert "refresh_masters" not in found.parts
