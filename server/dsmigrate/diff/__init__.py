"""What a change of a config does: to numbers, memory, communication, speed, checkpoints, or nothing at all.

Two configs are loaded as DeepSpeed would, made comparable (``side``), compared (``compare``) and explained, one idea
per file under ``explanations``. ``compare_views`` is the way in.
"""

from dsmigrate.diff.model import Change, Effect, Explained, Kind, Result, Severity
from dsmigrate.diff.run import compare_views

__all__ = ["Change", "Effect", "Explained", "Kind", "Result", "Severity", "compare_views"]
