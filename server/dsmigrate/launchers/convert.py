"""One launcher file: its launch lines found, decided about, and rewritten."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import PurePosixPath

from dsmigrate.codemod.model import Change, Kind, Options
from dsmigrate.launchers.decide import Surroundings, decide
from dsmigrate.launchers.model import Launch, Script, Verdict
from dsmigrate.launchers.recognise import HARMLESS, MANAGERS, launch_of
from dsmigrate.launchers.regions import Region, regions
from dsmigrate.launchers.shell import Command, Word, assignments, constants, scan

_DEFAULT = Options()
_NESTED = re.compile(r"(?:[A-Za-z_]\w*\+?=|--[\w-]+=)?([\"'])(.*)\1", re.DOTALL)
_LAUNCHES = re.compile(r"\b(?:python[\d.]*|torchrun|deepspeed|accelerate|srun|mpirun|torch\.distributed)\b")
_PROGRAMS = re.compile(r"\b(?:srun|mpirun|mpiexec|torchrun|deepspeed|torch\.distributed)\b")
_MAKE_VARIABLE = re.compile(r"^([A-Za-z_]\w*)[ \t]*:{0,2}=[ \t]*([^\n#]*)", re.MULTILINE)
_SBATCH = re.compile(r"^#(?:SBATCH|FLUX:)[ \t]+(?:--([\w-]+)(?:[= \t]+(\S+))?|-([nN])[ \t]*(\d+))", re.MULTILINE)
_JSON_STRING = re.compile(r'"(?:[^"\\\n]|\\.)*"')


@dataclass(frozen=True, slots=True)
class Converted:
    """The new text of a launcher, the same as before where nothing changes, and a decision for every launch found."""

    text: str
    changes: tuple[Change, ...]


@dataclass(slots=True)
class _File:
    text: str
    folder: str
    scripts: Sequence[Script]
    exists: Callable[[str], bool]
    around: Surroundings
    edits: list[tuple[int, int, str]] = field(default_factory=list)
    changes: list[Change] = field(default_factory=list)
    seen: list[tuple[int, int]] = field(default_factory=list)
    here: str | None = ""
    moved: bool = False


def convert(
    text: str,
    kind: str,
    path: str,
    scripts: Sequence[Script],
    *,
    exists: Callable[[str], bool],
    options: Options = _DEFAULT,
) -> Converted:
    """Decide about every line of a launcher that starts one of ``scripts``.

    ``path`` is the launcher's, from the project's root; ``exists`` tells whether a path from there is a file.
    """
    batch = kind == "shell" and re.search(r"^#(?:SBATCH|FLUX:)", text, re.MULTILINE) is not None
    around = Surroundings(batch=batch, tasks=_tasks(text) if batch else None, launcher=options.launcher,
                          release=options.target_version)  # fmt: skip
    folder = PurePosixPath(path).parent.as_posix()
    file = _File(text, "" if folder == "." else folder, scripts, exists, around)
    found = [(region, scan(text, region.start, region.end)) for region in regions(text, kind) if region.form == "shell"]
    every = [command for _, scanned in found for command in scanned.commands]
    variables = _make_variables(text) if kind == "make" else constants(every)
    exported = {name for name, word in assignments([c for c in every if c.words[0].text in {"export", "ENV"}])}
    file.around = replace(around, variables=variables, exported=frozenset(exported))
    for region in regions(text, kind):
        if region.form == "json":
            file.here, file.moved = "", False
            _command(file, _json_command(text, region), form="json")
        elif region.form == "shell":
            _region(file, region, alone=kind in {"make", "docker", "yaml"})
        else:
            _mentions(file, region.start, region.end)
    return Converted(_applied(text, file.edits), tuple(sorted(file.changes, key=lambda c: (c.line, c.code))))


def _region(
    file: _File, region: Region, *, alone: bool = False, outer: tuple[str, ...] = (), sure: bool = True
) -> None:
    scanned = scan(file.text, region.start, region.end)
    if alone:
        file.here, file.moved = "", False
    for command in scanned.commands:
        if command.words[0].text in {"cd", "pushd"}:
            _move(file, command)
        _command(file, command, outer=outer, sure=sure)
    for start, end in scanned.unread:
        _mentions(file, start, end)
    for start, end in scanned.comments:
        _comment(file, start, end)


def _move(file: _File, command: Command) -> None:
    target = command.words[1].expanded(file.around.variables) if len(command.words) == 2 else None
    if target is None or target.startswith(("/", "~")) or file.here is None:
        file.here = None
    else:
        base = file.here if file.moved else ""
        file.here = _joined(base, target)
    file.moved = True


def _resolver(file: _File) -> Callable[[str], str | None]:
    """Relative paths to paths from the root: where both the launcher's folder and the root fit, it stays open."""

    def resolve(asked: str) -> str | None:
        if file.here is None:
            return None
        bases = dict.fromkeys(_joined(base, file.here) for base in (file.folder, ""))
        found = dict.fromkeys(way for base in bases if file.exists(way := _joined(base, asked)))
        return next(iter(found)) if len(found) == 1 else None

    return resolve


