"""The machine that a script is run on: its state, what is assumed, branches and loops, frames, objects and modules.

What statements, expressions and calls do is said by the modules around it; ``run.Machine`` puts them together.
"""

from __future__ import annotations

import ast
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

from dsmigrate.codemod.analysis.conditions import (
    FALSE,
    MAYBE,
    TRUE,
    Assumed,
    Condition,
    Literal,
    atoms_of,
    both,
    either,
    is_unsure,
    negate,
    options_of,
    outside,
    under,
    unknown,
)
from dsmigrate.codemod.analysis.events import Block, BlockKind, Event, Happening
from dsmigrate.codemod.analysis.state import Changes, State, choose
from dsmigrate.codemod.analysis.values import (
    FALSE_VALUE,
    NONE,
    TRUE_VALUE,
    UNBOUND,
    Choice,
    Const,
    Context,
    Expr,
    Kind,
    Lazy,
    Lib,
    Member,
    Obj,
    Tensor,
    Tup,
    Value,
    each,
    may_vary,
    reached_from,
)
from dsmigrate.codemod.program.module import Module, Names
from dsmigrate.codemod.program.project import ROOT, Project

TURNS = 8
"""Turns of a loop after which what still changes is taken for unknown."""

_IMPATIENT = 2
"""Turn of a loop after which all plain data that is written in it is taken for changing, so that it comes to an end."""

UNROLLED = 8
"""Items of a list that is written out, up to which a loop over it is run item by item."""

SIFTED = 64
"""The same, of a comprehension that leaves some out, or makes a dictionary."""

_TRAINS = re.compile(r"DistributedDataParallel|init_process_group|\.backward\(|GradScaler|\.zero_grad\(|\bsys\.path\b")
"""Words of libraries in modules that are run when they are imported; others when a name of theirs is asked for."""


_LIBRARIES = frozenset(
    ["torch", "torchvision", "torchaudio", "numpy", "transformers", "torch_geometric", "dgl", "deepspeed", "apex"]
)
"""Packages that are libraries also where a project is their own source."""


OnYield: TypeAlias = Callable[[Value], Value]
"""What is done with a value that a generator yields; gives what is sent back."""


@dataclass(frozen=True, slots=True)
class Given:
    """The arguments of a call. ``more``: what ``*args`` and ``**kwargs`` that are not known item by item hold."""

    args: tuple[Value, ...] = ()
    named: Mapping[str, Value] = field(default_factory=dict)
    more: tuple[Value, ...] = ()

    def get(self, index: int | None, name: str, default: Value = UNBOUND) -> Value:
        """An argument by its position or its name."""
        if name in self.named:
            return self.named[name]
        if index is not None and index < len(self.args):
            return self.args[index]
        return default

    def all(self) -> tuple[Value, ...]:
        """Every value that is given, positional ones first."""
        return (*self.args, *self.named.values(), *self.more)

    def behind(self, *first: Value) -> Given:
        """The same with positional arguments before the others."""
        return Given((*first, *self.args), self.named, self.more)


_OF_OPTIMIZERS = frozenset({"step", "zero_grad", "param_groups", "add_param_group"})
_LANDMARKS = frozenset((Const("optimizer"), Const("scaler")))
"""What notes a moment when it is made."""


def kept(obj: Obj) -> list[tuple[Condition, Value, Given]]:
    """The functions and arguments of a call that ``Machine.keep`` noted, each under its condition."""
    found = []
    for condition, call in options_of(obj.get("call", UNBOUND)):
        assert isinstance(call, Tup)
        function, *parts = call.items
        args, named, more = (part.items for part in parts if isinstance(part, Tup))
        pairs = (pair.items for pair in named if isinstance(pair, Tup))
        words = {str(name.value): value for name, value in pairs if isinstance(name, Const)}
        found.append((condition, function, Given(args, words, more)))
    return found


def sources(of: Obj) -> tuple[Value, ...]:
    """What an iterator goes over, by itself or item by item."""
    held = [(condition, one.items) for condition, one in options_of(of.get("of", UNBOUND)) if isinstance(one, Tup)]
    if len(held) < 2:
        return held[0][1] if held else ()
    return tuple(
        choose([(condition, items[index]) for condition, items in held])
        for index in range(min(len(items) for _, items in held))
    )


@dataclass(frozen=True, slots=True)
class Exit:
    """A way out of a function or a loop: under which condition, with which changes since its start, with what."""

    condition: Condition
    changes: Changes
    value: Value = NONE


WaysOut: TypeAlias = "list[tuple[list[Exit], int]]"
"""Lists of ways out of a function and its loops, with how many each has."""


@dataclass(frozen=True, slots=True)
class Stop:
    """That a run does not come back from a function or a statement. ``is_error``: it ends there for all ranks alike."""

    condition: Condition
    is_error: bool


