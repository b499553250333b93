"""Models from their files: counts that publishers give, and every way in which a file can be wrong."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dsmigrate.memory.activations import Loss, Workload, activations
from dsmigrate.memory.sources import ModelError, described, shaped, typical
from dsmigrate.memory.sources.config import families

LLAMA = {
    "model_type": "llama",
    "architectures": ["LlamaForCausalLM"],
    "hidden_size": 4096,
    "intermediate_size": 11008,
    "num_attention_heads": 32,
    "num_hidden_layers": 32,
    "vocab_size": 32000,
    "tie_word_embeddings": False,
}
PUBLISHED = {
    "LLaMA-2 7B": (LLAMA, 6_738_415_616),
    "LLaMA-2 70B": (
        LLAMA
        | {
            "hidden_size": 8192,
            "intermediate_size": 28672,
            "num_attention_heads": 64,
            "num_hidden_layers": 80,
            "num_key_value_heads": 8,
        },
        68_976_648_192,
    ),
    "LLaMA-3 8B": (
        LLAMA | {"intermediate_size": 14336, "num_key_value_heads": 8, "vocab_size": 128256},
        8_030_261_248,
    ),
    "Mistral 7B": (
        {"model_type": "mistral", "architectures": ["MistralForCausalLM"], "vocab_size": 32000},
        7_241_732_096,
    ),
    "Mixtral 8x7B": ({"model_type": "mixtral", "architectures": ["MixtralForCausalLM"]}, 46_702_792_704),
    "GPT-2": ({"model_type": "gpt2", "architectures": ["GPT2LMHeadModel"]}, 124_439_808),
    "GPT-2 XL": ({"model_type": "gpt2", "n_embd": 1600, "n_layer": 48, "n_head": 25}, 1_557_611_200),
    "GPT-J 6B": ({"model_type": "gptj"}, 6_050_882_784),
    "GPT-NeoX 20B": ({"model_type": "gpt_neox"}, 20_554_567_680),
    "OPT 125M": ({"model_type": "opt"}, 125_239_296),
    "BLOOM 176B": ({"model_type": "bloom", "hidden_size": 14336, "n_layer": 70, "n_head": 112}, 176_247_271_424),
    "Falcon 7B": ({"model_type": "falcon", "alibi": False}, 6_921_720_704),
    "Qwen2 7B": (
        {
            "model_type": "qwen2",
            "hidden_size": 3584,
            "intermediate_size": 18944,
            "num_hidden_layers": 28,
            "num_attention_heads": 28,
            "num_key_value_heads": 4,
            "vocab_size": 152064,
        },
        7_615_616_512,
    ),
    "Gemma 2B": (
        {
            "model_type": "gemma",
            "hidden_size": 2048,
            "intermediate_size": 16384,
            "num_hidden_layers": 18,
            "num_attention_heads": 8,
            "num_key_value_heads": 1,
            "head_dim": 256,
        },
        2_506_172_416,
    ),
    "Gemma 3 4B": (
        {
            "model_type": "gemma3",
            "architectures": ["Gemma3ForConditionalGeneration"],
            "text_config": {"hidden_size": 2560, "intermediate_size": 10240, "num_hidden_layers": 34},
            "vision_config": {
                "hidden_size": 1152,
                "image_size": 896,
                "intermediate_size": 4304,
                "num_attention_heads": 16,
                "num_hidden_layers": 27,
                "patch_size": 14,
                "vision_use_head": False,
            },
        },
        4_300_079_472,
    ),
    "Qwen2-VL 7B": (
        {
            "model_type": "qwen2_vl",
            "architectures": ["Qwen2VLForConditionalGeneration"],
            "hidden_size": 3584,
            "intermediate_size": 18944,
            "num_attention_heads": 28,
            "num_hidden_layers": 28,
            "num_key_value_heads": 4,
            "vision_config": {"depth": 32, "embed_dim": 1280, "hidden_size": 3584, "mlp_ratio": 4, "num_heads": 16},
            "vocab_size": 152064,
        },
        8_291_375_616,
    ),
    "Whisper large v2": (
        {
            "model_type": "whisper",
            "architectures": ["WhisperForConditionalGeneration"],
            "d_model": 1280,
            "decoder_ffn_dim": 5120,
            "decoder_layers": 32,
            "encoder_attention_heads": 20,
            "encoder_ffn_dim": 5120,
            "encoder_layers": 32,
        },
        1_543_304_960,
    ),
    "BERT base": ({"model_type": "bert", "architectures": ["BertModel"]}, 109_482_240),
    "RoBERTa base": (
        {
            "model_type": "roberta",
            "architectures": ["RobertaForMaskedLM"],
            "max_position_embeddings": 514,
            "type_vocab_size": 1,
        },
        124_697_433,
    ),
    "T5 small": ({"model_type": "t5", "architectures": ["T5ForConditionalGeneration"]}, 60_506_624),
    "ViT base": (
        {
            "model_type": "vit",
            "architectures": ["ViTForImageClassification"],
            "id2label": dict.fromkeys(range(1000), "x"),
        },
        86_567_656,
    ),
    "DeepSeek-V3": ({"model_type": "deepseek_v3"}, 671_026_404_352),
}


def config(folder: Path, values: object) -> Path:
    """Write a config.json."""
    file = folder / "config.json"
    file.write_text(json.dumps(values), encoding="utf-8")
    return file


def weights(
    file: Path, tensors: dict[str, tuple[str, list[int]]], header: bytes | None = None, data: int | None = None
) -> Path:
    """Write a .safetensors file of zeros; ``header`` and ``data`` replace what is right."""
    bits = {"F32": 32, "BF16": 16, "F16": 16, "I32": 32, "U8": 8}
    entries: dict[str, Any] = {"__metadata__": {"format": "pt"}}
    end = 0
    for name, (format_, shape) in tensors.items():
        start, end = end, end + math.prod(shape) * bits[format_] // 8
        entries[name] = {"dtype": format_, "shape": shape, "data_offsets": [start, end]}
    text = json.dumps(entries).encode() if header is None else header
    file.write_bytes(len(text).to_bytes(8, "little") + text + bytes(end if data is None else data))
    return file


@pytest.mark.parametrize("name", PUBLISHED)
def test_counts_are_those_that_publishers_give(tmp_path: Path, name: str) -> None:
    values, parameters = PUBLISHED[name]
    found = described(config(tmp_path, values))
    assert found.model.parameters == parameters
    assert found.exact
    assert found.shape is not None
    assert found.shape.layers > 0


WHOLE = sorted(name for name, family in families().items() if family["builder"] != "part")


@pytest.mark.parametrize("name", WHOLE)
def test_every_family_counts_with_its_defaults_and_scales_with_its_layers(tmp_path: Path, name: str) -> None:
    key = families()[name].get("keys", {}).get("num_hidden_layers", "num_hidden_layers")
    nested = families()[name]["builder"] == "seeing"
    layers = ({"text_config": {key: count}} if nested else {key: count} for count in (4, 8, 12))
    one, two, three = (described(config(tmp_path, {"model_type": name, **own})).model for own in layers)
    assert three.parameters - two.parameters == two.parameters - one.parameters > 0


@pytest.mark.parametrize(
    ("values", "says"),
    [
        ([], "config.json: an object is expected, this is list"),
        ({}, "the architecture of model_type None is not known; known: bert,"),
        ({"model_type": "mamba"}, "the architecture of model_type 'mamba' is not known"),
        ({"model_type": ["llama"]}, "the architecture of model_type"),
        (LLAMA | {"hidden_size": "4096"}, "hidden_size '4096' is not a whole number from 0 to 1000000000"),
        (LLAMA | {"hidden_size": 0}, "hidden_size is 0"),
        (LLAMA | {"hidden_size": 10**30}, "is not a whole number from 0 to"),
        (LLAMA | {"num_hidden_layers": 10**9}, "num_hidden_layers 1000000000 is not a whole number from 0 to 10000"),
        (LLAMA | {"num_hidden_layers": True}, "num_hidden_layers True is not"),
        (LLAMA | {"num_attention_heads": 33}, "33 attention heads do not divide a hidden size of 4096"),
        (LLAMA | {"architectures": ["LlamaForGlory"]}, "architectures[0] 'LlamaForGlory' ends in none of ForCausalLM"),
        (LLAMA | {"architectures": ["LlamaForImageClassification"]}, "ForImageClassification of llama is not known"),
        ({"model_type": "stablelm", "qk_layernorm": True}, "qk_layernorm of stablelm is not known; give --params"),
        (
            {"model_type": "bert", "num_hidden_layers": 0, "vocab_size": 0, "hidden_size": 1, "num_attention_heads": 0},
            "num_attention_heads is 0",
        ),
    ],
)
def test_configs_that_cannot_be_counted_say_why(tmp_path: Path, values: object, says: str) -> None:
    with pytest.raises(ModelError) as raised:
        described(config(tmp_path, values))
    assert says in str(raised.value)


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (b'{"model_type": ', "config.json:1:16: not JSON: Expecting value"),
        (b"\xff\xfe{}", "config.json: not UTF-8 text at byte 0"),
        (b"[" * 200_000, "config.json: nested too deeply"),
        (b"", "config.json:1:1: not JSON"),
        (b'{"n": ' + b"9" * 10_000 + b"}", "or a number too long"),
    ],
)
def test_what_is_no_json_is_said_with_its_place(tmp_path: Path, data: bytes, says: str) -> None:
    (tmp_path / "config.json").write_bytes(data)
    with pytest.raises(ModelError) as raised:
        described(tmp_path / "config.json")
    assert says in str(raised.value)


def test_nothing_there_is_said(tmp_path: Path) -> None:
    for path, says in ((tmp_path, "no config.json, model.safetensors"), (tmp_path / "x", "no such file or folder")):
        with pytest.raises(ModelError, match=says):
            described(path)


def test_weights_are_counted_from_the_header(tmp_path: Path) -> None:
    file = weights(
        tmp_path / "model.safetensors",
        {"a": ("BF16", [10, 20]), "b": ("F32", [7]), "c": ("I32", [3]), "s": ("F16", [])},
    )
    found = described(file)
    assert found.model.tensors == (200, 7, 1)
    assert found.shape is None
    assert any("1 tensors of whole numbers are left out" in note for note in found.notes)
    assert any("The file does not tell the shape" in note for note in found.notes)


def test_an_index_names_files_beside_it(tmp_path: Path) -> None:
    weights(tmp_path / "model-1.safetensors", {"a": ("BF16", [4, 4])})
    weights(tmp_path / "model-2.safetensors", {"b": ("BF16", [5])})
    names = {"a": "model-1.safetensors", "b": "model-2.safetensors"}
    index = tmp_path / "model.safetensors.index.json"
    index.write_text(json.dumps({"weight_map": names}))
    assert described(index).model.parameters == described(tmp_path).model.parameters == 21
    for bad in ("../model-1.safetensors", "/etc/passwd", "model-1.bin", 3):
        index.write_text(json.dumps({"weight_map": {"a": bad}}))
        with pytest.raises(ModelError, match=r"which is not a \.safetensors file beside it"):
            described(index)
    index.write_text(json.dumps({"weight_map": {"a": "gone.safetensors"}}))
    with pytest.raises(ModelError, match=r"gone\.safetensors: no such file"):
        described(index)
    index.write_text("{}")
    with pytest.raises(ModelError, match="no weight_map"):
        described(index)


@pytest.mark.parametrize(
    ("header", "data", "says"),
    [
        (
            b'{"a": {"dtype": "BF16", "shape": [2], "data_offsets": [0, 5]}}',
            9,
            "2 elements of BF16 do not take 5 bytes",
        ),
        (b'{"a": {"dtype": "BF16", "shape": [2], "data_offsets": [0, 4]}}', 3, "make no sense in 3 bytes"),
        (b'{"a": {"dtype": "BF16", "shape": [-2], "data_offsets": [0, 4]}}', 4, "shape [-2]"),
        (b'{"a": {"dtype": "BF16", "shape": [true], "data_offsets": [0, 2]}}', 4, "shape [True]"),
        (b'{"a": {"dtype": "X9", "shape": [2], "data_offsets": [0, 4]}}', 4, "dtype 'X9' is not known"),
        (b'{"a": 3}', 4, "dtype None is not known"),
        (b"[1, 2]", 0, "the header is list, not an object"),
        (b'{"a": ', 0, "header, byte 14: not JSON"),
        (b"\xff\xff\xff", 0, "the header is not JSON in UTF-8"),
        (b"[" * 99_999, 0, "the header is not JSON in UTF-8"),
        (b"{}", 0, "no tensor of floating-point weights"),
    ],
)
def test_headers_that_lie_are_found_out(tmp_path: Path, header: bytes, data: int, says: str) -> None:
    file = weights(tmp_path / "model.safetensors", {}, header, data)
    with pytest.raises(ModelError) as raised:
        described(file)
    assert says in str(raised.value)


@pytest.mark.parametrize(
    "data", [b"", b"\0" * 8, b"version https://git-lfs.github.com/spec/v1\noid sha256:0\n", b"\xff" * 8]
)
def test_what_is_no_safetensors_is_said(tmp_path: Path, data: bytes) -> None:
    file = tmp_path / "model.safetensors"
    file.write_bytes(data)
    with pytest.raises(ModelError, match=r"not \.safetensors, or cut off"):
        described(file)


@given(st.binary(max_size=200), st.booleans())
def test_any_bytes_are_a_model_or_a_message(
    tmp_path_factory: pytest.TempPathFactory, data: bytes, framed: bool
) -> None:
    file = tmp_path_factory.mktemp("any") / "model.safetensors"
    file.write_bytes((len(data).to_bytes(8, "little") if framed else b"") + data)
    with pytest.raises(ModelError):
        described(file)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**12), 10**12) | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)


@given(st.sampled_from(sorted(families())), st.data())
def test_any_values_are_a_model_or_a_message(
    tmp_path_factory: pytest.TempPathFactory, name: str, data: st.DataObject
) -> None:
    parts = ["text_config", "vision_config"] if "vision" in families()[name] else []
    keys = ["architectures", "num_labels", "id2label", *parts, *families()[name].get("defaults", {})]
    values = {"model_type": name, **data.draw(st.dictionaries(st.sampled_from(keys), JSON, max_size=4))}
    layers = families()[name].get("keys", {}).get("num_hidden_layers", "num_hidden_layers")
    if isinstance(values.get(layers), int):
        values[layers] = min(values[layers], 50)
    try:
        found = described(config(tmp_path_factory.mktemp("any"), values))
    except ModelError:
        return
    assert found.model.parameters > 0
    assert min(found.model.tensors) >= 0


def test_buffers_of_a_checkpoint_do_not_train(tmp_path: Path) -> None:
    """DeepSeek-V3's router corrects its scores by a bias that no gradient reaches."""
    named = {"a.weight": ("BF16", [4, 4]), "a.gate.e_score_correction_bias": ("F32", [256])}
    found = described(weights(tmp_path / "model.safetensors", named))
    assert (found.model.parameters, found.notes[0]) == (
        16,
        "Every floating-point tensor of the file is counted as trained.",
    )


