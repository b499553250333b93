"""What convert writes, given to the real Accelerate and Transformers: they arrive at the config that was converted."""

from __future__ import annotations

import json
import subprocess
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from dsmigrate.convert import tree
from dsmigrate.convert.arguments import read_arguments
from dsmigrate.convert.job import Converted, Request, convert
from dsmigrate.convert.model import ConvertError, Form, Kind, Target
from dsmigrate.convert.reading import Input, read
from tests.convert.configs import Config, generated, normal, real, text_of
from tests.support.events import PATIENCE

from .launching import torch_python, training_environment

pytestmark = [pytest.mark.deepspeed, pytest.mark.e2e, pytest.mark.xdist_group("convert")]

BATCH = ("train_batch_size", "train_micro_batch_size_per_gpu")


class Judge:
    """The packages in a child process."""

    def __init__(self, talk: Path) -> None:
        with talk.open("w") as errors:
            self._child = subprocess.Popen(
                [torch_python(), str(Path(__file__).with_name("convert_judge.py"))],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                env={**training_environment(), "HF_HUB_OFFLINE": "1"},
                text=True,
            )
        assert self._answer() == {"ready": True}

    def config(self, form: Form, text: str, **files: str) -> Config:
        """Return the config that the packages come to; fails with their error."""
        answer = self.ask(form, text, **files)
        assert "config" in answer, answer["error"] + "\n" + text
        config: Config = answer["config"]
        return config

    def ask(self, form: Form, text: str, **files: str) -> dict[str, Any]:
        return self._said({"form": form.value, "text": text, "files": files})

    def launched(self, text: str, script: str, **files: str) -> Config:
        """Return the config that the Trainer of a script comes to, which ``accelerate launch`` starts."""
        answer = self._said({"form": "accelerate", "text": text, "script": script, "files": files})
        assert "config" in answer, answer["error"] + "\n" + script
        config: Config = answer["config"]
        return config

    def _said(self, question: dict[str, Any]) -> dict[str, Any]:
        assert self._child.stdin is not None
        self._child.stdin.write(json.dumps(question) + "\n")
        self._child.stdin.flush()
        return self._answer()

    def close(self) -> None:
        assert self._child.stdin is not None
        self._child.stdin.close()
        self._child.wait(timeout=PATIENCE)

    def _answer(self) -> dict[str, Any]:
        assert self._child.stdout is not None
        answer: dict[str, Any] = json.loads(self._child.stdout.readline())
        return answer


@pytest.fixture(scope="module")
def judge(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Judge]:
    found = Judge(tmp_path_factory.mktemp("convert") / "talk")
    yield found
    found.close()


def configs(*, plain: bool = False) -> list[tuple[str, Config]]:
    """Return the configs to convert by name: without "auto" where they are to be ``plain``."""
    made = [(f"generated {number}", config) for number, config in enumerate(generated(40))]
    return [*made, *((name, config) for name, config in real() if not plain or not tree.autos(config))]


def converted(config: Config, target: Form, **asked: Any) -> Converted:
    return convert(Request("ds_config.json", text_of(config), target, **asked))


def same(one: object, other: object) -> bool:
    """Return whether two values are one to DeepSpeed, which reads texts as numbers and switches, too."""
    return one == other or str(one).lower() == str(other).lower()


def lost(result: Converted) -> set[str]:
    """Return the keys that a note says are not carried, or that the consumer writes itself."""
    return {note.key for note in result.notes if note.kind is not Kind.TOLD or note.code in {"CV202", "CV203", "CV204"}}


def test_accelerate_reads_the_fields_of_yaml_as_the_config_that_we_read_from_them(judge: Judge) -> None:
    carried: Counter[str] = Counter()
    for name, config in configs():
        try:
            result = converted(config, Form.ACCELERATE, into=Target(carrying="fields"))
        except ConvertError:
            continue
        text = result.written.text
        theirs, ours = judge.config(Form.ACCELERATE, text), read(Form.ACCELERATE, Input(text)).config
        for section in ("offload_optimizer", "offload_param"):  # CV103: the launcher drops the path
            path = ("zero_optimization", section, "nvme_path")
            if tree.get(ours, path) is not tree.MISSING:
                assert tree.get(theirs, path) == "none", name
                tree.put(theirs, path, tree.get(ours, path))
        assert normal(theirs) == normal(ours), f"{name}\n{text}"
        gone = lost(result)
        for path, value in tree.leaves(normal(config) or {"none": {}}):
            key = ".".join(map(str, path))
            carried["carried" if key not in gone else "not carried"] += 1
            checked = key not in gone and path[0] not in {*gone, *BATCH}
            if checked and value not in ("auto", {}):
                assert same(tree.get(theirs, path), value), f"{name}: {key}\n{text}"
    print(dict(carried))