@dataclass(frozen=True, slots=True, eq=False)
class Narrowed:
    """What is left of what a name or an attribute is bound to, where a test of it has come out."""

    of: Obj
    key: str
    bound: Value
    left: Value


@dataclass(eq=False, slots=True)
class Frame:
    """A function, class body or module that is being run. ``obj`` holds its names; ``outer`` is around it in the text."""

    obj: Obj
    node: ast.AST
    module: Module
    top: Obj
    outer: Frame | None
    names: Names | None = None
    cls: Obj | None = None
    first: Value = NONE
    mark: int = 0
    conditions: int = 0
    exits: list[Exit] = field(default_factory=list)
    stops: list[Stop] = field(default_factory=list)
    loops: list[Turn] = field(default_factory=list)
    on_yield: OnYield | None = None
    is_class: bool = False
    narrowed: Mapping[str, Narrowed] = field(default_factory=dict)
    """What is left of what names are bound to, where tests of them have come out: see narrowing.py."""


@dataclass(frozen=True, slots=True, eq=False)
class Moment:
    """Right behind a statement in which something was wrapped or an optimizer made: what names hold, who has a wrapper."""

    node: ast.stmt
    module: Module
    context: Context
    block: Block
    names: tuple[Mapping[str, Value], ...]
    holders: Mapping[tuple[Obj, Any], Value]
    optimizers: frozenset[tuple[Obj, Any]]
    """Who has an optimizer."""
    number: int
    """Of the last event before it."""


@dataclass(eq=False, slots=True)
class Turn:
    """One turn of a loop: where it went on early, and where it left."""

    mark: int
    conditions: int
    continues: list[Exit] = field(default_factory=list)
    breaks: list[Exit] = field(default_factory=list)


DEAD = FALSE
"""What a statement gives that nothing follows; others give the condition under which the next one runs."""


RANK = Expr("rank", varies=True)


