"""What launch lines, files of arguments and calls around a config give the training besides it."""

from __future__ import annotations

from pathlib import Path

import pytest

from dsmigrate.checking.arguments import arguments_for, forget, written
from dsmigrate.checking.find import find
from dsmigrate.checking.job import check_file
from dsmigrate.diff.job import Source, compare
from dsmigrate.knowledge import Consumer
from dsmigrate.settings.check import CheckSettings
from dsmigrate.settings.diff import DiffSettings

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


def test_arguments_behind_a_line_without_its_backslash_are_lost(project: Path) -> None:
    start = "torchrun t.py --deepspeed configs/ds.json --learning_rate 5e-5"
    (project / "run.sh").write_text(f"{start}\n  --lr_scheduler_type cosine \\\n  --bf16\n", encoding="utf-8")
    checked = check_file(project / "configs" / "ds.json", CheckSettings())
    (found,) = [one for one in checked.findings if one.code == "DS828"]
    assert "run.sh:2" in found.message
    for line in (f"{start} \\\n  --bf16", f"{start}\n\n--bf16", f"{start}\n# --bf16", f"{start}\necho --bf16", start):
        forget()
        (project / "run.sh").write_text(line + "\n", encoding="utf-8")
        checked = check_file(project / "configs" / "ds.json", CheckSettings())
        assert "DS828" not in {one.code for one in checked.findings}


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


def test_a_script_with_an_argument_of_that_name_and_none_of_its_others_is_not_the_trainer(project: Path) -> None:
    line = "deepspeed chatbot.py --deepspeed configs/ds.json --model_name_or_path m --max_new_tokens 200\n"
    (project / "run.sh").write_text(line, encoding="utf-8")
    assert arguments_for(project / "configs" / "ds.json")[1] == ""


def test_the_argument_of_deepspeeds_own_parser_shows_another_script(project: Path) -> None:
    line = "deepspeed squad.py --deepspeed --deepspeed_config configs/ds.json --do_train --output_dir o\n"
    (project / "run.sh").write_text(line, encoding="utf-8")
    found, trainer = arguments_for(project / "configs" / "ds.json")
    assert (len(found), trainer) == (1, "")


def test_a_config_that_a_yaml_of_accelerate_names_is_read_by_accelerate(project: Path) -> None:
    config = project / "configs" / "plain.json"
    config.write_text('{"train_batch_size": 8, "zero_optimization": {"stage": 2}}', encoding="utf-8")
    text = "distributed_type: DEEPSPEED\ndeepspeed_config:\n  deepspeed_config_file: configs/plain.json\n"
    (project / "launch.yaml").write_text(text, encoding="utf-8")
    checked = check_file(config, CheckSettings())
    assert (checked.consumer.value, checked.why_consumer) == ("accelerate", "launch.yaml names it for Accelerate")
    config.write_text(SCHEDULED, encoding="utf-8")
    assert check_file(config, CheckSettings()).consumer.value == "transformers"  # which fills more of the "auto"


@pytest.mark.parametrize(("call", "codes"), [("", ["DS908"]), ("deepspeed.checkpointing.configure(mpu)\n", [])])
def test_checkpointing_that_a_script_configures_is_no_news(project: Path, call: str, codes: list[str]) -> None:
    config = project / "configs" / "mega.json"
    config.write_text(
        '{"train_batch_size": 8, "activation_checkpointing": {"partition_activations": true}}', encoding="utf-8"
    )
    (project / "setup_model.py").write_text(f"import deepspeed\n{call}", encoding="utf-8")
    assert [one.code for one in check_file(config, CheckSettings()).findings if one.code == "DS908"] == codes


def test_a_tuned_config_is_not_told_that_its_run_ends(project: Path) -> None:
    config = project / "configs" / "tune.json"
    config.write_text('{"train_batch_size": 8, "autotuning": {"enabled": true}}', encoding="utf-8")
    line = "deepspeed --autotuning run train.py --deepspeed_config configs/tune.json\n"
    (project / "tune.sh").write_text(line, encoding="utf-8")
    assert "DS930" not in {one.code for one in check_file(config, CheckSettings()).findings}


