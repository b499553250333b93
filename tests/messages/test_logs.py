from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from dsmigrate.messages import logs
from dsmigrate.messages.logs import Log, read_log, scan

UNTESTED = (
    'AssertionError: You are using an untested ZeRO Optimizer. Please add <"zero_allow_untested_optimizer": true> in '
    "the configuration file to use it."
)
MOE = "AssertionError: MoE not supported with Stage 3"
NOISE = "[2024-05-01 12:00:00] step 17 loss 0.25\r 10%|#   | 1/10\r 20%|##  | 2/10\n"


def told(log: Log) -> list[tuple[str, int, int]]:
    assert log.error == ""
    return [(seen.entry.name, seen.line, seen.count) for seen in log.seen]


def written(tmp_path: Path, data: bytes) -> Log:
    path = tmp_path / "train.log"
    path.write_bytes(data)
    return read_log(path)


def test_each_message_is_told_once_with_its_line_and_how_often(tmp_path: Path) -> None:
    text = NOISE * 3 + f"[rank0]: {UNTESTED}\n" + NOISE + f"[rank1]: {UNTESTED}\n{MOE}\n"
    assert told(written(tmp_path, text.encode())) == [
        ("untested-zero-optimizer", 4, 2),
        ("moe-with-stage-3", 7, 1),
    ]


def test_a_message_is_told_with_the_values_of_its_line(tmp_path: Path) -> None:
    log = written(tmp_path, b"[launch.py:321] exits with return code = -9\nnext line\n")
    assert [seen.said for seen in log.seen] == ["exits with return code = -9"]


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "cp1252"])
def test_encodings_are_read(tmp_path: Path, encoding: str) -> None:
    assert told(written(tmp_path, f"Größe\n{MOE}\n".encode(encoding))) == [("moe-with-stage-3", 2, 1)]


@pytest.mark.parametrize(
    "text",
    [
        "\x1b[31mAssertionError\x1b[0m: MoE \x1b[1mnot\x1b[0m supported with Stage 3\n",
        " 10%|#   | 1/10\rMoE not supported with Stage 3\r 20%|##  | 2/10\n",
        "MoE not supported\r\nwith Stage 3\r\n",
        "[rank3]: MoE not supported\n[rank3]: with Stage 3\n",
        "\0\0MoE not supported with Stage 3\0",
        "│ MoE not supported with │\n│ Stage 3 │\n",
        "x" * 70_000 + " MoE not supported with Stage 3 " + "y" * 70_000,
    ],
    ids=["colors", "progress bar", "windows", "ranks", "nul", "frame", "one line"],
)
def test_what_terminals_put_into_a_log_is_no_matter(tmp_path: Path, text: str) -> None:
    assert told(written(tmp_path, text.encode())) == [("moe-with-stage-3", 1, 1)]


@pytest.mark.parametrize("size", [7, 50, 1000])
def test_a_message_on_the_edge_of_chunks_is_counted_once(monkeypatch: pytest.MonkeyPatch, size: int) -> None:
    monkeypatch.setattr(logs, "_OVERLAP", 400)
    text = (NOISE * 9 + UNTESTED + "\n") * 5 + NOISE
    chunks = [text[at : at + size] for at in range(0, len(text), size)]
    assert [(seen.line, seen.count) for seen in scan(chunks)] == [(10, 5)]


@pytest.mark.parametrize("data", [b"", b"\n" * 1000, bytes(range(256)) * 100, b"\xff\xfe\x00", b"\xff\xfea"])
def test_nothing_is_found_in_what_is_no_log(tmp_path: Path, data: bytes) -> None:
    assert told(written(tmp_path, data)) == []


def test_a_log_beyond_the_limit_is_refused_unread(tmp_path: Path) -> None:
    path = tmp_path / "train.log"
    with path.open("wb") as file:
        file.truncate(logs.LARGEST + 1)
    assert "files up to 512 MiB are read" in read_log(path).error


@pytest.mark.skipif(sys.platform == "win32", reason="no named pipes in folders")
def test_a_pipe_and_a_folder_are_refused(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    assert read_log(tmp_path / "pipe").error == "not a regular file"
    assert read_log(tmp_path).error == "this is a directory, not a file"
    assert read_log(tmp_path / "gone").error == "no such file"