def test_whisper_hears_1500_tokens_and_says_448(tmp_path: Path) -> None:
    found = described(config(tmp_path, PUBLISHED["Whisper large v2"][0])).shape
    assert found is not None
    work = Workload(1, 2048)
    assert (work.tokens(found), work.answered(found), Workload(1, 100).answered(found)) == (1500, 448, 100)
    logits = [part.bytes for part in activations(found, work) if part.says == "logits in 16 bit"]
    assert logits == [448 * 51865 * 2]


def test_the_loss_is_that_of_the_class_in_transformers(tmp_path: Path) -> None:
    """BERT, T5 and Whisper hand the logits to torch as they are; decoders bring them to fp32 (loss/loss_utils.py)."""
    own = {name: described(config(tmp_path, {"model_type": name})).shape for name in ("bert", "t5", "whisper", "llama")}
    found = {name: Workload().computed(shape).value for name, shape in own.items() if shape is not None}
    assert found == {"bert": "plain", "t5": "plain", "whisper": "plain", "llama": "upcast"}
    assert own["bert"] is not None
    assert Workload(loss=Loss.FUSED).computed(own["bert"]) is Loss.FUSED


def test_a_folder_with_weights_that_differ_is_told(tmp_path: Path) -> None:
    config(tmp_path, LLAMA)
    weights(tmp_path / "model.safetensors", {"a": ("BF16", [10])})
    found = described(tmp_path)
    assert found.model.parameters == 6_738_415_616
    assert any("model.safetensors holds 10 elements" in note for note in found.notes)


