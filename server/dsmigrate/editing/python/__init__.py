"""Configs that stand as dictionaries in Python scripts, read as if they were files of their own."""

from dsmigrate.editing.python.literals import Literal, literals
from dsmigrate.editing.python.spelling import as_python

__all__ = ["Literal", "as_python", "literals"]
