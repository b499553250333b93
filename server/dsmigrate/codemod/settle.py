"""Settles the decisions of all idioms together: the ZeRO stage, the config, what the script sets when it runs."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

from dsmigrate.codemod.analysis.training import Training
from dsmigrate.codemod.decision import Decision, Setting
from dsmigrate.codemod.idioms.config.stage import preferred
from dsmigrate.codemod.idioms.facts import Facts
from dsmigrate.codemod.idioms.model.wrap import CONFIG
from dsmigrate.codemod.model import Kind
from dsmigrate.codemod.program.edits import Edit, Import, Insert, Replace

_ORDER = ("train_micro_batch_size_per_gpu", "gradient_accumulation_steps", "managed_gradient_accumulation", "gradient_clipping",
          "zero_optimization", "torch_autocast", "fp16", "bf16", "communication_data_type", "optimizer", "zero_allow_untested_optimizer",
          "zero_force_ds_cpu_optimizer")  # fmt: skip


@dataclass(frozen=True, slots=True)
class Settled:
    """The decisions of a training as they hold together, and its config."""

    decisions: tuple[Decision, ...]
    config: dict[str, Any]
    stage: int


def settled(training: Training, facts: Facts, decisions: Iterable[Decision]) -> Settled:
    """Choose the stage, turn what contradicts it into its alternative, and write the config."""
    found = list(decisions)
    asked = facts.options.zero_stage
    stage = min([preferred(training, facts), *(one.stage for one in found)]) if asked is None else asked
    held = [one if one.stage >= stage else one.otherwise or one for one in found]
    settings: dict[str, Setting] = {"gradient_accumulation_steps": Setting(None, static=1), "zero_optimization.stage": Setting(None, static=stage)}
    for one in held:
        settings.update(one.config)
    code = _config_code(facts, settings)
    done = [_with_config(one, code) for one in held]
    imports = (Import(facts.site.module, "pathlib", "Path"),) if "Path(" in code else ()
    done.append(Decision("MG101", Kind.CONVERTED, facts.site.module, facts.site.node, "imports", imports=imports, lines=(0, 0)))
    return Settled(tuple(done), _config(settings), stage)


def _config(settings: dict[str, Setting]) -> dict[str, Any]:
    made: dict[str, Any] = {}
    for key, setting in settings.items():
        *sections, name = key.split(".")
        place = made
        for section in sections:
            place = place.setdefault(section, {})
        place[name] = setting.static
    return {key: made[key] for key in sorted(made, key=lambda key: _ORDER.index(key) if key in _ORDER else len(_ORDER))}


def _config_code(facts: Facts, settings: dict[str, Setting]) -> str:
    """The expression of the config where the engine is made."""
    name = facts.options.config_name
    dynamic = {key: setting.code for key, setting in settings.items() if setting.code}
    if not dynamic:
        return f'str(Path(__file__).with_name("{name}"))'
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
    return f"ds_compat.load_config({', '.join([start, *given])})"


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
