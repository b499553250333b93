"""Converts one file: parse, recognise, plan, rewrite, audit. Pure: nothing is read, written, imported or run."""

from __future__ import annotations

import ast
from dataclasses import replace

import libcst as cst

from dsmigrate.codemod import audit, imports_edit, launch
from dsmigrate.codemod.edit import Edits
from dsmigrate.codemod.model import Change, FileResult, Kind, Options, Status
from dsmigrate.codemod.names import Imports, dotted
from dsmigrate.codemod.plan import Plan, RefusedError
from dsmigrate.codemod.roles import recognise
from dsmigrate.codemod.steps import (
    accumulation,
    apex,
    batch,
    checkpoint,
    clipping,
    config_optimizer,
    engine,
    existing,
    gradients,
    inputs,
    loop,
    optimizer,
    precision,
    process_group,
    refusals,
    site,
    sites,
    stage3,
    unwrap,
    wrap,
)
from dsmigrate.codemod.tree import Statement, Tree
from dsmigrate.files import syntax
from dsmigrate.files.diff import unified
from dsmigrate.files.text import SourceError, SourceText, decode, encode

# A file that names none of these has nothing for us; looking for them is much cheaper than parsing.
_WORDS = ("DistributedDataParallel", "DDP", "init_process_group", "init_distributed", ".backward(")


def migrate_source(source: bytes, *, path: str, options: Options) -> FileResult:
    """Convert the source of one script.

    Takes the bytes of the file and the path to name in the report; gives what would be written, with a change for
    every decision. Bad input gives ``Status.ERROR`` with the line, never an exception.
    """
    try:
        text = decode(source)
        if not any(word in text.text for word in _WORDS):
            syntax.parse(text.text)
            return FileResult(path, Status.UNCHANGED)
        return syntax.with_deep_stack(lambda: _migrate(text, path, options))
    except SourceError as error:
        return _failed(path, error.line, error.message)


def _failed(path: str, line: int, message: str) -> FileResult:
    change = Change("MG900", Kind.REFUSED, line, line, message, "the file is left as it is")
    return FileResult(path, Status.ERROR, (change,))


def _migrate(source: SourceText, path: str, options: Options) -> FileResult:
    python = syntax.parse(source.text)
    try:
        module = cst.parse_module(source.text)
    except cst.ParserSyntaxError as error:
        return _failed(path, error.raw_line, f"LibCST cannot read this: {error.message}")
    tree = Tree(module, python)
    imports = Imports(tree)
    roles = recognise(tree, imports)
    plan = Plan(tree, imports, roles, _with_stage_of(options), Edits(tree))
    try:
        if not _concerns_us(plan):
            return FileResult(path, Status.UNCHANGED)
        _decide(plan)
    except RefusedError as refusal:
        return FileResult(path, Status.REFUSED, (refusal.change,))
    return _rewrite(plan, source, path, python)


def _with_stage_of(options: Options) -> Options:
    """A config that is there already has chosen the ZeRO stage, unless the person says another."""
    section = options.config.get("zero_optimization") if options.config is not None else None
    stage = section.get("stage") if isinstance(section, dict) else None
    if options.zero_stage is None and isinstance(stage, int) and not isinstance(stage, bool) and 0 <= stage <= 3:
        return replace(options, zero_stage=stage)
    return options


def _concerns_us(plan: Plan) -> bool:
    """Whether there is something to convert; raises a refusal where the rest of the job is in another module."""
    backward = sites.find_backward(plan)
    if any("deepspeed.initialize" in plan.imports.names(call.func) for call in plan.tree.calls):
        # Converted already, by this tool or by hand: a loss that still runs its own backward makes the difference.
        if not plan.roles.wraps or (backward and all(call.args for call in backward)):
            return False
    if plan.roles.wraps:
        return True
    starts = [call for call in plan.tree.calls if plan.imports.names(call.func) & process_group.INIT_NAMES]
    if starts and backward:
        raise plan.refuse(
            "MG912", backward[0], "a training loop is here, but the DistributedDataParallel wrap is not",
            "the wrap is in another module, or the script trains without DDP",
        )  # fmt: skip
    return False


def _decide(plan: Plan) -> None:
    refusals.check(plan)
    if not sites.find_backward(plan):
        raise plan.refuse(
            "MG910", plan.roles.wraps[0].statement, "the model is wrapped here, but the training loop is in another module",
            "the loop has to be converted together with the wrap",
        )  # fmt: skip
    site.choose(plan)
    process_group.run(plan)
    wrap.run(plan)
    apex.detect_apex(plan)
    loop.run(plan)
    precision.run(plan)
    clipping.run(plan)
    gradients.check_gradient_helpers(plan)
    clipping.unscale(plan)
    unwrap.run(plan)
    optimizer.run(plan)
    accumulation.choose_accumulation(plan)
    checkpoint.run(plan)
    stage3.run(plan)
    batch.run(plan)
    config_optimizer.run(plan)
    existing.run(plan)
    inputs.run(plan)
    launch.find_options(plan)
    engine.run(plan)
    imports_edit.add_needed(plan)


