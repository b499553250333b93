"""Layers of settings: what the client said at first, what it answers later, and what commands changed."""

from __future__ import annotations

from dsmigrate.language_server.settings import settings_for


def test_a_later_layer_wins_whatever_the_spelling() -> None:
    settings = settings_for(None, ({"world-size": 2, "consumer": "accelerate"}, {"worldSize": 4}))
    assert settings.check.world_size == 4
    assert settings.check.consumer is not None
    assert settings.check.consumer.value == "accelerate"


def test_null_takes_back_what_was_said_before() -> None:
    settings = settings_for(None, ({"deepspeedVersion": "0.14.0", "worldSize": 2}, {"deepspeed-version": None}))
    assert settings.check.version is None
    assert settings.check.world_size == 2


def test_what_a_later_layer_replaces_is_not_complained_about() -> None:
    assert settings_for(None, ({"worldSize": "many"}, {"worldSize": 2})).errors == ()
    assert "many" in settings_for(None, ({"worldSize": "many"}, {})).errors[0]
