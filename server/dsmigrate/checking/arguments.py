"""What trainings with a config are given besides it: launch lines, files of arguments, and calls around the file."""

from __future__ import annotations

import functools
import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

from dsmigrate.checking import options, trl
from dsmigrate.checking.evidence import UPWARD
from dsmigrate.files.discovery import skipped
from dsmigrate.files.paths import resolved
from dsmigrate.files.reading import read
from dsmigrate.files.text import SourceError
from dsmigrate.knowledge import Consumer
from dsmigrate.knowledge.elsewhere import of_trainer, only_of_trainer
from dsmigrate.languages import say
from dsmigrate.launchers.convert import variables_of
from dsmigrate.launchers.regions import kind_of, regions
from dsmigrate.launchers.shell import Command, Word, scan
from dsmigrate.rules import Accelerated, Arguments
from dsmigrate.settings.errors import SettingsError

if TYPE_CHECKING:
    from dsmigrate.convert.python_calls import Call, Script

_MOST = 5_000
"""So many files of a project are looked at by name."""
_LARGEST = 1 << 18
"""The largest file that is read, in bytes."""
_ROOTS = (".git", "pyproject.toml", "setup.py", "setup.cfg")
_WORDS = (b"deepspeed", b"accelerate", b"trainingarguments", b"hfargumentparser")
"""One of these, in letters of any case, is in every file that starts a training, and in a script with the Trainer."""
_FLAG = re.compile(r"--?([A-Za-z][\w.-]*)(?:=(.*))?", re.DOTALL)
_LOST = re.compile(r"--[a-z]\w+(?=[\s=])")
_NAMED = re.compile(r"(?m)^deepspeed[ \t]*:[ \t]*[\"']?([^\s\"'#]+)")
_INNER = re.compile(r"(?m)^[ \t]+deepspeed_config_file[ \t]*:[ \t]*[\"']?([^\s\"'#]+)")
_CALLED = re.compile(r"\bdeepspeed\s*=\s*[rf]?[\"']")
STRATEGY = "DeepSpeedStrategy"
"""The class of Lightning that takes a config."""
_ARGUMENT_FILES = (".json", ".yaml", ".yml")
_FIELD = re.compile(r"(?m)^[ \t]+deepspeed[ \t]*:")
"""Gives a dataclass of arguments a config."""
_VARIABLE = re.compile(r"PL_DEEPSPEED_CONFIG_PATH[\"']?[\])]?[ \t]*=[ \t]*[\"']?([^\s\"'#;]+)")
"""Sets the variable that Lightning reads the path of a config from."""
_TRAINER = "deepspeed"
"""The argument of the Trainer that names a config."""
_CONFIGURES = "checkpointing.configure("
_CLIPS = ".clip_grad_norm_("
_INFERENCE = "inference"
_TRAINS = re.compile(
    r"TrainingArguments|HfArgumentParser|TrlParser|transformers\.Trainer\b|"
    r"\bfrom\s+(?:transformers|trl)[\w.]*\s+import\s+(?:\([^)]*Trainer\b|[^\n(]*Trainer\b)"
)
"""What a script with the Trainer holds."""
_TRAINERS = ("Trainer", "TrainingArguments", "HfArgumentParser", "TrlParser")
"""One of these is in each of them."""
_READS = {
    Consumer.ACCELERATE: re.compile(r"\bAccelerator\("),
    Consumer.DEEPSPEED: re.compile(r"\bdeepspeed\s*\.\s*initialize\s*\("),
}
"""What a script that hands a config on without the Trainer holds, by who gets it."""
_STRATEGY = re.compile(r"\bstrategy[\"']?\s*[:=]\s*[\"']?deepspeed")
"""What trains with the strategy of Lightning, in its YAML or in a script."""
_MAKES = "Accelerator("
_TEST = re.compile(r"(?:^|/)(?:tests?/|test_|conftest)")
_BELOW = "../"
"""Stands for a folder that only the run knows."""
_TRL = "trl"
"""The command of TRL, whose next word is what it trains."""
_CONFIGS = frozenset({"config_file", "deepspeed_config_file"})
"""The flags of ``accelerate launch`` that name a config."""
_OWN = "deepspeed_config"
"""The argument that ``deepspeed.add_config_arguments`` gives a script for its config."""


