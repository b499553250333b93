"""Long documents are worked on beside the loop: others are answered meanwhile, and what nobody waits for ends."""

from __future__ import annotations

import asyncio
import gc
import sys
import threading
import weakref
from collections.abc import Iterator

import pytest

from dsmigrate.language_server import diagnosing
from dsmigrate.language_server.aside import LONG, Aside
from dsmigrate.language_server.features.structure import MOST
from dsmigrate.patience import CancelledWorkError, pause
from tests.benchmarks.growth import SHAPES
from tests.language_server.raw import Data, RawClient

pytestmark = pytest.mark.broad

URI, OTHER = "file:///w/ds_config.json", "file:///other/ds_config.json"
HOSTILE = SHAPES["keys that are doubled and wrong"](4_000_000)
LONGER = SHAPES["keys that are doubled and wrong"](3 * LONG)
SMALL = '{"train_batch_size": 8}'
ABOUT = {"textDocument": {"uri": URI}}
HOVER = {"textDocument": {"uri": OTHER}, "position": {"line": 0, "character": 4}}
LIMITED = """
from itertools import count
from dsmigrate.language_server import aside, main
from dsmigrate.patience import Patience
clock = count()
aside.Patience = lambda seconds: Patience({pauses}, lambda: next(clock))
main.main(["--log-level", "error"])
"""
START = {"start": {"line": 0, "character": 0}, "end": {"line": 0, "character": 0}}


@pytest.fixture
def client() -> Iterator[RawClient]:
    client = RawClient()
    client.initialize({"textDocument": {"diagnostic": {}}})
    client.open(OTHER, SMALL)
    yield client
    assert client.finish() == 0


def test_a_hover_is_answered_while_a_hostile_document_is_checked_and_a_cancelled_check_ends(client: RawClient) -> None:
    client.open(URI, HOSTILE)
    check = client.begin("textDocument/diagnostic", ABOUT)
    for _ in range(20):
        hover = client.begin("textDocument/hover", HOVER)
        answer = client.next_answer()
        assert answer["id"] == hover, "the check has held the hover up"
        assert "train_batch_size" in str(answer["result"])
    client.notify("$/cancelRequest", {"id": check})
    assert client.answer(check)["error"]["code"] == -32800
    client.change(URI, 2, [{"text": SMALL}])
    assert client.ask("textDocument/diagnostic", ABOUT)["result"]["items"] == []


def test_typing_into_a_hostile_document_outdates_what_was_asked_about_it(client: RawClient) -> None:
    client.open(URI, HOSTILE)
    check = client.begin("textDocument/diagnostic", ABOUT)
    symbols = client.begin("textDocument/documentSymbol", ABOUT)
    hovers = []
    for version in range(2, 6):
        client.change(URI, version, [{"range": START, "text": " "}])
        hovers.append(client.begin("textDocument/hover", HOVER))
    client.change(URI, 6, [{"text": SMALL}])
    answers = {answer["id"]: answer for answer in client.answers(check, symbols, *hovers)}
    assert all(answers[hover]["result"] for hover in hovers)
    assert answers[check]["error"]["code"] == -32802, "ServerCancelled"
    assert answers[check]["error"]["data"] == {"retriggerRequest": True}
    assert answers[symbols]["error"]["code"] == -32801, "ContentModified"
    assert client.text(URI) == SMALL


def test_a_command_about_a_hostile_document_can_be_cancelled(client: RawClient) -> None:
    client.open(URI, HOSTILE)
    command = {"command": "dsmigrate.status", "arguments": [URI]}
    status = client.begin("workspace/executeCommand", command)
    assert client.ask("textDocument/hover", HOVER)["result"]
    client.notify("$/cancelRequest", {"id": status})
    assert client.answer(status)["error"]["code"] == -32800
    client.change(URI, 2, [{"text": SMALL}])
    assert client.ask("workspace/executeCommand", command)["result"]["findings"] == {}


