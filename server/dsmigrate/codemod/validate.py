"""Reads a result the way the script was read, and holds the two runs against each other.

Of both the events that matter to a training are listed in their order, each with the loops and conditions that it is
under, as far as ranks that run under the wrapper come there. What has no image was converted wrongly.
"""

from __future__ import annotations

import ast
import difflib
import functools
import itertools
import textwrap
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

from dsmigrate.codemod import targets
from dsmigrate.codemod.analysis.analysis import Analysis, analysed, raw_models, regions_around
from dsmigrate.codemod.analysis.conditions import (
    FALSE,
    MAYBE,
    MAYBE_HERE,
    TRUE,
    Condition,
    Literal,
    Plain,
    Several,
    atoms_of,
    both,
    conjuncts,
    either,
    left_of,
    negate,
)
from dsmigrate.codemod.analysis.containers import REST
from dsmigrate.codemod.analysis.events import Block, BlockKind, Event, Happening, groups_read
from dsmigrate.codemod.analysis.gradients import gradients_of
from dsmigrate.codemod.analysis.keys import condition_key, is_of_data, is_said_otherwise, key_of
from dsmigrate.codemod.analysis.precision import precision_at
from dsmigrate.codemod.analysis.roles import role_of
from dsmigrate.codemod.analysis.summaries.deepspeed import COLLECTIVE
from dsmigrate.codemod.analysis.summaries.registry import Role
from dsmigrate.codemod.analysis.training import Training
from dsmigrate.codemod.analysis.values import (
    UNBOUND,
    Choice,
    Const,
    Expr,
    Kind,
    Obj,
    Tensor,
    TensorKind,
    Value,
    each,
    forwards_in,
    owner,
    tensors_in,
)
from dsmigrate.codemod.decided import misfits
from dsmigrate.codemod.decision import Setting
from dsmigrate.codemod.idioms.facts import Facts
from dsmigrate.codemod.model import Idea
from dsmigrate.codemod.model import Kind as DecisionKind
from dsmigrate.codemod.program.project import Cache, Project, Read
from dsmigrate.codemod.settle import Settled
from dsmigrate.languages import told

_MIXED = frozenset({"torch_autocast", "fp16", "bf16"})
"""The sections of a config that run the model in mixed precision."""

_STATIC = Setting(None, static=None)
_LEFT = frozenset({"MG304", "MG307"})
"""What leaves the precision of the engine to the person."""
_NO_GRAD = frozenset({"torch.no_grad", "torch.inference_mode", "torch.set_grad_enabled"})


@dataclass(frozen=True, slots=True)
class Entry:
    """One event as it is compared: ``where`` are the loops and conditions around it, ``what`` says what happens."""

    where: tuple[str | Condition, ...]
    what: str
    event: Event

    @property
    def key(self) -> tuple[tuple[str, ...], str]:
        """What tells whether it happens in the converted script as well: where, by loops and tests, and what."""
        found: list[str] = []
        for is_loop, group in itertools.groupby(self.where, key=lambda one: isinstance(one, str)):
            here = list(group)
            parts = {part for one in here if isinstance(one, Condition) for part in conjuncts(one)}
            found += map(str, here) if is_loop else sorted(f"if {condition_key(part)}" for part in parts)
        return tuple(found), self.what


@dataclass(frozen=True, slots=True)
class Difference:
    """Where the result parts from the script: an event of the one without its image in the other."""

    original: Entry | None
    result: Entry | None

    def __str__(self) -> str:
        if self.original is None:
            return told("{what}, which the script does not do", what=_said(self.result)) if self.result else ""
        if self.result is None:
            return told("{what}, which the converted script does not do", what=_said(self.original))
        if _brief(self.original) == _brief(self.result):
            return told("{what} is not quite the same in the converted script", what=_said(self.original))
        return told(
            "{before} has become {after} in the converted script",
            before=_said(self.original),
            after=_said(self.result),
        )


def _said(entry: Entry) -> str:
    return told("{what} (line {line})", what=_brief(entry), line=entry.event.line)


def _brief(entry: Entry) -> str:
    return textwrap.shorten(entry.what, 30, placeholder=" …")


