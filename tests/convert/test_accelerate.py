from __future__ import annotations

from pathlib import Path

import pytest

from dsmigrate.convert import tree
from dsmigrate.convert.facts import fields
from dsmigrate.convert.model import ConvertError, Form, Settings
from dsmigrate.convert.reading import Input, document_of, read
from dsmigrate.convert.yaml_text import fresh, merged
from dsmigrate.convert.yaml_tree import read as read_yaml

HEAD = "distributed_type: DEEPSPEED\n"


def read_text(text: str, folder: Path | None = None, **overrides: object) -> Settings:
    return read(Form.ACCELERATE, Input(text, folder, overrides=overrides))


def noted(settings: Settings) -> list[tuple[str, int]]:
    """Return code and line of each note."""
    lines = [note.place.key_start if note.place else 0 for note in settings.notes]
    return [
        (note.code, settings.text.count("\n", 0, start) + 1) for note, start in zip(settings.notes, lines, strict=True)
    ]


def test_what_is_left_out_is_what_accelerate_takes_for_it() -> None:
    assert read_text(HEAD).config == {
        "train_batch_size": "auto",
        "train_micro_batch_size_per_gpu": "auto",
        "gradient_accumulation_steps": "auto",
        "gradient_clipping": "auto",
        "zero_optimization": {"stage": 2, "stage3_gather_16bit_weights_on_model_save": False},
    }


def test_every_field_lands_at_its_path_and_at_its_place() -> None:
    values = {"integer": "3", "number": "0.5", "boolean": "true", "device": "nvme", "string": "/x"}
    text = f"{HEAD}deepspeed_config:\n" + "".join(f"  {one.name}: {values[one.type]}\n" for one in fields().values())
    settings = read_text(text)
    document = document_of(settings)
    for one in fields().values():
        assert str(tree.get(settings.config, one.path)).lower() == values[one.type]
        found = document.range_of(one.path, "key")
        assert found is not None
        assert text[found[0] : found[1]] == one.name
        value = document.node_at(one.path)
        assert value is not None
        assert value.raw == values[one.type]


@pytest.mark.parametrize(
    ("text", "codes"),
    [
        ("deepspeed_config:\n  zero_stage: 2\nmixed_precision: bf16\n", [("CV109", 1)]),
        (f"{HEAD}deepspeed_config:\n  zero_stag: 2\n", [("CV101", 3)]),
        (f"{HEAD}zero_stage: 2\n", [("CV114", 2)]),
        (f"{HEAD}mixed_precision: no\n", [("CV104", 2)]),
        (f"{HEAD}mixed_precision: 'no'\n", []),
        (f"{HEAD}mixed_precision: half\n", [("CV106", 2)]),
        (f"{HEAD}deepspeed_config:\n  zero_stage: 2\n  zero_stage: 3\n", [("CV107", 4)]),
        (f"{HEAD}deepspeed_config:\n  zero_stage: three\n", [("CV106", 3)]),
        (f"{HEAD}deepspeed_config:\n  zero_stage: '3'\n", []),
        (f"{HEAD}deepspeed_config:\n  offload_param_device: disk\n", [("CV106", 3)]),
        (f"{HEAD}deepspeed_config:\n  offload_param_nvme_path: /x\n", [("CV112", 3)]),
        (f"{HEAD}deepspeed_config:\n  offload_param_device: nvme\n  offload_param_nvme_path: /x\n", [("CV103", 4)]),
        (f"{HEAD}deepspeed_config:\n  gradient_clipping: 0\n", [("CV105", 3)]),
        (f"{HEAD}deepspeed_config:\n  zero3_save_16bit_model: yes please\n", [("CV106", 3)]),
        (f"{HEAD}deepspeed_config:\n  deepspeed_config_file: nowhere.json\n", [("CV108", 3)]),
    ],
)
def test_what_the_yaml_does_not_mean_is_said_at_its_line(text: str, codes: list[tuple[str, int]]) -> None:
    assert noted(read_text(text, Path("/nowhere"))) == codes


