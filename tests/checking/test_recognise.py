from __future__ import annotations

import pytest

from dsmigrate.checking.recognise import is_config, is_config_name, looks_like_config
from dsmigrate.document import parse


@pytest.mark.parametrize(
    "name", ["package.json", "tsconfig.json", "kids.json", "dataset.json", "config.json", "ds_config.yaml", "ads.json"]
)
def test_other_names_are_not_names_of_configs(name: str) -> None:
    assert not is_config_name(name)


@pytest.mark.parametrize(
    "name",
    ["ds_config.json", "ds.json", "zero3.json", "deepspeed.hjson", "my_deepspeed_config.jsonc", "ds-config-z2.json"],
)
def test_names_of_configs(name: str) -> None:
    assert is_config_name(name)


@pytest.mark.parametrize(
    "text",
    [
        "{}",
        "[]",
        '"zero_optimization"',
        '{"optimizer": {"type": "sgd"}, "scheduler": {"type": "cosine"}}',
        '{"fp16": true, "pipeline": "text"}',
        '{"type": "object", "properties": {"zero_optimization": {}}, "zero_optimization": {}}',
        '{"train_batch_size": 8, "model": "x"}',
        '{"name": "x", "version": "1.0.0", "scripts": {}}',
        '{"output_dir": "o", "model_name_or_path": "m", "gradient_accumulation_steps": 8, "fp16": true, "optim": "a"}',
    ],
)
def test_other_objects_do_not_look_like_configs(text: str) -> None:
    assert not looks_like_config(parse(text))


@pytest.mark.parametrize(
    "text",
    [
        '{"zero_optimization": {"stage": 2}}',
        '{"train_batch_size": 8, "fp16": {"enabled": true}}',
        '{"bf16": {"enabled": "auto"}}',
        "train_micro_batch_size_per_gpu: 4",
        '{"train_batch_size": 8, "optimizer": {"type": "AdamW"}, ',
        '// comment\n{"gradient_clipping": 1.0, "steps_per_print": 10}',
    ],
)
def test_configs_are_known_by_their_keys(text: str) -> None:
    assert looks_like_config(parse(text))


@pytest.mark.parametrize(
    ("name", "text", "wanted"),
    [
        ("ds_config.json", "{}", True),
        ("ds_config.json", "", True),
        ("zero3.json", "// to be written", True),
        ("ds_config.json", "[]", False),
        ("ds_config.json", '{"train_batch_size": 8}', True),
        ("ds_config.json", '{"train_batch_size": ', True),
        ("ds_config.json", '{"answer": 42}', True),
        ("ds_config_schema.json", '{"type": "object", "properties": {"fp16": {}}}', False),
        ("my_ds.json", '{"answer": 42}', False),
        ("anything.json", '{"zero_optimization": {"stage": 2}}', True),
        ("anything.json", '{"answer": 42}', False),
        ("package.json", '{"zero_optimization": {"stage": 2}}', False),
        ("ds_config_TEMPLATE.json", '{"train_batch_size": BATCH_SIZE}', False),
        ("ds_config.yaml", '{"zero_optimization": {"stage": 2}}', False),
    ],
)
def test_in_a_directory_name_and_keys_decide(name: str, text: str, wanted: bool) -> None:
    assert is_config(name, parse(text)) is wanted
