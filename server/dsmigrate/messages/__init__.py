"""Messages of DeepSpeed, the frameworks above it, torch, NCCL and CUDA: what they mean, found in what people paste."""

from __future__ import annotations

from dsmigrate.messages.entries import Entry, Text, entries
from dsmigrate.messages.matching import Match, find, nearest

__all__ = ["Entry", "Match", "Text", "entries", "find", "nearest"]
