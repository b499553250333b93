from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from click.testing import CliRunner

from dsmigrate.facts.__main__ import main, write
from dsmigrate.facts.sources import FactsError
from dsmigrate.knowledge import Status, knowledge

FOLDER = Path(__file__).resolve().parents[2] / "schemas" / "deepspeed"


def test_nothing_that_is_generated_is_stale() -> None:
    assert write(FOLDER, check=True) == []


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    folder = tmp_path / "schemas" / "deepspeed"
    shutil.copytree(FOLDER, folder)
    return folder


@pytest.mark.broad
def test_a_changed_sentence_makes_files_stale_until_they_are_written(
    copy: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    keys = copy / "keys" / "fp16.toml"
    keys.write_text(keys.read_text(encoding="utf-8").replace("loss scale", "scale of the loss", 1), encoding="utf-8")
    (copy / "compiled" / "gone.json").write_text("{}", encoding="utf-8")
    monkeypatch.chdir(copy.parent.parent)
    checked = CliRunner().invoke(main, ["--check"])
    assert checked.exit_code == 1
    stale = {line.split(" ")[0] for line in checked.output.splitlines()}
    assert {f"schemas/deepspeed/compiled/{name}.json" for name in ("fp16", "gone")} <= stale
    assert CliRunner().invoke(main, []).exit_code == 0
    assert CliRunner().invoke(main, ["--check"]).exit_code == 0
    assert not (copy / "compiled" / "gone.json").exists()


def test_a_key_of_the_newest_release_without_documentation_is_an_error(copy: Path) -> None:
    derived = copy / "derived" / "fp16.json"
    span = '{"from": "0.19.8", "type": ["boolean"], "default": false, "validated": "pydantic", "source": "x"}'
    text = derived.read_text(encoding="utf-8").replace('"keys": {', f'"keys": {{\n    "fp16.new": [{span}],', 1)
    derived.write_text(text, encoding="utf-8")
    with pytest.raises(FactsError, match=r"fp16: fp16\.new: has no documentation"):
        write(copy, check=True)


def test_broken_toml_is_told_with_its_place(copy: Path) -> None:
    (copy / "keys" / "fp16.toml").write_text('["fp16"]\nsummary = \n', encoding="utf-8")
    with pytest.raises(FactsError, match=r"fp16\.toml: .*line 2"):
        write(copy, check=True)


def test_every_key_that_any_release_knew_is_documented() -> None:
    known = knowledge()
    keys = [key for path in known.every_path() if (key := known.key(path)) is not None]
    present = [key for key in keys if key.status in {Status.PRESENT, Status.DEPRECATED}]
    types = [*known.every_optimizer(), *known.every_scheduler()]
    parameters = [parameter for facts in types for parameter in facts.parameters.values()]
    print(
        f"keys: {len(keys)}, in {known.version}: {len(present)}, gone: {len(keys) - len(present)}; "
        f"types: {len(types)} with {len(parameters)} parameters"
    )
    assert [key.path for key in keys if not (key.summary and key.doc and key.type and key.source)] == []
    assert [facts.path for facts in types if not (facts.summary and facts.doc and facts.source)] == []
    assert [parameter.name for parameter in parameters if not (parameter.summary and parameter.type)] == []
    assert len(present) >= 387
