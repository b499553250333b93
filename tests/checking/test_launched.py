"""The arguments of ``accelerate launch`` as a config: what they say of DeepSpeed, at the places of their words."""

from __future__ import annotations

from pathlib import Path

import pytest

from dsmigrate.checking.find import find
from dsmigrate.checking.job import Checked, check_file
from dsmigrate.checking.launched import launches
from dsmigrate.knowledge import Consumer
from dsmigrate.settings.check import CheckSettings

LINE = "accelerate launch --use_deepspeed"


def written(tmp_path: Path, text: str, name: str = "run.sh", **others: str) -> Path:
    for other, content in others.items():
        (tmp_path / other.replace("_", ".")).write_text(content, encoding="utf-8")
    (tmp_path / name).write_text(text, encoding="utf-8")
    return tmp_path / name


def checked(file: Path) -> Checked:
    return check_file(file, CheckSettings(version="0.14.4"))


def found(file: Path) -> list[tuple[str, str]]:
    result = checked(file)
    assert result.document is not None
    return [(one.code, result.document.text[one.start : one.end]) for one in result.findings]


def test_the_fields_are_those_of_the_yaml(tmp_path: Path) -> None:
    text = (
        f"{LINE} --zero_stage 2 --offload_param_device=cpu --gradient_clipping 1.0 --mixed_precision bf16 \\\n"
        "  --gradient_accumulation_steps 4 train.py --zero_stage 3\n"
    )
    (launch,) = launches("run.sh", text)
    assert launch.settings.config["zero_optimization"]["stage"] == 2
    assert launch.settings.config["gradient_accumulation_steps"] == 4
    assert launch.settings.config["bf16"]["enabled"] in (True, "auto")
    assert (
        [word.text for word in launch.started.words] == ["train.py", "--zero_stage", "3"] if launch.started else False
    )
    assert ("DS501", "--offload_param_device=cpu") in found(written(tmp_path, text))


@pytest.mark.parametrize("switch", ["--enable_cpu_affinity", "--dynamo_use_fullgraph", "--same_network", "-q", "-m"])
def test_a_switch_takes_no_word(switch: str) -> None:
    (launch,) = launches("run.sh", f"{LINE} {switch} --zero_stage 2 train.py\n")
    assert launch.settings.config["zero_optimization"]["stage"] == 2
    (launch,) = launches("run.sh", f"{LINE} --zero_stage 2 {switch} train.py\n")
    assert launch.started is not None
    assert [word.text for word in launch.started.words] == ["train.py"]


def test_variables_and_other_spellings_are_read() -> None:
    for line in (
        "accelerate-launch --use_deepspeed --zero-stage $STAGE",
        "STAGE=3 python -m accelerate.commands.launch --use-deepspeed --zero_stage=${STAGE}",
        "CUDA_VISIBLE_DEVICES=0,1 /opt/bin/accelerate launch --multi_gpu --use_deepspeed --zero_stage $STAGE",
    ):
        (launch,) = launches("run.sh", f"STAGE=3\n{line} train.py\n")
        assert launch.settings.config["zero_optimization"]["stage"] == 3, line


@pytest.mark.parametrize(
    "line",
    [
        "accelerate launch --zero_stage 3 train.py",
        "accelerate launch --use_deepspeed train.py",
        "accelerate launch --use_deepspeed --zero_stage 3 --deepspeed_config_file ds.json train.py",
        "accelerate launch --config_file acc.yaml --use_deepspeed --zero_stage 3 train.py",
        "accelerate launch train.py --use_deepspeed --zero_stage 3",
        "echo accelerate config --use_deepspeed --zero_stage 3",
    ],
)
def test_what_says_nothing_by_itself_is_left_alone(tmp_path: Path, line: str) -> None:
    assert list(launches("run.sh", line)) == []
    file = written(tmp_path, line)
    assert checked(file).error
    assert find([str(tmp_path)]) == ()


def test_a_bad_value_is_told_at_its_word(tmp_path: Path) -> None:
    file = written(tmp_path, f"{LINE} --zero_stage two --offload_optimizer_device gpu train.py\n")
    assert [text for code, text in found(file) if code.startswith("CV")] == [
        "--zero_stage", "--offload_optimizer_device",
    ]  # fmt: skip


def test_launchers_of_a_folder_are_found(tmp_path: Path) -> None:
    written(tmp_path, f"text\n\n```sh\n{LINE} --zero_stage 3 train.py\n```\n", "README.md")
    written(tmp_path, f"train:\n\t{LINE} --zero_stage 3 train.py\n", "Makefile")
    written(tmp_path, "echo nothing\n", "other.sh")
    assert [one.path.name for one in find([str(tmp_path)])] == ["Makefile", "README.md"]


@pytest.mark.parametrize(("release", "told"), [("4.28.1", True), ("4.31.0", True), ("4.32.1", False)])
def test_the_trainer_reads_what_its_script_is_started_with(tmp_path: Path, release: str, told: bool) -> None:
    script = "from transformers import Trainer, HfArgumentParser\n"
    line = f"{LINE} --zero_stage 3 train.py --fp16 --output_dir out\n"
    file = written(tmp_path, line, train_py=script, requirements_txt=f"transformers=={release}\n")
    assert checked(file).consumer is Consumer.TRANSFORMERS
    assert ("DS822" in {code for code, _ in found(file)}) is told
