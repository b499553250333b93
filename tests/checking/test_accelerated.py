"""Scripts with a plain ``Accelerator()`` beside the config that they are started with."""

from __future__ import annotations

from pathlib import Path

import pytest

from dsmigrate.checking.arguments import forget
from dsmigrate.checking.job import Checked, check_file
from dsmigrate.settings.check import CheckSettings

FIELDS = "distributed_type: DEEPSPEED\ndeepspeed_config:\n  zero_stage: 2\n"
SCRIPT = """\
import argparse
import torch
from accelerate import Accelerator

parser = argparse.ArgumentParser()
parser.add_argument("--steps", type=int, default=2)
parser.add_argument("--max-grad-norm", type=float, default=0.5)
args = parser.parse_args()
accelerator = Accelerator(gradient_accumulation_steps=args.steps, mixed_precision="bf16")
model = make()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: 1)
model, optimizer, scheduler = accelerator.prepare(model, optimizer, scheduler)
accelerator.clip_grad_norm_(model.parameters(), args.max_grad_norm)
"""
HEAD = '{"train_micro_batch_size_per_gpu": 4, "zero_optimization": {"stage": 2}'


@pytest.fixture
def project(tmp_path: Path) -> Path:
    forget()
    (tmp_path / ".git").mkdir()
    (tmp_path / "acc.yaml").write_text(FIELDS, encoding="utf-8")
    (tmp_path / "train.py").write_text(SCRIPT, encoding="utf-8")
    (tmp_path / "run.sh").write_text("accelerate launch --config_file acc.yaml train.py\n", encoding="utf-8")
    return tmp_path


def yaml(project: Path, fields: str, top: str = "") -> Checked:
    forget()
    (project / "acc.yaml").write_text(top + FIELDS + fields, encoding="utf-8")
    return check_file(project / "acc.yaml", CheckSettings())


def file(project: Path, more: str) -> Checked:
    forget()
    (project / "ds.json").write_text(f"{HEAD}{more}}}", encoding="utf-8")
    (project / "acc.yaml").write_text(
        "distributed_type: DEEPSPEED\ndeepspeed_config:\n  deepspeed_config_file: ds.json\n", encoding="utf-8"
    )
    return check_file(project / "ds.json", CheckSettings())


def told(checked: Checked, *codes: str) -> list[tuple[str, str, str]]:
    assert checked.consumer.value == "accelerate"
    return [(one.code, one.severity.value, one.message) for one in checked.findings if one.code in codes]


def test_accumulation_is_that_of_the_config_and_what_a_launch_line_gives_is_told(project: Path) -> None:
    counts = "`gradient_accumulation_steps` 8 counts, and"
    assert told(yaml(project, "  gradient_accumulation_steps: 8\n"), "DS829") == [
        ("DS829", "info", f"{counts} `--steps 2`, its default (train.py:6) has no effect")
    ]
    for given, findings in (("--steps 8", []), ("--steps=$STEPS", []), ('"$@"', []), ("--steps 4", ["run.sh:1"])):
        (project / "run.sh").write_text(f"accelerate launch --config_file acc.yaml train.py {given}\n", "utf-8")
        found = told(yaml(project, "  gradient_accumulation_steps: 8\n"), "DS829")
        assert found == [("DS829", "warning", f"{counts} `--steps 4` ({place}) has no effect") for place in findings]


def test_what_a_file_leaves_out_is_one_for_accelerate(project: Path) -> None:
    (found,) = told(file(project, ""), "DS206")
    assert found[1] == "info"
    assert "`--steps 2`, its default (train.py:6) has no effect" in found[2]
    (project / "run.sh").write_text("accelerate launch --config_file acc.yaml train.py --steps 4\n", encoding="utf-8")
    (found,) = told(file(project, ""), "DS206")
    assert found[1] == "warning"
    (project / "train.py").write_text(SCRIPT.replace("gradient_accumulation_steps=args.steps, ", ""), "utf-8")
    assert told(file(project, ""), "DS206", "DS829") == []


def test_auto_in_the_yaml_is_more_than_an_accelerator_reads(project: Path) -> None:
    checked = yaml(project, "  gradient_accumulation_steps: auto\n")
    assert [one[:2] for one in told(checked, "DS829")] == [("DS829", "error")]
    plugin = SCRIPT.replace("gradient_accumulation_steps=args.steps", "gradient_accumulation_plugin=plugin")
    (project / "train.py").write_text(plugin, encoding="utf-8")
    assert told(yaml(project, "  gradient_accumulation_steps: auto\n"), "DS829") == []


