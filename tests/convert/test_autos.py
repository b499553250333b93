from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from dsmigrate.convert.arguments import Arguments, of_text, read_arguments
from dsmigrate.convert.facts import transformers
from dsmigrate.convert.fills import has_meaning
from dsmigrate.convert.job import Converted, Request, convert
from dsmigrate.convert.model import ConvertError, Form, Target
from dsmigrate.knowledge import AutoEffect, Consumer, knowledge
from dsmigrate.settings.check import CheckSettings

AUTO = {
    "train_batch_size": "auto",
    "train_micro_batch_size_per_gpu": "auto",
    "gradient_accumulation_steps": "auto",
    "gradient_clipping": "auto",
    "optimizer": {"type": "AdamW", "params": {"lr": "auto", "betas": "auto"}},
    "scheduler": {"type": "WarmupDecayLR", "params": {"warmup_num_steps": "auto", "total_num_steps": "auto"}},
    "bf16": {"enabled": "auto"},
    "zero_optimization": {"stage": 3, "reduce_bucket_size": "auto", "stage3_param_persistence_threshold": "auto"},
    "steps_per_print": "auto",
}
ARGUMENTS = {
    "per_device_train_batch_size": 2,
    "gradient_accumulation_steps": 8,
    "max_grad_norm": 0.3,
    "learning_rate": 1e-4,
    "adam_beta1": 0.9,
    "adam_beta2": 0.95,
    "max_steps": 1000,
    "warmup_steps": 0.1,
    "bf16": True,
}


def resolved(config: dict[str, Any], **asked: Any) -> Converted:
    return convert(Request("ds.json", json.dumps(config).encode(), Form.DEEPSPEED, **asked))


def test_every_source_of_a_value_that_the_facts_name_has_a_meaning() -> None:
    known = knowledge()
    for consumer in (Consumer.TRANSFORMERS, Consumer.ACCELERATE):
        for path in known.every_path():
            auto = known.auto(path, consumer)
            if auto is not None and auto.effect is AutoEffect.FILLED:
                assert has_meaning(auto.source), auto.source


def test_the_defaults_of_arguments_are_those_by_which_auto_is_usually_filled() -> None:
    known, defaults = knowledge(), transformers()["defaults"]
    for path in known.every_path():
        auto = known.auto(path, Consumer.TRANSFORMERS)
        name = auto.source.removeprefix("TrainingArguments.") if auto is not None else ""
        if auto is not None and name in defaults and auto.usual is not None:
            assert defaults[name] == auto.usual, path


def test_every_auto_gets_the_value_that_the_trainer_would_fill_in() -> None:
    found = resolved(
        AUTO,
        arguments=Arguments(ARGUMENTS, defaults_hold=True),
        given={"hidden_size": 100},
        settings=CheckSettings(world_size=4),
    )
    assert json.loads(found.written.text) == {
        "train_batch_size": 64,
        "train_micro_batch_size_per_gpu": 2,
        "gradient_accumulation_steps": 8,
        "gradient_clipping": 0.3,
        "optimizer": {"type": "AdamW", "params": {"lr": 1e-4, "betas": [0.9, 0.95]}},
        "scheduler": {"type": "WarmupDecayLR", "params": {"warmup_num_steps": 100, "total_num_steps": 1000}},
        "bf16": {"enabled": True},
        "zero_optimization": {"stage": 3, "reduce_bucket_size": 10_000, "stage3_param_persistence_threshold": 1000},
    }


def test_an_auto_without_a_value_is_named_with_what_would_tell_it() -> None:
    with pytest.raises(ConvertError) as error:
        resolved({"train_micro_batch_size_per_gpu": 2, "optimizer": {"type": "Adam", "params": {"lr": "auto"}}})
    assert error.value.message.splitlines()[1:] == ["  optimizer.params.lr (line 1): learning_rate"]
    assert error.value.line == 1


def test_the_whole_batch_is_left_to_deepspeed_where_nobody_counts_processes() -> None:
    found = resolved({"train_batch_size": "auto", "train_micro_batch_size_per_gpu": 4})
    assert json.loads(found.written.text) == {"train_micro_batch_size_per_gpu": 4}
    assert [note.code for note in found.notes] == ["CV304", "CV303"]


def test_a_given_value_comes_before_every_other() -> None:
    given = {"gradient_clipping": 0.7, "zero_optimization.stage": 1}
    found = resolved({"gradient_clipping": "auto", "zero_optimization": {"stage": 2}}, given=given)
    assert json.loads(found.written.text) == {"gradient_clipping": 0.7, "zero_optimization": {"stage": 1}}


