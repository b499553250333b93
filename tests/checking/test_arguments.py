"""What launch lines, files of arguments and calls around a config give the training besides it."""

from __future__ import annotations

from pathlib import Path

import pytest

from dsmigrate.checking.arguments import arguments_for, forget, written
from dsmigrate.checking.job import check_file
from dsmigrate.settings.check import CheckSettings

SCHEDULED = """{
  "zero_optimization": {"stage": 2},
  "gradient_clipping": "auto",
  "gradient_accumulation_steps": "auto",
  "train_micro_batch_size_per_gpu": "auto",
  "scheduler": {"type": "WarmupLR", "params": {"warmup_num_steps": "auto"}}
}
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    forget()
    (tmp_path / ".git").mkdir()
    (tmp_path / "configs").mkdir()
    (tmp_path / "configs" / "ds.json").write_text(SCHEDULED, encoding="utf-8")
    return tmp_path


@pytest.mark.parametrize(
    ("file", "text"),
    [
        ("run.sh", "torchrun train.py --deepspeed configs/ds.json --lr_scheduler_type cosine\n"),
        ("run.sh", "CFG=configs/ds.json\ntorchrun train.py \\\n  --deepspeed=$CFG \\\n  --lr-scheduler-type cosine\n"),
        (
            "jobs/run.slurm",
            "#SBATCH -n 8\nsrun python train.py --deepspeed ../configs/ds.json --lr_scheduler_type=cosine\n",
        ),
        ("run.sh", 'torchrun train.py --deepspeed "${HERE}/configs/ds.json" --lr_scheduler_type cosine\n'),
        (
            "Makefile",
            "KIND = cosine\ntrain:\n\ttorchrun t.py --deepspeed configs/ds.json --lr_scheduler_type $(KIND)\n",
        ),
        ("README.md", "Run\n```sh\ntorchrun t.py --deepspeed configs/ds.json --lr_scheduler_type cosine\n```\n"),
        ("sft.yaml", "stage: sft\ndeepspeed: configs/ds.json\nlr_scheduler_type: cosine\n"),
        ("train.py", 'TrainingArguments("o", deepspeed="configs/ds.json", lr_scheduler_type="cosine")\n'),
    ],
)
def test_words_around_a_config_say_what_its_section_replaces(project: Path, file: str, text: str) -> None:
    (project / file).parent.mkdir(exist_ok=True)
    (project / file).write_text(text, encoding="utf-8")
    checked = check_file(project / "configs" / "ds.json", CheckSettings())
    (found,) = [one for one in checked.findings if one.code == "DS825"]
    assert "`--lr_scheduler_type cosine`" in found.message
    assert f"({file}:" in found.message
    assert checked.consumer.value == "transformers"
    assert "gives it to the Trainer" in checked.why_consumer


@pytest.mark.parametrize(
    ("file", "text"),
    [
        ("run.sh", "torchrun train.py --deepspeed other/ds.json --lr_scheduler_type cosine\n"),
        ("run.sh", "torchrun train.py --deepspeed configs/ds2.json --lr_scheduler_type cosine\n"),
        ("run.sh", "# torchrun train.py --deepspeed configs/ds.json --lr_scheduler_type cosine\n"),
        ("run.sh", "torchrun train.py --deepspeed configs/ds.json --lr_scheduler_type $KIND\n"),
        ("node_modules/run.sh", "torchrun train.py --deepspeed configs/ds.json --lr_scheduler_type cosine\n"),
    ],
)
def test_other_configs_comments_and_what_is_not_known_say_nothing(project: Path, file: str, text: str) -> None:
    (project / file).parent.mkdir(exist_ok=True)
    (project / file).write_text(text, encoding="utf-8")
    given, _ = arguments_for(project / "configs" / "ds.json")
    assert [one.values["lr_scheduler_type"] for one in given] in ([], [None])


def test_a_config_of_the_same_name_elsewhere_has_launch_lines_of_its_own(project: Path) -> None:
    (project / "other").mkdir()
    (project / "other" / "ds.json").write_text("{}", encoding="utf-8")
    (project / "other" / "run.sh").write_text("torchrun t.py --deepspeed ds.json --max_grad_norm 1\n", encoding="utf-8")
    assert arguments_for(project / "configs" / "ds.json") == ((), "")
    assert [one.place for one in arguments_for(project / "other" / "ds.json")[0]] == ["other/run.sh:1"]


def test_arguments_are_written_behind_the_flag() -> None:
    assert written("train.py --learning_rate 1e-5 --fp16 --seed=1").values == {
        "learning_rate": "1e-5", "fp16": "", "seed": "1",
    }  # fmt: skip
    settings = CheckSettings(arguments="--lr_scheduler_type cosine")
    assert settings.arguments == "--lr_scheduler_type cosine"


def test_a_launch_line_of_accelerate_is_held_against_its_yaml(project: Path) -> None:
    file = project / "acc.yaml"
    file.write_text(
        "deepspeed_config:\n  gradient_accumulation_steps: 4\n  zero_stage: 2\ndistributed_type: DEEPSPEED\n",
        encoding="utf-8",
    )
    (project / "run.sh").write_text(
        "accelerate launch --config_file acc.yaml t.py --do_train --gradient_accumulation_steps 2\n",
        encoding="utf-8",
    )
    checked = check_file(file, CheckSettings())
    (found,) = [one for one in checked.findings if one.code == "DS814"]
    assert found.message.startswith(
        "`gradient_accumulation_steps` differs from `--gradient_accumulation_steps 2` (run.sh:1)"
    )
    assert checked.why_consumer == "run.sh:1 gives arguments of the Trainer"


def test_scripts_without_the_trainer_share_names_with_it(project: Path) -> None:
    (project / "run.sh").write_text(
        "accelerate launch --deepspeed_config_file configs/ds.json run_glue_no_trainer.py "
        "--per_device_train_batch_size 4 --lr_scheduler_type cosine\n",
        encoding="utf-8",
    )
    assert arguments_for(project / "configs" / "ds.json")[1] == ""


def test_a_launch_line_that_leads_to_a_config_through_accelerate_counts(project: Path) -> None:
    (project / "acc.yaml").write_text(
        "deepspeed_config:\n  deepspeed_config_file: configs/ds.json\ndistributed_type: DEEPSPEED\n", encoding="utf-8"
    )
    (project / "run.sh").write_text(
        "accelerate launch --config_file acc.yaml t.py --do_train --lr_scheduler_type cosine\n", encoding="utf-8"
    )
    checked = check_file(project / "configs" / "ds.json", CheckSettings())
    (found,) = [one for one in checked.findings if one.code == "DS825"]
    assert "(run.sh:1)" in found.message
    assert checked.why_consumer == "run.sh:1 gives arguments of the Trainer"
