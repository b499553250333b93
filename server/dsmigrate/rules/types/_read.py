"""Values of keys that DeepSpeed reads without pydantic: what refuses them, sooner or later."""

from __future__ import annotations

from dsmigrate.knowledge import AutoEffect, Consumer, Key
from dsmigrate.knowledge.wording import json_text, range_text
from dsmigrate.languages import mark, say
from dsmigrate.rules.batch._shared import predivides
from dsmigrate.rules.consumer._shared import is_effective
from dsmigrate.rules.context import Context
from dsmigrate.rules.model import Effect
from dsmigrate.rules.types._values import in_range, is_int, is_listed, kinds_of, wanted_text
from dsmigrate.rules.types._verdict import Kind, Verdict

SCALE = frozenset({"fp16.loss_scale", "fp16.loss_scale_window", "fp16.min_loss_scale"})
"""Keys with validators of their own (DeepSpeed 0.19.3): no booleans, limits that hold for dynamic scaling alone."""
BATCH = frozenset({"train_batch_size", "train_micro_batch_size_per_gpu", "gradient_accumulation_steps"})
"""Their arithmetic, limits included, belongs to the batch rules."""
_ENGINE = frozenset(
    {
        "log_level",
        "data_types.buffer_dtype",
        "data_types.grad_accum_dtype",
        "data_types.param_dtype",
        "scheduler.type",
    }
)
"""Plain reads that the engine refuses when it is built, as far as they are used then."""
_STEP = frozenset({"gradient_clipping", "steps_per_print"})
"""Plain reads of numbers that every training uses at its first step."""
_INDEXES = frozenset({"flops_profiler.module_depth", "flops_profiler.top_modules"})
_ALIGNS = "aio.intra_op_parallelism"
"""What sizes are divided by; the other numbers for the handle of I/O only have to be C integers."""
_LOOSE_ITEMS = frozenset({"comms_logger.prof_ops", "tensor_parallel.injection_policy_tuple"})
_NAMES = {
    "data_types.keep_in_fp32_modules": mark('a list of strings, or "auto"'),
    "torch_autocast.lower_precision_safe_modules": mark("a list of strings"),
}
"""Lists of names that DeepSpeed looks through when it reads the config."""
_NOT_EMPTY = frozenset({"autotuning.results_dir", "autotuning.exps_dir"})
"""Paths whose emptiness the rule about the autotuner's directories tells."""


def strict(key: Key, value: object) -> Verdict | None:
    """Judge a plain read that still refuses some values."""
    wanted = wanted_text(key)
    fits = not kinds_of(value).isdisjoint(key.type)
    if key.enum:
        if fits and (value is None or is_listed(key, value)):
            return None
        return Verdict(Kind.LISTED if isinstance(value, str) else Kind.TYPE, Effect.REJECTED, wanted)
    limited = bool(range_text(key)) and key.path not in BATCH
    if limited and isinstance(value, int | float) and not isinstance(value, bool) and not in_range(key, value):
        return Verdict(Kind.RANGE, Effect.REJECTED, wanted)
    if fits:
        return items(key, value) if isinstance(value, list) else None
    if key.path == "vocabulary_size" and not value:
        return None
    if key.path == "checkpoint.parallel_write.pipeline_stage":
        return None if value in (0, 1) else Verdict(Kind.TYPE, Effect.REJECTED, wanted)
    if "boolean" in key.type and isinstance(value, int):
        return Verdict(Kind.TRUTHY, Effect.MISREAD, wanted) if value not in (0, 1) else None
    if set(key.type) & {"integer", "number"}:
        if isinstance(value, bool | float):
            return Verdict(Kind.NUMBER, Effect.MISREAD, wanted)
        if isinstance(value, str) and key.path.startswith("data_efficiency.") and is_int(value):
            return Verdict(Kind.COERCED, Effect.MISREAD, wanted)
    return Verdict(Kind.TYPE, Effect.REJECTED, wanted)


