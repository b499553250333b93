"""Weights in half precision that no ``.half()`` of the script shows train at ZeRO stage 0, as they did under DDP."""

from __future__ import annotations

import pytest

from dsmigrate.codemod.model import Kind
from tests.codemod.checks import Migrated, convert

LOADER = "from transformers import AutoModelForCausalLM"


def made(expression: str, *before: str) -> Migrated:
    return convert(imports=LOADER, wrap="\n".join([*before, f"net = {expression}", "model = DDP(net)", ""]))


@pytest.mark.parametrize(
    "expression",
    [
        'AutoModelForCausalLM.from_pretrained("gpt2", torch_dtype=torch.bfloat16).cuda()',
        'AutoModelForCausalLM.from_pretrained("gpt2", dtype=torch.float16)',
        'AutoModelForCausalLM.from_pretrained("gpt2", torch_dtype="auto")',
        'AutoModelForCausalLM.from_pretrained("gpt2", torch_dtype=torch.bfloat16 if args.amp else torch.float32)',
        'AutoModelForCausalLM.from_pretrained("gpt2", torch_dtype=getattr(torch, args.output))',
        "Net().to(torch.bfloat16)",
        "Net().cuda().to(dtype=torch.half)",
        'Net().to("cuda", torch.float16)',
        "Net().type(torch.bfloat16).cuda()",
        "Net().to(args.weight_dtype)",
    ],
)
def test_half_weights_get_stage_zero(expression: str) -> None:
    migrated = made(expression)
    assert migrated.config["zero_optimization"] == {"stage": 0}
    assert "ZeRO stage 0" in migrated.said("MG311", expression, Kind.KEPT).message


def test_a_dtype_is_followed_to_where_it_is_chosen() -> None:
    migrated = made("Net().to(kind)", "kind = torch.bfloat16 if args.amp else torch.float32")
    migrated.said("MG311", "Net().to(kind)", Kind.KEPT)


@pytest.mark.parametrize(
    "line",
    [
        "torch.set_default_dtype(torch.bfloat16)",
        "torch.set_default_tensor_type(torch.cuda.HalfTensor)",
        'torch.set_default_tensor_type("torch.cuda.HalfTensor")',
    ],
)
def test_a_half_default_gets_stage_zero(line: str) -> None:
    made("Net()", line).said("MG311", line, Kind.KEPT)


def test_a_statement_that_casts_the_model_gets_stage_zero() -> None:
    migrated = convert(wrap="net = Net()\nnet.to(dtype=torch.bfloat16)\nmodel = DDP(net)\n")
    assert migrated.config["zero_optimization"] == {"stage": 0}


def test_a_stage_that_is_asked_for_is_marked() -> None:
    migrated = convert(wrap="model = DDP(Net().to(torch.bfloat16))\n", to={"zero_stage": 2})
    migrated.said("MG311", "torch.bfloat16", Kind.TODO)


@pytest.mark.parametrize(
    "expression",
    [
        "Net().to(torch.float32)",
        'Net().to("cuda")',
        "Net().to(args.device)",
        "Net().to(torch.bfloat16).float()",
        'AutoModelForCausalLM.from_pretrained("gpt2", torch_dtype=torch.float32)',
        'AutoModelForCausalLM.from_pretrained("gpt2", torch_dtype=None)',
    ],
)
def test_float_weights_keep_the_stage(expression: str) -> None:
    migrated = made(expression)
    assert migrated.config["zero_optimization"] == {"stage": 2}
    assert not [c for c in migrated.changes if c.code == "MG311" and "stage 0;" in c.message]


def test_a_model_that_is_made_float_afterwards_keeps_the_stage() -> None:
    migrated = convert(wrap="net = Net().to(torch.bfloat16)\nnet.float()\nmodel = DDP(net)\n")
    assert migrated.config["zero_optimization"] == {"stage": 2}


def test_half_inputs_and_other_models_keep_the_stage() -> None:
    migrated = convert(
        wrap="teacher = Net().to(torch.bfloat16)\nmodel = DDP(Net())\n",
        loop="""
            for x, y in train_loader:
                loss = F.cross_entropy(model(x.to(torch.bfloat16).float()), teacher(x).argmax(-1))
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
            """,
    )
    assert migrated.config["zero_optimization"] == {"stage": 2}
    migrated.silent("MG311")


def test_a_half_model_of_the_config_says_nothing_more() -> None:
    convert(wrap="model = DDP(Net().bfloat16())\n").silent("MG311")


def test_a_precision_of_the_file_is_said() -> None:
    migrated = made('AutoModelForCausalLM.from_pretrained("gpt2")')
    assert "transformers 5" in migrated.said("MG311", "from_pretrained", Kind.KEPT).message
    assert migrated.config["zero_optimization"] == {"stage": 2}


@pytest.mark.parametrize(
    "expression", ["Net().double()", "Net().to(torch.float64)", "Net().cuda().to(dtype=torch.double)"]
)
def test_double_weights_are_marked(expression: str) -> None:
    made(expression).said("MG311", expression, Kind.TODO)


@pytest.mark.parametrize(
    "line", ["torch.set_default_dtype(torch.float64)", "torch.set_default_tensor_type(torch.DoubleTensor)"]
)
def test_a_double_default_is_marked(line: str) -> None:
    made("Net()", line).said("MG311", line, Kind.TODO)


def test_what_is_loaded_behind_the_training_says_nothing() -> None:
    end = 'model = AutoModelForCausalLM.from_pretrained("out", torch_dtype=torch.bfloat16)\n'
    convert(imports=LOADER, end=end).silent("MG311")


def test_a_model_that_is_a_part_of_what_is_loaded_gets_stage_zero() -> None:
    load = 'pipeline = Pipeline.from_pretrained("sd", torch_dtype=torch.float16)'
    wrap = f"{load}\nnet = pipeline.transformer\ndecoder = pipeline.vae\nmodel = DDP(net.cuda())\n"
    migrated = convert(imports="from diffusers import Pipeline", wrap=wrap)
    assert migrated.config["zero_optimization"] == {"stage": 0}
    migrated.said("MG311", load, Kind.KEPT)


def test_another_part_of_what_is_loaded_keeps_the_stage() -> None:
    wrap = (
        'pipeline = Pipeline.from_pretrained("sd", torch_dtype=torch.float16)\n'
        "decoder = pipeline.vae\nmodel = DDP(Net().cuda())\n"
    )
    convert(imports="from diffusers import Pipeline", wrap=wrap).silent("MG311")
