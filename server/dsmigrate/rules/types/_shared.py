"""What DeepSpeed makes of a value: one verdict for each key, so that no two rules tell the same."""

from __future__ import annotations

import enum
import functools
import json
import math
from collections.abc import Iterator
from dataclasses import dataclass

from dsmigrate.document import Node, Object, Path, Scalar
from dsmigrate.document.edits import Spelling
from dsmigrate.knowledge import AutoEffect, Consumer, Key, Status
from dsmigrate.knowledge.near import nearest
from dsmigrate.knowledge.versions import order
from dsmigrate.knowledge.wording import json_text, range_text, type_text
from dsmigrate.rules.batch._shared import predivides
from dsmigrate.rules.consumer._shared import is_effective
from dsmigrate.rules.context import Context, Entry, shown
from dsmigrate.rules.model import Effect, Fix, Severity
from dsmigrate.rules.text._shared import LITERALS, meant

SCALE = frozenset({"fp16.loss_scale", "fp16.loss_scale_window", "fp16.min_loss_scale"})
"""Keys with validators of their own (DeepSpeed 0.19.3): no booleans, limits that hold for dynamic scaling alone."""
SCALE_SINCE = "0.19.3"
LOSS_SCALE_SINCE = "0.18.8"
"""The validator of ``fp16.loss_scale`` came before the others."""
PYDANTIC_2_SINCE = "0.15.0"
"""Before it DeepSpeed was on pydantic 1, which converts more: 2.5 to the integer 2, any number to a string."""
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
_LOOSE_ITEMS = frozenset({"comms_logger.prof_ops", "tensor_parallel.injection_policy_tuple"})
_NAMES = {
    "data_types.keep_in_fp32_modules": 'a list of strings, or "auto"',
    "torch_autocast.lower_precision_safe_modules": "a list of strings",
}
"""Lists of names that DeepSpeed looks through when it reads the config."""
_NOT_EMPTY = frozenset({"autotuning.results_dir", "autotuning.exps_dir"})
"""Paths whose emptiness the rule about the autotuner's directories tells."""
_MODELS_IN_MODELS = ("comet", "csv_monitor", "tensorboard", "wandb", "zero_optimization.", "weight_quantization.")
"""Sections for which pydantic 1 took anything that ``dict`` takes."""
_RAW = frozenset({"tensor_parallel.autotp_size"})
"""Checked keys that the engine reads again from the file itself, where a string is still one."""
_ON = frozenset({"true", "yes", "on", "t", "y", "1"})
_OFF = frozenset({"false", "no", "off", "f", "n", "0"})
_HERE = frozenset({Status.PRESENT, Status.DEPRECATED})


class Kind(enum.Enum):
    """What is the matter with a value; each belongs to one rule."""

    SECTION = "section"
    UNSETTABLE = "unsettable"
    TYPE = "type"
    ITEM = "item"
    LISTED = "listed"
    RANGE = "range"
    COERCED = "coerced"
    TRUTHY = "truthy"
    NUMBER = "number"
    OTHER = "other"


@dataclass(frozen=True, slots=True)
class Verdict:
    """A kind of mistake with what comes of it; ``wanted`` says in words what belongs there."""

    kind: Kind
    effect: Effect
    wanted: str

    @property
    def severity(self) -> Severity:
        """An error where training cannot start or go on."""
        return Severity.ERROR if self.effect in {Effect.REJECTED, Effect.CRASH} else Severity.WARNING


def verdicts(context: Context, *kinds: Kind) -> Iterator[tuple[Entry, Key, Node, Verdict]]:
    """Yield the members whose value is a mistake of one of ``kinds``; strings that other rules explain are left out."""
    for found in context.once(verdicts, lambda: tuple(_verdicts(context))):
        if found[-1].kind in kinds:
            yield found


