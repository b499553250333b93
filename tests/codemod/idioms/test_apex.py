"""apex's mixed precision, optimizers around others, and losses that are parts of what a model gives."""

from __future__ import annotations

import textwrap

import pytest

from dsmigrate.codemod.model import Kind, Status
from tests.codemod.converting import HEAD, converted

START = (
    HEAD
    + """
import argparse

parser = argparse.ArgumentParser()
parser.add_argument("--fp16", action="store_true")
parser.add_argument("--level", default="O1")
args = parser.parse_args()
dist.init_process_group("nccl")
model = nn.Linear(4, 4).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
loader = torch.utils.data.DataLoader(data, batch_size=8)
"""
)
APEX = """
if args.fp16:
    try:
        from apex import amp
    except ImportError:
        raise ImportError("no apex")
    model, optimizer = amp.initialize(model, optimizer, opt_level="O1")
model = DDP(model)
for x in loader:
    optimizer.zero_grad()
    loss = model(x).sum()
    if args.fp16:
        with amp.scale_loss(loss, optimizer) as scaled:
            scaled.backward()
    else:
        loss.backward()
    optimizer.step()
"""


def test_apex_becomes_autocast_with_its_scale() -> None:
    found = converted(START + APEX)
    assert "apex" not in found.text.replace("apex amp became", "")
    assert "ds_compat.scale_losses(model, enabled=args.fp16)" in found.text
    assert found.text.count("model.backward(loss)") == 1
    assert found.config["torch_autocast"] == {"enabled": False, "dtype": "float16", "lower_precision_safe_modules": []}
    assert [code for code, _ in found.todos] == ["MG304"]


def test_a_region_without_a_twin_is_dissolved_and_a_fixed_scale_stays_fixed() -> None:
    script = """
    from apex import amp
    model, optimizer = amp.initialize(model, optimizer, opt_level="O1", loss_scale=128.0)
    model = DDP(model)
    for x in loader:
        optimizer.zero_grad()
        loss = model(x).sum()
        with amp.scale_loss(loss, optimizer) as scaled:
            scaled.backward()
        optimizer.step()
    """
    found = converted(START + textwrap.dedent(script))
    assert "    model.backward(loss)\n" in found.text
    assert "ds_compat.scale_losses(model, scale=128.0)" in found.text
    assert "amp.scale_loss" not in found.text


@pytest.mark.parametrize("level", ["O2", "O3"])
def test_higher_levels_become_half_precision(level: str) -> None:
    found = converted(START + APEX.replace('"O1"', f'"{level}"'))
    assert found.config["fp16"]["enabled"] is False
    assert "scale_losses" not in found.text
    assert [code for code, _ in found.todos] == ["MG304"]


def test_full_precision_stays() -> None:
    found = converted(START + APEX.replace('"O1"', '"O0"'))
    assert found.status is Status.CONVERTED
    assert not {"fp16", "torch_autocast"} & set(found.config)


def test_an_optimizer_around_another_zeroes_its_gradients() -> None:
    script = """
    from timm.optim import Lookahead
    if args.fp16:
        optimizer = Lookahead(optimizer)
    model = DDP(model)
    for x in loader:
        optimizer.zero_grad()
        model(x).sum().backward()
        optimizer.step()
    """
    found = converted(START + textwrap.dedent(script))
    assert "MG407" not in found.codes(Kind.TODO)
    assert "zero_grad" not in found.text


@pytest.mark.parametrize(
    "loss", ["out.loss", "out.loss / 4", "out.loss.mean()", "nn.functional.cross_entropy(out.logits, x)"]
)
def test_parts_of_what_a_model_gives_are_its_loss(loss: str) -> None:
    script = f"""
    from transformers import GPT2LMHeadModel
    model = GPT2LMHeadModel.from_pretrained("gpt2").cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    model = DDP(model)
    scaler = torch.amp.GradScaler("cuda", enabled=args.fp16)
    for x in loader:
        out = model(x)
        loss = {loss}
        optimizer.zero_grad()
        if args.fp16:
            scaler.scale(loss).backward()
            scaler.step(optimizer)
            scaler.update()
        else:
            loss.backward()
            optimizer.step()
    """
    found = converted(START + textwrap.dedent(script))
    assert found.status is Status.CONVERTED
    assert found.text.count("model.backward(loss)") == 2


