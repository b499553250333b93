"""Long work is shown while it is done, under the client's token or one of the server's, and can be cancelled."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest
from tests.language_server.raw import RawClient

from dsmigrate.language_server.progress import PATIENCE

pytestmark = pytest.mark.slow
Data = dict[str, Any]
BROKEN = '{"train_batch_size": 8, "zero_optimization": {"stage": 5}}'
SHOWS = {"window": {"workDoneProgress": True}}


def started(capabilities: Data | None = None, folder: Path | None = None) -> RawClient:
    client = RawClient()
    folders = {"workspaceFolders": [{"uri": folder.as_uri(), "name": "w"}]} if folder is not None else {}
    client.initialize(capabilities, **folders)
    return client


def many(folder: Path, count: int) -> None:
    for number in range(count):
        (folder / f"ds_config_{number}.json").write_text(BROKEN.replace("8", str(number + 1)), encoding="utf-8")


def told(client: RawClient, token: object) -> list[Data]:
    return [
        note["params"]["value"]
        for note in client.notes
        if note["method"] == "$/progress" and note["params"]["token"] == token and "kind" in note["params"]["value"]
    ]


def test_a_token_of_the_client_is_told_how_far_the_workspace_is(tmp_path: Path) -> None:
    many(tmp_path, 20)
    client = started(folder=tmp_path)
    answer = client.ask(
        "workspace/diagnostic", {"previousResultIds": [], "workDoneToken": "w", "partialResultToken": 7}
    )
    assert answer["result"] == {"items": []}  # each came as a part
    parts = [note["params"]["value"]["items"] for note in client.notes if note["params"].get("token") == 7]
    assert len([item for part in parts for item in part]) == 20
    first, *middle, last = told(client, "w")
    assert first == {"kind": "begin", "title": "Checking configs", "cancellable": True, "percentage": 0}
    assert last == {"kind": "end"}
    shares = [value["percentage"] for value in middle]
    assert shares == sorted(set(shares)) == list(range(5, 100, 5))
    assert middle[0]["message"].startswith("ds_config_")
    assert client.finish() == 0


@pytest.mark.parametrize(
    ("command", "arguments", "title"),
    [
        ("dsmigrate.diff", ["file:///w/old.json", "file:///w/new.json"], "Comparing configs"),
        ("dsmigrate.convertScript", ["file:///w/train.py", False], "Converting train.py"),
    ],
)
def test_commands_tell_the_token_that_came_with_them(command: str, arguments: list[Any], title: str) -> None:
    client = RawClient()
    agreed = client.initialize()
    assert agreed["executeCommandProvider"]["workDoneProgress"] is True
    assert agreed["diagnosticProvider"]["workDoneProgress"] is True
    for name in ("old", "new"):
        client.open(f"file:///w/{name}.json", BROKEN.replace("5", "2" if name == "old" else "3"))
    client.open("file:///w/train.py", "import torch\n", "python")
    for token in (1, 2):
        asked = {"command": command, "arguments": arguments, "workDoneToken": token}
        assert "result" in client.ask("workspace/executeCommand", asked)
        assert [value.get("title") for value in told(client, token)] == [title, None]
        assert [value["kind"] for value in told(client, token)] == ["begin", "end"]
    assert client.finish() == 0


def test_a_cancelled_request_ends_its_progress_and_the_server_goes_on(tmp_path: Path) -> None:
    many(tmp_path, 400)
    client = started(folder=tmp_path)
    number = client.begin("workspace/diagnostic", {"previousResultIds": [], "workDoneToken": "w"})
    client.wait_for(lambda: len(told(client, "w")) > 2)
    client.notify("$/cancelRequest", {"id": number})
    assert client.answer(number)["error"]["code"] == -32800
    assert told(client, "w")[-1] == {"kind": "end"}
    assert len(told(client, "w")) < 90, "it went on to the end"
    whole = client.ask("workspace/diagnostic", {"previousResultIds": []})
    assert len(whole["result"]["items"]) == 400
    assert client.finish() == 0


def test_the_person_cancels_by_the_token_of_the_client(tmp_path: Path) -> None:
    many(tmp_path, 400)
    client = started(folder=tmp_path)
    number = client.begin("workspace/diagnostic", {"previousResultIds": [], "workDoneToken": "w"})
    client.wait_for(lambda: len(told(client, "w")) > 2)
    client.notify("window/workDoneProgress/cancel", {"token": "w"})
    assert client.answer(number)["error"]["code"] == -32800
    assert told(client, "w")[-1] == {"kind": "end"}
    client.notify("window/workDoneProgress/cancel", {"token": "w"})  # too late, and nothing happens
    client.notify("window/workDoneProgress/cancel", {"token": "never begun"})
    assert client.finish() == 0


def test_slow_work_is_shown_under_a_token_of_the_server(tmp_path: Path) -> None:
    many(tmp_path, 1200)
    client = started(SHOWS, tmp_path)
    number = client.begin("workspace/diagnostic", {"previousResultIds": []})
    client.wait_for(lambda: any(note["method"] == "$/progress" for note in client.notes))
    assert [asked["method"] for asked in client.asked if "workDoneProgress" in asked["method"]] == [
        "window/workDoneProgress/create"
    ]
    token = next(asked["params"]["token"] for asked in client.asked if "workDoneProgress" in asked["method"])
    client.notify("window/workDoneProgress/cancel", {"token": token})
    assert client.answer(number)["error"]["code"] == -32800
    kinds = [value["kind"] for value in told(client, token)]
    assert (kinds[0], kinds[-1]) == ("begin", "end")
    assert client.finish() == 0


def test_quick_work_and_clients_that_show_nothing_are_left_in_peace(tmp_path: Path) -> None:
    many(tmp_path, 3)
    for capabilities in (SHOWS, {}):
        client = started(capabilities, tmp_path)
        began = time.monotonic()
        assert len(client.ask("workspace/diagnostic", {"previousResultIds": []})["result"]["items"]) == 3
        was_quick = time.monotonic() - began < PATIENCE
        time.sleep(PATIENCE + 0.3)
        assert client.text("file:///none") is None
        if was_quick or not capabilities:
            assert not [note for note in client.notes if note["method"] == "$/progress"]
            assert not [asked for asked in client.asked if "rogress" in asked["method"]]
        assert client.finish() == 0


def test_what_has_not_changed_is_not_read_again(tmp_path: Path) -> None:
    many(tmp_path, 2)
    watches = {"workspace": {"didChangeWatchedFiles": {"dynamicRegistration": True}}}
    client = started(watches, tmp_path)

    def pulled() -> dict[str, int]:
        items = client.ask("workspace/diagnostic", {"previousResultIds": []})["result"]["items"]
        return {item["uri"].rpartition("/")[2]: len(item["items"]) for item in items}

    before = pulled()
    assert sorted(before) == ["ds_config_0.json", "ds_config_1.json"]
    assert pulled() == before
    (tmp_path / "ds_config_0.json").write_text('{"train_batch_size": 8}', encoding="utf-8")
    after = pulled()
    assert after["ds_config_0.json"] < before["ds_config_0.json"]
    many(tmp_path, 3)
    (tmp_path / "ds_config_1.json").unlink()
    changes = [{"uri": (tmp_path / "ds_config_2.json").as_uri(), "type": 1}]
    client.notify("workspace/didChangeWatchedFiles", {"changes": changes})
    assert sorted(pulled()) == ["ds_config_0.json", "ds_config_2.json"]
    assert client.finish() == 0