def test_a_yaml_that_trains_without_deepspeed_says_only_that(project: Path) -> None:
    file = project / "ddp.yaml"
    file.write_text("distributed_type: MULTI_GPU\ndeepspeed_config:\n  zero_stage: 2\n", encoding="utf-8")
    assert [one.code for one in check_file(file, CheckSettings()).findings] == ["CV109"]
    file.write_text("distributed_type: MULTI_GPU\ndeepspeed_config: {}\n", encoding="utf-8")
    assert [found.path.name for found in find([str(project)])] == ["ds.json"]
    file.write_text("deepspeed_config: configs/ds.json\nlearning_rate: 2.0e-4\n", encoding="utf-8")
    assert [found.path.name for found in find([str(project)])] == ["ds.json"]
    file.write_text("deepspeed_config:  # settings\n  zero_stage: 2\n", encoding="utf-8")
    assert {found.path.name for found in find([str(project)])} == {"ddp.yaml", "ds.json"}


def test_known_bugs_of_the_oldest_release_are_not_told_of_older_ones(project: Path) -> None:
    config = project / "configs" / "old.json"
    config.write_text('{"train_batch_size": 8, "zero_optimization": {"stage": 2}}', encoding="utf-8")
    (project / "requirements.txt").write_text("deepspeed==0.6.5\n", encoding="utf-8")
    checked = check_file(config, CheckSettings())
    assert checked.version == "0.9.0"
    assert "DS970" not in {one.code for one in checked.findings}


@pytest.mark.parametrize(
    ("file", "text"),
    [
        (
            "train.py",
            'from lightning.pytorch.strategies import DeepSpeedStrategy\ns = DeepSpeedStrategy(config="{}")\n',
        ),
        ("run.sh", "PL_DEEPSPEED_CONFIG_PATH={} python train.py --strategy deepspeed\n"),
        ("main.py", 'import deepspeed, os\nos.environ["PL_DEEPSPEED_CONFIG_PATH"] = "{}"\n'),
    ],
)
def test_what_lightning_is_given_it_hands_on(project: Path, file: str, text: str) -> None:
    config = project / "configs" / "light.json"
    config.write_text('{"gradient_accumulation_steps": 4, "bf16": {"enabled": "auto"},}', encoding="utf-8")
    (project / file).write_text(text.replace("{}", "configs/light.json"), encoding="utf-8")
    checked = check_file(config, CheckSettings())
    assert (checked.consumer.value, checked.why_consumer.endswith("gives it to Lightning")) == ("deepspeed", True)
    codes = [one.code for one in checked.findings if one.severity.value == "error"]
    assert sorted(codes) == ["DS010", "DS826"]


def test_a_dictionary_for_lightning_is_checked_as_one(project: Path) -> None:
    script = project / "train.py"
    text = "from lightning.pytorch.strategies import DeepSpeedStrategy\n\nstrategy = DeepSpeedStrategy(\n    config={\n"
    text += '        "gradient_accumulation_steps": 4,\n        "zero_optimization": {"stage": 2},\n    }\n)\n'
    script.write_text(text, encoding="utf-8")
    assert [one.code for one in check_file(script, CheckSettings()).findings if one.code != "DS445"] == ["DS826"]


def test_a_dictionary_for_the_trainer_is_no_json(project: Path) -> None:
    script = project / "train.py"
    text = "TrainingArguments(deepspeed={\n    'train_batch_size': 'auto',\n    'zero_optimization': {},\n})\n"
    script.write_text(text, encoding="utf-8")
    assert "DS010" not in {one.code for one in check_file(script, CheckSettings()).findings}


@pytest.mark.parametrize(("release", "told"), [("0.29.3", ("info", True)), ("0.30.0", ("info", False))])
def test_a_yaml_clips_since_accelerate_0_30(project: Path, release: str, told: tuple[str, bool]) -> None:
    file = project / "zero2.yaml"
    file.write_text("distributed_type: DEEPSPEED\ndeepspeed_config:\n  zero_stage: 2\n", encoding="utf-8")
    settings = CheckSettings(version="0.14.0", accelerate=release)
    (found,) = [one for one in check_file(file, settings).findings if one.code == "DS816"]
    assert (found.severity.value, "does not clip" in found.message) == told


