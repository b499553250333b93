"""MG206: programs that start the processes of a script and number them, where the script asks for their variables.

A converted script is started as the original was. ``os.environ["SLURM_PROCID"]`` is a KeyError under torchrun, or, in a job
of SLURM, the number of the one task that runs torchrun. So a script that needs such a variable goes on being started by
the program that sets it; one that asks for the launcher's variables too may be started by either.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator
from dataclasses import dataclass

import libcst as cst

from dsmigrate.codemod.flow import SPAWNERS
from dsmigrate.codemod.options import option_calls, option_name
from dsmigrate.codemod.plan import Plan
from dsmigrate.codemod.tree import Node, Statement, descendants


@dataclass(frozen=True, slots=True)
class Manager:
    """What starts processes: its name, its variables for rank, size and local rank, and its command."""

    name: str
    rank: str
    size: str
    local: str
    command: str

    @property
    def numbers(self) -> frozenset[str]:
        """The variables that tell a process which one it is."""
        return frozenset({self.rank, self.local})

    @property
    def asked(self) -> re.Pattern[str]:
        """A test whether any of its variables is there."""
        variable = rf"[\"']{self.rank.partition('_')[0]}_\w+[\"']"
        return re.compile(rf"{variable} |get(?:env)?\(\s*{variable}")


MANAGERS = (
    Manager("SLURM", "SLURM_PROCID", "SLURM_NTASKS", "SLURM_LOCALID", "srun --ntasks"),
    Manager(
        "MPI", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK", "mpirun -np"
    ),
    Manager("MPI", "MV2_COMM_WORLD_RANK", "MV2_COMM_WORLD_SIZE", "MV2_COMM_WORLD_LOCAL_RANK", "mpirun -np"),
    Manager("MPI", "PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", "mpiexec -n"),
)  # fmt: skip
_OF_LAUNCHERS = frozenset({"RANK", "LOCAL_RANK"})
_ADDRESS = "MASTER_ADDR"
_QUOTED = re.compile(r"[\"'](?:RANK|LOCAL_RANK|WORLD_SIZE)[\"']")
_SOFT = frozenset({"get", "getenv", "pop"})
_NEUTRAL = re.compile(r"__name__|distributed|cuda|ddp|world_size|multi|gpu|\bdist\b", re.IGNORECASE)
_NAMED = re.compile(r"slurm|mpi|launcher", re.IGNORECASE)
_DEPTH = 4
FREE, GUARDED, AFTER = range(3)
"""How a variable is read: in every run; behind some test; only where the launcher's variables are missing."""


@dataclass(frozen=True, slots=True)
class _Use:
    node: Node
    name: str
    statement: Statement
    stored: bool
    keyed: bool


def mentioned(plan: Plan) -> tuple[Manager, ...]:
    """The programs whose numbers a script asks for."""
    names = {use.name for use in _uses(plan)}
    return tuple(manager for manager in MANAGERS if manager.numbers & names)


def needed(plan: Plan) -> Manager | None:
    """The program that has to start a script, as it needs its variables; None where a launcher can."""
    if any(plan.imports.names(call.func) & set(SPAWNERS) for call in plan.tree.calls) or needs_launcher(plan):
        return None
    knows_launchers = bool(_asked(plan)) or any(option_name(call) == "local_rank" for call in option_calls(plan))
    for manager in MANAGERS:
        reads = [use for use in _uses(plan) if use.name in manager.numbers and not use.stored]
        if reads and (not knows_launchers or any(_standing(plan, use, _DEPTH) == FREE for use in reads)):
            return manager
    return None


def needs_launcher(plan: Plan) -> bool:
    """Whether a script asks for RANK or LOCAL_RANK in every run, without having set them by itself."""
    return any(use.keyed and _standing(plan, use, _DEPTH) == FREE for use in _asked(plan))


def comes_first(plan: Plan, *, only_free: bool = False) -> Manager | None:
    """A program whose numbers win over those of a launcher where both are there: within its jobs.

    What only becomes a default of the launcher's variables (MG203) does not. ``only_free``: it is asked in every run.
    """
    for manager in MANAGERS:
        reads = [use for use in _uses(plan) if use.name in manager.numbers and not use.stored]
        reads = [use for use in reads if not isinstance(plan.tree.parent.get(use.node), cst.Comparison)]
        found = {_standing(plan, use, _DEPTH) for use in reads if not _sets_default(plan, use.statement)}
        asks = any(_asks_for(plan, use.statement, manager) for use in reads)
        if FREE in found or (GUARDED in found and AFTER not in found and asks and not only_free):
            return manager
    return None


