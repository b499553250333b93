"""Whether time grows with the size of a config: time per byte of doubled inputs of many shapes, for each command.

    python -m tests.benchmarks.growth [--largest KIB] [--shape NAME]

Prints, for each shape and each command, seconds per MiB of the smallest and the largest input, and their ratio: 1 is
time that grows with the input, and doubles where it grows with the square of twice the size.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable
from pathlib import Path

from dsmigrate.checking.formats import github, sarif, text
from dsmigrate.checking.formats import json as as_json
from dsmigrate.checking.job import Mending, check_bytes
from dsmigrate.diff.formats import json as diff_json
from dsmigrate.diff.formats import text as diff_text
from dsmigrate.diff.job import Source, UnreadableError, compare
from dsmigrate.settings.check import CheckSettings
from dsmigrate.settings.diff import DiffSettings

_SMALLEST = 20
_CONFIG = b'{"train_batch_size": 8}'


def _members(member: Callable[[int], str], width: int) -> Callable[[int], str]:
    """Return what makes an object of about so many bytes out of members of about ``width``."""
    return lambda size: "{" + ",\n".join(member(number) for number in range(size // width)) + "}"


SHAPES: dict[str, Callable[[int], str]] = {
    "one key again and again": _members(lambda number: f'"train_batch_size": {number}', 26),
    "one section again and again": _members(lambda number: f'"fp16": {{"enabled": {number % 2}}}', 24),
    "pairs of equal keys": _members(lambda number: f'"k{number // 2}": 1', 13),
    "unknown keys": _members(lambda number: f'"qqq{number}xyz": 1', 17),
    "unknown keys near a known one": _members(lambda number: f'"train_batch_siz{number}": 1', 26),
    "unknown keys in a section": lambda size: (
        '{"zero_optimization": ' + _members(lambda number: f'"stge{number}": 1', 15)(size) + "}"
    ),
    "keys that are doubled and wrong": _members(lambda _: '"fp16": {"enabled": "true"}', 29),
    "deep": lambda size: '{"a": ' * (size // 7) + "1" + "}" * (size // 7),
    "a long list of numbers": lambda size: '{"x": [' + ",".join(["1"] * (size // 2)) + "]}",
    "a long list of objects": lambda size: '{"x": [' + ",".join(['{"a": 1}'] * (size // 9)) + "]}",
    "a long string": lambda size: '{"train_batch_size": 8, "x": "' + "a" * size + '"}',
    "escapes": lambda size: '{"x": "' + "\\u00e9" * (size // 6) + '"}',
    "comments that suppress": _members(lambda number: f'// dsmigrate: ignore DS201\n"k{number}": 1', 40),
    "blank lines": lambda size: '{"train_batch_size": 8}' + "\n" * size,
    "a number of many digits": lambda size: '{"train_batch_size": ' + "9" * size + "}",
    "brackets that stay open": lambda size: "{" + '"a": [' * (size // 7),
    "members without colons": lambda size: "{" + '"a" 1,\n' * (size // 7),
}


def work(name: str) -> Callable[[bytes], object]:
    """Return what a command does with the bytes of a config, without its start."""
    here, settings = Path(__file__).parent, CheckSettings()

    def checked(data: bytes, mending: Mending | None = None) -> object:
        return check_bytes("ds_config.json", data, here, settings, mending)

    def formats(data: bytes) -> object:
        found = [check_bytes("ds_config.json", data, here, settings)]
        return list(text.render(found)), as_json.render(found), github.render(found), sarif.render(found)

    def differed(data: bytes) -> object:
        sides = Source("old.json", _CONFIG, here), Source("new.json", data, here)
        try:
            found = compare(*sides, DiffSettings())
        except UnreadableError:
            return None
        return list(diff_text.render(found)), diff_json.render(found)

    return {
        "check": checked,
        "check --fix": lambda data: checked(data, Mending(wanted=True)),
        "formats of check": formats,
        "diff": differed,
    }[name]


COMMANDS = ("check", "check --fix", "formats of check", "diff")


def _seconds(made: Callable[[bytes], object], data: bytes) -> float:
    runs = []
    for _ in range(3 if len(data) < 100_000 else 1):
        begin = time.perf_counter()
        made(data)
        runs.append(time.perf_counter() - begin)
    return min(runs)


def main() -> int:
    """Measure and print; 1 where a ratio is above 2."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.growth")
    parser.add_argument("--largest", type=int, default=320, metavar="KIB")
    parser.add_argument("--shape", choices=sorted(SHAPES))
    asked = parser.parse_args()
    worst = 0.0
    for shape in [asked.shape] if asked.shape else SHAPES:
        for command in COMMANDS:
            made, per_byte = work(command), []
            made(SHAPES[shape](1000).encode())  # what is made once
            size = _SMALLEST
            while size <= asked.largest:
                data = SHAPES[shape](size << 10).encode()
                per_byte.append(_seconds(made, data) / len(data) * (1 << 20))
                size *= 2
            ratio = per_byte[-1] / max(per_byte[0], 0.05)  # below, it is not time that is measured
            worst = max(worst, ratio)
            row = {"shape": shape, "command": command, "s/MiB": [round(one, 2) for one in per_byte]}
            print(json.dumps(row | {"ratio": round(ratio, 2)}), flush=True)
    print(f"worst ratio {worst:.2f}")
    return int(worst > 2)


if __name__ == "__main__":
    sys.exit(main())
