"""There and back: what a config says after it went through another form, and what was said to be left behind."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from dsmigrate.convert import tree
from dsmigrate.convert.job import Request, convert
from dsmigrate.convert.model import Form, Kind, Target
from dsmigrate.document import Path, parse_path
from dsmigrate.knowledge import MISSING, Consumer, knowledge
from dsmigrate.settings.check import CheckSettings
from tests.convert.configs import Config, text_of

NAMES = {
    Form.ACCELERATE: "accelerate.yaml",
    Form.DICT: "train.py",
    Form.PLUGIN: "train.py",
    Form.TRANSFORMERS: "train.py",
}
BATCH = ("train_batch_size", "train_micro_batch_size_per_gpu")
_ELSEWHERE = {"CV202", "CV203"}
"""Notes of what the consumer writes, or takes from the script."""


@dataclass(frozen=True)
class Trip:
    """A config without what was said not to be carried, and as it came back; keys of the whole config, and of these."""

    carried: Config
    back: Config
    keys: int
    kept: int
    written: str

    def differences(self) -> list[str]:
        """Return the keys that differ: in their value, or in DeepSpeed's default where one side leaves them out."""
        ours: dict[Path, object] = dict(tree.leaves(self.carried))
        theirs: dict[Path, object] = dict(tree.leaves(self.back))
        found = []
        for path in dict.fromkeys((*ours, *theirs)):
            default = known(path)
            if path and not same(ours.get(path, default), theirs.get(path, default)):
                found.append(f"{'.'.join(map(str, path))}: {ours.get(path, default)!r} → {theirs.get(path, default)!r}")
        return found


def known(path: Path) -> object:
    """Return the default of a key; where it is a section without keys, that of none at all."""
    default = knowledge().default(path)
    if path == ("gradient_accumulation_steps",):
        return 1
    return {} if default is MISSING else default


def same(one: object, other: object) -> bool:
    """Return whether two values are one to DeepSpeed, which reads texts as numbers and switches, too."""
    return one == other or str(one).lower() == str(other).lower()


def trip(config: Config, form: Form, carrying: str = "auto") -> Trip:
    """Convert a config to a form and back; raises ConvertError where that cannot be."""
    has_autos = bool(tree.autos(config))
    readers = CheckSettings(consumer=Consumer.TRANSFORMERS if has_autos else form.consumer)
    there = convert(Request("ds_config.json", text_of(config), form, settings=readers, into=Target(carrying=carrying)))
    carried: Config = tree.copied(there.config if has_autos and form is Form.TRANSFORMERS else config)
    consumer = Consumer.TRANSFORMERS if has_autos or form is not Form.TRANSFORMERS else Consumer.DEEPSPEED
    asked: dict[str, Any] = {"settings": CheckSettings(consumer=consumer)}
    back = convert(Request(NAMES[form], there.written.text.encode(), Form.DEEPSPEED, **asked)).config
    for note in there.notes:
        path = parse_path(note.key)
        if note.kind is Kind.LOST or (note.kind is Kind.CHANGED and tree.get(back, path) == "auto"):
            tree.drop(back, path)
        if tree.get(back, path) is tree.MISSING and (note.code in _ELSEWHERE or note.kind is not Kind.TOLD):
            tree.drop(carried, path)
        if note.code == "CV204":  # a section of its own, or none for one that is off
            carried.pop(note.key, None)
            back.pop(note.key, None)
    for key in BATCH:
        missing = carried.get(key) is None or back.get(key) in {None, "auto"}
        if missing and carried.get(key) != back.get(key):  # of the script, or left to DeepSpeed to be computed
            carried.pop(key, None)
            back.pop(key, None)
    for path in tree.autos(back):
        if tree.get(carried, path) is tree.MISSING:  # what fields leave to the script
            tree.drop(back, path)
    for path in tree.autos(carried):
        if tree.get(back, path) is tree.MISSING:  # left out, as the consumer writes it
            tree.drop(carried, path)
    return Trip(carried, back, _count(config), _count(carried), there.written.text)


def _count(config: Config) -> int:
    return sum(1 for path, _ in tree.leaves(config) if path)