def _verdicts(context: Context) -> Iterator[tuple[Entry, Key, Node, Verdict]]:
    for entry in context.entries:
        node, key = entry.node, entry.key
        if node is None or key is None or (isinstance(node, Scalar) and meant(node) is not None):
            continue
        verdict = judge(context, entry)
        if verdict is not None:
            yield entry, key, node, verdict


def judge(context: Context, entry: Entry) -> Verdict | None:
    """Return what is wrong with the value of a member; None when nothing is, or when nobody can know.

    Every rule of the family asks; the answer is worked out once.
    """
    return context.once((judge, entry.path, entry.member.start), lambda: _judged(context, entry))


def _judged(context: Context, entry: Entry) -> Verdict | None:
    key, node = entry.key, entry.node
    if key is None or node is None or entry.is_parameter or key.status not in _HERE or is_shadowed(context, entry.path):
        return None
    value = node.value()
    if (value == "auto" and not _is_kept_section(context, key)) or context.is_overwritten(key.path):
        return None
    if key.path == "allgather_size" and context.raw("zero_optimization") is True:
        moved = context.known.key("zero_optimization.allgather_bucket_size")
        key = key if moved is None else moved
    if key.is_section or key.alias_of is not None:
        return _section(context, key, node, value)
    if key.is_checked and key.rejects_wrong_values:
        return _checked(context, key, value)
    rejects = key.rejects_wrong_values and context.holds(key.rejects_when) is not False
    return _strict(key, value) if rejects else _plain(context, key, value)


def _is_kept_section(context: Context, key: Key) -> bool:
    """Return whether "auto" stands for a whole section and nobody drops it; the other consumers refuse it by name."""
    section = key.is_section or key.alias_of is not None
    return section and not context.drops_auto(key) and context.consumer is Consumer.DEEPSPEED


def is_shadowed(context: Context, path: Path) -> bool:
    """Return whether a path lies in ``bfloat16`` while ``bf16`` is there, be it that the consumer adds it.

    DeepSpeed does not look at it then.
    """
    if not path or not isinstance(path[0], str) or context.root is None:
        return False
    key = context.known.key(path[0])
    if key is None or key.alias_of is None:
        return False
    if context.is_overwritten(f"{key.alias_of}.enabled"):
        return True
    other = context.root.get(key.alias_of)
    return other is not None and other.node is not None and other.node.value() is not None


def _section(context: Context, key: Key, node: Node, value: object) -> Verdict | None:
    kinds = set(key.type)
    if isinstance(node, Object) or not kinds.isdisjoint(kinds_of(value)):
        return (
            None if not isinstance(node, Object) or "object" in kinds else Verdict(Kind.OTHER, Effect.IGNORED, "a list")
        )
    wanted = "an object in braces" if "object" in kinds else "a list"
    if key.path == "expert_parallel" and not value:
        return None
    if value in ("", []) and _is_pydantic_1(context) and key.path.startswith(_MODELS_IN_MODELS):
        return None
    untouched = (
        not _is_opened(context, key) or "array" in kinds or (key.path == "timers" and isinstance(value, str | list))
    )
    if untouched or (key.path == "optimizer.params" and context.type_of("optimizer") is None):
        return Verdict(Kind.SECTION, Effect.IGNORED, wanted)
    return Verdict(Kind.SECTION, Effect.REJECTED, wanted)


def _is_opened(context: Context, key: Key) -> bool:
    return key.opened_when is not None and context.holds(key.opened_when) is not False


def _checked(context: Context, key: Key, value: object) -> Verdict | None:
    """Judge a field of a pydantic model."""
    wanted = wanted_text(key)
    if key.path == "tensor_parallel.dtype":
        return Verdict(Kind.UNSETTABLE, Effect.REJECTED, "nothing")
    if {"integer", "string"} <= set(key.type) and isinstance(value, str):
        return Verdict(Kind.TYPE, Effect.REJECTED, f'{wanted}, or "auto"')
    taken = None if _is_refused_scale(context, key, value) else _taken(context, key, value)
    if taken is None:
        kind = Kind.LISTED if key.enum and kinds_of(value) & set(key.type) else Kind.TYPE
        return Verdict(kind, Effect.REJECTED, wanted)
    read = taken[0]
    if isinstance(read, list):
        return _items(key, read)
    found = _limits(context, key, read, wanted)
    if found is None and key.path in _RAW and isinstance(value, str):
        return Verdict(Kind.TYPE, Effect.REJECTED, wanted)
    if found is None and kinds_of(value).isdisjoint(key.type):
        return Verdict(Kind.COERCED, Effect.MISREAD, wanted)
    return found


