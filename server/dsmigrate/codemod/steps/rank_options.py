"""MG204: the options that carry ranks."""

from __future__ import annotations

from functools import partial

import libcst as cst

from dsmigrate.codemod.flow import argument
from dsmigrate.codemod.names import dotted
from dsmigrate.codemod.options import option_calls
from dsmigrate.codemod.plan import Plan
from dsmigrate.codemod.tree import Node


def convert_rank_options(plan: Plan) -> None:
    """``--local_rank`` in either spelling: default from the environment, both spellings accepted."""
    for call in option_calls(plan):
        spellings = [arg for arg in call.args if arg.keyword is None and isinstance(arg.value, cst.SimpleString)]
        names = [str(arg.value.evaluated_value) for arg in spellings]  # type: ignore[attr-defined]
        if not any(name.lstrip("-").replace("-", "_") == "local_rank" for name in names):
            continue
        plan.facts["takes_local_rank"] = True
        statement = plan.tree.statement(call)
        default = argument(call, None, "default")
        if default is not None and "LOCAL_RANK" in plan.code(default) and "--local_rank" in names:
            continue
        fallback = plan.code(default) if default is not None and dotted(default) != "None" else "0"
        plan.need("os")
        plan.edits.replace(call, partial(_local_rank_option, fallback=fallback))
        plan.converted("MG204", statement, "--local_rank takes its default from LOCAL_RANK, both spellings accepted",
                       "torchrun sets the variable, the deepspeed launcher passes the option")  # fmt: skip


_LONGEST_CALL = 110


"""Characters of a rewritten option on one line, indentation not counted."""


def _local_rank_option(call: Node, *, fallback: str) -> Node:
    """``add_argument`` with both spellings and a default from the environment; its other arguments stay as they are."""
    assert isinstance(call, cst.Call)
    space = cst.Comma(whitespace_after=cst.SimpleWhitespace(" "))
    flags = [arg for arg in call.args if arg.keyword is None]
    spelled = {str(arg.value.evaluated_value) for arg in flags if isinstance(arg.value, cst.SimpleString)}
    new = [
        cst.Arg(cst.SimpleString(f'"{name}"'), comma=space)
        for name in ("--local_rank", "--local-rank")
        if name not in spelled
    ]
    kept: list[cst.Arg] = []
    has_default = has_type = False
    for given in call.args:
        arg = given
        name = arg.keyword.value if arg.keyword is not None else None
        if name == "required":
            continue
        if name == "default":
            has_default = True
            if "LOCAL_RANK" not in cst.Module([]).code_for_node(arg.value):
                arg = arg.with_changes(value=cst.parse_expression(f'int(os.environ.get("LOCAL_RANK", {fallback}))'))
        has_type = has_type or name == "type"
        kept.append(arg)
    head = [arg for arg in kept if arg.keyword is None]
    if new and not isinstance(head[-1].comma, cst.Comma):
        head[-1] = head[-1].with_changes(comma=space)
    first = [
        arg for arg in new if isinstance(arg.value, cst.SimpleString) and arg.value.evaluated_value == "--local_rank"
    ]
    arguments = [*first, *head, *[a for a in new if a not in first], *[arg for arg in kept if arg.keyword is not None]]
    no_space = cst.AssignEqual(cst.SimpleWhitespace(""), cst.SimpleWhitespace(""))
    extra = []
    if not has_type:
        extra.append(cst.Arg(cst.Name("int"), keyword=cst.Name("type"), equal=no_space, comma=space))
    if not has_default:
        value = cst.parse_expression(f'int(os.environ.get("LOCAL_RANK", {fallback}))')
        extra.append(cst.Arg(value, keyword=cst.Name("default"), equal=no_space))
    if extra and not isinstance(arguments[-1].comma, cst.Comma):
        arguments[-1] = arguments[-1].with_changes(comma=space)
    arguments.extend(extra)
    if not isinstance(call.args[-1].comma, cst.Comma):
        arguments[-1] = arguments[-1].with_changes(comma=cst.MaybeSentinel.DEFAULT)
    result = call.with_changes(args=arguments)
    text = cst.Module([]).code_for_node(result)
    if "\n" in text or len(text) <= _LONGEST_CALL:
        return result
    function = cst.Module([]).code_for_node(call.func)
    lines = [cst.Module([]).code_for_node(arg.with_changes(comma=cst.MaybeSentinel.DEFAULT)) for arg in arguments]
    return cst.parse_expression(f"{function}(\n" + "".join(f"    {line},\n" for line in lines) + ")")
