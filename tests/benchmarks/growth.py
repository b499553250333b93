"""Whether time grows with the size of a config: time per byte of doubled inputs of many shapes, for each command.

    python -m tests.benchmarks.growth [--largest KIB] [--times N] [--shape NAME]

Prints, for each shape and each command, seconds per MiB of inputs of which each is twice, or ``--times``, as large as
the one before, and the ratio of the last to the first: 1 is time that grows with the input, and doubles where it grows
with the square of twice the size. What is read is cut at the limit for files: ``--largest 5120`` goes up to it.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import os
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from dsmigrate.checking.formats import github, sarif, text
from dsmigrate.checking.formats import json as as_json
from dsmigrate.checking.job import Mending, check_bytes
from dsmigrate.cli.app import run
from dsmigrate.diff.formats import json as diff_json
from dsmigrate.diff.formats import text as diff_text
from dsmigrate.diff.job import Source, UnreadableError, compare
from dsmigrate.document import parse
from dsmigrate.editing import actions, folding, hints, links, outline, relations, selection, summary
from dsmigrate.editing.completion import complete
from dsmigrate.editing.hover import hover_at
from dsmigrate.editing.view import View
from dsmigrate.files.reading import MAX_BYTES
from dsmigrate.settings.check import CheckSettings
from dsmigrate.settings.diff import DiffSettings

_SMALLEST = 20
_LETTERS = str.maketrans("0123456789", "abcdefghij")
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
    "unknown keys that others replace": _members(lambda number: f'"q1{str(number).translate(_LETTERS)}": 0', 13),
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
    "duplicates on one line": lambda size: "{" + ",".join(['"fp16": {"enabled": 1}'] * (size // 23)) + "}",
    "one line that is not ASCII": lambda size: '{"模型": 1, ' + '"é": "é", ' * (size // 14) + '"z": 1}',
    '"auto" in sections': _members(lambda number: f'"k{number}": {{"x": "auto"}}', 20),
    "parameters that an optimizer does not take": lambda size: (
        '{"optimizer": {"type": "Adam", "params": ' + _members(lambda number: f'"k{number}": 1', 12)(size) + "}}"
    ),
    "values without quotes": _members(lambda number: f'"k{number}": word', 17),
    "keys in single quotes": _members(lambda number: f"'k{number}': \"auto\"", 17),
    "many at the deepest": lambda size: (
        '{"a": ' * 480 + _members(lambda number: f'"k{number}": "auto"', 17)(size) + "}" * 480
    ),
    "comments on one line": lambda size: '{"train_batch_size": 8 ' + "/* dsmigrate: ignore */" * (size // 23) + "}",
    "places that are suppressed": lambda size: (
        '{"_dsmigrate": {"ignore-at": ' + _members(lambda number: f'"fp16.k{number}": "DS1"', 22)(size // 2) + "}, "
        '"fp16": ' + _members(lambda number: f'"k{number}": 1', 13)(size // 2) + "}"
    ),
    "carriage returns": lambda size: "{" + '"a": 1,\r' * (size // 8) + "}",
}


def command(arguments: list[str], folder: Path) -> int:
    """Run a command of the program in a folder, in this process, and return its exit code."""
    former = Path.cwd()
    out = io.TextIOWrapper(io.BytesIO(), "utf-8", "surrogateescape")
    os.chdir(folder)
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(out):
            return run(arguments)
    finally:
        os.chdir(former)


def work(name: str) -> Callable[[bytes], object]:
    """Return what a command does with the bytes of a config, without its start."""
    here, settings = Path(__file__).parent, CheckSettings()

    def checked(data: bytes, mending: Mending | None = None) -> object:
        return check_bytes("ds_config.json", data, here, settings, mending)

    def formats(data: bytes) -> object:
        found = [check_bytes("ds_config.json", data, here, settings)]
        return list(text.render(found)), as_json.render(found), github.render(found), sarif.render(found)

    def differed(data: bytes, old: bytes = _CONFIG) -> object:
        sides = Source("old.json", old, here), Source("new.json", data, here)
        try:
            found = compare(*sides, DiffSettings())
        except UnreadableError:
            return None
        return list(diff_text.render(found)), diff_json.render(found)

    def edited(data: bytes) -> object:
        view = View(parse(data.decode("utf-8", "surrogateescape")))
        whole = len(view.text)
        found: list[object] = [
            outline.symbols(view), folding.folds(view), links.links(view), hints.hints(view, 0, whole),
            summary.summary(view), actions.actions(view, 0, whole),
        ]  # fmt: skip
        for offset in (1, whole // 2, whole - 1):
            found += [
                hover_at(view, offset), complete(view, offset, snippets=True), selection.selections(view, offset),
                relations.references(view, offset, itself=True), relations.depends_on(view, offset),
            ]  # fmt: skip
        return found

    def ran(data: bytes, name: str, *arguments: str) -> object:
        with tempfile.TemporaryDirectory() as place:
            folder = Path(place)
            (folder / name).write_bytes(data)
            (folder / "base.json").write_bytes(_CONFIG)
            (folder / "train.py").touch()
            return command([*arguments], folder)

    if name in IN_OTHER_FILES:
        file, *arguments = IN_OTHER_FILES[name]
        return lambda data: ran(data, file, *arguments)
    return {
        "check": checked,
        "check --fix": lambda data: checked(data, Mending(wanted=True)),
        "formats of check": formats,
        "diff": differed,
        "diff of two": lambda data: differed(data, data.replace(b"1", b"2")),
        "editor": edited,
    }[name]


IN_OTHER_FILES = {
    "merge": ("new.json", "diff", "--base", "base.json", "base.json", "new.json"),
    "convert": ("new.json", "convert", "--to", "accelerate", "new.json"),
    "memory": ("new.json", "memory", "--params", "7b", "--gpus", "8", "new.json"),
    "check of YAML": ("new.yaml", "check", "new.yaml"),
    "convert of YAML": ("new.yaml", "convert", "--to", "deepspeed", "new.yaml"),
    "check of a script": ("new.py", "check", "new.py"),
    "launch lines": ("run.sh", "train.py", "--with-launchers"),
}
COMMANDS = ("check", "check --fix", "formats of check", "diff", "diff of two", "editor", "merge", "convert", "memory")


def _yaml(line: Callable[[int], str], width: int) -> Callable[[int], str]:
    return lambda size: _ACCELERATE + "".join(line(number) for number in range(size // width))


def _script(line: Callable[[int], str], width: int) -> Callable[[int], str]:
    return lambda size: "".join(line(number) for number in range(size // width))


_ACCELERATE = "distributed_type: DEEPSPEED\ndeepspeed_config:\n  zero_stage: 2\n"
OTHERS: dict[str, tuple[Callable[[int], str], tuple[str, ...]]] = {
    "YAML: unknown keys": (_yaml(lambda number: f"  key{number}: 1\n", 13), ("check of YAML", "convert of YAML")),
    "YAML: one key again": (_yaml(lambda _: "  zero_stage: 2\n", 16), ("check of YAML", "convert of YAML")),
    "YAML: anchors": (
        _yaml(lambda number: f"k{number}: &a{number} [*a{max(0, number - 1)}]\n", 22),
        ("check of YAML", "convert of YAML"),
    ),
    "YAML: comments": (_yaml(lambda _: "# a comment\n", 12), ("check of YAML", "convert of YAML")),
    "YAML: deep": (lambda size: f"{_ACCELERATE}a: {'[' * (size // 2)}{']' * (size // 2)}\n", ("check of YAML",)),
    "script: dictionaries": (
        _script(lambda number: f'c{number} = {{"train_batch_size": 8, "fp16": {{"enabled": True}}}}\n', 62),
        ("check of a script",),
    ),
    "script: one long dictionary": (
        lambda size: 'c = {"train_batch_size": 8,\n' + "".join(f'"k{n}": 1,\n' for n in range(size // 11)) + "}\n",
        ("check of a script",),
    ),
    "script: expressions in a dictionary": (
        lambda size: 'c = {"train_batch_size": 8,\n' + "".join(f'"k{n}": f(n),\n' for n in range(size // 14)) + "}\n",
        ("check of a script",),
    ),
    "script: calls": (
        _script(lambda number: f"DeepSpeedPlugin(zero_stage={number})\n", 34),
        ("check of a script",),
    ),
    "script: comments": (_script(lambda _: "# dsmigrate: ignore\n", 20), ("check of a script",)),
    "script: a long string": (lambda size: f'x = "{"a" * size}"\n', ("check of a script",)),
    "launch: lines": (_script(lambda _: "torchrun --nproc_per_node 2 train.py\n", 37), ("launch lines",)),
    "launch: continued": (
        lambda size: "torchrun \\\n" + "  --x 1 \\\n" * (size // 10) + " train.py\n",
        ("launch lines",),
    ),
    "launch: words": (lambda size: "torchrun train.py " + "a " * (size // 2) + "\n", ("launch lines",)),
    "launch: quotes": (lambda size: "echo " + '"a" ' * (size // 4) + "\ntorchrun train.py\n", ("launch lines",)),
    "launch: nested": (lambda size: "$(" * (size // 2) + "\ntorchrun train.py\n", ("launch lines",)),
    "launch: variables": (_script(lambda number: f"A{number}=$A{number - 1}\n", 14), ("launch lines",)),
}
"""What other files hold, with the commands that read them."""


def _seconds(made: Callable[[bytes], object], data: bytes) -> float:
    runs = []
    for _ in range(3 if len(data) < 100_000 else 1):
        begin = time.process_time()
        made(data)
        runs.append(time.process_time() - begin)
    return min(runs)


def main() -> int:
    """Measure and print; 1 where a ratio is above 2."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.growth")
    parser.add_argument("--largest", type=int, default=320, metavar="KIB")
    parser.add_argument("--times", type=int, default=2, metavar="N")
    parser.add_argument("--shape", choices=sorted([*SHAPES, *OTHERS]))
    parser.add_argument("--command", choices=sorted({*COMMANDS, *IN_OTHER_FILES}))
    asked = parser.parse_args()
    worst = 0.0
    for shape in [asked.shape] if asked.shape else [*SHAPES, *OTHERS]:
        text, commands = (SHAPES[shape], COMMANDS) if shape in SHAPES else OTHERS[shape]
        for command in commands if asked.command is None else {asked.command}.intersection(commands):
            made, per_byte = work(command), []
            made(text(1000).encode())  # what is made once
            size = _SMALLEST
            while size <= asked.largest:
                data = text(size << 10).encode()[: MAX_BYTES - 1]
                per_byte.append(_seconds(made, data) / len(data) * (1 << 20))
                size *= asked.times
            ratio = per_byte[-1] / max(per_byte[0], 0.05)  # below, it is not time that is measured
            worst = max(worst, ratio)
            row = {"shape": shape, "command": command, "s/MiB": [round(one, 2) for one in per_byte]}
            print(json.dumps(row | {"ratio": round(ratio, 2)}), flush=True)
    print(f"worst ratio {worst:.2f}")
    return int(worst > 2)


if __name__ == "__main__":
    sys.exit(main())
