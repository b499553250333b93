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
from dsmigrate.codemod.idioms.config.stage import preferred
from dsmigrate.codemod.idioms.config.stage import stage as stage_said
from dsmigrate.codemod.idioms.facts import Facts
from dsmigrate.codemod.idioms.model.wrap import CONFIG
from dsmigrate.codemod.model import Kind
from dsmigrate.codemod.program.edits import Edit, Import, Insert, Replace

_ORDER = ("train_micro_batch_size_per_gpu", "gradient_accumulation_steps", "managed_gradient_accumulation", "gradient_clipping",
          "zero_optimization", "torch_autocast", "fp16", "bf16", "communication_data_type", "optimizer", "zero_allow_untested_optimizer",
          "zero_force_ds_cpu_optimizer")  # fmt: skip


@dataclass(frozen=True, slots=True)
class Settled:
    """The decisions of a training as they hold together, its config, and the parts of ``ds_compat`` that it needs."""

    decisions: tuple[Decision, ...]
    config: dict[str, Any]
    stage: int
    parts: frozenset[str]


def settled(training: Training, facts: Facts, decisions: Iterable[Decision]) -> Settled:
    """Choose the stage, turn what contradicts it into its alternative, and write the config."""
    found = list(decisions)
    stage, code = _stage(training, facts, found)
    held = [one if one.stage >= stage or (code and one.when is not None) else one.otherwise or one for one in found]
    held.append(stage_said(training, facts, stage, code))
    settings: dict[str, Setting] = {"gradient_accumulation_steps": Setting(None, static=1)}
    for one in held:
        settings.update(one.config)
    if facts.options.precision != "keep":
        settings = {key: value for key, value in settings.items() if not key.startswith("torch_autocast")}
    parts = frozenset().union(*(one.parts for one in held)) if held else frozenset()
    config, more_said = merged(facts, _config(settings), {key for key, setting in settings.items() if setting.code})
    held += more_said
    code, more = _config_code(facts, settings)
    parts |= more
    done = [_with_config(one, code) for one in held]
    imports = _imports(facts, done, parts, code)
    done.append(Decision("MG101", Kind.CONVERTED, facts.site.module, facts.site.node, "imports", imports=imports, lines=(0, 0)))
    return Settled(tuple(done), config, stage, parts)


def _stage(training: Training, facts: Facts, found: list[Decision]) -> tuple[int, str]:
    """The stage by default, and the expression that gives it where an option asks for a lower one."""
    if facts.options.zero_stage is not None:
        return facts.options.zero_stage, ""
    highest = min([preferred(training, facts), *(one.stage for one in found if one.when is None)])
    lower = [one for one in found if one.when is not None and one.stage < highest]
    code, by_default = str(highest), highest
    for one in sorted(lower, key=lambda one: (-one.stage, one.code)):
        test = condition_said(one.when or TRUE, facts.site.names)
        if test is None:
            return min([highest, *(one.stage for one in lower)]), ""
        part = f"{one.stage} if {test} else "
        code = code if part in code else part + code
        if holds_by_default(training.analysis, one.when or TRUE) is not False:
            by_default = min(by_default, one.stage)
    return by_default, code if lower else ""


def _config(settings: dict[str, Setting]) -> dict[str, Any]:
    made: dict[str, Any] = {}
    for key, setting in settings.items():
        *sections, name = key.split(".")
        place = made
        for section in sections:
            place = place.setdefault(section, {})
        if setting.static is not None or not setting.code:
            place[name] = setting.static
    return {key: made[key] for key in sorted(made, key=lambda key: _ORDER.index(key) if key in _ORDER else len(_ORDER))}


def _config_code(facts: Facts, settings: dict[str, Setting]) -> tuple[str, frozenset[str]]:
    """The expression of the config where the engine is made, and the part that it needs."""
    name = facts.options.config_name
    dynamic = {key: setting.code for key, setting in settings.items() if setting.code}
    if not dynamic:
        return f'str(Path(__file__).with_name("{name}"))', frozenset()
    grouped: dict[str, dict[str, str]] = {}
    for key, code in sorted(dynamic.items(), key=lambda pair: _ORDER.index(pair[0].split(".")[0])):
        section, _, inner = key.rpartition(".")
        grouped.setdefault(section or key, {})[inner] = code
    given = []
    for key, entries in grouped.items():
        if key in dynamic:
            given.append(f"{key}={entries[key]}")
        else:
            given.append(f"{key}={{" + ", ".join(f'"{inner}": {code}' for inner, code in entries.items()) + "}")
    start = "__file__" if name == "ds_config.json" else f'__file__, "{name}"'
    return f"ds_compat.load_config({', '.join([start, *given])})", frozenset({"load_config"})


def _with_config(decision: Decision, code: str) -> Decision:
    """Put the expression of the config where it was left open."""
    if not any(CONFIG in str(edit) for edit in decision.edits):
        return decision
    return replace(decision, edits=tuple(_filled(edit, code) for edit in decision.edits))


def _filled(edit: Edit, code: str) -> Edit:
    if isinstance(edit, Replace):
        return replace(edit, code=tuple(part.replace(CONFIG, code) if isinstance(part, str) else part for part in edit.code))
    if isinstance(edit, Insert):
        lines = tuple(tuple(part.replace(CONFIG, code) if isinstance(part, str) else part for part in line) for line in edit.code)
        return replace(edit, code=lines)
    return edit


def _imports(facts: Facts, decisions: list[Decision], parts: frozenset[str], code: str) -> tuple[Import, ...]:
    """The imports of ``ds_compat`` in the files that use its parts, and of what the config's path is made with."""
    found: dict[Import, None] = {}
    if "Path(" in code:
        found[Import(facts.site.module, "pathlib", "Path")] = None
    del parts
    for decision in decisions:
        for edit in decision.edits:
            if "ds_compat." in str(edit):
                found[Import(edit.module, "ds_compat")] = None
    return tuple(found)
