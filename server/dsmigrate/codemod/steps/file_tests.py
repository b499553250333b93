"""MG623: tests for the file of a checkpoint become tests for existence; those for other files stay."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

import libcst as cst

from dsmigrate.codemod.flow import Place, argument
from dsmigrate.codemod.names import dotted
from dsmigrate.codemod.plan import Plan
from dsmigrate.codemod.steps.checkpoint_facts import Found, copies_of
from dsmigrate.codemod.steps.path_predicates import IS_FILE, WIDER_TEST, has_no_exists, predicates, widen
from dsmigrate.codemod.steps.ranks import calls_by_name
from dsmigrate.codemod.tree import Function, Node, semantic_children

_WORD = re.compile(r"ckpt|check_?point|resume|snapshot|restore|pretrain|\bweights|state_dict|\.pth?\b", re.IGNORECASE)
_OTHER_KIND = re.compile(r"\.(?:jsonl?|txt|csv|tsv|log|ya?ml|png|jpe?g|svg|html|md)[\"']\)*$", re.IGNORECASE)
_PUTS = frozenset({"append", "appendleft", "add", "insert", "put", "push"})
_DEPTH = 6

WIDER_TESTS = ("isfile → exists", "is_file → exists", f"isfile → {WIDER_TEST}")
"""What is said of such a change; whoever asks for a file gets the same answer as before."""


def file_tests(plan: Plan, found: Found) -> None:
    """``isfile`` and ``is_file`` become ``exists`` where what they ask for may be a checkpoint: that is a directory now.

    A test elsewhere tells files from folders (of a data set, say), and has to go on doing so.
    """
    near = Near(plan, found)
    for call in plan.tree.calls:
        func = call.func
        if func in plan.edits.expressions or call in plan.edits.expressions:
            continue
        if IS_FILE in plan.imports.names(func) and call.args:
            if near.concerns(call, call.args[0].value):
                plan.need("os")
                plan.edits.replace(func, _existing(plan, func))
                plan.converted("MG623", call, WIDER_TESTS[0], "a DeepSpeed checkpoint is a directory")
        elif (
            isinstance(func, cst.Attribute) and func.attr.value == "is_file" and func.attr not in plan.edits.expressions
        ):
            if not near.concerns(call, func.value):
                continue
            if has_no_exists(plan, call, func.value):
                widen(plan, call, func.value)
                continue
            plan.edits.replace(func.attr, lambda _: cst.Name("exists"))
            plan.converted("MG623", call, WIDER_TESTS[1], "a DeepSpeed checkpoint is a directory")
    predicates(plan, near)


def _existing(plan: Plan, func: Node) -> str:
    """``exists`` by the way that ``isfile`` is known by."""
    text = plan.code(func)
    return f"{text.removesuffix('isfile')}exists" if text.endswith(".isfile") else "os.path.exists"


class Near:
    """What has to do with checkpoints: where their paths come from, and the functions that save and load."""

    def __init__(self, plan: Plan, found: Found) -> None:
        self.plan = plan
        self.places: set[Place] = set()
        self.functions: set[Function] = set()
        self.others = _written_otherwise(plan, found)
        paths: list[tuple[Node, Function]] = []
        copied = [other for save in found.saves for other in copies_of(plan, save)]
        for save in (*found.saves, *found.exports, *copied):
            paths.append((save.path, save.statement.function))
            self.functions.add(save.statement.function)
        loads = [c for c in plan.tree.calls if plan.imports.names(c.func) & {"torch.load", "torch.serialization.load"}]
        kept = {plan.function_of(call) for call in (*found.optimizer_loads, *found.model_loads)}
        for call in loads:
            path = argument(call, 0, "f")
            if path is None or (
                call not in found.loads and plan.flow.place(path, plan.function_of(call)) in self.others
            ):
                continue
            if call in found.loads or plan.function_of(call) in kept:
                paths.append((path, plan.function_of(call)))
                self.functions.add(plan.function_of(call))
        for node, function in (*paths, *(given for path in paths for given in _handed_by_name(plan, *path))):
            self._follow(node, function, _DEPTH)
        self.places |= {held for held, part in _put_into(plan) if part in self.places}

    def _follow(self, node: Node, function: Function, depth: int) -> None:
        flow = self.plan.flow
        for sub in _parts(node):
            if isinstance(sub, cst.Call):
                callee = flow.callee(sub)
                if callee is not None and depth and callee not in self.functions:
                    self.functions.add(callee)
                    for binding in flow.by_place.get(flow.returned(callee), ()):
                        self._follow(binding.value, binding.function, depth - 1)
            else:
                place = flow.place(sub, function)
                if place is None or place in self.places or not depth:
                    continue
                self.places.add(place)
                for binding in flow.by_place.get(place, ()):
                    self._follow(binding.value, binding.function, depth - 1)

    def concerns(self, call: cst.Call, asked: Node) -> bool:
        """Whether the path that a call asks about may be a checkpoint's."""
        function = self.plan.function_of(call)
        place = self.plan.flow.place(asked, function)
        if self.is_other(place):
            return False
        if function in self.functions or _WORD.search(self.plan.code(asked)) or _WORD.search(function.name):
            return True
        return any(self.plan.flow.place(sub, function) in self.places for sub in _parts(asked))

    def concerns_far(self, call: cst.Call, asked: Node) -> bool:
        """The same, for a path that comes from a checkpoint's folder by other variables, loops and parameters."""
        return not self._is_other_kind(call, asked) and (self.concerns(call, asked) or self.reaches(call, asked))

    def _is_other_kind(self, call: cst.Call, asked: Node) -> bool:
        """Whether a path is written out with the ending of text or pictures: results beside the checkpoints."""
        place = self.plan.flow.place(asked, self.plan.function_of(call))
        bindings = self.plan.flow.by_place.get(place, ()) if place is not None else ()
        written = [b.value for b in bindings if b.kind == "assign" and b.index is None]
        values = written if bindings and len(written) == len(bindings) else [asked]
        return all(_OTHER_KIND.search(self.plan.code(value)) for value in values)

    def reaches(self, call: cst.Call, asked: Node) -> bool:
        """The same, whatever function the call stands in: by the path alone."""
        return self.reaches_from(asked, self.plan.function_of(call))

    def reaches_from(self, asked: Node, function: Function) -> bool:
        """The same for an expression of a function."""
        return self.has_word(self.plan.code(asked)) or self.leads_to(asked, function)

    def has_word(self, text: str) -> bool:
        """Whether a text speaks of checkpoints."""
        return bool(_WORD.search(text))

    def is_other(self, place: Place | None) -> bool:
        """Whether ``torch.save`` goes on writing something else than a checkpoint at the path of a variable."""
        return place is not None and place in self.others and place not in self.places

    def leads_to(self, node: Node, function: Function) -> bool:
        """Whether an expression comes from where a checkpoint's path comes from, whatever it is called."""
        flow = self.plan.flow
        queue: list[tuple[Node, Function]] = [(node, function)]
        seen: set[Place] = set()
        while queue:
            current, where = queue.pop()
            for sub in _parts(current):
                place = flow.place(sub, where)
                if place is None or place in seen:
                    continue
                if place in self.places:
                    return True
                seen.add(place)
                queue.extend((b.value, b.function) for b in flow.by_place.get(place, ()))
        return False


