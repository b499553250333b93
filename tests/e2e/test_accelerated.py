"""What DS829, DS818, DS816 and DS206 say of a script with Accelerate, judged by the real Accelerate and DeepSpeed."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from dsmigrate.checking.launched import SWITCHES
from dsmigrate.verify.launching import reserved_port
from tests.support.events import PATIENCE

from .launching import torch_python, training_environment

pytestmark = [pytest.mark.deepspeed, pytest.mark.e2e]

ZERO: dict[str, Any] = {"zero_optimization": {"stage": 1}, "train_micro_batch_size_per_gpu": "auto"}
ADAM: dict[str, Any] = {"optimizer": {"type": "AdamW", "params": {"lr": 1e-3, "torch_adam": True}}}
WARMUP: dict[str, Any] = {"scheduler": {"type": "WarmupLR", "params": {"warmup_num_steps": 5, "warmup_max_lr": 1e-3}}}
STEPS, PRECISION = "gradient_accumulation_steps", "mixed_precision"


def case(config: dict[str, Any] | None = None, given: dict[str, Any] | None = None, **more: Any) -> dict[str, Any]:
    environment = more.pop("environment", {})
    started = {
        "config": None if config is None else {**ZERO, **config},
        "given": given or {},
        "environment": environment,
    }
    return {**started, "optimizer": "AdamW", "scheduler": "", "clips": "", **more}


FOUR = {STEPS: 4}
LAUNCHED = "ACCELERATE_GRADIENT_ACCUMULATION_STEPS"
COMES_TO: list[tuple[str, dict[str, Any], dict[str, Any]]] = [
    ("accumulation of the YAML", case(given=FOUR, environment={LAUNCHED: "8"}), {STEPS: 8, "counted": 8}),
    ("accumulation that the YAML leaves out", case(given=FOUR), {STEPS: 4}),
    ("accumulation of the file", case({STEPS: 8}, FOUR), {STEPS: 8, "counted": 8}),
    ("accumulation that the file leaves out", case({}, FOUR), {STEPS: 1, "counted": 1}),
    (
        "clipping that is filled",
        case({"gradient_clipping": "auto"}, clips="clip_grad_norm_"),
        {"gradient_clipping": 1.0},
    ),
    ("clipping of the file", case({"gradient_clipping": 0.3}, clips="clip_grad_norm_"), {"gradient_clipping": 0.3}),
    (
        "precision of the script before the YAML",
        case(given={PRECISION: "no"}, environment={"ACCELERATE_MIXED_PRECISION": "bf16"}),
        {"bf16": {"enabled": False}},
    ),
    ("a section that is on", case({"bf16": {"enabled": True}}, {PRECISION: "no"}), {"bf16": {"enabled": True}}),
    ("a section that is off", case({"bf16": {"enabled": False}}, {PRECISION: "bf16"}), {"bf16": {"enabled": False}}),
    ("an optimizer of the file", case(ADAM, optimizer="DummyOptim"), ADAM),
    ("a schedule of the file", case(WARMUP, scheduler="DummyScheduler"), WARMUP),
]
RAISES: list[tuple[str, dict[str, Any], str]] = [
    ("auto in the YAML", case(given=FOUR, environment={LAUNCHED: "auto"}), "invalid literal for int"),
    ("the other precision", case({"fp16": {"enabled": True}}, {PRECISION: "bf16"}), "arg cannot be set to `bf16`"),
    ("clipping by value", case({}, clips="clip_grad_value_"), "do not support `clip_grad_value_`"),
    ("a real optimizer", case(ADAM), "an optimizer in the config file and in the code"),
    ("a real schedule", case(WARMUP, scheduler="LambdaLR"), "a scheduler in the config file and in the code"),
    ("DummyOptim alone", case({}, optimizer="DummyOptim"), "`DummyOptim` without specifying an optimizer"),
    ("DummyScheduler alone", case({}, scheduler="DummyScheduler"), "Either specify a scheduler in the config file"),
]  # fmt: skip


@pytest.fixture(scope="module")
def answers(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Any]]:
    cases = {name: asked for name, asked, _ in (*COMES_TO, *RAISES)}
    with reserved_port() as port:
        alone = {
            "RANK": "0",
            "LOCAL_RANK": "0",
            "WORLD_SIZE": "1",
            "MASTER_ADDR": "127.0.0.1",
            "MASTER_PORT": str(port),
        }
        run = subprocess.run(
            [torch_python(), str(Path(__file__).with_name("accelerated_judge.py"))],
            input="".join(f"{json.dumps(asked)}\n" for asked in cases.values()),
            capture_output=True,
            text=True,
            check=False,
            timeout=PATIENCE,
            cwd=tmp_path_factory.mktemp("accelerated"),
            env={**training_environment(), **alone, "HF_HUB_OFFLINE": "1", "ACCELERATE_USE_DEEPSPEED": "true"},
        )
    lines = [line.removeprefix("answer ") for line in run.stdout.splitlines() if line.startswith("answer ")]
    assert len(lines) == len(cases), run.stderr[-4000:]
    return dict(zip(cases, map(json.loads, lines), strict=True))


def test_the_switches_of_the_launcher_are_those_of_its_parser() -> None:
    listed = (
        "import json; from accelerate.commands.launch import launch_command_parser as made; "
        "print(json.dumps([[one.nargs == 0, one.option_strings] for one in made()._actions]))"
    )
    run = subprocess.run([torch_python(), "-c", listed], capture_output=True, text=True, check=True, timeout=PATIENCE)
    found = {True: set[str](), False: set[str]()}
    for is_switch, flags in json.loads(run.stdout.splitlines()[-1]):
        found[is_switch] |= {flag.lstrip("-").replace("-", "_") for flag in flags}
    assert found[True] <= SWITCHES
    assert found[False].isdisjoint(SWITCHES)


@pytest.mark.parametrize(("name", "expected"), [(name, expected) for name, _, expected in COMES_TO])
def test_accelerate_comes_to_what_the_rules_say(
    answers: dict[str, dict[str, Any]], name: str, expected: dict[str, Any]
) -> None:
    config = answers[name].get("config", answers[name])
    assert {key: config.get(key) for key in expected} == expected


@pytest.mark.parametrize(("name", "message"), [(name, message) for name, _, message in RAISES])
def test_accelerate_raises_what_the_rules_say(answers: dict[str, dict[str, Any]], name: str, message: str) -> None:
    assert message in answers[name].get("error", "")
