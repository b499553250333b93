"""What of a model trains: counts that PEFT, LitGPT and others print for adapters, and what the rest weighs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from dsmigrate.memory.shape import WHOLE, Described
from dsmigrate.memory.sources import described, typical
from dsmigrate.memory.trained import BASES, Adapter, narrowed, with_adapter, with_trainable

LLAMA3: dict[str, Any] = {
    "model_type": "llama",
    "intermediate_size": 14336,
    "num_key_value_heads": 8,
    "vocab_size": 128256,
}
LINEAR = ("q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj")


def model(folder: Path, values: dict[str, Any]) -> Described:
    (folder / "config.json").write_text(json.dumps(values))
    return described(folder / "config.json")


@pytest.mark.parametrize(
    ("values", "rank", "targets", "count"),
    [
        ({"model_type": "llama"}, 8, ("q_proj", "v_proj"), 4_194_304),
        (LLAMA3, 16, LINEAR, 41_943_040),
        (LLAMA3, 16, ("all-linear",), 41_943_040),
        ({"model_type": "falcon"}, 16, ("query_key_value",), 4_718_592),
        ({"model_type": "bloom", "hidden_size": 4096, "n_layer": 30, "n_head": 32}, 8, ("query_key_value",), 3_932_160),
        (
            {"model_type": "mt5", "d_model": 1024, "num_layers": 24, "num_heads": 16, "d_ff": 2816},
            8,
            ("q", "v"),
            2_359_296,
        ),
        ({"model_type": "gpt2"}, 8, ("c_attn",), 294_912),
    ],
    ids=lambda value: value.get("model_type") if isinstance(value, dict) else None,
)
def test_adapters_have_as_many_parameters_as_peft_prints(
    tmp_path: Path, values: dict[str, Any], rank: int, targets: tuple[str, ...], count: int
) -> None:
    """LitGPT's tables (7B), Unsloth's notebooks (8B), PEFT's examples (Falcon 7B, BLOOMZ 7B1, mT0 large, GPT-2)."""
    whole = model(tmp_path, values)
    found = with_adapter(whole, Adapter(rank, targets))
    assert found.model.parameters == count
    assert sum(found.model.frozen) == whole.model.parameters
    assert WHOLE in whole.notes
    assert WHOLE not in found.notes


def test_saved_modules_train_as_copies(tmp_path: Path) -> None:
    whole = model(tmp_path, LLAMA3)
    found = with_adapter(whole, Adapter(16, LINEAR, saved=("embed_tokens", "lm_head")))
    assert found.model.parameters == 41_943_040 + 2 * 128256 * 4096
    assert sum(found.model.frozen) == whole.model.parameters


@pytest.mark.parametrize(
    ("base", "gigabytes"), [("16bit", 16.06), ("8bit", 9.08), ("4bit", 6.03), ("4bit-double", 5.70)]
)
def test_a_base_weighs_what_it_is_kept_as(tmp_path: Path, base: str, gigabytes: float) -> None:
    """Llama 3 8B by bitsandbytes with double quantisation: 5.70 GB, and 5.88 measured with adapters in fp32."""
    found = with_adapter(model(tmp_path, LLAMA3), Adapter(16, LINEAR), base).model
    width = 2.0 if found.frozen_width is None else found.frozen_width
    assert sum(found.frozen) * width / 1e9 == pytest.approx(gigabytes, abs=0.01)


def test_the_files_of_a_model_say_how_it_is_kept(tmp_path: Path) -> None:
    for values, base in (
        ({"load_in_4bit": True, "bnb_4bit_use_double_quant": True}, "4bit-double"),
        ({"load_in_4bit": True}, "4bit"),
        ({"quant_method": "gptq", "bits": 4}, "4bit"),
        ({"load_in_8bit": True}, "8bit"),
        ({"quant_method": "fp8"}, "16bit"),
    ):
        assert model(tmp_path, LLAMA3 | {"quantization_config": values}).base == base
    assert base in BASES


def test_the_last_parameters_train_where_a_number_is_given() -> None:
    whole = typical(7_000_000_000)
    found = with_trainable(whole, 10**8).model
    assert found.parameters == 10**8
    assert found.elements == 7_000_000_000
    assert with_trainable(whole, 7_000_000_000).model == whole.model
    assert narrowed(whole, "100m").model == found
