"""What DeepSpeed knows of its config: every key, in every release since 0.9, for every consumer.

The facts lie in ``schemas/deepspeed`` (see ``schemas/README.md``); one section is read when the first of its keys is
asked for. ``knowledge("0.19.8").key("zero_optimization.stage")`` answers what hover, completion, rules, the semantic
diff and the codemod need.
"""

from __future__ import annotations

from dsmigrate.knowledge.consumer import Auto, AutoEffect, Consumer
from dsmigrate.knowledge.key import Key
from dsmigrate.knowledge.lookup import Knowledge, knowledge
from dsmigrate.knowledge.spans import MISSING, Event, EventKind, Status
from dsmigrate.knowledge.types import Parameter, TypeFacts

__all__ = [
    "MISSING",
    "Auto",
    "AutoEffect",
    "Consumer",
    "Event",
    "EventKind",
    "Key",
    "Knowledge",
    "Parameter",
    "Status",
    "TypeFacts",
    "knowledge",
]
