"""Why two runs part: signatures of what goes wrong when people move to DeepSpeed."""

from __future__ import annotations

from dsmigrate.verify.causes.registry import explain, signatures

__all__ = ["explain", "signatures"]
