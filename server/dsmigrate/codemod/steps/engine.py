"""Writes the ``deepspeed.initialize`` call, the config loading before it, and the helpers above."""

from __future__ import annotations

import posixpath

import libcst as cst

from dsmigrate.codemod.names import dotted
from dsmigrate.codemod.plan import Plan
from dsmigrate.codemod.tree import descendants

_PATH = "os.path.join(os.path.dirname(os.path.abspath(__file__)), {name})"


def run(plan: Plan) -> None:
    """Insert the engine at its site; runs last, when the run-time values are known."""
    site = plan.site
    assert site is not None
    plan.need("deepspeed")
    plan.need("os")
    lines: list[str] = []
    if site.replaces is not None and "model_first" in plan.facts:
        lines.append(plan.facts["model_first"])
    path = _PATH.format(name=_way_to_config(plan))
    if plan.runtime or plan.before_engine:
        plan.need("json")
        lines.append(f"with open({path}) as ds_config_file:")
        lines.append("    ds_config = json.load(ds_config_file)")
        for value in plan.runtime:
            keys = "".join(f'["{key}"]' for key in value.path)
            lines.append(f"ds_config{keys} = {value.expression}")
        lines.extend(plan.before_engine)
        config = "ds_config"
    else:
        config = path
    context = plan.facts.get("autocast_forward")
    if context is not None:
        plan.need("functools")
        plan.helpers.append(_FORWARD_HELPER)
        lines.append(f"enter_in_forward({site.model}, {context})")
    lines.extend(plan.facts.get("odd_parameters", ()))
    lines.extend([plan.facts["asserted_groups"]] if "asserted_groups" in plan.facts else ())
    moved = plan.facts.get("config_optimizer")
    given = f"model_parameters={moved}" if moved else f"optimizer={site.optimizer}"
    targets, end = site.target, "[0]"
    call = f"{targets} = deepspeed.initialize(model={site.model}, {given}, config={config}){end}"
    if len(call) > 110:
        call = f"{targets} = deepspeed.initialize(\n    model={site.model},\n    {given},\n    config={config},\n){end}"
    lines.append(call)
    if moved:
        # The client's own object: schedulers and learning-rate writes work on it at every ZeRO stage.
        lines.append(f"{site.optimizer} = {site.target}.basic_optimizer")
    lines.extend(f"{name} = {site.target}" for name in _stale_aliases(plan))
    if plan.facts.get("keep_norm"):
        lines.append(f"keep_grad_norm({site.target})")
    lines.extend(plan.after_engine)
    if site.replaces is not None:
        plan.edits.substitute(site.anchor.node, *lines)
    else:
        plan.edits.insert_after(site.anchor.line_node, *lines)


def _way_to_config(plan: Plan) -> str:
    """The config lies beside the entry script: the way there from the file that makes the engine, as arguments of join."""
    assert plan.site is not None
    here = posixpath.dirname(plan.part_of(plan.site.anchor).path)
    folder = posixpath.relpath(posixpath.dirname(plan.tree.parts[0].path) or ".", here or ".")
    names = [] if folder == "." else folder.split("/")
    return ", ".join(map(_literal, (*names, plan.options.config_name)))


def _literal(text: str) -> str:
    """A string of the script's code: in double quotes unless it holds what has to be escaped."""
    return f'"{text}"' if text.isprintable() and not {'"', "\\"}.intersection(text) else repr(text)


_FORWARD_HELPER = '''def enter_in_forward(model, context):
    """Run the model's forward inside a context: the engine switches a region around its own forward off."""
    forward = model.forward

    @functools.wraps(forward)
    def entered(*args, **kwargs):
        with context:
            return forward(*args, **kwargs)

    model.forward = entered
'''


def _stale_aliases(plan: Plan) -> list[str]:
    """Names that were given the wrapped model between the wrap and the engine: they have to be given the engine."""
    site = plan.site
    assert site is not None
    found: list[str] = []
    starts = [w.statement.order for w in plan.wraps if w.function is site.function]
    if not starts:
        return _aliases_of_attribute(plan)
    for statement in site.function.statements:
        if not min(starts) < statement.order <= site.order or statement is site.anchor:
            continue
        node = statement.node
        if not isinstance(node, cst.Assign) or dotted(node.value) != site.target or node in plan.edits.statements:
            continue
        for target in node.targets:
            text = dotted(target.target)
            if text is not None and text != site.target and "without" not in text and "raw" not in text:
                if _is_called(plan, text):
                    found.append(text)
    return found


def _aliases_of_attribute(plan: Plan) -> list[str]:
    """Variables that were given the model out of the object that holds it: behind the engine they mean the engine."""
    site = plan.site
    assert site is not None
    base = site.target.rpartition(".")[0]
    if not base or base == site.function.self_name:
        return []
    found = []
    for place in plan.roles.env:
        if place[0] != "v" or place[1] != id(site.function) or not plan.holds_engine(place):
            continue
        orders = [b.statement.order for b in plan.flow.by_place.get(place, ()) if b.kind == "assign"]
        used = any(
            isinstance(sub, cst.Name) and sub.value == place[2] and plan.tree.statement(sub).order > site.order
            for sub in plan.tree.statement_of
            if plan.tree.statement_of[sub].function is site.function
        )
        if used and orders and min(orders) <= site.order:
            found.append(place[2])
    return found


def _is_called(plan: Plan, text: str) -> bool:
    """Whether a name is used as the wrapper: called, or asked for its ``module``."""
    last = text.rpartition(".")[2]
    for call in plan.tree.calls:
        name = dotted(call.func)
        if name is not None and (name == text or name.endswith("." + last)):
            return True
    return any(
        isinstance(sub, cst.Attribute) and sub.attr.value == "module" and dotted(sub.value) == text
        for statement in plan.tree.statements
        if not isinstance(statement.node, cst.BaseCompoundStatement)
        for sub in descendants(statement.node)
    )
