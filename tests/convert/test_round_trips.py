from __future__ import annotations

import json

import pytest

from dsmigrate.convert.job import Request, convert
from dsmigrate.convert.model import ConvertError, Form, Target
from tests.convert.configs import Config, generated, real, text_of
from tests.convert.round_trip import trip

WAYS = [
    (Form.ACCELERATE, "fields"),
    (Form.PLUGIN, "fields"),
    (Form.PLUGIN, "whole"),
    (Form.PLUGIN, "auto"),
    (Form.DICT, "auto"),
    (Form.TRANSFORMERS, "auto"),
]


def configs() -> list[tuple[str, Config]]:
    return [*((f"generated {number}", config) for number, config in enumerate(generated(60))), *real()]


@pytest.mark.parametrize(("form", "carrying"), WAYS)
def test_what_is_said_to_be_carried_comes_back(form: Form, carrying: str) -> None:
    wrong: dict[str, list[str]] = {}
    done = 0
    for name, config in configs():
        try:
            found = trip(config, form, carrying)
        except ConvertError as error:
            if '"auto" or an expression' not in error.message:
                wrong[name] = [error.message]
            continue
        done += 1
        if found.differences():
            wrong[name] = found.differences()
    assert not wrong, "\n".join(["", *(f"{name}: {said}" for name, said in wrong.items())])
    assert done >= 60


@pytest.mark.parametrize("form", [Form.PLUGIN, Form.DICT])
def test_a_form_that_holds_the_whole_config_gives_it_back_to_the_letter(form: Form) -> None:
    for config in generated(20):
        written = convert(Request("ds.json", text_of(config), form, into=Target(carrying="whole"))).written.text
        back = convert(Request("train.py", written.encode(), Form.DEEPSPEED)).written.text
        assert json.loads(back) == config


def test_a_config_for_itself_is_the_same_text() -> None:
    text = b'{\n  // ours\n  "train_batch_size": 8, "bf16": {"enabled": true}\n}\n'
    assert convert(Request("ds.json", text, Form.DEEPSPEED)).written.text.encode() == text


SPELLED = """{
  "train_micro_batch_size_per_gpu": 1e1,
  "gradient_clipping": 1.0,
  "optimizer": {"type": "AdamW", "params": {"lr": 2e-5, "betas": [0.90, 0.95], "eps": 1E-08}},
  "zero_optimization": {"stage": 2, "reduce_bucket_size": 5e8}
}
"""


def test_numbers_keep_their_spelling_on_the_way_to_a_script_and_back() -> None:
    for form in (Form.DICT, Form.PLUGIN):
        script = convert(Request("ds.json", SPELLED.encode(), form, into=Target(carrying="whole"))).written.text
        for number in ('clipping": 1.0', 'lr": 2e-5', "0.90", 'eps": 1E-08', 'reduce_bucket_size": 5e8'):
            assert number in script
        assert 'train_micro_batch_size_per_gpu": 10,' in script  # a float there is none that DeepSpeed makes whole
        back = convert(Request("train.py", script.encode(), Form.DEEPSPEED)).written.text
        assert 'lr": 2e-5' in back
        assert 'reduce_bucket_size": 5e8' in back
    arguments = convert(Request("ds.json", SPELLED.encode(), Form.TRANSFORMERS)).written.text
    assert "learning_rate=2e-5" in arguments
    assert "adam_beta1=0.90" in arguments
    assert "per_device_train_batch_size=10" in arguments
    filled = convert(
        Request("train.py", arguments.encode(), Form.DEEPSPEED, given={"optimizer.params.lr": 2e-5})
    ).written.text
    assert 'eps": 1E-08' in filled


def test_numbers_keep_their_spelling_between_json_and_yaml_as_far_as_yaml_reads_it() -> None:
    config = b'{"gradient_accumulation_steps": 4, "gradient_clipping": 5e-1, "zero_optimization": {"stage": 2}}'
    yaml = convert(Request("ds.json", config, Form.ACCELERATE)).written.text
    assert "gradient_clipping: 5.0e-1\n" in yaml
    yaml = yaml.replace("steps: 4", "steps: 1_000")
    assert "gradient_accumulation_steps=1_000," in convert(Request("a.yaml", yaml.encode(), Form.PLUGIN)).written.text
    given = {"train_micro_batch_size_per_gpu": 4}
    back = convert(Request("a.yaml", yaml.encode(), Form.DEEPSPEED, given=given)).written.text
    assert '"gradient_clipping": 5.0e-1' in back
    assert '"gradient_accumulation_steps": 1000' in back


def test_numbers_that_only_python_spells_so_are_numbers() -> None:
    script = b'ds_config = {"train_batch_size": 1_6, "gradient_clipping": .5, "zero_optimization": {"stage": 2}}\n'
    config = json.loads(convert(Request("train.py", script, Form.DEEPSPEED)).written.text)
    assert config == {"train_batch_size": 16, "gradient_clipping": 0.5, "zero_optimization": {"stage": 2}}
    given = {"gradient_clipping": 1.0}
    there = Target(there=script.decode())
    edited = convert(Request("train.py", script, Form.DICT, given=given, into=there)).written.text
    assert edited == script.decode().replace(".5", "1.0")