def _rewrite(plan: Plan, source: SourceText, path: str, python: ast.Module) -> FileResult:
    module = plan.edits.apply()
    module = _drop_imports(plan, module, python)
    code = module.code
    problem = _audit(python, code)
    if problem is not None:
        change = Change("MG999", Kind.REFUSED, 1, 1, problem, "dsmigrate's own audit failed; the file is left as it is")
        return FileResult(path, Status.REFUSED, (change,))
    if source.newline not in ("\n", module.default_newline):
        code = code.replace("\n", source.newline)
    if source.text[-1:] in ("\r", "\n") and code[-1:] not in ("\r", "\n"):
        code += source.newline  # LibCST loses a lone carriage return at the end of a file
    changes = _covering(source.text, code, sorted(plan.changes, key=lambda c: (c.line, c.code)))
    todos = any(change.kind is Kind.TODO for change in changes)
    return FileResult(
        path,
        Status.CONVERTED_WITH_TODOS if todos else Status.CONVERTED,
        tuple(changes),
        unified(source.text, code, path),
        encode(code, source),
        _ordered(plan.config),
        launch.commands(plan, path),
        tuple(change for change in changes if change.kind is Kind.KEPT and change.code in _DIFFERENT),
    )


def _drop_imports(plan: Plan, module: cst.Module, python: ast.Module) -> cst.Module:
    """Take out imports that only the removed code used."""
    try:
        after = ast.parse(module.code)
    except SyntaxError:
        return module
    gone = audit.unused_imports(after) - audit.unused_imports(python)
    candidates: dict[str, Statement] = {}
    for statement in plan.tree.statements:
        node = statement.node
        if not isinstance(node, cst.Import | cst.ImportFrom) or isinstance(node.names, cst.ImportStar):
            continue
        prefix = ""
        if isinstance(node, cst.ImportFrom):
            prefix = "." * len(node.relative) + (dotted(node.module) or "") + "."
        for alias in node.names:
            name = dotted(alias.name) or ""
            local = alias.asname.name.value if alias.asname and isinstance(alias.asname.name, cst.Name) else name
            full = prefix + name if local == name else f"{prefix}{name} as {local}"
            if full in gone and "." not in local:
                candidates[local] = statement
    if not candidates:
        return module
    new, dropped = imports_edit.drop_unused(module, candidates)
    for name in sorted(dropped):
        plan.converted("MG107", candidates[name], f"unused now: {name}", "nothing in the converted script uses it")
    return new


def _audit(before: ast.Module, code: str) -> str | None:
    """What is wrong with the result, or None."""
    try:
        after = ast.parse(code)
        compile(code, "<converted>", "exec", dont_inherit=True)
    except (SyntaxError, ValueError) as error:
        return f"the converted script would not compile: {error}"
    new = audit.undefined_names(after) - audit.undefined_names(before)
    if new:
        return f"the converted script would use undefined names: {', '.join(sorted(new))}"
    return None


def _covering(before: str, after: str, changes: list[Change]) -> list[Change]:
    """Widen the report so that every line that is gone is covered by the change it went with."""
    for line in audit.uncovered_lines(before, after, changes):
        near = min(
            range(len(changes)),
            key=lambda k: (
                min(abs(changes[k].line - line), abs(changes[k].end_line - line)),
                changes[k].kind is not Kind.CONVERTED,
            ),
        )
        change = changes[near]
        if change.end_line + 1 == line:
            changes[near] = replace(change, end_line=line)
        elif change.line - 1 == line:
            changes[near] = replace(change, line=line)
        elif change.end_line < line or line < change.line:
            changes.append(replace(change, line=line, end_line=line))
    return sorted(changes, key=lambda c: (c.line, c.code))


# Kept constructs that behave a little differently under the engine: the report says so in a group of its own.
_DIFFERENT = frozenset({"MG104", "MG110", "MG406", "MG623", "MG207", "MG308", "MG603", "MG624", "MG702"})

_ORDER = (
    "train_micro_batch_size_per_gpu", "gradient_accumulation_steps", "managed_gradient_accumulation", "gradient_clipping",
    "zero_optimization", "torch_autocast", "fp16", "bf16", "zero_allow_untested_optimizer", "zero_force_ds_cpu_optimizer",
)  # fmt: skip


def _ordered(config: dict[str, object]) -> dict[str, object]:
    config.setdefault("gradient_accumulation_steps", 1)
    return {key: config[key] for key in (*_ORDER, *sorted(set(config) - set(_ORDER))) if key in config}
