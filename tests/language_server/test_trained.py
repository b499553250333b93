"""The sizes that an editor shows are those of the model that lies beside the config, and of what of it trains."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from lsprotocol import types

from dsmigrate.diff.job import Source, compare
from dsmigrate.document import Encoding, parse
from dsmigrate.editing.derived.trained import trained
from dsmigrate.editing.hover.hover import hover_at
from dsmigrate.editing.summary import details
from dsmigrate.editing.view import View
from dsmigrate.language_server import views
from dsmigrate.language_server.documents import OpenDocument
from dsmigrate.language_server.settings import settings_for
from dsmigrate.memory import usage
from dsmigrate.settings.check import CheckSettings
from dsmigrate.settings.diff import DiffSettings

CONFIG = '{"train_batch_size": 8, "bf16": {"enabled": true}, "zero_optimization": {"stage": 3}}'
LORA = {"peft_type": "LORA", "r": 16, "target_modules": ["q_proj", "v_proj"]}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with a LLaMA 7B."""
    write(tmp_path / "config.json", {"model_type": "llama"})
    return tmp_path


def write(file: Path, values: dict[str, Any]) -> None:
    """Write a file that is not as old as the one before."""
    before = file.stat().st_mtime_ns if file.exists() else 0
    file.write_text(json.dumps(values), encoding="utf-8")
    os.utime(file, ns=(before + 10**9, before + 10**9))


def seen(folder: Path, **settings: object) -> View:
    """Return the config in a folder as an editor has it on eight GPUs."""
    uri = (folder / "ds_config.json").as_uri()
    document = OpenDocument(types.TextDocumentItem(uri, "json", 1, CONFIG), Encoding.UTF16)
    return views.make(parse(CONFIG), document, settings_for(folder, ({"worldSize": 8, **settings},)))


def at_the_stage(view: View) -> str:
    """Return the hover of ``stage``."""
    found = hover_at(view, CONFIG.index("stage") + 1)
    assert found is not None
    return found.markdown


def test_all_of_a_model_trains_unless_something_says_otherwise(folder: Path) -> None:
    view = seen(folder)
    assert "all 6.74B parameters train." in at_the_stage(view)
    assert ("Model", "all 6.74B parameters train") in details(view)


def test_an_adapter_beside_the_config_is_counted_and_named(folder: Path) -> None:
    whole = at_the_stage(seen(folder))
    write(folder / "adapter_config.json", LORA)
    view = seen(folder)
    said = "8.39M of 6.75B parameters train (adapter_config.json), the others are frozen in 16bit"
    assert ("Model", said) in details(view)
    lora = at_the_stage(view)
    assert f"{said}." in lora
    assert size(lora) < size(whole) / 4
    model = view.context.facts.model
    assert model is not None
    assert model.held is not None
    assert size(lora) == pytest.approx((model.held(view.context) or 0) / 1e9, abs=0.06)


def test_a_quantised_base_is_smaller(folder: Path) -> None:
    write(folder / "adapter_config.json", LORA)
    half = size(at_the_stage(seen(folder)))
    four = {"quant_method": "bitsandbytes", "load_in_4bit": True}
    write(folder / "config.json", {"model_type": "llama", "quantization_config": four})
    view = seen(folder)
    assert "frozen in 4bit" in trained(view.context.facts)
    assert size(at_the_stage(view)) < half
    assert "frozen in 8bit" in trained(seen(folder, base="8bit").context.facts)


def test_of_a_quantised_base_alone_nothing_is_counted(folder: Path) -> None:
    write(folder / "config.json", {"model_type": "llama", "quantization_config": {"load_in_4bit": True}})
    view = seen(folder, parameters="7b", gpuMemory=24)
    said = "6.74B parameters in 4bit, which do not train: `trainable` or an `adapter_config.json` says what does"
    assert ("Model", said) in details(view)
    assert "States and buffers" not in at_the_stage(view)
    assert "Adam states take" not in at_the_stage(view)


def test_a_setting_says_what_trains(folder: Path) -> None:
    view = seen(folder, trainable="40m")
    assert trained(view.context.facts).startswith("40M of 6.74B parameters train (trainable 40m)")


