"""Tools for planting a fault in a converted script: find the engine's calls, edit the text around them.

Faults are planted by pattern, not by line, so that they still find their place when the tool writes its output
differently. What is not there raises `NotApplicableError`.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

BACKWARD = re.compile(
    r"^(?P<indent> *)(?P<engine>[\w.]+)\.backward\((?P<loss>(?!\s*\))(?!.*\*\*)[^\n]+)\)$", re.MULTILINE
)
"""``engine.backward(loss)`` on a line of its own; not ``loss.backward()``."""

PLAIN_STEP = re.compile(r"^(?P<indent> *)(?P<owner>[\w.]+)\.step\(\)$", re.MULTILINE)


class NotApplicableError(Exception):
    """The script has nothing that this fault could be planted in."""


@dataclass(frozen=True, slots=True)
class Initialize:
    """The statement that calls ``deepspeed.initialize``; lines are 1-based, expressions are source text."""

    first_line: int
    last_line: int
    indent: str
    engine: str
    model: str
    optimizer: str
    config: str
    call: ast.Call
    scope: int


def edit_sources(folder: Path, change: Callable[[str], str]) -> None:
    """Apply ``change`` to every Python file below ``folder``; one of them at least has to come out different."""
    changed = False
    for path in sorted(folder.rglob("*.py")):
        before = path.read_text()
        after = change(before)
        if after != before:
            ast.parse(after)
            path.write_text(after)
            changed = True
    if not changed:
        raise NotApplicableError


def replace(pattern: str, replacement: str) -> Callable[[Path], None]:
    """A fault that is one substitution, anywhere in the sources; ``^`` and ``$`` match at line ends."""
    compiled = re.compile(pattern, re.MULTILINE)
    return lambda folder: edit_sources(folder, lambda text: compiled.sub(replacement, text))


def _statements(tree: ast.AST) -> Iterator[tuple[ast.stmt, int]]:
    """Every statement with an identity of the block it stands in."""
    for node in ast.walk(tree):
        for block in ("body", "orelse", "finalbody"):
            inner = getattr(node, block, None)
            if isinstance(inner, list):
                yield from ((statement, id(inner)) for statement in inner if isinstance(statement, ast.stmt))


def _initializations(tree: ast.Module) -> Iterator[Initialize]:
    for statement, scope in _statements(tree):
        if not isinstance(statement, ast.Assign):
            continue
        for call in ast.walk(statement.value):
            if isinstance(call, ast.Call) and ast.unparse(call.func) == "deepspeed.initialize":
                engine = statement.targets[0]
                given = {word.arg: ast.unparse(word.value) for word in call.keywords}
                yield Initialize(
                    statement.lineno,
                    statement.end_lineno or statement.lineno,
                    " " * statement.col_offset,
                    ast.unparse(engine),
                    given["model"],
                    given["optimizer"],
                    given["config"],
                    call,
                    scope,
                )


def _insert(text: str, line: int, statement: str) -> str:
    lines = text.splitlines(keepends=True)
    lines.insert(line, statement + "\n")
    return "".join(lines)


def before_initialize(
    statement: str, arguments: str = "model={model}, optimizer={optimizer}"
) -> Callable[[Path], None]:
    """A fault that is one statement before the engine, which knows the config as ``planted``, or other arguments."""

    def change(text: str) -> str:
        call = next(_initializations(ast.parse(text)), None)
        if call is None:
            return text
        lines = (
            f"planted = {call.config}",
            'planted = planted if isinstance(planted, dict) else __import__("json").load(open(planted))',
            statement.format(model=call.model, optimizer=call.optimizer),
        )
        given = arguments.format(model=call.model, optimizer=call.optimizer)
        called = f"deepspeed.initialize({given}, config=planted)"
        return _insert(
            _replaced(text, call.call, called), call.first_line - 1, "\n".join(call.indent + line for line in lines)
        )

    return lambda folder: edit_sources(folder, change)


def _replaced(text: str, node: ast.expr, code: str) -> str:
    """Put other code in the place of an expression."""
    lines = text.splitlines(keepends=True)
    assert node.end_lineno is not None
    assert node.end_col_offset is not None
    first, last = lines[node.lineno - 1].encode(), lines[node.end_lineno - 1].encode()
    lines[node.lineno - 1 : node.end_lineno] = [
        (first[: node.col_offset] + code.encode() + last[node.end_col_offset :]).decode()
    ]
    return "".join(lines)


def load_weights_late(text: str) -> str:
    """Make the engine from other weights than the script's, and load the script's weights into its module."""
    call = next(_initializations(ast.parse(text)), None)
    if call is None:
        return text
    late = f"{call.engine}.module.load_state_dict(late_weights)"
    early = (
        f"late_weights = {{name: weight.clone() for name, weight in {call.model}.state_dict().items()}}; "
        f"[weight.data.mul_(0.9) for weight in {call.model}.parameters()]"
    )
    return _insert(_insert(text, call.last_line, call.indent + late), call.first_line - 1, call.indent + early)


def hand_over_scheduler(text: str) -> str:
    """Give the engine the script's scheduler, so that it steps it as well."""
    tree = ast.parse(text)
    call = next(_initializations(tree), None)
    if call is None:
        return text
    for statement, scope in _statements(tree):
        if (
            scope == call.scope
            and isinstance(statement, ast.Assign)
            and isinstance(statement.targets[0], ast.Name)
            and isinstance(statement.value, ast.Call)
            and re.search(r"(LR|_scheduler)$", ast.unparse(statement.value.func))
        ):
            line = max(call.last_line, statement.end_lineno or 0)
            return _insert(text, line, f"{call.indent}{call.engine}.lr_scheduler = {statement.targets[0].id}")
    return text


def engine_steps(text: str) -> list[re.Match[str]]:
    """The lines ``engine.step()``, engine being whatever ``backward`` is called on."""
    engines = {match["engine"] for match in BACKWARD.finditer(text)}
    return [match for match in PLAIN_STEP.finditer(text) if match["owner"] in engines]


def rewrite_engine_steps(text: str, line: str) -> str:
    """Put ``line`` in the place of every ``engine.step()``; ``{engine}`` in it stands for the engine."""
    for match in reversed(engine_steps(text)):
        text = text[: match.start()] + match["indent"] + line.format(engine=match["owner"]) + text[match.end() :]
    return text


def optimizer_of(original: str, converted: str) -> str:
    """The expression on which the original steps its optimizer: its ``step()`` is gone in the conversion."""
    names = {match["owner"] for match in PLAIN_STEP.finditer(original)}
    gone = names - {match["owner"] for match in PLAIN_STEP.finditer(converted)}
    if len(gone) != 1:
        raise NotApplicableError
    return gone.pop()
