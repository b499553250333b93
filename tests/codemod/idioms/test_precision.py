"""Autocast regions, and weights that are not float32."""

from __future__ import annotations

import pytest

from dsmigrate.codemod.model import Kind, Status
from tests.codemod.converting import HEAD, Converted, converted

SCRIPT = (
    HEAD
    + """
import argparse
import contextlib
from transformers import AutoModel
parser = argparse.ArgumentParser()
parser.add_argument("--amp", action="store_true")
args = parser.parse_args()
{helpers}
def main():
    dist.init_process_group("nccl")
    net = {net}
{before}
    model = DDP(net)
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.1)
    for x in torch.utils.data.DataLoader(data, batch_size=8):
        optimizer.zero_grad()
{forward}
        loss.backward()
        optimizer.step()
{behind}
main()
"""
)


def script(
    forward: str = "loss = model(x).sum()",
    helpers: str = "",
    net: str = "nn.Linear(4, 4)",
    before: str = "",
    behind: str = "",
    **options: object,
) -> Converted:
    def indented(lines: str, by: int) -> str:
        return "\n".join(" " * by + line for line in lines.splitlines())

    return converted(
        SCRIPT.format(
            helpers=helpers,
            net=net,
            before=indented(before, 4),
            forward=indented(forward, 8),
            behind=indented(behind, 4),
        ),
        **options,
    )


ON = {
    "a region": ("", 'with torch.autocast("cuda", dtype=torch.bfloat16):\n    loss = model(x).sum()'),
    "by its older name": ("", "with torch.cuda.amp.autocast(dtype=torch.bfloat16):\n    loss = model(x).sum()"),
    "a manager of the script": (
        (
            "@contextlib.contextmanager\ndef mixed():\n"
            "    with torch.autocast('cuda', dtype=torch.bfloat16):\n        yield"
        ),
        "with mixed():\n    loss = model(x).sum()",
    ),
    "a decorator": (
        "@torch.autocast('cuda', dtype=torch.bfloat16)\ndef run(net, x):\n    return net(x).sum()",
        "loss = run(model, x)",
    ),
    "a function that is given one": (
        "def run(function):\n    with torch.autocast('cuda', dtype=torch.bfloat16):\n        return function()",
        "loss = run(lambda: model(x).sum())",
    ),
    "a variable": ("region = torch.autocast('cuda', dtype=torch.bfloat16)", "with region:\n    loss = model(x).sum()"),
    "arguments in a dictionary": (
        "kinds = {'device_type': 'cuda', 'dtype': torch.bfloat16}",
        "with torch.autocast(**kinds):\n    loss = model(x).sum()",
    ),
    "beside no_sync": (
        "",
        'with contextlib.nullcontext(), torch.autocast("cuda", torch.bfloat16):\n    loss = model(x).sum()',
    ),
}


@pytest.mark.parametrize(("helpers", "forward"), ON.values(), ids=ON)
def test_regions_stay_and_the_engine_follows(helpers: str, forward: str) -> None:
    found = script(forward, helpers)
    assert found.status is Status.CONVERTED, found.todos
    assert found.config["torch_autocast"] == {"enabled": True, "dtype": "bfloat16", "lower_precision_safe_modules": []}
    assert "autocast" in found.text


@pytest.mark.parametrize(
    "manager",
    [
        'torch.autocast("cuda", dtype=torch.bfloat16, enabled=args.amp)',
        'torch.autocast("cuda", torch.bfloat16) if args.amp else contextlib.nullcontext()',
        '{True: torch.autocast("cuda", torch.bfloat16), False: contextlib.nullcontext()}[args.amp]',
    ],
)
def test_what_an_option_switches_follows_it(manager: str) -> None:
    found = script(f"with {manager}:\n    loss = model(x).sum()")
    assert not found.todos
    assert "torch_autocast={" in found.text
    assert "args.amp" in found.text
    assert found.config["torch_autocast"]["enabled"] is False