@pytest.mark.parametrize("name", ["a..b", "[0]", ""])
def test_a_given_value_needs_a_key(name: str) -> None:
    with pytest.raises(ConvertError, match="--set"):
        resolved({}, given={name: 1})


def test_values_that_arguments_say_become_auto_and_those_arguments() -> None:
    config = {
        "train_batch_size": 64,
        "gradient_accumulation_steps": 2,
        "optimizer": {"type": "AdamW", "params": {"lr": 1e-3, "betas": [0.9, 0.95], "torch_adam": True}},
        "scheduler": {"type": "WarmupLR", "params": {"warmup_max_lr": 2e-3, "warmup_num_steps": 10}},
        "fp16": {"enabled": True, "loss_scale": 0},
        "zero_optimization": {"stage": 2, "reduce_bucket_size": 1000},
    }
    request = Request("ds.json", json.dumps(config).encode(), Form.TRANSFORMERS, settings=CheckSettings(world_size=8))
    found = convert(request)
    assert found.arguments == {
        "per_device_train_batch_size": 4,
        "gradient_accumulation_steps": 2,
        "learning_rate": 1e-3,
        "adam_beta1": 0.9,
        "adam_beta2": 0.95,
        "warmup_steps": 10,
        "fp16": True,
    }
    assert found.config == {
        "train_batch_size": "auto",
        "train_micro_batch_size_per_gpu": "auto",
        "gradient_accumulation_steps": "auto",
        "optimizer": {"type": "AdamW", "params": {"lr": "auto", "betas": "auto", "torch_adam": True}},
        "scheduler": {"type": "WarmupLR", "params": {"warmup_max_lr": 2e-3, "warmup_num_steps": "auto"}},
        "fp16": {"enabled": "auto", "loss_scale": 0},
        "zero_optimization": {"stage": 2, "reduce_bucket_size": 1000},
    }
    assert [(note.code, note.key) for note in found.notes if note.kind.value == "changed"] == [
        ("CV207", "scheduler.params.warmup_max_lr")
    ]


def test_arguments_are_read_from_scripts_yaml_and_json() -> None:
    trainer = "TrainingArguments(output_dir='x', learning_rate=1e-4, bf16=True, deepspeed='ds.json')\n"
    assert read_arguments("a.py", trainer) == Arguments(
        {"learning_rate": 1e-4, "bf16": True}, defaults_hold=True, of_trainer=True
    )
    for script in (
        trainer.replace("1e-4", "args.lr"),
        trainer.replace("bf16=True", "**more"),
        trainer.replace("TrainingArguments", "SFTConfig"),  # of another library, with defaults of its own
        f"class TrainingArguments(transformers.TrainingArguments):\n    learning_rate: float = 1\n\n\n{trainer}",
    ):
        assert not read_arguments("a.py", script).defaults_hold
    assert not read_arguments("a.py", f"{trainer}accelerator = Accelerator()\n").of_trainer
    loop = (
        "a = Accelerator(mixed_precision='bf16')\nDataLoader(x, batch_size=4)\nDataLoader(y, batch_size=8)\n"
        "o = DummyOptim(p, lr=1e-3)\nDummyScheduler(o, total_num_steps=10, warmup_num_steps=2)\n"
    )
    assert read_arguments("a.py", loop).values == {
        "mixed_precision": "bf16",
        "gradient_accumulation_steps": 1,
        "learning_rate": 1e-3,
        "total_num_steps": 10,
        "warmup_steps": 2,
        "per_device_train_batch_size": 4,
    }
    assert read_arguments("a.yaml", "learning_rate: 0.1\nmodel: x\n").values == {"learning_rate": 0.1}
    assert read_arguments("a.json", '{"learning_rate": 0.1, "x": 1}').values == {"learning_rate": 0.1}
    assert of_text('{"bf16": true}').values == {"bf16": True}


