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
