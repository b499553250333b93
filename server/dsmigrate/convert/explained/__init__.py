"""What each code of a conversion stands for: one entry per code, with why, what to do, and examples.

The examples are the tests and the page of the code; nothing of this is loaded by a conversion.
"""

from __future__ import annotations

from dsmigrate.convert.explained.model import Example, Explained, every_conversion

__all__ = ["Example", "Explained", "every_conversion"]
