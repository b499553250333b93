"""MG622, MG623: resuming through the engine."""

from __future__ import annotations

import re

import libcst as cst

from dsmigrate.codemod.flow import argument
from dsmigrate.codemod.model import Idea, Kind
from dsmigrate.codemod.names import dotted
from dsmigrate.codemod.plan import Plan
from dsmigrate.codemod.steps.balance import branches_to
from dsmigrate.codemod.steps.checkpoint_facts import Found, has_rank, is_handle, origins, state_is_whole
from dsmigrate.codemod.steps.checkpoint_helpers import need_helpers
from dsmigrate.codemod.steps.checkpoint_reads import read_instead
from dsmigrate.codemod.steps.file_tests import Near, file_tests
from dsmigrate.codemod.steps.folder_answers import folder_answers
from dsmigrate.codemod.steps.passing import hand_over
from dsmigrate.codemod.steps.ranks import rank_guard, some_ranks_only
from dsmigrate.codemod.steps.resumed_alone import weights_left_out
from dsmigrate.codemod.steps.resumed_edits import changed_on_the_way
from dsmigrate.codemod.steps.resumed_in_try import resumed_in_try
from dsmigrate.codemod.steps.resumed_writes import written_on_the_way
from dsmigrate.codemod.steps.same_paths import same_paths
from dsmigrate.codemod.tree import Function, Node, Statement, descendants

IDEAS = (
    Idea(
        "MG622",
        "A resume checkpoint is loaded by the engine",
        "Weights and optimizer state come back through engine.load_checkpoint; the script's own entries as before.",
        "Weights loaded into the module after initialize are undone by the next step at ZeRO 1-3, where the master copy "
        "wins. Checkpoints that the DDP script wrote cannot be read. State that the script changes between reading and "
        "loading would come back as it was saved, and so would a model that it changes between the load and the wrap: such "
        "places are marked, and so is a script that takes the optimizer's state from a checkpoint and not the weights: the engine "
        "has no way to load the one without the other. ZeRO 1 and 2 would also clip by the limit of the saved run; resume_engine sets that of the "
        "config again. At ZeRO 1-3 a checkpoint is resumed by as many processes as saved it: another number is a "
        "ZeRORuntimeException, unless DeepSpeed's ds_to_universal has converted it.",
        "engine-semantics 12-13; deepspeed/runtime/engine.py, _load_zero_checkpoint",
        Kind.CONVERTED,
    ),
    Idea(
        "MG623",
        "A checkpoint is a directory",
        "isfile, is_file, copyfile and remove become exists, another save and rmtree.",
        "os.path.isfile would be false for a DeepSpeed checkpoint, and training would silently start from scratch.",
        "engine-semantics 14",
        Kind.CONVERTED,
    ),
)


def loads(plan: Plan, found: Found) -> None:
    """Convert the loading of resume checkpoints."""
    if not found.optimizer_loads:
        return
    if keeps_files(plan, found):
        for call in found.optimizer_loads:
            plan.handled.add(call)
            plan.kept("MG626", call, "the optimizer state is loaded as before: the config has ZeRO stage 0 and the script saves a file",
                      "nothing is spread over the ranks; at ZeRO 1-3 the engine would have to save and load it")  # fmt: skip
        return
    pickled = bool(plan.facts.get("pickled_optimizer")) and not found.saves
    if not found.loads or pickled:
        origin = "out of a pickled optimizer" if pickled else "from outside this file"
        directory = (
            "; torch.load cannot open a checkpoint of this script now, which is a directory" if found.saves else ""
        )
        for call in found.optimizer_loads:
            plan.todo("MG626", call, f"the optimizer state comes {origin}: load it with engine.load_checkpoint{directory}",
                      "the client optimizer holds this rank's flat partition at ZeRO 1-3")  # fmt: skip
        return
    handles = [load for load in found.loads if is_handle(plan, argument(load, 0, "f"), load)]
    if handles:
        for load in handles:
            plan.todo("MG629", load, "this resume checkpoint is read from an open file: use engine.load_checkpoint(dir, tag)",
                      "a DeepSpeed checkpoint is a directory")  # fmt: skip
        plan.facts["keep_weights"] = True
        return
    _convert_loads(plan, found)
    file_tests(plan, found)
    folder_answers(plan, found, Near(plan, found))
    _restore_optimizer(plan, found)
    _restore_weights(plan, found)
    weights_left_out(plan, found)
    changed_on_the_way(plan, found)
    written_on_the_way(plan, found)
    resumed_in_try(plan, found)
    need_helpers(plan, loading=True)
    _say_of_files(plan, found)


