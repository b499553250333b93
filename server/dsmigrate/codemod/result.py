"""From the finished plan to new text, audited, with a report that covers every changed line."""

from __future__ import annotations

import ast
from dataclasses import replace

import libcst as cst

from dsmigrate.codemod import audit, imports_edit, launch
from dsmigrate.codemod.model import UNUSED, Change, FileResult, Kind, Start, Status
from dsmigrate.codemod.names import dotted
from dsmigrate.codemod.plan import Plan
from dsmigrate.codemod.starting import start_of
from dsmigrate.codemod.tree import Part, Statement
from dsmigrate.files.diff import unified
from dsmigrate.files.text import SourceText, encode


def of(plan: Plan, source: SourceText, path: str) -> FileResult:
    """The result for a script that is alone."""
    try:
        code, changes = rewritten(plan, plan.tree.parts[0], source)
    except AuditError as error:
        return failed_audit(path, error)
    start = start_of(plan)
    commands = launch.commands(plan, path, start)
    return with_placeholders(plan, converted(path, source, code, changes, ordered(plan.config), commands, start))


def with_placeholders(plan: Plan, found: FileResult) -> FileResult:
    """The result of a script with the words that its launch commands leave to the person."""
    return replace(found, placeholders=plan.facts.get("placeholders", ()))


def failed_audit(path: str, error: AuditError) -> FileResult:
    """The result for a script whose conversion did not pass."""
    reason = "dsmigrate's own audit failed; the file is left as it is"
    return FileResult(path, Status.REFUSED, (Change("MG999", Kind.REFUSED, 1, 1, str(error), reason),))


def converted(
    path: str,
    source: SourceText,
    code: str,
    changes: list[Change],
    config: dict[str, object] | None = None,
    commands: tuple[str, ...] = (),
    start: Start | None = None,
) -> FileResult:
    """The result for a file that was changed to ``code``."""
    todos = any(change.kind is Kind.TODO for change in changes)
    return FileResult(
        path,
        Status.CONVERTED_WITH_TODOS if todos else Status.CONVERTED,
        tuple(changes),
        unified(source.text, code, path),
        encode(code, source),
        config,
        commands,
        tuple(change for change in changes if change.kind is Kind.KEPT and change.code in _DIFFERENT),
        start,
    )


class AuditError(Exception):
    """The conversion of a file does not pass dsmigrate's own audit; the message says why."""


def rewritten(plan: Plan, part: Part, source: SourceText) -> tuple[str, list[Change]]:
    """The new text of a file and its decisions, every line that is gone covered by one. Raises AuditError."""
    module = plan.edits.apply(part)
    code = module.code
    after = _compiled(code)
    slim = _without_unused(plan, part, module, after)
    if slim is not module:
        code = slim.code
        after = _compiled(code)
    new = audit.undefined_names(after) - audit.undefined_names(part.python)
    if new:
        raise AuditError(f"the converted script would use undefined names: {', '.join(sorted(new))}")
    if source.newline not in ("\n", module.default_newline):
        code = code.replace("\n", source.newline)
    if source.text[-1:] in ("\r", "\n") and code[-1:] not in ("\r", "\n"):
        code += source.newline  # LibCST loses a lone carriage return at the end of a file
    changes = sorted(plan.changes.get(part, ()), key=lambda c: (c.line, c.code))
    return code, _covering(source.text, code, changes)


def _compiled(code: str) -> ast.Module:
    """The tree of the result. Raises AuditError."""
    try:
        after = ast.parse(code)
        compile(code, "<converted>", "exec", dont_inherit=True)
    except (SyntaxError, ValueError) as error:
        raise AuditError(f"the converted script would not compile: {error}") from None
    return after


def _without_unused(plan: Plan, part: Part, module: cst.Module, after: ast.Module) -> cst.Module:
    """The module without the imports that only the removed code used."""
    gone = audit.unused_imports(after) - audit.unused_imports(part.python)
    candidates: dict[str, Statement] = {}
    for statement in plan.tree.statements:
        node = statement.node
        if not isinstance(node, cst.Import | cst.ImportFrom) or isinstance(node.names, cst.ImportStar):
            continue
        if plan.part_of(statement) is not part:
            continue
        prefix = ""
        if isinstance(node, cst.ImportFrom):
            prefix = "." * len(node.relative) + (dotted(node.module) or "") + "."
        for alias in node.names:
            name = dotted(alias.name) or ""
            local = alias.asname.name.value if alias.asname and isinstance(alias.asname.name, cst.Name) else name
            full = prefix + name if local == name else f"{prefix}{name} as {local}"
            of_helpers = not statement.function.is_module and local in plan.needed_imports
            if full in gone and "." not in local and not of_helpers:
                candidates[local] = statement
    if not candidates:
        return module
    new, dropped = imports_edit.drop_unused(module, candidates)
    for name in sorted(dropped):
        plan.converted("MG107", candidates[name], f"{UNUSED}{name}", "nothing in the converted script uses it")
    return new


def _covering(before: str, after: str, changes: list[Change]) -> list[Change]:
    """Widen the report so that every line that is gone is covered by the change it went with."""
    for line in audit.uncovered_lines(before, after, changes):
        if not changes:
            raise AuditError("the report would not speak of a changed line")
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
_DIFFERENT = frozenset(
    {
        "MG104",
        "MG110",
        "MG210",
        "MG213",
        "MG216",
        "MG406",
        "MG623",
        "MG207",
        "MG308",
        "MG309",
        "MG610",
        "MG603",
        "MG622",
        "MG624",
        "MG702",
    }
)

_ORDER = (
    "train_micro_batch_size_per_gpu", "gradient_accumulation_steps", "managed_gradient_accumulation", "gradient_clipping",
    "zero_optimization", "torch_autocast", "fp16", "bf16",
    "communication_data_type", "prescale_gradients", "zero_allow_untested_optimizer", "zero_force_ds_cpu_optimizer",
)  # fmt: skip


def ordered(config: dict[str, object]) -> dict[str, object]:
    """The config in the order in which it is written."""
    config.setdefault("gradient_accumulation_steps", 1)
    return {key: config[key] for key in (*_ORDER, *sorted(set(config) - set(_ORDER))) if key in config}