@dataclass(frozen=True, slots=True)
class _Given:
    """Arguments of a file, relative to ``folder``, and the argument ("" for none) that each path is the value of."""

    arguments: Arguments
    folder: Path
    paths: tuple[tuple[str, str], ...]
    through: Path | None = None
    """The file of Accelerate that names a config, for which what names this file counts."""
    lightning: bool = False
    """Whether Lightning is given the config."""
    script: str = ""
    """The path of the script that a command starts, "" for none."""


@dataclass(frozen=True, slots=True)
class _Project:
    """What the files of a project say: arguments, by the names of the files that they are given with."""

    given: dict[str, list[_Given]]
    configures: bool
    """Whether a script calls ``deepspeed.checkpointing.configure``."""
    clips: bool | None
    """Whether a script of those with Accelerate clips by itself, None where there are none."""
    accelerates: bool
    """Whether a script makes an ``Accelerator`` and none the Trainer."""
    strategy: str
    """The file that trains with the strategy of Lightning, "" for none and where a script calls DeepSpeed itself."""
    trains: bool
    """Whether a script trains with the Trainer."""
    makers: tuple[Path, ...]
    """The scripts that make an ``Accelerator``, those of tests left out."""
    started: tuple[_Given, ...]
    """The commands that start a script, whatever configs they name."""


def configures_checkpointing(config: Path) -> bool:
    """Return whether a script of the project of a config calls ``deepspeed.checkpointing.configure``."""
    return _of_project(_root(resolved(config))).configures


def clips(config: Path) -> bool | None:
    """Return whether a script of the project clips through Accelerate; None where no script mentions it."""
    return _of_project(_root(resolved(config))).clips


def is_for_inference(config: Path) -> bool:
    """Return whether a config is for inference, by its path within the project or the flag that it is given with."""
    config = resolved(config)
    root = _root(config)
    flags = (flag for given in _naming(config, root) for flag, _ in given.paths)
    return any(_INFERENCE in name.lower() for name in (config.relative_to(root).as_posix(), *flags))


def arguments_for(config: Path) -> tuple[tuple[Arguments, ...], str]:
    """Return what the trainings with a config are given, and why the Trainer reads it, "" where nothing says so.

    Looks at launchers, Makefiles, READMEs, YAML files and scripts of the project; nothing is run. What differs from
    run to run, and what cannot be read, is left out.
    """
    config = resolved(config)
    root = _root(config)
    naming = _around(config, root)
    found = tuple(_with_script(given, root) for given in naming if given.through is None and not given.lightning)
    if reader_of(config) is not None:
        return found, ""
    handing = next((one for one in naming if _is_for_trainer(one)), None)
    if handing is not None:
        return found, say("{place} gives it to the Trainer", place=handing.arguments.place)
    trainer = next((one for one in found if _is_trainer(one)), None)
    return found, say("{place} gives arguments of the Trainer", place=trainer.place) if trainer else ""


def started_by(command: Command, place: str, file: Path, variables: dict[str, str]) -> tuple[Arguments, bool]:
    """Return what a command in ``file`` gives the script that it begins with, and whether that trains with the Trainer.

    The script says it if the project has it, else its arguments do.
    """
    given = _of_command(command, place, file.parent, variables)
    texts = [text for _, text in _script(given, _root(resolved(file)))]
    return given.arguments, any(map(_is_of_trainer, texts)) if texts else _is_trainer(given.arguments)


def reader_of(config: Path) -> tuple[Consumer, str] | None:
    """Return who is given a config without the Trainer, and by which script, None where the scripts do not say it.

    Asked are the scripts that commands start with the config; all of those that are found have to agree.
    """
    return _reader_of(resolved(config))


@functools.cache
def _reader_of(config: Path) -> tuple[Consumer, str] | None:
    root = _root(config)
    read_by = {script: _hands_to(text) for one in _around(config, root) for script, text in _script(one, root)}
    readers = set(read_by.values())
    if len(readers) != 1 or (consumer := readers.pop()) is None:
        return None
    return consumer, next(iter(read_by)).relative_to(root).as_posix()


def _hands_to(text: str) -> Consumer | None:
    """Return whom a script gives a config to, None for the Trainer and where it does not say so itself."""
    if _is_of_trainer(text):
        return None
    return next((consumer for consumer, sign in _READS.items() if sign.search(text)), None)


