"""What a file, a key or a value is called is data: no control reaches a terminal, no line is a command of a runner."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest

from dsmigrate.cli.app import run
from dsmigrate.files.diff import unified
from dsmigrate.visible import no_command, visible, visible_line
from tests.diff.repository import NOWHERE, Repository

pytestmark = pytest.mark.skipif(os.name == "nt", reason="no file of Windows has such a name")

ROOT = Path(__file__).parents[2]
HOSTILE = {
    "escape": "a\x1b[2Jb",
    "title of the window": "a\x1b]0;x\x07b",
    "C1": "a\x9b31mb\x85",
    "bidi": "a\u202eb\u2066c",
    "command": "x\n::error file=a::b",
    "command at the start": "::error::b",
    "old command": "##[error]b",
    "carriage return": "a\rb",
    "surrogate": "a\ud800b",
    "byte": "a\udcffb",
    "Markdown": "a`b|c](d)<img src=x>",
    "separator": "a\u2028b",
    "tag": "a\U000e0041b",
}
FEW = ("command", "byte")
"""Those that processes are started with on every Python, which takes a while."""
RAW = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff\U000e0000-\U000e0fff]"
    "|\r(?!\n)"
)
SCRIPT = """\
import torch
from torch.nn.parallel import DistributedDataParallel as DDP

torch.distributed.init_process_group("nccl")
model = DDP(torch.nn.Linear(4, 4))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for batch in batches():
    loss = model(batch).sum()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
