"""MG1xx: which wrap is converted, and where ``deepspeed.initialize`` goes.

DeepSpeed wants the raw module and a finished optimizer; DDP scripts build the optimizer before or after the wrap, in
the same function or in another one. The engine is made at the later of the two, where both can be named.
"""

from __future__ import annotations

import libcst as cst

from dsmigrate.codemod.dispatch import is_property
from dsmigrate.codemod.model import Idea, Kind
from dsmigrate.codemod.names import dotted
from dsmigrate.codemod.plan import EngineSite, Plan
from dsmigrate.codemod.roles import Wrap
from dsmigrate.codemod.steps.acquiring import Acquisition, acquire, acquire_by_object, acquire_held, own_parts
from dsmigrate.codemod.steps.trained import target_of, trained_groups, wrap_groups
from dsmigrate.codemod.steps.upstream import upstream
from dsmigrate.codemod.tree import Function, Node, Statement, descendants

IDEAS = (
    Idea(
        code="MG101",
        title="DistributedDataParallel becomes a DeepSpeed engine",
        summary="The wrap goes; deepspeed.initialize makes the engine from the raw model and the script's own optimizer.",
        why=(
            "The engine replaces the DDP wrapper: it is called like the model, averages gradients over the ranks, and "
            "partitions optimizer state, gradients and parameters by ZeRO stage. The optimizer object of the script is "
            "handed over as it is, so its hyper-parameters, groups and schedule stay. Its param_groups are shared with "
            "the engine both ways, so learning rates written by hand keep working."
        ),
        source="deepspeed/runtime/engine.py, DeepSpeedEngine; engine-semantics 9",
        kind=Kind.CONVERTED,
    ),
    Idea(
        code="MG102",
        title="DataParallel fallback unwrapped",
        summary="torch.nn.DataParallel inside an engine would replicate the module again; the plain module is used.",
        why=(
            "One process drives one device under DeepSpeed. A DataParallel branch for a single process with several "
            "GPUs is replaced by starting as many processes with the launcher."
        ),
        source="torch.nn.DataParallel",
        kind=Kind.CONVERTED,
    ),
    Idea(
        code="MG103",
        title="DDP keyword without a counterpart dropped",
        summary="Keywords that tune DDP's reducer have no meaning for the engine.",
        why=(
            "device_ids and output_device are implied by the process's device; find_unused_parameters is the engine's "
            "normal behaviour (ignore_unused_parameters defaults to true); bucket_cap_mb, gradient_as_bucket_view and "
            "static_graph tune a reducer that is no longer there."
        ),
        source="deepspeed/runtime/zero/config.py, ignore_unused_parameters",
        kind=Kind.CONVERTED,
    ),
    Idea(
        code="MG104",
        title="Buffers are no longer broadcast",
        summary="DDP sends rank 0's buffers (BatchNorm statistics) to all ranks before every forward; DeepSpeed never does.",
        why=(
            "Training losses are unchanged, because batch statistics are used in training mode. Running statistics "
            "then differ by rank, so an evaluation on other ranks than 0 can differ; use SyncBatchNorm, or evaluate "
            "on rank 0, or broadcast the buffers before evaluation."
        ),
        source="engine-semantics 15",
        kind=Kind.KEPT,
    ),
    Idea(
        code="MG106",
        title="DDP's mixed_precision policy",
        summary="Native DDP mixed precision casts parameters for the forward pass; the engine has its own settings.",
        why="bf16, fp16 or torch_autocast in the config replace it, each with other numerics.",
        source="torch.nn.parallel.DistributedDataParallel(mixed_precision=...)",
        kind=Kind.TODO,
    ),
    Idea(
        code="MG116",
        title="Gradients were summed, not averaged",
        summary="apex's DDP adds the ranks' gradients up where gradient_average is False; the engine always averages them.",
        why="Every update would be smaller by the number of ranks (under Adam the weight decay and epsilon would weigh more). "
        "With the loss times the number of ranks the averaged gradient is the sum; clipping limits stay right then.",
        source="apex/parallel/distributed.py, allreduce_bucket; deepspeed/runtime/engine.py, allreduce_bucket",
        kind=Kind.TODO,
    ),
    Idea(
        code="MG114",
        title="Parameters that DDP was told to leave alone",
        summary="Experts or shards that each rank has for itself would become those of rank 0, with averaged gradients.",
        why="DDP neither broadcasts nor reduces what `_ddp_params_and_buffers_to_ignore` names. deepspeed.initialize sends rank "
        "0's parameters to all ranks and averages every gradient. DeepSpeed's own experts (`deepspeed.moe`) are what it "
        "leaves to their groups; parameters that nothing trains can be frozen.",
        source="torch/nn/parallel/distributed.py, _set_params_and_buffers_to_ignore_for_model; deepspeed/runtime/engine.py, "
        "_broadcast_model",
        kind=Kind.TODO,
    ),
    Idea(
        code="MG107",
        title="Imports that nothing uses any more go",
        summary="Names that only the replaced code used are no longer imported.",
        why="An unused import of DistributedDataParallel would suggest that the script still uses it.",
        source="pyflakes, before and after",
        kind=Kind.CONVERTED,
    ),
    Idea(
        code="MG105",
        title="A second wrapped model stays in DDP",
        summary="A wrapped model that no optimizer trains (a teacher, a loss network) keeps its wrap.",
        why="An engine needs an optimizer; a model that is only evaluated or averaged trains nothing and is left alone.",
        source="deepspeed/runtime/engine.py: 'zero stage N requires an optimizer'",
        kind=Kind.KEPT,
    ),
)


