"""Whatever stands in a config, a comparison comes to an end, and tells every changed key."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest

from dsmigrate.cli.app import run
from dsmigrate.diff import Result, compare_views
from dsmigrate.diff.model import Effect, Severity
from dsmigrate.knowledge import Consumer, knowledge

from .examples import view

pytestmark = pytest.mark.broad

ODD: tuple[Any, ...] = (
    None,
    True,
    False,
    0,
    -1,
    7,
    0.5,
    1e308,
    10**30,
    5e-324,
    1023,
    "auto",
    "x",
    "",
    "1e3",
    [],
    [1, "a", None],
    [{}],
    [[1], {"a": 1}],
    {},
    {"a": {"b": 1}},
    {"enabled": True},
)
PARTS = ("", *sorted({path.partition(".")[0] for path in knowledge().every_path() if "." in path}))
BASE: dict[str, Any] = {
    "train_micro_batch_size_per_gpu": 2,
    "zero_optimization": {"stage": 2},
    "bf16": {"enabled": True},
}


@pytest.mark.parametrize("part", PARTS)
def test_any_value_at_any_key(part: str) -> None:
    chance = random.Random(part)  # noqa: S311 - values, not secrets
    for path in knowledge().every_path():
        if path.partition(".")[0] != part and (part or "." in path):
            continue
        names = path.replace("[]", "").replace("*", "any").split(".")
        for value in chance.sample(ODD, 3):
            config = json.loads(json.dumps(BASE))
            _put(config, names, value)
            consumer = chance.choice(list(Consumer))
            _check(BASE, config, consumer, chance.choice([None, None, "0.9.0", "0.16.4"]))
            _check(config, BASE, consumer, None)


@pytest.mark.parametrize(
    "text",
    ["", " ", "{", "[]", "null", "1", '"text"', "{}", '{"a": ', '{"fp16": {"enabled": ', "a: 1", '{"a": 1, "a": 2}'],
)
def test_text_that_is_no_config(text: str) -> None:
    for old, new in ((text, json.dumps(BASE)), (json.dumps(BASE), text), (text, text)):
        _whole(compare_views(view(old), view(new)))


def _check(old: dict[str, Any], new: dict[str, Any], consumer: Consumer, version: str | None) -> None:
    _whole(
        compare_views(
            view(json.dumps(old), consumer=consumer, version=version, world_size=8, parameters=7_000_000_000),
            view(json.dumps(new), consumer=consumer, world_size=8, parameters=7_000_000_000),
        )
    )


def _whole(result: Result) -> None:
    assert result.verdict
    assert set(result.changes) <= {path for said in result.explained for path in said.paths}
    for said in result.explained:
        assert said.message.strip()
        assert (said.severity is Severity.NONE) is (said.effects == (Effect.NONE,)), said


def _put(config: dict[str, Any], names: list[str], value: Any) -> None:
    for name in names[:-1]:
        inner = config.get(name)
        if not isinstance(inner, dict):
            inner = config[name] = {}
        config = inner
    config[names[-1]] = value


@pytest.mark.parametrize("opens", ['{"a": ', '{"a": ['])
@pytest.mark.parametrize(
    "arguments",
    [["--format", form] for form in ("text", "json", "markdown", "html", "junit", "github")]
    + [["--base", "base.json", "--format", form] for form in ("text", "json", "markdown")],
    ids=" ".join,
)
def test_nesting_that_no_reader_follows_is_a_message_with_its_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], opens: str
) -> None:
    for name, text in (("base", '{"train_batch_size": 8}'), ("old", "{}"), ("new", opens * 5_000)):
        (tmp_path / f"{name}.json").write_text(text)
    placed = [str(tmp_path / word) if word.endswith(".json") else word for word in (*arguments, "old.json", "new.json")]
    assert run(["diff", *placed]) == 2
    assert "new.json, line 1: nested deeper than about 490 levels" in " ".join(capsys.readouterr().err.split())


@pytest.mark.parametrize("number", ["1" + "0" * 400, "-1e200", "1e308"])
@pytest.mark.parametrize("key", ["gradient_clipping", "train_batch_size", "steps_per_print", "unknown"])
def test_a_number_beyond_any_setting_is_a_message_with_its_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], key: str, number: str
) -> None:
    (tmp_path / "old.json").write_text('{"train_batch_size": 8}')
    (tmp_path / "new.json").write_text(f'{{\n  "bf16": {{}},\n  "{key}": {number}\n}}')
    assert run(["diff", str(tmp_path / "old.json"), str(tmp_path / "new.json")]) == 2
    assert "new.json, line 3: the number is beyond any setting of DeepSpeed" in " ".join(
        capsys.readouterr().err.split()
    )
    assert run(["check", str(tmp_path / "new.json")]) in {0, 1}


@pytest.mark.parametrize("name", ["lr", "muon_lr", "adam_lr", "weight_decay", "eps"])
def test_a_switch_in_the_place_of_a_number_counts_as_one(name: str) -> None:
    """Found by fuzzing: a learning rate of ``true``, of which the ratio to the former one was worked out."""
    old, new = ({"optimizer": {"type": "Muon", "params": {"lr": 0.5, name: value}}} for value in (0.5, True))
    _check(old, new, Consumer.DEEPSPEED, None)
    _check(new, old, Consumer.DEEPSPEED, None)
