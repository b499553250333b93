"""MG518: parameters that DeepSpeed 0.19.8 cannot send to the ranks are sent before the engine is made."""

from __future__ import annotations

import re

import libcst as cst

from dsmigrate.codemod import targets
from dsmigrate.codemod.model import Idea, Kind
from dsmigrate.codemod.names import dotted
from dsmigrate.codemod.plan import Plan
from dsmigrate.codemod.steps.clipping import engine_clips
from dsmigrate.codemod.steps.grad_norm import keep_known
from dsmigrate.codemod.steps.written_parameters import written_parameters
from dsmigrate.codemod.tree import descendants

IDEAS = (
    Idea(
        "MG518",
        "Parameters without dimensions, or in channels_last, are sent by the script",
        "deepspeed.initialize stops at them in 0.19.8; rank 0's are sent before, and the engine is told to leave them out.",
        "0.19.8 sends every parameter as bytes, `p.data.view(torch.uint8)`, which torch refuses where there is no dimension (the "
        "logit scale of CLIP) or where the last one is not dense (convolutions in channels_last). At ZeRO 0 its own clipping "
        "refuses gradients without dimensions too, so that torch's takes its place. At ZeRO 3 partitioning does the same.",
        "deepspeed/runtime/engine.py, _broadcast_model; deepspeed/runtime/utils.py, clip_grad_norm_; run on two processes, ZeRO 0-3",
        Kind.CONVERTED,
    ),
)

_SCALAR = re.compile(
    r"\btorch\.(?:(?:ones|zeros|empty|rand|randn|full)\(\s*(?:size\s*=\s*)?(?:\[\s*\]|\(\s*\))"
    r"|(?:scalar_|as_)?tensor\((?!\s*[\[(]))"
)
"""What makes a tensor without dimensions."""
_GIVES_DIMENSIONS = re.compile(r"\.(?:view|reshape|repeat|expand|unsqueeze)\(")
_KNOWN = re.compile(r"\bopen_clip\b|\bclip\.load\(|\bCLIPModel\b")
"""Models that hold such a parameter."""


def has_scalars(text: str) -> bool:
    """Whether a file makes a parameter without dimensions, on however many lines, or a model that is known to hold one."""
    if _KNOWN.search(text):
        return True
    return any(_is_scalar(inner) for inner in written_parameters(text))


def _is_scalar(text: str) -> bool:
    tensor = _SCALAR.search(text)
    return tensor is not None and not _GIVES_DIMENSIONS.search(text, tensor.end())


_HELPER = '''def send_odd_parameters(model):
    """Send rank 0's parameters that DeepSpeed 0.19.8 cannot: without dimensions, or not dense in the last one."""
    if not torch.distributed.is_initialized():
        deepspeed.init_distributed()
    for parameter in model.parameters():
        if parameter.dim() == 0 or parameter.stride(-1) != 1:
            data = parameter.data.contiguous()
            if data.device.type == "cpu":
                data = data.to(deepspeed.get_accelerator().current_device_name())
            torch.distributed.broadcast(data, src=0)
            parameter.data.copy_(data)
            parameter.ds_optim_param = True  # deepspeed.initialize leaves those out of what it sends
'''


def run(plan: Plan) -> None:
    """Send what the engine cannot, where the model may hold such parameters; runs when the config is known."""
    site = plan.site
    assert site is not None
    scalars, strided = any(map(has_scalars, plan.facts["texts"])), _in_channels_last(plan)
    if scalars and plan.zero_stage == 0 and engine_clips(plan):
        plan.need("torch")
        keep_known(plan)
    if not (scalars or strided) or not targets.holds("sent_as_bytes", plan.options.target_version):
        return
    what = "parameters without dimensions" if scalars else "convolutions in channels_last"
    where = plan.wraps[0].statement if plan.wraps else site.anchor
    if plan.zero_stage == 3:
        plan.todo("MG518", where, f"DeepSpeed 0.19.8 stops at {what} at ZeRO 3: give them one dimension that is dense, or choose another stage",
                  _WHY)  # fmt: skip
        return
    plan.need("torch")
    plan.helpers.append(_HELPER)
    plan.facts["odd_parameters"] = [f"send_odd_parameters({site.model})"]
    plan.converted("MG518", where, f"{what}, if the model has some, are sent before the engine is made", _WHY)


_WHY = "deepspeed.initialize sends parameters as bytes, which torch refuses for these"


def _in_channels_last(plan: Plan) -> bool:
    """Whether ``torch.channels_last`` is named: by a ``.to`` of the model, not by a layer for what passes it."""
    return any(
        isinstance(sub, cst.Attribute) and dotted(sub) == "torch.channels_last"
        for statement in plan.tree.statements
        if not isinstance(statement.node, cst.BaseCompoundStatement) and statement.function.name != "forward"
        for sub in descendants(statement.node)
    )