"""


Bytes = pytest.CaptureFixture[bytes]
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(ROOT / "server")}
ENVIRONMENT.pop("PYTHONUNBUFFERED", None)  # which would hide what is left in a buffer


def process(*command: str | bytes, cwd: Path, **more: Any) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(command, cwd=cwd, capture_output=True, check=False, **{"env": ENVIRONMENT, **more})


def config(hostile: str, more: str = "") -> str:
    """A config with a hostile key, a hostile value where text is wanted, and one where it is not."""
    return json.dumps({
        "train_batch_size": 8 if not more else 16,
        hostile: 1,
        "zero_optimization": {"stage": hostile, hostile: {"a": 1}},
        "optimizer": {"type": hostile + more, "params": {"lr": 1e-3, hostile: more}},
        "fp16": {"enabled": True, "hysteresis": hostile},
    }, indent=1)  # fmt: skip


def harmless(output: bytes, *, github: bool = False) -> str:
    text = output.decode("utf-8")
    assert not RAW.search(text), RAW.search(text)
    for line in text.splitlines():
        if line.lstrip().startswith(("::", "##[")):
            assert github, line
            assert re.match(r"::(error|warning|notice) file=[^,:]+,[^:]*::", line), line
    return text


@pytest.mark.parametrize("form", ["text", "json", "sarif", "github"])
@pytest.mark.parametrize("hostile", HOSTILE.values(), ids=HOSTILE)
def test_check(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, hostile: str, form: str, capsysbinary: Bytes) -> None:
    monkeypatch.chdir(tmp_path)
    name = hostile.replace("/", "").replace("\ud800", "\udced") + ".json"
    (tmp_path / name).write_text(config(hostile))
    assert run(["check", "--min-severity", "hint", "--format", form, "."]) == 1
    out, err = capsysbinary.readouterr()
    text = harmless(out, github=form == "github")
    harmless(err)
    if form in {"json", "sarif"}:
        assert json.loads(text)


@pytest.mark.parametrize("form", ["text", "json", "github", "markdown", "html", "junit"])
@pytest.mark.parametrize("hostile", HOSTILE.values(), ids=HOSTILE)
def test_diff(tmp_path: Path, hostile: str, form: str, capsysbinary: Bytes) -> None:
    old, new = tmp_path / "old.json", tmp_path / "new.json"
    old.write_text(config(hostile))
    new.write_text(config(hostile, "x"))
    assert run(["diff", "--all", "--format", form, str(old), str(new)]) in {0, 1}
    out, err = capsysbinary.readouterr()
    text = harmless(out, github=form == "github")
    harmless(err)
    if form == "json":
        assert json.loads(text)
    if form == "junit":
        assert ET.fromstring(text) is not None  # noqa: S314 - our own
    if form in {"markdown", "html"}:
        assert "<img" not in re.sub(r"`[^`]*`", "", text)


@pytest.mark.parametrize(
    "hostile",
    [pytest.param(text, id=name, marks=() if name in FEW else pytest.mark.broad) for name, text in HOSTILE.items()],
)
def test_messages_and_the_report(tmp_path: Path, hostile: str) -> None:
    name = os.fsencode(hostile.replace("\ud800", "").replace("/", ""))
    (tmp_path / os.fsdecode(name + b".py")).write_text(SCRIPT)
    python = (sys.executable.encode(), b"-m", b"dsmigrate")
    ran = process(*python, b"migrate", b"./" + name + b".py", cwd=tmp_path)
    assert ran.returncode in {0, 1}, ran.stderr
    harmless(ran.stderr)
    applied = process("git", "apply", "--check", "-", cwd=tmp_path, input=ran.stdout)
    assert applied.returncode == 0, (applied.stderr, ran.stdout[:200])
    missing = process(*python, b"check", b"no" + name, cwd=tmp_path)
    assert missing.returncode == 2
    harmless(missing.stderr)


@pytest.mark.parametrize(
    "name",
    [
        "-rf.py",
        *(pytest.param(name, marks=pytest.mark.broad) for name in ("a b.py", "q'uote.py", "$(touch x).py", "é.py")),
    ],
)
def test_printed_commands_are_for_a_shell(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text(SCRIPT)
    ran = process(sys.executable, "-m", "dsmigrate", "--", name, cwd=tmp_path)
    assert ran.returncode in {0, 1}, ran.stderr
    lines = ran.stderr.decode().splitlines()
    command = next(line for line in lines if line.strip().startswith("dsmigrate ")).strip()
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/dsmigrate").write_text(f'#!/bin/sh\nexec {sys.executable} -m dsmigrate "$@"\n')
    (tmp_path / "bin/dsmigrate").chmod(0o755)
    path = {**ENVIRONMENT, "PATH": str(tmp_path / "bin")}
    again = process("/bin/sh", "-c", command, cwd=tmp_path, env=path)
    assert again.returncode in {0, 1}, again.stderr
    assert "deepspeed" in (tmp_path / name).read_text()
    assert not (tmp_path / "x").exists()


@pytest.mark.parametrize(
    "name", ['a"b.json', "a\nb.json", "a\\b.json", "é.json", "a b.json", "a\tb.json", "a\udcffb.json", "-a.json"]
)
def test_git_applies_a_patch_of_any_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    for variable, value in NOWHERE.items():
        monkeypatch.setenv(variable, value)
    repository = Repository.make(tmp_path / "work")
    (repository.folder / name).write_text("{}\n")
    patch = unified("{}\n", '{"a": 1}\n', name).encode()
    applied = process("git", "apply", "-", cwd=repository.folder, input=patch)
    assert applied.returncode == 0, (applied.stderr, patch)
    assert (repository.folder / name).read_text() == '{"a": 1}\n'


def test_what_is_shown_in_place_of_a_control() -> None:
    assert visible("a\x1b[0m\x9b\u202e\udcff\r\n\tb") == "a\\x1b[0m\\x9b\\u202e\\udcff\\r\n\tb"
    assert visible_line("a\n\tb") == "a\\n\\tb"
    assert visible("naïve 模型 👩‍💻") == "naïve 模型 👩‍💻"
    assert no_command("a\n  ::error::b\n##[group]c\nd::e") == "a\n  \\x3a:error::b\n\\x23#[group]c\nd::e"


@pytest.mark.parametrize(
    ("arguments", "closed"),
    [
        (["check", "c.json"], ">/dev/full"),
        (["check", "c.json"], ">&-"),
        (["check", "c.json", "--format", "sarif"], ">/dev/full"),
        (["diff", "c.json", "c.json"], ">/dev/full"),
        (["train.py"], ">/dev/full"),
        (["--help"], ">/dev/full"),
        (["--version"], ">/dev/full"),
        (["explain", "zero_optimization.stage"], ">&-"),
        (["memory", "--params", "1b", "--gpus", "8"], ">/dev/full"),
    ],
)
@pytest.mark.skipif(not Path("/dev/full").exists(), reason="Linux has it")
def test_a_stdout_that_takes_nothing_is_one_line_and_exit_code_2(
    tmp_path: Path, arguments: list[str], closed: str
) -> None:
    (tmp_path / "c.json").write_text('{"train_batch_size": 8}')
    (tmp_path / "train.py").write_text(SCRIPT)
    command = f'exec "$0" -m dsmigrate "$@" {closed}'
    ran = process("/bin/sh", "-c", command, sys.executable, *arguments, cwd=tmp_path)
    assert ran.returncode == 2
    said = ran.stderr.decode().splitlines()
    assert said[:1] == [line for line in said if line.startswith("standard output: ")]
    assert "Traceback" not in ran.stderr.decode()
    silent = process("/bin/sh", "-c", f"{command} 2>/dev/full", sys.executable, *arguments, cwd=tmp_path)
    assert silent.returncode == 2


def test_an_error_of_our_own_says_where_to_report_it(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    file = tmp_path / "c.json"
    file.write_text('{"train_batch_size": 8}')

    def broken(*_: object, **__: object) -> None:
        raise ZeroDivisionError("a\x1b[2J")

    monkeypatch.setattr("dsmigrate.cli.check.check_file", broken)
    assert run(["check", str(file)]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("internal error: ZeroDivisionError in test_hostile_text.py:")
    assert "a\\x1b[2J" in err
    assert "DSMIGRATE_TRACEBACK=1 prints the traceback" in err
    assert "Traceback" not in err
    monkeypatch.setenv("DSMIGRATE_TRACEBACK", "1")
    assert run(["check", str(file)]) == 2
    assert "Traceback (most recent call last)" in capsys.readouterr().err


def test_what_fixes_would_change_is_json_too(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "ds_config.json"
    text = '{\n  "train_batch_size": 8,\n  "amp": {"enabled": false},\n  "fp16": {"enabled": true}\n}\n'
    file.write_text(text)
    assert run(["check", "--diff", "--format", "json", str(file)]) in {0, 1}
    found = json.loads(capsys.readouterr().out)["files"][0]
    assert '-  "amp": {"enabled": false},' in found["diff"]
    assert [fixed["code"] for fixed in found["fixed"]] == ["DS110"]
    assert file.read_text() == text
    assert run(["check", "--format", "json", str(file)]) in {0, 1}
    assert json.loads(capsys.readouterr().out)["files"][0]["diff"] is None
    assert run(["check", "--diff", "--format", "sarif", str(file)]) == 2
    assert "--diff gives text or json, and no sarif" in capsys.readouterr().err
