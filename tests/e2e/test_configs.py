"""Every emitted config, whatever the options, is strict JSON without "auto" that the real DeepSpeed trains with."""

from __future__ import annotations

import functools
import json
import subprocess
from pathlib import Path

import pytest

from dsmigrate.codemod.convert import convert
from dsmigrate.codemod.model import Options

from .launching import free_port, torch_python, training_environment

pytestmark = [pytest.mark.deepspeed, pytest.mark.e2e, pytest.mark.xdist_group("training")]

EXAMPLES = sorted((Path(__file__).resolve().parents[2] / "examples").glob("*.py"))
OPTIONS = {
    "ZeRO 0": Options(zero_stage=0),
    "ZeRO 1": Options(zero_stage=1),
    "ZeRO 3": Options(zero_stage=3),
    "ZeRO 2, offload": Options(zero_stage=2, offload="cpu"),
    "ZeRO 3, offload": Options(zero_stage=3, offload="cpu"),
    "optimizer in the config": Options(optimizer="config"),
    "bf16": Options(precision="bf16"),
}


@functools.cache
def _configs() -> tuple[tuple[str, str], ...]:
    """The configs of every example under one of the options, each in its turn, and as it is; made once."""
    found = []
    for index, example in enumerate(EXAMPLES):
        files = {example.name: example.read_bytes()}
        for name, options in ("as it is", Options()), list(OPTIONS.items())[index % len(OPTIONS)]:
            result = convert(files.get, example.name, options).results[example.name]
            config = result.config
            assert config is not None, f"{example.name}, {name}"
            if b"train_micro_batch_size_per_gpu=" in (result.new_source or b""):  # the script says it when it runs
                config = {"train_micro_batch_size_per_gpu": 2, **config}
            found.append((f"{example.name}, {name}", json.dumps(config, allow_nan=False)))
    return tuple(found)


def test_every_emitted_config_is_strict_and_complete() -> None:
    for name, text in _configs():
        config = json.loads(text)
        assert '"auto"' not in text, name
        assert isinstance(config["gradient_clipping"], float), name
        assert config["train_micro_batch_size_per_gpu"] >= 1, name


def test_the_real_deepspeed_accepts_every_emitted_config() -> None:
    configs = list({text: (name, text) for name, text in _configs()}.values())
    judge = Path(__file__).with_name("config_judge.py")
    answers = subprocess.run(
        [torch_python(), str(judge), str(free_port())],
        input="".join(f"{text}\n" for _, text in configs),
        capture_output=True,
        text=True,
        env=training_environment(),
        timeout=900,
        check=False,
    )
    said = answers.stdout.splitlines()
    assert len(said) == len(configs), answers.stderr[-2000:]
    assert {name: answer for (name, _), answer in zip(configs, said, strict=True) if answer != "ok"} == {}