def test_of_very_many_findings_the_worst_are_shown_and_the_number_is_told(client: RawClient) -> None:
    client.open(URI, LONGER)
    items = client.ask("textDocument/diagnostic", ABOUT)["result"]["items"]
    assert len(items) == diagnosing.MOST + 1
    assert {item["severity"] for item in items[:-1]} == {1}
    assert items[-1]["message"].startswith(f"the worst {diagnosing.MOST} of ")
    whole = {**ABOUT, "range": {**START, "end": {"line": 10**6, "character": 0}}, "context": {"diagnostics": []}}
    assert client.ask("textDocument/codeAction", whole)["result"]


@pytest.mark.parametrize(("pauses", "fewest"), [(1_000, 0), (30_000, 1)])
def test_a_check_that_takes_too_long_shows_what_it_has_found_and_says_so(pauses: int, fewest: int) -> None:
    """A pause counts for a second: a thousand are over while the text is read, thirty thousand between two rules."""
    client = RawClient((sys.executable, "-c", LIMITED.format(pauses=pauses)))
    client.initialize({"textDocument": {"diagnostic": {}}})
    client.open(URI, LONGER)
    *found, last = client.ask("textDocument/diagnostic", ABOUT)["result"]["items"]
    assert len(found) >= fewest
    assert last["message"].startswith("the check was stopped because it took too long")
    client.change(URI, 2, [{"text": SMALL}])
    assert client.ask("textDocument/diagnostic", ABOUT)["result"]["items"] == []
    assert client.finish() == 0


def test_of_very_many_symbols_the_first_are_answered(client: RawClient) -> None:
    client.open(URI, SMALL.replace("}", "".join(f',\n"key{number}": {{"x": 1}}' for number in range(MOST)) + "}"))
    assert len(client.ask("textDocument/documentSymbol", ABOUT)["result"]) == MOST


def test_clients_that_wait_for_diagnostics_get_those_of_the_last_text_of_a_long_document() -> None:
    client = RawClient()
    client.initialize()
    client.open(URI, LONGER)
    for version in (2, 3):
        client.change(URI, version, [{"range": START, "text": " "}])
    client.wait_for(lambda: any(note["params"].get("version") == 3 for note in _published(client)))
    assert len(_published(client)[-1]["params"]["diagnostics"]) == diagnosing.MOST + 1
    client.notify("textDocument/didClose", ABOUT)
    client.wait_for(lambda: _published(client)[-1]["params"]["diagnostics"] == [])
    assert client.finish() == 0


def _published(client: RawClient) -> list[Data]:
    return [note for note in client.notes if note["method"] == "textDocument/publishDiagnostics"]


def test_work_whose_task_is_cancelled_ends_and_lets_the_next_one_begin() -> None:
    begun, ended = threading.Event(), threading.Event()

    def endless() -> None:
        begun.set()
        try:
            while True:
                pause()
        finally:
            ended.set()

    async def session() -> str:
        aside = Aside()
        task = asyncio.create_task(aside.run(URI, endless))
        await asyncio.to_thread(begun.wait)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        answer = await aside.run(OTHER, lambda: "next")
        assert ended.is_set()
        aside.end()
        return answer

    assert asyncio.run(session()) == "next"


def test_work_about_no_document_leaves_no_garbage() -> None:
    """A conversion leaves rings of objects by the megabyte, and the server makes too few others to search for them."""

    class Ring:
        def __init__(self) -> None:
            self.itself = self

    async def session() -> bool:
        aside = Aside()
        left = await aside.beside(lambda: weakref.ref(Ring()))
        aside.end()
        return left() is None

    gc.disable()
    try:
        assert asyncio.run(session())
    finally:
        gc.enable()


def test_a_change_ends_what_is_about_that_document_alone() -> None:
    begun, go_on = threading.Event(), threading.Event()

    def held() -> str:
        begun.set()
        go_on.wait()
        pause()
        return "done"

    async def session() -> None:
        aside = Aside()
        first = asyncio.create_task(aside.run(URI, held))
        waiting = asyncio.create_task(aside.run(URI, lambda: "never begun"))
        other = asyncio.create_task(aside.run(OTHER, lambda: "done"))
        await asyncio.to_thread(begun.wait)
        aside.outdate(URI)
        go_on.set()
        for task in (first, waiting):
            with pytest.raises(CancelledWorkError):
                await task
        assert await other == "done"
        aside.end()

    asyncio.run(session())
