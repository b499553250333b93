from __future__ import annotations

from pathlib import Path

import pytest

from dsmigrate.messages import find
from dsmigrate.messages.logs import read_log

SAID = {
    "ModuleNotFoundError: No module named 'transformers.deepspeed'": (
        "transformers.deepspeed",
        "In newer releases it is in `transformers.integrations.deepspeed`.",
    ),
    "ImportError: cannot import name 'prepare_model_for_int8_training' from 'peft' (/opt/peft/__init__.py)": (
        "peft.prepare_model_for_int8_training",
        "Install PEFT 0.9.0 or older, or a newer version of the code that asks for it.",
    ),
    "TypeError: Accelerator.__init__() got an unexpected keyword argument 'dispatch_batches'": (
        "Accelerator.__init__(dispatch_batches)",
        "Install Accelerate 0.34.2 or older, or a newer version of the code that asks for it.",
    ),
    "TypeError: TrainingArguments.__init__() got an unexpected keyword argument 'evaluation_strategy'": (
        "TrainingArguments.__init__(evaluation_strategy)",
        "Install Transformers 4.50.3 or older",
    ),
    "AttributeError: 'Accelerator' object has no attribute 'use_fp16'": ("Accelerator.use_fp16", "or older"),
    "ImportError: cannot import name 'is_npu_available' from 'accelerate.utils'": (
        "accelerate.utils.is_npu_available",
        "Install Accelerate 0.21.0 or newer.",
    ),
    '  File "/train.py", line 3, in make\n    with deepspeed.zero.Init(sequence_data_parallel_group=group):\n'
    "TypeError: __init__() got an unexpected keyword argument 'sequence_data_parallel_group'": (
        "Init.__init__(sequence_data_parallel_group)",
        "Install DeepSpeed",
    ),
    "ModuleNotFoundError: No module named 'deepspeed.accelerator'": (
        "deepspeed.accelerator",
        "Install DeepSpeed 0.7.7 or newer. If yours is, it is not whole: install it again, from its wheel.",
    ),
}


@pytest.mark.parametrize("said", SAID)
def test_a_name_of_another_release_is_told_with_its_releases(said: str) -> None:
    name, cure = SAID[said]
    [match] = find(f"Traceback (most recent call last):\n{said}\n")
    assert match.entry.name == name
    assert cure in match.entry.cure
    assert f"`{name}` is in" in match.entry.cause


@pytest.mark.parametrize(
    "said",
    [
        "ModuleNotFoundError: No module named 'my_project.deepspeed'",
        "ModuleNotFoundError: No module named 'transformers.no_such_module'",
        "ImportError: cannot import name 'no_such_name' from 'accelerate.utils'",
        "AttributeError: 'Accelerator' object has no attribute 'no_such_name'",
        "AttributeError: 'Mine' object has no attribute 'use_fp16'",
        "TypeError: Accelerator.__init__() got an unexpected keyword argument 'no_such_name'",
        "TypeError: train() got an unexpected keyword argument 'dispatch_batches'",
        "TypeError: __init__() got an unexpected keyword argument 'dispatch_batches'",
    ],
)
def test_of_a_name_that_no_release_had_nothing_is_said(said: str) -> None:
    assert find(said) == []


def test_what_is_known_of_a_message_counts_before_its_name() -> None:
    assert [match.entry.name for match in find("AttributeError: module 'deepspeed' has no attribute 'zero'")] == [
        "deepspeed-shadowed"
    ]


def test_a_log_tells_each_name_at_its_line(tmp_path: Path) -> None:
    log = tmp_path / "train.log"
    log.write_text(
        "start\n[rank0]: ModuleNotFoundError: No module named 'transformers.deepspeed'\n"
        "[rank1]: ModuleNotFoundError: No module named 'transformers.deepspeed'\n"
        "[rank1]: ImportError: cannot import name 'is_npu_available' from 'accelerate.utils' (/x.py)\n",
        encoding="utf-8",
    )
    assert [(seen.entry.name, seen.line, seen.count) for seen in read_log(log).seen] == [
        ("transformers.deepspeed", 2, 2),
        ("accelerate.utils.is_npu_available", 4, 1),
    ]
