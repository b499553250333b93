"""Where in a file commands stand: all of a shell script, the recipes of a Makefile, the code blocks of a README."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import PurePosixPath

_SHELLS = frozenset(
    {".sh", ".bash", ".zsh", ".ksh", ".slurm", ".sbatch", ".job", ".pbs", ".lsf", ".sub", ".qsub", ".run"}
)
_SHEBANG = re.compile(r"#!.*\b(?:ba|z|k|da)?sh\b")
_FENCE = re.compile(r"^([ \t]*)(`{3,}|~{3,})[ \t]*\{?\.?([\w+-]*)[^\n]*\n", re.MULTILINE)
_LANGUAGES = frozenset(
    {"", "sh", "bash", "shell", "zsh", "console", "shell-session", "shellsession", "terminal", "text", "txt",
     "cmd", "commandline",
     "shellscript", "bash-session", "none", "plaintext"}
)  # fmt: skip
_PROMPT = re.compile(r"^[ \t]*(?:\([\w.-]+\)[ \t]*)?(?:[\w.@~:/-]*)?[$%][ \t]+", re.MULTILINE)
_STARTS = re.compile(
    r"(?:[A-Z]\w*=\S+[ \t]+)*(?:python[\d.]*|torchrun|deepspeed|accelerate|srun|mpirun|mpiexec|nohup|bash)[ \t]"
)
_RST = re.compile(
    r"^([ \t]*)(?:\.\.[ \t]+(?:code-block|code|sourcecode)::[ \t]*([\w-]*)[ \t]*|[^\n]*::[ \t]*)\n", re.MULTILINE
)
_INLINE = re.compile(r"(?<!`)`([^`\n]+)`(?!`)")
_DOCKER = re.compile(r"^[ \t]*(?:CMD|ENTRYPOINT|RUN)[ \t]+(?:--\S+[ \t]+)*", re.MULTILINE | re.IGNORECASE)
_YAML = re.compile(
    r"^([ \t]*)(?:- +)?(?:(?:run|command|entrypoint|script|args|cmd|before_script|inline|bash|shell|commands)[ \t]*:|-)"
    r"[ \t]+",
    re.MULTILINE,
)
_BLOCK = re.compile(r"([|>])[-+\d]*[ \t]*(?:#[^\n]*)?\n")


@dataclass(frozen=True, slots=True)
class Region:
    """A stretch of a file with commands. ``form``: shell, json for a list of words, folded for what is not read."""

    start: int
    end: int
    form: str = "shell"


def kind_of(name: str, head: str) -> str:
    """What kind of launcher a file may be by its name and its first line; "" for none."""
    path = PurePosixPath(name)
    suffix, base = path.suffix.lower(), path.name.lower()
    if suffix in _SHELLS or (not suffix and _SHEBANG.match(head)):
        return "shell"
    if base in {"makefile", "gnumakefile"} or suffix in {".mk", ".make"}:
        return "make"
    if suffix in {".md", ".markdown"}:
        return "markdown"
    if suffix == ".rst":
        return "rst"
    if base.startswith(("dockerfile", "containerfile")) or suffix == ".dockerfile":
        return "docker"
    return "yaml" if suffix in {".yml", ".yaml"} else ""


def regions(text: str, kind: str) -> list[Region]:
    """The stretches of a file of a kind that hold commands, in order."""
    return sorted(_READERS[kind](text), key=lambda region: region.start)


def _shell(text: str) -> Iterator[Region]:
    yield Region(0, len(text))


def _logical_end(text: str, at: int, end: int) -> int:
    """The end of the line at an offset, lines that a backslash continues included."""
    while True:
        stop = text.find("\n", at, end)
        if stop < 0:
            return end
        if not text[at:stop].rstrip("\r").endswith("\\"):
            return stop
        at = stop + 1


def _make(text: str) -> Iterator[Region]:
    at = 0
    while at < len(text):
        stop = _logical_end(text, at, len(text))
        if text[at] == "\t":
            begun = re.compile(r"\t[ \t]*[@+-]*").match(text, at)
            yield Region(begun.end() if begun else at, stop)
        at = stop + 1


def _commands(text: str, start: int, end: int) -> Iterator[Region]:
    """The commands of a code block: behind its prompts where it has some, else all of it."""
    prompts = list(_PROMPT.finditer(text, start, end))
    for prompt in prompts:
        yield Region(prompt.end(), _logical_end(text, prompt.end(), end))
    if not prompts:
        yield Region(start, end)


def _markdown(text: str) -> Iterator[Region]:
    at = 0
    prose: list[tuple[int, int]] = []
    while (fence := _FENCE.search(text, at)) is not None:
        prose.append((at, fence.start()))
        closing = re.compile(rf"^[ \t]*{re.escape(fence[2][0])}{{{len(fence[2])},}}[ \t]*\r?$", re.MULTILINE)
        close = closing.search(text, fence.end())
        end = close.start() if close else len(text)
        if fence[3].lower() in _LANGUAGES:
            yield from _commands(text, fence.end(), end)
        at = close.end() if close else len(text)
    prose.append((at, len(text)))
    for start, end in prose:
        yield from _inline(text, start, end)
        yield from _indented(text, start, end)


def _inline(text: str, start: int, end: int) -> Iterator[Region]:
    for code in _INLINE.finditer(text, start, end):
        if _STARTS.match(code[1]):
            yield Region(code.start(1), code.end(1))


def _indented(text: str, start: int, end: int) -> Iterator[Region]:
    """Lines of an indented code block that begin as launch lines do."""
    at = start
    while at < end:
        begun = re.compile(r"(?: {4,}|\t[ \t]*)(?:\$[ \t]+)?").match(text, at, end)
        stop = _logical_end(text, at, end)
        if begun and _STARTS.match(text, begun.end()):
            yield Region(begun.end(), stop)
        at = stop + 1


def _rst(text: str) -> Iterator[Region]:
    for head in _RST.finditer(text):
        if head[2] is not None and head[2].lower() not in _LANGUAGES:
            continue
        at, indent = head.end(), len(head[1].expandtabs())
        start = at
        while at < len(text):
            stop = text.find("\n", at)
            stop = len(text) if stop < 0 else stop
            line = text[at:stop].expandtabs()
            if line.strip() and len(line) - len(line.lstrip()) <= indent:
                break
            at = stop + 1
        yield from _commands(text, start, min(at, len(text)))


def _docker(text: str) -> Iterator[Region]:
    for head in _DOCKER.finditer(text):
        stop = _logical_end(text, head.end(), len(text))
        yield Region(head.end(), stop, "json" if text.startswith("[", head.end()) else "shell")


def _yaml(text: str) -> Iterator[Region]:
    at = 0
    while (head := _YAML.search(text, at)) is not None:
        value, indent = head.end(), len(head[1])
        block = _BLOCK.match(text, value)
        line_end = text.find("\n", value)
        line_end = len(text) if line_end < 0 else line_end
        at = line_end
        if block:
            stop = _end_of_block(text, block.end(), indent)
            yield Region(block.end(), stop, "shell" if block[1] == "|" else "folded")
            at = stop
        elif text.startswith("[", value):
            yield Region(value, line_end, "json")
        elif text[value : value + 1] in {'"', "'"}:
            quote, inner = text[value], text[value + 1 : line_end].rstrip()
            plain = inner.endswith(quote) and quote not in inner[:-1] and "\\" not in inner
            yield Region(value + 1, value + len(inner), "shell") if plain else Region(value, line_end, "folded")
        else:
            yield Region(value, line_end)
        at = max(at, head.end())


def _end_of_block(text: str, at: int, indent: int) -> int:
    while at < len(text):
        stop = text.find("\n", at)
        stop = len(text) if stop < 0 else stop
        line = text[at:stop]
        if line.strip() and len(line) - len(line.lstrip(" ")) <= indent:
            return at
        at = stop + 1
    return len(text)


_READERS: dict[str, Callable[[str], Iterator[Region]]] = {
    "shell": _shell,
    "make": _make,
    "markdown": _markdown,
    "rst": _rst,
    "docker": _docker,
    "yaml": _yaml,
}