def _put_into(plan: Plan) -> Iterator[tuple[Place, Place]]:
    """Lists and dictionaries of paths, each with what is put into it: ``kept.append((score, path))``, ``best[path] = score``."""
    for statement in plan.tree.statements:
        node, function = statement.node, statement.function
        put: list[tuple[Node, Sequence[Node]]] = []
        if isinstance(node, cst.Assign):
            subscripts = [one.target for one in node.targets if isinstance(one.target, cst.Subscript)]
            put = [(one.value, [node.value, *(part.slice for part in one.slice)]) for one in subscripts]
        elif isinstance(node, cst.Expr) and isinstance(node.value, cst.Call):
            func, given = node.value.func, [arg.value for arg in node.value.args]
            if isinstance(func, cst.Attribute) and func.attr.value in _PUTS:
                put = [(func.value, given)]
            elif (dotted(func) or "").rpartition(".")[2] == "heappush":
                put = [(given[0], given[1:])]
        for held, values in put:
            place = plan.flow.place(held, function)
            for part in values if place is not None else ():
                for sub in _elements(part):
                    inner = plan.flow.place(sub, function)
                    if inner is not None:
                        yield place, inner  # type: ignore[misc]


def _elements(node: Node) -> list[Node]:
    if isinstance(node, cst.Index):
        return [node.value]
    return [one.value for one in node.elements] if isinstance(node, cst.Tuple | cst.List) else [node]


def _handed_by_name(plan: Plan, path: Node, function: Function) -> list[tuple[Node, Function]]:
    """What calls of ``x.name(…)`` hand in for a path, where it is not known that x is of the class of this method."""
    if not isinstance(path, cst.Name) or path.value not in function.params or plan.flow.callers.get(function):
        return []
    return [
        (arg.value, plan.function_of(call))
        for call in calls_by_name(plan, function)
        for arg in call.args
        if plan.flow.parameter_of(call, function, arg) == path.value
    ]


def _written_otherwise(plan: Plan, found: Found) -> set[Place]:
    """Variables with paths at which ``torch.save`` goes on writing a file of something else than a checkpoint."""
    known = {save.call for save in (*found.saves, *found.exports)}
    places: set[Place] = set()
    for call in plan.tree.calls:
        if call not in known and "torch.save" in plan.imports.names(call.func):
            path = argument(call, 1, "f")
            place = plan.flow.place(path, plan.function_of(call)) if path is not None else None
            if place is not None:
                places.add(place)
    return places


# Attributes of a path that give a part of it; `args.resume` is another thing than `args`.
_OF_PATHS = frozenset({"parent", "name", "stem", "parents"})


def _parts(node: Node) -> list[Node]:
    """The calls, names and whole attributes that an expression is made of."""
    found: list[Node] = []
    stack = [node]
    while stack:
        current = stack.pop()
        if isinstance(current, cst.Name):
            found.append(current)
        elif isinstance(current, cst.Attribute):
            if current.attr.value in _OF_PATHS:
                stack.append(current.value)
            else:
                found.append(current)
        elif isinstance(current, cst.Call):
            found.append(current)
            if isinstance(current.func, cst.Attribute):
                stack.append(current.func.value)
            stack.extend(arg.value for arg in current.args)
        else:
            stack.extend(semantic_children(current))
    return found
