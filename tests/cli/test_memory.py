from __future__ import annotations

import json
import re
from pathlib import Path

import jsonschema
import pytest

from dsmigrate.cli.app import run
from dsmigrate.schemas_location import schema_file

SCHEMA = json.loads(schema_file("output/memory.schema.json").read_text(encoding="utf-8"))
Captured = pytest.CaptureFixture[str]
SEVEN = ["memory", "--params", "7b", "--gpus", "8"]


def answer(capsys: Captured, *arguments: str, code: int = 0) -> dict:  # type: ignore[type-arg]
    """Run the command and return its JSON, which keeps to the schema."""
    assert run([*arguments, "--format", "json"]) == code
    found: dict = json.loads(capsys.readouterr().out)  # type: ignore[type-arg]
    jsonschema.validate(found, SCHEMA)
    return found


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ([], "give the model: --model PATH, or --params 7b; one of the two"),
        (["--params", "7b", "--model", "."], "one of the two"),
        (["--params", "seven"], "--params 'seven' is not a number of parameters, such as 7b or 350M"),
        (["--params", "7b", "--heads", "33"], "33 heads do not divide a hidden size of 4096"),
        (["--params", "7b", "--deepspeed-version", "0.8.0"], "--deepspeed-version '0.8.0' is not a DeepSpeed release"),
        (["--params", "7b", "--plot", "bars.pdf"], "write a name that ends in .svg or .html"),
        (["--params", "7b", "--plot", "none/bars.svg"], "none/bars.svg: cannot be written"),
        (["--params", "7b", "none.json"], "none.json: "),
        (["--params", "7b", "--trainable", "8b"], "8,000,000,000 of 7,000,000,000 parameters cannot train"),
        (["--params", "7b", "--trainable", "none.json"], "none.json: no such file"),
        (["--params", "7b", "--base", "4bit"], "--base: give --trainable too"),
        (["--model", "none"], "none: no such file or folder"),
    ],
)
def test_wrong_usage_is_exit_code_2_and_says_why(
    capsys: Captured, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, arguments: list[str], says: str
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run(["memory", *arguments]) == 2
    assert says in " ".join(capsys.readouterr().err.split())


@pytest.mark.parametrize(
    ("text", "says"), [("", "no config"), ('{"zero_optimization": {"stage": 9}}', "ZeRO stage is not known")]
)
def test_a_config_without_a_stage_is_said(capsys: Captured, tmp_path: Path, text: str, says: str) -> None:
    (tmp_path / "ds.json").write_text(text)
    assert run(["memory", str(tmp_path / "ds.json"), "--params", "7b"]) == 2
    assert says in " ".join(capsys.readouterr().err.split())


def test_all_stages_stand_side_by_side(capsys: Captured) -> None:
    found = answer(capsys, *SEVEN, "--gpu-memory", "80", "--host-memory", "512")
    by_name = {one["name"]: one for one in found["estimates"]}
    assert len(by_name) == 13
    assert [by_name[f"ZeRO-{stage}"]["fits"] for stage in range(4)] == [False, True, True, True]
    states = ("parameters", "gradients", "master weights", "optimizer states")
    for name, bytes_each in (("ZeRO-1", 4 + 12 / 8), ("ZeRO-2", 2 + 14 / 8), ("ZeRO-3", 16 / 8)):
        parts = (part for part in by_name[name]["parts"] if part["place"] == "GPU" and part["what"] in states)
        held = sum(part["bytes"] for part in parts)
        assert held == pytest.approx(bytes_each * 7e9, rel=1e-3)
    assert by_name["ZeRO-2, optimizer on CPU"]["host_bytes_per_node"] == pytest.approx(18.3 * 7e9, rel=0.02)
    assert all(one["largest_micro_batch"] >= 1 for one in found["estimates"] if one["fits"])


def test_a_config_has_its_own_parts_and_what_it_says_of_the_batch(capsys: Captured, tmp_path: Path) -> None:
    config = {
        "train_micro_batch_size_per_gpu": 4,
        "gradient_accumulation_steps": 2,
        "bf16": {"enabled": True},
        "optimizer": {"type": "AdamW", "params": {"lr": 1e-4}},
        "zero_optimization": {"stage": 3, "offload_optimizer": {"device": "cpu"}},
    }
    file = tmp_path / "ds.json"
    file.write_text(json.dumps(config))
    found = answer(capsys, "memory", str(file), "--params", "7b", "--gpus", "8", "--gpu-memory", "80")
    assert found["workload"] == {
        "micro_batch": 4,
        "sequence": 2048,
        "micro_batches_per_step": 2,
        "activation_checkpointing": "none",
        "attention": "flash",
        "loss": "upcast",
    }
    (one,) = found["estimates"]
    assert one["stage"] == 3
    assert one["sent_elements"] == "5.86Ψ"
    assert {part["place"] for part in one["parts"]} == {"GPU", "host"}
    more = answer(capsys, "memory", str(file), "--params", "7b", "--gpus", "8", "--micro-batch", "1")
    assert more["estimates"][0]["gpu_bytes"] < one["gpu_bytes"]


def test_what_does_not_fit_is_exit_code_1(capsys: Captured, tmp_path: Path) -> None:
    (tmp_path / "ds.json").write_text('{"train_batch_size": 1, "zero_optimization": {"stage": 0}}')
    found = answer(capsys, "memory", str(tmp_path / "ds.json"), "--params", "7b", "--gpu-memory", "24", code=1)
    assert found["estimates"][0]["lacks"] == ["GPU"]
    assert run(["memory", str(tmp_path / "ds.json"), "--params", "7b"]) == 0


def test_a_config_that_deepspeed_rejects_is_not_sized_in_silence(capsys: Captured, tmp_path: Path) -> None:
    config = {"train_batch_size": 8, "bf16": {"enabled": True}, "zero_optimization": {"stage": 3, "mics_shard_size": 4}}
    (tmp_path / "ds.json").write_text(json.dumps(config))
    asked = ("memory", str(tmp_path / "ds.json"), "--params", "7b", "--gpus", "8")
    (one,) = answer(capsys, *asked, code=1)["estimates"]
    assert [finding["code"] for finding in one["rejected"]] == ["DS110"]
    assert run([*asked]) == 1
    assert "DeepSpeed 0.19.8 rejects this config" in capsys.readouterr().out
    (one,) = answer(capsys, *asked, "--deepspeed-version", "0.16.4")["estimates"]
    assert one["rejected"] == []


LORA = {"peft_type": "LORA", "r": 16, "target_modules": ["q_proj", "v_proj"]}


def test_only_what_trains_has_gradients_and_states(capsys: Captured, tmp_path: Path) -> None:
    (tmp_path / "adapter_config.json").write_text(json.dumps(LORA))
    found = answer(capsys, *SEVEN, "--trainable", str(tmp_path))
    adapters = 32 * 2 * 16 * (4096 + 4096)
    assert (found["model"]["parameters"], found["model"]["frozen"]) == (adapters, 7_000_000_000)
    parts = {part["says"]: part["bytes"] for part in found["estimates"][2]["parts"]}
    assert parts["frozen weights"] == 2 * 7_000_000_000
    assert parts["optimizer states of the shard"] == adapters
    packed = answer(capsys, *SEVEN, "--trainable", str(tmp_path), "--base", "4bit")["estimates"]
    shards = [part["bytes"] for part in packed[3]["parts"] if part["says"] == "frozen weights of the shard"]
    assert shards == [pytest.approx(0.59 * 7e9 / 8, rel=0.02)]
    some = answer(capsys, *SEVEN, "--trainable", "100m")["model"]
    assert (some["parameters"], some["frozen"]) == (10**8, 6_900_000_000)


@pytest.mark.parametrize(
    ("adapter", "says"),
    [
        ({"peft_type": "IA3"}, "peft_type 'IA3' is not known, only 'LORA'"),
        (LORA | {"r": 0}, "r 0 is not a rank"),
        (LORA | {"target_modules": ".*_proj"}, "target_modules is a pattern"),
        (LORA | {"target_modules": ["mixer"]}, "target_modules: 'mixer' is not known"),
        (LORA | {"modules_to_save": ["score"]}, "modules_to_save: 'score' is not known"),
        (LORA | {"target_modules": []}, "the adapter names no module"),
    ],
)
def test_an_adapter_that_is_not_known_is_said(
    capsys: Captured, tmp_path: Path, adapter: dict[str, object], says: str
) -> None:
    (tmp_path / "a.json").write_text(json.dumps(adapter))
    assert run([*SEVEN, "--trainable", str(tmp_path / "a.json")]) == 2
    assert says in " ".join(capsys.readouterr().err.split())


def test_checkpointing_takes_less_and_eager_attention_more(capsys: Captured) -> None:
    def activations(*more: str) -> int:
        one = answer(capsys, *SEVEN, *more)["estimates"][3]
        return sum(part["bytes"] for part in one["parts"] if part["what"] == "activations" and part["place"] == "GPU")

    plain = activations()
    assert (
        activations("--activation-checkpointing", "host")
        < activations("--activation-checkpointing", "full")
        < plain / 5
    )
    assert activations("--attention", "eager") > 2 * plain
    assert activations("--micro-batch", "2") == pytest.approx(2 * plain, rel=1e-6)


def test_a_sequence_that_is_shared_has_its_part_of_the_activations(capsys: Captured, tmp_path: Path) -> None:
    file = tmp_path / "ds_config.json"
    wanted = {"train_micro_batch_size_per_gpu": 1, "bf16": {"enabled": True}, "zero_optimization": {"stage": 2}}
    found = []
    for more in ({}, {"sequence_parallel_size": 4}, {"sequence_parallel_size": 3}):
        file.write_text(json.dumps(wanted | more), encoding="utf-8")
        found.append(answer(capsys, "memory", str(file), *SEVEN[1:], "--sequence", "32768"))
    whole, shared, odd = found
    held = [one["estimates"][0]["gpu_at_peak"]["activations"] for one in found]
    assert held[1] == pytest.approx(held[0] / 4, rel=1e-6)
    assert held[2] == held[0]
    said = "every sample shared among 4 GPUs by the script (Ulysses)"
    assert [said in json.dumps(one) for one in (whole, shared, odd)] == [False, True, False]


def test_releases_differ_where_deepspeed_does(capsys: Captured) -> None:
    """The slices of a bucket are reduced by their owners before 0.12.4, and all-reduced since."""
    old, new = (
        answer(capsys, *SEVEN, "--deepspeed-version", version)["estimates"][2] for version in ("0.12.3", "0.12.4")
    )
    assert (old["sent_elements"], new["sent_elements"]) == ("2Ψ", "3Ψ")


def test_the_table_has_a_row_and_a_bar_for_each(capsys: Captured) -> None:
    assert run([*SEVEN, "--gpu-memory", "80"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "7B: 7,000,000,000 parameters (the number given; the shape is that of LLaMA 7B)"
    assert lines[1] == "8 GPUs of 80.0 GiB, 6.4 GiB of it left free; DeepSpeed 0.19.8"
    assert [line.split()[:2] for line in lines if re.match(r" ?ZeRO-2 {5}", line)] == [
        ["ZeRO-2", "36.1"],
        ["ZeRO-2", "ppppmoocaaa"],
    ]
    assert any("too little GPU" in line for line in lines)


def test_a_config_is_listed_part_by_part(capsys: Captured, tmp_path: Path) -> None:
    (tmp_path / "ds.json").write_text(
        '{"train_batch_size": 8, "bf16": {"enabled": true}, "zero_optimization": {"stage": 2}}'
    )
    assert run(["memory", str(tmp_path / "ds.json"), "--params", "7b", "--gpus", "8"]) == 0
    out = capsys.readouterr().out
    assert "weights" in out
    assert "all-reduce of gradients: 22.8 GiB, each micro-batch" in out
    assert "Taken for granted: an optimizer with two states per parameter, as Adam." in out


@pytest.mark.parametrize("suffix", ["svg", "html"])
def test_bars_are_drawn_to_a_file(capsys: Captured, tmp_path: Path, suffix: str) -> None:
    file = tmp_path / f"bars.{suffix}"
    assert run([*SEVEN, "--gpu-memory", "24", "--host-memory", "512", "--plot", str(file)]) == 0
    drawn = file.read_text(encoding="utf-8")
    assert f"wrote {file}" in capsys.readouterr().err
    assert drawn.startswith("<svg " if suffix == "svg" else "<!DOCTYPE html>")
    assert drawn.count("<rect ") > 13
    assert "ZeRO-3, all on NVMe" in drawn
    assert "22.1 GiB can be used" in drawn


def test_names_of_models_are_escaped_in_pictures(tmp_path: Path) -> None:
    folder = tmp_path / "m<b>"
    folder.mkdir()
    (folder / "config.json").write_text('{"model_type": "gpt2"}')
    file = tmp_path / "bars.html"
    assert run(["memory", "--model", str(folder), "--plot", str(file)]) == 0
    assert "m&lt;b&gt;" in file.read_text(encoding="utf-8")
    assert "m<b>" not in file.read_text(encoding="utf-8")
