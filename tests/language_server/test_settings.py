"""Layers of settings: what the client said at first, what it answers later, and what commands changed."""

from __future__ import annotations

import json
import re
import subprocess
import time
from pathlib import Path
from urllib.parse import unquote

import pytest

from dsmigrate.language_server.settings import settings_for
from tests.language_server.raw import RawClient


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


def test_a_file_of_the_plain_name_is_completed_whatever_it_holds() -> None:
    client = RawClient()
    client.initialize()
    for number, (text, character, wanted) in enumerate(
        [("", 0, "ZeRO-2 with bf16"), ('{"my_own_key": 1, ""}', 19, '"zero_optimization"')]
    ):
        uri = f"file:///w/{number}/ds_config_new.json"
        client.open(uri, text)
        place = {"textDocument": {"uri": uri}, "position": {"line": 0, "character": character}}
        items = client.ask("textDocument/completion", place)["result"]["items"]
        assert wanted.strip('"') in [item["label"].strip('"') for item in items]
    client.finish()


@pytest.mark.parametrize("trusts", [True, False])
def test_git_is_run_where_the_client_trusts_the_folder(trusts: bool, tmp_path: Path) -> None:
    file = tmp_path / "ds_config.json"
    file.write_text('{"train_batch_size": 8}', encoding="utf-8")
    git = ["git", "-C", str(tmp_path), "-c", "user.name=x", "-c", "user.email=x@example.org"]
    for arguments in (["init", "-q"], ["add", "."], ["commit", "-q", "-m", "one"]):
        subprocess.run([*git, *arguments], check=True)
    client = RawClient()
    client.initialize(initializationOptions={"mayRunGit": trusts, "showsStatus": True})
    client.open(file.as_uri(), '{"train_batch_size": 16}')
    titles: list[str] = []
    for _ in range(300 if trusts else 30):
        found = client.ask("textDocument/codeLens", {"textDocument": {"uri": file.as_uri()}})["result"]
        titles = [lens["command"]["title"] for lens in found]
        if titles:
            break
        time.sleep(0.01)
    assert titles == (["Compare with HEAD"] if trusts else [])
    client.finish()


def test_hovers_lead_into_the_editor_where_the_client_names_its_command_for_it() -> None:
    client = RawClient()
    client.initialize(
        {"textDocument": {"hover": {"contentFormat": ["markdown"]}}}, initializationOptions={"explainCommand": "x.page"}
    )
    client.open("file:///w/ds_config.json", '{"gradient_clipping": 1}')
    place = {"textDocument": {"uri": "file:///w/ds_config.json"}, "position": {"line": 0, "character": 3}}
    shown = client.ask("textDocument/hover", place)["result"]["contents"]["value"]
    (arguments,) = re.findall(r"\[More\]\(command:x\.page\?([^)]*)\)", shown)
    assert json.loads(unquote(arguments)) == ["gradient_clipping", "file:///w/ds_config.json"]
    asked = {"command": "dsmigrate.explain", "arguments": json.loads(unquote(arguments))}
    answer = client.ask("workspace/executeCommand", asked)
    assert "**When to change it.**" in answer["result"]["markdown"]
    client.finish()