def choose(plan: Plan) -> None:
    """Pick the trained wrap and the place of the engine; raises ``RefusedError`` where there is no safe one."""
    groups = wrap_groups(plan)
    trained = trained_groups(plan, groups)
    if not trained:
        raise _no_optimizer(plan, groups[0][0])
    if len(trained) > 1:
        targets = [(target_of(group[0]), group[0].model) for group in trained]
        names = ", ".join(plan.code(node) for pair in targets if (node := pair[0] or pair[1]) is not None)
        raise plan.refuse(
            "MG901",
            trained[1][0].statement,
            f"several wrapped models are trained ({names})",
            "a loss that runs through two engines fails or trains wrongly; `dsmigrate explain MG901` has the way that works",
        )
    plan.wraps = trained[0]
    plan.group = {str(wrap.index) for wrap in plan.wraps}
    for group in groups:
        if group is not trained[0]:
            plan.kept_wraps.extend(group)
    site = _find_site(plan)
    if site is None:
        raise _no_optimizer(plan, plan.wraps[0])
    plan.site = site
    _behind_added_groups(plan, site)
    site.latest = _latest(plan, site)
    plan.facts["upstream"] = upstream(plan, site)


def _no_optimizer(plan: Plan, wrap: Wrap) -> Exception:
    if is_property(plan.flow, wrap.function):
        message = f"the model is wrapped by the property {wrap.function.name}, when it is first read"
        reason = "deepspeed.initialize needs the model and its optimizer in one place: make both in one function, before the training"
    else:
        message = "no function in sight has both the wrapped model and its optimizer"
        reason = "deepspeed.initialize needs the model and its optimizer in one place; one of them may be made in another module"
    return plan.refuse("MG911", wrap.statement, message, reason)


def _find_site(plan: Plan) -> EngineSite | None:
    optimizers = {str(site.index) for site in plan.roles.optimizers}
    candidates: list[tuple[int, int, EngineSite]] = []
    for function in plan.tree.functions:
        by_object = acquire_by_object(plan, function)
        engines = by_object or acquire(plan, function, "E", plan.group)
        opts = acquire(plan, function, "O", optimizers) or acquire_held(plan, function, optimizers)
        if not engines or not opts:
            continue
        site = _site_in(plan, function, engines, opts)
        if site is not None:
            own = any(w.function is function for w in plan.wraps)
            candidates.append((0 if own else 1, plan.tree.functions.index(function), site))
    if not candidates:
        return None
    candidates.sort(key=lambda item: item[:2])
    return candidates[0][2]


