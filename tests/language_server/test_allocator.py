"""Memory is given back after many messages, and nothing happens where the C library cannot."""

from __future__ import annotations

import ctypes
import json
import platform

import pytest

from dsmigrate.language_server import allocator
from dsmigrate.language_server.server import Server


@pytest.fixture(autouse=True)
def _fresh() -> None:
    allocator._trim.cache_clear()


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="only glibc has the call")
def test_glibc_is_asked_to_trim(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []
    trim = allocator._trim()
    assert trim is not None
    assert trim(0) in {0, 1}
    monkeypatch.setattr(allocator, "_trim", lambda: asked.append)
    allocator.give_back()
    assert asked == [0]


@pytest.mark.parametrize("error", [OSError, TypeError])
def test_a_system_without_the_call_is_left_alone(monkeypatch: pytest.MonkeyPatch, error: type[Exception]) -> None:
    def fail(_name: object) -> None:
        raise error

    monkeypatch.setattr(ctypes, "CDLL", fail)
    assert allocator._trim() is None
    allocator.give_back()
    allocator._trim.cache_clear()


def test_it_happens_once_in_so_many_messages(monkeypatch: pytest.MonkeyPatch) -> None:
    happened: list[None] = []
    monkeypatch.setattr(allocator, "EVERY", 10)
    monkeypatch.setattr(allocator, "give_back", lambda: happened.append(None))
    protocol = Server().protocol
    text = '{"jsonrpc": "2.0", "method": "$/setTrace", "params": {"value": "off"}}'
    protocol._workspace = object()  # type: ignore[assignment] # as after initialize

    for _ in range(35):
        protocol.handle_message(protocol.structure_message(json.loads(text)))
    assert len(happened) == 3