IDEAS = (
    Idea(
        "MG999",
        "The converted script does something else here",
        "dsmigrate read the result back and held it against the script: what happens here has no counterpart.",
        "Both are run abstractly, and every forward, backward, step, clip, save, load and collective has to have its image. "
        "Look at both places, and say so in an issue: it is a gap in dsmigrate.",
        "dsmigrate",
        DecisionKind.TODO,
    ),
)


def result_of(read: Read, entry: str, texts: Mapping[str, bytes], cache: Cache) -> Analysis:
    """Run a converted script; ``texts`` are the new files. What has not changed is not read again."""

    def reading(path: str) -> bytes | None:
        return texts[path] if path in texts else read(path)

    return analysed(Project(reading, entry, cache.changed(texts), [""]))


def differences(facts: Facts, after: Analysis, settled: Settled, beside: tuple[Settled, ...] = ()) -> list[Difference]:
    """What a result does otherwise than the script, as far as an abstract run shows it. ``beside``: its other trainings."""
    found: list[Difference] = []
    training = facts.training
    decides = (
        facts.options.precision == "keep"
        and targets.holds("torch_autocast", facts.options.target_version)
        and not any(one.code in _LEFT and one.kind is DecisionKind.TODO for one in settled.decisions)
    )
    patched = decides and any(  # by apex: the model runs in mixed precision wherever it is called
        "models" in event.what and event.what.get("arg_opt_level") != Const("O0")
        for event in training.events(Happening.AMP)
    )
    for wrap in {event.node: event for event in training.wraps}.values():
        group = either(*(event.condition for event in training.events(Happening.GROUP)))  # which a wrapper needs
        holds = tuple(dict.fromkeys((group, *(block.test for block in wrap.block.around()))))
        sides = (
            _Original(training, holds, patched=patched),
            _Result(after, holds, settled, decides=decides, patched=patched),
        )
        for side in sides:
            side.makes_optimizer = facts.options.optimizer == "keep" and not beside
        for one in _compared(*(_joined(side.entries()) for side in sides)):
            if str(one) not in {str(other) for other in found}:
                found.append(one)
    return [
        *found,
        *(Difference(None, Entry((), what, event)) for what, event in misfits(training, (settled, *beside), after)),
    ]


def _compared(before: list[Entry], after: list[Entry]) -> Iterator[Difference]:
    matcher = difflib.SequenceMatcher(
        None, [entry.key for entry in before], [entry.key for entry in after], autojunk=False
    )
    for tag, i1, i2, j1, j2 in matcher.get_opcodes():
        if tag == "equal":
            continue
        left, right = before[i1:i2], after[j1:j2]
        for one, other in itertools.zip_longest(left, right):
            if one is None or other is None or not _may_agree(one, other):
                yield Difference(one, other)


def _may_agree(one: Entry, other: Entry) -> bool:
    """Whether two events part by nothing but a condition that is not known, or is said in other words."""
    if one.what != other.what and not _are_losses_alike(one, other):
        return False
    ways = [_between_loops(entry.where) for entry in (one, other)]
    return list(ways[0]) == list(ways[1]) and all(
        _may_hold_together(*pair) for pair in zip(*(way.values() for way in ways), strict=True)
    )


def _are_losses_alike(one: Entry, other: Entry) -> bool:
    """Whether two backwards part by nothing but factors of data that one of the runs could follow further."""
    if not one.event.kind is other.event.kind is Happening.BACKWARD:
        return False
    factors = [
        {factor for tensor in tensors_in(entry.event["loss"]) for factor in tensor.factors} for entry in (one, other)
    ]
    bare = [
        functools.reduce(
            lambda text, factor: text.replace(f" {factor}", "", 1), sorted(found, key=len)[::-1], entry.what
        )
        for entry, found in zip((one, other), factors, strict=True)
    ]
    shared = factors[0] & factors[1]
    return bare[0] == bare[1] and all(
        "?" in factor and f"{factor[0]} data" in shared for factor in factors[0] ^ factors[1]
    )


