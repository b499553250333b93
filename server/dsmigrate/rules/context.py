"""What a rule looks at: the document with the knowledge of one release for one consumer."""

from __future__ import annotations

import enum
import math
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any, Final, Literal, NamedTuple, TypeVar

from dsmigrate.document import (
    Array,
    Document,
    Member,
    Node,
    Object,
    Path,
    Scalar,
    render_path,
)
from dsmigrate.knowledge import MISSING, AutoEffect, Consumer, Key, Knowledge, Parameter, TypeFacts
from dsmigrate.knowledge.lookup import was_filled
from dsmigrate.languages import say
from dsmigrate.patience import pause
from dsmigrate.rules.mending import Mending
from dsmigrate.rules.model import Effect, Facts, Finding, Fix, Related, Rule, Severity, Tag

_PARAMS = (("optimizer", "params"), ("scheduler", "params"))
_MONITORS = frozenset({"tensorboard", "wandb", "csv_monitor", "comet"})
Part = Literal["key", "value", "member"]
_Answer = TypeVar("_Answer")


_LARGEST = 10**100


def is_absurd(value: object) -> bool:
    """Return whether a number is beyond any setting: what DeepSpeed works out from it overflows, here as there.

    Infinity is none: as ``steps_per_print`` it stands for never.
    """
    return isinstance(value, (int, float)) and abs(value) > _LARGEST and value not in {math.inf, -math.inf}


class _Unknown(enum.Enum):
    UNKNOWN = "unknown"

    def __repr__(self) -> str:
        return "UNKNOWN"


UNKNOWN: Final = _Unknown.UNKNOWN
"""A value that the consumer, or somebody else, decides when the training starts."""


TYPED: Final[tuple[Literal["optimizer", "scheduler"], ...]] = ("optimizer", "scheduler")
"""The sections whose ``params`` belong to a type."""


class Entry(NamedTuple):
    """A member of the config: where it is, and what DeepSpeed knows of it.

    ``key`` is the key as the release has it (its ``status`` says whether it is there at all), None when no release ever
    knew it. For a member of ``optimizer.params`` or ``scheduler.params``, ``parameter`` is what the type makes of it.
    """

    path: Path
    member: Member
    key: Key | None
    node: Node | None
    """The value; None while it is being typed."""
    parameter: Parameter | None = None

    @property
    def is_parameter(self) -> bool:
        """Whether it is a member of the ``params`` of an optimizer or scheduler."""
        return len(self.path) == 3 and self.path[0] in TYPED and self.path[1] == "params"

    @property
    def name(self) -> str:
        """The key as it is written."""
        return str(self.path[-1])


