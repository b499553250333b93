"""Which classes may make an optimizer: through tables, conditions, names chosen at run time, and what functions give."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import libcst as cst

from dsmigrate.codemod.bindings import UNKNOWN, literal_value
from dsmigrate.codemod.flow import Binding, argument
from dsmigrate.codemod.makers import construction, derives_from_optimizer, is_partial
from dsmigrate.codemod.names import assigned_to, dotted
from dsmigrate.codemod.options import option_calls, option_default, option_name
from dsmigrate.codemod.plan import Plan
from dsmigrate.codemod.role_names import KNOWN_OPTIMIZER_CLASSES, TORCH_OPTIMIZERS
from dsmigrate.codemod.roles import OptimizerSite
from dsmigrate.codemod.tree import Class, Function, Node

TORCH = "torch.optim"
_WHOLE_FILE = frozenset({"globals", "locals", "vars"})


@dataclass(frozen=True, slots=True)
class Meant:
    """One thing that may make an optimizer.

    A class of the tree, or the full names of something imported; neither where it is not seen. ``text`` is how it is
    written; ``is_any_of_torch``: a class of torch.optim whose name the script chooses when it runs.
    """

    text: str | None
    cls: Class | None = None
    names: frozenset[str] = frozenset()
    is_any_of_torch: bool = False


def meant_by(plan: Plan, call: cst.Call) -> list[Meant]:
    """Everything that may make the object of a call, each once."""
    sharded: Node | None = plan.facts.get("sharded", {}).get(call)
    made = sharded or construction(plan.flow, call)[0]
    if made is None:
        return [Meant(None)]
    finder = _Finder(plan)
    finder.called(made, plan.function_of(call))
    return list(dict.fromkeys(finder.found))


def meant_by_use(plan: Plan, site: OptimizerSite) -> list[Meant]:
    """What may have made an optimizer that is known by its use: what its name is given, and things out of sight."""
    finder = _Finder(plan)
    for binding in plan.flow.by_place.get(site.place, ()) if site.place is not None else ():
        if binding.index is None:
            finder.made(binding.value, binding.function)
    return [*dict.fromkeys(made for made in finder.found if made.cls is not None or made.names), Meant(None)]


class _Finder:
    """Collects what an expression may mean; every expression is looked at once."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.flow = plan.flow
        self.found: list[Meant] = []
        self._seen: set[tuple[str, Node]] = set()

    def _is_new(self, way: str, node: Node) -> bool:
        key = (way, node)
        if key in self._seen:
            return False
        self._seen.add(key)
        return True

    def _unseen(self, node: Node) -> None:
        self.found.append(Meant(self.plan.code(node)))

    def called(self, node: Node, function: Function) -> None:
        """What a call of this expression makes."""
        if not self._is_new("called", node):
            return
        if isinstance(node, cst.IfExp):
            self.called(node.body, function)
            self.called(node.orelse, function)
        elif isinstance(node, cst.BooleanOperation):
            self.called(node.left, function)
            self.called(node.right, function)
        elif isinstance(node, cst.NamedExpr):
            self.called(node.value, function)
        elif isinstance(node, cst.Lambda):
            self.made(node.body, function)
        elif isinstance(node, cst.Subscript):
            self._entries(node.value, function, _key(node), node)
        elif isinstance(node, cst.Call):
            self._result(node, function)
        else:
            self._named(node, function)

    def made(self, node: Node, function: Function) -> None:
        """What made the object that this expression gives."""
        if not self._is_new("made", node):
            return
        if isinstance(node, cst.IfExp):
            self.made(node.body, function)
            self.made(node.orelse, function)
        elif isinstance(node, cst.Call):
            cls = construction(self.flow, node)[0]
            self._unseen(node) if cls is None else self.called(cls, function)
        else:
            bindings = self._bindings(node, function)
            if not bindings:
                self._unseen(node)
            for binding in bindings:
                self.made(binding.value, binding.function)

    def _bindings(self, node: Node, function: Function) -> list[Binding]:
        place = self.flow.place(node, function)
        return list(self.flow.by_place.get(place, ())) if place is not None else []

    def _named(self, node: Node, function: Function) -> None:
        text = dotted(node)
        cls = self.flow.class_named(text, function) if text is not None else None
        if cls is not None:
            self.found.append(Meant(cls.name, cls))
            return
        factory = self.flow.function_named(node, function)
        if factory is not None:
            self._returns(factory, node, self.made)
            return
        bindings = self._bindings(node, function)
        for binding in bindings:
            if binding.index is None and binding.kind in ("assign", "argument", "return"):
                self.called(binding.value, binding.function)
            else:
                self._unseen(node)
        root = (text or "").partition(".")[0]
        if not bindings or self.plan.imports.meanings(root, function):
            names = frozenset(self.plan.imports.names(node))
            self.found.append(Meant(text or self.plan.code(node), None, names))

    def _returns(self, factory: Function, node: Node, follow: Callable[[Node, Function], None]) -> None:
        bindings = self.flow.by_place.get(self.flow.returned(factory), ())
        if not bindings:
            self._unseen(node)
        for binding in bindings:
            follow(binding.value, binding.function)

    def _result(self, call: cst.Call, function: Function) -> None:
        """What a call of a call's result makes: ``partial(SGD)()``, ``getattr(optim, name)()``, ``chosen(name)()``."""
        func = call.func
        text = dotted(func)
        if is_partial(self.flow, call):
            self.called(call.args[0].value, function)
        elif text == "getattr" and len(call.args) >= 2:
            self._attribute(call, function)
        elif text == "eval" and call.args:
            self._text(call, function)
        elif (factory := self.flow.callee(call)) is not None and factory.name != "__init__":
            self._returns(factory, call, self.called)
        elif isinstance(func, cst.Attribute) and func.attr.value in ("get", "pop") and call.args:
            self._entries(func.value, function, literal_value(call.args[0].value), call)
            for default in call.args[1:2]:
                self.called(default.value, function)
        else:
            self._unseen(call)

    def _attribute(self, call: cst.Call, function: Function) -> None:
        """``getattr(module, name)``: the class of that name, or each that the module has."""
        module, name = call.args[0].value, literal_value(call.args[1].value)
        for default in call.args[2:3]:
            self.called(default.value, function)
        text = dotted(module)
        names = self.plan.imports.names(module)
        if isinstance(name, str) and text is not None:
            cls = self.flow.class_named(f"{text}.{name}", function)
            self.found.append(Meant(f"{text}.{name}", cls, frozenset(f"{full}.{name}" for full in names)))
        elif any(full.startswith(TORCH) for full in names):
            self._of_torch(call.args[1].value, call)
        elif isinstance(module, cst.Subscript) and dotted(module.value) == "sys.modules":
            self._whole_file(function, call)
        else:
            self._module(names, function, call)

    def _text(self, call: cst.Call, function: Function) -> None:
        """``eval(text)``: a class of torch.optim where the text says so, else any that the file knows."""
        if "optim." in self.plan.code(call.args[0].value):
            self._of_torch(call.args[0].value, call)
        else:
            self._whole_file(function, call)

    def _of_torch(self, name: Node, shown: Node) -> None:
        """The classes of torch.optim that an option offers; any of them, and the default, where it offers all."""
        options, default = _offered(self.plan, name)
        for option in options or default:
            self.found.append(Meant(f"{TORCH}.{option}", None, frozenset({f"{TORCH}.{option}"})))
        if not options:
            self.found.append(Meant(self.plan.code(shown), is_any_of_torch=True))

    def _module(self, names: set[str], function: Function, shown: Node) -> None:
        tree = self.plan.tree
        here = tree.part_of_top[function.top]
        finder = tree.find_module
        parts = [finder(here, n.lstrip("."), len(n) - len(n.lstrip("."))) for n in sorted(names)] if finder else []
        for part in parts:
            for cls in part.classes.values() if part is not None else ():
                if derives_from_optimizer(self.plan.roles, cls):
                    self.found.append(Meant(cls.name, cls))
        self._unseen(shown)

    def _whole_file(self, function: Function, shown: Node) -> None:
        """Every optimizer that a file makes or imports; there may be others, by a star."""
        part = self.plan.tree.part_of_top[function.top]
        for cls in part.classes.values():
            if derives_from_optimizer(self.plan.roles, cls):
                self.found.append(Meant(cls.name, cls))
        for local, names in self.plan.imports.by_part[part].items():
            if any(full.rpartition(".")[2] in KNOWN_OPTIMIZER_CLASSES for full in names):
                self.found.append(Meant(local, None, frozenset(names)))
        self._unseen(shown)

    # -- tables ---------------------------------------------------------------------------------------------------

    def _entries(self, table: Node, function: Function, key: object, shown: Node) -> None:
        """What a call of a table's entry makes; of each that may be meant where the key is not written out."""
        if not self._is_new(f"entry {key!r}", table):
            return
        if isinstance(table, cst.Dict):
            self._written(table, function, key, shown)
        elif isinstance(table, cst.Tuple | cst.List):
            for item in table.elements:
                self.called(item.value, function)
        elif isinstance(table, cst.Call) and dotted(table.func) == "dict":
            self._given(table, function, key, shown)
        elif isinstance(table, cst.Call) and dotted(table.func) in _WHOLE_FILE and not table.args:
            self._whole_file(function, shown)
        elif isinstance(table, cst.Call) and dotted(table.func) == "vars":
            self._members(table.args[0].value, function, shown)
        elif isinstance(table, cst.Attribute) and table.attr.value == "__dict__":
            self._members(table.value, function, shown)
        elif isinstance(table, cst.BinaryOperation):
            self._entries(table.left, function, key, shown)
            self._entries(table.right, function, key, shown)
        else:
            self._held(table, function, key, shown)

    def _members(self, module: Node, function: Function, shown: Node) -> None:
        names = self.plan.imports.names(module)
        if any(full.startswith(TORCH) for full in names):
            self.found.append(Meant(self.plan.code(shown), is_any_of_torch=True))
        else:
            self._module(names, function, shown)

    def _written(self, table: cst.Dict, function: Function, key: object, shown: Node) -> None:
        elements = [e for e in table.elements if isinstance(e, cst.DictElement)]
        chosen = [e for e in elements if key is not UNKNOWN and literal_value(e.key) == key] or elements
        for element in chosen:
            self.called(element.value, function)
        for other in table.elements:
            if isinstance(other, cst.StarredDictElement):
                self._entries(other.value, function, key, shown)

    def _given(self, table: cst.Call, function: Function, key: object, shown: Node) -> None:
        for arg in table.args:
            if arg.keyword is not None:
                if key is UNKNOWN or arg.keyword.value == key:
                    self.called(arg.value, function)
            else:
                self._entries(arg.value, function, key, shown)

    def _held(self, table: Node, function: Function, key: object, shown: Node) -> None:
        """The entries of a table with a name: those it is made with, and those that are put in."""
        place = self.flow.place(table, function)
        bindings = self._bindings(table, function)
        for binding in bindings:
            if binding.index is None and binding.kind in ("assign", "argument", "return"):
                self._entries(binding.value, binding.function, key, shown)
            else:
                self._unseen(shown)
        if not bindings:
            self._unseen(shown)
        for value, where in _put_in(self.plan, place) if bindings else ():
            self.called(value, where)


def _put_in(plan: Plan, place: object) -> Iterator[tuple[Node, Function]]:
    """What ``table[key] = value`` puts into a table."""
    for statement in plan.tree.statements:
        for target in assigned_to(statement.node):
            if isinstance(target, cst.Subscript) and plan.flow.place(target.value, statement.function) == place:
                value = getattr(statement.node, "value", None)
                if value is not None:
                    yield value, statement.function


def _key(node: cst.Subscript) -> object:
    item = node.slice[0].slice
    return literal_value(item.value) if len(node.slice) == 1 and isinstance(item, cst.Index) else UNKNOWN


def _offered(plan: Plan, name: Node) -> tuple[list[str], list[str]]:
    """The choices of the option behind ``args.name`` where all are classes of torch.optim, and its default if it is one."""
    if not isinstance(name, cst.Attribute):
        return [], []
    default = option_default(plan, name.attr.value)
    for call in option_calls(plan):
        found = argument(call, None, "choices") if option_name(call) == name.attr.value else None
        values = literal_value(found) if found is not None else UNKNOWN
        if isinstance(values, list) and all(value in TORCH_OPTIMIZERS for value in values):
            return [str(value) for value in values], []
    return [], [default] if default in TORCH_OPTIMIZERS else []
