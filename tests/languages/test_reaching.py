"""How a reader comes to messages in another language: flag, setting, the editor's locale."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from dsmigrate.cli.app import run
from dsmigrate.editing.hover import hover_at
from dsmigrate.languages import using
from tests.editing.marked import marked
from tests.language_server.raw import RawClient

Captured = pytest.CaptureFixture[str]
BAD = '{"train_batch_size": 8, "fp16": {"enabled": true, "auto_cats": true}}\n'
URI = "file:///w/ds_config.json"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / ".git").mkdir()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("LANG", "zh_CN.UTF-8")  # counts for nothing
    (tmp_path / "ds_config.json").write_text(BAD, encoding="utf-8")
    (tmp_path / "new.json").write_text(BAD.replace("auto_cats", "auto_cast"), encoding="utf-8")
    return tmp_path


@pytest.mark.usefixtures("folder")
def test_check_speaks_the_language_of_the_flag_and_english_without_it(capsys: Captured) -> None:
    assert run(["check", "ds_config.json", "--lang", "zh-CN", "--select", "DS101"]) == 1
    said = capsys.readouterr().out
    assert "DeepSpeed 没有键 `auto_cats`（在 `fp16` 中），会因此拒绝该配置；是否想写 `auto_cast`" in said
    assert "1 个文件：1 个错误" in said
    assert run(["check", "ds_config.json", "--select", "DS101"]) == 1
    assert "DeepSpeed has no key `auto_cats` in `fp16` and rejects the config for it" in capsys.readouterr().out


@pytest.mark.usefixtures("folder")
def test_json_has_other_messages_and_the_same_codes_keys_and_places(capsys: Captured) -> None:
    found = []
    for language in ("en", "zh-CN"):
        assert run(["check", "ds_config.json", "--format", "json", "--lang", language]) == 1
        found.append(json.loads(capsys.readouterr().out)["files"][0]["diagnostics"])
    english, chinese = found
    assert [one["message"] for one in english] != [one["message"] for one in chinese]

    def rest(one: dict[str, Any]) -> tuple[object, ...]:
        return one["code"], one["key"], one["range"], one["severity"], one["effect"], one["url"]

    assert sorted(map(rest, english), key=str) == sorted(map(rest, chinese), key=str)


def test_the_setting_counts_where_no_flag_does(folder: Path, capsys: Captured) -> None:
    (folder / "dsmigrate.toml").write_text('[check]\nlang = "zh-CN"\n', encoding="utf-8")
    assert run(["explain", "fp16.loss_scale"]) == 0
    assert "损失缩放系数" in capsys.readouterr().out
    assert run(["explain", "fp16.loss_scale", "--lang", "en"]) == 0
    assert "Fixed loss scale" in capsys.readouterr().out


@pytest.mark.usefixtures("folder")
def test_diff_speaks_in_its_verdict_and_its_formats(capsys: Captured) -> None:
    assert run(["diff", "ds_config.json", "new.json", "--lang", "zh-CN"]) == 1
    said = capsys.readouterr().out
    assert "改变训练：输入转换为 fp16。不再无效" in said
    assert "警告[DF312] 数值" in said
    assert run(["diff", "ds_config.json", "new.json", "--lang", "zh-CN", "--format", "html"]) == 1
    page = capsys.readouterr().out
    assert '<html lang="zh-CN">' in page
    assert "需要查看" in page


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize("command", [["check", "new.json"], ["diff", "new.json", "new.json"], ["explain", "bf16"]])
def test_a_language_that_there_is_not_is_wrong_usage(command: list[str], capsys: Captured) -> None:
    assert run([*command, "--lang", "fr"]) == 2
    assert "--lang 'fr' does not exist; allowed: auto, en, zh-CN" in " ".join(capsys.readouterr().err.split())


@pytest.mark.usefixtures("folder")
def test_codes_are_explained(capsys: Captured) -> None:
    assert run(["explain", "DS210", "--lang", "zh-CN"]) == 0
    said = capsys.readouterr().out
    assert "不等于微批次 × 梯度累积步数 × 数据并行 rank 数" in said
    assert "DeepSpeed 或它前面的程序会拒绝该配置" in said


YAML = "distributed_type: DEEPSPEED\ndeepspeed_config:\n  zero_stage: 3\n  zero_stag: 1\n"


def test_conversions_are_told_and_explained(folder: Path, capsys: Captured) -> None:
    (folder / "acc.yaml").write_text(YAML, encoding="utf-8")
    assert run(["convert", "acc.yaml", "--to", "plugin", "--lang", "zh-CN"]) == 1
    out, err = capsys.readouterr()
    assert "zero_stage=3" in out
    assert err.splitlines()[:2] == [
        "没有带过去：",
        "  acc.yaml:4: [CV101] Accelerate 不会使用 deepspeed_config 中的 zero_stag；是否想写 zero_stage？",
    ]
    assert run(["convert", "acc.yaml", "--to", "deepspeed", "--lang", "zh-CN"]) == 2
    assert '有 3 个值是 "auto" 或表达式，而没有任何内容说明它们是多少' in capsys.readouterr().err
    assert run(["explain", "CV101", "--lang", "zh-CN"]) == 0
    said = capsys.readouterr().out
    assert "## 处理方法\n\n如果提示中给出了名称，请改正拼写。" in said
    assert "**影响。** 没有带过去：该键在那里不起作用。`dsmigrate check` 会将其报告为警告。" in said
    assert run(["explain", "CV13", "--lang", "zh-CN"]) == 2
    assert "没有代码 CV13；相近的有：CV" in capsys.readouterr().err


def test_an_auto_gets_its_value_in_every_language(folder: Path, capsys: Captured) -> None:
    (folder / "hf.json").write_text('{"train_micro_batch_size_per_gpu": 1, "gradient_clipping": "auto"}')
    results = []
    for language in ("en", "zh-CN"):
        asked = ["--consumer", "deepspeed", "--arguments", '{"max_grad_norm": 0.5, "bf16": true}', "--lang", language]
        assert run(["convert", "hf.json", "--to", "deepspeed", *asked]) == 0
        results.append(capsys.readouterr())
    assert results[0].out == results[1].out
    assert json.loads(results[1].out) == {
        "train_micro_batch_size_per_gpu": 1,
        "gradient_clipping": 0.5,
        "bf16": {"enabled": True},
    }
    assert 'gradient_clipping 的 "auto" 替换为 0.5，取自 TrainingArguments.max_grad_norm' in results[1].err


def test_check_and_sarif_tell_the_faults_of_other_forms(folder: Path, capsys: Captured) -> None:
    (folder / "acc.yaml").write_text(YAML, encoding="utf-8")
    assert run(["check", "acc.yaml", "--select", "CV", "--format", "sarif", "--lang", "zh-CN"]) == 1
    log = json.loads(capsys.readouterr().out)["runs"][0]
    (rule,) = log["tool"]["driver"]["rules"]
    assert rule["shortDescription"]["text"].startswith("`deepspeed_config` 中的一个键")
    assert rule["fullDescription"]["text"].startswith("`accelerate launch` 把 `deepspeed_config` 的每个键")
    assert rule["helpUri"].endswith("/docs/conversions/CV101.md")
    assert "是否想写 zero_stage" in log["results"][0]["message"]["text"]
    assert run(["check", "acc.yaml", "--lang", "zh-CN"]) == 1
    assert "由 Accelerate 读取，依据文件的形式" in capsys.readouterr().out


def test_hovers_have_chinese_around_the_documentation_too() -> None:
    with using("zh-CN"):
        found = hover_at(*marked('{"fp16": {"enabled": true, "loss_sc|ale": 1}}'))
        assert found is not None
        text = found.markdown
    assert "数字 ≥ 0（比例） · 默认 `0.0`" in text or "数字 ≥ 0（比例） · 默认 `0`" in text
    assert "**在本文件中。**" in text
    assert "**陷阱。**" in text
    assert "[更多](" in text


def _message(client: RawClient) -> str:
    params = {"textDocument": {"uri": URI}}
    items = client.ask("textDocument/diagnostic", params)["result"]["items"]
    return str(next(item["message"] for item in items if item["code"] == "DS101"))


def _hover(client: RawClient) -> str:
    place = {"textDocument": {"uri": URI}, "position": {"line": 0, "character": 26}}
    return str(client.ask("textDocument/hover", place)["result"]["contents"])


def test_the_server_speaks_the_language_of_the_editor_until_a_setting_names_another() -> None:
    client = RawClient()
    client.initialize({"textDocument": {"diagnostic": {}}}, locale="zh-cn")
    client.open(URI, BAD)
    assert "没有键 `auto_cats`" in _message(client)
    assert "半精度（float16）训练" in _hover(client)
    client.notify("workspace/didChangeConfiguration", {"settings": {"dsmigrate": {"lang": "en"}}})
    assert "has no key `auto_cats`" in _message(client)
    assert "Half-precision (float16) training" in _hover(client)
    client.notify("workspace/didChangeConfiguration", {"settings": {"dsmigrate": {"lang": "auto"}}})
    assert "没有键 `auto_cats`" in _message(client)
    assert client.finish() == 0


def test_another_editor_gets_english() -> None:
    client = RawClient()
    client.initialize({"textDocument": {"diagnostic": {}}}, locale="zh-tw")
    client.open(URI, BAD)
    assert "has no key `auto_cats`" in _message(client)
    assert client.finish() == 0


TRAIN = """\
import torch
import torch.distributed as dist

dist.init_process_group("nccl")
model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(4, 1).cuda())
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(4):
    loss = model(torch.randn(2, 4).cuda()).sum()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""


@pytest.mark.parametrize("jobs", ["1", "2"])
def test_a_migration_is_reported_in_the_language_and_written_in_english(
    folder: Path, capsys: Captured, jobs: str
) -> None:
    for name in "abcd":
        (folder / f"{name}.py").write_text(TRAIN)
    assert run(["a.py", "b.py", "c.py", "d.py", "--jobs", jobs, "--lang", "zh-CN", "--verbose"]) == 0
    patch, report = capsys.readouterr()
    assert "d.py: 已转换, ZeRO 2" in report
    assert "去掉 optimizer.zero_grad()  (engine.step() 会把梯度清零)" in report
    assert "dsmigrate a.py b.py c.py d.py --lang zh-CN --write" in report
    assert patch.isascii()
    assert run(["a.py", "--lang", "en"]) == 0
    assert "ZeRO-2: each GPU keeps 1/N of optimizer state and gradients." in capsys.readouterr().err