def _script(given: _Given, root: Path) -> Iterator[tuple[Path, str]]:
    """Yield the script of a command with its text, if the project has it."""
    names = (given.script, given.script.removeprefix(_BELOW))
    places = (base / name for name in names for base in (given.folder, root))
    script = next((path for path in places if path.is_file()), None)
    if script is None:
        return
    if resolved(script).is_relative_to(root) and (text := _text(script)):
        yield resolved(script), text


def _with_script(given: _Given, root: Path) -> Arguments:
    """Return the arguments with what the script of their command says: its defaults, and the trainer of TRL."""
    arguments = given.arguments
    for script, text in _script(given, root):
        arguments = options.with_defaults(trl.of_script(arguments, text), script, root)
    return arguments


def accelerated_for(config: Path, named: Sequence[Path] = ()) -> tuple[Accelerated, ...]:
    """Return what scripts with Accelerate say beside a config: those that are started with it, else the only one.

    ``named`` are scripts that a person names with the config.
    """
    return _accelerated_for(resolved(config), tuple(map(resolved, named)))


@functools.cache
def _accelerated_for(config: Path, named: tuple[Path, ...]) -> tuple[Accelerated, ...]:
    root = _root(config)
    makers = _of_project(root).makers
    started = [(one, script) for one in _around(config, root) for script, text in _script(one, root) if _makes(text)]
    own = [script for script in named if script in makers]
    started = [(one, script) for one, script in started if not own or script in own]
    if started:
        found = [_accelerated(script, _with_script(one, root), root) for one, script in started]
        return tuple(one for one in found if one is not None)
    own = own or [script for script in makers if len(makers) == 1 and not _is_of_trainer(_text(script))]
    return tuple(one for script in own for one in of_maker(script, config))


def maker_among(named: Sequence[Path]) -> str:
    """Return why Accelerate reads a config: a script that is named with it makes an ``Accelerator``; "" for none."""
    found = (script for script in named if _makes(_text(script)))
    return next((say("{place} makes an `Accelerator`", place=script.as_posix()) for script in found), "")


def of_maker(script: Path, config: Path | None = None) -> tuple[Accelerated, ...]:
    """Return what a script with Accelerate says, for each command that starts it; with ``config``, for no other one."""
    script = resolved(script)
    root = _root(script)
    starting = [one for one in _of_project(root).started if any(path == script for path, _ in _script(one, root))]
    if config is not None:
        starting = [one for one in starting if _CONFIGS.isdisjoint(one.arguments.values)]
    given = [_with_script(one, root) for one in starting] or [of_started(script)]
    found = [_accelerated(script, one, root) for one in given]
    return tuple(one for one in found if one is not None)


def _accelerated(script: Path, given: Arguments, root: Path) -> Accelerated | None:
    from dsmigrate.checking.accelerated import read_script  # noqa: PLC0415 - few projects have such a script

    return read_script(_text(script), script.relative_to(root).as_posix(), given)


def _text(script: Path) -> str:
    """Return the text of a script, "" for one that cannot be read."""
    try:
        return read(script, _LARGEST).decode("utf-8", "replace")
    except SourceError:
        return ""


def names_for_accelerate(config: Path) -> str:
    """Return why Accelerate reads a config: its own file names that as ``deepspeed_config_file``; "" for none."""
    config = resolved(config)
    naming = (given.arguments.place for given in _naming(config, _root(config)) if given.through is not None)
    return next((say("{place} names it for Accelerate", place=place) for place in naming), "")


def is_of_accelerate(config: Path) -> bool:
    """Return whether scripts of the project of a config make an ``Accelerator``, and none the Trainer."""
    return _of_project(_root(resolved(config))).accelerates


def _root(config: Path) -> Path:
    above = config.parents[:UPWARD]
    return next((folder for folder in above if any((folder / mark).exists() for mark in _ROOTS)), config.parent)


def given_to_lightning(config: Path) -> str:
    """Return why Lightning hands a config on: a script or a launcher gives it to its strategy; "" for none."""
    config = resolved(config)
    naming = (given.arguments.place for given in _naming(config, _root(config)) if given.lightning)
    return next((say("{place} gives it to Lightning", place=place) for place in naming), "")


def left_to_lightning(config: Path, *, holds_auto: bool = False) -> str:
    """Return why a config that nothing names is Lightning's: the project trains with its strategy; "" if not so.

    One that ``holds_auto`` is the Trainer's where a script of the project trains with that.
    """
    config = resolved(config)
    root = _root(config)
    project = _of_project(root)
    place = "" if any(_naming(config, root)) or (holds_auto and project.trains) else project.strategy
    return say("{place} trains with Lightning's strategy", place=place) if place else ""


