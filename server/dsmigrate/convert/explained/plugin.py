"""What a script's ``DeepSpeedPlugin(...)`` and its arguments do not mean, though they say so."""

from __future__ import annotations

from dsmigrate.convert import codes
from dsmigrate.convert.explained.model import Example, Explained
from dsmigrate.convert.model import Form, Kind

CODES = (
    Explained(
        code=codes.ARGUMENT_IGNORED,
        name="argument-ignored",
        kinds=(Kind.LOST,),
        summary="An argument of the plugin beside a config that has its own value.",
        why='With `hf_ds_config` the config counts. An argument such as `zero_stage` only fills an `"auto"` that the '
        "config has at its key; where the config has a value, or leaves the key out, the argument does nothing.",
        advice='Write the value into the config, or `"auto"` there, and leave the argument.',
        source=("accelerate/utils/dataclasses.py:DeepSpeedPlugin.__post_init__",),
        examples=(
            Example(
                'plugin = DeepSpeedPlugin(hf_ds_config={"zero_optimization": {"stage": 2}}, zero_stage=3)\n',
                name="train.py",
                to=Form.DEEPSPEED,
                instead='plugin = DeepSpeedPlugin(hf_ds_config={"zero_optimization": {"stage": "auto"}}, '
                "zero_stage=3)\n",
            ),
        ),
        is_checked=True,
    ),
    Explained(
        code=codes.EXPRESSION,
        name="expression",
        kinds=(Kind.LOST,),
        summary="An expression of the script, for which the target has no place.",
        why="Scripts are read and never run, so that the value of an expression is not known, and fields of "
        "Accelerate have no place for the key.",
        advice="Give the value with `--set KEY=VALUE`, and carry the whole config: `--carry file`, or `--carry whole` "
        "for a plugin.",
        source=("dsmigrate/convert/python_calls.py",),
        examples=(
            Example(
                'ds_config = {"zero_optimization": {"stage": 2, "reduce_bucket_size": args.bucket}}\n',
                name="train.py",
                to=Form.ACCELERATE,
                instead='ds_config = {"zero_optimization": {"stage": 2}}\n',
            ),
        ),
    ),
    Explained(
        code=codes.BOTH_PRECISIONS,
        name="two-precisions",
        kinds=(Kind.CHANGED,),
        summary="A mixed precision that contradicts the config.",
        why="`Accelerator(mixed_precision=...)` hands its value to the plugin, which raises a ValueError where the "
        "config switches the other 16-bit format on.",
        advice='Switch on the same format in both places, or write `"auto"` for `fp16.enabled` and `bf16.enabled`.',
        source=("accelerate/utils/dataclasses.py:DeepSpeedPlugin.set_mixed_precision",),
        examples=(
            Example(
                'plugin = DeepSpeedPlugin(hf_ds_config={"bf16": {"enabled": True}})\n'
                'accelerator = Accelerator(mixed_precision="fp16", deepspeed_plugin=plugin)\n',
                name="train.py",
                to=Form.DEEPSPEED,
                instead='plugin = DeepSpeedPlugin(hf_ds_config={"bf16": {"enabled": True}})\n'
                'accelerator = Accelerator(mixed_precision="bf16", deepspeed_plugin=plugin)\n',
            ),
        ),
        is_checked=True,
    ),
)
