from __future__ import annotations

import json
from pathlib import Path

import jsonschema
import pytest

from dsmigrate.cli.app import run
from dsmigrate.schemas_location import schema_file

SCHEMA = json.loads(schema_file("output/recommend.schema.json").read_text(encoding="utf-8"))
Captured = pytest.CaptureFixture[str]
SEVEN = ["recommend", "--params", "7b", "--gpus", "8"]


def answer(capsys: Captured, *arguments: str, code: int = 0) -> dict:  # type: ignore[type-arg]
    """Run the command and return its JSON, which keeps to the schema."""
    assert run([*arguments, "--format", "json"]) == code
    found: dict = json.loads(capsys.readouterr().out)  # type: ignore[type-arg]
    jsonschema.validate(found, SCHEMA)
    return found


def test_the_memory_of_a_gpu_is_needed(capsys: Captured) -> None:
    assert run(SEVEN) == 2
    assert "--gpu-memory" in capsys.readouterr().err


def test_the_choice_comes_with_its_config_and_the_others_in_order(capsys: Captured) -> None:
    found = answer(capsys, *SEVEN, "--gpu-memory", "80")
    assert found["chosen"]["name"] == found["fitting"][0]["name"] == "ZeRO-2"
    assert found["chosen"]["relative_time"] == 1
    assert found["chosen"]["config"]["zero_optimization"]["stage"] == 2
    assert [one["name"] for one in found["failing"]] == ["ZeRO-0"]
    assert found["failing"][0]["reason"] == "needs 156.5 GiB per GPU of 73.6 GiB"
    assert [topic["title"] for topic in found["decisions"]][:2] == ["Out of GPU memory", "Slow at stage 1 or 2"]


def test_nothing_that_fits_is_exit_code_1_with_advice(capsys: Captured) -> None:
    found = answer(capsys, *SEVEN, "--gpu-memory", "4", "--host-memory", "8", code=1)
    assert found["chosen"] is None
    assert found["fitting"] == found["decisions"] == []
    assert found["advice"][0] == "--nvme DIR: optimizer and weights on an NVMe disk"
    assert run([*SEVEN, "--gpu-memory", "4", "--host-memory", "8"]) == 1
    assert "Nothing fits." in capsys.readouterr().out


def test_more_host_memory_is_advised_where_that_is_all_that_lacks(capsys: Captured) -> None:
    less = ["recommend", "--params", "7b", "--gpu-memory", "24", "--host-memory"]
    found = answer(capsys, *less, "40", code=1)
    assert any(line.startswith("more host memory: ZeRO-3, optimizer on CPU fits with 130") for line in found["advice"])
    lower = answer(capsys, *less, "96")
    assert lower["chosen"]["bf16_states"]
    said = [note for note in lower["notes"] if note.startswith("Otherwise more host memory: ZeRO-3, optimizer on CPU")]
    assert len(said) == 1
    enough = answer(capsys, "recommend", "--params", "7b", "--gpu-memory", "24", "--host-memory", "132")
    assert enough["chosen"]["offload_optimizer"] == "cpu"


def test_nvme_is_used_where_it_may_be(capsys: Captured) -> None:
    few = [
        "recommend",
        "--params",
        "13b",
        "--gpu-memory",
        "16",
        "--host-memory",
        "64",
        "--activation-checkpointing",
        "full",
    ]
    found = answer(capsys, *few, "--nvme", "/fast", "--nvme-size", "2000")
    zero = found["chosen"]["config"]["zero_optimization"]
    assert zero["offload_optimizer"]["device"] == "nvme"
    assert zero["offload_optimizer"]["nvme_path"] == "/fast"
    assert "Slow with NVMe" in [topic["title"] for topic in found["decisions"]]
    assert answer(capsys, *few, "--nvme", "/fast", "--nvme-size", "100", code=1)["chosen"] is None


@pytest.mark.parametrize(
    ("consumer", "batch", "optimizer"),
    [("deepspeed", 1, "AdamW"), ("transformers", "auto", "AdamW"), ("accelerate", "auto", None)],
)
def test_configs_are_for_who_reads_them(capsys: Captured, consumer: str, batch: object, optimizer: str | None) -> None:
    config = answer(capsys, *SEVEN, "--gpu-memory", "24", "--consumer", consumer)["chosen"]["config"]
    assert config["train_micro_batch_size_per_gpu"] == batch
    assert config.get("optimizer", {}).get("type") == optimizer


def test_a_gpu_without_bf16_takes_fp16_and_says_why(capsys: Captured) -> None:
    for how in (["--gpu", "v100-32gb"], ["--gpu-memory", "32", "--hardware", "v100"]):
        found = answer(capsys, "recommend", "--params", "350m", "--gpus", "4", *how)
        assert found["chosen"]["config"]["fp16"] == {"enabled": True}
        assert f"fp16 instead of bf16: {how[-1]} has no bf16." in found["notes"]


def test_hardware_that_is_not_known_is_an_error(capsys: Captured) -> None:
    assert run([*SEVEN, "--gpu-memory", "80", "--hardware", "x9000"]) == 2
    assert "--hardware 'x9000' is not known; known: t4, v100" in " ".join(capsys.readouterr().err.split())
    assert run([*SEVEN, "--gpu", "a1000"]) == 2
    assert run([*SEVEN, "--gpu", "a100-80gb", "--hardware", "a100"]) == 2


def test_a_gpu_by_name_has_its_memory_and_links(capsys: Captured) -> None:
    found = answer(capsys, *SEVEN, "--gpu", "rtx4090")
    assert (found["machine"]["gpu_bytes"], found["interconnect"]) == (24 << 30, "pcie")
    assert answer(capsys, *SEVEN, "--nodes", "2", "--gpu", "a100-80gb")["interconnect"] == "infiniband"