def test_beside_an_unknown_config_the_weights_count_and_the_config_gives_the_shape(tmp_path: Path) -> None:
    config(
        tmp_path,
        {"model_type": "new", "num_hidden_layers": 2, "hidden_size": 8, "num_attention_heads": 2, "vocab_size": 9},
    )
    weights(tmp_path / "model.safetensors", {"a": ("BF16", [10])})
    found = described(tmp_path)
    assert found.model.parameters == 10
    assert found.shape is not None
    assert (found.shape.layers, found.shape.hidden, found.shape.vocabulary) == (2, 8, 9)


@given(st.integers(1, 10**14), st.none() | st.integers(1, 10**4), st.none() | st.integers(1, 10**5))
def test_a_size_alone_comes_to_that_size(parameters: int, layers: int | None, hidden: int | None) -> None:
    found = typical(parameters, layers, hidden)
    assert found.model.parameters == parameters
    assert found.shape is not None
    assert not found.exact
    assert min(found.model.tensors) > 0


def test_the_shape_of_a_size_is_that_of_the_model_next_to_it() -> None:
    found = typical(7 * 10**9)
    assert found.shape is not None
    assert (found.shape.layers, found.shape.hidden, found.shape.inner) == (32, 4096, 11008)
    assert "the shape is that of LLaMA 7B" in found.source
    given_shape = typical(7 * 10**9, 30, 4608, 36, 50257)
    assert given_shape.source == "the number given"
    with pytest.raises(ModelError, match="33 heads do not divide"):
        typical(7 * 10**9, hidden=4096, heads=33)


def test_a_shape_beside_files_is_whole_or_none(tmp_path: Path) -> None:
    found = described(weights(tmp_path / "model.safetensors", {"a": ("BF16", [10])}))
    assert shaped(found) is found
    shape = shaped(found, 2, 8, 2, 9).shape
    assert shape is not None
    assert shape.layers == 2
    with pytest.raises(ModelError, match="--hidden, --vocab is missing"):
        shaped(found, layers=2, heads=2)