def _command(
    file: _File, command: Command | None, *, form: str = "shell", outer: tuple[str, ...] = (), sure: bool = True
) -> None:
    if command is None:
        return
    for script in file.scripts:
        launch = launch_of(command, script, file.around.variables, _resolver(file))
        if launch is None:
            continue
        if outer:
            launch = replace(launch, managers=(*outer, *launch.managers))
        verdict = decide(launch, script, file.around)
        if verdict.words is not None and not sure:
            verdict = _left(verdict, "the command is a text that another command is made from")
        if verdict.words is not None and outer and any(mark in "".join(verdict.words) for mark in "\"'"):
            verdict = _left(verdict, "the command stands in quotes itself")
        _note(file, launch, verdict, form)
        return
    first = command.words[0]
    if first.text.lstrip("@-+") in HARMLESS and not first.assigns and first.text != "export":
        file.seen.append((command.start, command.end))
        return
    managers = tuple(word.text for word in command.words if word.text in MANAGERS)
    for word in command.words:
        _inside(file, word, managers)
    scripts = [word for word in command.words if _names(file, word.text)]
    if not scripts:
        return
    if all(_is_another(file, word) for word in scripts):
        file.seen.append((command.start, command.end))
    elif not any(word.text.endswith(".py") for word in command.words[1:] if word not in scripts):
        _mentions(file, command.start, command.end)


def _is_another(file: _File, word: Word) -> bool:
    """Whether a word of a script's name is the path of another file."""
    value = word.expanded(file.around.variables)
    found = _resolver(file)(value) if value is not None else None
    return found is not None and found not in {script.path for script in file.scripts}


def _inside(file: _File, word: Word, managers: tuple[str, ...]) -> None:
    """A command in quotes: ``bash -c "python train.py"``, ``CMD="python train.py"``."""
    nested = _NESTED.fullmatch(word.text)
    if nested is None or not _names(file, word.text) or " " not in nested[2] or {"\\", nested[1]} & set(nested[2]):
        return
    start = word.start + nested.start(2)
    end = start + len(nested[2])
    file.seen.append((word.start, word.end))
    others = file.text[: word.start] + file.text[word.end :]
    sure = not word.assigns or not _PROGRAMS.search(others)
    _region(file, Region(start, end), outer=managers or ("",) if not word.assigns else ("",), sure=sure)


def _names(file: _File, text: str) -> bool:
    return any(_mention(script).search(text) for script in file.scripts)


def _mention(script: Script) -> re.Pattern[str]:
    return re.compile(rf"(?<![\w.-]){re.escape(script.name)}(?![\w.])")