def test_arguments_are_read_from_launch_lines() -> None:
    launch = (
        "LR=2e-5\nexport X=1\ndeepspeed --num_gpus 8 train.py \\\n  --learning_rate $LR --bf16 True --fp16=false \\\n"
        "  --per-device-train-batch-size 4 --warmup_ratio 0.03 --max_steps 1000 --weight_decay $WD --output_dir out\n"
    )
    found = read_arguments("run.sh", launch)
    assert found.values == {
        "learning_rate": 2e-5,
        "bf16": True,
        "fp16": False,
        "per_device_train_batch_size": 4,
        "warmup_ratio": 0.03,
        "max_steps": 1000,
    }
    assert found.of_trainer
    assert not found.defaults_hold, "the script may have defaults of its own"
    assert of_text("--bf16 --learning_rate 1e-4").values == {"bf16": True, "learning_rate": 1e-4}
    with pytest.raises(ConvertError, match=r"different arguments: run\.sh:3, run\.sh:6"):
        read_arguments("run.sh", f"{launch}deepspeed train.py --learning_rate 1\n")
    with pytest.raises(ConvertError, match="no command gives"):
        read_arguments("run.sh", "echo\n")


@pytest.mark.parametrize(("asked", "steps"), [({}, 30), ({"warmup_steps": 0}, 30), ({"warmup_steps": 7}, 7)])
def test_a_ratio_of_warm_up_is_a_number_of_steps(asked: dict[str, int], steps: int) -> None:
    config = b'{"scheduler": {"type": "WarmupLR", "params": {"warmup_num_steps": "auto"}}, "train_batch_size": 8}'
    known = Arguments({"warmup_ratio": 0.03, "max_steps": 1000, **asked}, of_trainer=True)
    found = convert(Request("ds.json", config, Form.DEEPSPEED, arguments=known))
    assert found.config["scheduler"]["params"] == {"warmup_num_steps": steps}


def test_a_ratio_of_warm_up_is_one_of_the_steps_that_the_config_has() -> None:
    config = (
        b'{"scheduler": {"type": "WarmupDecayLR", "params": {"total_num_steps": 1e3, "warmup_num_steps": "auto"}}, '
        b'"train_batch_size": 8}'
    )
    found = convert(Request("ds.json", config, Form.DEEPSPEED, arguments=of_text("--warmup_ratio 0.03 --do_train")))
    assert found.config["scheduler"]["params"]["warmup_num_steps"] == 30


def test_one_half_precision_leaves_no_room_for_the_other() -> None:
    config = b'{"fp16": {"enabled": "auto"}, "bf16": {"enabled": "auto"}, "zero_optimization": {"stage": 2}}'
    found = convert(Request("ds.json", config, Form.DEEPSPEED, arguments=of_text("--bf16 --do_train")))
    assert (found.config["fp16"], found.config["bf16"]) == ({"enabled": False}, {"enabled": True})


TRAINER = "TrainingArguments(output_dir='x', per_device_train_batch_size=2, max_grad_norm=0.3, bf16=True)\n"
LAUNCHED = b"distributed_type: DEEPSPEED\nnum_processes: 2\ndeepspeed_config:\n  zero_stage: 2\n"


def launched(script: str, text: bytes = LAUNCHED, **asked: Any) -> Converted:
    return convert(Request("acc.yaml", text, Form.DEEPSPEED, arguments=read_arguments("train.py", script), **asked))


def test_the_trainer_fills_auto_in_what_accelerate_launches() -> None:
    assert launched(TRAINER).config == {
        "train_batch_size": 4,
        "train_micro_batch_size_per_gpu": 2,
        "gradient_accumulation_steps": 1,
        "gradient_clipping": 0.3,
        "zero_optimization": {"stage": 2, "stage3_gather_16bit_weights_on_model_save": False},
        "bf16": {"enabled": True},
    }
    own = "accelerator = Accelerator(mixed_precision='fp16')\nDataLoader(x, batch_size=2)\n"
    config = launched(own).config
    assert config["gradient_clipping"] == 1.0
    assert config["fp16"] == {"enabled": True, "auto_cast": True}


def test_keys_that_only_the_trainer_fills_need_a_script_of_the_trainer(tmp_path: Path) -> None:
    config = {"optimizer": {"type": "AdamW", "params": {"betas": "auto", "eps": "auto"}}, "bf16": {"enabled": False}}
    (tmp_path / "ds.json").write_text(json.dumps({**config, "train_batch_size": 4}))
    text = LAUNCHED.replace(b"zero_stage: 2", b"deepspeed_config_file: ds.json")
    found = launched(TRAINER.replace("bf16=True", "adam_beta2=0.95"), text, folder=tmp_path)
    assert found.config["optimizer"]["params"] == {"betas": [0.9, 0.95], "eps": 1e-8}
    for script in ("accelerator = Accelerator()\n", f"{TRAINER}accelerator = Accelerator()\n"):
        with pytest.raises(ConvertError, match=r"optimizer\.params\.betas"):
            launched(script, text, folder=tmp_path)


