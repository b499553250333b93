"""DS940: quantization settings without all of their keys."""

from __future__ import annotations

from collections.abc import Iterator

from dsmigrate.document import Object, Path
from dsmigrate.languages import say
from dsmigrate.rules.context import Context, shown
from dsmigrate.rules.model import Effect, Example, Finding, Severity
from dsmigrate.rules.registry import rule

_SECTION = "weight_quantization"
_REQUIRED = ("num_bits", "symmetric", "group_size", "group_dim")


@rule(
    "DS940",
    "weight-quantization-incomplete",
    summary="Settings of `weight_quantization` that lack one of the four keys that the quantizer looks up.",
    why="`num_bits`, `symmetric`, `group_size` and `group_dim` are looked up without a default when the first layer "
    "is quantized: KeyError. Weights quantized under `deepspeed.zero.Init` are expanded only by the wrappers of "
    "`zero_optimization.memory_efficient_linear`.",
    severity=Severity.WARNING,
    effect=Effect.CRASH,
    source=(
        "deepspeed/inference/quantization/utils.py:Quantizer",
        "deepspeed/runtime/zero/partition_parameters.py:Init",
    ),
    since="0.10.3",
    keys=(f"{_SECTION}.quantized_initialization", f"{_SECTION}.post_init_quant"),
    examples=(
        Example(
            """{
  "train_batch_size": 8,
  "zero_optimization": {"stage": 3, "memory_efficient_linear": «false»},
  "weight_quantization": {
    «"quantized_initialization"»: {"num_bits": 4, "group_size": 64, "group_dim": 1},
    "post_init_quant": {«"fc"»: {"num_bits": 8}}
  }
}
""",
            accepted=None,  # DeepSpeed reads the objects only when a model is built under zero.Init
        ),
        Example(
            """{
  "train_batch_size": 8,
  "zero_optimization": {"stage": 3},
  "weight_quantization": {
    "quantized_initialization": {"num_bits": 4, "symmetric": false, "group_size": 64, "group_dim": 1},
    "post_init_quant": {}
  }
}
"""
        ),
    ),
)
def check(context: Context) -> Iterator[Finding]:
    """Yield a finding for each incomplete object, and for weights that are never expanded."""
    section = context.entry(_SECTION)
    if section is None or not isinstance(section.node, Object):
        return
    initial = section.node.get("quantized_initialization")
    if initial is not None and isinstance(initial.node, Object) and initial.node:
        yield from _incomplete(context, (*section.path, "quantized_initialization"), initial.node)
        if context.is_on("zero_optimization.memory_efficient_linear") is False and context.stage == 3:
            yield context.finding(
                "zero_optimization.memory_efficient_linear",
                say(
                    "Without it the weights of {what} are never expanded again",
                    what=shown(f"{_SECTION}.quantized_initialization"),
                ),
            )
    later = section.node.get("post_init_quant")
    if later is not None and isinstance(later.node, Object):
        for member in later.node:
            if member.name is not None and isinstance(member.node, Object):
                yield from _incomplete(context, (*section.path, "post_init_quant", member.name), member.node)


def _incomplete(context: Context, path: Path, settings: Object) -> Iterator[Finding]:
    missing = [name for name in _REQUIRED if settings.get(name) is None]
    if missing:
        yield context.finding(
            path,
            say(
                "The quantizer needs {missing} as well: KeyError at the first layer",
                missing=say(", ").join(f"`{name}`" for name in missing),
            ),
            part="key",
        )