def test_the_batch_is_chosen_for_a_global_one(capsys: Captured) -> None:
    """Micro-batch, accumulation and GPUs come to the samples of a step, with every candidate."""
    found = answer(capsys, *SEVEN, "--gpu", "a100-80gb", "--global-batch", "256")
    assert {one["micro_batch"] * one["accumulation"] * 8 for one in found["fitting"]} == {256}
    config = found["chosen"]["config"]
    sizes = config["train_micro_batch_size_per_gpu"], config["gradient_accumulation_steps"]
    assert sizes == (found["chosen"]["micro_batch"], found["chosen"]["accumulation"])
    hf = answer(capsys, *SEVEN, "--gpu", "a100-80gb", "--global-batch", "256", "--consumer", "transformers")
    said = f"per_device_train_batch_size {hf['chosen']['micro_batch']} and gradient_accumulation_steps"
    assert any(said in note for note in hf["notes"])
    assumed = answer(capsys, *SEVEN, "--gpu", "a100-80gb")
    assert any(note.startswith("128 samples per step are assumed") for note in assumed["notes"])
    given = answer(capsys, *SEVEN, "--gpu", "a100-80gb", "--micro-batch", "2", "--global-batch", "64")
    assert (given["global_batch"], given["chosen"]["micro_batch"], given["chosen"]["accumulation"]) == (None, 2, 4)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--global-batch", "100"], "--global-batch 100 does not divide over 8 GPUs"),
        (["--global-batch", "64", "--micro-batch", "3"], "give two of the three that fit"),
        (["--global-batch", "64", "--accumulation", "2"], "give two of the three that fit"),
    ],
)
def test_a_batch_that_does_not_divide_is_said(capsys: Captured, arguments: list[str], says: str) -> None:
    assert run([*SEVEN, "--gpu", "a100-80gb", *arguments]) == 2
    assert says in " ".join(capsys.readouterr().err.split())


def test_fewer_samples_than_gpus_are_shared(capsys: Captured) -> None:
    two = ["recommend", "--params", "8b", "--gpus", "8", "--gpu", "h100", "--global-batch", "2", "--sequence"]
    found = answer(capsys, *two, "131072", "--loss", "fused")
    sharing = {one["sequence_parallel_size"]: one for one in found["fitting"]}
    assert set(sharing) <= {4, 8}
    for ranks, one in sharing.items():
        assert one["micro_batch"] * one["accumulation"] * 8 == 2 * ranks
    assert run([*two, "2048"]) == 2
    assert "--global-batch 2 does not divide over 8 GPUs" in " ".join(capsys.readouterr().err.split())


def test_what_would_do_with_less_is_said(capsys: Captured) -> None:
    long = [
        "recommend",
        "--params",
        "8b",
        "--gpus",
        "8",
        "--gpu",
        "h100",
        "--sequence",
        "131072",
        "--global-batch",
        "8",
    ]
    found = answer(capsys, *long)
    assert found["chosen"]["sequence_parallel_size"] == 8
    fused = "With --loss fused (Liger, TiledFusedLogitsLoss): ZeRO-3"
    assert any(note.startswith(fused) and note.endswith("and nothing of this.") for note in found["notes"])
    few = [*long, "--layers", "32", "--hidden", "4096", "--heads", "1"]
    advice = answer(capsys, *few, code=1)["advice"]
    assert any(line.startswith("--loss fused (Liger, TiledFusedLogitsLoss): ZeRO-3") for line in advice)
    reserve = ["--gpu-memory", "24", "--host-memory", "160"]
    assert answer(capsys, "recommend", "--params", "7b", *reserve)["chosen"] is not None
    kept = answer(capsys, "recommend", "--params", "7b", *reserve, "--host-reserve", "60")
    assert kept["chosen"]["bf16_states"]
    assert answer(capsys, "recommend", "--params", "7b", *reserve, "--host-reserve", "120", code=1)["chosen"] is None


def test_the_config_is_written_once(capsys: Captured, tmp_path: Path) -> None:
    file = tmp_path / "ds_config.json"
    arguments = [*SEVEN, "--gpu-memory", "24", "--output", str(file)]
    assert run(arguments) == 0
    assert f"wrote {file}" in capsys.readouterr().err
    assert json.loads(file.read_text())["zero_optimization"]["stage"] == 3
    assert run(arguments) == 0
    assert run(["check", str(file), "--world-size", "8", "--gpu-memory", "24", "--parameters", "7b"]) == 0
    file.write_text("{}")
    assert run(arguments) == 2
    assert "is there and differs: --force replaces it" in " ".join(capsys.readouterr().err.split())
    assert file.read_text() == "{}"
    assert run([*arguments, "--force"]) == 0
    assert json.loads(file.read_text())["zero_optimization"]["stage"] == 3


def test_the_text_leads_from_the_choice_to_what_to_do_if(capsys: Captured) -> None:
    assert run([*SEVEN, "--gpu-memory", "24", "--interconnect", "pcie"]) == 0
    out = capsys.readouterr().out
    places = [
        out.index(text)
        for text in (
            "ZeRO-3 with activation checkpointing",
            "What fits, fastest first; times within 3% count as the same",
            '"stage": 3',
            "Switch activation checkpointing on",
            "Out of GPU memory",
            "Stage 3 is slower than stage 2",
        )
    ]
    assert places == sorted(places)
    assert run([*SEVEN, "--gpu-memory", "24", "--brief"]) == 0
    assert "Out of GPU memory" not in capsys.readouterr().out