def test_a_branch_that_one_of_two_options_takes_follows_both() -> None:
    region = f"    {ON['a region'][1]}".replace("\n", "\n    ")
    found = script(
        f"if args.amp or args.half:\n{region}\nelse:\n    loss = model(x).sum()",
        helpers="parser.add_argument('--half', action='store_true')\nargs = parser.parse_args()",
    )
    assert not found.todos
    assert 'torch_autocast={"enabled": args.amp or args.half}' in found.text


def test_a_type_from_a_table_is_said_by_the_name_of_the_option() -> None:
    found = script(
        "with ctx:\n    loss = model(x).sum()",
        helpers="parser.add_argument('--dtype', default='bfloat16')\nargs = parser.parse_args()",
        before="""\
device = "cuda"
if int(os.environ.get("RANK", -1)) != -1:
    device = f"cuda:{os.environ['LOCAL_RANK']}"
kinds = {"float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16}
ctx = torch.autocast("cuda", dtype=kinds[args.dtype]) if "cuda" in device else contextlib.nullcontext()""",
    )
    assert not found.todos
    enabled, kind = 'args.dtype != "float32"', '"bfloat16" if args.dtype == "bfloat16" else "float16"'
    assert f'torch_autocast={{"enabled": {enabled}, "dtype": {kind}}}' in found.text
    assert found.config["torch_autocast"]["dtype"] == "bfloat16"


def test_regions_switched_alike_behind_an_early_end_follow_the_option() -> None:
    found = script(
        """\
if taken >= 100:
    break
taken += 1
if len(data) == 1:
    if args.amp:
        with torch.autocast("cuda", torch.bfloat16):
            loss = model(x).sum()
    else:
        loss = model(x).sum()
else:
    if taken % 2 > 0:
        continue
    with torch.autocast("cuda", torch.bfloat16, enabled=args.amp):
        loss = model(x).sum()""",
        before="taken = 0",
    )
    assert not found.todos
    assert 'torch_autocast={"enabled": args.amp}' in found.text


HIDDEN = {
    "entered": (
        "region = torch.autocast('cuda', torch.bfloat16)\nregion.__enter__()\n"
        "loss = model(x).sum()\nregion.__exit__(None, None, None)"
    ),
    "in a stack": (
        "with contextlib.ExitStack() as stack:\n"
        "    stack.enter_context(torch.autocast('cuda', torch.bfloat16))\n    loss = model(x).sum()"
    ),
    "switched": "torch.set_autocast_enabled(True)\nloss = model(x).sum()",
    "only known in the loop": "with torch.cuda.amp.autocast(len(x) > 2):\n    loss = model(x).sum()",
    "beside a plain forward": (
        "with torch.autocast('cuda', torch.bfloat16):\n    out = model(x)\nloss = out.sum() + model(2 * x).mean()"
    ),
}


@pytest.mark.parametrize("forward", HIDDEN.values(), ids=HIDDEN)
def test_regions_that_the_config_cannot_follow_are_marked(forward: str) -> None:
    assert script(forward).said("MG307", Kind.TODO)


def test_an_evaluation_outside_of_the_region_runs_the_module() -> None:
    found = script(ON["a region"][1], behind="with torch.no_grad():\n    print(model(data[0]))")
    assert "print(model.module(data[0]))" in found.text
    assert found.said("MG306", Kind.CONVERTED)


def test_buffers_are_sent_before_the_module_is_evaluated_outside_of_the_region() -> None:
    end = "model.eval()\nwith torch.no_grad():\n    for y in data:\n        print(model(y))"
    found = script(ON["a region"][1], behind=end, net="nn.Sequential(nn.Linear(4, 4), nn.BatchNorm1d(4))")
    assert "        ds_compat.broadcast_buffers(model)\n        for y in data:\n" in found.text
    assert "print(model.module(y))" in found.text


def test_buffers_are_sent_before_the_loop_over_a_generator() -> None:
    helpers = (
        "def log_every(batches):\n    for number, batch in enumerate(batches):\n        yield batch\n\n\n"
        "def evaluate(model, batches):\n    for y in log_every(batches):\n        out = model(y)\n        print(out)\n"
    )
    end = "model.eval()\nwith torch.no_grad():\n    evaluate(model, data)"
    net = "nn.Sequential(nn.Linear(4, 4), nn.BatchNorm1d(4))"
    found = script(ON["a region"][1], behind=end, net=net, helpers=helpers)
    assert "    ds_compat.broadcast_buffers(model)\n    for y in log_every(batches):\n" in found.text
    assert found.text.count("broadcast_buffers(model)") == 1