def _asks_for(plan: Plan, statement: Statement, manager: Manager) -> bool:
    """Whether the presence of a manager's variables decides about a statement, and not an option."""
    tests = [(statement, test) for test, _ in _tests(statement)]
    for call in plan.flow.callers.get(statement.function, ()):
        caller = plan.tree.statement(call)
        tests += [(caller, test) for test, _ in _tests(caller)]
    texts = [plan.code(statement.node)]
    texts += [plan.code(node) for where, test in tests for node in (test, *_flags(plan, test, where))]
    return any(manager.asked.search(text) for text in texts)


def _flags(plan: Plan, test: Node, statement: Statement) -> list[Node]:
    """``args.is_slurm_job`` in a test → what it was set to: ``"SLURM_JOB_ID" in os.environ``."""
    found: list[Node] = []
    for node in (test, *descendants(test)):
        place = plan.flow.place(node, statement.function) if isinstance(node, cst.Name | cst.Attribute) else None
        found += [binding.value for binding in plan.flow.by_place.get(place, ())] if place is not None else []
    return found


def _asked(plan: Plan) -> list[_Use]:
    """Where a script asks for the variables of launchers, without those that it sets itself."""
    uses = _uses(plan)
    set_here = {use.name for use in uses if use.stored and _standing(plan, use, _DEPTH) == FREE}
    return [use for use in uses if use.name in _OF_LAUNCHERS - set_here and not use.stored]


def _sets_default(plan: Plan, statement: Statement) -> bool:
    node = statement.node
    if not isinstance(node, cst.Assign):
        return False
    target = node.targets[0].target
    return isinstance(target, cst.Subscript) and bool(_QUOTED.search(plan.code(target.slice[0])))


def command(plan: Plan, manager: Manager, processes: int, tail: str) -> str:
    """The command that starts a script, with the address that ``init_process_group`` needed before."""
    sets = any(use.stored and use.name == _ADDRESS for use in _uses(plan))
    own = any(
        arg.keyword is not None and arg.keyword.value == "init_method" and "env://" not in plan.code(arg.value)
        for call in plan.tree.calls for arg in call.args
    )  # fmt: skip
    address = "" if sets or own else "MASTER_ADDR=127.0.0.1 MASTER_PORT=29500 "
    return f"{address}{manager.command} {processes} python {tail}"


def _uses(plan: Plan) -> list[_Use]:
    found: list[_Use] | None = plan.facts.get("manager_uses")
    if found is None:
        wanted = _OF_LAUNCHERS.union({_ADDRESS}, *(manager.numbers for manager in MANAGERS))
        found = [
            _use(plan, node, statement)
            for statement in plan.tree.statements
            for head in _heads(statement.node)
            for node in descendants(head)
            if isinstance(node, cst.SimpleString) and node.evaluated_value in wanted
        ]
        plan.facts["manager_uses"] = found
    return found


def _heads(node: Node) -> list[Node]:
    if isinstance(node, cst.If | cst.While):
        return [node.test]
    if isinstance(node, cst.For):
        return [node.iter]
    return [] if isinstance(node, cst.BaseCompoundStatement) else [node]


def _use(plan: Plan, node: cst.SimpleString, statement: Statement) -> _Use:
    tree = plan.tree
    parent = tree.parent.get(node)
    holder = next((a for a in tree.ancestors(node) if isinstance(a, cst.Subscript | cst.Call)), None)
    keyed = isinstance(holder, cst.Subscript) and isinstance(parent, cst.Index)
    stored = keyed and isinstance(tree.parent.get(holder), cst.AssignTarget) if holder is not None else False
    if isinstance(statement.node, cst.Assign) and keyed:
        stored = any(target.target is holder for target in statement.node.targets)
    if isinstance(holder, cst.Call) and isinstance(holder.func, cst.Attribute):
        stored = stored or (holder.func.attr.value == "setdefault" and holder.args[0].value is node)
    return _Use(node, str(node.evaluated_value), statement, stored, keyed and not stored)


def _standing(plan: Plan, use: _Use, depth: int) -> int:
    """How sure it is that a variable is read."""
    if isinstance(plan.tree.parent.get(use.node), cst.Comparison | cst.ComparisonTarget):
        return AFTER  # `"SLURM_PROCID" in os.environ` reads nothing
    return max(_in_expression(plan, use), _of_statement(plan, use.statement, depth))