def _limits(context: Context, key: Key, read: object, wanted: str) -> Verdict | None:
    """Judge what pydantic read by the closed list and the range of its key."""
    if key.enum and read is not None and not is_listed(key, read):
        if key.takes_values_not_listed:
            return Verdict(Kind.LISTED, Effect.MISREAD, wanted)
        refused = key.rejects_values_not_listed or key.path == "zero_optimization.zenflow.select_strategy"
        return Verdict(Kind.LISTED, Effect.REJECTED if refused else Effect.CRASH, wanted)
    if not isinstance(read, int | float) or in_range(key, read) or not range_text(key):
        return None
    if key.path in SCALE and key.type == ("integer",) and not (_has_scale_limits(context) and _is_dynamic(context)):
        return None
    return Verdict(Kind.RANGE, Effect.REJECTED, wanted)


def _is_refused_scale(context: Context, key: Key, value: object) -> bool:
    """Return whether the validators of the loss scale refuse a value before pydantic converts it."""
    since = LOSS_SCALE_SINCE if key.path == "fp16.loss_scale" else SCALE_SINCE
    if key.path not in SCALE or order(context.known.version) < order(since):
        return False
    return isinstance(value, bool) or (key.type == ("integer",) and isinstance(value, str) and not _is_int(value))


def _has_scale_limits(context: Context) -> bool:
    return order(context.known.version) >= order(SCALE_SINCE)


def _strict(key: Key, value: object) -> Verdict | None:
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
        return _items(key, value) if isinstance(value, list) else None
    if key.path == "vocabulary_size" and not value:
        return None
    if key.path == "checkpoint.parallel_write.pipeline_stage":
        return None if value in (0, 1) else Verdict(Kind.TYPE, Effect.REJECTED, wanted)
    if "boolean" in key.type and isinstance(value, int):
        return Verdict(Kind.TRUTHY, Effect.MISREAD, wanted) if value not in (0, 1) else None
    if set(key.type) & {"integer", "number"}:
        if isinstance(value, bool | float):
            return Verdict(Kind.NUMBER, Effect.MISREAD, wanted)
        if isinstance(value, str) and key.path.startswith("data_efficiency.") and _is_int(value):
            return Verdict(Kind.COERCED, Effect.MISREAD, wanted)
    return Verdict(Kind.TYPE, Effect.REJECTED, wanted)


def _plain(context: Context, key: Key, value: object) -> Verdict | None:
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
            Kind.TYPE if refused else Kind.OTHER, Effect.REJECTED if refused else Effect.MISREAD, _NAMES[key.path]
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
            or (key.path.startswith("aio.") and isinstance(value, float))
        )
        if isinstance(value, bool | float) and not stops:
            return Verdict(Kind.NUMBER, Effect.MISREAD, wanted)
        return Verdict(Kind.NUMBER, _number_effect(context, key), wanted)
    if value is None:
        return None if key.default is None else Verdict(Kind.OTHER, Effect.MISREAD, wanted)
    return Verdict(Kind.OTHER, Effect.CRASH if _stops_profiler(context, key, value) else Effect.MISREAD, wanted)


def _stops_profiler(context: Context, key: Key, value: object) -> bool:
    """Return whether the profile fails on a fraction for an index, or on what is no path."""
    index = key.path in _INDEXES and isinstance(value, float)
    path = key.path == "flops_profiler.output_file" and bool(value)
    return (index or path) and bool(context.is_on("flops_profiler.enabled"))