@pytest.mark.parametrize(
    ("script", "severity"),
    [("", "info"), ("accelerator.clip_grad_norm_(p, 0.5)\n", "info"), ("SFTTrainer(m).train()\n", "hint")],
)
def test_what_a_yaml_clips_is_shown_unless_scripts_leave_it_to_a_trainer(
    project: Path, script: str, severity: str
) -> None:
    file = project / "zero2.yaml"
    file.write_text("distributed_type: DEEPSPEED\ndeepspeed_config:\n  zero_stage: 2\n", encoding="utf-8")
    if script:
        (project / "train.py").write_text(f"import accelerate\n{script}", encoding="utf-8")
    (found,) = [one for one in check_file(file, CheckSettings()).findings if one.code == "DS816"]
    assert found.severity.value == severity


@pytest.mark.parametrize(
    ("name", "line", "told"),
    [
        ("ds_stage3.json", "", True),
        ("ds_inference.json", "", False),
        ("ds_stage3.json", "python -m serve --zero-inference-config ds_stage3.json # deepspeed\n", False),
    ],
)
def test_a_config_for_inference_is_not_told_of_training(project: Path, name: str, line: str, told: bool) -> None:
    config = project / name
    config.write_text('{"train_batch_size": 1, "zero_optimization": {"stage": 3}}', encoding="utf-8")
    (project / "run.sh").write_text(line, encoding="utf-8")
    assert ("DS445" in {one.code for one in check_file(config, CheckSettings()).findings}) is told


def test_a_consent_that_is_not_needed_is_a_hint(project: Path) -> None:
    config = project / "z0.json"
    config.write_text('{"train_batch_size": 8, "zero_allow_untested_optimizer": true}', encoding="utf-8")
    (found,) = [one for one in check_file(config, CheckSettings()).findings if one.code == "DS401"]
    assert found.severity.value == "hint"


DPO = (
    "from transformers import TrainingArguments\nfrom trl import DPOTrainer\n"
    'args = TrainingArguments("out", deepspeed={config}{more})\n'
    "trainer = DPOTrainer(model, reference, args=args)\n"
)
UNFILLED = (
    '{"train_batch_size": "auto", "zero_optimization": {"stage": 3}, "optimizer": {"type": "AdamW"}, '
    '"scheduler": {"type": "WarmupLR", "params": {"warmup_num_steps": "auto"}}}'
)


def of_trl(file: Path) -> list[tuple[str, str]]:
    found = [one for one in check_file(file, CheckSettings()).findings if one.code == "DS827"]
    return [(one.severity.value, ".".join(map(str, one.path))) for one in found]


@pytest.mark.parametrize(
    ("script", "launch", "told"),
    [
        (DPO.format(config='"configs/dpo.json"', more=""), "", ["scheduler.params.warmup_num_steps"]),
        (
            "from trl import KTOTrainer\nKTOTrainer(m)\n",
            "deepspeed {} --deepspeed {}",
            ["scheduler.params.warmup_num_steps"],
        ),
        ("", "trl dpo --bf16 --deepspeed {1}", ["scheduler.params.warmup_num_steps"]),
        ("", "trl dpo --use_peft --deepspeed {1}", []),
        ("", "trl sft --deepspeed {1}", []),
        (
            DPO.format(config='"configs/dpo.json"', more=", precompute_ref_log_probs=True"),
            "",
            ["zero_optimization.stage"],
        ),
        ("from peft import LoraConfig\n" + DPO.format(config='"configs/dpo.json"', more=""), "", []),
        ("from trl import GRPOTrainer\nGRPOTrainer(m)\n", "deepspeed {} --deepspeed {}", []),
        (
            "from trl import GRPOTrainer\nGRPOTrainer(m)\n",
            "deepspeed {} --beta 0.04 --deepspeed {}",
            ["scheduler.params.warmup_num_steps"],
        ),
        ("from trl import GRPOTrainer\nGRPOTrainer(m)\n", "deepspeed {} --beta 0 --deepspeed {}", []),
    ],
)
def test_trl_makes_an_engine_of_a_frozen_model(project: Path, script: str, launch: str, told: list[str]) -> None:
    config = project / "configs" / "dpo.json"
    config.write_text(UNFILLED, encoding="utf-8")
    (project / "prefer.py").write_text(script, encoding="utf-8")
    (project / "prefer.sh").write_text(launch.format("prefer.py", "configs/dpo.json") + "\n", encoding="utf-8")
    assert [path for _, path in of_trl(config)] == told