def _say_of_files(plan: Plan, found: Found) -> None:
    """Say what becomes of a file that ``torch.save`` wrote, such as published weights, where it is given to be resumed."""
    if plan.facts.get("files_too"):
        plan.kept("MG622", found.loads[0], "of a file that torch.save wrote (by the DDP script, or published weights) the optimizer state is not restored here",
                  "only a DeepSpeed checkpoint has one for the engine")  # fmt: skip
    else:
        plan.kept("MG622", found.loads[0], "a file that torch.save wrote (by the DDP script, or published weights) stops here now, also where it is to be evaluated only",
                  "read_checkpoint reads DeepSpeed checkpoints; load the weights of such a file before deepspeed.initialize")  # fmt: skip


def same_number(plan: Plan) -> None:
    """Say, once the stage is settled, that a checkpoint belongs to a number of processes."""
    where = plan.facts.get("resumed_at")
    if where is not None and plan.zero_stage:
        plan.kept("MG622", where, "resume with as many processes as saved the checkpoint: at ZeRO 1-3 the engine stops at another number",
                  "each rank loads its own part; DeepSpeed's ds_to_universal makes a checkpoint for another number")  # fmt: skip


def keeps_files(plan: Plan, found: Found) -> bool:
    """Whether the optimizer is whole on every rank, and no save of the script becomes a DeepSpeed checkpoint."""
    return state_is_whole(plan) and not found.saves


def _convert_loads(plan: Plan, found: Found) -> None:
    others = same_paths(plan, found)
    plan.facts["read_again"] = set(others)
    for load in [*found.loads, *others]:
        read_instead(plan, found, load)
        statement = plan.tree.statement(load)
        plan.converted("MG622", statement, "torch.load → read_checkpoint: the script's entries of a DeepSpeed checkpoint",
                       "the engine's part is loaded by resume_engine")  # fmt: skip
        path = argument(load, 0, "f")
        if path is not None and has_rank(plan, path, statement.function) and rank_guard(plan, statement) is None:
            plan.todo("MG622", statement, "every rank read a file of its own here; the engine's checkpoint is one for all, under rank 0's path: "
                      "ask for that path on all ranks", "a rank that finds no checkpoint stops, or leaves the others waiting")  # fmt: skip


def _restore_optimizer(plan: Plan, found: Found) -> None:
    resumed_early = False
    for call in found.optimizer_loads:
        statement = plan.tree.statement(call)
        engine = plan.engine_in(call)
        if engine is None and not plan.is_before_engine(call):
            engine = hand_over(plan, statement.function)
        early = plan.is_before_engine(call) or engine is None
        if not isinstance(statement.node, cst.Expr):
            plan.todo(
                "MG622", statement, "the value of load_state_dict is used; resume_engine gives none", "it has no result"
            )
            continue
        guard = rank_guard(plan, statement)
        read = _read_within(plan, found, statement)
        if early:
            plan.edits.substitute(statement.node, *read)
            resumed_early = True
        elif guard is not None:
            plan.edits.substitute(statement.node, *read)
            plan.edits.insert_after(guard.line_node, f"resume_engine({engine})")
            _rank_local_loads(plan, guard, call)
        elif (weights := _weights_further_out(plan, found, call)) is not None:
            if isinstance(weights.node, cst.Assign):  # `msg = model.load_state_dict(…)`: see _restore_weights
                plan.edits.insert_before(weights.line_node, *read, f"resume_engine({engine})")
            else:
                plan.edits.substitute(weights.node, *read, f"resume_engine({engine})")
            plan.edits.remove(statement.node)
            plan.converted("MG622", weights, "model.load_state_dict → resume_engine, which restores the optimizer too",
                           "the weights are loaded whatever the condition around the optimizer says")  # fmt: skip
        else:
            plan.edits.substitute(statement.node, *read, f"resume_engine({engine})")
        plan.handled.add(call)
        if not early and some_ranks_only(plan, statement):
            plan.todo("MG622", statement, "only some ranks come here, and resume_engine waits for all: call it where all of them come",
                      "loading a checkpoint is collective")  # fmt: skip
        plan.converted("MG622", statement, "optimizer.load_state_dict → engine.load_checkpoint (resume_engine)",
                       "the optimizer state is spread over the ranks")  # fmt: skip
        plan.facts.setdefault("resumed_at", statement)
        _other_origins(plan, found, call)
    if resumed_early and plan.site is not None:
        plan.after_engine.append(f"resume_engine({plan.site.target})")


def _read_within(plan: Plan, found: Found, statement: Statement) -> list[str]:
    """What still has to be read where ``optimizer.load_state_dict(torch.load(path))`` goes: resume_engine asks for it."""
    within = set(descendants(statement.node))
    return [f"read_checkpoint({plan.code(load.args[0].value)})" for load in found.loads if load in within]


_ONLY_EVALUATES = re.compile(
    r"\b(?:only_|is_|do_|run_)?(?:eval|evaluate|evaluation|test|testing|inference)(?:_only|_mode)?\b", re.IGNORECASE
)


