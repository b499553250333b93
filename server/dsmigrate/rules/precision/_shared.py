"""The training mode as DeepSpeed takes it from ``fp16``, ``bf16`` and the old name ``bfloat16``."""

from __future__ import annotations

from dsmigrate.document import Path
from dsmigrate.knowledge import Consumer, Status
from dsmigrate.rules.context import Context, Entry

FP16 = "fp16.enabled"
BF16 = "bf16.enabled"
DYNAMIC = "fp16.loss_scale"
AUTOCAST = "torch_autocast.enabled"
ACCUMULATION = "data_types.grad_accum_dtype"

_SHORT = {"half": "fp16", "float16": "fp16", "float": "fp32", "float32": "fp32", "bfloat16": "bf16"}
_YES = frozenset({"true", "1", "yes", "on", "y", "t"})


def bf16_section(context: Context) -> str:
    """Return the section that is read: ``bf16``, or ``bfloat16`` where that is absent or null.

    Transformers and Accelerate add ``bf16`` where it is absent.
    """
    return context.once(bf16_section, lambda: _bf16_section(context))


def _bf16_section(context: Context) -> str:
    if context.consumer is not Consumer.DEEPSPEED:
        return "bf16"
    new = context.document.node_at(("bf16",))
    missing = new is None or new.value() is None
    return "bfloat16" if missing and context.document.node_at(("bfloat16",)) is not None else "bf16"


def bf16_path(context: Context, name: str) -> Path:
    """Return the path of a key of the bf16 section, in the spelling that DeepSpeed reads."""
    return bf16_section(context), name


def bf16_is_on(context: Context, name: str = "enabled") -> bool | None:
    """Return whether a switch of the bf16 section is on; None when the consumer decides."""
    if bf16_section(context) == "bf16":
        return context.is_on(f"bf16.{name}")
    node = context.document.node_at(("bfloat16", name))
    value = node.value() if node is not None else None
    return value.lower() in _YES if isinstance(value, str) else bool(value)


def mode(context: Context) -> str | None:
    """Return the format of the weights: "fp16", "bf16" or "fp32"; None when the consumer decides."""
    half, brain = context.is_on(FP16), bf16_is_on(context)
    if half is None or brain is None:
        return None
    return "fp16" if half else "bf16" if brain else "fp32"


def dtype(value: object) -> str | None:
    """Return the short name of a format ("torch.bfloat16" is "bf16"); None for no text."""
    if not isinstance(value, str):
        return None
    bare = value.removeprefix("torch.")
    return _SHORT.get(bare, bare)


def scales(context: Context) -> bool:
    """Return whether fp16 runs with a dynamic loss scale for certain."""
    return bool(context.is_on(FP16)) and context.number(DYNAMIC) == 0


def offloads(context: Context) -> bool | None:
    """Return whether the optimizer lives outside the GPU; None when unknown."""
    device = context.device("offload_optimizer")
    return None if device is None else device != "none"


def uses_bf16_optimizer(context: Context) -> bool:
    """Return whether stage 1 takes ``BF16_Optimizer`` instead of its own: bf16 weights, fp32 sums, no CPU offload."""
    return (
        context.stage == 1
        and mode(context) == "bf16"
        and dtype(context.value(ACCUMULATION)) == "fp32"
        and context.device("offload_optimizer") not in {None, "cpu"}
    )


def given(context: Context, path: str) -> Entry | None:
    """Return the member that gives a key which this release reads; None for none."""
    entry = context.entry(path)
    reads = entry is not None and entry.key is not None and entry.key.status in {Status.PRESENT, Status.DEPRECATED}
    return entry if reads else None


FP16_MASTERS = "fp16.fp16_master_weights_and_grads"
BF16_MASTERS = "bf16.bf16_master_weights_and_grads"
BF16_STATES = "bf16.bf16_optimizer_states"
MASTERS = (FP16_MASTERS, BF16_MASTERS, BF16_STATES)


def low_masters(context: Context) -> frozenset[str]:
    """Return which of the switches for low-precision masters and states this release has and the file turns on."""
    return context.once(
        low_masters,
        lambda: frozenset(key for key in MASTERS if _is_read(context, key) and _is_switched_on(context, key)),
    )


def master_path(context: Context, key: str) -> Path:
    """Return the path of one of the switches in the spelling of the file."""
    section, _, name = key.partition(".")
    return (section, name) if section == "fp16" else bf16_path(context, name)


def _is_read(context: Context, path: str) -> bool:
    key = context.known.key(path)
    return key is not None and key.status in {Status.PRESENT, Status.DEPRECATED}


def _is_switched_on(context: Context, path: str) -> bool:
    section, _, name = path.partition(".")
    if section != "fp16":
        return bool(bf16_is_on(context, name))
    key = context.known.key(path)
    if key is not None and not key.is_checked and not context.is_on(FP16):
        return False  # a plain read, made only while fp16 is on
    return bool(context.is_on(path))


CPU_ADAM = "DeepSpeedCPUAdam"


def zenflow_is_on(context: Context) -> bool:
    """Return whether the file has a section for ZenFlow; an empty one switches it on too."""
    return isinstance(context.raw("zero_optimization.zenflow"), dict)


def refused_masters(context: Context) -> str | None:
    """Return the switch for low-precision masters whose optimizer cannot be DeepSpeedCPUAdam; None when all is well."""
    on, away = low_masters(context), offloads(context)
    if not context.stage or away is None or uses_bf16_optimizer(context) or {FP16_MASTERS, BF16_MASTERS} <= on:
        return None
    key = next((key for key in (FP16_MASTERS, BF16_MASTERS) if key in on), None)
    if (key == BF16_MASTERS and BF16_STATES in on and not away) or (away and _may_be_cpu_adam(context)):
        return None
    return key


def _may_be_cpu_adam(context: Context) -> bool:
    """Return whether the optimizer may be DeepSpeedCPUAdam; one that the script makes may, ZenFlow's own is none."""
    if not context.has("optimizer.type"):
        return True
    if zenflow_is_on(context):
        return False
    facts = context.type_of("optimizer")
    return facts is None or (
        any(name.startswith(f"{CPU_ADAM} ") for name in facts.builds) and not context.raw("optimizer.params.torch_adam")
    )