def _site_in(
    plan: Plan, function: Function, engines: dict[str, Acquisition], opts: dict[str, Acquisition]
) -> EngineSite | None:
    engine = _pick(plan, engines, "E")
    optimizer = _pick(plan, opts, "O")
    if engine is None or optimizer is None:
        return None
    if engine.on_entry and (optimizer.on_entry or not _is_filled(plan, function, engine.name)):
        return None
    statements = [*engine.statements, *([] if optimizer.on_entry else optimizer.statements)]
    if not engine.on_entry and not optimizer.on_entry:
        # `self.optimizer = optimizer` merely renames what came in: the parameter is available all along.
        incoming = next((o for o in opts.values() if o.on_entry and o.name in function.params), None)
        if incoming is not None and all(_renames(s, incoming.name) for s in optimizer.statements):
            optimizer = incoming
            statements = list(engine.statements)
    anchor = _common_anchor(statements, engine.name, optimizer)
    if anchor is None:
        return None
    wrap = next((w for w in plan.wraps if w.statement is anchor), None)
    model = engine.name
    replaces = None
    if wrap is not None and wrap.model is not None and len(plan.wraps) == 1:
        target = target_of(wrap)
        if target is not None and plan.code(target) == engine.name and isinstance(anchor.node, cst.Assign):
            if getattr(anchor.node.value, "func", None) is wrap.call.func:
                replaces = anchor
    return EngineSite(function, anchor, engine.name, model, optimizer.name, replaces)


def _is_filled(plan: Plan, function: Function, name: str) -> bool:
    """Whether ``self.model``, wrapped by another method, can hold the model already in a function of its class."""
    if name.partition(".")[0] != function.self_name or "." not in name:
        return True
    if any(is_property(plan.flow, wrap.function) for wrap in plan.wraps):
        return False  # made when it is first read
    return function.name != "__init__" or any(_leads_to(plan, function, wrap.function, 4) for wrap in plan.wraps)


def _leads_to(plan: Plan, function: Function, target: Function, depth: int) -> bool:
    callers = {plan.function_of(call) for call in plan.flow.callers.get(target, ())}
    return function in callers or (depth > 0 and any(_leads_to(plan, function, c, depth - 1) for c in callers))


def _renames(statement: Statement, name: str) -> bool:
    node = statement.node
    return isinstance(node, cst.Assign) and isinstance(node.value, cst.Name) and node.value.value == name


def _pick(plan: Plan, found: dict[str, Acquisition], prefix: str) -> Acquisition | None:
    """The name to use: the one that a statement of this function fills, wraps first, plain names first."""

    def rank(item: Acquisition) -> tuple[int, int, int]:
        wraps = {id(w.statement) for w in plan.wraps}
        by_wrap = any(id(s) in wraps for s in item.statements) if prefix == "E" else False
        by_maker = any(s is site.statement for s in item.statements for site in plan.roles.optimizers)
        order = min((s.order for s in item.statements), default=1 << 30)
        return (0 if by_wrap or (prefix == "O" and by_maker) else 1, 0 if item.statements else 1, order)

    return min(found.values(), key=rank, default=None)


def _chain(statement: Statement) -> list[tuple[Node, Statement]]:
    """(block, statement in that block) pairs from the function's own block down to the statement."""
    pairs = [(statement.block, statement)]
    pairs.extend((outer.block, outer) for outer in statement.enclosing())
    return list(reversed(pairs))