def _weights_further_out(plan: Plan, found: Found, optimizer_load: cst.Call) -> Statement | None:
    """The load of the weights that also runs where the optimizer is not restored, because the script only evaluates.

    Conditions that ask what the checkpoint holds are true for every checkpoint of the converted script. Any other
    condition, also one that leaves before the optimizer is restored, is for the person: the weights would come back
    only together with the optimizer.
    """
    statement = plan.tree.statement(optimizer_load)
    path = branches_to(statement)
    loads = set(origins(plan, optimizer_load))
    for call in found.model_loads:
        weights = plan.tree.statement(call)
        if not set(origins(plan, call)) & loads or plan.is_before_engine(call):
            continue
        if not isinstance(weights.node, cst.Expr | cst.Assign):
            continue
        same = weights.function is statement.function
        around = branches_to(weights) if same else _around_reads(plan, loads, statement)
        tests = [node.test for node, branch in path if isinstance(node, cst.If) and (node, branch) not in around]
        leaving, used = _between(plan, weights, statement) if same else ([], False)
        open_tests = [part for test in (*tests, *leaving) for part in _conjuncts(test) if not _asks_for_content(part)]
        on_the_way = same and all(pair in path for pair in around)
        if not open_tests and not (used and on_the_way):
            continue
        if on_the_way and all(_ONLY_EVALUATES.search(plan.code(part)) for part in open_tests):
            return weights
        plan.todo("MG622", weights, "the weights are restored together with the optimizer now, under the condition further down",
                  "resume_engine loads both")  # fmt: skip
    return None


def _around_reads(plan: Plan, loads: set[cst.Call], statement: Statement) -> tuple[tuple[Node, str], ...]:
    """The branches around the reads of a checkpoint, in the function that restores the optimizer from it."""
    reads = [plan.tree.statement(load) for load in loads]
    return tuple(pair for read in reads if read.function is statement.function for pair in branches_to(read))


_ENDS = frozenset({"exit", "quit", "sys.exit", "os._exit"})


def _between(plan: Plan, weights: Statement, statement: Statement) -> tuple[list[Node], bool]:
    """What may keep the optimizer from being restored after the weights, and whether the model is used before that."""
    known = {*branches_to(weights), *branches_to(statement)}
    leaving: list[Node] = []
    used = False
    for other in plan.statements_between(weights, statement):
        node = other.node
        if isinstance(node, cst.Return | cst.Continue | cst.Break):
            branches = [outer for outer, branch in branches_to(other) if (outer, branch) not in known]
            leaving.extend(outer.test for outer in branches if isinstance(outer, cst.If))
        elif not isinstance(node, cst.BaseCompoundStatement):
            for sub in descendants(node):
                if isinstance(sub, cst.Call):
                    used = used or dotted(sub.func) in _ENDS or plan.is_ours(sub.func) or _is_given_the_model(plan, sub)
    return leaving, used


def _is_given_the_model(plan: Plan, call: cst.Call) -> bool:
    """Whether a function of the script gets the model, as one that evaluates does."""
    return plan.flow.callee(call) is not None and any(plan.is_ours(arg.value) for arg in call.args)


def _conjuncts(test: Node) -> list[Node]:
    if isinstance(test, cst.BooleanOperation) and isinstance(test.operator, cst.And):
        return [*_conjuncts(test.left), *_conjuncts(test.right)]
    return [test]


def _asks_for_content(test: Node) -> bool:
    """``"optimizer" in checkpoint`` and ``checkpoint.get("optimizer")``."""
    if isinstance(test, cst.Comparison) and len(test.comparisons) == 1:
        return isinstance(test.left, cst.SimpleString) and isinstance(test.comparisons[0].operator, cst.In)
    if isinstance(test, cst.Call) and isinstance(test.func, cst.Attribute):
        return test.func.attr.value == "get"
    return False


def _other_origins(plan: Plan, found: Found, call: cst.Call) -> None:
    """The checkpoint may also come from elsewhere (a URL): then nothing loads its weights, or the optimizer's state."""
    root = call.args[0].value if call.args else None
    while isinstance(root, cst.Subscript | cst.Attribute):
        root = root.value
    if not isinstance(root, cst.Name):
        return
    place = plan.flow.variable(root.value, plan.function_of(call))
    bindings = list(plan.flow.by_place.get(place, ()))
    for binding in bindings:  # `weights = checkpoint["model"]` leads further, to where the checkpoint comes from
        inner = binding.value
        while isinstance(inner, cst.Subscript | cst.Attribute):
            inner = inner.value
        if inner is not binding.value and isinstance(inner, cst.Name):
            further = plan.flow.by_place.get(plan.flow.variable(inner.value, binding.function), ())
            bindings.extend(other for other in further if other not in bindings)
    elsewhere: set[Node] = plan.facts.setdefault("checkpoints_from_elsewhere", set())
    for binding in bindings:
        value = binding.value
        if isinstance(value, cst.Call) and value not in {*found.loads, *plan.handled, *elsewhere}:
            if (dotted(value.func) or "").endswith(("load_state_dict_from_url", "load_url", "download")):
                elsewhere.add(value)
                plan.todo("MG622", binding.statement, "what is loaded here is no DeepSpeed checkpoint: load its weights before deepspeed.initialize",
                          "what the engine restores below is not loaded from it any more")  # fmt: skip