@pytest.mark.parametrize(
    ("more", "findings"),
    [
        (', "bf16": {"enabled": true}', []),
        (', "bf16": {"enabled": "auto"}', []),
        ("", []),
        (', "bf16": {"enabled": false}', [("warning", "`bf16.enabled` false counts, and")]),
        (', "fp16": {"enabled": true}', [("error", "Accelerate raises ValueError: `Accelerator(")]),
        (', "fp16": {"enabled": false}', []),
    ],
)
def test_the_precision_of_a_file_counts(project: Path, more: str, findings: list[tuple[str, str]]) -> None:
    found = told(file(project, f', "gradient_accumulation_steps": "auto"{more}'), "DS829")
    assert [
        (severity, message[: len(start)]) for (_, severity, message), (_, start) in zip(found, findings, strict=True)
    ] == findings


def test_the_precision_of_a_script_counts_before_that_of_the_launcher(project: Path) -> None:
    (found,) = told(yaml(project, "", "mixed_precision: fp16\n"), "DS829")
    assert (
        found[2]
        == '`Accelerator(mixed_precision="bf16")` (train.py:9) counts, and `mixed_precision` of this file has no effect'
    )
    assert told(yaml(project, "", "mixed_precision: bf16\n"), "DS829") == []
    (project / "train.py").write_text(SCRIPT.replace(', mixed_precision="bf16"', ""), encoding="utf-8")
    assert told(yaml(project, "", "mixed_precision: fp16\n"), "DS829") == []


def test_what_a_script_clips_at_is_held_against_what_counts(project: Path) -> None:
    said = "`--max_grad_norm 0.5`, its default (train.py:7)"
    assert told(yaml(project, ""), "DS816", "DS829") == [
        ("DS816", "info", f"without `gradient_clipping` DeepSpeed clips at 1.0, and not at {said}")
    ]
    assert [one[2] for one in told(yaml(project, "  gradient_clipping: 0.3\n"), "DS816", "DS829")] == [
        f"`gradient_clipping` 0.3 counts, and {said} has no effect"
    ]
    assert told(yaml(project, "  gradient_clipping: 0.5\n"), "DS816", "DS829") == []
    assert [one[2] for one in told(file(project, ', "gradient_clipping": "auto"'), "DS816", "DS829")] == [
        f"`gradient_clipping` 1.0 counts, and {said} has no effect"
    ]
    (project / "train.py").write_text(SCRIPT.replace("default=0.5", "default=1.0"), encoding="utf-8")
    assert told(yaml(project, ""), "DS816", "DS829") == []
    assert told(file(project, ""), "DS816") == []


def test_clipping_by_value_is_an_error(project: Path) -> None:
    (project / "train.py").write_text(SCRIPT.replace("grad_norm_(", "grad_value_("), encoding="utf-8")
    assert [one[:2] for one in told(yaml(project, ""), "DS829")] == [("DS829", "error")]
    torchs = SCRIPT.replace("accelerator.clip_grad_norm_(", "torch.nn.utils.clip_grad_value_(")
    (project / "train.py").write_text(torchs, encoding="utf-8")
    assert told(yaml(project, ""), "DS829") == []


OPTIMIZER = ', "optimizer": {"type": "AdamW", "params": {"lr": 1e-3}}'
SCHEDULER = ', "scheduler": {"type": "WarmupLR", "params": {"warmup_num_steps": 5}}'
DUMMIES = SCRIPT.replace("torch.optim.AdamW", "DummyOptim").replace(
    "torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: 1)", "DummyScheduler(optimizer, warmup_num_steps=5)"
)
IMPORTED = SCRIPT.replace("import torch\n", "from torch import optim\n").replace("torch.optim.A", "optim.A")
CHOSEN = SCRIPT.replace(
    "torch.optim.AdamW(",
    "(DummyOptim if 'optimizer' in accelerator.state.deepspeed_plugin.deepspeed_config else torch.optim.AdamW)(",
)