@pytest.mark.parametrize(("release", "told"), [("", ["info"]), ("0.28.1", ["error"]), ("0.29.0", [])])
def test_what_a_release_of_trl_refuses(project: Path, release: str, told: list[str]) -> None:
    config = project / "configs" / "dpo.json"
    config.write_text('{"train_batch_size": "auto", "zero_optimization": {"stage": 3}}', encoding="utf-8")
    launch = "trl dpo --precompute_ref_log_probs True --deepspeed configs/dpo.json\n"
    (project / "prefer.sh").write_text(launch, encoding="utf-8")
    (project / "requirements.txt").write_text(f"trl=={release}\n" if release else "", encoding="utf-8")
    assert [severity for severity, _ in of_trl(config)] == told


def test_a_dictionary_in_a_script_of_trl(project: Path) -> None:
    script = project / "prefer.py"
    script.write_text(DPO.format(config=UNFILLED, more=""), encoding="utf-8")
    assert of_trl(script) == [("error", "scheduler.params.warmup_num_steps")]


OWN = "import deepspeed\nengine = deepspeed.initialize(model=model, config=config)\n"


@pytest.mark.parametrize("script", ["train.py", "${HERE}/train.py"])
def test_a_script_that_initializes_deepspeed_is_not_the_trainer_whatever_its_arguments_are(
    project: Path, script: str
) -> None:
    (project / "train.py").write_text(f"from transformers import AutoModel\n{OWN}", encoding="utf-8")
    line = f"deepspeed {script} --deepspeed configs/ds.json --learning_rate 1e-4 --output_dir o\n"
    (project / "run.sh").write_text(line, encoding="utf-8")
    checked = check_file(project / "configs" / "ds.json", CheckSettings())
    assert (checked.consumer.value, checked.why_consumer) == ("deepspeed", "train.py gives it to plain DeepSpeed")
    auto = [one for one in checked.findings if one.code == "DS801"]
    assert {one.severity.value for one in auto} == {"info"}
    assert all("unless train.py replaces it" in one.message for one in auto)
    assert not {"DS814", "DS825"} & {one.code for one in checked.findings}


def test_a_script_with_the_trainers_arguments_is_the_trainers_even_if_it_initializes_an_engine(project: Path) -> None:
    (project / "train.py").write_text(f"from transformers import TrainingArguments\n{OWN}", encoding="utf-8")
    (project / "run.sh").write_text("deepspeed train.py --deepspeed configs/ds.json --bf16\n", encoding="utf-8")
    assert check_file(project / "configs" / "ds.json", CheckSettings()).consumer.value == "transformers"


def test_a_script_that_makes_an_accelerator_and_no_trainer_reads_through_accelerate(project: Path) -> None:
    (project / "acc.yaml").write_text(
        "deepspeed_config:\n deepspeed_config_file: configs/ds.json\ndistributed_type: DEEPSPEED\n", encoding="utf-8"
    )
    (project / "configs" / "other.py").write_text("from transformers import AutoModel\n", encoding="utf-8")
    (project / "train.py").write_text(
        "from accelerate import Accelerator\nfrom transformers import AutoModel\naccelerator = Accelerator()\n",
        encoding="utf-8",
    )
    line = "accelerate launch --config_file acc.yaml train.py scripts/stage2.yaml\n"
    (project / "run.sh").write_text(line, encoding="utf-8")
    checked = check_file(project / "configs" / "ds.json", CheckSettings())
    assert (checked.consumer.value, checked.why_consumer) == ("accelerate", "train.py gives it to Accelerate")


