"""The bad examples of the rules, as what a fault can plant."""

from __future__ import annotations

import functools
from dataclasses import dataclass

from dsmigrate.document import Object, parse
from dsmigrate.knowledge import Consumer
from dsmigrate.rules import Settings, every_rule
from dsmigrate.rules.run import check_with
from tests.rules.examples import marked

from .case import Config


@dataclass(frozen=True, slots=True)
class Planting:
    """A bad example: its rule with its family, the config, and the dotted paths that the rule points at."""

    code: str
    family: str
    config: Config
    paths: tuple[str, ...]

    def blames(self, *names: str) -> bool:
        """Return whether the rule points at one of these keys of the top level, or at something inside."""
        return any(path.split(".", maxsplit=1)[0] in names for path in self.paths)


@functools.cache
def plantings(version: str) -> tuple[Planting, ...]:
    """Return what plain DeepSpeed of a release, with nothing known beside the file, gets to read of the examples."""
    found = []
    for rule in every_rule():
        for example in rule.examples:
            document = parse(marked(example.config).text)
            config = document.root.value() if isinstance(document.root, Object) else None
            told = check_with(document, Settings(version=version, consumer=Consumer.DEEPSPEED), [rule])
            paths = tuple(dict.fromkeys(".".join(map(str, finding.path)) for finding in told))
            if isinstance(config, dict) and all(paths):
                planting = Planting(rule.code, rule.check.__module__.split(".")[2], config, paths)
                found += [planting] if paths and planting not in found else []
    return tuple(found)
