"""What becomes of ``"auto"``."""

from __future__ import annotations

from dsmigrate.convert import codes
from dsmigrate.convert.explained.model import Example, Explained
from dsmigrate.convert.model import Form, Kind

_CONFIG = "ds_config.json"
_TRAINER = "transformers/integrations/deepspeed.py:HfTrainerDeepSpeedConfig"

CODES = (
    Explained(
        code=codes.RESOLVED,
        name="auto-resolved",
        kinds=(Kind.TOLD,),
        summary='An `"auto"` that was given its value.',
        why='DeepSpeed itself fills no `"auto"`; the program that hands it the config does. Where the target has no '
        "such program, the value takes its place that this program would have filled in: from `--set`, from "
        "`--arguments`, or what it takes when nobody says anything.",
        advice="Look whether the value is the one of the training; the note names what it was taken from.",
        source=("schemas/deepspeed/consumers.toml", _TRAINER),
        examples=(
            Example(
                '{"train_micro_batch_size_per_gpu": 4, "gradient_clipping": "auto"}',
                name=_CONFIG,
                to=Form.DEEPSPEED,
                given={"max_grad_norm": 0.5},
                instead='{"train_micro_batch_size_per_gpu": 4, "gradient_clipping": 0.5}',
            ),
        ),
    ),
    Explained(
        code=codes.INTRODUCED,
        name="auto-introduced",
        kinds=(Kind.TOLD,),
        summary='A value that became `"auto"` and an argument.',
        why='The Trainer compares values of the config with its arguments, and stops where they differ. With `"auto"` '
        "in the config there is one place for the value: the argument.",
        advice="Give the Trainer the arguments that are printed with the config.",
        source=(f"{_TRAINER}.trainer_config_process",),
        examples=(
            Example(
                '{"gradient_clipping": 0.5, "zero_optimization": {"stage": 2}}', name=_CONFIG, to=Form.TRANSFORMERS
            ),
        ),
    ),
    Explained(
        code=codes.LEFT_TO_DEEPSPEED,
        name="auto-left-out",
        kinds=(Kind.TOLD,),
        summary='An `"auto"` that was left out, as DeepSpeed computes the value or has it as default.',
        why="`train_batch_size` follows from the micro-batch, the accumulation steps and the number of processes. A "
        'key whose `"auto"` DeepSpeed drops has its default either way.',
        advice="Nothing is to be done; `--set KEY=VALUE` writes a value all the same.",
        source=("deepspeed/runtime/config.py:DeepSpeedConfig._set_batch_related_parameters",),
        examples=(
            Example(
                '{"train_batch_size": "auto", "train_micro_batch_size_per_gpu": 4}', name=_CONFIG, to=Form.DEEPSPEED
            ),
        ),
    ),
    Explained(
        code=codes.PRECISION_NOT_KNOWN,
        name="precision-not-known",
        kinds=(Kind.CHANGED,),
        summary="Half precision that the consumer of the source may switch on, and that nothing tells.",
        why="Accelerate and the Trainer add a section `fp16` or `bf16` to a config that has none, where "
        "`mixed_precision` or the arguments of the script ask for it. Such a config trains in half precision there, "
        "and in full precision where DeepSpeed reads it alone.",
        advice="Say what the training uses: `--set mixed_precision=bf16`, `fp16` or `no`, or `--arguments` with the "
        "script.",
        source=("accelerate/utils/dataclasses.py:DeepSpeedPlugin.set_mixed_precision", _TRAINER),
        examples=(
            Example(
                '{"train_micro_batch_size_per_gpu": 4, "gradient_clipping": "auto"}',
                name=_CONFIG,
                to=Form.DEEPSPEED,
                given={"max_grad_norm": 0.5},
                instead='{"train_micro_batch_size_per_gpu": 4, "gradient_clipping": "auto", "bf16": {"enabled": true}}',
            ),
        ),
    ),
)