def _may_hold_together(one: Condition, other: Condition) -> bool:
    """Whether two conditions are the same as far as both are known."""
    sides = [{condition_key(part): part for part in conjuncts(condition)} for condition in (one, other)]
    shared = sides[0].keys() & sides[1].keys()
    known = [[part for part in side.values() if not _is_unsure(part)] for side in sides]
    left, right = (both(*(part for part in parts if condition_key(part) not in shared)) for parts in known)
    is_whole, is_other_whole = (len(parts) == len(side) for parts, side in zip(known, sides, strict=True))
    if is_whole is not is_other_whole:  # the whole one says more
        left, right = (left, both(left, right)) if is_whole else (both(left, right), right)
    return is_said_otherwise(left, right)


def _is_unsure(condition: Condition) -> bool:
    return condition.unsure if isinstance(condition, Several) else condition in {MAYBE, MAYBE_HERE}


def _between_loops(where: tuple[str | Condition, ...]) -> dict[tuple[str, ...], Condition]:
    """The conditions around an event by the loops that they are in."""
    found: dict[tuple[str, ...], Condition] = {(): TRUE}
    loops: tuple[str, ...] = ()
    for one in where:
        if isinstance(one, str):
            loops = (*loops, one)
            found[loops] = TRUE
        else:
            found[loops] = both(found[loops], one)
    return found


def _joined(entries: Iterator[Entry]) -> list[Entry]:
    """One entry for what happens at one place under several conditions, as it happens to one of several things."""
    found: list[Entry] = []
    for entry in entries:
        last = found[-1] if found else None
        if (
            last is not None
            and last.event.node is entry.event.node
            and last.what == entry.what
            and last.event.kind is entry.event.kind
        ):
            loops = [one for one in last.where if isinstance(one, str)]
            if loops == [one for one in entry.where if isinstance(one, str)]:
                found[-1] = Entry(_either(last.where, entry.where), entry.what, last.event)
                continue
        found.append(entry)
    joined: list[Entry] = []
    for entry in found:
        last = joined[-1] if joined else None
        if last is not None and last.what == entry.what and _are_apart(last.where, entry.where):
            joined[-1] = Entry(_either(last.where, entry.where), entry.what, last.event)
        else:
            joined.append(entry)
    return joined


def _are_apart(one: tuple[str | Condition, ...], other: tuple[str | Condition, ...]) -> bool:
    """Whether two places are in the same loops, and a turn comes to one of them only."""
    if [part for part in one if isinstance(part, str)] != [part for part in other if isinstance(part, str)]:
        return False
    return both(*(part for part in (*_last(one), *_last(other)) if not isinstance(part, str))) is FALSE


def _last(where: tuple[str | Condition, ...]) -> tuple[str | Condition, ...]:
    """The conditions behind the last loop."""
    return where[max((index for index, part in enumerate(where) if isinstance(part, str)), default=-1) + 1 :]


def _either(one: tuple[str | Condition, ...], other: tuple[str | Condition, ...]) -> tuple[str | Condition, ...]:
    """The loops of two places, and behind the last of them the conditions of either."""
    left, right = (both(*(part for part in _last(where) if not isinstance(part, str))) for where in (one, other))
    together = either(left, right)
    return (*one[: len(one) - len(_last(one))], *(() if together is TRUE else (together,)))