def test_a_window_over_one_of_two_numbers_is_known() -> None:
    script = """
    count = args.level if args.fp16 else args.count
    model = DDP(model)
    for index, x in enumerate(loader):
        (model(x).sum() / count).backward()
        if (index + 1) % count == 0:
            optimizer.step()
            optimizer.zero_grad()
    """
    found = converted(
        START.replace('"--level"', '"--count", type=int, default=2)\nparser.add_argument("--level"')
        + textwrap.dedent(script)
    )
    assert "MG407" not in found.codes(Kind.TODO)
    assert "zero_grad" not in found.text


def test_apexs_larc_is_refused() -> None:
    found = converted(
        START
        + "from apex.parallel.LARC import LARC\noptimizer = LARC(optimizer=optimizer)\n"
        + APEX.split("\n", 6)[-1].lstrip()
    )
    assert found.status is Status.REFUSED


LOSSES = {
    "by a module": ("criterion = nn.CrossEntropyLoss()", "loss = criterion(model(x), y)", True),
    "by a function": ("", "loss = nn.functional.cross_entropy(model(x), y)", True),
    "divided": ("", "loss = nn.functional.cross_entropy(model(x), y)\n    loss = loss / 2", True),
    "by the model": ("", "out = model(x, labels=y)\n    loss = out[0]", False),
    "by the model, divided": ("", "loss = model(x, labels=y).loss / 4", False),
}


@pytest.mark.parametrize(("before", "loss", "enclosed"), LOSSES.values(), ids=LOSSES)
def test_a_loss_that_the_model_does_not_give_is_computed_inside_autocast(
    before: str, loss: str, *, enclosed: bool
) -> None:
    script = APEX.replace("loss = model(x).sum()", loss).replace("for x in", f"{before}\nfor x, y in")
    found = converted(START + script)
    assert not found.todos
    region = 'with torch.autocast("cuda", dtype=torch.float16, enabled=args.fp16):'
    assert (region in found.text) is enclosed


@pytest.mark.parametrize("default", ["O0", "O1"])
def test_a_level_that_is_an_option_switches_autocast(default: str) -> None:
    script = (
        (START + APEX).replace('opt_level="O1"', "opt_level=args.level").replace('default="O1"', f'default="{default}"')
    )
    found = converted(script)
    assert 'torch_autocast={"enabled": args.fp16 and args.level == "O1"}' in found.text
    assert 'ds_compat.scale_losses(model, enabled=args.fp16 and args.level == "O1")' in found.text
    assert found.config["torch_autocast"]["enabled"] is False
    said = [change.message for change in found.changes if change.kind is Kind.KEPT and change.code == "MG304"]
    assert said == ["This fits opt_level O0 and O1. For another one set the precision in ds_config.json."]


NATIVE_OR_APEX = """
try:
    from apex import amp
    has_apex = True
except ImportError:
    has_apex = False
has_native = False
try:
    if getattr(torch.cuda.amp, "autocast") is not None:
        has_native = True
except AttributeError:
    pass
from contextlib import suppress
kind, region, scaler = None, suppress, None
if args.fp16 and has_native:
    kind = "native"
elif args.level != "O0" and has_apex:
    kind = "apex"
if kind == "native":
    region = torch.cuda.amp.autocast
elif kind == "apex":
    model, optimizer = amp.initialize(model, optimizer, opt_level="O1")
model = DDP(model)
for x in loader:
    with region():
        loss = model(x).sum()
    optimizer.zero_grad()
    if kind == "apex":
        with amp.scale_loss(loss, optimizer) as scaled:
            scaled.backward()
    else:
        loss.backward()
    optimizer.step()
"""


