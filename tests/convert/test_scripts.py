from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from dsmigrate.convert.job import Request, convert
from dsmigrate.convert.model import ConvertError, Form, Settings, Target
from dsmigrate.convert.reading import Input, read

CONFIG = {
    "train_micro_batch_size_per_gpu": 4,
    "gradient_accumulation_steps": 2,
    "gradient_clipping": 0.5,
    "zero_optimization": {"stage": 2, "overlap_comm": True},
}


def codes(settings: Settings) -> list[str]:
    return [note.code for note in settings.notes]


def written(config: dict[str, Any], form: Form, there: str | None = None, **target: Any) -> str:
    request = Request("ds.json", json.dumps(config).encode(), form, into=Target(there=there, **target))
    return convert(request).written.text


def test_the_arguments_of_a_plugin_are_read_by_name_and_by_order() -> None:
    script = "import accelerate\np = accelerate.DeepSpeedPlugin(None, 4, 0.5, 3)\n"
    config = read(Form.PLUGIN, Input(script)).config
    assert (config["gradient_accumulation_steps"], config["gradient_clipping"]) == (4, 0.5)
    assert config["zero_optimization"]["stage"] == 3


def test_the_config_of_a_plugin_is_followed_to_where_it_is_written(tmp_path: Path) -> None:
    (tmp_path / "ds.json").write_text(json.dumps(CONFIG))
    for given in ("{config}", "ds_config", "'ds.json'"):
        script = f"ds_config = {CONFIG!r}\np = DeepSpeedPlugin(hf_ds_config={given.format(config=CONFIG)})\n"
        assert read(Form.PLUGIN, Input(script, tmp_path)).config == CONFIG


def test_an_argument_fills_auto_in_the_config_and_nothing_else() -> None:
    config = "{'zero_optimization': {'stage': 'auto'}}"
    script = f"p = DeepSpeedPlugin(hf_ds_config={config}, zero_stage=3, gradient_clipping=0.3)\n"
    settings = read(Form.PLUGIN, Input(script))
    assert settings.config == {"zero_optimization": {"stage": 3}}
    assert codes(settings) == ["CV110"]


def test_what_is_no_literal_is_known_to_be_unknown() -> None:
    settings = read(Form.PLUGIN, Input("p = DeepSpeedPlugin(zero_stage=args.stage, gradient_clipping=1.0)\n"))
    assert settings.unknown == {("zero_optimization", "stage"): "args.stage"}
    request = Request("a.py", settings.text.encode(), Form.ACCELERATE)
    with pytest.raises(ConvertError, match=r"zero_optimization.stage is the expression args.stage; .*--set") as error:
        convert(request)
    assert (error.value.line, error.value.column) == (1, 32)
    assert (
        "zero_stage: 1"
        in convert(
            Request("a.py", settings.text.encode(), Form.ACCELERATE, given={"zero_optimization.stage": 1})
        ).written.text
    )


@pytest.mark.parametrize(
    ("form", "script", "message", "line"),
    [
        (Form.PLUGIN, "x = 1\n", r"there is no DeepSpeedPlugin", 0),
        (Form.PLUGIN, "a = DeepSpeedPlugin()\nb = DeepSpeedPlugin()\n", r"on the lines 1, 2; choose with --line", 0),
        (Form.PLUGIN, "DeepSpeedPlugin(hf_ds_config=load())\n", r"is the expression load\(\)", 1),
        (Form.PLUGIN, "def f(:\n", "not valid Python", 1),
        (Form.TRANSFORMERS, "a = TrainingArguments(lr=1)\n", "names no config", 1),
        (Form.DICT, "import deepspeed\n", "no dictionary of the script", 0),
        (Form.DICT, "ds_config = {'a': 1}\ndeepspeed_config = {'b': 2}\n", r"on the lines 1, 2; choose with --line", 0),
    ],
)
def test_a_script_without_the_one_place_is_an_error(form: Form, script: str, message: str, line: int) -> None:
    with pytest.raises(ConvertError, match=message) as error:
        read(form, Input(script))
    assert error.value.line == line


