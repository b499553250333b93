"""Breaks a long ``deepspeed.initialize(…)`` over lines, as a formatter would."""

from __future__ import annotations

import ast
import re

from dsmigrate.codemod.program.edits import Template
from dsmigrate.codemod.program.module import Module

_HOLE = re.compile(r"__hole_(\d+)__")
_SHORTEST, _LONGEST = 88, 120


def laid_out(line: Template, module: Module, column: int) -> Template:
    """A line of a template, broken where it is longer than the file's own longest, between 88 and 120 columns."""
    limit = max(_SHORTEST, min(_LONGEST, max(map(len, module.lines), default=0)))
    nodes = [part for part in line if not isinstance(part, str)]
    numbers = iter(range(len(nodes)))
    code = "".join(part if isinstance(part, str) else f"__hole_{next(numbers)}__" for part in line)
    if "deepspeed.initialize(" not in code or "\n" in code or column + _length(code, nodes, module) <= limit:
        return line
    call = next(
        node for node in ast.walk(ast.parse(code)) if isinstance(node, ast.Call) and ast.unparse(node.func) == "deepspeed.initialize"
    )
    start, end = call.func.end_col_offset or 0, call.end_col_offset or 0
    base = column if code[:start].startswith("deepspeed") else 0
    broken = code[:start] + _broken(code, call, "", limit - column + base, nodes, module) + code[end:]
    found: list[str | ast.expr] = []
    for index, piece in enumerate(_HOLE.split(broken)):
        found.append(nodes[int(piece)] if index % 2 else piece)
    return tuple(found)


def _broken(code: str, call: ast.Call, indent: str, limit: int, nodes: list[ast.expr], module: Module) -> str:
    """The arguments of a call in their parentheses: in a line of their own, or each in one."""
    inner = f"{indent}    "
    args = [_argument(code, arg) for arg in (*call.args, *call.keywords)]
    together = inner + ", ".join(args)
    if _length(together, nodes, module) <= limit:
        return f"(\n{together}\n{indent})"
    lines = []
    for text, arg in zip(args, (*call.args, *call.keywords), strict=True):
        value = arg.value if isinstance(arg, ast.keyword) else arg
        if isinstance(value, ast.Call) and _length(f"{inner}{text},", nodes, module) > limit:
            name = f"{arg.arg}=" if isinstance(arg, ast.keyword) else ""
            func = ast.get_source_segment(code, value.func)
            lines.append(f"{inner}{name}{func}{_broken(code, value, inner, limit, nodes, module)},")
        else:
            lines.append(f"{inner}{text},")
    return "(\n" + "\n".join(lines) + f"\n{indent})"


def _argument(code: str, node: ast.expr | ast.keyword) -> str:
    return ast.get_source_segment(code, node) or ast.unparse(node)


def _length(code: str, nodes: list[ast.expr], module: Module) -> int:
    return max(len(line) for line in _HOLE.sub(lambda found: module.text(nodes[int(found[1])]), code).splitlines())