def _mentions(file: _File, start: int, end: int) -> None:
    """Lines that name a script beside a launcher, in a place where commands are not read."""
    at = start
    while at < end:
        stop = file.text.find("\n", at, end)
        stop = end if stop < 0 else stop
        line = file.text[at:stop]
        covered = any(
            first <= at + (found.start() if (found := _LAUNCHES.search(line)) else 0) < last
            for first, last in file.seen
        )
        if not covered and _names(file, line) and _LAUNCHES.search(line):
            number = _line(file.text, at)
            said = f"`{' '.join(line.split())[:70]}` may start the script: see to it that a launcher does"
            file.changes.append(
                Change(
                    "MG224", Kind.TODO, number, number, said, "which file or which command this comes to is not known"
                )
            )
        at = stop + 1


def _comment(file: _File, start: int, end: int) -> None:
    text = file.text[start:end]
    if _names(file, text) and re.match(r"#\s*(?:\w+=\S+\s+)*(?:python|torchrun|srun|deepspeed)\b", text):
        number = _line(file.text, start)
        file.changes.append(Change("MG223", Kind.KEPT, number, number, "a comment stays", "it starts nothing"))


def _note(file: _File, launch: Launch, verdict: Verdict, form: str) -> None:
    words = launch.command.words
    first, last = _line(file.text, words[0].start), _line(file.text, words[-1].end)
    file.seen.append((launch.command.start, launch.command.end))
    file.changes.append(Change(verdict.code, verdict.kind, first, last, verdict.message, verdict.reason))
    if verdict.words is not None:
        new = ", ".join(map(json.dumps, verdict.words)) if form == "json" else " ".join(verdict.words)
        file.edits.append((words[verdict.first].start, words[verdict.last].end, new))


def _left(verdict: Verdict, reason: str) -> Verdict:
    line = " ".join(verdict.words or ())
    return Verdict("MG224", Kind.TODO, f"start the script with `{line} …` ({verdict.message})", reason)


def _json_command(text: str, region: Region) -> Command | None:
    words = []
    for found in _JSON_STRING.finditer(text, region.start, region.end):
        try:
            value = str(json.loads(found[0]))
        except ValueError:
            return None
        words.append(Word(found.start(), found.end(), value, (value,)))
    return Command(tuple(words)) if words else None


def variables_of(text: str, kind: str) -> dict[str, str]:
    """Return the variables that a launcher sets just once, to a value that is known without running anything."""
    if kind == "make":
        return _make_variables(text)
    shell = [region for region in regions(text, kind) if region.form == "shell"]
    return constants([command for region in shell for command in scan(text, region.start, region.end).commands])


def _make_variables(text: str) -> dict[str, str]:
    values: dict[str, list[str]] = {}
    for found in _MAKE_VARIABLE.finditer(text):
        values.setdefault(found[1], []).append(found[2].strip())
    return {name: given[0] for name, given in values.items() if len(given) == 1 and "$" not in given[0]}


def _tasks(text: str) -> int | None:
    """How many tasks a batch file asks for: 1 where it says nothing."""
    asked: dict[str, str] = {}
    for found in _SBATCH.finditer(text):
        name = {"n": "ntasks", "N": "nodes"}.get(found[3], found[1] or "")
        asked[name] = found[4] or found[2] or ""
    if "ntasks" in asked:
        return _number(asked["ntasks"])
    nodes, per = _number(asked.get("nodes", "1")), _number(asked.get("ntasks-per-node", "1"))
    return None if nodes is None or per is None else nodes * per


def _number(text: str) -> int | None:
    """What a number says that a cluster could have; None for "²", "1-4", and more digits than that."""
    return int(text) if text.isdecimal() and len(text) < 10 else None


def _joined(folder: str, way: str) -> str:
    found: list[str] = []
    for part in (*PurePosixPath(folder).parts, *PurePosixPath(way).parts):
        if part == ".." and found and found[-1] != "..":
            found.pop()
        elif part != ".":
            found.append(part)
    return "/".join(found)


def _line(text: str, offset: int) -> int:
    return text.count("\n", 0, offset) + 1


def _applied(text: str, edits: list[tuple[int, int, str]]) -> str:
    for start, end, new in sorted(edits, reverse=True):
        text = text[:start] + new + text[end:]
    return text