def test_a_named_file_counts_from_where_the_launch_is_started(tmp_path: Path) -> None:
    (tmp_path / "configs").mkdir()
    (tmp_path / "configs" / "ds.json").write_text('{"zero_optimization": {"stage": 1}}')
    text = f"{HEAD}deepspeed_config:\n  deepspeed_config_file: configs/ds.json\n"
    settings = read_text(text, tmp_path / "configs")
    assert settings.config == {"zero_optimization": {"stage": 1}}
    assert noted(settings) == []


def test_a_named_file_is_read_from_beside_the_yaml(tmp_path: Path) -> None:
    (tmp_path / "ds.json").write_text('{"zero_optimization": {"stage": 1}, "bf16": {"enabled": "auto"}}')
    text = f"{HEAD}mixed_precision: bf16\ndeepspeed_config:\n  deepspeed_config_file: ds.json\n  zero_stage: 2\n"
    settings = read_text(text, tmp_path)
    assert settings.config == {"zero_optimization": {"stage": 1}, "bf16": {"enabled": "auto"}}
    assert noted(settings) == [("CV102", 5), ("CV102", 2)]


def test_a_named_file_that_is_broken_is_an_error_with_its_line(tmp_path: Path) -> None:
    (tmp_path / "ds.json").write_text('{\n  "a": 1,\n  "b": [\n}')
    with pytest.raises(ConvertError, match=r"^ds\.json:\d+:\d+: ") as error:
        read_text(f"{HEAD}deepspeed_config:\n  deepspeed_config_file: ds.json\n", tmp_path)
    assert error.value.line == 3


@pytest.mark.parametrize(
    ("text", "message", "line"),
    [
        ("a: [1, 2\nb: 3\n", "not valid YAML", 2),
        ("- 1\n- 2\n", "no mapping", 1),
        ("distributed_type: MULTI_GPU\n", "it trains with MULTI_GPU", 1),
        ("a: 1\n", "neither deepspeed_config nor distributed_type", 1),
        (f"{HEAD}deepspeed_config: 3\n", "deepspeed_config is no mapping", 2),
        (f"{HEAD}? [a, b]\n: 1\n", "a key of the YAML is no text", 2),
        (f"{HEAD}base: &b {{zero_stage: 1}}\ndeepspeed_config:\n  <<: *b\n", "merge keys", 4),
        ("a: \x01\n", "cannot stand in YAML", 1),
        ("x:\n  " + "[" * 300_000, "^the YAML is nested too deeply", 2),
    ],
)
def test_what_is_no_such_yaml_is_an_error_with_its_line(text: str, message: str, line: int) -> None:
    with pytest.raises(ConvertError, match=message) as error:
        read_text(text)
    assert error.value.line == line


FSDP = "distributed_type: FSDP\nmixed_precision: bf16\nfsdp_config:\n"


def test_a_key_without_a_colon_has_no_value() -> None:
    read = read_text(f"{HEAD}deepspeed_config:\n  zero_stage: 2\n? alone\n")
    assert read.config["zero_optimization"]["stage"] == 2


def test_fsdp_that_shards_everything_is_zero_3() -> None:
    text = (
        f"{FSDP}  fsdp_sharding_strategy: FULL_SHARD\n  fsdp_offload_params: true\n"
        "  fsdp_state_dict_type: FULL_STATE_DICT\n  fsdp_backward_prefetch: BACKWARD_PRE\n"
        "  fsdp_activation_checkpointing: true\n  fsdp_new_key: 1\n  offload_params: true\n"
    )
    settings = read_text(text)
    assert settings.config["zero_optimization"] == {
        "stage": 3,
        "offload_param": {"device": "cpu"},
        "offload_optimizer": {"device": "cpu"},
        "stage3_gather_16bit_weights_on_model_save": True,
    }
    assert settings.config["bf16"] == {"enabled": True}
    assert noted(settings) == [("CV402", 7), ("CV401", 8), ("CV401", 9), ("CV401", 1)]