def _common_anchor(statements: list[Statement], engine: str, optimizer: Acquisition) -> Statement | None:
    """The last statement, in the deepest block common to all, that holds one of them; hoisted out of rank guards."""
    chains = [_chain(statement) for statement in statements]
    depth = 0
    shortest = min(len(chain) for chain in chains)
    while depth < shortest and all(chain[depth][0] is chains[0][depth][0] for chain in chains):
        depth += 1
    depth -= 1
    if depth < 0:
        return None
    anchor = max((chain[depth][1] for chain in chains), key=lambda s: s.order)
    # Blocks of `elif` are reached through the `if` they belong to.
    anchor = _leave_elif(anchor)
    while anchor.up is not None and isinstance(anchor.up.node, cst.If | cst.With | cst.Try):
        outer = _leave_elif(anchor.up)
        made_inside = bool(optimizer.statements) and all(
            outer.order < s.order <= outer.last_order for s in optimizer.statements
        )
        if made_inside or _is_made_once(outer, engine) or not _used_after(outer, engine):
            break
        anchor = outer
    return anchor


def _is_made_once(statement: Statement, name: str) -> bool:
    """``if self.engine is None:`` around what fills it: outside of it another one would be made each time."""
    node = statement.node
    test = node.test if isinstance(node, cst.If) else None
    if isinstance(test, cst.UnaryOperation) and isinstance(test.operator, cst.Not):
        return dotted(test.expression) == name
    if not isinstance(test, cst.Comparison) or dotted(test.left) != name:
        return False
    return isinstance(test.comparisons[0].operator, cst.Is) and dotted(test.comparisons[0].comparator) == "None"


def _leave_elif(statement: Statement) -> Statement:
    while (
        statement.up is not None
        and isinstance(statement.node, cst.If)
        and isinstance(statement.up.node, cst.If)
        and statement.up.node.orelse is statement.node
    ):
        statement = statement.up
    return statement


def _used_after(outer: Statement, name: str) -> bool:
    if "." in name:
        return True
    for statement in outer.function.statements:
        if statement.order <= outer.last_order:
            continue
        node = statement.node
        heads = own_parts(node)
        if isinstance(node, cst.FunctionDef):
            heads = [node]
        for head in heads:
            if any(isinstance(sub, cst.Name) and dotted(sub) == name for sub in descendants(head)):
                return True
    return isinstance(outer.function.node, cst.Module)


def _behind_added_groups(plan: Plan, site: EngineSite) -> None:
    """The engine is made behind ``optimizer.add_param_group(…)`` lines that directly follow."""
    for statement in site.function.statements:
        if statement.block is not site.anchor.block or statement.order <= site.order:
            continue
        node = statement.node
        if (
            isinstance(node, cst.Expr)
            and isinstance(node.value, cst.Call)
            and isinstance(node.value.func, cst.Attribute)
            and node.value.func.attr.value == "add_param_group"
            and plan.roles.is_optimizer(node.value.func.value)
        ):
            site.anchor = statement
            site.replaces = None
        elif _speaks_of_model(plan, statement):
            break


def _latest(plan: Plan, site: EngineSite) -> Statement | None:
    """The last following statement of the same block before one that speaks of the model or hands the optimizer on."""
    last = None
    plan.flow.place(cst.parse_expression(site.target), site.function)
    for statement in site.function.statements:
        if statement.block is not site.anchor.block or statement.order <= site.order:
            continue
        if isinstance(statement.node, cst.FunctionDef | cst.ClassDef):
            continue
        if _speaks_of_model(plan, statement):
            break
        last = statement
    return last


def _speaks_of_model(plan: Plan, statement: Statement) -> bool:
    for sub in descendants(statement.node):
        if isinstance(sub, cst.Name | cst.Attribute):
            tags = plan.roles.of(sub, statement.function)
            if any(tag[0] in "ER" and tag[1:] in plan.group for tag in tags):
                return True
            if any(tag[0] == "O" for tag in tags) and not _only_schedules(plan, statement):
                return True
        elif isinstance(sub, cst.For | cst.While):
            return True
        elif isinstance(sub, cst.Call) and (callee := plan.flow.callee(sub)) is not None and callee.name != "__init__":
            return True  # an object that is made of something else leaves the model alone
    return False


def _only_schedules(plan: Plan, statement: Statement) -> bool:
    """Whether a statement just makes a scheduler on the optimizer, or reads its learning rate."""
    node = statement.node
    return isinstance(node, cst.Assign) and "S" in plan.roles.of(node.value, statement.function)
