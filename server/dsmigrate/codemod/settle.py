"""Settles the decisions of all idioms together: the ZeRO stage, the config, what the script sets when it runs."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

from dsmigrate.codemod.analysis.code import condition_said, holds_by_default
from dsmigrate.codemod.analysis.conditions import TRUE
from dsmigrate.codemod.analysis.training import Training
from dsmigrate.codemod.decision import Decision, Setting
from dsmigrate.codemod.idioms.config.existing import merged
from dsmigrate.codemod.idioms.config.stage import offload, preferred
from dsmigrate.codemod.idioms.config.stage import stage as stage_said
from dsmigrate.codemod.idioms.facts import Facts
from dsmigrate.codemod.idioms.model.wrap import CONFIG
from dsmigrate.codemod.model import Kind
from dsmigrate.codemod.program.edits import Edit, Import, Insert, Replace, Template, brings

_ORDER = ("train_micro_batch_size_per_gpu", "gradient_accumulation_steps", "managed_gradient_accumulation", "gradient_clipping",
          "zero_optimization", "torch_autocast", "fp16", "bf16", "communication_data_type", "optimizer", "zero_allow_untested_optimizer",
          "zero_force_ds_cpu_optimizer")  # fmt: skip


@dataclass(frozen=True, slots=True)
class Settled:
    """The decisions of a training as they hold together, and its config."""

    decisions: tuple[Decision, ...]
    config: dict[str, Any]
    stage: int
    stage_code: str = ""
    """What gives the stage when the script runs; "" where it is always the same."""


def settled(training: Training, facts: Facts, decisions: Iterable[Decision]) -> Settled:
    """Choose the stage, turn what contradicts it into its alternative, and write the config."""
    found = list(decisions)
    asked = facts.options.zero_stage
    tests = {one: test for one in found if (test := _test(one, facts)) is not None} if asked is None else {}
    limits = [one.stage for one in found if one not in tests]
    stage = min([preferred(training, facts), *limits]) if asked is None else asked
    held = [one if one.stage >= stage or one in tests else one.otherwise or one for one in found if one.least <= stage]
    cause = next((one for one in found if one not in tests and one.stage == stage < preferred(training, facts)), None)
    needs = frozenset().union(*(one.needs for one in held)) if held else frozenset()
    held = [one if not one.excludes & needs else one.otherwise or one for one in held]
    lower = {one: test for one, test in tests.items() if one.stage < stage}
    setting = _stage(facts, stage, lower)
    cause = next(iter(lower), cause) if asked is None else None
    held.append(stage_said(training, facts, stage, setting, cause))
    held += offload(facts, stage)
    settings: dict[str, Setting] = {"gradient_accumulation_steps": Setting(None, static=1)}
    held += _disagreeing(held)
    for one in held:
        for key, setting in one.config.items():
            settings[key] = _either(settings[key], setting) if key in settings and key.endswith(".enabled") else setting
    if facts.options.precision != "keep":
        settings = {key: value for key, value in settings.items() if not key.startswith("torch_autocast")}
    config, said = merged(facts, _config(settings), {key for key, setting in settings.items() if setting.code})
    held += said
    code = _config_code(facts, settings)
    imports = (Import(facts.site.module, "pathlib", "Path"),) if "Path(" in code else ()
    return Settled(tuple(_with_config(one, code, imports) for one in held), config, stage, setting.code)


def _either(one: Setting, other: Setting) -> Setting:
    """What two decisions switch on: native amp and apex, each by an option of its own."""
    if one == other:
        return one
    if any(setting.static and not setting.code for setting in (one, other)):
        return Setting(None, static=True)
    codes = dict.fromkeys(setting.code for setting in (one, other) if setting.code)
    joined = " or ".join(f"({code})" if " if " in code and len(codes) > 1 else code for code in codes)
    return Setting(None, static=bool(one.static or other.static), code=joined)


def _disagreeing(held: Iterable[Decision]) -> Iterable[Decision]:
    """A mark where two decisions switch autocast on in different types."""
    kinds: dict[tuple[Any, str], Decision] = {}
    for one in held:
        setting = one.config.get("torch_autocast.dtype")
        if setting is not None:
            kinds.setdefault((setting.static, setting.code), one)
    for one in list(kinds.values())[1:]:
        yield Decision("MG307", Kind.TODO, one.module, one.node, "torch_autocast has another type in other runs: set it in ds_config.json",
                       "the engine reads one type when it is made")  # fmt: skip


def _test(decision: Decision, facts: Facts) -> str | None:
    """The test that tells whether the stage limit of a decision holds in a run; None where it holds in all."""
    if decision.stage == 3 or decision.when is TRUE:
        return None
    return condition_said(decision.when, facts.site.names)


def _stage(facts: Facts, stage: int, limited: dict[Decision, str]) -> Setting:
    """The stage, by the options of the run where some of them need a lower one."""
    if not limited:
        return Setting(None, static=stage)
    lowest = min(one.stage for one in limited)
    tests = list(dict.fromkeys(limited.values()))
    by_default = any(holds_by_default(facts.training.analysis, one.when) is not False for one in limited)
    code = f"{lowest} if {' or '.join(f'({test})' if ' ' in test and len(tests) > 1 else test for test in tests)} else {stage}"
    return Setting(None, static=lowest if by_default else stage, code=code)


def _config(settings: dict[str, Setting]) -> dict[str, Any]:
    made: dict[str, Any] = {}
    for key, setting in settings.items():
        *sections, name = key.split(".")
        place = made
        for section in sections:
            place = place.setdefault(section, {})
        if setting.static is not None or not setting.code:
            place[name] = setting.static
    return {key: made[key] for key in sorted(made, key=_place)}


def _config_code(facts: Facts, settings: dict[str, Setting]) -> str:
    """The expression of the config where the engine is made."""
    name = facts.options.config_name
    dynamic = {key: setting.code for key, setting in settings.items() if setting.code}
    if not dynamic:
        return f'str(Path(__file__).with_name("{name}"))'
    nested: dict[str, Any] = {}
    for key, code in sorted(dynamic.items(), key=lambda pair: _place(pair[0])):
        *sections, inner = key.split(".")
        place = nested
        for section in sections:
            place = place.setdefault(section, {})
        place[inner] = code
    given = [f"{key}={_dictionary(value)}" for key, value in nested.items()]
    start = "__file__" if name == "ds_config.json" else f'__file__, "{name}"'
    return f"ds_compat.load_config({', '.join([start, *given])})"


def _place(key: str) -> int:
    """Where a setting stands among the others."""
    section = key.split(".", maxsplit=1)[0]
    return _ORDER.index(section) if section in _ORDER else len(_ORDER)


def _dictionary(value: str | dict[str, Any]) -> str:
    """Code, or a dictionary of code."""
    return (
        value
        if isinstance(value, str)
        else "{" + ", ".join(f'"{key}": {_dictionary(inner)}' for key, inner in value.items()) + "}"
    )


def _with_config(decision: Decision, code: str, imports: tuple[Import, ...]) -> Decision:
    """Put the expression of the config where it was left open."""
    if not any(brings(edit, CONFIG) for edit in decision.edits):
        return decision
    edits = tuple(_filled(edit, code) for edit in decision.edits)
    return replace(decision, edits=edits, imports=(*decision.imports, *imports))


def _filled(edit: Edit, code: str) -> Edit:
    if isinstance(edit, Replace):
        return replace(edit, code=_line(edit.code, code))
    if isinstance(edit, Insert):
        return replace(edit, code=tuple(_line(line, code) for line in edit.code))
    return edit


def _line(line: Template, code: str) -> Template:
    return tuple(part.replace(CONFIG, code) if isinstance(part, str) else part for part in line)
