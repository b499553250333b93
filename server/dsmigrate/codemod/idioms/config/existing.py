"""``--config``: the script is fitted to a config that is there already."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from copy import deepcopy
from dataclasses import replace
from typing import Any

from dsmigrate.codemod.decision import Decision
from dsmigrate.codemod.idioms.facts import Facts
from dsmigrate.codemod.model import Idea, Kind, Options
from dsmigrate.languages import told

IDEAS = (
    Idea(
        "MG704",
        "The existing config says something else",
        "A key of the given config contradicts what the script does.",
        "With --config the script is fitted to a config that is there; contradictions are reported, never resolved.",
        "dsmigrate migrate --config",
        Kind.TODO,
        marked=False,
    ),
    Idea(
        "MG709",
        "A key that the given config lacks is added",
        "With --config, what the script needs and the config does not say is added to it.",
        "An absent gradient_clipping, for one, means 1.0 since DeepSpeed 0.19.3.",
        "dsmigrate migrate --config",
        Kind.CONVERTED,
    ),
)
_BATCH = ("train_micro_batch_size_per_gpu", "gradient_accumulation_steps")


def with_stage_of(options: Options) -> Options:
    """A config that is there already has chosen the ZeRO stage, unless the person says another."""
    section = options.config.get("zero_optimization") if options.config is not None else None
    stage = section.get("stage") if isinstance(section, Mapping) else None
    if options.zero_stage is None and isinstance(stage, int) and not isinstance(stage, bool) and 0 <= stage <= 3:
        return replace(options, zero_stage=stage)
    return options


def merged(facts: Facts, made: Mapping[str, Any], run_time: set[str]) -> tuple[dict[str, Any], list[Decision]]:
    """The given config with what the script needs, and what is to be said of it; ``run_time`` are keys that the script sets."""
    given = facts.options.config
    if given is None:
        return dict(made), []
    found = deepcopy(dict(given))
    said: list[Decision] = []
    for section, owner in (("optimizer", "optimizer"), ("scheduler", "learning-rate schedule")):
        if section in found and section not in made:
            said.append(
                _said(
                    facts,
                    "MG704",
                    Kind.TODO,
                    told(
                        "remove {section} from the config: the script keeps its own {owner}",
                        section=section,
                        owner=owner,
                    ),
                    told("a client {section} wins over the config silently", section=section),
                )
            )
    for key, value in made.items():
        if key in _BATCH and "train_batch_size" in found and key not in found:
            continue
        said.extend(_merge(facts, found, (key,), value, run_time))
    for section in ("fp16", "bf16"):
        present = given.get(section)
        if isinstance(present, Mapping) and present.get("enabled") is True and section not in made:
            said.append(_said(facts, "MG704", Kind.TODO, told("{section} is on in the config, but the script trains float32 parameters", section=section),
                              "half-precision parameters have other numerics; turn it off or ask for --precision"))  # fmt: skip
    return found, said


def _merge(
    facts: Facts, into: dict[str, Any], path: tuple[str, ...], value: Any, run_time: set[str]
) -> Iterator[Decision]:
    key, name = path[-1], ".".join(path)
    present = into.get(key)
    if present is None or present == "auto":
        into[key] = deepcopy(value)
        yield _said(
            facts,
            "MG709",
            Kind.CONVERTED,
            told("{name} = {name_2!r} is added to the config", name=name, name_2=value),
            "the script needs it said",
        )
    elif isinstance(value, dict) and isinstance(present, Mapping):
        nested = into[key] = dict(present)
        for inner, inner_value in value.items():
            yield from _merge(facts, nested, (*path, inner), inner_value, run_time)
    elif present != value or isinstance(present, bool) is not isinstance(value, bool):
        if name in run_time:
            yield _said(
                facts,
                "MG704",
                Kind.KEPT,
                told(
                    "{name}: the config says {present!r}, the script sets it from its own options",
                    name=name,
                    present=present,
                ),
                "the command line keeps deciding",
            )
        else:
            yield _said(
                facts,
                "MG704",
                Kind.TODO,
                told(
                    "{name} is {present!r} in the config, but the script does {name_2!r}",
                    name=name,
                    present=present,
                    name_2=value,
                ),
                "the config's value is kept",
            )


def _said(facts: Facts, code: str, kind: Kind, message: str, reason: str) -> Decision:
    line = facts.site.node.lineno
    return Decision(
        code,
        kind,
        facts.site.module,
        facts.site.node,
        message,
        reason,
        lines=(line, line) if kind is not Kind.CONVERTED else (0, 0),
    )