def test_a_line_chooses_between_several_places() -> None:
    script = "a = DeepSpeedPlugin(zero_stage=1)\nb = DeepSpeedPlugin(zero_stage=3)\n"
    assert read(Form.PLUGIN, Input(script, line=2)).config["zero_optimization"]["stage"] == 3


SCRIPT = """import os  # é𝒳
from accelerate import Accelerator, DeepSpeedPlugin

plugin = DeepSpeedPlugin(
    zero_stage=2,  # two
    offload_optimizer_device="cpu",
    is_train_batch_min=os.environ["X"] == "1",  # whatever
)
accelerator = Accelerator(log_with="all", deepspeed_plugin=plugin)
"""


def test_the_plugin_of_a_script_is_edited_and_nothing_else() -> None:
    config = {"gradient_clipping": 0.5, "zero_optimization": {"stage": 3}, "bf16": {"enabled": True}}
    assert written(config, Form.PLUGIN, SCRIPT, carrying="fields") == SCRIPT.replace("stage=2", "stage=3").replace(
        '    offload_optimizer_device="cpu",\n', ""
    ).replace("# whatever\n", "# whatever\n    gradient_accumulation_steps=1,\n    gradient_clipping=0.5,\n").replace(
        "deepspeed_plugin=plugin)", "deepspeed_plugin=plugin, mixed_precision='bf16')"
    )


def test_the_dictionary_of_a_plugin_is_edited_in_its_place() -> None:
    script = (
        "ds_config = {\n    'zero_optimization': {'stage': 1},  # one\n    'bf16': {'enabled': True},\n}\n"
        "p = DeepSpeedPlugin(hf_ds_config=ds_config)\n"
    )
    config = {"zero_optimization": {"stage": 2}, "bf16": {"enabled": False}}
    assert written(config, Form.PLUGIN, script, carrying="whole") == script.replace("1}", "2}").replace("True", "False")


def test_a_dictionary_keeps_comments_and_expressions_that_are_not_touched() -> None:
    script = "ds_config = {\n    # ours\n    'train_batch_size': 8,  # all\n    'zero_optimization': {'stage': 1},\n}\n"
    config = {"train_batch_size": 16, "zero_optimization": {"stage": 1, "overlap_comm": False}}
    edited = written(config, Form.DICT, script)
    assert edited == script.replace("8,", "16,").replace("'stage': 1}", "'stage': 1, 'overlap_comm': False}")


def test_arguments_of_a_trainer_are_edited_beside_their_config() -> None:
    script = "a = TrainingArguments(\n    output_dir='x',  # there\n    learning_rate=1e-3,\n    deepspeed='ds.json')\n"
    config = {"optimizer": {"type": "AdamW", "params": {"lr": 3e-5}}, "zero_optimization": {"stage": 2}}
    edited = written(config, Form.TRANSFORMERS, script, carrying="file", name="ds.json")
    assert edited == script.replace("1e-3", "3e-05")


def test_a_config_becomes_python_and_is_read_back() -> None:
    for form in (Form.DICT, Form.PLUGIN, Form.TRANSFORMERS):
        config = {
            **CONFIG,
            "tensorboard": {"enabled": True, "output_path": "a 'b' \"c\" true null é", "job_name": None},
        }
        text = written(config, form)
        compile(text, "train.py", "exec")
        found = convert(Request("train.py", text.encode(), Form.DEEPSPEED))
        assert json.loads(found.written.text) == config


def test_arguments_behind_a_comment_and_without_a_comma_are_added_to() -> None:
    script = "p = DeepSpeedPlugin(\n    zero_stage=1  # one\n    # no more\n)\nq = f(1)\n"
    config = {"zero_optimization": {"stage": 1}, "gradient_accumulation_steps": 4}
    edited = written(config, Form.PLUGIN, script, carrying="fields")
    assert edited == (
        "p = DeepSpeedPlugin(\n    zero_stage=1,  # one\n    gradient_accumulation_steps=4,\n"
        "    gradient_clipping=1.0,\n"
        "    # no more\n)\nq = f(1)\n"
    )
