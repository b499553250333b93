"""What a file comes to: numbers and facts that no single key states, true for its release and its consumer.

Hover, inlay hints and code lenses say the same because they ask here. Every function takes a ``Context`` and survives
whatever the file holds.
"""

from dsmigrate.editing.derived.autos import Fate, fate, must_match
from dsmigrate.editing.derived.batch import Triad, replaced_steps, triad
from dsmigrate.editing.derived.force import in_force
from dsmigrate.editing.derived.inert import Unmet, shadowed_by, unmet
from dsmigrate.editing.derived.memory import Size, size
from dsmigrate.editing.derived.optimizer import built_class, type_facts
from dsmigrate.editing.derived.precision import Precision, precision
from dsmigrate.editing.derived.schedule import course
from dsmigrate.editing.derived.sizes import bytes_text, count_text
from dsmigrate.editing.derived.zero import offloads, stage_text

__all__ = [
    "Fate",
    "Precision",
    "Size",
    "Triad",
    "Unmet",
    "built_class",
    "bytes_text",
    "count_text",
    "course",
    "fate",
    "in_force",
    "must_match",
    "offloads",
    "precision",
    "replaced_steps",
    "shadowed_by",
    "size",
    "stage_text",
    "triad",
    "type_facts",
    "unmet",
]
