"""What an optimizer owns: parts of the model, and parameters outside of it (a loss with weights, log variances)."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from dsmigrate.codemod.flow import argument
from dsmigrate.codemod.names import dotted
from dsmigrate.codemod.plan import Plan
from dsmigrate.codemod.roles import OptimizerSite
from dsmigrate.codemod.steps.unwrapped import is_unwrapped
from dsmigrate.codemod.tree import Function, Node, Statement, descendants

_TELLING = ("criterion", "loss", "head", "discriminator", "center")
_THROUGH = frozenset({"list", "tuple", "iter", "filter", "chain", "itertools.chain"})
_PARAMETER = frozenset({"torch.nn.Parameter", "torch.nn.parameter.Parameter"})
_PUT_INTO = frozenset({"register_parameter", "add_module", "register_module", "setattr"})
_MOVES = frozenset({"to", "cuda", "cpu", "float", "train", "double"})
_DEPTH = 5


def owns_outsiders(plan: Plan) -> bool:
    """Whether an optimizer owns parameters outside of the model, which engine.step() does not clear at ZeRO 0."""
    return any(outsiders(plan, site) for site in plan.roles.optimizers)


def outsiders(plan: Plan, site: OptimizerSite) -> list[str]:
    """The names of what an optimizer owns, or owns the parameters of, beside the trained model."""
    if site.call is None or not site.call.args:
        return []
    found: list[str | None] = []
    for sub in descendants(site.call.args[0].value):
        owner = _owner(sub)
        if owner is not None and _has_telling_name(owner) and not belongs(plan, owner, site.statement):
            found.append(dotted(owner))
    pieces = list(_pieces(plan, site.call.args[0].value, site.statement, _DEPTH))
    owners = [(_owner(piece), where) for piece, where in pieces]
    if any(owner is not None and belongs(plan, owner, where) for owner, where in owners):
        found += [dotted(_owner(piece) or piece) for piece, where in pieces if _is_outside(plan, piece, where, site)]
    return [name for name in dict.fromkeys(found) if name is not None]


def pieces_of(plan: Plan, params: Node, where: Statement) -> Iterator[tuple[Node, Statement]]:
    """What the first argument of an optimizer is put together from, each with the statement that it stands in."""
    return _pieces(plan, params, where, _DEPTH)


def _owner(node: Node) -> cst.Name | cst.Attribute | None:
    """``x`` of ``x.parameters()``."""
    if isinstance(node, cst.Call) and isinstance(node.func, cst.Attribute) and node.func.attr.value == "parameters":
        owner = node.func.value
        return owner if isinstance(owner, cst.Name | cst.Attribute) else None
    return None


def _has_telling_name(owner: Node) -> bool:
    name = (dotted(owner) or "").lower()
    return "." not in name and any(word in name for word in _TELLING)


def _pieces(plan: Plan, node: Node, where: Statement, depth: int) -> Iterator[tuple[Node, Statement]]:
    """What a list of parameters or groups is put together from, through lists that were made before."""
    inner: list[Node] = []
    if isinstance(node, cst.List | cst.Tuple):
        inner = [element.value for element in node.elements]
    elif isinstance(node, cst.Dict):
        inner = [e.value for e in node.elements if isinstance(e, cst.DictElement) and _is_params(e.key)]
    elif isinstance(node, cst.BinaryOperation) and isinstance(node.operator, cst.Add):
        inner = [node.left, node.right]
    elif isinstance(node, cst.IfExp):
        inner = [node.body, node.orelse]
    elif isinstance(node, cst.Call) and dotted(node.func) in _THROUGH:
        inner = [arg.value for arg in node.args if not isinstance(arg.value, cst.Lambda)]
    elif isinstance(node, cst.Name) and depth and (made := _made_from(plan, node, where)):
        for value, statement in made:
            yield from _pieces(plan, value, statement, depth - 1)
        return
    else:
        yield node, where
    for each in inner:
        yield from _pieces(plan, each, where, depth)


def _is_params(key: Node) -> bool:
    return isinstance(key, cst.SimpleString) and key.evaluated_value == "params"


def _made_from(plan: Plan, name: cst.Name, where: Statement) -> list[tuple[Node, Statement]]:
    """The lists, sums and parameters that a name holds, with what is added to it; nothing where it holds something else."""
    place = plan.flow.place(name, where.function)
    bindings = plan.flow.by_place.get(place, ()) if place is not None else ()
    made = [(b.value, b.statement) for b in bindings if b.index is None and b.kind == "assign"]
    if not made or len(made) != len(bindings) or not all(_is_collection(value) for value, _ in made):
        return []
    for statement in plan.tree.statements:
        node = statement.node
        if isinstance(node, cst.AugAssign) and plan.flow.place(node.target, statement.function) == place:
            made.append((node.value, statement))
        call = node.value if isinstance(node, cst.Expr) else None
        if isinstance(call, cst.Call) and isinstance(call.func, cst.Attribute) and call.args:
            if call.func.attr.value in ("append", "extend", "insert"):
                if plan.flow.place(call.func.value, statement.function) == place:
                    made.append((call.args[-1].value, statement))
    return made


def _is_collection(value: Node) -> bool:
    if isinstance(value, cst.Call):
        return dotted(value.func) in _THROUGH or _owner(value) is not None
    lists = cst.List | cst.Tuple | cst.Dict | cst.ListComp | cst.GeneratorExp
    return isinstance(value, lists | cst.BinaryOperation | cst.IfExp | cst.Name)


def _is_outside(plan: Plan, piece: Node, where: Statement, site: OptimizerSite) -> bool:
    """Whether a piece is a parameter, or those of an object, that is made here and never put into the model."""
    owner = _owner(piece)
    name = owner if owner is not None else piece
    if not isinstance(name, cst.Name) or belongs(plan, name, where):
        return False
    place = plan.flow.place(name, where.function)
    bindings = plan.flow.by_place.get(place, ()) if place is not None else ()
    values = [_moved(b.value) for b in bindings if b.index is None and b.kind == "assign"]
    made = [value for value in values if dotted(value) != name.value]
    if (
        not made
        or len(values) != len(bindings)
        or not all(_makes(plan, value, parameter=owner is None) for value in made)
    ):
        return False
    return not any(_puts_away(statement, name.value, where.function, site) for statement in plan.tree.statements)


def _moved(value: Node) -> Node:
    """``x`` of ``x.to(device)``."""
    while isinstance(value, cst.Call) and isinstance(value.func, cst.Attribute) and value.func.attr.value in _MOVES:
        value = value.func.value
    return value


def _makes(plan: Plan, value: Node, *, parameter: bool) -> bool:
    """Whether an expression makes a parameter, or an object of a class that is given nothing of the model."""
    if not isinstance(value, cst.Call):
        return False
    if parameter:
        requires = argument(value, None, "requires_grad")
        return bool(plan.imports.names(value.func) & _PARAMETER) or (
            requires is not None and dotted(requires) == "True"
        )
    given = [sub for arg in value.args for sub in descendants(arg.value) if isinstance(sub, cst.Name | cst.Attribute)]
    last = (dotted(value.func) or "").rpartition(".")[2]
    return last[:1].isupper() and not any(plan.is_ours(sub) for sub in given)


def _puts_away(statement: Statement, name: str, function: Function, site: OptimizerSite) -> bool:
    """Whether a statement gives a name to an object, by its maker, a registering method or an attribute."""
    node = statement.node
    if statement.function is not function or isinstance(node, cst.BaseCompoundStatement):
        return False
    if isinstance(node, cst.Assign) and dotted(node.value) == name:
        return any(isinstance(target.target, cst.Attribute | cst.Subscript) for target in node.targets)
    for call in descendants(node):
        if not isinstance(call, cst.Call) or call is site.call:
            continue
        last = (dotted(call.func) or "").rpartition(".")[2]
        if last[:1].isupper() or last in _PUT_INTO:
            if any(
                isinstance(sub, cst.Name) and sub.value == name for arg in call.args for sub in descendants(arg.value)
            ):
                return True
    return False


def belongs(plan: Plan, node: cst.CSTNode, statement: Statement, depth: int = 4) -> bool:
    """Whether an expression is the trained model, a part of it, or a loop variable over its parameters."""
    root = node
    while isinstance(root, cst.Attribute | cst.Subscript | cst.Call):
        if (isinstance(root, cst.Attribute) and plan.is_ours(root)) or is_unwrapped(plan, root, statement.function):
            return True
        root = root.func if isinstance(root, cst.Call) else root.value
    if plan.is_ours(root):
        return True
    place = plan.flow.place(root, statement.function)
    bindings = plan.flow.by_place.get(place, ()) if place is not None else ()
    if depth and bindings and all(belongs(plan, b.value, b.statement, depth - 1) for b in bindings if b.kind != "for"):
        if any(b.kind != "for" for b in bindings):
            return True
    for outer in statement.enclosing():
        if isinstance(outer.node, cst.For) and isinstance(root, cst.Name):
            names = {sub.value for sub in descendants(outer.node.target) if isinstance(sub, cst.Name)}
            if root.value in names:
                return any(
                    isinstance(sub, cst.Name | cst.Attribute) and plan.is_ours(sub)
                    for sub in descendants(outer.node.iter)
                )
    return False