@pytest.mark.parametrize(
    ("script", "more", "places"),
    [
        (SCRIPT, "", []),
        (SCRIPT, OPTIMIZER, ["a real optimizer (train.py:13)"]),
        (SCRIPT, SCHEDULER, ["a real scheduler (train.py:13)"]),
        (DUMMIES, OPTIMIZER + SCHEDULER, []),
        (DUMMIES, OPTIMIZER, ["`DummyScheduler` (train.py:13), and the config has no `scheduler`"]),
        (DUMMIES, SCHEDULER, ["`DummyOptim` (train.py:13), and the config has no `optimizer`"]),
        (CHOSEN, OPTIMIZER, []),
        (CHOSEN, "", []),
        (SCRIPT.replace("torch.optim.AdamW(", "build("), OPTIMIZER, []),
        (IMPORTED, OPTIMIZER, ["a real optimizer (train.py:13)"]),
    ],
)
def test_what_prepare_is_given_has_to_fit_the_sections(
    project: Path, script: str, more: str, places: list[str]
) -> None:
    (project / "train.py").write_text(script, encoding="utf-8")
    found = [one for one in told(file(project, more), "DS818") if one[1] != "hint"]
    assert [one[1] for one in found] == ["error"] * len(places)
    assert all(place in one[2] for place, one in zip(places, found, strict=True))


def test_parameters_of_a_stand_in_have_no_effect_beside_numbers(project: Path) -> None:
    (project / "train.py").write_text(DUMMIES, encoding="utf-8")
    found = told(file(project, OPTIMIZER + SCHEDULER.replace("5", "7") + ', "gradient_accumulation_steps": 2'), "DS829")
    (message,) = (one[2] for one in found)
    assert message.startswith(
        "`scheduler.params.warmup_num_steps` 7 counts, and `DummyScheduler(warmup_num_steps=5)` ("
    )


def test_the_only_script_of_a_project_is_the_one_that_counts_and_of_several_one_that_is_named(project: Path) -> None:
    (project / "run.sh").unlink()
    fields = "  gradient_accumulation_steps: 8\n"
    assert len(told(yaml(project, fields), "DS829")) == 1
    (project / "other.py").write_text("from accelerate import Accelerator\naccelerator = Accelerator()\n", "utf-8")
    assert told(yaml(project, fields), "DS829") == []
    named = CheckSettings(scripts=(project / "train.py",))
    assert len(told(check_file(project / "acc.yaml", named), "DS829")) == 1


def test_a_script_that_is_named_keeps_its_launch_line_and_says_who_reads_the_config(project: Path) -> None:
    (project / "run.sh").write_text("accelerate launch --config_file acc.yaml train.py --steps 4\n", encoding="utf-8")
    yaml(project, "  gradient_accumulation_steps: 8\n")
    named = CheckSettings(scripts=(project / "train.py",))
    (found,) = told(check_file(project / "acc.yaml", named), "DS829")
    assert "`--steps 4` (run.sh:1)" in found[2]
    (project / "plain.json").write_text(f'{HEAD}, "gradient_accumulation_steps": 8}}', encoding="utf-8")
    assert check_file(project / "plain.json", CheckSettings()).consumer.value == "deepspeed"
    checked = check_file(project / "plain.json", named)
    assert checked.why_consumer.endswith("train.py makes an `Accelerator`")
    assert len(told(checked, "DS829")) == 1


def test_a_script_of_the_trainer_is_not_read_so(project: Path) -> None:
    (project / "train.py").write_text(f"from transformers import Trainer\n{SCRIPT}", encoding="utf-8")
    assert told(yaml(project, "  gradient_accumulation_steps: 8\n"), "DS829") == []


def test_a_plain_script_is_no_error_and_one_with_its_plugin_is_held_against_it(project: Path) -> None:
    checked = check_file(project / "train.py", CheckSettings())
    assert (checked.error, checked.findings, checked.consumer.value) == ("", (), "accelerate")
    plugin = "plugin = DeepSpeedPlugin(zero_stage=2, gradient_accumulation_steps=8)\n"
    text = SCRIPT.replace("accelerator = ", f"{plugin}accelerator = ").replace(
        "(gradient", "(deepspeed_plugin=plugin, gradient"
    )
    (project / "train.py").write_text(text, encoding="utf-8")
    forget()
    found = told(check_file(project / "train.py", CheckSettings()), "DS829")
    assert [one[2] for one in found] == [
        "`gradient_accumulation_steps` 8 counts, and `--steps 2`, its default (train.py:6) has no effect"
    ]