def _is_trainer(given: Arguments) -> bool:
    """Return whether only the Trainer takes such arguments; one of DeepSpeed's own parser shows another script."""
    return _OWN not in given.values and not only_of_trainer().isdisjoint(given.values)


def _is_for_trainer(given: _Given) -> bool:
    """Return whether the Trainer is given a config, not another script with an argument of that name."""
    others = given.arguments.values.keys() - {_TRAINER}
    return any(name == _TRAINER for name, _ in given.paths) and not (others and others.isdisjoint(of_trainer()))


def _around(config: Path, root: Path) -> list[_Given]:
    """Return what is given along with a config, and with a file of Accelerate that names it."""
    naming = list(_naming(config, root))
    through = [one.through for one in naming if one.through is not None and one.through != config]
    return [*naming, *(one for file in through for one in _naming(file, root) if one.through is None)]


def _naming(file: Path, root: Path) -> Iterator[_Given]:
    """Yield what is given along with a file, with the paths that mean it alone."""
    for given in _of_project(root).given.get(file.name, ()):
        paths = tuple(one for one in given.paths if _means(one[1], given.folder, root, file))
        if paths:
            yield replace(given, paths=paths)


def behind_flag(text: str) -> tuple[Arguments, ...]:
    """Return what stands behind ``--arguments``: arguments, or a launch script or script that gives some.

    Raises SettingsError for a file that cannot be read.
    """
    file = Path(text)
    if text.startswith("-") or not file.is_file():
        return (written(text),)
    if file.suffix == ".py":
        return (of_started(file),)
    try:
        found = of_launches(read(file, _LARGEST).decode("utf-8", "replace"), text)
    except SourceError as error:
        raise SettingsError(f"--arguments {text}: {error.message}") from None
    return tuple(one for one in found if one.values)


def written(text: str) -> Arguments:
    """Return the arguments of a command line as a person writes them behind ``--arguments``."""
    commands = scan(text).commands
    return Arguments("--arguments", _values(commands[0].words if commands else (), {}))


def forget() -> None:
    """Look at the files again: some of them have changed."""
    _of_project.cache_clear()
    _reader_of.cache_clear()
    _accelerated_for.cache_clear()
    options.forget()


@functools.cache
def _of_project(root: Path) -> _Project:
    """Return what the files of a project say."""
    given: dict[str, list[_Given]] = {}
    configures = False
    clipping: bool | None = None
    strategy, calls, makes, trains = "", False, False, False
    makers: list[Path] = []
    started: list[_Given] = []
    for file, text in _texts(root):
        for one in _of_file(file, text, root):
            if one.script:
                started.append(one)
            for name in {PurePosixPath(path).name for _, path in one.paths}:
                given.setdefault(name, []).append(one)
        if file.suffix == ".py":
            configures = configures or _CONFIGURES in text
            clipping = clipping or _CLIPS in text
            calls = calls or _READS[Consumer.DEEPSPEED].search(text) is not None
            makes = makes or _MAKES in text
            trains = trains or _is_of_trainer(text)
            if _READS[Consumer.ACCELERATE].search(text) is not None and not _TEST.search(
                file.relative_to(root).as_posix()
            ):
                makers.append(resolved(file))
        if not strategy and file.suffix in {".py", ".yaml", ".yml"} and _has_strategy(text):
            strategy = file.relative_to(root).as_posix()
    own = makes and not trains
    strategy = "" if calls else strategy
    return _Project(given, configures, clipping, own, strategy, trains, tuple(makers), tuple(started))


def _makes(text: str) -> bool:
    """Return whether a script makes an ``Accelerator`` and no Trainer."""
    return _READS[Consumer.ACCELERATE].search(text) is not None and not _is_of_trainer(text)


def _has_strategy(text: str) -> bool:
    """Return whether a text trains with the strategy of Lightning, not in a comment alone."""
    found = (text.rfind("\n", 0, one.start()) for one in _STRATEGY.finditer(text))
    return any("#" not in text[at + 1 : text.find("strategy", at + 1)] for at in found)


def _is_of_trainer(text: str) -> bool:
    return any(word in text for word in _TRAINERS) and _TRAINS.search(text) is not None