class _Reader(ABC):
    """Lists the entries of one run. ``holds``: the conditions under which ranks run under the wrapper."""

    def __init__(self, analysis: Analysis, holds: tuple[Condition, ...]) -> None:
        self.analysis = analysis
        self.holds = holds
        self.told = {condition_key(part) for one in holds for part in conjuncts(one) if not isinstance(part, Plain)}
        self.asked = {condition_key(Literal(atom)): atom for one in holds for atom in atoms_of(one)}
        self.known: dict[Condition, Condition] = {}
        self.said: dict[Block, bool] = {}

    def left(self, condition: Condition) -> Condition:
        """What is left of a condition for those that run under the wrapper."""
        known = self.known.get(condition)
        if known is None:
            left = functools.reduce(left_of, self.holds, self.in_their_words(condition))
            known = self.known[condition] = self.said_otherwise(left)
        return known

    def in_their_words(self, condition: Condition) -> Condition:
        """A condition that asks what those under the wrapper ask, of their run: the things of two runs are never the same."""
        if isinstance(condition, Literal):
            return Literal(self.asked.get(condition_key(Literal(condition.atom)), condition.atom), condition.holds)
        if isinstance(condition, Several):
            return (both if condition.all_of else either)(*map(self.in_their_words, condition.parts))
        return condition

    def said_otherwise(self, condition: Condition) -> Condition:
        """A condition without what holds by its text."""
        if isinstance(condition, Plain):
            return condition
        if condition_key(condition) in self.told:
            return TRUE
        if condition_key(negate(condition)) in self.told:
            return FALSE
        if isinstance(condition, Several):
            return (both if condition.all_of else either)(*map(self.said_otherwise, condition.parts))
        return condition

    def entries(self) -> Iterator[Entry]:
        for event in self.analysis.events:
            if any(self.is_said(block) for block in event.block.around()):
                continue
            where = self.where(event.block, event)
            if where is None:
                continue
            what = self.what(event)
            if what is not None:
                yield Entry(where, what, event)

    @abstractmethod
    def what(self, event: Event) -> str | None:
        """What an event is in the list; None where it is not compared."""

    def arms_beside(self, arm: Block) -> list[Block]:
        """The branches of a call of one of several things that come under the wrapper; none for any other branch."""
        if arm.kind is not BlockKind.BRANCH or not isinstance(arm.node, ast.expr) or arm.up is None:
            return []
        arms = (item for item in arm.up.items if isinstance(item, Block) and item.node is arm.node)
        return [one for one in arms if self.left(one.test) is not FALSE]

    def is_each(self, arm: Block, event: Event) -> bool:
        """Whether a branch is one of several things that a call may be of, to all of which the same happens."""
        arms = self.arms_beside(arm)
        if not arms or self.left(arm.test) is MAYBE:
            return bool(arms)
        happened = [{self.what(one) for one in item.events() if one.kind is event.kind} for item in arms]
        return all(one == happened[0] for one in happened)

    def is_said(self, arm: Block) -> bool:
        """Whether all that happens in such a branch is what happens in the first of them."""
        known = self.said.get(arm)
        if known is None:
            arms = self.arms_beside(arm)
            happened = [[what for one in item.events() if (what := self.what(one)) is not None] for item in arms]
            known = bool(arms) and arm is not arms[0] and all(one == happened[0] for one in happened)
            self.said[arm] = known
        return known

    def where(self, block: Block, event: Event) -> tuple[str | Condition, ...] | None:
        """The loops and conditions around; None where those never come that run under the wrapper."""
        found: list[str | Condition] = []
        for one in block.around():
            if one.kind is BlockKind.LOOP:
                found.append(f"loop {_loop(one)}")
                continue
            left = self.left(one.test)
            if left is FALSE:
                return None
            if left is not TRUE and not self.is_each(one, event):
                found.append(left)
        return tuple(found[::-1])

    def settle(self, value: Value) -> list[Value]:
        """What a value may be for those that run under the wrapper."""
        if isinstance(value, Choice):
            return [
                one
                for condition, option in value.options
                if self.left(condition) is not FALSE
                for one in self.settle(option)
            ]
        return [] if value is UNBOUND else [value]

    def precision(self, event: Event) -> str:
        """Whether autocast may be on around an event, for those that run under the wrapper."""
        return "plain" if self.left(precision_at(self.analysis, event).enabled) is FALSE else "under autocast"

    def without_grad(self, event: Event) -> bool:
        return bool(regions_around(event, _NO_GRAD))

    def name(self, value: Value, models: Callable[[Value], str | None]) -> str:
        """A thing, by its role where it is the model or what belongs to it."""
        names = {models(one) or key_of(one) for one in self.settle(value)}
        return "|".join(sorted(names))


_KEPT = {
    Happening.SCHEDULE: "schedule step",
    Happening.SAVE: "save",
    Happening.READ: "read",
    Happening.GROUP_GONE: "destroy group",
    Happening.SCALER_UPDATE: "scaler update",
    Happening.GRADIENT_READ: "gradient read",
    Happening.GRADIENT_WRITE: "gradient write",
    Happening.WEIGHT_WRITE: "weight write",
    Happening.BUFFER_WRITE: "buffer write",
    Happening.RATE_WRITE: "rate write",
    Happening.GRADIENT: "autograd.grad",
    Happening.OPAQUE: "opaque call",
    Happening.COPY: "copy",
    Happening.WEIGHT_READ: "average",
}


