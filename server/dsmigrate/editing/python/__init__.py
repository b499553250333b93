"""Configs that stand as dictionaries in Python scripts, read as if they were files of their own."""

from dsmigrate.editing.python.literals import Literal, literals
from dsmigrate.editing.python.spelling import as_python

__all__ = ["NOT_OF_PYTHON", "Literal", "as_python", "literals"]

NOT_OF_PYTHON = ("DS010",)
"""Rules about text that a program reads as JSON, which a dictionary is not."""
