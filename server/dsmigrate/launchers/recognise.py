"""Which commands start a converted script, and through what."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Mapping
from pathlib import PurePosixPath

from dsmigrate.launchers import model
from dsmigrate.launchers.model import Launch, Script
from dsmigrate.launchers.shell import Command, Word

Resolve = Callable[[str], str | None]

_PYTHON = re.compile(r"(?:.*/)?(?:python|pypy)(?:\d+(?:\.\d+)?)?(?:\.exe)?")
_PYTHON_VARIABLE = re.compile(r"PY|PYTHON\w*|\w*_PYTHON|PYTHON_?BIN", re.IGNORECASE)
_MODULES = {
    "torch.distributed.run": model.TORCHRUN,
    "torch.distributed.launch": model.LAUNCH_MODULE,
    "accelerate.commands.launch": model.ACCELERATE,
    "deepspeed.launcher.runner": model.DEEPSPEED,
    "deepspeed": model.DEEPSPEED,
}
_PROGRAMS = {"torchrun": model.TORCHRUN, "deepspeed": model.DEEPSPEED, "deepspeed.py": model.DEEPSPEED}
MANAGERS = frozenset(
    {"srun", "mpirun", "mpiexec", "mpiexec.hydra", "orterun", "jsrun", "aprun", "ibrun", "prun", "mpirun_rsh"}
)
_WRAPPERS = frozenset(
    {"exec", "nohup", "time", "command", "env", "sudo", "nice", "ionice", "timeout", "stdbuf", "setsid",
     "numactl", "taskset",
     "xvfb-run", "conda", "mamba", "micromamba", "poetry", "pipenv", "uv", "pdm", "hatch", "rye",
     "singularity", "apptainer",
     "docker", "podman", "ssh", "then", "do", "else", "@", "-", "unbuffer", "caffeinate", "CMD", "ENTRYPOINT",
     "RUN", "enroot",
     "shifter", "bash", "sh", "sbatch", "tmux", "screen", *MANAGERS}
)  # fmt: skip
HARMLESS = frozenset(
    {"echo", "printf", "cat", "ls", "cp", "mv", "rm", "ln", "chmod", "chown", "git", "diff", "grep", "egrep",
     "rg", "sed", "awk",
     "vim", "vi", "nano", "emacs", "code", "less", "more", "head", "tail", "wc", "touch", "test", "[", "[[",
     "pip", "black",
     "ruff", "isort", "flake8", "mypy", "pylint", "pytest", "scp", "rsync", "tar", "zip", "unzip", "find",
     "COPY", "ADD", "cd",
     "for", "case", "mkdir", "wget", "curl", "md5sum", "sha256sum", "file", "stat", "export", "pkill", "pgrep",
     "autopep8",
     "dsmigrate", "pyupgrade", "open", "tree", "dos2unix", "yapf", "LABEL", "ENV", "ARG", "FROM", "WORKDIR", "jupyter"}
)  # fmt: skip
_FLAGS_WITH_VALUE = frozenset({"-W", "-X"})


def launch_of(command: Command, script: Script, variables: Mapping[str, str], resolve: Resolve) -> Launch | None:
    """The launch of a script that a command is, or None.

    ``resolve`` gives the path from the project's root that a relative path on this line means, None where that is open.
    """
    words = command.words
    first = next((k for k, word in enumerate(words) if not word.assigns), len(words))
    if first == len(words) or words[first].text.lstrip("@-+") in HARMLESS:
        return None
    for index in range(first, len(words)):
        module = index > 0 and words[index - 1].text in {"-m", "--module"}
        if _means(words[index], script, variables, resolve, module=module):
            return _launch(command, first, index, module=module, variables=variables)
        if (words[index].expanded(variables) or "").endswith(".py"):
            return None  # another script, which may take ours as an argument
    return None


def _means(word: Word, script: Script, variables: Mapping[str, str], resolve: Resolve, *, module: bool) -> bool:
    value = word.expanded(variables)
    if module:
        if value is None:
            return False
        asked = value.replace(".", "/") + ".py"
    elif value is not None:
        asked = value
    else:
        # "$HERE/train.py": the variable part is unknown, the rest has to be enough.
        tail = "".join(piece if isinstance(piece, str) else "\0" for piece in word.pieces).rpartition("\0")[2]
        way = PurePosixPath(tail.lstrip("/"))
        ends = PurePosixPath(script.path).parts[-len(way.parts) :] if way.parts else ()
        return tail.startswith("/") and bool(way.parts) and way.parts == ends and script.unique
    if not asked.endswith(".py") or asked.rpartition("/")[2] != script.name:
        return False
    if asked.startswith("/"):  # in a container, a cluster's home: the folders are not those of here
        parts = PurePosixPath(script.path).parts
        return script.unique or PurePosixPath(asked).parts[-len(parts) :] == parts
    return resolve(asked) == script.path


def _launch(command: Command, first: int, script: int, *, module: bool, variables: Mapping[str, str]) -> Launch:
    words = command.words
    managers: list[str] = []
    strangers: list[str] = []
    stop = script - 1 if module else script
    for index in range(first, stop):
        text = words[index].text.lstrip("@-+") if index == first else words[index].text
        value = words[index].expanded(variables)
        base = PurePosixPath(value or text).name
        if base in MANAGERS:
            managers.append(base)
        kind, last, flags = _program(words, index, stop, value)
        option = (
            base == "deepspeed" and index > 0 and words[index - 1].text in {"-n", "--name"}
        )  # conda run -n deepspeed
        if kind and not option and (index == first or not words[index].quoted):
            return Launch(command, kind, (index, last), script, module, tuple(managers), tuple(strangers), flags)
        if index == first and base not in _WRAPPERS and not words[index].assigns:
            strangers.append(text)
    if stop == first:
        strangers.append(words[first].text)
    return Launch(
        command, model.OTHER, (first, first), script, module, tuple(managers), tuple(strangers) or (words[first].text,)
    )


def _program(words: tuple[Word, ...], index: int, stop: int, value: str | None) -> tuple[str, int, tuple[str, ...]]:
    """The kind of program a word begins, the index of the last word that belongs to it, Python's flags."""
    word = words[index]
    base = PurePosixPath(value).name if value else ""
    if base in _PROGRAMS:
        return _PROGRAMS[base], index, ()
    if base == "accelerate" and index + 1 < stop and words[index + 1].text == "launch":
        return model.ACCELERATE, index + 1, ()
    parts = (value or "").split()
    if len(parts) > 1 and not word.quoted:  # $LAUNCH = "python -m torch.distributed.launch --nproc_per_node 2"
        if PurePosixPath(parts[0]).name in _PROGRAMS:
            return _PROGRAMS[PurePosixPath(parts[0]).name], index, ("in a variable",)
        if parts[:2] == ["accelerate", "launch"]:
            return model.ACCELERATE, index, ("in a variable",)
        if _PYTHON.fullmatch(parts[0]):
            behind = dict(itertools.pairwise(parts)).get("-m", "")
            return _MODULES.get(behind, model.PYTHON if not behind else model.OTHER), index, ("in a variable",)
    names = [piece[0] for piece in word.pieces if isinstance(piece, tuple)]
    variable = len(word.pieces) == 1 and len(names) == 1 and bool(_PYTHON_VARIABLE.fullmatch(names[0]))
    if not (value and _PYTHON.fullmatch(value)) and not (value is None and variable):
        return "", index, ()
    flags: list[str] = []
    last = index
    while last + 1 < stop and words[last + 1].text.startswith("-"):
        text = words[last + 1].text
        if text == "-m":
            if last + 2 >= stop:
                break
            kind = _MODULES.get(words[last + 2].text, model.OTHER)
            return kind, last + 2, tuple(flags)
        last += 1
        flags.append(text)
        if text in _FLAGS_WITH_VALUE:
            last += 1
    return (model.PYTHON, last, tuple(flags)) if last + 1 >= stop else (model.OTHER, last, tuple(flags))
