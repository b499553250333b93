"""The model that a config trains: beside it, named, or of a size."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from dsmigrate.checking.job import check_file
from dsmigrate.checking.trained import with_model
from dsmigrate.rules import Facts, ModelFacts
from dsmigrate.settings.check import CheckSettings
from dsmigrate.settings.errors import SettingsError

STAGE3 = '{"train_batch_size": 8, "zero_optimization": {"stage": 3}}'


@pytest.fixture
def config(tmp_path: Path) -> Path:
    file = tmp_path / "ds_config.json"
    file.write_text(STAGE3, encoding="utf-8")
    return file


def codes(file: Path, settings: CheckSettings) -> set[str]:
    return {finding.code for finding in check_file(file, settings).findings}


def test_a_model_beside_the_config_is_found(config: Path) -> None:
    (config.parent / "config.json").write_text(json.dumps({"model_type": "olmoe"}), encoding="utf-8")
    assert "DS473" in codes(config, CheckSettings())


@pytest.mark.parametrize("text", ['{"model_type": "nobody"}', '{"hidden_size": 8}', "{", "[]"])
def test_what_is_no_model_of_a_known_family_is_passed_over(config: Path, text: str) -> None:
    (config.parent / "config.json").write_text(text, encoding="utf-8")
    assert "DS473" not in codes(config, CheckSettings())


def test_a_model_that_is_named_is_held_against_the_memory_of_the_gpus(config: Path, tmp_path: Path) -> None:
    model = tmp_path / "model"
    model.mkdir()
    (model / "config.json").write_text(json.dumps({"model_type": "llama"}), encoding="utf-8")
    settings = CheckSettings(model=model, world_size=2, gpu_memory=24.0)
    (found,) = [one for one in check_file(config, settings).findings if one.code == "DS966"]
    assert found.message.startswith(f"{model} needs about ")
    assert "DS966" not in codes(config, CheckSettings(model=model, world_size=64, gpu_memory=80.0))
    assert "DS966" not in codes(config, CheckSettings(model=model, gpu_memory=24.0))


def test_a_model_that_is_named_must_be_there(config: Path) -> None:
    with pytest.raises(SettingsError, match=r"--model: .*no such file or folder"):
        check_file(config, CheckSettings(model=config.parent / "nowhere"))


def test_frozen_weights_need_no_states(config: Path) -> None:
    """A LLaMA 7B on two GPUs of 24 GiB: whole it does not fit, by LoRA it does."""
    (config.parent / "config.json").write_text(json.dumps({"model_type": "llama"}), encoding="utf-8")
    small = CheckSettings(world_size=2, gpu_memory=24.0)
    assert "DS966" in codes(config, small)
    assert "DS966" not in codes(config, replace(small, trainable="10m"))
    lora = {"peft_type": "LORA", "r": 8, "target_modules": ["q_proj"]}
    (config.parent / "adapter_config.json").write_text(json.dumps(lora), encoding="utf-8")
    assert "DS966" not in codes(config, small)
    with pytest.raises(SettingsError, match="--trainable: base '3bit' is not one of 16bit"):
        check_file(config, replace(small, trainable="10m", base_weights="3bit"))
    with pytest.raises(SettingsError, match=r"--trainable: .*cannot train"):
        check_file(config, replace(small, trainable="10b"))
    (config.parent / "adapter_config.json").write_text("{}", encoding="utf-8")
    assert "DS966" in codes(config, small)


def test_frozen_weights_count_where_a_lower_stage_is_hinted_at(config: Path) -> None:
    """13.5 GB of them are whole at stage 2: more than half of a GPU of 24 GiB."""
    (config.parent / "config.json").write_text(json.dumps({"model_type": "llama"}), encoding="utf-8")
    asked = CheckSettings(world_size=8, gpu_memory=24.0, trainable="10m")
    assert "DS962" not in codes(config, asked)
    assert "DS962" in codes(config, replace(asked, gpu_memory=80.0))


def test_of_quantised_weights_nothing_is_counted_until_it_is_said_what_trains(config: Path) -> None:
    base = {"model_type": "llama", "quantization_config": {"load_in_4bit": True}}
    (config.parent / "config.json").write_text(json.dumps(base), encoding="utf-8")
    small = CheckSettings(world_size=1, gpu_memory=8.0)
    assert "DS966" not in codes(config, small)
    assert "DS966" not in codes(config, replace(small, trainable="10m"))
    assert "DS966" in codes(config, replace(small, trainable="10m", gpu_memory=3.0))


def facts_beside(folder: Path, script: str, **more: object) -> ModelFacts:
    """Return what is known of a LLaMA 7B beside which a script lies."""
    (folder / "config.json").write_text(json.dumps({"model_type": "llama"}), encoding="utf-8")
    (folder / "train.py").write_text(script, encoding="utf-8")
    found = with_model(Facts(world_size=8), CheckSettings(**more), folder).model  # type: ignore[arg-type]
    assert found is not None
    return found


LORA = "from peft import LoraConfig\nconfig = LoraConfig({}target_modules=['q_proj', 'v_proj'])\n"


@pytest.mark.parametrize(
    ("script", "trained"),
    [
        (LORA.format("r=16, "), 8_388_608),
        (LORA.format(""), 4_194_304),
        ("if __name__ == '__main__':\n    train(LoraConfig(r=8, target_modules=['q_proj', 'v_proj']))\n", 4_194_304),
        (LORA.format("r=16, use_dora=True, ").replace("LoraConfig(", "peft.LoraConfig("), 8_650_752),
        ("config = LoraConfig(r=16, target_modules='all-linear', bias='none', lora_alpha=args.alpha)\n", 39_976_960),
    ],
)
def test_lora_that_a_script_writes_out_is_counted(tmp_path: Path, script: str, trained: int) -> None:
    found = facts_beside(tmp_path, script)
    assert sum(found.tensors) - sum(found.frozen) == trained
    assert (found.trains, found.base) == ("train.py", "16bit")
    assert found.held is not None


@pytest.mark.parametrize(
    "script",
    [
        LORA.format("r=args.rank, "),
        LORA.format("r=16, bias='all', "),
        LORA.format("**more, "),
        LORA.format("16, "),
        LORA.format("r=16, rank_pattern={'q_proj': 4}, "),
        LORA.format("r=16, ") + LORA.format("r=8, "),
        LORA.format("r=16, ").replace("v_proj", "odd"),
        "config = LoraConfig(r=16)\n",
        "config = LoraConfig(r=16, target_modules='.*proj')\n",
        "config = LoraConfig(r=16, target_modules=['q_proj')\n",
        "for parameter in model.backbone.parameters():\n    parameter.requires_grad = False\n",
        "model.encoder.requires_grad_(False)\n",
        "model.freeze_feature_encoder()\n",
        "from peft import (\n    AdaLoraConfig,\n)\n",
        "model = get_peft_model(model, config)\n",
        "if args.lora:\n    config = LoraConfig(r=16, target_modules=['q_proj'])\n",
        "config = LoraConfig(r=16, target_modules=['q_proj']) if args.lora else None\n",
    ],
)
def test_what_a_script_freezes_otherwise_is_counted_by_nobody(tmp_path: Path, script: str) -> None:
    found = facts_beside(tmp_path, script)
    assert (found.frozen, found.held, found.trains) == ((), None, "train.py")
    asked = facts_beside(tmp_path, script, trainable="10m")
    assert sum(asked.tensors) - sum(asked.frozen) == 10_000_000


def test_a_script_says_how_the_base_is_kept(tmp_path: Path) -> None:
    bits = "quant = BitsAndBytesConfig(load_in_{}bit=True{})\n"
    double = ", bnb_4bit_use_double_quant=True"
    for base, more in (("4bit-double", double), ("4bit", ""), ("8bit", "")):
        found = facts_beside(tmp_path, LORA.format("r=16, ") + bits.format(base[0], more))
        assert (found.base, found.frozen_width is not None) == (base, True)


def test_scripts_that_freeze_nothing_change_nothing(tmp_path: Path) -> None:
    found = facts_beside(tmp_path, "model.requires_grad_(True)\ngc.freeze()\nfrom peft import PeftModel\n")
    assert (found.frozen, found.trains) == ((), "")
    assert found.held is not None


def test_a_size_stands_for_a_typical_model(config: Path) -> None:
    config.write_text(
        '{"train_batch_size": 8, "zero_optimization": {"stage": 3, "offload_param": '
        '{"device": "nvme", "nvme_path": "/l"}}}',
        encoding="utf-8",
    )
    (found,) = [
        one for one in check_file(config, CheckSettings(parameters=11_000_000_000)).findings if one.code == "DS533"
    ]
    assert "a typical model of this size" in found.message
