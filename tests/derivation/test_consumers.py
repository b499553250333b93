"""What releases of a consumer fill in, from wheels made here."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path

import pytest

from dsmigrate.derivation import consumers, known_bugs
from dsmigrate.derivation.sources import Sources

TRAINER = """
class HfTrainerDeepSpeedConfig:
    def trainer_config_process(self, args):
        self.fill_match("gradient_clipping", args.max_grad_norm, "max_grad_norm")
        self.fill_only("not_of_deepspeed", 1)

    def trainer_config_finalize(self, args, model):
        self.fill_only("zero_optimization.stage3_prefetch_bucket_size", {})

    def is_zero3(self):
        self.fill_only("gradient_clipping", "never asked")
"""
PLUGIN = """
class DeepSpeedPlugin:
    def __post_init__(self):
        mapping = {"zero_stage": "zero_optimization.stage"}
        config["steps_per_print"] = float("inf")
        self.config["fp16"]["enabled"] = True
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    schemas = tmp_path / "schemas"
    (schemas / "messages").mkdir(parents=True)
    packages = "[transformers]\nreleases = ['1.0', '1.1', '1.2']\n[accelerate]\nreleases = ['0.1']\n"
    (schemas / "messages" / "packages.toml").write_text(packages, encoding="utf-8")
    (schemas / "derived").mkdir()
    keys = dict.fromkeys(("gradient_clipping", "zero_optimization", "steps_per_print", "fp16"), 1)
    (schemas / "derived" / "a.json").write_text(json.dumps({"keys": keys}), encoding="utf-8")
    (tmp_path / "wheels").mkdir()
    for release, value in (("1.0", "0.9 * size"), ("1.1", "0.9 * size"), ("1.2", "int(0.9 * size)")):
        with zipfile.ZipFile(tmp_path / "wheels" / f"transformers-{release}-py3-none-any.whl", "w") as wheel:
            wheel.writestr("transformers/integrations/deepspeed.py", TRAINER.format(value))
    with zipfile.ZipFile(tmp_path / "wheels" / "accelerate-0.1-py3-none-any.whl", "w") as wheel:
        wheel.writestr("accelerate/utils/dataclasses.py", PLUGIN)
    return schemas


def test_what_is_filled_is_told_with_its_releases(folder: Path) -> None:
    made = consumers.derive(folder, Sources(cache=folder.parent / "sdists", index_url=""))
    found = {path.stem: json.loads(text)["fills"] for path, text in made.items()}
    assert found["transformers"] == {
        "gradient_clipping": [["1.0", "1.2", "args.max_grad_norm"]],
        "zero_optimization.stage3_prefetch_bucket_size": [
            ["1.0", "1.1", "0.9 * size"],
            ["1.2", "1.2", "int(0.9 * size)"],
        ],
    }
    assert found["accelerate"] == {
        "fp16.enabled": [["0.1", "0.1", "True"]],
        "steps_per_print": [["0.1", "0.1", "float('inf')"]],
        "zero_optimization.stage": [["0.1", "0.1", "self.zero_stage"]],
    }


def test_differences_are_looked_for_in_the_wheels(folder: Path) -> None:
    wheels = {
        release: folder.parent / "wheels" / f"transformers-{release}-py3-none-any.whl"
        for release in ("1.0", "1.1", "1.2")
    }
    sign = {"file": "transformers/integrations/deepspeed.py", "has": ["0.9 * size"], "lacks": ["int("]}
    entry = {"package": "transformers", "first": "1.0", "last": "1.1", "signs": [sign]}
    right, wrong = known_bugs.verify_in_wheels({"a": entry, "b": entry | {"last": "1.2"}}, {"transformers": wheels})
    assert (right.holds, wrong.holds) == (True, False)
