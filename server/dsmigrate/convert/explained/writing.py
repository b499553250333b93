"""What a target cannot carry, or sets up in its own way."""

from __future__ import annotations

from dsmigrate.convert import codes
from dsmigrate.convert.explained.model import Example, Explained
from dsmigrate.convert.model import Form, Kind

_CONFIG = "ds_config.json"
_PLUGIN = "accelerate/utils/dataclasses.py:DeepSpeedPlugin"
_TRAINER = "transformers/integrations/deepspeed.py:HfTrainerDeepSpeedConfig"

CODES = (
    Explained(
        code=codes.NO_PLACE,
        name="no-place",
        kinds=(Kind.LOST,),
        summary="A key that the target has no place for.",
        why="The YAML of Accelerate and the arguments of its plugin have eight fields for settings of DeepSpeed: "
        "stage, offload devices and their paths, accumulation, clipping, and saving of 16-bit weights. Whatever else "
        "a config says is not carried, and DeepSpeed takes its defaults.",
        advice="Keep the config: `--carry file` makes the YAML or the plugin name it, `--carry whole` writes it into "
        "the script as a dictionary.",
        source=("schemas/deepspeed/forms.toml", f"{_PLUGIN}.__post_init__"),
        examples=(
            Example(
                '{"zero_optimization": {"stage": 2, "overlap_comm": true}}',
                name=_CONFIG,
                to=Form.ACCELERATE,
                carrying="fields",
            ),
        ),
    ),
    Explained(
        code=codes.OVERWRITTEN,
        name="overwritten",
        kinds=(Kind.TOLD,),
        summary="A key that the consumer of the target writes itself.",
        why="Accelerate and the Trainer write `steps_per_print: Infinity`, which switches DeepSpeed's lines off, and "
        "`zero_allow_untested_optimizer: true` where the script has the optimizer. A value of the config makes no "
        "difference to them.",
        advice="Nothing is to be done; log from the script where DeepSpeed's lines are missed.",
        source=(f"{_PLUGIN}.__post_init__", "accelerate/accelerator.py:Accelerator._prepare_deepspeed"),
        examples=(
            Example('{"steps_per_print": 10, "zero_optimization": {"stage": 1}}', name=_CONFIG, to=Form.TRANSFORMERS),
        ),
    ),
    Explained(
        code=codes.FILLED_ELSEWHERE,
        name="filled-elsewhere",
        kinds=(Kind.TOLD, Kind.CHANGED),
        summary="A value that the target takes from the script.",
        why="Fields of Accelerate say nothing about the batch. Accelerate fills the micro-batch with the batch size "
        "of the data loader that the script prepares, and computes the whole batch from it.",
        advice="Give the data loader the batch size that the config has, or keep the config with `--carry file`.",
        source=("accelerate/accelerator.py:Accelerator._prepare_deepspeed",),
        examples=(
            Example(
                '{"train_micro_batch_size_per_gpu": 4, "zero_optimization": {"stage": 2}}',
                name=_CONFIG,
                to=Form.ACCELERATE,
                carrying="fields",
                instead='{"zero_optimization": {"stage": 2}}',
            ),
        ),
    ),
    Explained(
        code=codes.PRECISION_SECTION,
        name="precision-section",
        kinds=(Kind.TOLD, Kind.CHANGED),
        summary="Mixed precision that the target sets up in its own way.",
        why='`mixed_precision: fp16` makes the section `{"enabled": true, "auto_cast": true}`, where inputs are cast '
        'to half precision as well, and `mixed_precision: bf16` makes `{"enabled": true}`. Fields say nothing else '
        "about the two sections.",
        advice="Keep the config with `--carry file`, or `--carry whole` for a plugin, where its section matters.",
        source=(f"{_PLUGIN}.set_mixed_precision",),
        examples=(
            Example(
                '{"fp16": {"enabled": true}, "zero_optimization": {"stage": 2}}',
                name=_CONFIG,
                to=Form.ACCELERATE,
                carrying="fields",
            ),
        ),
    ),
    Explained(
        code=codes.CLIPPING_OFF,
        name="clipping-cannot-be-off",
        kinds=(Kind.CHANGED,),
        summary="Gradient clipping that cannot be switched off in the target.",
        why="Fields of Accelerate leave a `gradient_clipping` of 0 out, and DeepSpeed then takes its default, which "
        "is 1.0 since 0.19.3. A training that did not clip would clip.",
        advice="Keep the config with `--carry file`, or `--carry whole` for a plugin: there 0 means 0.",
        source=(f"{_PLUGIN}.__post_init__", "deepspeed/runtime/config.py"),
        examples=(
            Example(
                '{"gradient_clipping": 0, "zero_optimization": {"stage": 2}}',
                name=_CONFIG,
                to=Form.ACCELERATE,
                carrying="fields",
                instead='{"gradient_clipping": 0.5, "zero_optimization": {"stage": 2}}',
            ),
        ),
    ),
    Explained(
        code=codes.AROUND_LOST,
        name="belongs-to-the-launch",
        kinds=(Kind.TOLD,),
        summary="What stands around the config and belongs to the launch in the target.",
        why="The number of processes, addresses, hosts and wrapping of the model are no settings of a DeepSpeed "
        "config. Accelerate keeps them in the same file, other forms do not.",
        advice="Give it to the launcher: the note names the option, or the call, that says it.",
        source=("accelerate/commands/config/config_args.py:ClusterConfig", "deepspeed/launcher/runner.py:parse_args"),
        examples=(
            Example(
                "distributed_type: DEEPSPEED\nnum_processes: 4\ndeepspeed_config:\n  deepspeed_hostfile: hosts\n",
                instead="distributed_type: DEEPSPEED\ndeepspeed_config:\n  zero_stage: 2\n",
            ),
        ),
    ),
    Explained(
        code=codes.MUST_MATCH,
        name="must-match",
        kinds=(Kind.CHANGED,),
        summary="A value that the Trainer compares with an argument.",
        why="The Trainer compares values of the config with its arguments, and raises a ValueError that lists every "
        'one that differs. Most become `"auto"` and an argument; this one does not, as no argument says it alone: two '
        "keys that are filled from one argument, such as `optimizer.params.lr` and `scheduler.params.warmup_max_lr`, "
        "cannot differ at all.",
        advice="Give both keys one value, or make the argument the one that the config needs. For the whole batch, "
        "`--world-size N` works the micro-batch out.",
        source=(f"{_TRAINER}.trainer_config_finalize",),
        examples=(
            Example(
                '{"optimizer": {"type": "AdamW", "params": {"lr": 1e-3}}, "scheduler": {"type": "WarmupLR", "params": '
                '{"warmup_max_lr": 2e-3}}, "zero_optimization": {"stage": 2}}',
                name=_CONFIG,
                to=Form.TRANSFORMERS,
            ),
            Example('{"train_batch_size": 64}', name=_CONFIG, to=Form.TRANSFORMERS),
        ),
    ),
    Explained(
        code=codes.CARRIED_WHOLE,
        name="carried-whole",
        kinds=(Kind.TOLD, Kind.CHANGED),
        summary="A config that is written whole, as fields cannot carry it.",
        why="The plugin takes either its own arguments or a whole config as `hf_ds_config`, and the YAML of "
        "`accelerate launch` its fields or the name of a config file. If fields would lose something, the plugin gets "
        "the config as a dictionary and the YAML the name of the file.",
        advice="Write what the note names into the file; without a name nothing is to be done. `--carry fields` writes "
        "fields anyway, and says what is lost. Start `accelerate launch` from where you ran the conversion: the name "
        "of the file counts from there.",
        source=(f"{_PLUGIN}.__post_init__",),
        examples=(
            Example('{"zero_optimization": {"stage": 2, "overlap_comm": true}}', name=_CONFIG, to=Form.PLUGIN),
            Example('{"zero_optimization": {"stage": 2, "overlap_comm": true}}', name=_CONFIG, to=Form.ACCELERATE),
            Example(
                '{"zero_optimization": {"stage": 2, "overlap_comm": true}}',
                name=_CONFIG,
                to=Form.ACCELERATE,
                given={"gradient_clipping": 0.5},
            ),
        ),
    ),
    Explained(
        code=codes.STAND_INS,
        name="stand-ins",
        kinds=(Kind.TOLD,),
        summary="An optimizer or scheduler of a config file, for which the script passes a stand-in.",
        why="Accelerate makes what a config file names. `Accelerator.prepare` raises ValueError for a real optimizer "
        "or scheduler next to it.",
        advice="Pass `accelerate.utils.DummyOptim` and `DummyScheduler` to `prepare`, or take the section out of the "
        "config and keep the script as it is.",
        source=("accelerate/accelerator.py:Accelerator._prepare_deepspeed",),
        examples=(
            Example(
                '{"zero_optimization": {"stage": 2, "overlap_comm": true}, "optimizer": {"type": "AdamW", "params": '
                '{"lr": 1e-3}}}',
                name=_CONFIG,
                to=Form.ACCELERATE,
                instead='{"zero_optimization": {"stage": 2, "overlap_comm": true}}',
            ),
        ),
    ),
)