def test_accelerate_reads_a_named_file_as_the_whole_config(judge: Judge) -> None:
    for name, config in configs(plain=True):
        if not isinstance(config.get("zero_optimization"), dict):
            continue  # Accelerate asks for the section
        result = converted(config, Form.ACCELERATE, into=Target(carrying="file"))
        theirs = judge.config(Form.ACCELERATE, result.written.text, **{"ds_config.json": json.dumps(config)})
        assert normal(theirs) == normal(without_prints(config)), name


def test_the_plugin_that_is_written_comes_to_the_whole_config(judge: Judge) -> None:
    for name, config in configs(plain=True):
        if not isinstance(config.get("zero_optimization"), dict):
            continue
        result = converted(config, Form.PLUGIN)
        theirs = normal(judge.config(Form.PLUGIN, result.written.text))
        wanted = normal(without_prints(config))
        if "hf_ds_config" not in result.written.text:
            for key in BATCH:
                theirs.pop(key, None)
                wanted.pop(key, None)
            wanted.setdefault("gradient_clipping", 1.0)  # DeepSpeed's default, which the fields say
        assert theirs == wanted, f"{name}\n{result.written.text}"


def test_the_trainer_comes_to_the_config_that_was_converted(judge: Judge) -> None:
    told = 0
    for name, config in configs(plain=True):
        result = converted(config, Form.TRANSFORMERS)
        if any(note.code == "CV207" for note in result.notes) or not isinstance(config.get("zero_optimization"), dict):
            continue  # values that no argument says; Accelerate, which the Trainer starts, asks for the section
        theirs = judge.config(Form.TRANSFORMERS, result.written.text)
        wanted = without_prints(config)
        if config.get("train_batch_size") is not None and "per_device_train_batch_size" in result.arguments:
            wanted["train_batch_size"] = theirs["train_batch_size"]  # of one process, the judge's
        assert normal(theirs) == normal(wanted), f"{name}\n{result.written.text}"
        told += 1
    assert told >= 40


HF = {
    "train_batch_size": "auto",
    "train_micro_batch_size_per_gpu": "auto",
    "gradient_accumulation_steps": "auto",
    "gradient_clipping": "auto",
    "optimizer": {
        "type": "AdamW",
        "params": {"lr": "auto", "betas": "auto", "eps": "auto", "weight_decay": "auto"},
    },
    "scheduler": {
        "type": "WarmupDecayLR",
        "params": {
            "warmup_min_lr": "auto",
            "warmup_max_lr": "auto",
            "warmup_num_steps": "auto",
            "total_num_steps": "auto",
        },
    },
    "zero_optimization": {"stage": 2, "reduce_bucket_size": "auto"},
}


@pytest.mark.parametrize(
    "block", ["zero_stage: 2", "zero_stage: 1\n  gradient_clipping: 0.7", "deepspeed_config_file: hf.json"]
)
@pytest.mark.parametrize(
    "asked",
    [
        "max_grad_norm=0.7, learning_rate=1e-4, adam_beta2=0.95, max_steps=50, warmup_steps=9, bf16=True",
        "max_grad_norm=0.7, per_device_train_batch_size=3, gradient_accumulation_steps=4, max_steps=9",
    ],
)
def test_the_trainer_fills_what_accelerate_launches_with_what_is_written(judge: Judge, block: str, asked: str) -> None:
    yaml = f"distributed_type: DEEPSPEED\nnum_processes: 1\ndeepspeed_config:\n  {block}\n"
    script = (
        "from transformers import TrainingArguments\n"
        f"training_args = TrainingArguments(output_dir='out', use_cpu=True, {asked})\n"
    )
    theirs = judge.launched(yaml, script, **{"hf.json": json.dumps(HF)})
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "hf.json").write_text(json.dumps(HF))
        ours = convert(
            Request(
                "accelerate.yaml",
                yaml.encode(),
                Form.DEEPSPEED,
                folder=Path(folder),
                given={"hidden_size": 8},
                arguments=read_arguments("train.py", script),
            )
        )
    assert json.loads(json.dumps(normal(ours.config))) == normal(without_prints(theirs))


