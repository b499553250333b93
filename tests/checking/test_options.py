"""Defaults of a script count where its launch line leaves an argument out."""

from __future__ import annotations

from pathlib import Path

import pytest

from dsmigrate.checking.arguments import arguments_for, behind_flag, forget, of_started
from dsmigrate.checking.job import check_file
from dsmigrate.convert.arguments import read_arguments
from dsmigrate.rules import Default
from dsmigrate.settings.check import CheckSettings

SCRIPT = """\
from dataclasses import dataclass, field
import transformers

@dataclass
class ModelArguments:
    model: str = field(default="m", metadata={"help": "the model"})

@dataclass
class TrainingArguments(transformers.TrainingArguments):
    lr_scheduler_type: str = field(default="cosine")
    gradient_accumulation_steps: int = 4
    learning_rate: float = field(default=2e-5)
    bf16: bool = True
    max_steps: int = field(default=1_000)
    warmup_ratio: float = field(default=0.03)
    report_to: list = field(default_factory=list)

parser = transformers.HfArgumentParser((ModelArguments, TrainingArguments))
model_args, training_args = parser.parse_args_into_dataclasses()
transformers.Trainer(args=training_args)
"""
CONFIG = """{
  "train_micro_batch_size_per_gpu": "auto",
  "gradient_accumulation_steps": 8,
  "zero_optimization": {"stage": 2},
  "scheduler": {"type": "WarmupLR", "params": {"warmup_num_steps": "auto"}}
}
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    forget()
    (tmp_path / ".git").mkdir()
    (tmp_path / "ds.json").write_text(CONFIG, encoding="utf-8")
    (tmp_path / "train.py").write_text(SCRIPT, encoding="utf-8")
    (tmp_path / "run.sh").write_text("torchrun train.py --deepspeed ds.json\n", encoding="utf-8")
    return tmp_path


def told(project: Path) -> dict[str, str]:
    return {one.code: one.message for one in check_file(project / "ds.json", CheckSettings()).findings}


def test_defaults_of_dataclasses_are_held_against_the_config(project: Path) -> None:
    found = told(project)
    assert "differs from `gradient_accumulation_steps` 4, its default (train.py:11)" in found["DS814"]
    assert "`lr_scheduler_type` cosine, its default (train.py:10) has no effect" in found["DS825"]


def test_a_launch_line_says_otherwise(project: Path) -> None:
    given = "--gradient_accumulation_steps 8 --lr_scheduler_type constant_with_warmup"
    (project / "run.sh").write_text(f"torchrun train.py --deepspeed ds.json {given}\n", encoding="utf-8")
    assert not {"DS814", "DS825"} & told(project).keys()


@pytest.mark.parametrize("more", ['"$@"', "$EXTRA", "args.yaml"])
def test_a_launch_line_with_more_than_is_known_leaves_defaults_open(project: Path, more: str) -> None:
    (project / "run.sh").write_text(f"torchrun train.py --deepspeed ds.json {more}\n", encoding="utf-8")
    ((given,), _) = arguments_for(project / "ds.json")
    assert (given.given("gradient_accumulation_steps"), given.whole) == (None, False)


def test_what_the_script_sets_itself_is_not_known(project: Path) -> None:
    more = "training_args.gradient_accumulation_steps = compute()\ntraining_args.weight_decay = 0.1\n"
    (project / "train.py").write_text(SCRIPT + more, encoding="utf-8")
    ((given,), _) = arguments_for(project / "ds.json")
    for name in ("gradient_accumulation_steps", "weight_decay"):
        found = given.given(name)
        assert found is not None
        assert found.text is None


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("parser.parse_args_into_dataclasses()", "parser.parse_yaml_file(path)"),
        ("(ModelArguments, TrainingArguments)", "(ModelArguments,)"),
        ("TrainingArguments(transformers.TrainingArguments)", "TrainingArguments(Other)"),
    ],
)
def test_defaults_of_transformers_hold_only_for_its_own_class_and_a_command_line(
    project: Path, old: str, new: str
) -> None:
    assert of_started(project / "train.py").whole
    forget()
    (project / "train.py").write_text(SCRIPT.replace(old, new), encoding="utf-8")
    assert not of_started(project / "train.py").whole


def test_classes_are_followed_to_the_module_that_they_are_imported_from(project: Path) -> None:
    (project / "pkg").mkdir()
    (project / "pkg" / "args.py").write_text(SCRIPT.partition("parser =")[0], encoding="utf-8")
    lines = SCRIPT.partition("parser =")[2]
    script = f"import transformers\nfrom pkg.args import ModelArguments, TrainingArguments as Own\nparser ={lines}"
    (project / "train.py").write_text(script.replace("s, Training", "s, Own if 0 else Training"), encoding="utf-8")
    assert not of_started(project / "train.py").defaults  # an expression
    forget()
    (project / "train.py").write_text(script.replace(", TrainingArguments))", ", Own))"), encoding="utf-8")
    found = of_started(project / "train.py")
    assert (found.whole, found.defaults["learning_rate"].place) == (True, "pkg/args.py:12")


def test_a_dataclass_names_the_config_where_no_launch_line_does(project: Path) -> None:
    (project / "run.sh").unlink()
    field = '    deepspeed: str = field(default="ds.json")\n    bf16:'
    (project / "train.py").write_text(SCRIPT.replace("    bf16:", field), encoding="utf-8")
    checked = check_file(project / "ds.json", CheckSettings())
    assert checked.why_consumer == "train.py:13 gives it to the Trainer"
    assert "its default (train.py:11)" in told(project)["DS814"]


def test_defaults_of_argparse(project: Path) -> None:
    (project / "train.py").write_text(
        "import argparse\np = argparse.ArgumentParser()\n"
        "p.add_argument('-l', '--learning-rate', default=1e-5)\np.add_argument('--flag', action='store_true')\n"
        "p.add_argument('--a', dest='b', default=1)\np.add_argument('--c', default=None)\np.add_argument('path')\n"
        "p.add_argument('--twice', default=1)\nq.add_argument('--twice', default=2)\n",
        encoding="utf-8",
    )
    found = {name: one.text for name, one in of_started(project / "train.py").defaults.items()}
    assert found == {"learning_rate": "1e-05", "flag": "false", "b": "1", "c": None, "twice": None}


def test_what_is_no_python_has_no_defaults(project: Path) -> None:
    (project / "train.py").write_text("def f(:\n", encoding="utf-8")
    assert not of_started(project / "train.py").defaults
    assert not of_started(project / "none.py").defaults


def test_convert_takes_defaults_of_a_script_and_of_the_one_that_a_launch_line_starts(project: Path) -> None:
    script = project / "train.py"
    found = read_arguments(str(script), script.read_text("utf-8"))
    assert (found.values["learning_rate"], found.values["max_steps"], found.values["bf16"]) == (2e-5, 1000, True)
    assert (found.defaults_hold, found.of_trainer) == (True, True)
    line = project / "run.sh"
    line.write_text("torchrun train.py --deepspeed ds.json --learning_rate 1e-4\n", encoding="utf-8")
    found = read_arguments(str(line), line.read_text("utf-8"))
    assert (found.values["learning_rate"], found.values["max_steps"]) == (1e-4, 1000)
    assert (found.defaults_hold, found.of_trainer) == (True, True)


def test_what_stands_behind_the_flag_may_be_a_launch_script_or_the_script(project: Path) -> None:
    (project / "run.sh").rename(project / "start.sh")
    (project / "start.sh").write_text("torchrun train.py --weight_decay 0.1\n", encoding="utf-8")
    forget()
    for name, place in (("start.sh", "start.sh:1"), ("train.py", "train.py")):
        (found,) = behind_flag(str(project / name))
        assert found.place.endswith(place)
        assert found.given("learning_rate") == Default("2e-05", "train.py:12")
    assert [one.values for one in behind_flag("--learning_rate 1e-5")] == [{"learning_rate": "1e-5"}]
    checked = check_file(project / "ds.json", CheckSettings(arguments=str(project / "start.sh")))
    assert "its default (train.py:11)" in {one.code: one.message for one in checked.findings}["DS814"]
