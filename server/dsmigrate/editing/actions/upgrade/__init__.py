"""A config taken from one DeepSpeed release to a later one, so that it loads there and trains as before."""

from dsmigrate.editing.actions.upgrade.run import has_work, upgrade

__all__ = ["has_work", "upgrade"]