def test_so_does_the_settings_file(folder: Path) -> None:
    (folder / "dsmigrate.toml").write_text('[check]\ntrainable = "20m"\n', encoding="utf-8")
    assert trained(seen(folder).context.facts).startswith("20M of 6.74B parameters train (trainable 20m)")


def test_paths_are_from_the_settings_file_or_the_config(folder: Path) -> None:
    inner = folder / "conf"
    inner.mkdir()
    (folder / "peft").mkdir()
    write(folder / "peft" / "adapter_config.json", LORA)
    assert "8.39M of 6.75B" in trained(seen(inner, model="../config.json", trainable="../peft").context.facts)


def test_paths_of_a_settings_file_are_from_it(folder: Path) -> None:
    (folder / "dsmigrate.toml").write_text('[check]\nmodel = "config.json"\n', encoding="utf-8")
    inner = folder / "conf"
    inner.mkdir()
    assert "all 6.74B" in trained(seen(inner).context.facts)


def test_a_script_that_freezes_parts_is_named(folder: Path) -> None:
    (folder / "train.py").write_text("model.encoder.requires_grad_(False)\n", encoding="utf-8")
    view = seen(folder)
    assert ("Model", "6.74B parameters, of which train.py freezes some: `trainable` says what trains") in details(view)
    assert "States and buffers" not in at_the_stage(view)
    (folder / "train.py").write_text("LoraConfig(r=16, target_modules=['q_proj', 'v_proj'])\n", encoding="utf-8")
    assert "8.39M of 6.75B parameters train (train.py)" in at_the_stage(seen(folder))


def test_findings_know_the_model_too(folder: Path) -> None:
    small = {"gpuMemory": 10}
    assert "DS966" in {one.code for one in seen(folder, **small).findings}
    write(folder / "adapter_config.json", LORA)
    assert "DS966" not in {one.code for one in seen(folder, **small).findings}


def test_what_cannot_be_read_is_said_once_with_the_settings_and_stops_nothing(folder: Path) -> None:
    asked = {"trainable": "10b"}
    assert any(error.startswith("--trainable: ") for error in settings_for(folder, (asked,)).errors)
    assert "States and buffers" not in at_the_stage(seen(folder, **asked))
    assert any(error.startswith("--model: ") for error in settings_for(folder, ({"model": "nowhere"},)).errors)


def test_the_files_are_read_again_only_when_they_change(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen(folder)
    with monkeypatch.context() as patch:
        patch.setattr("dsmigrate.memory.sources.described", None)
        assert "all 6.74B" in trained(seen(folder).context.facts)
    write(folder / "config.json", {"model_type": "llama", "num_hidden_layers": 16})
    assert "all 3.5" in trained(seen(folder).context.facts)


def test_a_comparison_counts_what_trains(folder: Path) -> None:
    config = {"train_batch_size": 8, "bf16": {"enabled": True}, "zero_optimization": {"stage": 2}}
    old, new = (
        Source("ds_config.json", json.dumps(one).encode(), folder)
        for one in (
            config | {"zero_optimization": {"stage": 1}},
            config,
        )
    )
    asked = DiffSettings(CheckSettings(world_size=8))
    said = {}
    for adapter in (None, LORA):
        if adapter is not None:
            write(folder / "adapter_config.json", adapter)
        compared = compare(old, new, asked)
        held = usage(compared.new.context)
        assert held is not None
        parts = {part.says: part.bytes for part in held.parts}
        said[adapter is None] = parts, " ".join(one.message for one in compared.result.explained)
    assert said[True][0]["weights"] == 2 * 6_738_415_616
    assert said[False][0]["frozen weights"] == 2 * 6_738_415_616
    assert said[False][0]["weights"] == 2 * 8_388_608
    assert "6.74B parameters, 8 GPUs" in said[True][1]
    assert "8.39M of 6.75B parameters train (adapter_config.json)" in said[False][1]
    assert "Model states per GPU: 12.6 GiB → 12.6 GiB" in said[False][1]


def size(text: str) -> float:
    """Return the GB that a hover says."""
    return float(text.partition("States and buffers take about ")[2].partition(" GB")[0])