_OF_ZERO = frozenset(
    {"arg_optimizer_class", "arg_parameters_as_bucket_view", "arg_overlap_with_ddp", "arg_process_group"}
)
"""What ZeroRedundancyOptimizer takes for itself."""


class _Side(_Reader):
    """What both sides have in common."""

    makes_optimizer = True
    """Whether the script makes one optimizer, whose options are compared."""

    @abstractmethod
    def is_model(self, value: Value) -> bool:
        """Whether a value is the plain model."""

    @abstractmethod
    def is_wrapped(self, value: Value) -> bool:
        """Whether a value is the wrapped model, or the engine."""

    @abstractmethod
    def is_before(self, event: Event) -> bool:
        """Whether an event comes before the engine is made, or where it is to be made."""

    def lines(self, event: Event) -> str:
        """The forwards that a loss comes from, by how they are written; where their inputs are moved to makes no difference."""
        forwards = forwards_in(event["loss"])
        wrapped = [forward for forward in forwards if self.is_wrapped(forward.model)]  # others may be of other runs
        lines = "+".join(sorted({_input(forward.node) for forward in wrapped or forwards}))
        return " ".join([lines, *sorted({factor for tensor in tensors_in(event["loss"]) for factor in tensor.factors})])

    @cached_property
    def saving(self) -> set[ast.AST]:
        """Calls in the arguments of a save: a copy that is made for a file is what it copies."""
        return {
            sub
            for event in self.analysis.of(Happening.SAVE)
            for sub in ast.walk(event.node)
            if isinstance(sub, ast.Call)
        }

    @cached_property
    def trained(self) -> set[ast.AST]:
        """The forwards that a backward comes from."""
        return {
            forward.node for event in self.analysis.of(Happening.BACKWARD) for forward in forwards_in(event["loss"])
        }

    def role(self, value: Value) -> str | None:
        if self.is_wrapped(value) or self.is_model(value):
            return "the model"
        if (
            isinstance(value, Obj)
            and role_of(value) is Role.REPLICAS
            and any(self.is_model(one) for one in each(value.get("module", Const(None))))
        ):
            return "the model"
        if isinstance(value, Obj) and "copy_of" in value.data and value.node in self.saving:
            return self.role(value.data["copy_of"])
        if isinstance(value, Expr) and value.op == "copy" and (copied := self.role(value.args[0])) is not None:
            return copied if value.args[1] in self.saving else f"a copy of {copied}"
        if (
            isinstance(value, Obj)
            and "copy_of" in value.data
            and (copied := self.role(value.data["copy_of"])) is not None
        ):
            return f"a copy of {copied}"
        if isinstance(value, Obj) and role_of(value) is Role.OPTIMIZER:
            return "the optimizer"
        return None

    def common(self, event: Event) -> str | None:
        """The events that have to be the same on both sides."""
        match event.kind:
            case Happening.FORWARD if any(
                self.is_wrapped(one) or self.is_model(one) for one in self.settle(event["model"])
            ):
                wrapped = any(self.is_wrapped(one) for one in self.settle(event["model"]))
                if (
                    not wrapped
                    and event["method"] != Const("")
                    and all(isinstance(one, Expr) for one in self.settle(event["model"]))
                ):
                    return None  # of a model that is not read, which is known to be one from its wrap on only
                if not wrapped and self.is_beside(event):
                    return None
                grad = (
                    ""
                    if self.without_grad(event)
                    else " with gradients" + (", averaged" if wrapped and event.node in self.trained else "")
                )
                method = (
                    f" by {event['method'].value}"
                    if isinstance(event["method"], Const) and event["method"].value
                    else ""
                )
                return f"forward{method}{grad}, {self.forward_precision(event, wrapped=wrapped and not method)}"
            case Happening.SAVE:
                return f"save {self.content(event['content'])} to {self.name(event['path'], self.role)}"
            case Happening.READ:
                return f"read {self.name(event['path'], self.role)}"
            case Happening.RESTORE:
                return f"restore {self.name(event['of'], self.role)} from {self.content(event['content'])}"
            case Happening.STATE if groups_read(event) is None:
                return f"state of {self.name(event['of'], self.role)}"
            case Happening.COLLECTIVE if isinstance(event["name"], Const) and event["name"].value not in COLLECTIVE:
                return f"collective {event['name'].value}"
            case Happening.RATE_WRITE:
                return f"rate write {key_of(event['key'])} = {key_of(event['value'])}"
            case Happening.OPAQUE:
                given = [value for name, value in event.what.items() if name.startswith("thing")]
                ours = [one for value in given for one in self.settle(value) if self.role(one) is not None]
                if not ours or (self.is_before(event) and all(isinstance(one, Expr) for one in ours)):
                    return None  # of data alone, or of an unread model, which is known for one from its wrap on
                return f"opaque call of {key_of(event['function'])} with {', '.join(sorted({self.name(one, self.role) for one in given}))}"
            case Happening.MADE if event["role"] == Const("optimizer") and self.makes_optimizer:
                options = [
                    f"{name} {key_of(value)}"
                    for name, value in sorted(event.what.items())
                    if name.startswith("arg_") and name not in _OF_ZERO
                ]
                return f"optimizer with {', '.join([key_of(event['arguments']), *options])}"
            case Happening.EPOCH:
                return f"set_epoch({key_of(event['epoch'])})"
            case Happening.SCHEDULE:
                return f"schedule step of {key_of(event['scheduler'])}"
            case Happening.COPY if event.node in self.saving:
                return None
            case _ if event.kind in _KEPT:
                of = event.what.get("of", Const(None))
                return f"{_KEPT[event.kind]} {self.content(of)}".strip()
        return None

    def is_beside(self, event: Event) -> bool:
        """Whether a call is of the wrapped model on other ways: on this one nothing has wrapped it."""
        arm = event.block
        if arm.kind is not BlockKind.BRANCH or arm.node is not event.node or arm.up is None:
            return False
        arms = [item for item in arm.up.items if isinstance(item, Block) and item.node is arm.node]
        others = [
            one for item in arms for one in item.items if isinstance(one, Event) and one.kind is Happening.FORWARD
        ]
        return any(self.is_wrapped(one) for other in others for one in self.settle(other["model"]))

    def forward_precision(self, event: Event, *, wrapped: bool) -> str:
        """The precision that the model is run in."""
        return self.precision(event)

    def content(self, value: Value, depth: int = 0) -> str:
        """What is in a checkpoint, or another thing that is handed on."""
        parts: list[str] = []
        plain: list[Value] = []
        for one in self.settle(value):
            named = self.role(one)
            if named is not None:
                parts.append(named)
            elif isinstance(one, Obj) and "state_dict_of" in one.data:
                parts.append(f"state of {self.name(one.data['state_dict_of'], self.role)}")
            elif (
                isinstance(one, Obj)
                and one.kind is Kind.DICT
                and list(one.own) == [REST]
                and (states := _renamed(one.own[REST]))
            ):
                parts += [
                    f"state of {self.name(owner(state.of), self.role)}"
                    if isinstance(state, Tensor) and state.of is not None
                    else self.content(state, depth)
                    for state in states
                ]
            elif isinstance(one, Obj) and one.kind in {Kind.DICT, Kind.LIST} and depth < 3:
                inner = ", ".join(f"{key}: {self.content(item, depth + 1)}" for key, item in one.own.items())
                parts.append("{" + inner + "}")
            elif isinstance(one, Tensor):
                of = "" if one.of is None else f" of {self.role(owner(one.of)) or key_of(one.of)}"
                parts.append(f"{one.kind.value}{of}")
            else:
                plain.append(one)
        parts += ["data"] if any(map(is_of_data, plain)) else map(key_of, plain)
        return "|".join(sorted(dict.fromkeys(parts)))


