"""Contexts of configs that are written as texts, or as the members of one."""

from __future__ import annotations

from dsmigrate.document import parse
from dsmigrate.editing import View
from dsmigrate.knowledge import Consumer
from dsmigrate.rules import Facts, Settings
from dsmigrate.rules.context import Context


def view(
    members: str,
    *,
    consumer: Consumer = Consumer.DEEPSPEED,
    version: str | None = None,
    world: int | None = None,
    parameters: int | None = None,
) -> View:
    """Return the view of ``{members}``."""
    facts = Facts(world_size=world, parameters=parameters)
    return View(parse(f"{{{members}}}"), Settings(version=version, consumer=consumer, facts=facts))


def context(
    members: str, *, consumer: Consumer = Consumer.DEEPSPEED, version: str | None = None, world: int | None = None
) -> Context:
    """Return the context of ``{members}``."""
    return view(members, consumer=consumer, version=version, world=world).context