class Context(Mending["Entry | str"]):
    """The document as one release and one consumer see it; made anew for every check.

    Paths of keys are dotted and canonical (``bf16.enabled``), whatever spelling the file has.
    """

    def __init__(
        self,
        document: Document,
        known: Knowledge,
        *,
        consumer: Consumer = Consumer.DEEPSPEED,
        facts: Facts | None = None,
        unknown: frozenset[int] = frozenset(),
    ) -> None:
        """Look at ``document`` with ``known``; ``facts`` is what is known beside the file.

        ``unknown`` holds the offsets of values that only stand for expressions of a script: each is UNKNOWN.
        """
        super().__init__(document)
        self.known = known
        self.consumer = consumer
        self.facts = facts or Facts()
        self.unknown = unknown
        self.rule: Rule | None = None
        """The rule that is being checked; set by ``run``."""
        self.memory: dict[Hashable, Any] = {}
        """What rules have worked out together; see ``once``."""
        self.is_cut = False
        """Whether a check has ended at its limit, so that there may be more to find."""
        self._asked: dict[str, Entry | None] = {}
        self._values: dict[str, object] = {}

    def once(self, asked: Hashable, work: Callable[[], _Answer]) -> _Answer:
        """Return what ``work`` returns for this document; ``asked`` names the question, and is answered once."""
        if asked not in self.memory:
            self.memory[asked] = work()
        answer: _Answer = self.memory[asked]
        return answer

    @cached_property
    def root(self) -> Object | None:
        """The config; None when the text is empty, or its root is no object."""
        root = self.document.root
        return root if isinstance(root, Object) else None

    @cached_property
    def entries(self) -> tuple[Entry, ...]:
        """Every member with a key, outermost first and in the order of the text.

        Members below a key that nobody knows, what lies inside free values, and all but the last of equal keys are left
        out.
        """
        found: list[Entry] = []
        if self.root is not None:
            self._collect(self.root, (), found)
        return tuple(found)

    @cached_property
    def _by_key(self) -> dict[str, Entry]:
        found: dict[str, Entry] = {}
        for entry in self.entries:
            if entry.node is None or self._is_passed_over(entry):
                continue
            if entry.key is not None:
                found[entry.key.alias_of or entry.key.path] = entry
            elif entry.is_parameter:
                found[".".join(map(str, entry.path))] = entry
        return found

    def _is_passed_over(self, entry: Entry) -> bool:
        """Return whether it stands in a section under its other name, while the section itself is there as well."""
        section = self.known.key(entry.path[:1])
        if section is None or section.alias_of is None:
            return False
        node = self.document.node_at((section.alias_of,))
        return node is not None and node.value() is not None

    def entry(self, path: str) -> Entry | None:
        """Return the member that gives a key, in whatever spelling it is written; None when the file leaves it out."""
        asked = self._asked
        if path not in asked:
            asked[path] = self._by_key.get(self.known.canonical(path))
        return asked[path]

    def has(self, path: str) -> bool:
        """Return whether the file gives a key."""
        return self.entry(path) is not None

    def raw(self, path: str) -> object:
        """Return the value the file gives a key, as the loader reads it, or MISSING; UNKNOWN for an expression."""
        entry = self.entry(path)
        if entry is None or entry.node is None:
            return MISSING
        if entry.node.start in self.unknown:
            return UNKNOWN
        if isinstance(entry.node, Scalar):
            return entry.node.value()
        return self.once(("raw", entry.path), entry.node.value)

    def value(self, path: str) -> object:
        """Return what DeepSpeed will take for a key: the file's value, the default, or UNKNOWN.

        "auto" is UNKNOWN where the consumer fills it, and the default where DeepSpeed drops it. UNKNOWN is also what
        the consumer writes whatever the file says, and what an absurd number comes to. MISSING means that there is
        neither a value nor a default.
        """
        if path not in self._values:
            self._values[path] = self._value(path)
        return self._values[path]

    def _value(self, path: str) -> object:
        if self.is_overwritten(path):
            return UNKNOWN
        raw = self.raw(path)
        if raw is MISSING:
            return self.known.default(path)
        if is_absurd(raw):
            return UNKNOWN
        if not isinstance(raw, str):
            return raw
        if raw == "auto":
            auto = self.known.auto(path, self.consumer)
            if self.fills(path):
                return UNKNOWN
            if auto is not None and auto.effect is AutoEffect.DEFAULT:
                return self.known.default(path)
        return raw

    @property
    def consumer_release(self) -> str | None:
        """The release of the package that hands the config on; None if it is not known, or there is none."""
        released = {Consumer.TRANSFORMERS: self.facts.transformers, Consumer.ACCELERATE: self.facts.accelerate}
        return released.get(self.consumer)

    def fills(self, path: Path | str) -> bool:
        """Return whether the consumer, in its release, puts a value in the place of "auto" at a path."""
        auto = self.known.auto(path, self.consumer)
        if auto is not None and auto.effect is AutoEffect.FILLED:
            return True
        dotted = path if isinstance(path, str) else ".".join(map(str, path))
        return was_filled(dotted, self.consumer, self.consumer_release)

    def is_overwritten(self, path: str) -> bool:
        """Return whether the consumer writes a key whatever the file says, or adds its section for want of one."""
        auto = None if self.consumer is Consumer.DEEPSPEED else self.known.auto(path, self.consumer)
        if auto is None:
            return False
        if auto.adds_section:
            return self.document.member_at((path.partition(".")[0],)) is None
        return auto.overwrites and not self.has(auto.unless)

    def drops_auto(self, key: Key) -> bool:
        """Return whether DeepSpeed drops "auto" at a key: a model around it does, for values and for whole sections.

        The sections of the monitors are fields of one model (deepspeed/monitor/config.py:DeepSpeedMonitorConfig).
        """
        around = self.known.key(key.parent) if key.parent else None
        return key.path in _MONITORS if around is None else around.is_checked

    def number(self, path: str) -> int | float | None:
        """Return the value of a key as a number; None when it is none, or unknown. True is 1, as for pydantic."""
        value = self.value(path)
        if isinstance(value, (bool, int, float)):
            return value
        key = self.known.key(path)
        if isinstance(value, str) and key is not None and key.is_checked:
            try:
                return int(value)
            except ValueError:
                return _float(value)
        return None

    def is_on(self, path: str) -> bool | None:
        """Return whether a switch is on, as DeepSpeed reads it; None when that is unknown."""
        value = self.value(path)
        if value is UNKNOWN:
            return None
        if value is MISSING:
            return False
        key = self.known.key(path)
        if isinstance(value, str) and key is not None and key.is_checked:
            return value.lower() in {"true", "1", "yes", "on", "y", "t"}
        return bool(value)

    def holds(self, conditions: Mapping[str, Sequence[object]]) -> bool | None:
        """Return whether every path has one of its values; a switch, what DeepSpeed takes for on. None is unknown."""
        met: bool | None = True
        for path, values in conditions.items():
            switch = all(isinstance(value, bool) for value in values)
            value = self.is_on(path) if switch else self.value(path)
            if value is UNKNOWN or (switch and value is None):
                met = None
            elif value not in values:
                return False
        return met

    @cached_property
    def stage(self) -> int | None:
        """The ZeRO stage; None when it is unknown or not one of 0 to 3."""
        section = self.raw("zero_optimization")
        if isinstance(section, bool):
            return int(section)
        stage = self.number("zero_optimization.stage")
        return int(stage) if stage is not None and stage in {0, 1, 2, 3} else None

    def device(self, section: Literal["offload_optimizer", "offload_param"]) -> str | None:
        """Return where ZeRO offloads to: "none", "cpu" or "nvme"; None when it is unknown."""
        deprecated = {"offload_optimizer": "cpu_offload", "offload_param": "cpu_offload_param"}[section]
        if self.is_on(f"zero_optimization.{deprecated}"):
            return "cpu"
        value = self.value(f"zero_optimization.{section}.device")
        return value if isinstance(value, str) and value in {"none", "cpu", "nvme"} else None

    def finding(
        self,
        where: Entry | Path | str,
        message: str,
        *,
        part: Part = "value",
        severity: Severity | None = None,
        effect: Effect | None = None,
        fixes: Iterable[Fix | None] = (),
        related: Iterable[tuple[Entry | Path | str, str]] = (),
        tags: Iterable[Tag] = (),
    ) -> Finding:
        """Return a finding of the current rule at a member, or at the place of a path.

        ``where`` is an entry, the path of nodes, or the canonical path of a key that the file gives. A path that the
        file does not have points at the nearest section around it that it has, or at the first character. ``severity``
        and ``effect`` default to those of the rule; a fix that is None is left out.
        """
        assert self.rule is not None  # noqa: S101 - set by run before a rule is called
        pause()
        path, start, end = self._place(where, part)
        return Finding(
            code=self.rule.code,
            severity=severity or self.rule.severity,
            effect=effect or self.rule.effect,
            message=say(message),
            path=path,
            start=start,
            end=end,
            related=tuple(Related(*self._place(place, "member")[1:], message=say(text)) for place, text in related),
            tags=frozenset(tags),
            proposed=tuple(fix for fix in fixes if fix is not None),
        )

    def path_of(self, where: Entry | Path | str) -> Path:
        """Return the path of nodes that leads to a place; for a key that the file leaves out, where it would be."""
        if isinstance(where, Entry):
            return where.path
        if isinstance(where, str):
            entry = self.entry(where)
            return entry.path if entry is not None else tuple(where.split("."))
        return where

    def _place(self, where: Entry | Path | str, part: Part) -> tuple[Path, int, int]:
        entry = self.entry(where) if isinstance(where, str) else where
        if isinstance(entry, Entry):  # the way from the root to it need not be gone again
            at = {"key": entry.member.key, "value": entry.node, "member": None}[part] or entry.member
            return entry.path, at.start, at.end
        path = self.path_of(where)
        for length in range(len(path), 0, -1):
            found = self.document.range_of(path[:length], part if length == len(path) else "key")
            if found is None and length == len(path):
                found = self.document.range_of(path, "member")
            if found is not None:
                return path, *found
        return path, *self._top()

    def _top(self) -> tuple[int, int]:
        """Return the place of findings about the file as a whole: its opening brace."""
        root = self.document.root
        start = root.start if root is not None else 0
        return start, min(start + 1, len(self.document.text))

    def _collect(self, section: Object, path: Path, found: list[Entry]) -> None:
        for member in _lasting(section):
            name = str(member.name)
            here = (*path, name)
            key, node = self.known.key(here), member.node
            found.append(Entry(here, member, key, node, self._parameter(here) if path in _PARAMS else None))
            if isinstance(node, Scalar):
                continue
            inner = key.is_section if key is not None else self.known.takes_any_name(path)
            if not inner and here not in _PARAMS:
                continue
            if isinstance(node, Object):
                self._collect(node, here, found)
            elif isinstance(node, Array):
                for index, item in enumerate(node):
                    if isinstance(item, Object):
                        self._collect(item, (*here, index), found)

    def type_of(self, section: Literal["optimizer", "scheduler"]) -> TypeFacts | None:
        """Return the optimizer or scheduler type that the file names, of whatever release; None when it names none."""
        return self.once((Context.type_of, section), lambda: self._type_of(section))

    def _type_of(self, section: str) -> TypeFacts | None:
        name = self.document.node_at((section, "type"))
        text = name.value() if isinstance(name, Scalar) else None
        look = self.known.optimizer if section == "optimizer" else self.known.scheduler
        return look(text) if isinstance(text, str) else None

    def _parameter(self, path: Path) -> Parameter | None:
        facts = self.type_of("optimizer" if path[0] == "optimizer" else "scheduler")
        return None if facts is None else facts.parameters.get(str(path[2]))

    def __repr__(self) -> str:
        return f"Context({self.known.version}, {self.consumer.value}, {len(self.entries)} entries)"


def shown(path: Path | str) -> str:
    """Return a path as messages show it."""
    return f"`{path if isinstance(path, str) else render_path(path)}`"


def _lasting(section: Object) -> list[Member]:
    """Return the members with a key, of equal ones the one that counts."""
    members = [member for member in section if member.name is not None]
    if len({member.name for member in members}) == len(members):
        return members
    return [member for member in members if member == section.get(str(member.name))]


def _float(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None
