"""Weights that are not float32: half ones train as before at ZeRO 0 only, float64 and complex ones nowhere."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from dsmigrate.codemod.analysis.analysis import modules_of, things
from dsmigrate.codemod.analysis.events import Event, Happening
from dsmigrate.codemod.analysis.training import Training
from dsmigrate.codemod.analysis.values import NONE, Const, Expr, Lib, Obj, Tensor, Value, each, owner
from dsmigrate.codemod.decision import Decision
from dsmigrate.codemod.idioms.facts import Facts, constant
from dsmigrate.codemod.model import Idea, Kind
from dsmigrate.languages import told

IDEAS = (
    Idea(
        "MG311",
        "Weights that are loaded or cast in half precision",
        "from_pretrained(torch_dtype=...), .half(), .to(torch.bfloat16), a layer's dtype or a default one may make half-precision weights, "
        "of the model or of a part of it: the config gets ZeRO stage 0.",
        "DDP's optimizer steps the half-precision weights themselves; ZeRO 1-3 step float32 copies of them, which is another "
        "training (1e-2 relative in the loss after 20 steps). Stage 0 trains as DDP did; for float32 master weights, choose "
        "a stage and --precision bf16 or fp16. Weights in float64 are marked, and complex ones: no stage trains them as DDP did.",
        "measured against DeepSpeed 0.19.8: AdamW on bfloat16 weights, stages 0 to 2 beside DDP",
        Kind.KEPT,
    ),
)
_HALF = frozenset(["float16", "half", "bfloat16", "fp16", "bf16", "auto", "HalfTensor", "BFloat16Tensor"])
_DOUBLE = frozenset(["float64", "double", "DoubleTensor"])
_COMPLEX = frozenset(["complex32", "complex64", "complex128", "cfloat", "cdouble", "chalf"])
_DEFAULTS = frozenset({"torch.set_default_dtype", "torch.set_default_tensor_type"})
_WHY = "DDP stepped these very weights; ZeRO 1-3 step float32 copies of them"


def weights(training: Training, facts: Facts) -> Iterator[Decision]:
    """A decision for each place that gives the weights of the model a type of their own."""
    last: dict[Value, tuple[Event, frozenset[str]]] = {}
    held = _held(training.parts)
    for event in training.events(Happening.PRECISION):
        if training.is_before(event) is False:
            continue
        if constant(event["name"]) in _DEFAULTS:
            first = min(one.number for one in training.wraps)
            if event.number < first:
                last[NONE] = (event, _types(event["value"]))
        elif constant(event["name"]) == "dtype":
            for one in dict.fromkeys([*things(event["of"]), *each(event["of"])]):
                of = one.of if isinstance(one, Tensor) else one
                if of is None or not (training.is_model(of) or of in held):
                    continue
                inner = modules_of(training.analysis.run, one) if not isinstance(one, Tensor) else set()
                inner |= _held(inner)
                last = {
                    key: value
                    for key, value in last.items()
                    if key not in inner and not (isinstance(key, Tensor) and owner(key.of or NONE) in inner)
                }
                last[one] = (event, _types(event["value"]))
    seen = set()
    for event, kinds in last.values():
        if event.node not in seen:
            seen.add(event.node)
            yield from _said(facts, event, kinds)


def _held(parts: Iterable[Value]) -> set[Value]:
    """What modules hold, read or not."""
    return {inner for part in parts if isinstance(part, Obj) for value in part.own.values() for inner in each(value)}


def _types(value: Value) -> frozenset[str]:
    """The last names of the types that a value may be; "?" for one that is not known."""
    return frozenset(
        one.name.rpartition(".")[2]
        if isinstance(one, Lib)
        else str(one.value).rpartition(".")[2]
        if isinstance(one, Const)
        else "?"
        for one in each(value)
        if isinstance(one, Lib | Const) or (isinstance(one, Expr) and one.op == "getattr")
    )


def _said(facts: Facts, event: Event, kinds: frozenset[str]) -> Iterator[Decision]:
    module, node = event.module, event.node
    if kinds & _COMPLEX:
        yield Decision(
            "MG311", Kind.TODO, module, node, "hold complex parameters as real ones (torch.view_as_real), or stay with DDP",
            "ZeRO 1-3 drop imaginary parts, and ZeRO 0 takes no complex gradients", stage=0,
            otherwise=Decision("MG311", Kind.TODO, module, node, "hold complex parameters as real ones (torch.view_as_real), or stay with DDP", "ZeRO drops imaginary parts"),
        )  # fmt: skip
    elif kinds & _DOUBLE:
        yield Decision(
            "MG311", Kind.TODO, module, node, "the weights are float64: make them float32, or stay with DDP",
            "ZeRO 1-3 step float32 copies of them, and ZeRO 0 takes no float64 gradients",
        )  # fmt: skip
    elif (kinds & _HALF or "?" in kinds) and facts.options.precision == "keep":
        message = "the weights are half precision" if kinds <= _HALF else "the weights may be half precision"
        yield Decision(
            "MG311", Kind.KEPT, module, node, told("{message}: they train as before at ZeRO 0", message=message), _WHY, stage=0,
            otherwise=Decision(
                "MG311", Kind.TODO, module, node, told("{message}: ZeRO 1-3 train float32 copies, add --precision", message=message), _WHY,
            ),
        )  # fmt: skip
