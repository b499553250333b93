"""What the YAML of ``accelerate launch`` does not mean, though it says so."""

from __future__ import annotations

from dsmigrate.convert import codes
from dsmigrate.convert.explained.model import Example, Explained
from dsmigrate.convert.model import Form, Kind

_HEAD = "distributed_type: DEEPSPEED\ndeepspeed_config:\n"

CODES = (
    Explained(
        code=codes.UNKNOWN_KEY,
        name="unknown-field",
        kinds=(Kind.LOST,),
        summary="A key of `deepspeed_config` that Accelerate does nothing with.",
        why="`accelerate launch` copies every key of `deepspeed_config` to its own arguments and reads those that it "
        "knows. Any other key is passed over without a word, also where DeepSpeed has a key of that name: "
        "`overlap_comm` under `deepspeed_config` sets nothing.",
        advice="Mend the spelling where the note suggests a name. Keys of DeepSpeed itself belong into a config file, "
        "which `deepspeed_config_file` names.",
        source=("accelerate/commands/launch.py:_validate_launch_command",),
        examples=(
            Example(f"{_HEAD}  zero_stag: 3\n", instead=f"{_HEAD}  zero_stage: 3\n"),
            Example(f"{_HEAD}  zero_stage: 3\n  overlap_comm: true\n"),
        ),
        is_checked=True,
    ),
    Explained(
        code=codes.BESIDE_FILE,
        name="beside-config-file",
        kinds=(Kind.CHANGED,),
        summary="A key that may not stand beside `deepspeed_config_file`.",
        why="With a config file everything comes from that file. The launcher hands the names of all other keys on, "
        "and the plugin raises a ValueError if `zero_stage`, `gradient_accumulation_steps`, `gradient_clipping`, "
        "`zero3_save_16bit_model`, `mixed_precision` or one of the `offload_*` keys is among them.",
        advice="Write the value into the config file, and remove the key from the YAML.",
        source=("accelerate/utils/dataclasses.py:DeepSpeedPlugin._deepspeed_config_checks",),
        examples=(
            Example(
                f"{_HEAD}  deepspeed_config_file: ds_config.json\n  zero_stage: 2\n",
                instead=f"{_HEAD}  deepspeed_config_file: ds_config.json\n",
            ),
        ),
        is_checked=True,
    ),
    Explained(
        code=codes.NVME_PATH_LOST,
        name="nvme-path-lost",
        kinds=(Kind.CHANGED,),
        summary="An NVMe path in Accelerate's YAML, which its launcher drops.",
        why="`prepare_deepspeed_cmd_env` exports the settings of the YAML as environment variables, but none for "
        "`offload_optimizer_nvme_path` and `offload_param_nvme_path`. The plugin finds no variable and takes the text "
        "`none` for the path: DeepSpeed then swaps to a folder of that name below the working directory.",
        advice="Name a config file with `deepspeed_config_file` and write `nvme_path` there, or give the path in the "
        "script as an argument of `DeepSpeedPlugin`: both reach DeepSpeed.",
        source=(
            "accelerate/utils/launch.py:prepare_deepspeed_cmd_env",
            "accelerate/utils/dataclasses.py:DeepSpeedPlugin.__post_init__",
        ),
        examples=(
            Example(
                f"{_HEAD}  zero_stage: 3\n  offload_param_device: nvme\n  offload_param_nvme_path: /local/nvme\n",
                instead=f"{_HEAD}  deepspeed_config_file: ds_config.json\n",
            ),
            Example(
                '{"zero_optimization": {"stage": 3, "offload_param": {"device": "nvme", "nvme_path": "/local/nvme"}}}',
                name="ds_config.json",
                to=Form.ACCELERATE,
                carrying="fields",
            ),
        ),
        is_checked=True,
    ),
    Explained(
        code=codes.PRECISION_IS_FALSE,
        name="precision-is-false",
        kinds=(Kind.CHANGED,),
        summary="`mixed_precision: no` without quotes, which YAML reads as false.",
        why="Accelerate reads the file by the rules of YAML 1.1, in which a bare `no` is the value false. The "
        "launcher then calls `.lower()` on it, and stops with an AttributeError.",
        advice="Write `'no'` in quotes.",
        source=("accelerate/utils/launch.py:prepare_deepspeed_cmd_env",),
        examples=(
            Example(
                "distributed_type: DEEPSPEED\nmixed_precision: no\n",
                instead="distributed_type: DEEPSPEED\nmixed_precision: 'no'\n",
            ),
        ),
        is_checked=True,
    ),
    Explained(
        code=codes.CLIPPING_LEFT_OUT,
        name="clipping-left-out",
        kinds=(Kind.CHANGED,),
        summary="`gradient_clipping: 0` in Accelerate, which leaves the key out.",
        why="The plugin writes `gradient_clipping` into its config only where the value counts as true, and 0 does "
        "not. DeepSpeed then takes its default, which 0.19.3 raised from 0 to 1.0: what looks like no clipping clips "
        "at 1.0.",
        advice="Switch clipping off in a config file, where `gradient_clipping: 0` means what it says, or write the "
        "limit that is meant.",
        source=("accelerate/utils/dataclasses.py:DeepSpeedPlugin.__post_init__", "deepspeed/runtime/config.py"),
        examples=(
            Example(f"{_HEAD}  gradient_clipping: 0\n", instead=f"{_HEAD}  gradient_clipping: 0.5\n"),
            Example("plugin = DeepSpeedPlugin(gradient_clipping=0.0)\n", name="train.py", to=Form.ACCELERATE),
        ),
        is_checked=True,
    ),
    Explained(
        code=codes.BAD_VALUE,
        name="bad-value",
        kinds=(Kind.CHANGED,),
        summary="A value that Accelerate or DeepSpeed cannot read.",
        why="The launcher hands values on as the text of environment variables. A text that is no number stops the "
        "plugin with a ValueError, a device that DeepSpeed does not know stops the config, and for a switch every "
        "text but `true` counts as false.",
        advice="Write a number, one of the devices `none`, `cpu` and `nvme`, or `true` or `false`, as the note says.",
        source=("accelerate/utils/dataclasses.py:DeepSpeedPlugin.__post_init__",),
        examples=(
            Example(f"{_HEAD}  zero_stage: three\n", instead=f"{_HEAD}  zero_stage: 3\n"),
            Example(f"{_HEAD}  offload_optimizer_device: disk\n", instead=f"{_HEAD}  offload_optimizer_device: nvme\n"),
            Example("distributed_type: DEEPSPEED\nmixed_precision: half\n"),
        ),
        is_checked=True,
    ),
    Explained(
        code=codes.DUPLICATE,
        name="key-given-twice",
        kinds=(Kind.CHANGED,),
        summary="A key that is given twice.",
        why="PyYAML, which Accelerate reads the file with, takes the last of the values without a word.",
        advice="Remove the one that is not meant.",
        source=("accelerate/commands/config/config_args.py:BaseConfig.from_yaml_file",),
        examples=(Example(f"{_HEAD}  zero_stage: 2\n  zero_stage: 3\n", instead=f"{_HEAD}  zero_stage: 3\n"),),
        is_checked=True,
    ),
    Explained(
        code=codes.NO_FILE,
        name="no-such-config",
        kinds=(Kind.CHANGED,),
        summary="A config file that is not there.",
        why="Accelerate opens the path from the folder in which the launch is started. dsmigrate, which cannot know "
        "that folder, looks beside the file that names the config. Nothing can be said of what the config holds.",
        advice="Correct the path. If the launch is started elsewhere, the file may be right as it is: then leave the "
        "note, or give the path in full.",
        source=("accelerate/utils/deepspeed.py:HfDeepSpeedConfig.__init__",),
        examples=(Example(f"{_HEAD}  deepspeed_config_file: nowhere/ds_config.json\n"),),
        is_checked=True,
    ),
    Explained(
        code=codes.NOT_DEEPSPEED,
        name="not-deepspeed",
        kinds=(Kind.CHANGED,),
        summary="A DeepSpeed block that is not used, as `distributed_type` says something else or is not there.",
        why="The launcher starts DeepSpeed where `distributed_type` is `DEEPSPEED`. With any other word it passes "
        "over `deepspeed_config` and trains in another way; without the key it raises a ValueError.",
        advice="Write `distributed_type: DEEPSPEED`, or start with `accelerate launch --use_deepspeed`.",
        source=(
            "accelerate/commands/launch.py:_validate_launch_command",
            "accelerate/commands/config/config_args.py:BaseConfig.process_config",
        ),
        examples=(
            Example(
                "distributed_type: MULTI_GPU\ndeepspeed_config:\n  zero_stage: 2\n",
                instead=f"{_HEAD}  zero_stage: 2\n",
            ),
        ),
        is_checked=True,
    ),
    Explained(
        code=codes.PATH_UNUSED,
        name="path-without-nvme",
        kinds=(Kind.LOST,),
        summary="An NVMe path for a device that is not nvme.",
        why="The plugin writes `nvme_path` for the device `nvme` alone, and leaves it out beside `cpu` and `none`.",
        advice="Remove the path, or write `nvme` for the device.",
        source=("accelerate/utils/dataclasses.py:DeepSpeedPlugin.__post_init__",),
        examples=(
            Example(
                f"{_HEAD}  zero_stage: 3\n  offload_param_device: cpu\n  offload_param_nvme_path: /local/nvme\n",
                instead=f"{_HEAD}  zero_stage: 3\n  offload_param_device: cpu\n",
            ),
        ),
        is_checked=True,
    ),
    Explained(
        code=codes.REFUSED_KEY,
        name="unknown-key-refused",
        kinds=(Kind.CHANGED,),
        summary="A key at the top of Accelerate's YAML, or an argument of its plugin, that does not exist.",
        why="The launcher compares the keys at the top of the file with the fields of `ClusterConfig`, and raises a "
        "ValueError for one that is not among them. An argument that `DeepSpeedPlugin` does not have is a TypeError.",
        advice="Mend the spelling. Keys such as `zero_stage` belong below `deepspeed_config`.",
        source=(
            "accelerate/commands/config/config_args.py:BaseConfig.from_yaml_file",
            "accelerate/utils/dataclasses.py:DeepSpeedPlugin",
        ),
        examples=(
            Example("distributed_type: DEEPSPEED\nzero_stage: 2\n", instead=f"{_HEAD}  zero_stage: 2\n"),
            Example(
                "plugin = DeepSpeedPlugin(zero_stag=2)\n",
                name="train.py",
                to=Form.ACCELERATE,
                instead="plugin = DeepSpeedPlugin(zero_stage=2)\n",
            ),
        ),
        is_checked=True,
    ),
)