def _is_engine_s(context: Context, key: Key) -> bool:
    return key.path in _ENGINE and is_effective(context, key, ()) is not False


def _plain_value(context: Context, key: Key, value: object, wanted: str) -> Verdict | None:
    if isinstance(value, list):
        if key.path in _NAMES and not all(isinstance(item, str) for item in value):
            return Verdict(Kind.ITEM, Effect.REJECTED, _NAMES[key.path])
        return _items(key, value, checked=False)
    if key.enum and value is not None and not is_listed(key, value):
        return Verdict(Kind.LISTED, Effect.REJECTED if _is_engine_s(context, key) else Effect.MISREAD, wanted)
    if isinstance(value, int | float) and not isinstance(value, bool) and key.path not in BATCH | SCALE:
        return None if in_range(key, value) else Verdict(Kind.RANGE, Effect.MISREAD, wanted)
    return None


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


def _items(key: Key, value: list[object], *, checked: bool = True) -> Verdict | None:
    if key.item_enum and any(item not in key.item_enum for item in value):
        names = ", ".join(json_text(item) for item in key.item_enum)
        return Verdict(Kind.ITEM, Effect.REJECTED, f"a list of {names}")
    kinds = set(key.items) - {"any"}
    if not kinds or all(kinds_of(item) & kinds for item in value):
        return None
    refused = checked and key.path not in _LOOSE_ITEMS
    return Verdict(Kind.ITEM, Effect.REJECTED if refused else Effect.MISREAD, wanted_text(key))


def _is_dynamic(context: Context) -> bool:
    return bool(context.is_on("fp16.enabled")) and context.number("fp16.loss_scale") == 0


def kinds_of(value: object) -> set[str]:
    """Return the JSON types a value belongs to: 3 and 3.0 are an integer and a number."""
    if isinstance(value, bool):
        return {"boolean"}
    if isinstance(value, int) or (isinstance(value, float) and value.is_integer()):
        return {"integer", "number"}
    names: tuple[tuple[type, str], ...] = ((float, "number"), (str, "string"), (list, "array"), (dict, "object"))
    return next(({name} for kind, name in names if isinstance(value, kind)), {"null"})


def _is_pydantic_1(context: Context) -> bool:
    return order(context.known.version) < order(PYDANTIC_2_SINCE)


def _taken(context: Context, key: Key, value: object) -> list[object] | None:
    """Return what pydantic reads, in a list, or None when it refuses."""
    if not _is_pydantic_1(context):
        return next((taken for kind in key.type if (taken := _coerced(kind, value))), None)
    if key.enum and value is not None:
        return [value] if is_listed(key, value) else None
    return next((taken for kind in key.type if (taken := _coerced_1(key, kind, value))), None)


def _coerced_1(key: Key, kind: str, value: object) -> list[object]:
    """Return what pydantic 1 makes of a value for a JSON type, or nothing when it refuses."""
    if kind == "integer" and isinstance(value, bool | int | float | str):
        try:
            return [int(value)]
        except (ValueError, OverflowError):
            return []
    if kind == "string" and isinstance(value, int | float) and key.name != "nvme_path":
        return [str(value)]
    if kind == "object" and value in ("", []):
        return [{}]
    return _coerced(kind, value)


def _coerced(kind: str, value: object) -> list[object]:
    """Return what pydantic makes of a value for a JSON type, or nothing when it refuses."""
    if kind == "null":
        return [None] if value is None else []
    if kind == "boolean":
        return [read for read in (as_boolean(value),) if read is not None]
    if kind == "integer":
        return [read for read in (_as_integer(value),) if read is not None]
    if kind == "number":
        read = as_number(value)
        return [] if read is None else [read]
    return [value] if kind in kinds_of(value) else []


def as_boolean(value: object) -> bool | None:
    """Return what pydantic reads as a boolean."""
    if isinstance(value, int | float):
        return bool(value) if value in (0, 1) else None
    if isinstance(value, str) and value.lower() in _ON | _OFF:
        return value.lower() in _ON
    return None