def _renamed(value: Value) -> list[Value]:
    """The dictionaries whose values another one has under other names: ``{rename(name): weight for name, weight in state.items()}``."""
    found: list[Value] = []
    for one in each(value):
        match one:
            case Expr(op="item", args=(Expr(op="each", args=(Expr(op="method", args=(state, "items", *_)), *_)), *_)):
                found.append(state)
            case Tensor(kind=TensorKind.WEIGHT, of=of) if of is not None:
                found.append(one)
            case _ if one is not UNBOUND:
                return []
    return list(dict.fromkeys(found))


class _Original(_Side):
    """The script as it is."""

    def __init__(self, training: Training, holds: tuple[Condition, ...], *, patched: bool) -> None:
        super().__init__(training.analysis, holds)
        self.training = training
        self.patched = patched
        gradients = gradients_of(training)
        self.unseen = gradients.of_zeroing() | {read for call in gradients.norm_calls() for read in call.reads}
        """Reads of gradients whose zeroing goes, or whose norm the engine gives."""

    def is_model(self, value: Value) -> bool:
        return owner(value) in self.training.models

    def is_wrapped(self, value: Value) -> bool:
        return self.training.is_wrapper(value)

    def is_before(self, event: Event) -> bool:
        return self.training.is_before(event)

    def forward_precision(self, event: Event, *, wrapped: bool) -> str:
        patched = wrapped and self.patched and not self.without_grad(event)  # what is not trained may run outside of it
        return "under autocast" if patched else self.precision(event)

    def what(self, event: Event) -> str | None:
        if event.kind is Happening.BACKWARD and event in self.training.backwards:
            return f"backward of {self.lines(event)}"
        if event.kind is Happening.STEP and event in self.training.steps:
            return "step"
        if event in self.unseen or (event.kind is Happening.SCALER_UPDATE and "library" in event.what):
            return None
        return self.common(event)