def test_buffers_of_a_model_that_the_loop_binds_are_sent_within_it() -> None:
    end = "model.eval()\nwith torch.no_grad():\n    for y in data:\n        net = model\n        print(net(y))"
    found = script(ON["a region"][1], behind=end, net="nn.Sequential(nn.Linear(4, 4), nn.BatchNorm1d(4))")
    assert (
        "            net = model\n            ds_compat.broadcast_buffers(net)\n            print(net.module(y))"
        in found.text
    )


def test_an_evaluation_in_one_precision_or_another_runs_the_module() -> None:
    helpers = (
        "def evaluate(model, amp=False):\n    with torch.no_grad():\n        if amp:\n"
        "            with torch.autocast('cuda', torch.bfloat16):\n                print(model(data[0]))\n"
        "        else:\n            print(model(data[0]))\n"
    )
    found = script(
        "with torch.autocast('cuda', torch.bfloat16, enabled=args.amp):\n    loss = model(x).sum()",
        helpers=helpers,
        behind="evaluate(model)\nevaluate(model, amp=args.amp)",
    )
    assert not found.todos
    assert "        else:\n            print(model.module(data[0]))" in found.text


def test_an_evaluation_of_runs_that_do_not_wrap_the_model_keeps_its_precision_too() -> None:
    found = converted(f"""{HEAD}
distributed = int(os.environ.get("WORLD_SIZE", 1)) > 1
if distributed:
    dist.init_process_group("nccl")
model = nn.Linear(4, 4)
optimizer = torch.optim.AdamW(model.parameters(), lr=0.1)
if distributed:
    model = DDP(model)
for x in torch.utils.data.DataLoader(data, batch_size=8):
    optimizer.zero_grad()
    {ON["a region"][1].replace(chr(10), chr(10) + "    ")}
    loss.backward()
    optimizer.step()
with torch.no_grad():
    if distributed:
        print(model(data[0]))
    else:
        print(model(data[1]))
""")
    assert "print(model.module(data[0]))" in found.text
    assert "print(model.module(data[1]))" in found.text


def test_float16_without_a_scaler_is_not_scaled() -> None:
    found = script('with torch.autocast("cuda"):\n    loss = model(x).sum()')
    assert found.config["torch_autocast"]["dtype"] == "float16"
    assert "use_grad_scaler(model, torch.amp.GradScaler(enabled=False))" in found.text


OUTER = (
    "class Outer(nn.Module):\n    def __init__(self, body):\n        super().__init__()\n"
    "        self.body = body\n        self.head = nn.Linear(4, 4)\n    def forward(self, x):\n"
    "        return self.head(self.body(x))"
)
HALF = {
    "cast": {"net": "nn.Linear(4, 4).half()"},
    "cast by its type": {"net": "nn.Linear(4, 4).cuda().to(dtype=torch.bfloat16)"},
    "cast later": {"before": "net.to(torch.half)"},
    "made so": {"net": "nn.Linear(4, 4, dtype=torch.bfloat16)"},
    "loaded so": {"net": 'AutoModel.from_pretrained("b", torch_dtype=torch.bfloat16)'},
    "as the file says": {"net": 'AutoModel.from_pretrained("b", torch_dtype="auto")'},
    "by an option": {"net": 'AutoModel.from_pretrained("b", dtype=torch.float16 if args.amp else torch.float32)'},
    "a part": {"helpers": OUTER, "net": "Outer(nn.Linear(4, 4).bfloat16())"},
    "a part that is loaded": {
        "helpers": OUTER,
        "net": 'Outer(AutoModel.from_pretrained("b", torch_dtype=torch.bfloat16))',
    },
    "by default": {"helpers": "torch.set_default_dtype(torch.bfloat16)"},
}


