"""DS473: experts of a model that are gathered one by one at stage 3."""

from __future__ import annotations

from collections.abc import Iterator

from dsmigrate.knowledge import Status
from dsmigrate.languages import say
from dsmigrate.rules.context import Context
from dsmigrate.rules.model import Effect, Example, Facts, Finding, ModelFacts, Severity
from dsmigrate.rules.registry import rule
from dsmigrate.rules.zero._shared import STAGE, ZERO

_CLASSES = f"{ZERO}.leaf_module.classes"
_OLMOE = ModelFacts("config.json", (1000,), block="transformers.models.olmoe.modeling_olmoe.OlmoeSparseMoeBlock")
_MIXTRAL = ModelFacts(
    "config.json", (1000,), block="transformers.models.mixtral.modeling_mixtral.MixtralSparseMoeBlock"
)


@rule(
    "DS473",
    "experts-not-leaf",
    summary="Stage 3 for a model with experts whose block is no leaf module.",
    why="At stage 3 all ranks gather each module together. Ranks whose tokens take different experts then wait for one "
    "another for ever, unless the block around the experts is gathered as a whole: a leaf module. Releases since "
    "0.18.0 do so for the classes of `leaf_module.classes`; before, `deepspeed.utils.set_z3_leaf_modules` in the "
    "script, or `deepspeed_moe_layer_cls_names` of Accelerate, says it. Transformers 5 keeps the experts of a block in "
    "one module, which needs none of it. Told if the model is known.",
    severity=Severity.INFO,
    effect=Effect.RISKY,
    source=("deepspeed/utils/z3_leaf_module.py", "https://github.com/deepspeedai/DeepSpeed/issues/5066"),
    keys=(_CLASSES,),
    examples=(
        Example(
            '{"train_batch_size": 8, "zero_optimization": {"stage": «3»}}',
            fixed='{"train_batch_size": 8, "zero_optimization": {"stage": 3, "leaf_module": {"classes": '
            '["transformers.models.olmoe.modeling_olmoe.OlmoeSparseMoeBlock"]}}}',
            facts=Facts(model=_OLMOE),
        ),
        Example(
            '{"train_batch_size": 8, "zero_optimization": {"stage": «3»}}',
            version="0.14.0",
            facts=Facts(model=_MIXTRAL),
        ),
        Example('{"train_batch_size": 8, "zero_optimization": {"stage": 3}}', facts=Facts(model=_MIXTRAL)),
        Example('{"train_batch_size": 8, "zero_optimization": {"stage": 2}}', facts=Facts(model=_OLMOE)),
        Example(
            '{"train_batch_size": 8, "zero_optimization": {"stage": 3, "leaf_module": {"classes": '
            '["OlmoeSparseMoeBlock"]}}}',
            facts=Facts(model=_OLMOE),
        ),
    ),
)
def check(context: Context) -> Iterator[Finding]:
    """Yield a finding at the stage."""
    model, key = context.facts.model, context.known.key(_CLASSES)
    if model is None or not model.block or context.stage != 3:
        return
    there = key is not None and key.status is Status.PRESENT
    classes = context.value(_CLASSES) if there else []
    name = model.block.rpartition(".")[2]
    if not isinstance(classes, (list, tuple)) or {name, model.block} & set(classes):
        return
    path = (*context.path_of(ZERO), "leaf_module", "classes")
    yield context.finding(
        STAGE,
        say(
            "{model} has experts: unless `{name}` is a leaf module, stage 3 hangs where ranks use different ones, with "
            "Transformers before 5",
            model=model.name,
            name=name,
        ),
        fixes=[
            context.insert(path, [model.block], say("Make it a leaf module"), safe=False)
            if there and not context.has(f"{ZERO}.leaf_module")
            else None
        ],
    )