@pytest.mark.parametrize("asked", ["bf16=True", "fp16=True", "max_grad_norm=0.5"])
def test_the_precision_that_the_trainer_adds_is_written(judge: Judge, asked: str) -> None:
    script = (
        "from transformers import TrainingArguments\n"
        f"training_args = TrainingArguments(output_dir='out', use_cpu=True, {asked}, "
        "deepspeed={'train_micro_batch_size_per_gpu': 'auto', 'zero_optimization': {'stage': 1}})\n"
        "training_args.deepspeed_plugin.set_mixed_precision(training_args.mixed_precision)  # as its Accelerator does\n"
    )
    theirs = judge.config(Form.TRANSFORMERS, script)
    ours = convert(Request("train.py", script.encode(), Form.DEEPSPEED))
    sections = [
        {name: config[name] for name in ("fp16", "bf16") if config.get(name, {}).get("enabled")}
        for config in (ours.config, theirs)
    ]
    assert sections[0] == sections[1]


def without_prints(config: Config) -> Config:
    return {key: value for key, value in config.items() if key != "steps_per_print"}


def test_what_is_said_to_be_refused_is_refused(judge: Judge) -> None:
    head = "distributed_type: DEEPSPEED\nnum_processes: 1\n"
    block = "deepspeed_config:\n  zero_stage: 2\n"
    cases = {
        "CV104": f"{head}mixed_precision: no\n{block}",
        "CV102": f"{head}deepspeed_config:\n  deepspeed_config_file: ds_config.json\n  zero_stage: 2\n",
        "CV106": f"{head}deepspeed_config:\n  zero_stage: two\n",
        "CV114": f"{head}zero_stage: 2\n{block}",
    }
    files = {"ds_config.json": '{"zero_optimization": {"stage": 1}}'}
    for code, text in cases.items():
        assert "error" in judge.ask(Form.ACCELERATE, text, **files), code
    for text in (f"{head}{block}", f"{head}mixed_precision: 'no'\n{block}"):
        assert "config" in judge.ask(Form.ACCELERATE, text, **files), text


def test_what_is_said_to_be_ignored_is_ignored(judge: Judge) -> None:
    head = "distributed_type: DEEPSPEED\nnum_processes: 1\n"
    found = judge.config(Form.ACCELERATE, f"{head}deepspeed_config:\n  zero_stag: 3\n  gradient_clipping: 0\n")
    assert found["zero_optimization"]["stage"] == 2
    assert "gradient_clipping" not in found
    script = (
        "from accelerate import Accelerator, DeepSpeedPlugin\n"
        "plugin = DeepSpeedPlugin(zero_stage=3, hf_ds_config={'zero_optimization': {'stage': 1}})\n"
        "accelerator = Accelerator(deepspeed_plugin=plugin)\n"
    )
    assert judge.config(Form.PLUGIN, script)["zero_optimization"]["stage"] == 1
    both = script.replace("deepspeed_plugin=plugin", "mixed_precision='fp16', deepspeed_plugin=plugin").replace(
        "'stage': 1}", "'stage': 1}, 'bf16': {'enabled': True}"
    )
    assert "error" in judge.ask(Form.PLUGIN, both)


def test_the_paths_of_the_facts_are_where_accelerate_puts_the_fields(judge: Judge) -> None:
    from dsmigrate.convert.facts import fields  # noqa: PLC0415 - the facts that are judged

    values = {"integer": 3, "number": 0.25, "boolean": True, "device": "cpu", "string": "/path"}
    for field in fields().values():
        given = {field.name: values[field.type]} | ({field.needs: field.only_for} if field.needs else {})
        made = ", ".join(f"{name}={value!r}" for name, value in given.items())
        script = (
            "from accelerate import Accelerator, DeepSpeedPlugin\n"
            f"accelerator = Accelerator(deepspeed_plugin=DeepSpeedPlugin({made}))\n"
        )
        assert tree.get(judge.config(Form.PLUGIN, script), field.path) == values[field.type], field.name
