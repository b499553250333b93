"""Carries an expression to the place where the engine is made, so that a setting keeps following the command line."""

from __future__ import annotations

import libcst as cst

from dsmigrate.codemod.bindings import BUILTINS, bound_values, is_rebound
from dsmigrate.codemod.changing import changes_later, reads_groups
from dsmigrate.codemod.flow import Place
from dsmigrate.codemod.names import dotted
from dsmigrate.codemod.plan import Plan
from dsmigrate.codemod.tree import Function, Node, Statement, descendants, semantic_children


def carry(plan: Plan, node: Node, function: Function, depth: int = 5) -> str | None:
    """Source text that gives, where the engine is made, the value an expression has in ``function``; None if unsafe."""
    site = plan.site
    if site is None or depth == 0:
        return None
    if not is_plain(node) or not _stays(plan, node, function):
        return None
    given = _given_to_object(plan, node, function)
    if given is not None:
        return carry(plan, given[0], given[1], depth - 1)
    here = function is site.function
    late = _late_attribute(plan, node, function)
    if late is not None:
        return carry(plan, late, site.function, depth - 1)
    if here and not _attributes_in_time(plan, node, function):
        return None
    replacements: dict[str, str] = {}
    for name in _roots(node):
        if name in BUILTINS or name == "getattr":
            continue
        seen_from_site = plan.flow.variable(name, site.function)
        seen_from_here = plan.flow.variable(name, function)
        imported = plan.imports.meanings(name, function)
        if (
            imported == plan.imports.meanings(name, site.function) != set()
            and seen_from_here == ("v", id(function.top), name)
            and seen_from_site == ("v", id(site.function.top), name)
        ):
            continue
        if seen_from_here == seen_from_site and _bound_in_time(plan, name, function):
            continue
        incoming = _parameter_with(plan, seen_from_here)
        if incoming is not None:
            replacements[name] = incoming
            continue
        if name == function.self_name and function.class_seen is not None:
            if site.function.self_name is not None and site.function.class_seen is not None:
                same = plan.flow.family(site.function.class_seen) == plan.flow.family(function.class_seen)
                if same and _attributes_in_time(plan, node, function):
                    replacements[name] = site.function.self_name
                    continue
            return None
        if here or name not in function.params:
            text = _by_definition(plan, name, function, depth)
            if text is None:
                return None
            replacements[name] = text
            continue
        text = _through_callers(plan, name, function, depth)
        if text is None:
            return None
        replacements[name] = text
    return _substitute(plan, node, replacements)


def carry_branches(plan: Plan, statement: Statement) -> str | None:
    """The conditions around a statement that can be carried, the outer ones first; None without any.

    What an inner test reads may be bound in the branch of an outer one alone, so that their order matters.
    """
    texts: list[str] = []
    branch = statement.branch
    for outer in statement.enclosing():
        text = carry(plan, outer.node.test, statement.function) if isinstance(outer.node, cst.If) else None
        if text is not None and branch != "body":
            texts.append(f"not ({text})")
        elif text is not None:
            texts.append(f"({text})" if " or " in text or " if " in text else text)
        branch = outer.branch
    return " and ".join(reversed(texts)) or None


def _given_to_object(plan: Plan, node: Node, function: Function) -> tuple[Node, Function] | None:
    """The one value that ``self.x`` ever gets, where another class than the engine's owner keeps it."""
    cls = function.class_seen
    if cls is None or not isinstance(node, cst.Attribute) or not isinstance(node.value, cst.Name):
        return None
    if node.value.value != function.self_name:
        return None
    site = plan.site
    if site is not None and site.function.class_seen is not None:
        if plan.flow.family(site.function.class_seen) == plan.flow.family(cls):
            return None
    place = plan.flow.place(node, function)
    bindings = plan.flow.by_place.get(place, ()) if place is not None else ()
    if len(bindings) != 1 or bindings[0].index is not None or bindings[0].kind != "assign":
        return None
    return bindings[0].value, bindings[0].function


def _parameter_with(plan: Plan, place: Place) -> str | None:
    """The parameter of the engine's function that receives the same variable from its callers, if there is one."""
    site = plan.site
    assert site is not None
    for name in site.function.params:
        bindings = plan.flow.by_place.get(("v", id(site.function), name), ())
        arguments = [b for b in bindings if b.kind == "argument"]
        if arguments and len(arguments) == len(bindings):
            if all(plan.flow.place(b.value, b.function) == place for b in arguments):
                return name
    return None


def _by_definition(plan: Plan, name: str, function: Function, depth: int) -> str | None:
    """A local name that is set too late, or elsewhere: its own definition, where that can be carried."""
    node = cst.Name(name)
    bindings = bound_values(plan, node, function)
    if len(bindings) != 1 or is_rebound(plan, node, function):
        return None
    text = carry(plan, bindings[0][0], bindings[0][1], depth - 1)
    return f"({text})" if text is not None and not text.replace(".", "").replace("_", "").isalnum() else text


def _through_callers(plan: Plan, name: str, function: Function, depth: int) -> str | None:
    place = ("v", id(function), name)
    texts = set()
    for binding in plan.flow.by_place.get(place, ()):
        if binding.kind != "argument":
            return None
        texts.add(carry(plan, binding.value, binding.function, depth - 1))
    if len(texts) != 1:
        return None
    return texts.pop()