def _as_integer(value: object) -> int | None:
    if isinstance(value, bool | int):
        return int(value)
    if isinstance(value, float):
        return int(value) if value.is_integer() and abs(value) < 2**63 else None
    if isinstance(value, str):
        text = value.strip().replace("_", "")
        whole, dot, rest = text.partition(".")
        return int(whole) if _is_int(whole) and (not dot or set(rest) <= {"0"}) else None
    return None


def as_number(value: object) -> float | int | None:
    """Return what pydantic reads as a number."""
    if isinstance(value, bool | int | float):
        return value
    if isinstance(value, str):
        try:
            return float(value)
        except ValueError:
            return None
    return None


def _is_int(text: str) -> bool:
    try:
        int(text)
    except ValueError:
        return False
    return True


def is_listed(key: Key, value: object) -> bool:
    """Return whether a value is in the closed list of a key."""
    if key.ignores_case and isinstance(value, str):
        return value.lower() in {str(item).lower() for item in key.enum}
    return any(value == item and isinstance(value, str) is isinstance(item, str) for item in key.enum)


def in_range(key: Key, value: float) -> bool:
    """Return whether a number lies in the range of a key; NaN and the infinities lie in none.

    Where a release has a limit as an inclusive and an exclusive one, the inclusive one is its own.
    """
    if not -math.inf < value < math.inf:  # math.isfinite raises for integers beyond the range of a float
        return False
    above = key.exclusive_minimum is None or key.minimum is not None or value > key.exclusive_minimum
    below = key.exclusive_maximum is None or key.maximum is not None or value < key.exclusive_maximum
    least = key.minimum is None or value >= key.minimum
    most = key.maximum is None or value <= key.maximum
    return above and below and least and most


@functools.lru_cache(maxsize=1024)
def wanted_text(key: Key) -> str:
    """Return in words what a key takes: the closed list where there is one, else type and range."""
    if key.enum:
        return "one of " + ", ".join(json_text(item) for item in key.enum)
    limits = range_text(key)
    return f"{type_text(key)} {limits}".strip()


def shown_value(value: object) -> str:
    """Return a value as messages show it."""
    text = json_text(value)
    return f"`{text}`" if len(text) <= 40 else f"`{text[:37]}…`"


def plain_value(key: Key, value: object) -> object:
    """Return what a string plainly stands for in the type of a key, spelled as it is; the string itself for nothing."""
    if not isinstance(value, str):
        return value
    text = value.strip()
    kinds = set(key.type)
    if "boolean" in kinds and text.lower() in LITERALS and text.lower() != "none":
        return LITERALS[text.lower()]
    if kinds & {"integer", "number"}:
        try:
            read = json.loads(text)
        except ValueError:
            return value
        exact = isinstance(read, int | float) and not isinstance(read, bool)
        if exact and kinds_of(read) & kinds and in_range(key, read):
            return Spelling(text)
    return value


def mend(context: Context, entry: Entry, key: Key, value: object, *, safe: bool) -> Fix | None:
    """Return the fix that writes what a string stands for, or the value of the closed list that it is near to."""
    better = plain_value(key, value)
    if better is value or better == value:
        better = near_value(key, value)
        if better is None:
            return None
        folded = isinstance(value, str) and value.strip().lower() == str(better).lower()
        safe = safe and folded
    text = better.text if isinstance(better, Spelling) else json_text(better)
    return context.replace(entry, better, f"Write `{text}`", safe=safe)


def near_value(key: Key, value: object) -> str | None:
    """Return the value of the closed list that a string is a slip of."""
    if not isinstance(value, str):
        return None
    names = [item for item in key.enum if isinstance(item, str)]
    found = nearest(value.strip(), names, limit=1)
    return found[0] if found else None


def place(entry: Entry) -> str:
    """Return the path of a member as messages show it."""
    return shown(entry.path)