class _Result(_Side):
    """The converted script."""

    def __init__(
        self, analysis: Analysis, holds: tuple[Condition, ...], settled: Settled, *, decides: bool, patched: bool
    ) -> None:
        super().__init__(analysis, holds)
        self.settled = settled
        self.patched = patched
        self.decides = decides
        """Whether the engine runs the model in the precision of its config, in whatever region it is called."""
        wraps = [
            event
            for event in analysis.of(Happening.WRAP)
            if any(isinstance(one, Obj) and role_of(one) is Role.ENGINE for one in each(event["wrapper"]))
        ]
        self.engines = {one for event in wraps for one in each(event["wrapper"])}
        self.made = min((event.number for event in wraps), default=0)
        self.models = {model for event in wraps for model in raw_models(analysis.run, event["module"])}

    def is_model(self, value: Value) -> bool:
        return owner(value) in self.models

    def is_wrapped(self, value: Value) -> bool:
        return value in self.engines

    def is_before(self, event: Event) -> bool:
        return event.number < self.made

    def forward_precision(self, event: Event, *, wrapped: bool) -> str:
        region = self.precision(event)
        if not wrapped or not self.decides or (self.patched and self.without_grad(event)):
            return region
        if not self.settled.config.keys() & _MIXED:
            return "plain" if region == "plain" else "plain, in a region that the engine switches off"
        switched = any(one.config.get("torch_autocast.enabled", _STATIC).code for one in self.settled.decisions)
        if self.patched or switched:
            return region if switched and not self.patched else "under autocast"
        return "under autocast" if region != "plain" else "under autocast, outside of the region"

    def what(self, event: Event) -> str | None:
        if event.kind is Happening.BACKWARD:
            return f"backward of {self.lines(event)}" if "engine" in event.what else "backward without the engine"
        if event.kind is Happening.STEP:
            return "step" if "engine" in event.what else "step without the engine"
        if event.kind is Happening.SCALER_UPDATE and "library" in event.what:
            return None
        return self.common(event)


def _input(node: ast.AST) -> str:
    if not isinstance(node, ast.Call) or not node.args:
        return ""
    given = node.args[0]
    while isinstance(given, ast.Call) and isinstance(given.func, ast.Attribute) and given.func.attr in {"to", "cuda"}:
        given = given.func.value
    return ast.unparse(given).replace(".module(", "(")


def _loop(block: Block) -> str:
    node = block.node
    if isinstance(node, ast.For | ast.AsyncFor):
        return ast.unparse(node.target)
    if isinstance(node, ast.While):
        return "while"
    return ast.unparse(node) if isinstance(node, ast.expr) else "turns"