class Machine(ABC):
    """The run of one entry script: ``root`` holds the events, ``state`` what is left."""

    turn = 0
    """Which turn of a loop this is, among all turns of the run; 0 outside of loops."""
    turns = 0
    in_forward = 0
    landmarks = 0
    """Wraps and optimizers that were made so far."""
    steps = 0
    events = 0
    loops: tuple[ast.AST, ...] = ()
    unrolled = ""
    """The items of the lists around that are gone over one by one: what is unread of each is its own."""

    def __init__(self, project: Project, optimizers: frozenset[Any] = frozenset()) -> None:  # noqa: PLR0915 - what a run knows
        self.project = project
        self.optimizers_by_use = optimizers
        """Which unread calls give optimizers, as an earlier run showed."""
        self.used: dict[Value, set[str]] = {}
        """The methods and attributes of optimizers that are used of symbols."""
        self.given_by: dict[Value, tuple[ast.AST, Context]] = {}
        """The calls that give symbols, the innermost of each."""
        self.state = State()
        self.root = Block(BlockKind.ENTRY, None, None, None)
        self.block = self.root
        self.assumed = Assumed()
        self._sought: set[Lazy] = set()
        self.conditions: list[Condition] = []
        self.context = Context(None, None)
        self.frames: list[Frame] = []
        self.modules: dict[str, Obj] = {}
        self.dotted: dict[str, Obj] = {}
        """The files that were imported by their dotted names."""
        self.called: set[Module] = set()
        """The files of the functions that were called."""
        self.sizes: dict[Expr, Value] = {}
        """The argument ``batch_size`` of unread calls, by what they give."""
        self.handed: set[ast.AST] = set()  # calls of code that is not read, which are given a function of the script
        self.asked: set[str] = set()
        """Variables of the environment that are asked for by key, without a default."""
        self.required: list[tuple[tuple[Condition, ...], Condition]] = []
        """Conditions under which a run ends with an error unless others hold."""
        self.paths: list[tuple[str, Condition]] = []
        """Options of the command line that are taken for paths, and under which conditions."""
        self.made: dict[tuple[Any, ...], Obj] = {}
        self.shadows: dict[Expr, Obj] = {}
        self.held: dict[Expr, frozenset[Value]] = {}
        """What the unread calls were given whose results are these symbols."""
        self.known_ranks: set[Value] = set()  # what the process group was told to be the rank of this process
        self.known_models: set[Value] = set()
        """Symbols that are models, as they were wrapped or handed to an optimizer."""
        self.ending: set[ast.AST] = set()
        """Branches one arm of which ends the process, or raises."""
        self.demanded: list[Block] = []
        """The modules that were run when they were first asked for: they come before all else in the end."""
        self.flags = Obj(Kind.FRAME, None, self.context)
        self.flags.own["initialized"] = FALSE_VALUE  # the process group
        """What is so of the process: whether it is in a group."""
        self.fresh: list[set[Obj]] = []
        """The objects that the calls which are being run have made."""
        self.memory: dict[Any, list[Any]] = {}  # what calls did: see calls.py
        self._copies: dict[Obj, tuple[int, Mapping[str, Value]]] = {}
        self.wrappers: set[Obj] = set()
        self.optimizers: set[Obj] = set()
        self.invariants: dict[tuple[ast.AST, Context], Changes] = {}
        """What changes in the loops that have been run, and what it may be at their heads."""
        self.twins: dict[
            ast.AST, ast.AST
        ] = {}  # for loops of which is only asked what code of the script hands on in them
        self.moments: dict[tuple[ast.stmt, Context], Moment] = {}
        self._originals: dict[Block, Block] = {}
        self.stops: list[Stop] = []
        """Where what the present statement calls does not come back."""

    # -- entry ----------------------------------------------------------------------------------------------------

    def _module_object(self, module: Module, name: str) -> Obj:
        top = Obj(Kind.MODULE, module.tree, self.context, module, data={"name": name, "ran": False, "stars": []})
        self.modules[module.path] = top
        top.own["__name__"] = Const(name)
        top.own["__file__"] = Const(ROOT + module.path)
        return top

    def _run_module(self, top: Obj) -> None:
        assert top.module is not None
        top.data["ran"] = True
        frame = Frame(top, top.module.tree, top.module, top, None)
        frame.mark = self.state.mark()
        frame.conditions = len(self.conditions)
        self.frames.append(frame)
        try:
            self.body(top.module.tree.body)
        finally:
            self.frames.pop()

    def demand(self, top: Obj) -> None:
        """Run a module of the project that has not been run, as its import did, whatever is going on here."""
        if top.data["ran"] or top.module is None:
            return
        kept = self.state, self.block, self.assumed, self.conditions, self.loops, self.context
        self.state = State(self.state.made)
        self.block = Block(BlockKind.MODULE, None, top.module, self.root)
        self.demanded.append(self.block)
        self.assumed, self.conditions, self.loops = Assumed(), [], ()
        self.context = Context(None, top.module.tree)
        try:
            self._run_module(top)
        finally:
            self.state, self.block, self.assumed, self.conditions, self.loops, self.context = kept

    def imported(self, dotted: str) -> Value:
        """The module of a dotted name: of the project, run or not, or of a library."""
        if dotted.rpartition(".")[2] == "ds_compat":  # what conversions wrote is known without being run
            return Lib("ds_compat")
        path = None if dotted.split(".", maxsplit=1)[0] in _LIBRARIES else self.project.find(dotted)
        if path is None:
            return Lib(dotted)
        if path not in self.modules:
            module = self.project.module(path, dotted)
            if module is None:
                return Lib(dotted)
            top = self.dotted[dotted] = self._module_object(module, dotted)
            parent, _, last = dotted.rpartition(".")
            if parent:
                above = self.imported(parent)
                if isinstance(above, Obj):
                    above.own.setdefault(last, top)
            if path.endswith("__init__.py") or self.project.speaks_of(path, _TRAINS):
                self.demand(top)
        return self.modules[path]

    # -- where we are ----------------------------------------------------------------------------------------------

    @property
    def frame(self) -> Frame:
        """The scope of the code that is being run."""
        return self.frames[-1]

    def event(self, kind: Happening, node: ast.AST, **what: Value) -> Event:
        """Note something that happens now."""
        self.events += 1
        frame = self.frame
        event = Event(kind, node, frame.module, self.context, self.block, what, self.names_here(), self.events)
        if kind is Happening.WRAP:
            self.wrappers.update(one for one in each(what["wrapper"]) if isinstance(one, Obj))
        if kind is Happening.MADE and what["role"] == Const("optimizer"):
            self.optimizers.update(one for one in each(what["what"]) if isinstance(one, Obj))
        self.landmarks += _is_landmark(event)
        self.block.items.append(event)
        return event

    def names_here(self) -> tuple[Mapping[str, Value], ...]:
        """The names that are bound here, of the function, of those around it, and of the module."""
        found: list[Mapping[str, Value]] = []
        frame: Frame | None = self.frame
        while frame is not None:
            if not frame.is_class:
                found.append(self._names_of(frame.obj))
            frame = frame.outer
        return tuple(found)

    def _names_of(self, obj: Obj) -> Mapping[str, Value]:
        """What an object holds now; the same copy as long as nothing has changed."""
        known = self._copies.get(obj)
        if known is None or known[0] != obj.version:
            known = self._copies[obj] = (obj.version, dict(obj.own))
        return known[1]

    @contextmanager
    def inside(
        self, kind: BlockKind, node: ast.AST | None, label: Value | None = None, module: Module | None = None
    ) -> Iterator[Block]:
        """Let what happens be part of a block; an empty one leaves no trace."""
        outer = self.block
        block = Block(kind, node, module or self.frame.module, outer, label)
        outer.items.append(block)
        self.block = block
        try:
            yield block
        finally:
            self.block = outer
            if not block.items and outer.items and outer.items[-1] is block:
                outer.items.pop()

    def happen_again(self, block: Block) -> None:
        """Let what happened in a call happen here too."""
        made: dict[Block, Block] = {}
        copy = block.copied(self.block, made)
        copy.names = self.names_here()
        self.block.items.append(copy)
        self.landmarks += sum(map(_is_landmark, copy.events()))
        for key, moment in self.moments.items():  # which may be of a copy that a turn of a loop has left behind
            now = made.get(moment.block) or made.get(self._originals.get(moment.block, moment.block))
            if now is not None:
                self.moments[key] = replace(moment, block=now)
        self._originals.update((new, old) for old, new in made.items())

    @contextmanager
    def assuming(
        self, condition: Condition, node: ast.AST | None, *, kind: BlockKind = BlockKind.BRANCH
    ) -> Iterator[None]:
        """Run something under a condition."""
        mark, ahead = self.assumed.mark(), len(self.stops)
        self.conditions.append(condition)
        self.assume(condition)
        try:
            with self.inside(kind, node) as block:
                block.test = condition
                block.names = self.names_here()
                yield
        finally:
            self.conditions.pop()
            self.assumed.forget(mark)
            self.stops[ahead:] = [Stop(both(condition, stop.condition), stop.is_error) for stop in self.stops[ahead:]]

    def assume(self, condition: Condition) -> None:
        """Take a condition for given from here on, to the end of the arm."""
        self.assumed.add(condition)

    def _looked_up(self, value: Lazy) -> Value:
        if value in self._sought and isinstance(value.module.own.get(value.name, value), Lazy):
            return Expr("unfound", value.module.data["name"], value.name)  # modules that import a name from one another
        self._sought.add(value)
        try:
            return self.settle(self.member_of_module(value.module, value.name))
        finally:
            self._sought.discard(value)

    def settle(self, value: Value) -> Value:
        """A value with what is assumed here taken into account, and names of modules looked up."""
        if isinstance(value, Lazy):
            return self._looked_up(value)
        if not isinstance(value, Choice):
            return value if value not in self.known_ranks else RANK
        kept = []
        for condition, option in value.options:
            if option is UNBOUND:
                continue
            left = under(condition, self.assumed)
            if left is not FALSE:
                kept.append((left, option))
            if left is TRUE:
                return self.settle(option) if isinstance(option, Lazy) else option
        if len(kept) == len(value.options) and all(a[0] is b[0] for a, b in zip(kept, value.options, strict=True)):
            return value
        if len(kept) == 1:
            return self.settle(kept[0][1])
        return choose(kept)

    def holds(self, condition: Condition) -> Condition:
        """What is left of a condition here."""
        return under(condition, self.assumed)

    # -- objects ---------------------------------------------------------------------------------------------------

    def make(
        self, kind: Kind, node: ast.AST, tag: str = "", *, made_by: str = "", cls: Obj | None = None, **data: Any
    ) -> Obj:
        """An object of a place and the calls that lead to it; at the next turn of a loop it is the same, empty again."""
        key = (kind, node, self.context, tag, made_by, cls)
        found = self.made.get(key)
        if found is None:
            found = self.made[key] = Obj(
                kind, node, self.context, self.frame.module, made_by, cls, loops=frozenset(self.loops)
            )
            found.tag = tag
        else:
            for name in tuple(found.own):
                self.state.put(found, name, UNBOUND)
        found.data.update(data)
        found.turn = self.turn
        self.state.make(found)
        if self.fresh:
            self.fresh[-1].add(found)
        return found

    def made_at(self, like: Obj, node: ast.AST | None, context: Context, cls: Obj | None) -> Obj:
        """The object that the code which made one makes from other calls; empty, as long as nothing is written."""
        key = (like.kind, node, context, like.tag, like.made_by, cls)
        found = self.made.get(key)
        if found is None:
            found = self.made[key] = Obj(like.kind, node, context, like.module, like.made_by, cls, loops=like.loops)
            found.tag = like.tag
        else:
            for name in tuple(found.own):
                self.state.put(found, name, UNBOUND)
        found.turn = self.turn
        if like.is_made_on_the_way:
            self.state.make(found)
        return found

    def iterator(self, node: ast.AST, over: str, *of: Value, tag: str = "", **data: Any) -> Obj:
        """What goes over ``of``, as the function of Python named ``over`` does."""
        made = self.make(Kind.ITERATOR, node, tag=tag or over, made_by=over, **data)
        self.put(made, "of", Tup(tuple(without(one, made) for one in of)))
        return made

    def keep(self, obj: Obj, function: Value, given: Given) -> None:
        """Let an object hold a call that is made later."""
        named = Tup(tuple(Tup((Const(name), value)) for name, value in given.named.items()))
        self.put(obj, "call", Tup((function, Tup(given.args), named, Tup(given.more))))

    def put(self, obj: Obj, key: Any, value: Value) -> None:
        """Write a field: over what it had where the object is one, else beside it."""
        self.state.put(obj, key, value)

    def shadow(self, thing: Expr) -> Obj:
        """Where the attributes are kept that a script writes to something unread."""
        found = self.shadows.get(thing)
        if found is None:
            found = self.shadows[thing] = Obj(
                Kind.LIBRARY, None, self.context, made_by="?", data={"for": thing}, loops=thing.loops
            )
        return found

    def note_use(self, of: Value, name: str) -> None:
        """Note a method or an attribute that is used of a symbol, where optimizers have it."""
        if name in _OF_OPTIMIZERS:
            self.used.setdefault(of, set()).add(name)

    def unread(self, node: ast.AST, inputs: Sequence[Value] = (), *, tag: str = "", varies: bool | None = None) -> Expr:
        """The symbol for what an unread call gives."""
        spread = any(map(may_vary, inputs)) if varies is None else varies
        made = Expr("unknown", node, self.context, tag + self.unrolled, varies=spread, loops=frozenset(self.loops))
        shadow = self.shadows.get(made)
        if shadow is not None:
            for name in tuple(shadow.own):
                self.put(shadow, name, UNBOUND)
        held = frozenset(one for value in inputs for one in self.things_in(value))
        if held:
            self.held[made] = self.held.get(made, frozenset()) | held
        return made

    def things_in(self, value: Value, seen: set[Obj] | None = None) -> Iterator[Value]:
        """Objects of libraries and of the script, symbols and tensors in a value, through containers."""
        seen = set() if seen is None else seen
        for one in each(value):
            if isinstance(one, Tup):
                for item in one.items:
                    yield from self.things_in(item, seen)
            elif isinstance(one, Obj):
                if one in seen:
                    continue
                seen.add(one)
                if one.kind in {Kind.LIST, Kind.DICT, Kind.SET, Kind.ITERATOR, Kind.PARTIAL}:
                    for item in tuple(one.fields.values()):
                        yield from self.things_in(item, seen)
                else:
                    yield one
            elif isinstance(one, Expr | Tensor):
                yield one
            elif isinstance(one, Member) and isinstance(one.of, Tensor):  # an attribute of what a forward gives
                yield one.of

    # -- statements ------------------------------------------------------------------------------------------------

    def body(self, statements: Sequence[ast.stmt]) -> Condition:
        """Run statements; what comes back is the condition under which they are come through."""
        frame = self.frame
        narrowed = frame.narrowed
        try:
            return self._one_after_another(statements)
        finally:
            frame.narrowed = narrowed

    def _one_after_another(self, statements: Sequence[ast.stmt]) -> Condition:
        for index, statement in enumerate(statements):
            leaves = self._leaves()
            alive = self.statement(statement)
            if alive is DEAD:
                return DEAD
            if alive is not TRUE:
                rest = statements[index + 1 :]
                if not rest:
                    return alive
                with self.assuming(alive, statement):
                    self.block.is_rest = True
                    self.block.is_only_way = self._leaves() == leaves and not _is_of_rank(alive)
                    return both(alive, self._one_after_another(rest))
        return TRUE

    def statement(self, node: ast.stmt) -> Condition:
        """Run a statement and note what it comes to; gives the condition under which the next one runs."""
        self.steps += 1
        landmarks = self.landmarks
        outer, self.stops = self.stops, []
        leaves, known = self._leaves(), len(self.frame.stops)
        try:
            alive = self.execute(node)
        finally:
            stops, self.stops = self.stops, outer
        if self.landmarks > landmarks:
            self.moments[node, self.context] = self._moment(node)
        for stop in stops:
            self.stop_here(stop.condition, is_error=stop.is_error)
            alive = both(alive, negate(stop.condition))
        if alive is TRUE or alive is DEAD or self._leaves() != leaves:
            return alive
        if alive.varies and any(not stop.is_error for stop in self.frame.stops[known:]):
            return alive
        self.ending.add(node)
        self.required.append((tuple(self.conditions), alive))
        self.assume(alive)  # all other ways end in errors: what follows is about runs without them
        return TRUE

    def stop_here(self, condition: Condition, *, is_error: bool) -> None:
        """Note that the running function does not come back from here, under a condition."""
        together = both(*self.conditions[self.frame.conditions :], condition)
        self.frame.stops.append(Stop(together, is_error and not _is_of_rank(together)))

    def comes_back(self) -> bool:
        """Whether there are runs that come back from what the head of the present statement has called."""
        return all(stop.condition is not TRUE for stop in self.stops)

    def _moment(self, node: ast.stmt) -> Moment:
        held: dict[tuple[Obj, Any], Value] = {}
        optimizers: list[tuple[Obj, Any]] = []
        for obj in (*self.made.values(), *self.modules.values()):
            for key, value in obj.own.items():
                things = [one for one in each(value) if isinstance(one, Obj)]
                if any(one in self.wrappers for one in things):
                    held[obj, key] = value
                if any(one in self.optimizers for one in things):
                    optimizers.append((obj, key))
        return Moment(
            node,
            self.frame.module,
            self.context,
            self.block,
            self.names_here(),
            held,
            frozenset(optimizers),
            self.events,
        )

    def arms(self, arms: Sequence[tuple[Condition, Callable[[], Condition]]], node: ast.AST | None) -> Condition:
        """Run each arm from here under its condition, and go on from where those meet that are come through."""
        outcomes: list[tuple[Condition, Changes]] = []
        alive: list[Condition] = []
        whole = 0
        mark = self.state.mark()
        for condition, arm in arms:
            with self.assuming(condition, node):
                left = arm()
            changes = self.state.changes(mark)
            if left is not DEAD:
                outcomes.append((both(condition, left), changes))
                alive.append(both(condition, left))
                whole += left is TRUE
            self.state.undo(mark)
        if not outcomes:
            return DEAD
        self.meet(outcomes, node)
        return TRUE if whole == len(arms) else either(*alive)

    def branch(
        self, condition: Condition, then: Callable[[], Condition], other: Callable[[], Condition], node: ast.AST
    ) -> Condition:
        """Run one arm, or both."""
        condition = self.holds(condition)
        if condition is TRUE:
            return then()
        if condition is FALSE:
            return other()
        if is_unsure(condition):  # the same each time that something is asked of what the arms do
            condition = Literal(self.unread(node, tag="test", varies=condition.varies))
        return self.arms(((condition, then), (negate(condition), other)), node)

    def ways_out(self) -> WaysOut:
        """The ways out that the running function has taken so far."""
        frame = self.frame
        lists = [frame.exits, *(ways for turn in frame.loops for ways in (turn.continues, turn.breaks))]
        return [(ways, len(ways)) for ways in lists]

    def finish(self, since: WaysOut, work: Callable[[], Any]) -> None:
        """Do what is done at last: also on the ways out that were taken ``since``."""
        mark = self.state.mark()
        work()
        last = self.state.changes(mark)
        if last:
            for ways, known in since:
                ways[known:] = [replace(way, changes={**way.changes, **last}) for way in ways[known:]]

    def _leaves(self) -> int:
        """Ways out that the running function has taken so far, other than errors and ends of the process."""
        return len(self.frame.exits) + sum(len(turn.continues) + len(turn.breaks) for turn in self.frame.loops)

    def meet(self, outcomes: Sequence[tuple[Condition, Changes]], node: ast.AST | None) -> None:
        """Go on from where several ways meet."""
        self.state.merge(outcomes, (node, self.context))

    def values_of(self, options: Sequence[tuple[Condition, Callable[[], Value]]], node: ast.AST) -> Value:
        """What an expression gives that is one of several, each worked out under its condition."""
        if len(options) == 1:
            return options[0][1]()
        found: list[tuple[Condition, Value]] = []

        def arm(condition: Condition, work: Callable[[], Value]) -> Callable[[], Condition]:
            def run() -> Condition:
                before = len(self.stops)
                value = work()
                if all(stop.condition is not TRUE for stop in self.stops[before:]):
                    found.append((condition, value))
                    return TRUE
                return DEAD

            return run

        self.arms([(condition, arm(condition, work)) for condition, work in options], node)
        return choose(found)

    def loop(
        self,
        node: ast.AST,
        label: Value | None,
        turn: Callable[[], Condition],
        otherwise: Callable[[], Condition] | None,
    ) -> Condition:
        """Run the turns of a loop until its state stands still; ``otherwise``: what is done where it ends by itself."""
        frame = self.frame
        outer_loops, outer_turn = self.loops, self.turn
        self.loops = (*outer_loops, node)
        breaks: list[Exit] = []
        exits, stops, ahead = len(frame.exits), len(frame.stops), len(self.stops)
        self._as_before(node)
        try:
            for count in range(TURNS + 1):
                del frame.exits[exits:], frame.stops[stops:], self.stops[ahead:]
                self.turns += 1
                self.turn = self.turns
                mark = self.state.mark()
                state = Turn(mark, len(self.conditions))
                frame.loops.append(state)
                at = len(self.block.items)
                assumptions = self.assumed.mark()
                with self.inside(BlockKind.LOOP, node, label):
                    alive = turn()
                self.assumed.forget(assumptions)
                frame.loops.pop()
                ends = [one.changes for one in state.continues]
                if alive is not DEAD:
                    ends.append(self.state.changes(mark))
                breaks = state.breaks
                self.state.undo(mark)
                if not self._widen(node, ends, count) or count == TURNS:
                    break
                del self.block.items[at:]
        finally:
            self.loops, self.turn = outer_loops, outer_turn
        ways = [(outside(one.condition, node), one.changes) for one in breaks]
        left = frame.exits[exits:]
        frame.exits[exits:] = [Exit(outside(one.condition, node), one.changes, one.value) for one in left]
        stopped = frame.stops[stops:]
        frame.stops[stops:] = [Stop(outside(one.condition, node), one.is_error) for one in stopped]
        self.stops[ahead:] = [Stop(outside(one.condition, node), one.is_error) for one in self.stops[ahead:]]
        if otherwise is not None:
            mark = self.state.mark()
            ended = otherwise()
            if ended is not DEAD:
                ways.append((both(MAYBE if breaks else TRUE, ended), self.state.changes(mark)))
            self.state.undo(mark)
        if not ways:
            return DEAD
        self.meet(ways, node)
        gone = [one.condition for one in left] + [one.condition for one in stopped if not one.is_error]
        return unknown(varies=True) if any(condition.varies for condition in gone) else TRUE

    def _widen(self, loop: ast.AST, ends: Sequence[Changes], count: int) -> bool:
        """Let the state at the head of a loop hold what its ends hold too; False where it did already."""
        changed = False
        places: dict[tuple[Obj, Any], None] = {}
        for changes in ends:
            places.update(dict.fromkeys(changes))
        new_things = self.state.new_things(places)
        reached = reached_from(
            value
            for changes in ends
            for (obj, _), value in changes.items()
            if loop not in obj.loops and obj is not self.state.made
        )
        invariant = self.invariants.setdefault((loop, self.context), {})
        for obj, key in places:
            if obj is self.state.made:
                self.state.put(obj, key, TRUE_VALUE)
                continue
            now = obj.get(key, UNBOUND)
            if loop in obj.loops and obj not in reached:  # nothing at the head of the loop leads to it
                there = [changes for changes in ends if (self.state.made, obj) in changes or obj not in new_things]
                self.state.put(obj, key, choose((MAYBE, changes.get((obj, key), now)) for changes in there))
                continue
            found = choose((MAYBE, changes.get((obj, key), now)) for changes in ends)
            if found is now or (_options(found) <= _options(now) and (count != _IMPATIENT or _is_one(now))):
                continue
            widened = self._widened(loop, obj, key, now, found, certain=count > 0)
            if _options(widened) != _options(now):
                self.state.put(obj, key, widened)
                invariant[obj, key] = widened
                changed = True
        return changed

    def _widened(self, loop: ast.AST, obj: Obj, key: Any, now: Value, found: Value, *, certain: bool) -> Value:
        """What a place holds at the head of a loop that holds ``found`` at its end.

        Numbers become a counter of the loop, and all plain data where it is ``certain`` that it changes again.
        """
        settings = [one for one in each(found) if isinstance(one, Expr) and one.op == "setting"]
        if settings and set(each(found)) <= {*settings, *each(now)}:
            return settings[0]
        new = choose([(MAYBE, found), (MAYBE, now)])
        values = list(dict.fromkeys(each(new)))
        plain = [one for one in values if isinstance(one, Const | Expr) and one is not NONE]
        others: list[Value] = [one for one in values if not isinstance(one, Const | Expr)]
        counters = [one for one in plain if isinstance(one, Expr) and one.op == "counter" and one.args[0] is loop]
        is_unset = UNBOUND in _options(new)
        if certain:
            tuples = [one for one in others if isinstance(one, Tup)]
            others = [one for one in others if not isinstance(one, Tup)]
            if len(tuples) > 1:
                others.append(_common(tuples))
            else:
                others += tuples
        if counters or len(plain) > 1 or (certain and plain):
            varies = may_vary(new)
            name = key if isinstance(key, str) else str(key)
            counter = Expr("counter", loop, name, obj.node, obj.context, varies=varies, loops=frozenset((loop,)))
            plain = [counter]
        if NONE in values:
            plain.append(NONE)
        return choose([*((MAYBE, one) for one in (*plain, *others)), *([(MAYBE, UNBOUND)] if is_unset else [])])

    def _as_before(self, loop: ast.AST) -> None:
        """Start a loop from what it came to when it was run before: it comes to no less now, and sooner."""
        for (obj, key), before in self.invariants.get((loop, self.context), {}).items():
            now = obj.get(key, UNBOUND)
            if self.state.new_things([(obj, key)]) or _options(before) <= _options(now):
                continue
            self.state.put(obj, key, choose([(MAYBE, now), (MAYBE, before)]))

    def bind_name(self, name: str, value: Value) -> None:
        """Bind a name where the running code binds it."""
        frame = self.frame
        names = frame.names
        if names is not None and name not in names.local:
            if name in names.outer:
                self.put(frame.top, name, value)
                return
            around = frame.outer
            while around is not None and around.names is not None:
                if name in around.names.local:
                    self.put(around.obj, name, value)
                    return
                around = around.outer
            if around is not None and isinstance(
                frame.node, ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp
            ):
                self.put(around.obj, name, value)  # a walrus in a comprehension of a module
                return
        self.put(frame.obj, name, value)

    # -- what is put on top: see run.py ----------------------------------------------------------------------------------

    @abstractmethod
    def execute(self, node: ast.stmt) -> Condition:
        """Run a statement; gives the condition under which the next one runs."""

    @abstractmethod
    def value(self, node: ast.expr) -> Value:
        """What an expression comes to."""

    @abstractmethod
    def truth(self, value: Value) -> Condition:
        """Under which condition a value counts as true."""

    @abstractmethod
    def compared(self, op: ast.cmpop, left: Value, right: Value) -> Value:
        """What a comparison gives."""

    @abstractmethod
    def bind(self, target: ast.expr, value: Value) -> None:
        """Assign to a name, an attribute, an item, or several at once."""

    @abstractmethod
    def attribute(self, of: Value, name: str, node: ast.AST) -> Value:
        """What an attribute of a value is."""

    @abstractmethod
    def set_attribute(self, of: Value, name: str, value: Value, node: ast.AST) -> None:
        """Assign to an attribute of whatever a value may be."""

    @abstractmethod
    def item(self, of: Value, key: Value, node: ast.AST) -> Value:
        """What a subscript gives."""

    @abstractmethod
    def element(self, over: Value, loop: ast.AST) -> Value:
        """What stands for each item of something, in a loop over it."""

    @abstractmethod
    def exact_items(self, value: Value) -> list[Value] | None:
        """The items of something of which each is known; None for anything else."""

    @abstractmethod
    def call(self, function: Value, given: Given, node: ast.AST) -> Value:
        """Call a value; of several, each under its condition."""

    @abstractmethod
    def call_member(self, of: Value, name: str, given: Given, node: ast.AST) -> Value:
        """Call a method."""

    @abstractmethod
    def call_function(self, function: Obj, given: Given, node: ast.AST, *, on_yield: OnYield | None = None) -> Value:
        """Run a function of the script; a generator function up to its end, with what it yields handed to ``on_yield``."""

    def member_of_module(self, module: Obj, name: str) -> Value:
        """A name of a module of the project; runs it first if need be."""
        if name not in module.own:
            self.demand(module)
        value = module.get(name)
        if value is not None:
            return self.settle(value)
        for star in module.data["stars"]:
            if isinstance(star, Obj):
                if star.module is not None and (
                    star.data["ran"] or self.project.speaks_of(star.module.path, re.compile(rf"\b{re.escape(name)}\b"))
                ):
                    found = self.member_of_module(star, name)
                    if not (isinstance(found, Expr) and found.op == "unfound"):
                        return found
        inner = (
            self.imported(f"{module.data['name']}.{name}")
            if module.module and module.module.path.endswith("__init__.py")
            else None
        )
        if isinstance(inner, Obj):
            return inner
        libraries = [star for star in module.data["stars"] if isinstance(star, Lib)]
        if len(libraries) == 1:
            return Lib(f"{libraries[0].name}.{name}")
        return Expr("unfound", module.data["name"], name)