def test_a_bare_name_means_no_config_of_another_corner_of_the_project(project: Path) -> None:
    (project / "docs" / "tuning").mkdir(parents=True)
    readme = "```sh\ndeepspeed t.py --deepspeed ds.json --learning_rate 1e-4\n```\n"
    (project / "docs" / "tuning" / "README.md").write_text(readme, encoding="utf-8")
    assert arguments_for(project / "configs" / "ds.json") == ((), "")
    (project / "README.md").write_text(readme, encoding="utf-8")
    forget()
    assert arguments_for(project / "configs" / "ds.json")[1] == "README.md:2 gives it to the Trainer"


@pytest.mark.parametrize(
    ("file", "text"),
    [
        ("train.yaml", "trainer:\n  devices: 8\n  strategy: deepspeed_stage_2_offload\n"),
        ("train.py", 'trainer = Trainer(strategy="deepspeed_stage_2")\n'),
    ],
)
def test_a_project_that_trains_with_lightnings_strategy_adds_the_batch_size(
    project: Path, file: str, text: str
) -> None:
    config = project / "deepspeed_config.json"
    config.write_text('{"zero_optimization": {"stage": 2}}', encoding="utf-8")
    (project / file).write_text(text, encoding="utf-8")
    checked = check_file(config, CheckSettings())
    assert "DS200" not in {one.code for one in checked.findings}
    assert checked.why_consumer == f"{file} trains with Lightning's strategy"


@pytest.mark.parametrize("trains", [False, True])
def test_an_auto_is_the_trainers_only_where_a_script_trains_with_it(project: Path, *, trains: bool) -> None:
    old = '{"train_batch_size": "auto", "zero_optimization": {"stage": 3, "reduce_bucket_size": "auto"}}'
    new = '{"zero_optimization": {"stage": 3, "reduce_bucket_size": "auto"}}'
    config = project / "deepspeed_config.json"
    config.write_text(new, encoding="utf-8")
    (project / "train.yaml").write_text("trainer:\n  strategy: deepspeed_stage_3\n", encoding="utf-8")
    if trains:
        script = "from transformers import TrainingArguments\narguments = TrainingArguments(output)\n"
        (project / "scripts").mkdir()
        (project / "scripts" / "train.py").write_text(script, encoding="utf-8")
    checked = check_file(config, CheckSettings())
    sides = (Source(config.name, text.encode(), project) for text in (old, new))
    compared = compare(*sides, DiffSettings())
    for consumer in (checked.consumer, compared.new.context.consumer):
        assert consumer is (Consumer.TRANSFORMERS if trains else Consumer.DEEPSPEED)
    assert ("DS200" in {one.code for one in checked.findings}) is trains
    told = {one.code for one in compared.result.explained}
    assert "DF110" in told if trains else told == {"DF111"}  # of what was refused nothing more is told


def test_lightnings_strategy_elsewhere_says_nothing_of_a_config_that_a_script_gives_to_deepspeed(project: Path) -> None:
    config = project / "deepspeed_config.json"
    config.write_text('{"zero_optimization": {"stage": 2}}', encoding="utf-8")
    (project / "train.yaml").write_text("trainer:\n  strategy: deepspeed_stage_2\n", encoding="utf-8")
    (project / "own.py").write_text(OWN, encoding="utf-8")
    assert "DS200" in {one.code for one in check_file(config, CheckSettings()).findings}


def test_a_config_that_accelerate_is_given_is_its_own_where_scripts_make_an_accelerator_and_no_trainer(
    project: Path,
) -> None:
    (project / "acc.yaml").write_text(
        "deepspeed_config:\n deepspeed_config_file: configs/ds.json\ndistributed_type: DEEPSPEED\n", encoding="utf-8"
    )
    (project / "train.py").write_text("import transformers\naccelerator = accelerate.Accelerator()\n", encoding="utf-8")
    config = project / "configs" / "ds.json"
    checked = check_file(config, CheckSettings())
    assert (checked.consumer.value, checked.why_consumer) == ("accelerate", "acc.yaml names it for Accelerate")
    (project / "other.py").write_text("from transformers import TrainingArguments\n", encoding="utf-8")
    forget()
    assert check_file(config, CheckSettings()).consumer.value == "transformers"
