"""Whether text is Python that can be edited safely: valid, and not nested beyond what a parser survives.

LibCST's parser overflows the C stack on deep nesting, which ends the process where an exception would not; CPython's
own parser has limits and raises. So CPython reads every file first, and its tree is measured.
"""

from __future__ import annotations

import ast
import io
import itertools
import sys
import threading
import tokenize
import warnings
from collections.abc import Callable
from typing import TypeVar

from dsmigrate.files.text import SourceError
from dsmigrate.languages import say

MAX_DEPTH = 400
"""Levels of nesting that are accepted; the deepest real training scripts stay below 60."""

_STACK_BYTES = 256 * 1024 * 1024
_FRAMES = 20_000
_Result = TypeVar("_Result")


def parse(text: str) -> ast.Module:
    """Return the syntax tree of ``text``, which is to be edited.

    Raises SourceError, with the line, for text that is not valid for the running Python (Python 2 is named as such),
    and for nesting deeper than ``MAX_DEPTH``.
    """
    tree = _read(text, compiles=True)
    _check_depth(tree, text)
    return tree


def read(text: str) -> ast.Module:
    """Return the syntax tree of ``text``, which is only looked at: valid as far as the grammar goes, at half the cost.

    Raises SourceError as ``parse`` does, but for no depth that Python's own parser takes.
    """
    return _read(text, compiles=False)


def dotted(node: ast.expr) -> str:
    """Return a dotted name as it is written, "" for another expression."""
    if isinstance(node, ast.Attribute):
        base = dotted(node.value)
        return f"{base}.{node.attr}" if base else ""
    return node.id if isinstance(node, ast.Name) else ""


def last_name(node: ast.expr) -> str:
    """Return what an attribute or a name is called, whatever the attribute is taken from; "" for another expression."""
    return node.attr if isinstance(node, ast.Attribute) else dotted(node)


def _read(text: str, *, compiles: bool) -> ast.Module:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(text)
            if compiles:
                compile(tree, "<script>", "exec", dont_inherit=True)  # finds what the grammar allows: a stray return
    except SyntaxError as error:
        raise SourceError(_syntax_message(error), error.lineno or 1) from None
    except (RecursionError, MemoryError):
        raise SourceError(say("the code is nested too deeply for Python's own parser")) from None
    except ValueError as error:
        raise SourceError(say("not valid Python: {error}", error=error)) from None
    return tree


def with_deep_stack(function: Callable[[], _Result]) -> _Result:
    """Call ``function`` where recursion over ``MAX_DEPTH`` levels of nesting has room, and return what it returns.

    It runs in a thread of its own with a large stack; where the system does not grant one, it runs right here.
    Exceptions of ``function`` come out unchanged.
    """
    outcome: list[_Result] = []
    errors: list[BaseException] = []

    def body() -> None:
        try:
            outcome.append(function())
        except BaseException as error:  # noqa: BLE001 - raised again in the caller's thread
            errors.append(error)

    frames = sys.getrecursionlimit()
    try:
        previous = threading.stack_size(_STACK_BYTES)
    except (ValueError, RuntimeError):
        return function()
    try:
        sys.setrecursionlimit(max(frames, _FRAMES))
        thread = threading.Thread(target=body, name="dsmigrate-deep-stack", daemon=True)
        try:
            thread.start()
        except RuntimeError:  # no address space for the stack
            sys.setrecursionlimit(frames)
            return function()
        thread.join()
    finally:
        sys.setrecursionlimit(frames)
        threading.stack_size(previous)
    if errors:
        raise errors[0]
    return outcome[0]


def _syntax_message(error: SyntaxError) -> str:
    said = (error.msg or "invalid syntax").partition(". Did you mean")[0]
    if "call to 'print'" in said or "call to 'exec'" in said or "multiple exception types" in said:
        return say("this is Python 2, not Python 3: {said}", said=said)
    running = f"{sys.version_info.major}.{sys.version_info.minor}"
    return say("not valid Python {version}: {said}", version=running, said=said)


def _check_depth(tree: ast.Module, text: str) -> None:
    lines = list(io.StringIO(text, newline=None))  # as Python counts them: a form feed ends none
    stack: list[tuple[ast.AST, int]] = [(tree, 0)]
    while stack:
        node, depth = stack.pop()
        if isinstance(node, ast.BoolOp):  # one node here, a chain of pairs in LibCST
            depth += len(node.values)
        elif isinstance(node, ast.JoinedStr) or (isinstance(node, ast.Constant) and isinstance(node.value, str)):
            depth += _adjacent_literals(node, lines)  # the same
        if depth > MAX_DEPTH:
            message = say("the code is nested more than {depth} levels deep", depth=MAX_DEPTH)
            raise SourceError(message, getattr(node, "lineno", 1))
        stack.extend((child, depth + 1) for child in ast.iter_child_nodes(node))


def _adjacent_literals(node: ast.expr, lines: list[str]) -> int:
    """Count the literals that one implicitly concatenated string is written as, until they are too many.

    0 where it is too short to matter.
    """
    first, last, end = node.lineno - 1, (node.end_lineno or node.lineno) - 1, node.end_col_offset or 0
    if (last - first) * 4 + end - (node.col_offset if first == last else 0) < MAX_DEPTH:
        return 0
    written = [line.encode() for line in lines[first : last + 1]]
    written[-1] = written[-1][:end]
    written[0] = written[0][node.col_offset :]
    text = b"".join(written).decode(errors="replace")
    if text.count("'") + text.count('"') < MAX_DEPTH:
        return 0
    tokens = tokenize.generate_tokens(io.StringIO(f"({text})").readline)
    literals = (token for token in tokens if token.type == tokenize.STRING or token.string[-1:] in {"'", '"'})
    try:  # a token of Python 3.12 carries a copy of its line, so that none is kept
        return sum(1 for _ in itertools.islice(literals, MAX_DEPTH + 1))
    except (tokenize.TokenError, SyntaxError):  # what stands in an f-string has odd places before Python 3.12
        return 0
