"""Long work is shown while it is done, under the client's token or one of the server's, and can be cancelled."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from lsprotocol import types

from dsmigrate.language_server import progress
from tests.language_server.raw import COMMAND, RawClient

pytestmark = pytest.mark.slow
Data = dict[str, Any]
BROKEN = '{"train_batch_size": 8, "zero_optimization": {"stage": 5}}'
SHOWS = {"window": {"workDoneProgress": True}}
ENDLESS = """
import asyncio
from types import SimpleNamespace
from dsmigrate.language_server import main
from dsmigrate.language_server.features import workspace

checked = 0

async def sleep(seconds):
    global checked
    checked += 1
    await (asyncio.sleep(seconds) if checked < 100 else asyncio.Event().wait())

workspace.asyncio = SimpleNamespace(sleep=sleep, get_running_loop=asyncio.get_running_loop)
main.main(["--log-level", "error"])
"""
"""A server whose hundredth check of a file gives way to other requests and is never taken up again by itself."""


def started(
    capabilities: Data | None = None, folder: Path | None = None, command: tuple[str, ...] = COMMAND
) -> RawClient:
    client = RawClient(command)
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


def endless(folder: Path, capabilities: Data | None = None) -> RawClient:
    """Start a server that comes to no end with the 200 configs of a folder, unless it is cancelled."""
    many(folder, 200)
    return started(capabilities, folder, (sys.executable, "-c", ENDLESS))


def test_a_cancelled_request_ends_its_progress_and_the_server_goes_on(tmp_path: Path) -> None:
    client = endless(tmp_path)
    number = client.begin("workspace/diagnostic", {"previousResultIds": [], "workDoneToken": "w"})
    client.wait_for(lambda: len(told(client, "w")) > 2)
    client.notify("$/cancelRequest", {"id": number})
    assert client.answer(number)["error"]["code"] == -32800
    assert told(client, "w")[-1] == {"kind": "end"}
    assert len(told(client, "w")) < 60, "it went on to the end"
    client.open("file:///w/ds_config.json", BROKEN)
    whole = client.ask("textDocument/diagnostic", {"textDocument": {"uri": "file:///w/ds_config.json"}})
    assert whole["result"]["items"]
    assert client.finish() == 0


def test_the_person_cancels_by_the_token_of_the_client(tmp_path: Path) -> None:
    client = endless(tmp_path)
    number = client.begin("workspace/diagnostic", {"previousResultIds": [], "workDoneToken": "w"})
    client.wait_for(lambda: len(told(client, "w")) > 2)
    client.notify("window/workDoneProgress/cancel", {"token": "w"})
    assert client.answer(number)["error"]["code"] == -32800
    assert told(client, "w")[-1] == {"kind": "end"}
    client.notify("window/workDoneProgress/cancel", {"token": "w"})  # too late, and nothing happens
    client.notify("window/workDoneProgress/cancel", {"token": "never begun"})
    assert client.finish() == 0


def test_slow_work_is_shown_under_a_token_of_the_server(tmp_path: Path) -> None:
    client = endless(tmp_path, SHOWS)
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


class Screen:
    """What a client shows of the work of a session."""

    def __init__(self, *, shows: bool) -> None:
        self.client = SimpleNamespace(can=lambda what: shows and what == "window.work_done_progress")
        self.server = SimpleNamespace(window_work_done_progress_create_async=self.create)
        self.working: dict[object, object] = {}
        self.seen: list[str] = []

    async def create(self, params: types.WorkDoneProgressCreateParams) -> None:
        """Agree to show something."""
        self.seen.append(f"create {str(params.token).partition('-')[0]}")

    def send(self, method: str, params: Data) -> None:
        """Show something."""
        self.seen.append(f"{method} {params['value']['kind']}")


@pytest.mark.parametrize("shows", [True, False])
@pytest.mark.parametrize("turns", [0, 100])
def test_quick_work_and_clients_that_show_nothing_are_left_in_peace(
    monkeypatch: pytest.MonkeyPatch, turns: int, *, shows: bool
) -> None:
    """What takes no turn of the event loop is quicker than the least patience; what takes a hundred is not."""
    monkeypatch.setattr(progress, "PATIENCE", 0)
    screen: Any = Screen(shows=shows)

    async def work() -> None:
        async with progress.working(screen, "Checking configs"):
            for _ in range(turns):
                await asyncio.sleep(0)
        for _ in range(100):
            await asyncio.sleep(0)

    asyncio.run(work())
    shown = ["create dsmigrate", "$/progress begin", "$/progress end"]
    assert screen.seen == (shown if shows and turns else [])
    assert screen.working == {}


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
