"""The arguments of ``accelerate launch`` as the config that Accelerate makes of them, at the places of their words.

Read are lines with ``--use_deepspeed`` that name no file: the settings of a file are checked there.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import PurePath

from dsmigrate.checking.arguments import expanded
from dsmigrate.convert.facts import accelerate, fields
from dsmigrate.convert.forms.accelerate import FILE, of_arguments
from dsmigrate.convert.model import Place, Settings
from dsmigrate.convert.yaml_tree import Entry
from dsmigrate.launchers.convert import variables_of
from dsmigrate.launchers.regions import kind_of, regions
from dsmigrate.launchers.shell import Command, Word, scan

_ASKS = "use_deepspeed"
_MODULE = "accelerate.commands.launch"
_FILES = frozenset({"config_file", FILE})
SWITCHES = frozenset({
    _ASKS, "cpu", "debug", "downcast_bf16", "dynamo_use_dynamic", "dynamo_use_fullgraph",
    "dynamo_use_regional_compilation", "enable_cpu_affinity", "fp16", "fp8_use_autocast_during_eval", "h", "help",
    "ipex", "ipex_enabled", "m", "module", "mps", "multi_gpu", "no_python", "no_tpu_cluster", "q", "quiet",
    "same_network", "tpu", "tpu_cluster", "tpu_use_sudo", "use_fsdp", "use_megatron_lm", "use_mps_device",
    "use_parallelism_config", "use_tp", "use_xpu",
})  # fmt: skip
"""Arguments of ``accelerate launch`` without a value, in any release from 0.9 to 1.15."""


@dataclass(frozen=True, slots=True)
class Launch:
    """A launch line: its settings, the place of its words, the variables of its file, and what it starts."""

    settings: Settings
    place: Place
    line: int
    variables: dict[str, str]
    started: Command | None


def is_launcher(name: str, text: str) -> bool:
    """Whether a file holds commands, and is not YAML, which is read as Accelerate's own."""
    return kind_of(PurePath(name).name, text.partition("\n")[0]) not in {"", "yaml"}


def may_launch(data: bytes) -> bool:
    """Whether the content of a launcher is worth reading."""
    return b"accelerate" in data and (b"use_deepspeed" in data or b"use-deepspeed" in data)


def launches(name: str, text: str) -> Iterator[Launch]:
    """Yield every launch line of a text that says how DeepSpeed trains."""
    kind = kind_of(PurePath(name).name, text.partition("\n")[0])
    variables = variables_of(text, kind)
    for region in regions(text, kind):
        commands = scan(text, region.start, region.end).commands if region.form == "shell" else []
        for command in commands:
            launch = _launch(text, command, variables)
            if launch is not None:
                yield launch


def _launch(text: str, command: Command, variables: dict[str, str]) -> Launch | None:
    words = [(word, expanded(word, variables)) for word in command.words]
    begun = _begin([value for _, value in words])
    if begun is None:
        return None
    given, end = _given(words[begun:])
    names = {entry.name for entry in given}
    if _ASKS not in names or names & _FILES or not names & fields().keys():
        return None
    start, stop = command.start, words[begun + end - 1][0].end
    rest = command.words[begun + end :]
    return Launch(
        settings=of_arguments(text, given),
        place=Place(start, words[begun - 1][0].end, start, stop),
        line=text.count("\n", 0, start) + 1,
        variables=variables,
        started=Command(rest) if rest else None,
    )


def _begin(words: list[str | None]) -> int | None:
    """Return where the arguments of ``accelerate launch`` begin among the words of a command."""
    for at, word in enumerate(words):
        if word is None:
            continue
        if word == _MODULE or PurePath(word).name == "accelerate-launch":
            return at + 1
        if PurePath(word).name == "accelerate" and words[at + 1 : at + 2] == ["launch"]:
            return at + 2
    return None


def _given(words: list[tuple[Word, str | None]]) -> tuple[tuple[Entry, ...], int]:
    """Return the arguments up to the script, and how many words they are; what nobody knows is left out."""
    known = {*fields(), *accelerate()["around"], *accelerate()["top"], *_FILES, _ASKS}
    found: list[Entry] = []
    at = 0
    while at < len(words):
        word, value = words[at]
        if value is None or not value.startswith("-"):
            break
        name, equals, inline = value.lstrip("-").partition("=")
        name = name.replace("-", "_")
        said: str | None
        holder, said = word, inline if equals else "true"
        if not equals and name not in SWITCHES:
            at += 1
            holder, said = words[at] if at < len(words) else (word, None)
        if name in known and said is not None:
            found.append(Entry(name, said, Place(word.start, word.end, holder.start, holder.end)))
        at += 1
    return tuple(found), at