def _rank_local_loads(plan: Plan, guard: Statement, optimizer_load: cst.Call) -> None:
    """Schedulers and scalers that only the guarded ranks restore: with a partitioned optimizer all ranks must agree."""
    for call in plan.tree.calls:
        statement = plan.tree.statement(call)
        func = call.func
        if call is optimizer_load or not guard.order < statement.order <= guard.last_order:
            continue
        if isinstance(func, cst.Attribute) and func.attr.value == "load_state_dict" and not plan.is_ours(func.value):
            plan.todo("MG622", call, "only some ranks restore this: read the checkpoint on all of them",
                      "schedules and loss scales that differ between ranks spoil a partitioned optimizer")  # fmt: skip


def _restore_weights(plan: Plan, found: Found) -> None:
    """Weights of a resumed checkpoint come from the engine; loads before it exists stay, so that plain files work too."""
    keys: set[str] = set()
    for call in found.model_loads:
        if not set(origins(plan, call)) & set(found.loads):
            continue
        statement = plan.tree.statement(call)
        plan.handled.add(call)
        if plan.is_before_engine(call) or not isinstance(statement.node, cst.Expr | cst.Assign):
            plan.facts["keep_weights"] = True
            plan.facts["files_too"] = True
            continue
        key = _key(call.args[0].value) if call.args else None
        if key is None:
            plan.facts["keep_weights"] = True
        else:
            keys.add(key)
        strict = argument(call, 1, "strict")
        if strict is not None and dotted(strict) == "False":
            plan.facts["not_strict"] = True
        _other_origins(plan, found, call)
        if statement.node in plan.edits.statements:
            continue
        if isinstance(statement.node, cst.Assign):  # `msg = model.load_state_dict(…)`, to be logged
            plan.edits.replace(call, '"restored by the engine"')
        else:
            plan.edits.remove(statement.node)
        plan.converted("MG622", statement, "model.load_state_dict removed: the engine restores the weights",
                       "weights loaded after initialize are undone at ZeRO 1-3")  # fmt: skip
    plan.facts["weight_keys"] = keys
    if keys and _reads_again(plan, found, keys):
        plan.facts["keep_weights"] = True


def _reads_again(plan: Plan, found: Found, keys: set[str]) -> bool:
    """Whether the weights' entry of a resumed checkpoint is read for something else too (an average that begins with it)."""
    known = {part for call in found.model_loads if call in plan.handled for part in descendants(call)}
    for statement in plan.tree.statements:
        if isinstance(statement.node, cst.BaseCompoundStatement):
            continue
        for sub in descendants(statement.node):
            if sub in known:
                continue
            key = _key(sub) if isinstance(sub, cst.Subscript) else _asked_key(sub)
            if key not in keys:
                continue
            base = sub.value if isinstance(sub, cst.Subscript) else sub.func.value  # type: ignore[attr-defined]
            if _comes_from(plan, found, base, statement.function, 4):
                return True
    return False


def _asked_key(node: Node) -> str | None:
    """The key of ``checkpoint.get("key")`` and ``checkpoint.pop("key")``."""
    if isinstance(node, cst.Call) and isinstance(node.func, cst.Attribute) and node.func.attr.value in ("get", "pop"):
        value = node.args[0].value if node.args else None
        return str(value.evaluated_value) if isinstance(value, cst.SimpleString) else None
    return None


def _comes_from(plan: Plan, found: Found, node: Node, function: Function, depth: int) -> bool:
    """Whether an expression may be what one of the resume loads gave, or another load of the same path."""
    if node in found.loads or node in plan.facts["read_again"]:
        return True
    place = plan.flow.place(node, function) if depth and isinstance(node, cst.Name | cst.Attribute) else None
    bindings = plan.flow.by_place.get(place, ()) if place is not None else ()
    return any(_comes_from(plan, found, b.value, b.function, depth - 1) for b in bindings)


def _key(node: Node) -> str | None:
    """The key of ``checkpoint["key"]`` (or an attribute ``snapshot.key``), where nothing is done to the value."""
    if isinstance(node, cst.Subscript) and len(node.slice) == 1 and isinstance(node.slice[0].slice, cst.Index):
        value = node.slice[0].slice.value
        return str(value.evaluated_value) if isinstance(value, cst.SimpleString) else None
    return None
