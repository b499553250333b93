"""Reads what ``dsmigrate convert`` writes with the code of Accelerate and Transformers, and says what becomes of it.

Runs in a child process that has torch, deepspeed, accelerate and transformers. Each line of standard input is a
question: ``{"form": "accelerate", "text": …}`` is launched up to the point where processes would start, and given to
``DeepSpeedPlugin``; ``{"form": "plugin", …}`` and ``{"form": "transformers", …}`` are scripts, which are run. ``files``
are written beside them. With a ``script`` of the Trainer ``"accelerate"`` starts that one. Each answer is
``{"config": …}``, which DeepSpeed would start from, or ``{"error": …}``.
"""

from __future__ import annotations

import json
import math
import os
import sys
import tempfile
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest import mock

from consumer_judge import install

HIDDEN = 8
STEPS = 100
"""Optimizer steps of a run whose arguments do not say how many."""


def main() -> None:
    """Answer each line of standard input."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # the packages' own talk
    install(processes=1)
    print(json.dumps({"ready": True}), file=answers, flush=True)
    for line in sys.stdin:
        asked = json.loads(line)
        folder = tempfile.mkdtemp()
        os.chdir(folder)
        for name, text in asked.get("files", {}).items():
            Path(name).write_text(text, encoding="utf-8")
        try:
            script = asked.get("script")
            made = FORMS[asked["form"]](asked["text"]) if script is None else launched_trainer(asked["text"], script)
            found: dict[str, Any] = {"config": plain(made)}
        except Exception as error:  # noqa: BLE001 - the answer is whatever they say
            found = {"error": f"{type(error).__name__}: {' '.join(str(error).split())[:2000]}"}
        print(json.dumps(found), file=answers, flush=True)
    os._exit(0)


def launched(text: str) -> dict[str, Any]:
    """Return the config of a YAML file, as ``accelerate launch`` hands it to the processes."""
    from accelerate import DeepSpeedPlugin  # noqa: PLC0415 - after install

    environment = environment_of(text)
    with mock.patch.dict(os.environ, environment):
        plugin = DeepSpeedPlugin()
        plugin.set_mixed_precision(environment["ACCELERATE_MIXED_PRECISION"])
        config: dict[str, Any] = plugin.deepspeed_config
        return config


def launched_trainer(text: str, script: str) -> dict[str, Any]:
    """Return the config that the Trainer of a script comes to, which ``accelerate launch`` starts with a YAML file."""
    from transformers.integrations.deepspeed import propagate_args_to_deepspeed  # noqa: PLC0415 - after install

    names: dict[str, Any] = {}
    with mock.patch.dict(os.environ, environment_of(text)):
        exec(compile(script, "train.py", "exec"), names)  # noqa: S102
    arguments = names["training_args"]
    plugin = arguments.deepspeed_plugin
    accelerator: Any = SimpleNamespace(state=SimpleNamespace(deepspeed_plugin=plugin))
    propagate_args_to_deepspeed(accelerator, arguments)
    return finalized(plugin.hf_ds_config, arguments)


def environment_of(text: str) -> dict[str, str]:
    """Return the environment in which ``accelerate launch`` starts processes for a YAML file."""
    from accelerate.commands import launch  # noqa: PLC0415
    from accelerate.utils.launch import prepare_deepspeed_cmd_env  # noqa: PLC0415

    Path("accelerate.yaml").write_text(text, encoding="utf-8")
    asked = ["--config_file", "accelerate.yaml"]
    if "num_processes" not in text:
        asked += ["--num_processes", "1"]
    arguments, defaults, by_config = launch._validate_launch_command(
        launch.launch_command_parser().parse_args([*asked, "train.py"])
    )
    assert arguments.use_deepspeed
    fields = [*defaults.deepspeed_config, *(["mixed_precision"] if by_config else [])]
    arguments.deepspeed_fields_from_accelerate_config = ",".join(fields)
    with mock.patch("accelerate.utils.launch.is_port_in_use", return_value=False):
        environment: dict[str, str] = prepare_deepspeed_cmd_env(arguments)[1]
    return environment


def accelerated(text: str) -> dict[str, Any]:
    """Return the config that a script's plugin and ``Accelerator`` come to."""
    from accelerate.state import AcceleratorState, GradientState  # noqa: PLC0415

    AcceleratorState._reset_state(reset_partial_state=True)
    GradientState._reset_state()
    names: dict[str, Any] = {}
    exec(compile(text, "train.py", "exec"), names)  # noqa: S102 - what dsmigrate wrote is what is judged
    config: dict[str, Any] = names["accelerator"].deepspeed_plugin.deepspeed_config
    return config


def trained(text: str) -> dict[str, Any]:
    """Return the config that the arguments of a Trainer come to, when the run is known."""
    names: dict[str, Any] = {}
    exec(compile(text, "train.py", "exec"), names)  # noqa: S102
    arguments = names["training_args"]
    return finalized(arguments.hf_deepspeed_config, arguments)


def finalized(config: Any, arguments: Any) -> dict[str, Any]:
    """Return a config of the Trainer once the model and the number of steps are known."""
    model = SimpleNamespace(config=SimpleNamespace(hidden_size=HIDDEN))
    config.trainer_config_finalize(arguments, model, arguments.max_steps if arguments.max_steps > 0 else STEPS)
    found: dict[str, Any] = config.config
    return found


FORMS = {"accelerate": launched, "plugin": accelerated, "transformers": trained}


def plain(value: Any) -> Any:
    """Return data that JSON can hold: infinity as a text."""
    if isinstance(value, dict):
        return {str(key): plain(inner) for key, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(inner) for inner in value]
    return "infinity" if isinstance(value, float) and math.isinf(value) else value


if __name__ == "__main__":
    main()