def _files(root: Path) -> Iterator[Path]:
    count = 0
    for folder, names, files in os.walk(root):
        here = Path(folder)
        names[:] = sorted(name for name in names if not skipped(here / name))
        for name in sorted(files):
            count += 1
            if count > _MOST:
                return
            if name.endswith(".py") or kind_of(name, "") or "." not in name:
                yield here / name


def _texts(root: Path) -> Iterator[tuple[Path, str]]:
    for file in _files(root):
        try:
            data = read(file, _LARGEST)
        except SourceError:
            continue
        lower = data.lower()
        if any(word in lower for word in _WORDS) and b"\0" not in data:
            yield file, data.decode("utf-8", "replace")


def _of_file(file: Path, text: str, root: Path) -> Iterator[_Given]:
    name = file.relative_to(root).as_posix()
    for found in _VARIABLE.finditer(text):
        place = Arguments(f"{name}:{text.count(chr(10), 0, found.start()) + 1}", {})
        yield _Given(place, file.parent, (("", found[1]),), lightning=True)
    if file.suffix == ".py":
        yield from _of_script(text, name, file.parent)
        if _FIELD.search(text) is not None:
            yield from _of_dataclass(resolved(file), root)
        return
    kind = kind_of(file.name, text.partition("\n")[0])
    if kind == "yaml" and (named := _NAMED.search(text)) is not None:
        yield from _of_yaml(text, name, file.parent, named)
    if kind == "yaml" and (inner := _INNER.search(text)) is not None:
        yield _Given(Arguments(name, {}), file.parent, (("", inner[1]),), resolved(file))
    yield from _of_launches(text, name, file.parent)


def of_launches(text: str, name: str) -> Iterator[Arguments]:
    """Yield the arguments of every command of a shell script, Makefile or other launcher, with its place.

    The defaults of the script that a command starts are among them, if ``name`` leads to a file.
    """
    file = resolved(Path(name))
    root = _root(file)
    for found in _of_launches(text, name, file.parent):
        yield _with_script(found, root)


def of_started(script: Path) -> Arguments:
    """Return what a script takes if it is started without arguments."""
    script = resolved(script)
    return options.with_defaults(Arguments(script.name, {}), script, _root(script))


def _of_launches(text: str, name: str, folder: Path) -> Iterator[_Given]:
    kind = kind_of(PurePosixPath(name).name, text.partition("\n")[0])
    variables = variables_of(text, kind) if kind else {}
    for region in regions(text, kind) if kind else ():
        commands = scan(text, region.start, region.end).commands if region.form == "shell" else []
        for command, following in zip_longest(commands, commands[1:]):
            given = _of_command(command, _place(text, name, command), folder, variables)
            if following is not None and _is_lost(text, command, following):
                given = replace(given, arguments=replace(given.arguments, lost=_place(text, name, following)))
            yield given


def _place(text: str, name: str, command: Command) -> str:
    return f"{name}:{text.count(chr(10), 0, command.start) + 1}"


def _is_lost(text: str, command: Command, following: Command) -> bool:
    """Return whether the arguments of a command go on in the next line, which the shell takes for another command."""
    between = text[command.end : following.start]
    return between.isspace() and between.count("\n") == 1 and _LOST.match(text, following.start) is not None


def _of_command(command: Command, place: str, folder: Path, variables: dict[str, str]) -> _Given:
    values = _values(command.words, variables)
    paths = [(name, value) for name, value in values.items() if value and "." in value]
    words = [text for word in command.words if (text := expanded(word, variables)) is not None]
    script = next((text for text in words if text.endswith(".py")), "")
    given = Arguments(place, values, more=_has_more(command.words, variables))
    if _TRL in words[:-1]:
        given = trl.of_command(given, words[words.index(_TRL) + 1])
    return _Given(given, folder, tuple(paths), script=script)


def _values(words: Sequence[Word], variables: dict[str, str]) -> dict[str, str | None]:
    """Return the values of the flags among words; what stands without a flag has its own text as its name."""
    values: dict[str, str | None] = {}
    name = ""
    for word in words:
        text = expanded(word, variables)
        flag = _flag(word, text)
        if flag is not None:
            name = flag[1].replace("-", "_")
            values[name] = None if text is None else flag[2] or ""
            name = "" if flag[2] is not None else name
        elif name:
            values[name] = text
            name = ""
    return values