@pytest.mark.parametrize("parts", HALF.values(), ids=HALF)
def test_half_weights_train_as_before_at_stage_0(parts: dict[str, str]) -> None:
    found = script(**parts)
    assert found.said("MG311", Kind.KEPT)
    assert found.config["zero_optimization"] == {"stage": 0}
    assert script(**parts, zero_stage=2).said("MG311", Kind.TODO)


@pytest.mark.parametrize(
    "parts",
    [
        {"net": "nn.Linear(4, 4).half().float()"},
        {"helpers": OUTER, "net": "Outer(nn.Linear(4, 4).half())", "before": "net.float()"},
        {"net": 'AutoModel.from_pretrained("b", torch_dtype=torch.float32)'},
        {"before": "teacher = nn.Linear(4, 4).half()"},
        {"forward": "loss = model(x.half().float()).sum()"},
    ],
)
def test_what_is_float32_at_the_end_keeps_its_stage(parts: dict[str, str]) -> None:
    found = script(**parts)
    assert "MG311" not in found.codes(Kind.KEPT)
    assert found.config["zero_optimization"] == {"stage": 2}


FILTER = (
    "class Filter(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
    "        self.w = nn.Parameter(torch.randn(4, dtype=torch.cfloat))\n    def forward(self, x):\n"
    "        return torch.fft.irfft(torch.fft.rfft(x) * self.w)"
)


@pytest.mark.parametrize(
    "parts",
    [
        {"net": "nn.Linear(4, 4).double()"},
        {"net": "nn.Linear(4, 4).to(torch.float64)"},
        {"helpers": "torch.set_default_dtype(torch.float64)"},
        {"helpers": FILTER, "net": "Filter()"},
    ],
)
def test_weights_that_no_stage_trains_are_marked(parts: dict[str, str]) -> None:
    assert script(**parts).said("MG311", Kind.TODO)


def test_a_model_of_many_kinds_runs_in_the_precision_of_its_option() -> None:
    kinds = [
        f'{"elif" if number else "if"} args.kind == "{number}":\n    net = nn.Linear(4, {number + 1})'
        for number in range(14)
    ]
    found = script(
        'if args.amp:\n    with torch.autocast("cuda"):\n        loss = model(x).sum()\n'
        "else:\n    loss = model(x).sum()",
        helpers='parser.add_argument("--kind")\nargs = parser.parse_args()',
        net="None",
        before="\n".join(kinds),
    )
    assert 'torch_autocast={"enabled": args.amp}' in found.text
    assert not found.todos


def test_an_attribute_that_may_be_there_switches_autocast() -> None:
    found = script(
        "if not trainer.amp:\n    loss = model(x).sum()\nelse:\n"
        '    with torch.autocast("cuda"):\n        loss = model(x).sum()',
        helpers=(
            "from lab import load\ncfg = load()\nclass Trainer:\n    on = True\n"
            '    amp = getattr(cfg.TRAIN, "AMP", False)\ntrainer = Trainer()'
        ),
    )
    assert 'torch_autocast={"enabled": hasattr(cfg.TRAIN, "AMP") and cfg.TRAIN.AMP}' in found.text
    assert not found.todos


@pytest.mark.parametrize(
    "call",
    [
        "torch.cuda.amp.autocast({test})",
        "torch.autocast('cuda', torch.float16, {test})",
        "torch.autocast('cuda', enabled={test})",
    ],
)
def test_a_switch_of_one_of_two_devices_is_said_as_it_is_written(call: str) -> None:
    found = script(
        f"with {call.format(test='device.type != 0')}:\n    loss = model(x).sum()",
        helpers="from lab import select\ndevice = select(1) if args.amp else select(2)",
    )
    assert 'torch_autocast={"enabled": device.type != 0}' in found.text
    assert not found.todos


def test_a_setting_of_a_module_that_is_not_read_switches_autocast() -> None:
    found = script(
        "if settings.AMP:\n    with torch.autocast('cuda'):\n        loss = model(x).sum()\n"
        "else:\n    loss = model(x).sum()",
        helpers="import settings",
    )
    assert 'torch_autocast={"enabled": settings.AMP}' in found.text
    assert not found.todos