def _is_of_rank(condition: Condition) -> bool:
    """Whether a condition asks which rank this is, rather than what data it has."""
    return condition.varies and any(map(_names_rank, atoms_of(condition)))


def _names_rank(value: object) -> bool:
    if not isinstance(value, Expr) or not value.varies:
        return False
    return value.op in {"rank", "local_rank", "process", "env"} or any(map(_names_rank, value.args))


def without(value: Value, thing: Obj) -> Value:
    """A value that is not a thing, where it may be another one."""
    if isinstance(value, Choice):
        return choose((condition, option) for condition, option in value.options if option is not thing)
    return UNBOUND if value is thing else value


def _common(tuples: Sequence[Tup]) -> Value:
    """What may be any of some tuples: item by item; nothing but a tuple where they differ in length, or one is in another."""
    if len({len(one.items) for one in tuples}) == 1 and not any(
        _is_in(tuples, item) for one in tuples for item in one.items
    ):
        columns = zip(*(one.items for one in tuples), strict=True)
        return Tup(tuple(choose((MAYBE, item) for item in column) for column in columns))
    return Expr("tuple", varies=any(map(may_vary, tuples)))


def _is_in(tuples: Sequence[Tup], value: Value) -> bool:
    """Whether one of some tuples is a value, or in its tuples: such a tuple would grow with each turn of a loop."""
    return any(
        one in tuples or any(_is_in(tuples, item) for item in one.items) for one in each(value) if isinstance(one, Tup)
    )


def _is_landmark(event: Event) -> bool:
    """Whether the engine can stand only behind something: a wrap, an optimizer, a scaler."""
    return event.kind is Happening.WRAP or (event.kind is Happening.MADE and event["role"] in _LANDMARKS)


def _is_one(value: Value) -> bool:
    """Whether plain data is at most one thing wherever it is bound."""
    return sum(isinstance(one, Const | Expr) for one in each(value)) <= 1


def _options(value: Value) -> set[Value]:
    return {option for _, option in value.options} if isinstance(value, Choice) else {value}
