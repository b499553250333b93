"""The roles that values play in a training script, carried to a fixpoint over the bindings of the file.

Role tags are short strings: ``E0`` the model as wrapped by the first DDP call, ``R0`` the same model unwrapped,
``O0`` an optimizer, ``S`` a learning-rate scheduler, ``G`` a gradient scaler, ``C`` an autocast context, ``N`` an
averaged copy of the model (EMA).  Recognition changes nothing.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import libcst as cst

from dsmigrate.codemod.evaluating import evaluate, evaluate_element, through
from dsmigrate.codemod.flow import Binding, Flow, Place, argument
from dsmigrate.codemod.holders import held_name, is_holder
from dsmigrate.codemod.makers import (
    is_amp_initialize,
    is_made_here,
    is_optimizer_call,
    is_parser_call,
    is_scheduler_call,
)
from dsmigrate.codemod.names import Imports, dotted
from dsmigrate.codemod.role_names import (
    ABOUT_OPTIMIZER,
    DATA_PARALLEL_NAMES,
    OPTIMIZER_NAME,
    SCALER_NAMES,
    SCHEDULER_WORD,
    is_ddp_class,
    qualifies,
)
from dsmigrate.codemod.tree import Function, Node, Statement, Tree


@dataclass(slots=True)
class Wrap:
    """One DDP construction: the call, its statement, the model inside and the function it stands in."""

    index: int
    call: cst.Call
    statement: Statement
    model: Node | None
    is_apex: bool = False

    @property
    def function(self) -> Function:
        """The function that the wrap stands in."""
        return self.statement.function


@dataclass(slots=True)
class OptimizerSite:
    """A place where an optimizer is made (or first seen, where it comes from outside the file)."""

    index: int
    node: Node
    statement: Statement
    call: cst.Call | None
    place: Place | None


@dataclass(slots=True)
class Roles:
    """The result: tags per place, and the sites they come from."""

    flow: Flow
    wraps: list[Wrap] = field(default_factory=list)
    optimizers: list[OptimizerSite] = field(default_factory=list)
    env: dict[Place, set[str]] = field(default_factory=dict)
    data_parallel: list[cst.Call] = field(default_factory=list)
    scalers: list[cst.Call] = field(default_factory=list)
    used_as_optimizer: set[str] | None = None
    optimizer_classes: dict[str, bool] = field(default_factory=dict)
    # Places whose raw-model tag came backwards from a wrap; only these pass it further back.
    came_back: dict[Place, set[str]] = field(default_factory=dict)

    # -- asking ---------------------------------------------------------------------------------------------------

    def of(self, node: Node | None, function: Function) -> set[str]:
        """The tags that the value of an expression may carry."""
        return evaluate(self, node, function) if node is not None else set()

    def here(self, node: Node) -> set[str]:
        """The tags of an expression where it stands."""
        return self.of(node, self.flow.tree.statement(node).function)

    def is_optimizer(self, node: Node) -> bool:
        """Whether an expression may be an optimizer."""
        return any(tag[0] == "O" for tag in self.here(node))

    def is_scaler(self, node: Node) -> bool:
        """Whether an expression may be a gradient scaler."""
        return "G" in self.here(node)

    def is_scheduler(self, node: Node) -> bool:
        """Whether an expression is a learning-rate scheduler and nothing else."""
        tags = self.here(node)
        return "S" in tags and not any(tag[0] == "O" for tag in tags)

    def is_model(self, node: Node) -> bool:
        """Whether an expression may be the wrapped or unwrapped model."""
        return any(tag[0] in "ER" for tag in self.here(node))


def recognise(tree: Tree, imports: Imports) -> Roles:
    """Give every place of the file its roles."""
    flow = Flow(tree, imports)
    roles = Roles(flow)
    _find_wraps(roles)
    _seed_optimizers(roles)
    _seed_by_use(roles)
    for last in (False, True):
        for _ in range(12):
            if not _propagate(roles):
                break
        # What is used as an optimizer although no value was seen to arrive there: it came by a way not followed.
        if last or not _seed_by_use(roles, bound_too=True):
            break
    return roles


def _find_wraps(roles: Roles) -> None:
    tree, imports = roles.flow.tree, roles.flow.imports
    for call in tree.calls:
        if is_ddp_class(imports, call.func):
            model = argument(call, 0, "module")
            if model is None:
                continue
            apex = any(name.startswith("apex") for name in imports.names(call.func))
            roles.wraps.append(Wrap(len(roles.wraps), call, tree.statement(call), model, apex))
        elif qualifies(imports, call.func, DATA_PARALLEL_NAMES):
            roles.data_parallel.append(call)
        elif qualifies(imports, call.func, SCALER_NAMES):
            roles.scalers.append(call)


def _seed_optimizers(roles: Roles) -> None:
    tree, flow = roles.flow.tree, roles.flow
    for binding in flow.bindings:
        name = binding.place[2]
        value = binding.value
        if binding.kind not in ("assign", "with") or not isinstance(value, cst.Call):
            continue
        if binding.index is None:
            if is_optimizer_call(roles, value) and is_made_here(flow, value):
                if not SCHEDULER_WORD.search(name):
                    _add_optimizer(roles, value, binding.statement, binding.place)
            elif (
                OPTIMIZER_NAME.match(name)
                and not is_scheduler_call(roles, value)
                and flow.callee(value) is None
                and not is_parser_call(value)
                and _steps_somewhere(roles, name)
            ):
                _add_optimizer(roles, value, binding.statement, binding.place)
        elif (
            OPTIMIZER_NAME.match(name)
            and not ABOUT_OPTIMIZER.search(name)
            and flow.callee(value) is None
            and not is_amp_initialize(roles, value)
        ):
            _add_optimizer(roles, value, binding.statement, binding.place)
    for statement in tree.statements:
        node = statement.node
        if isinstance(node, cst.Return) and isinstance(node.value, cst.Call) and is_optimizer_call(roles, node.value):
            if is_made_here(flow, node.value):
                _add_optimizer(roles, node.value, statement, None)
        elif isinstance(node, cst.Return) and isinstance(node.value, cst.Tuple):
            for element in node.value.elements:
                value = element.value
                if isinstance(value, cst.Call) and is_optimizer_call(roles, value) and is_made_here(flow, value):
                    _add_optimizer(roles, value, statement, None)
    _seed_held(roles)


def _seed_held(roles: Roles) -> None:
    """``NoamOpt(size, factor, warmup, Adam(…))``: what is made as an argument of an object that steps it."""
    flow = roles.flow
    for call in flow.tree.calls if flow.holders else ():
        callee = flow.callee(call)
        if callee is None or callee.owner is None or callee.name != "__init__" or held_name(flow, callee.owner) is None:
            continue
        for arg in call.args:
            value = arg.value
            if isinstance(value, cst.Call) and is_optimizer_call(roles, value) and is_made_here(flow, value):
                _add_optimizer(roles, value, flow.tree.statement(call), None)


def _steps_somewhere(roles: Roles, name: str) -> bool:
    """Whether a name is used as an optimizer anywhere: stepped, zeroed, asked for its groups, or handed to a scaler."""
    known: set[str] | None = roles.used_as_optimizer
    if known is None:
        known = set()
        for call in roles.flow.tree.calls:
            func = call.func
            if not isinstance(func, cst.Attribute):
                continue
            if func.attr.value in ("step", "zero_grad", "state_dict", "load_state_dict", "add_param_group"):
                known.add((dotted(func.value) or "").rpartition(".")[2])
            if func.attr.value in ("step", "unscale_") and call.args:
                known.add((dotted(call.args[0].value) or "").rpartition(".")[2])
        roles.used_as_optimizer = known
    return name in known


def _add_optimizer(roles: Roles, node: Node, statement: Statement, place: Place | None) -> None:
    index = len(roles.optimizers)
    call = node if isinstance(node, cst.Call) else None
    roles.optimizers.append(OptimizerSite(index, node, statement, call, place))
    if place is not None:
        roles.env.setdefault(place, set()).add(f"O{index}")


def _seed_by_use(roles: Roles, *, bound_too: bool = False) -> bool:
    """Parameters and outside values that are used as optimizers or schedulers although nothing here makes them."""
    tree, flow = roles.flow.tree, roles.flow
    seeded = False
    methods: dict[Place, set[str]] = {}
    first: dict[Place, tuple[Node, Statement]] = {}
    for call in tree.calls:
        if not isinstance(call.func, cst.Attribute):
            continue
        statement = tree.statement(call)
        place = flow.place(call.func.value, statement.function)
        if place is None:
            continue
        methods.setdefault(place, set()).add(call.func.attr.value)
        first.setdefault(place, (call.func.value, statement))
    for place, used in methods.items():
        name = place[2]
        if roles.env.get(place) or is_holder(flow, place):
            continue
        if SCHEDULER_WORD.search(name):
            if "step" in used:
                roles.env.setdefault(place, set()).add("S")
            continue
        if ("step" in used and ("zero_grad" in used or OPTIMIZER_NAME.match(name))) or (
            "zero_grad" in used and OPTIMIZER_NAME.match(name)
        ):
            if not bound_too and any(b.kind in ("assign", "argument", "return") for b in _bindings_to(roles, place)):
                continue  # a value made in this file; the fixpoint will tell
            if any(tag[0] in "ER" for tag in roles.env.get(place, ())):
                continue
            seeded = True
            node, statement = first[place]
            index = len(roles.optimizers)
            roles.optimizers.append(OptimizerSite(index, node, statement, None, place))
            roles.env.setdefault(place, set()).add(f"O{index}")
            for binding in _bindings_to(roles, place):
                if isinstance(binding.value, cst.Name) and binding.value.value in binding.function.params:
                    source = flow.variable(binding.value.value, binding.function)
                    roles.env.setdefault(source, set()).add(f"O{index}")
    return seeded


def _bindings_to(roles: Roles, place: Place) -> list[Binding]:
    return [
        b for b in roles.flow.by_place.get(place, ()) if not (isinstance(b.value, cst.Name) and b.value.value == "None")
    ]


def _propagate(roles: Roles) -> bool:
    changed = False
    flow = roles.flow
    for wrap in roles.wraps:
        if wrap.model is not None:
            changed |= _mark_raw(roles, wrap.model, wrap.function, f"R{wrap.index}")
    for binding in flow.bindings:
        if binding.kind == "for":
            tags = _element_tags(roles, binding)
        elif binding.index is None:
            tags = evaluate(roles, binding.value, binding.function)
        else:
            tags = evaluate_element(roles, binding.value, binding.index, binding.function)
        known = roles.env.setdefault(binding.place, set())
        if not tags <= known:
            known |= tags
            changed = True
        # The raw model flows backwards: what ends up inside DDP was the raw model before.
        raw = roles.came_back.get(binding.place, set())
        if raw and binding.index is None and binding.kind != "for":
            for tag in sorted(raw):
                changed |= _mark_raw(roles, binding.value, binding.function, tag)
        elif raw and binding.index is not None and isinstance(binding.value, cst.Call):
            function = flow.callee(binding.value)
            if function is not None:
                for tag in raw:
                    changed |= _tag_back(roles, flow.returned(function, binding.index), tag)
    return changed


def _element_tags(roles: Roles, binding: Binding) -> set[str]:
    value = binding.value
    if isinstance(value, cst.List | cst.Tuple):
        tags: set[str] = set()
        for element in value.elements:
            tags |= evaluate(roles, element.value, binding.function)
        return {tag for tag in tags if tag[0] in "OS"}
    return set()


def _mark_raw(roles: Roles, node: Node, function: Function, tag: str) -> bool:
    node = through(roles, node)
    if isinstance(node, cst.IfExp):
        return _mark_raw(roles, node.body, function, tag) | _mark_raw(roles, node.orelse, function, tag)
    if isinstance(node, cst.Call):
        callee = roles.flow.callee(node)
        if callee is not None and callee.name != "__init__":
            return _tag_back(roles, roles.flow.returned(callee), tag)
        return False
    place = roles.flow.place(node, function)
    return place is not None and _tag_back(roles, place, tag)


def _tag_back(roles: Roles, place: Place, tag: str) -> bool:
    roles.env.setdefault(place, set()).add(tag)
    known = roles.came_back.setdefault(place, set())
    if tag in known:
        return False
    known.add(tag)
    return True