@pytest.mark.parametrize(
    "line",
    [
        "fsdp_sharding_strategy: SHARD_GRAD_OP",
        "fsdp_sharding_strategy: 2",
        "fsdp_reshard_after_forward: HYBRID_SHARD",
        "fsdp_sharding_strategy: NO_SHARD",
        "fsdp_version: 2\n  fsdp_reshard_after_forward: false",
        "fsdp_sharding_strategy: WHATEVER",
    ],
)
def test_another_sharding_is_refused_unless_a_stage_is_asked_for(line: str) -> None:
    with pytest.raises(ConvertError, match="is not ZeRO-3: ") as error:
        read_text(f"{FSDP}  {line}\n")
    assert error.value.line == 4 + line.count("\n")
    settings = read_text(f"{FSDP}  {line}\n", zero_optimization={"stage": 2}, gradient_clipping=1.0)
    assert [code for code, _ in noted(settings)] == ["CV401"]


WRITTEN = """# ours
compute_environment: LOCAL_MACHINE  # here
deepspeed_config:
    zero_stage: 2        # half of it
    # the host
    offload_optimizer_device: none

    gradient_clipping: 1.0
debug: false
"""


def test_a_file_that_is_there_keeps_its_comments_order_and_layout() -> None:
    wanted: dict[str, object] = {
        "deepspeed_config": {"zero_stage": 3, "gradient_clipping": 1.0, "zero3_init_flag": True}
    }
    edited = merged(WRITTEN, {**wanted, "num_processes": 8}, {"deepspeed_config": {"offload_optimizer_device"}})
    assert (
        edited
        == """# ours
compute_environment: LOCAL_MACHINE  # here
deepspeed_config:
    zero_stage: 3        # half of it
    # the host

    gradient_clipping: 1.0
    zero3_init_flag: true
debug: false
num_processes: 8
"""
    )
    assert merged(edited, {**wanted, "num_processes": 8}, {}) == edited


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", "deepspeed_config:\n  zero_stage: 1\n"),
        ("a: 1", "a: 1\ndeepspeed_config:\n  zero_stage: 1\n"),
        ("deepspeed_config:\nb: 2\n", "deepspeed_config:\n  zero_stage: 1\nb: 2\n"),
        ("deepspeed_config: {}\n", "deepspeed_config: \n  zero_stage: 1\n"),
        ("deepspeed_config:\r\n  zero_stage: 3 # x\r\n", "deepspeed_config:\r\n  zero_stage: 1 # x\r\n"),
        ("deepspeed_config:\n  zero_stage:\n", "deepspeed_config:\n  zero_stage: 1\n"),
    ],
)
def test_fields_find_their_place_in_any_file(text: str, expected: str) -> None:
    edited = merged(text, {"deepspeed_config": {"zero_stage": 1}}, {})
    assert edited == expected
    assert read_yaml(edited).value["deepspeed_config"] == {"zero_stage": 1}


@pytest.mark.parametrize("text", ["{deepspeed_config: {zero_stage: 2}}", "deepspeed_config: {zero_stage: 2}\n"])
def test_a_file_between_braces_is_not_edited(text: str) -> None:
    with pytest.raises(ConvertError, match="write it in lines"):
        merged(text, {"deepspeed_config": {"zero_stage": 1}}, {})


@pytest.mark.parametrize(
    "value",
    ["no", "On", "y", "null", "/a b", "1e-5", "0x1", "x: y", "# c", "é", 'a"b', "", "a,b", 1e-7, 1e20, 3, 0.5, True],
)
def test_what_is_written_is_read_back_as_it_was(value: object) -> None:
    assert read_yaml(fresh({"a": value, "b": {"c": value}})).value == {"a": value, "b": {"c": value}}