def plain(context: Context, key: Key, value: object) -> Verdict | None:
    """Judge a read that takes whatever stands there."""
    wanted = wanted_text(key)
    if not key.type or not kinds_of(value).isdisjoint(key.type):
        return _plain_value(context, key, value, wanted)
    if key.path in _NOT_EMPTY and not value:
        return None
    if _is_engine_s(context, key) or (key.path == "scheduler.params" and context.type_of("scheduler") is not None):
        return Verdict(Kind.TYPE, Effect.REJECTED, wanted)
    if key.path in _NAMES:
        refused = not isinstance(value, str | dict) or key.path == "data_types.keep_in_fp32_modules"
        return Verdict(
            Kind.TYPE if refused else Kind.OTHER, Effect.REJECTED if refused else Effect.MISREAD, say(_NAMES[key.path])
        )
    kinds = set(key.type)
    if "boolean" in kinds:
        harmless = value in (0, 1) or (value is None and not key.default)
        if harmless and not isinstance(value, str):
            return None
        stops = isinstance(value, str | list | dict) and _stops_on_text(context, key)
        return Verdict(Kind.TRUTHY, Effect.CRASH if stops else Effect.MISREAD, wanted)
    if kinds & {"integer", "number"}:
        stops = (
            (key.path == "steps_per_print" and value is False)
            or _stops_profiler(context, key, value)
            or (key.path.startswith("aio.") and (isinstance(value, float) or (value is False and key.path == _ALIGNS)))
        )
        if isinstance(value, bool | float) and not stops:
            return Verdict(Kind.NUMBER, Effect.MISREAD, wanted)
        return Verdict(Kind.NUMBER, _number_effect(context, key), wanted)
    if value is None:
        return None if key.default is None else Verdict(Kind.OTHER, Effect.MISREAD, wanted)
    return Verdict(Kind.OTHER, Effect.CRASH if _stops_profiler(context, key, value) else Effect.MISREAD, wanted)


def _plain_value(context: Context, key: Key, value: object, wanted: str) -> Verdict | None:
    if isinstance(value, list):
        if key.path in _NAMES and not all(isinstance(item, str) for item in value):
            return Verdict(Kind.ITEM, Effect.REJECTED, say(_NAMES[key.path]))
        return items(key, value, checked=False)
    if key.enum and value is not None and not is_listed(key, value):
        return Verdict(Kind.LISTED, Effect.REJECTED if _is_engine_s(context, key) else Effect.MISREAD, wanted)
    if isinstance(value, int | float) and not isinstance(value, bool) and key.path not in BATCH | SCALE:
        return None if in_range(key, value) else Verdict(Kind.RANGE, Effect.MISREAD, wanted)
    return None


def _is_engine_s(context: Context, key: Key) -> bool:
    return key.path in _ENGINE and is_effective(context, key, ()) is not False


def _stops_profiler(context: Context, key: Key, value: object) -> bool:
    """Return whether the profile fails on a fraction for an index, or on what is no path."""
    index = key.path in _INDEXES and isinstance(value, float)
    path = key.path == "flops_profiler.output_file" and bool(value)
    return (index or path) and bool(context.is_on("flops_profiler.enabled"))


def _number_effect(context: Context, key: Key) -> Effect:
    if key.path == "gradient_predivide_factor":
        return Effect.CRASH if predivides(context) else Effect.MISREAD
    if key.path in _STEP:
        return Effect.CRASH
    if key.path == "flops_profiler.profile_step" and context.is_on("flops_profiler.enabled"):
        return Effect.CRASH
    return Effect.CRASH if _stops_on_text(context, key) else Effect.MISREAD


def _stops_on_text(context: Context, key: Key) -> bool:
    """Return whether a text at a key that is in use, as "auto" is one, fails where DeepSpeed comes to use it."""
    stops = key.auto(Consumer.DEEPSPEED).effect is AutoEffect.ENGINE_ERROR
    return stops and bool(is_effective(context, key, ()))


def items(key: Key, value: list[object], *, checked: bool = True) -> Verdict | None:
    if key.item_enum and any(item not in key.item_enum for item in value):
        names = say(", ").join(json_text(item) for item in key.item_enum)
        return Verdict(Kind.ITEM, Effect.REJECTED, say("a list of {names}", names=names))
    kinds = set(key.items) - {"any"}
    if not kinds or all(kinds_of(item) & kinds for item in value):
        return None
    refused = checked and key.path not in _LOOSE_ITEMS
    return Verdict(Kind.ITEM, Effect.REJECTED if refused else Effect.MISREAD, wanted_text(key))
