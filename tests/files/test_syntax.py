from __future__ import annotations

import sys
import threading

import libcst
import pytest

from dsmigrate.files.syntax import MAX_DEPTH, parse, read, with_deep_stack
from dsmigrate.files.text import SourceError

NESTED = {
    "parentheses": lambda n: "(" * n + "1" + ")" * n + "\n",
    "signs": lambda n: "x = " + "-" * n + "1\n",
    "nots": lambda n: "x = " + "not " * n + "1\n",
    "attributes": lambda n: "x = a" + ".b" * n + "\n",
    "calls": lambda n: "x = a" + "()" * n + "\n",
    "sums": lambda n: "x = a" + " + b" * n + "\n",
    "ands": lambda n: "x = a" + " and b" * n + "\n",
    "powers": lambda n: "x = a" + " ** b" * n + "\n",
    "lambdas": lambda n: "x = " + "lambda: " * n + "1\n",
    "conditions": lambda n: "x = " + "1 if a else " * n + "1\n",
    "branches": lambda n: "if a:\n    pass\n" + "elif b:\n    pass\n" * n,
    "strings": lambda n: "x = 'a'" + " 'b'" * n + "\n",
    "lines of strings": lambda n: "x = (\n" + "    'b'\n" * n + ")\n",
}


@pytest.mark.parametrize("depth", [1000, 5000, 50_000])
@pytest.mark.parametrize("shape", NESTED)
def test_nesting_that_would_end_the_process_is_a_message(shape: str, depth: int) -> None:
    with pytest.raises(SourceError, match=r"nested|too many|too complex") as caught:
        parse(NESTED[shape](depth))
    assert caught.value.line >= 1


@pytest.mark.parametrize("shape", NESTED)
def test_nesting_that_is_accepted_can_be_parsed_and_visited(shape: str) -> None:
    text = NESTED[shape](80 if shape == "parentheses" else MAX_DEPTH - 20)
    try:
        parse(text)
    except SourceError:
        assert sys.version_info < (3, 11)  # an older Python's parser has less room
        return
    module = with_deep_stack(lambda: libcst.parse_module(text).visit(libcst.CSTTransformer()))
    assert isinstance(module, libcst.Module)
    assert with_deep_stack(lambda: module.code) == text


def test_strings_that_share_a_line_are_not_one_string() -> None:
    others = ", ".join(["'b'"] * MAX_DEPTH)
    assert parse(f"x = ['{'a' * 2 * MAX_DEPTH}', {others}]\n").body


def test_what_is_only_read_may_be_nested_deeper_than_what_is_edited() -> None:
    assert read(NESTED["sums"](MAX_DEPTH + 20)).body


def test_what_is_only_read_has_to_be_python() -> None:
    with pytest.raises(SourceError, match="not valid Python") as caught:
        read("x = 1\nx = (\n")
    assert caught.value.line == 2


def test_long_flat_code_is_not_nesting() -> None:
    parse("x = 1\n" * 20_000)
    parse("x = [" + "1, " * 20_000 + "]\n")
    parse('"""' + "it's a long 'text' with \"quotes\"\n" * 2000 + '"""\n')
    parse("x = [" + "'a', " * 5000 + "]\n")


@pytest.mark.parametrize(
    ("text", "line", "says"),
    [
        ("x = 1\nprint 'step', x\n", 2, "this is Python 2, not Python 3"),
        ("exec 'x'\n", 1, "this is Python 2, not Python 3"),
        ("def f(:\n    pass\n", 1, "not valid Python 3."),
        ("if x:\n\ty\n        z\n", 3, "inconsistent use of tabs"),
        ("x = 1\nreturn x\n", 2, "'return' outside function"),
        ("def f(a, a):\n    pass\n", 1, "duplicate argument 'a'"),
        ("x = '\ud800'\n", 1, "surrogates not allowed"),
    ],
)
def test_what_does_not_parse_is_a_message_with_its_line(text: str, line: int, says: str) -> None:
    with pytest.raises(SourceError) as caught:
        parse(text)
    assert caught.value.line == line
    assert says in caught.value.message


def test_a_deep_stack_gives_back_results_and_exceptions_and_leaves_the_limits_alone() -> None:
    def fail() -> None:
        raise KeyError("planted")

    limit = sys.getrecursionlimit()
    assert with_deep_stack(lambda: sum(range(10))) == 45
    with pytest.raises(KeyError, match="planted"):
        with_deep_stack(fail)
    assert sys.getrecursionlimit() == limit
    assert threading.stack_size() == 0


def test_without_room_for_a_stack_the_work_is_done_in_place(monkeypatch: pytest.MonkeyPatch) -> None:
    def no_room(*_: object) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", no_room)
    assert with_deep_stack(threading.current_thread) is threading.current_thread()
