from __future__ import annotations

import pytest

from dsmigrate.editing.derived import built_class, offloads, stage_text, type_facts
from dsmigrate.knowledge import Consumer

from .contexts import context

CPU = '"offload_optimizer": {"device": "cpu"}'
NVME = '"offload_optimizer": {"device": "nvme"}, "offload_param": {"device": "nvme"}'


@pytest.mark.parametrize(
    ("members", "text"),
    [
        ('"zero_optimization": {"stage": 3}', "ZeRO-3"),
        ('"zero_optimization": {}', "ZeRO off"),
        ("", "ZeRO off"),
        ('"zero_optimization": []', "ZeRO off"),
        ('"zero_optimization": {"stage": "three"}', "ZeRO"),
    ],
)
def test_the_stage_in_a_word(members: str, text: str) -> None:
    assert stage_text(context(members)) == text


def test_a_stage_that_the_plugin_fills_is_open() -> None:
    assert stage_text(context('"zero_optimization": {"stage": "auto"}', consumer=Consumer.ACCELERATE)) == "ZeRO"


@pytest.mark.parametrize(
    ("zero", "found"),
    [
        (f'"stage": 3, {CPU}', (("optimizer", "cpu"),)),
        (f'"stage": 3, {NVME}', (("optimizer", "nvme"), ("parameters", "nvme"))),
        (f'"stage": 2, {NVME}', (("optimizer", "cpu"),)),
        (f'"stage": 0, {NVME}', ()),
        ('"stage": 3, "offload_optimizer": {}', ()),
        ('"stage": 1, "cpu_offload": true', (("optimizer", "cpu"),)),
    ],
)
def test_what_really_leaves_the_gpu(zero: str, found: tuple[tuple[str, str], ...]) -> None:
    assert offloads(context(f'"zero_optimization": {{{zero}}}')) == found


@pytest.mark.parametrize(
    ("members", "name"),
    [
        ('"optimizer": {"type": "AdamW"}', "FusedAdam"),
        (f'"optimizer": {{"type": "AdamW"}}, "zero_optimization": {{"stage": 2, {CPU}}}', "DeepSpeedCPUAdam"),
        ('"optimizer": {"type": "AdamW", "params": {"torch_adam": true}}', "torch.optim.AdamW"),
        ('"optimizer": {"type": "SGD"}', "torch.optim.SGD"),
    ],
)
def test_the_class_behind_a_type(members: str, name: str) -> None:
    here = context(members)
    facts = type_facts(here, "optimizer")
    assert facts is not None
    assert built_class(here, facts) == name


def test_the_class_is_open_while_the_device_is() -> None:
    members = '"optimizer": {"type": "AdamW"}, "zero_optimization": {"offload_optimizer": {"device": "auto"}}'
    here = context(members, consumer=Consumer.ACCELERATE)
    facts = type_facts(here, "optimizer")
    assert facts is not None
    assert built_class(here, facts) == ""