def test_a_plugin_in_a_script_is_filled_by_accelerate_whoever_has_arguments() -> None:
    script = "p = DeepSpeedPlugin(zero_stage=2)\nAccelerator(deepspeed_plugin=p, mixed_precision='no')\n"
    request = Request("own.py", script.encode(), Form.DEEPSPEED, arguments=read_arguments("train.py", TRAINER))
    assert convert(request).config["gradient_clipping"] == 1.0


@pytest.mark.parametrize("target", [Form.PLUGIN, Form.ACCELERATE])
def test_what_the_trainer_fills_is_not_left_to_what_accelerate_fills_instead(target: Form) -> None:
    config = b'{"gradient_clipping": "auto", "zero_optimization": {"stage": 2, "reduce_bucket_size": "auto"}}'
    arguments = read_arguments("train.py", TRAINER)
    found = convert(Request("ds.json", config, target, arguments=arguments, into=Target(carrying="fields")))
    assert "gradient_clipping" in found.written.text
    assert "0.3" in found.written.text
    back = convert(Request("acc.yaml", LAUNCHED, Form.TRANSFORMERS))
    assert back.arguments["max_grad_norm"] == 1.0  # what Accelerate fills in, whatever the Trainer would
    assert back.config["gradient_clipping"] == "auto"


@pytest.mark.parametrize("given", ["fp16", "bf16", "no"])
@pytest.mark.parametrize("target", [Form.DEEPSPEED, Form.PLUGIN])
def test_half_precision_that_the_consumer_adds_is_written(given: str, target: Form) -> None:
    config = b'{"gradient_clipping": "auto", "zero_optimization": {"stage": 2}}'
    found = convert(Request("ds.json", config, target, given={"max_grad_norm": 1.0, "mixed_precision": given}))
    assert "CV304" not in [note.code for note in found.notes]
    if target is Form.PLUGIN:
        accelerator = f"Accelerator(mixed_precision={given!r}, deepspeed_plugin=deepspeed_plugin)"
        assert accelerator in found.written.text
    else:
        wanted = {"fp16": {"enabled": True, "auto_cast": True}, "bf16": {"enabled": True}}
        assert {name: found.config.get(name) for name in wanted if name in found.config} == (
            {given: wanted[given]} if given in wanted else {}
        )


def test_a_section_that_is_filled_with_true_leaves_nothing_to_ask() -> None:
    config = b'{"bf16": {"enabled": "auto"}, "train_micro_batch_size_per_gpu": 1}'
    found = convert(Request("ds.json", config, Form.DEEPSPEED, arguments=Arguments({"bf16": True})))
    assert found.config["bf16"] == {"enabled": True}
    assert [note.code for note in found.notes] == ["CV301"]
    other = convert(Request("ds.json", config, Form.DEEPSPEED, arguments=Arguments({"fp16": True, "bf16": False})))
    assert other.config["fp16"] == {"enabled": True, "auto_cast": True}
    assert other.config["bf16"] == {"enabled": False}


def test_half_precision_that_nothing_tells_is_asked_for_and_not_switched_off() -> None:
    text = b"distributed_type: DEEPSPEED\ndeepspeed_config:\n  zero_stage: 2\n"
    script = "plugin = DeepSpeedPlugin(zero_stage=1)\naccelerator = Accelerator(plugin, mixed_precision='bf16')\n"
    found = convert(Request("acc.yaml", text, Form.PLUGIN, into=Target(there=script)))
    assert "mixed_precision='bf16'" in found.written.text  # a file without a word about it says nothing of the script
    assert "CV304" not in [note.code for note in found.notes]
    plain = convert(
        Request(
            "acc.yaml",
            text,
            Form.DEEPSPEED,
            given={"train_micro_batch_size_per_gpu": 1, "gradient_accumulation_steps": 1},
        )
    )
    assert [(note.code, note.kind.value) for note in plain.notes if note.key == "mixed_precision"] == [
        ("CV304", "changed")
    ]
    assert not plain.is_complete


@pytest.mark.parametrize(("name", "text"), [("a.json", "[1]"), ("a.json", '{"a": '), ("a.yaml", "- 1"), ("a.py", "(")])
def test_arguments_that_cannot_be_read_are_an_error(name: str, text: str) -> None:
    with pytest.raises(ConvertError) as error:
        read_arguments(name, text)
    assert error.value.line == 1
