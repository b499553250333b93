"""What can be done to a config at a place: fixes, suppressions and rewritings, offered at once and worked out late.

``actions`` lists them without an edit; ``resolve`` gives the edits of one of them from its data, ``outcome`` with them
what was done and what is left for the person.
"""

from dsmigrate.editing.actions.model import Action, Data, Mended, Outcome
from dsmigrate.editing.actions.offers import actions, outcome, resolve
from dsmigrate.editing.actions.upgrade import upgrade

__all__ = ["Action", "Data", "Mended", "Outcome", "actions", "outcome", "resolve", "upgrade"]