def _bound_in_time(plan: Plan, name: str, function: Function) -> bool:
    """Whether a variable has its value before the engine is made."""
    site = plan.site
    assert site is not None
    place = plan.flow.variable(name, function)
    if place[1] == id(site.function) and name in site.function.params:
        return True
    bindings = plan.flow.by_place.get(place, ())
    if not bindings and not plan.imports.meanings(name, function):
        top = site.function.top
        inner = name in site.function.inner or name in top.inner or name in plan.tree.part_of_top[top].classes
        return inner or place[1] != id(top)
    owner_is_site = place[1] == id(site.function)
    if not owner_is_site:
        return True
    first = min(b.statement.order for b in bindings)
    last = max(b.statement.order for b in bindings)
    if first <= site.order and (last <= site.order or _stable_after(name)):
        return True
    if last <= site.latest_order:
        _move_site(plan, last)
        return True
    return False


def _stays(plan: Plan, node: Node, function: Function) -> bool:
    """Whether an expression keeps its value once the engine is made, perhaps a little later than planned."""
    site = plan.site
    assert site is not None
    if reads_groups(node):
        return False
    later = changes_later(plan, node, function)
    if any(s.function is not site.function or s.order > site.latest_order for s in later):
        return False
    if later:
        _move_site(plan, max(s.order for s in later))
    return not changes_later(plan, node, function)


def _move_site(plan: Plan, order: int) -> None:
    """Make the engine a little later, behind the statement with this order: a value is known only then."""
    site = plan.site
    assert site is not None
    block = site.anchor.block
    for statement in site.function.statements:
        if statement.block is block and site.order < statement.order <= order <= statement.last_order:
            site.anchor = statement
            site.replaces = None
            return
        if statement.block is block and statement.order <= order <= statement.last_order:
            return


def _stable_after(name: str) -> bool:
    return name in ("args", "opt", "cfg", "config", "opts", "hparams", "FLAGS", "params", "conf")


def _late_attribute(plan: Plan, node: Node, function: Function) -> Node | None:
    """What ``self.x`` is given once and for all behind the engine, in the same block: ``self.amp = amp`` in ``__init__``."""
    site = plan.site
    assert site is not None
    if not isinstance(node, cst.Attribute) or dotted(node.value) != function.self_name:
        return None
    place = plan.flow.place(node, function)
    bindings = plan.flow.by_place.get(place, ()) if place is not None else ()
    if len(bindings) != 1 or is_rebound(plan, node, function):
        return None
    binding = bindings[0]
    if binding.function is not site.function or binding.statement.order <= site.order or binding.index is not None:
        return None
    if binding.kind != "assign" or binding.statement.block not in _blocks_around(site.anchor):
        return None
    for name in _roots(binding.value):  # what it is given has its value already where the engine is made
        given = plan.flow.by_place.get(plan.flow.variable(name, site.function), ())
        if any(b.function is site.function and b.statement.order > site.order for b in given):
            return None
    return binding.value


def _blocks_around(statement: Statement) -> list[Node]:
    return [statement.block, *(outer.block for outer in statement.enclosing())]


def _attributes_in_time(plan: Plan, node: Node, function: Function) -> bool:
    """Whether every ``self.x`` that an expression reads is set before the engine is made, as far as one class shows."""
    site = plan.site
    assert site is not None
    for sub in descendants(node):
        if isinstance(sub, cst.Attribute) and isinstance(sub.value, cst.Name) and sub.value.value == function.self_name:
            place = plan.flow.place(sub, function)
            bindings = plan.flow.by_place.get(place, ()) if place is not None else ()
            if any(b.function is site.function and b.statement.order > site.order for b in bindings):
                return False
    return True


def is_plain(node: Node) -> bool:
    """Whether an expression can be evaluated a second time, elsewhere, without harm."""
    for sub in descendants(node):
        if isinstance(sub, cst.Call):
            name = dotted(sub.func) or ""
            last = name.rpartition(".")[2]
            if name not in BUILTINS and last not in (
                "get", "get_world_size", "device_count", "is_available", "is_bf16_supported", "getattr", "device",
            ):  # fmt: skip
                return False
        if isinstance(sub, cst.Await | cst.Yield | cst.NamedExpr | cst.Lambda | cst.ListComp | cst.GeneratorExp):
            return False
    return True


def _roots(node: Node) -> list[str]:
    """The variables an expression starts from; attribute names and keyword names are not among them."""
    found: list[str] = []
    stack = [node]
    while stack:
        current = stack.pop()
        if isinstance(current, cst.Attribute):
            stack.append(current.value)
        elif isinstance(current, cst.Name):
            if current.value not in found:
                found.append(current.value)
        elif isinstance(current, cst.Arg):
            stack.append(current.value)
        else:
            stack.extend(semantic_children(current))
    return found


class _Substitute(cst.CSTTransformer):
    def __init__(self, replacements: dict[str, str]) -> None:
        super().__init__()
        self.replacements = replacements

    def visit_Attribute_attr(self, node: cst.Attribute) -> None:  # noqa: N802 - LibCST's naming
        self._inside_attr = node.attr

    def visit_Arg_keyword(self, node: cst.Arg) -> None:  # noqa: N802 - LibCST's naming
        self._inside_attr = node.keyword

    _inside_attr: Node | None = None

    def leave_Name(self, original_node: cst.Name, updated_node: cst.Name) -> cst.BaseExpression:  # noqa: N802
        if original_node is self._inside_attr:
            return updated_node
        text = self.replacements.get(original_node.value)
        return updated_node if text is None else cst.parse_expression(text)


def _substitute(plan: Plan, node: Node, replacements: dict[str, str]) -> str:
    if not any(replacements[name] != name for name in replacements):
        return plan.code(node)
    new = node.visit(_Substitute(replacements))
    return plan.tree.module.code_for_node(new).strip()  # type: ignore[arg-type]