def test_native_amp_and_apex_are_each_switched_by_what_chose_them() -> None:
    found = converted(START + NATIVE_OR_APEX)
    assert 'torch_autocast={"enabled": args.fp16 or kind == "apex"}' in found.text


def test_a_loss_beside_apex_keeps_the_region_of_native_amp() -> None:
    found = converted(
        START
        + NATIVE_OR_APEX.replace(
            "loss = model(x).sum()", "out = model(x)\n        loss = nn.functional.mse_loss(out, x)"
        )
    )
    assert (
        'with torch.autocast("cuda", dtype=torch.float16, enabled=torch.is_autocast_enabled() or kind == "apex"):'
        in found.text
    )


def test_an_evaluation_of_either_wrapper_is_not_held_against_the_regions_of_the_other() -> None:
    wrapped = """if kind == "apex":
    from apex.parallel import DistributedDataParallel as ApexDDP
    model = ApexDDP(model)
else:
    model = DDP(model)
"""
    evaluation = """
with torch.no_grad():
    for x in loader:
        with region():
            print(model(x))
"""
    script = NATIVE_OR_APEX.replace("model = DDP(model)\n", wrapped).replace(
        "loss = model(x).sum()", "out = model(x)\n        loss = nn.functional.mse_loss(out, x)"
    )
    assert not converted(START + script + evaluation).todos


def test_what_reaches_into_the_scalers_of_apex_is_marked() -> None:
    set_up = '    model, optimizer = amp.initialize(model, optimizer, opt_level="O1")\n'
    line = "    amp._amp_state.loss_scalers[0]._loss_scale = 2**20\n"
    found = converted(START + APEX.replace(set_up, set_up + line))
    assert "no scalers" in found.said("MG304", Kind.TODO).message


def test_gradients_that_are_looked_at_before_the_step_are_scaled_there() -> None:
    clip = "    torch.nn.utils.clip_grad_value_(model.parameters(), 1.0)\n    optimizer.step()"
    found = converted(START + APEX.replace("    optimizer.step()", clip))
    assert "gradients carry the loss scale up to the step" in found.said("MG304", Kind.TODO).message
    assert "ds_compat.scale_losses(model, enabled=args.fp16)" in found.text


def test_a_test_that_an_option_is_given_goes_with_its_value() -> None:
    level = """
if args.level:
    from apex import amp
    model, optimizer = amp.initialize(model, optimizer, opt_level=args.level)
"""
    found = converted(START + level + APEX[APEX.index("model = DDP") :].replace("args.fp16", "args.level"))
    assert 'ds_compat.scale_losses(model, enabled=args.level == "O1")' in found.text


def test_a_scaler_object_that_goes_on_scaling_is_the_only_one() -> None:
    body = NATIVE_OR_APEX.replace(
        '    if kind == "apex":\n'
        "        with amp.scale_loss(loss, optimizer) as scaled:\n            scaled.backward()\n"
        "    else:\n        loss.backward()\n    optimizer.step()\n",
        "    if scaler is not None:\n        scaler(loss, optimizer, parameters=model.parameters())\n"
        "    else:\n        loss.backward()\n        optimizer.step()\n",
    ).replace('opt_level="O1")', 'opt_level="O1")\n    scaler = ApexScaler()')
    body = body.replace(
        "region = torch.cuda.amp.autocast", "region = torch.cuda.amp.autocast\n    scaler = NativeScaler()"
    )
    found = converted(START + "from timm.utils import ApexScaler, NativeScaler\n" + body)
    assert "scaler = ds_compat.EngineScaler(model, scaler)" in found.text
    assert "scale_losses" not in found.text
    assert 'torch_autocast={"enabled": args.fp16 or kind == "apex"}' in found.text