def _in_expression(plan: Plan, use: _Use) -> int:
    """``os.environ.get("RANK", os.environ.get("SLURM_PROCID"))``, ``… or …``, ``… if … else …``."""
    below: Node = use.node
    found = FREE
    for above in plan.tree.ancestors(use.node):
        if isinstance(above, cst.BaseSmallStatement | cst.BaseCompoundStatement):
            break
        if isinstance(above, cst.Call) and _is_soft(above) and not use.keyed:
            first = above.args[0].value
            if below is not above.args[0] and _QUOTED.search(plan.code(first)):
                return AFTER
            if any(_QUOTED.search(plan.code(arg)) for arg in above.args[1:]):
                found = GUARDED
        elif isinstance(above, cst.BooleanOperation):
            if below is above.right and _QUOTED.search(plan.code(above.left)):
                return AFTER
            if not use.keyed and below is above.left and _QUOTED.search(plan.code(above.right)):
                found = GUARDED
        elif isinstance(above, cst.IfExp) and below is not above.test:
            if below is above.orelse and _QUOTED.search(plan.code(above.test)):
                return AFTER
            found = GUARDED
        elif isinstance(above, cst.Tuple | cst.List) and _is_behind_launchers(plan, above, below, use.statement):
            return AFTER
        below = above
    return found


def _is_behind_launchers(plan: Plan, names: cst.Tuple | cst.List, element: Node, statement: Statement) -> bool:
    """``for name in ("RANK", "SLURM_PROCID")``: whether a loop that leaves at the first one found asks a launcher's before."""
    loop = statement.node
    if not isinstance(loop, cst.For) or loop.iter is not names:
        return False
    before = itertools.takewhile(lambda other: other is not element, names.elements)
    leaves = any(isinstance(sub, cst.Break | cst.Return) for sub in descendants(loop.body))
    return leaves and any(_QUOTED.fullmatch(plan.code(other.value)) for other in before)


def _is_soft(call: cst.Call) -> bool:
    func = call.func
    name = func.attr.value if isinstance(func, cst.Attribute) else func.value if isinstance(func, cst.Name) else ""
    return name in _SOFT and bool(call.args)


def _of_statement(plan: Plan, statement: Statement, depth: int) -> int:
    known: dict[tuple[Statement, int], int] = plan.facts.setdefault("standings", {})
    if (statement, depth) not in known:
        known[statement, depth] = _around(plan, statement, depth)
    return known[statement, depth]


def _around(plan: Plan, statement: Statement, depth: int) -> int:
    found = max((_behind(plan, test, branch) for test, branch in _tests(statement)), default=FREE)
    found = max(found, *(_left_early(plan, other) for other in _before(statement)), FREE)
    callers = [plan.tree.statement(call) for call in plan.flow.callers.get(statement.function, ())]
    if not callers and statement.function.name not in _words(plan) and not statement.function.is_module:
        return AFTER  # nothing runs it
    if found == AFTER or not callers or depth == 0:
        return found
    return max(found, min(_of_statement(plan, caller, depth - 1) for caller in callers))


def _words(plan: Plan) -> set[str]:
    """Every name that the script uses, other than in a definition."""
    found: set[str] | None = plan.facts.get("words")
    if found is None:
        found = set()
        for statement in plan.tree.statements:
            for head in _heads(statement.node):
                found.update(node.value for node in descendants(head) if isinstance(node, cst.Name))
        plan.facts["words"] = found
    return found


def _tests(statement: Statement) -> Iterator[tuple[Node, str]]:
    """The tests around a statement, each with the branch that it stands in; a ``try`` is one that catches."""
    branch = statement.branch
    for outer in statement.enclosing():
        if isinstance(outer.node, cst.If):
            yield outer.node.test, branch
        elif isinstance(outer.node, cst.Try) and outer.node.handlers and branch == "body":
            yield outer.node.handlers[0], "try"
        elif isinstance(outer.node, cst.Try) and branch == "handler":
            yield outer.node.body, "orelse"
        branch = outer.branch


def _behind(plan: Plan, test: Node, branch: str) -> int:
    text = plan.code(test)
    if branch == "try":
        return GUARDED if re.search(r"KeyError|TypeError|Exception|except\s*:", text) else FREE
    missing = " not in " in text or "is None" in text
    if _QUOTED.search(text) and (branch == "orelse") is not missing:
        return AFTER
    return FREE if _NEUTRAL.search(text) and not _NAMED.search(text) else GUARDED


def _before(statement: Statement) -> Iterator[Statement]:
    """The tests in front of a statement that leave the function."""
    blocks = {statement.block, *(outer.block for outer in statement.enclosing())}
    for other in statement.function.statements:
        if other.order < statement.order and other.block in blocks and isinstance(other.node, cst.If):
            body = other.node.body.body
            if body and isinstance(body[-1], cst.SimpleStatementLine) and isinstance(body[-1].body[-1], cst.Return):
                yield other


def _left_early(plan: Plan, test: Statement) -> int:
    assert isinstance(test.node, cst.If)
    return _behind(plan, test.node.test, "orelse")
