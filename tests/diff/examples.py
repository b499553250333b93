"""Examples of explanations as comparisons."""

from __future__ import annotations

from dsmigrate.diff import Explained, Result, compare_views
from dsmigrate.diff.registry import Example
from dsmigrate.document import parse
from dsmigrate.editing.view import View
from dsmigrate.knowledge import Consumer
from dsmigrate.rules import Facts, Settings


def view(
    text: str,
    *,
    version: str | None = None,
    consumer: Consumer = Consumer.DEEPSPEED,
    world_size: int | None = None,
    parameters: int | None = None,
) -> View:
    """Return a config as a release and a consumer see it."""
    facts = Facts(world_size=world_size, parameters=parameters)
    return View(parse(text), Settings(version=version, consumer=consumer, facts=facts))


def compared(example: Example) -> Result:
    """Return the comparison of an example."""
    old, new = (
        view(
            text,
            version=version,
            consumer=example.consumer,
            world_size=example.world_size,
            parameters=example.parameters,
        )
        for text, version in ((example.old, example.old_version), (example.new, example.new_version))
    )
    return compare_views(old, new)


def said(code: str, example: Example) -> list[Explained]:
    """Return what the explanation of that code says about an example."""
    return [one for one in compared(example).explained if one.code == code]
