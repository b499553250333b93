"""One side of a comparison: a config as one release and one consumer see it, by canonical path."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property

from dsmigrate.diff.legacy import rewritten
from dsmigrate.diff.meaning import READ, converted
from dsmigrate.diff.model import Spot
from dsmigrate.document import Array, Node, Object, Path, render_path
from dsmigrate.editing.derived.batch import KEYS, Triad, triad
from dsmigrate.editing.view import View
from dsmigrate.knowledge import MISSING, Key, Knowledge, TypeFacts, paths
from dsmigrate.rules import Finding
from dsmigrate.rules.batch._shared import DATA, SEQUENCE
from dsmigrate.rules.context import TYPED, UNKNOWN, Context
from dsmigrate.rules.optimizer._shared import Build, build_of, decays_like_l2
from dsmigrate.rules.scheduler._shared import default_peak

_OVERLAP = "zero_optimization.overlap_comm"
_BREAKDOWN = "wall_clock_breakdown"
_PEAK = "scheduler.params.warmup_max_lr"
_TYPES = tuple(f"{section}.type" for section in TYPED)
_PARAMS_OF = tuple(f"{section}.params" for section in TYPED)
_PARAMS = tuple((section, "params") for section in TYPED)


class Side:
    """A config with what it means. Explanations ask ``value(path)``; ``given`` is what the file itself says.

    Paths are dotted and canonical: ``bf16.enabled`` for ``bfloat16``, the successor for a deprecated key that DeepSpeed
    rewrites, the documented name for another spelling.
    """

    def __init__(self, view: View, name: str, other: Knowledge | None = None) -> None:
        """Look at ``view``; ``name`` is what reports call it, ``other`` the keys of the release it is compared with.

        A key that the other release has under a new name goes by that name.
        """
        self.view = view
        self.name = name
        self._other = other or view.known
        self._values: dict[str, object] = {}

    @property
    def known(self) -> Knowledge:
        """The keys of the release of this side."""
        return self.view.known

    @property
    def context(self) -> Context:
        """The config as rules see it: stage, devices, switches."""
        return self.view.context

    @cached_property
    def given(self) -> dict[str, tuple[object, Spot]]:
        """The leaves that the file writes, by canonical path: value as DeepSpeed rewrites it, and place.

        A leaf is anything but an object whose keys are known one by one; a section that does something by being there
        is one as well, with the value ``{}``. Keys that nobody knows are leaves under the path they are written at. Of
        two spellings of one key the one that DeepSpeed takes counts.
        """
        found: dict[str, tuple[object, Spot]] = {}
        root = self.view.document.root
        if isinstance(root, Object):
            for path, node, spot in self._leaves(root, ()):
                key = self.known.key(path)
                value: object = {} if isinstance(node, Object) and key is not None and key.is_section else node.value()
                target = rewritten(self.known, key, value) if key is not None else None
                if target is not None and target[0]:
                    found.setdefault(target[0], (target[1], spot))
                else:
                    found[self._canonical(path, key)] = value, spot
        return found

    @cached_property
    def findings_at(self) -> dict[Path, list[Finding]]:
        """The findings of the rules by the path of the member that they are about."""
        found: dict[Path, list[Finding]] = {}
        for finding in self.view.findings:
            found.setdefault(finding.path, []).append(finding)
        return found

    @cached_property
    def sections(self) -> frozenset[str]:
        """The canonical paths of the sections in which the file gives something."""
        return frozenset(section for path in self.given for section in paths.ancestors(path))

    @cached_property
    def triad(self) -> Triad | None:
        """The batch as DeepSpeed computes it; None where the keys make no sense."""
        return triad(self.context)

    @property
    def is_rejected(self) -> bool:
        """Whether rules say for certain that DeepSpeed, or the consumer, refuses the config."""
        from dsmigrate.rules import Effect, Severity  # noqa: PLC0415 - the rules are asked late

        return any(
            finding.effect is Effect.REJECTED and finding.severity is Severity.ERROR for finding in self.view.findings
        )

    def value(self, path: str) -> object:
        """Return what DeepSpeed takes for a key: value or default as its models convert it, UNKNOWN, or MISSING.

        MISSING is a key without value and default. Deprecated keys count for their successors, batch keys that are left
        out are what DeepSpeed computes, and ``overlap_comm`` that is left unset follows the stage.
        """
        if path not in self._values:
            self._values[path] = self._value(path)
        return self._values[path]

    def is_on(self, path: str) -> bool | None:
        """Return whether a switch is on; None when that is unknown."""
        value = self.value(path)
        return None if value is UNKNOWN else bool(value)

    def number(self, path: str) -> int | float | None:
        """Return the value of a key as a number; None when it is none, or unknown. ``true`` counts as 1."""
        value = self.value(path)
        return +value if isinstance(value, (int, float)) else None

    def written(self, path: str) -> object:
        """Return the value as the file has it, or MISSING."""
        return self.given[path][0] if path in self.given else MISSING

    def reads(self, path: str) -> bool:
        """Return whether this release takes anything from a key, other than that it refuses the config for it."""
        key = self.known.key(path)
        if path in self.given and self._is_moved(path):
            return True
        if key is not None:
            return key.status in READ
        return self._is_parameter(path) and self.value(f"{path.partition('.')[0]}.type") not in (MISSING, None)

    def refuses(self, path: str) -> bool:
        """Return whether the presence of a key is an error in this release: removed, or unknown where none may be."""
        key = self.known.key(path)
        if key is not None and key.status in READ:
            return False
        if key is not None and key.status.value == "rejected":
            return True
        return self.known.rejects_unknown_keys(paths.parent(paths.spelled(path)))

    def meant(self, path: str) -> object:
        """Return what DeepSpeed's config holds for a leaf: a value, a default, MISSING or UNKNOWN.

        A key that nobody reads is MISSING, whatever it says; one that is refused is what the file says.
        """
        if not self.reads(path):
            return self.written(path) if self.refuses(path) else MISSING
        key = self.known.key(path)
        if key is not None and (key.is_section or path in _PARAMS_OF):
            return self._section(path, key)
        if key is not None and self.value(path) is not UNKNOWN and rewritten(self.known, key, self.value(path)):
            return MISSING  # whatever it says is told at the key that DeepSpeed moves it to
        return self.value(path)

    def path_of(self, path: Path) -> str:
        """Return the canonical path of a path of nodes."""
        key = self.known.key(path)
        target = rewritten(self.known, key, True) if key is not None and not key.is_section else None  # noqa: FBT003
        return target[0] if target is not None and target[0] else self._canonical(path, key)

    def fills(self, path: str) -> bool:
        """Return whether the consumer decides a value: it fills in "auto", or overwrites what is there."""
        return self.reads(path) and self.context.value(path) is UNKNOWN

    def _section(self, path: str, key: Key) -> object:
        written = self.written(path)
        if written is MISSING or (written is None and "null" in key.type):
            return MISSING
        return written if written != {} or key.acts_by_presence else MISSING

    def _value(self, path: str) -> object:
        key = self.known.key(path)
        if path in KEYS:
            return self._batch(path)
        value = self.context.value(path)
        if path in self.given and self.given[path][1].path and value is not UNKNOWN and self._is_moved(path):
            value = self.given[path][0]
        if self._is_parameter(path):
            return self._parameter(path, value)
        if path in _TYPES:
            return self._type(path, value)
        value = converted(key, value)
        if path == SEQUENCE and value == 1 and self.context.value(DATA) is MISSING:
            return MISSING
        if path == _OVERLAP and value is None:
            return UNKNOWN if self.context.stage is None else self.context.stage == 3
        if path == _BREAKDOWN and value in (False, MISSING, None):
            return self.value("flops_profiler.enabled")
        return value

    def _type(self, path: str, value: object) -> object:
        """Return the name of an optimizer or scheduler type as it is documented, whatever case it is written in."""
        facts = self.context.type_of("optimizer" if path.startswith("optimizer") else "scheduler")
        return facts.name if facts is not None and isinstance(value, str) else value

    def _batch(self, path: str) -> object:
        value = self.context.value(path)
        if value not in (MISSING, None):
            return value
        number = self.triad.value(path) if self.triad is not None else None
        return UNKNOWN if number is None else number

    def _parameter(self, path: str, value: object) -> object:
        """Return a parameter of an optimizer or scheduler: as written, else the default of the type that is built."""
        facts = self.context.type_of("optimizer" if path.startswith("optimizer") else "scheduler")
        parameter = None if facts is None else facts.parameters.get(path.rpartition(".")[2])
        if facts is None or value is not MISSING or parameter is None:
            return value
        if parameter.torch_default is not MISSING and self._is_torch_adamw(facts):
            return parameter.torch_default
        if path != _PEAK:
            return parameter.default
        default = default_peak(self.context, parameter)
        return self._rate() if default is MISSING else default

    def _is_torch_adamw(self, facts: TypeFacts) -> bool:
        return build_of(self.context, facts) is Build.TORCH and not decays_like_l2(self.context, facts)

    def _rate(self) -> object:
        """Return the learning rate of the optimizer: the file's, or UNKNOWN for that of the script."""
        rate = self.value("optimizer.params.lr")
        return UNKNOWN if rate is MISSING else rate

    def _is_moved(self, path: str) -> bool:
        """Return whether the file says it at another place, which DeepSpeed rewrites."""
        key = self.known.key(self.given[path][1].path)
        return key is not None and path not in {key.path, key.alias_of} and "*" not in key.path and "[]" not in key.path

    def place(self, path: str) -> Path:
        """Return the path of nodes at which the file has a key, or would have it."""
        return self.given[path][1].path if path in self.given else tuple(path.split("."))

    @staticmethod
    def _is_parameter(path: str) -> bool:
        return path.startswith(("optimizer.params.", "scheduler.params."))

    def _canonical(self, path: Path, key: Key | None) -> str:
        if key is None or "*" in key.path or "[]" in key.path or self._is_passed_over(path):
            return render_path(path)
        return self._new_name(key) or key.alias_of or key.path

    def _new_name(self, key: Key) -> str:
        """Return the name of a key in the other release, where only that one has it; "" for none."""
        if self._other is self.known or key.status not in READ or len(key.successors) != 1 or key.is_section:
            return ""
        there, successor = self._other.key(key.path), self._other.key(key.successors[0])
        if there is None or there.status in READ or successor is None or successor.status not in READ:
            return ""
        own = self.known.key(successor.path)
        return successor.path if own is None or own.status not in READ else ""

    def _is_passed_over(self, path: Path) -> bool:
        """Return whether it stands in a section under its other name, while the section itself is there as well."""
        section = self.known.key(path[:1])
        if section is None or section.alias_of is None:
            return False
        node = self.view.document.node_at((section.alias_of,))
        return node is not None and node.value() is not None

    def _leaves(self, section: Object, path: Path) -> Iterator[tuple[Path, Node, Spot]]:
        for member in section:
            node = member.node
            if member.name is None or node is None:
                continue
            here = (*path, member.name)
            key = self.known.key(here)
            inside = (key is not None and key.is_section) or self.known.takes_any_name(path) or here in _PARAMS
            spot = Spot(here, member.start, member.end)
            if isinstance(node, Object) and len(node) and inside:
                if key is not None and key.acts_by_presence:
                    yield here, node, spot
                yield from self._leaves(node, here)
            elif isinstance(node, Array) and inside and any(isinstance(item, Object) for item in node):
                for index, item in enumerate(node):
                    if isinstance(item, Object):
                        yield from self._leaves(item, (*here, index))
            else:
                yield here, node, spot