def _has_more(words: Sequence[Word], variables: dict[str, str]) -> bool:
    """Return whether words may hold more flags: one that nobody knows stands without a flag, or a file of arguments."""
    texts = [expanded(word, variables) for word in words]
    script = next((at for at, text in enumerate(texts) if text is not None and text.endswith(".py")), len(texts))
    after_flag = False
    for word, text in [*zip(words, texts, strict=True)][script + 1 :]:
        flag = _flag(word, text)
        if flag is None and not after_flag and (text is None or text.endswith(_ARGUMENT_FILES)):
            return True
        after_flag = flag is not None and flag[2] is None
    return False


def _flag(word: Word, text: str | None) -> re.Match[str] | None:
    """Return the name and the value of a flag; also of one with ``=`` whose value nobody knows before the run."""
    found = _FLAG.fullmatch(word.text if text is None else text)
    return None if found is None or (text is None and found[2] is None) else found


def expanded(word: Word, variables: dict[str, str]) -> str | None:
    """Return a word with its variables; of a path below a variable that nobody knows, the rest, below ``..``."""
    whole = word.expanded(variables)
    if whole is not None or "/" not in word.text:
        return whole
    pieces = [piece if isinstance(piece, str) else variables.get(piece[0], "\0") for piece in word.pieces]
    tail = "".join(pieces).rpartition("\0")[2]
    return _BELOW + tail.lstrip("/") if tail.startswith("/") else None


def _of_yaml(text: str, name: str, folder: Path, named: re.Match[str]) -> Iterator[_Given]:
    from dsmigrate.convert.model import ConvertError  # noqa: PLC0415 - few projects have such a file
    from dsmigrate.convert.yaml_tree import read as read_yaml  # noqa: PLC0415

    try:
        entries = read_yaml(text).entries or ()
    except ConvertError:
        return
    values = {entry.name: str(entry.value) for entry in entries if isinstance(entry.value, (str, bool, int, float))}
    place = f"{name}:{text.count(chr(10), 0, named.start()) + 1}"
    yield _Given(Arguments(place, dict(values)), folder, ((_TRAINER, named[1]),))


def _of_script(text: str, name: str, folder: Path) -> Iterator[_Given]:
    from dsmigrate.convert.model import ConvertError  # noqa: PLC0415 - few projects have such a script
    from dsmigrate.convert.python_calls import script_of  # noqa: PLC0415

    if _CALLED.search(text) is None and STRATEGY not in text:
        return
    try:
        script = script_of(text)
    except ConvertError:
        return
    for call in script.calls(STRATEGY):
        config = call.arguments["config"].value if "config" in call.arguments else None
        if isinstance(config, str):
            place = Arguments(f"{name}:{script.line_of(call)}", {})
            yield _Given(place, folder, (("", config),), lightning=True)
    for call in script.calls_with(_TRAINER):
        config = call.arguments[_TRAINER].value
        if isinstance(config, str):
            yield _Given(of_call(script, call, f"{name}:{script.line_of(call)}"), folder, ((_TRAINER, config),))


def _of_dataclass(script: Path, root: Path) -> Iterator[_Given]:
    """Yield the config that a script gives the Trainer where its launch line gives none."""
    found = options.of_script(script, root)
    config = found.defaults.get(_TRAINER)
    if found.whole and config is not None and config.text:
        yield _Given(Arguments(config.place, {}), script.parent, ((_TRAINER, config.text),), script=script.name)


def of_call(script: Script, call: Call, place: str) -> Arguments:
    """Return the arguments of a call of a script, with the place that they are said to be at."""
    from dsmigrate.convert.python_calls import EXPRESSION  # noqa: PLC0415 - few projects have such a script

    values = {one.name: None if one.value is EXPRESSION else str(one.value) for one in call.arguments.values()}
    whole = call.is_whole and call.name in options.TRAINER
    return trl.of_script(Arguments(place, values, whole=whole), script.text)


def _means(path: str, folder: Path, root: Path, config: Path) -> bool:
    """Return whether a path of a launcher is a config: from its folder, from the root, or by what the path ends in."""
    parts = tuple(part for part in PurePosixPath(path).parts if part not in {".", "..", "/"})
    if not parts or parts[-1] != config.name:
        return False
    there = [found for base in (folder, root) if (found := base / path).is_file()]
    if there:
        return any(resolved(found) == config for found in there)
    if parts == PurePosixPath(path).parts[-1:] == (path,):  # a bare name: nobody says in which folder
        return folder.is_relative_to(config.parent) or config.parent.is_relative_to(folder)
    return config.parts[-len(parts) :] == parts or PurePosixPath(path).is_absolute()
