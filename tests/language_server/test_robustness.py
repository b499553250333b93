"""Whatever a client says: the session goes on, and both sides have the same text."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.language_server import soak
from tests.language_server.raw import COMMAND, Data, RawClient

pytestmark = pytest.mark.slow
CONFIG = '{"train_batch_size": 8, "zero_optimization": {"stage": 2}}'
URI = "file:///w/ds_config.json"
HOVER = {"textDocument": {"uri": URI}, "position": {"line": 0, "character": 4}}


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16", "utf-32"])
def test_random_edits_leave_both_sides_with_the_same_text(encoding: str) -> None:
    made, _ = soak.session(1500, seed=len(encoding), encoding=encoding)
    assert made >= 1500


@pytest.mark.parametrize(
    "body",
    [
        b"{",
        b"",
        b"[]",
        b"null",
        b"\xff\xfe",
        b'"text"',
        b'{"a": 1}',
        b"[" * 100_000,
        b'{"jsonrpc": "2.0"}',
        b'{"jsonrpc": "1.0", "id": 7, "method": "textDocument/hover"}',
        b'{"jsonrpc": "2.0", "id": 7}',
        b'{"jsonrpc": "2.0", "id": null, "method": "textDocument/hover", "params": {}}',
        b'{"jsonrpc": "2.0", "id": {"a": 1}, "method": "textDocument/hover", "params": {}}',
        b'{"jsonrpc": "2.0", "method": 5}',
        b'{"jsonrpc": "2.0", "method": ["x"], "id": 7}',
        b'{"jsonrpc": "2.0", "method": "textDocument/didOpen", "params": {"textDocument": 5}}',
        b'{"jsonrpc": "2.0", "method": "textDocument/didOpen", "params": []}',
        b'{"jsonrpc": "2.0", "method": "textDocument/didChange", "params": {"contentChanges": [{"range": {}}]}}',
        b'{"jsonrpc": "2.0", "method": "$/cancelRequest", "params": {"id": 99999}}',
        b'{"jsonrpc": "2.0", "method": "workspace/didChangeConfiguration", "params": {"settings": {"dsmigrate": 5}}}',
        b'{"jsonrpc": "2.0", "id": 99, "result": 5}',
    ],
)
def test_a_message_that_is_wrong_ends_nothing(body: bytes) -> None:
    client = RawClient()
    client.initialize()
    client.open(URI, CONFIG)
    client.raw(body)
    assert client.ask("textDocument/hover", HOVER)["result"] is not None
    assert client.finish() == 0


def test_a_request_that_does_not_fit_is_answered_with_an_error() -> None:
    client = RawClient()
    assert client.ask("textDocument/hover", HOVER)["error"]["code"] == -32002  # before initialize
    client.initialize()
    assert client.ask("textDocument/hover", {"textDocument": 5})["error"]["code"] == -32602
    assert client.ask("no/such/method", {})["error"]["code"] == -32601
    assert client.ask("workspace/executeCommand", {"command": "no.such"})["error"]["code"] == -32602
    assert client.ask("workspace/executeCommand", {"command": "dsmigrate.explain", "arguments": [5]})["error"]
    assert client.ask("shutdown")["result"] is None
    assert client.ask("textDocument/hover", HOVER)["error"]["code"] == -32600
    client.notify("exit")
    assert client.end() == 0


def test_positions_outside_of_the_text_are_moved_into_it() -> None:
    client = RawClient()
    client.initialize()
    client.open(URI, CONFIG)
    for line, character in ((99, 0), (0, 9999), (2**31 - 1, 2**31 - 1), (0, 0)):
        where = {"line": line, "character": character}
        for method in ("textDocument/hover", "textDocument/completion", "textDocument/definition"):
            assert "error" not in client.ask(method, {"textDocument": {"uri": URI}, "position": where})
    client.change(
        URI, 2, [{"range": {"start": {"line": 5, "character": 5}, "end": {"line": 0, "character": 0}}, "text": "["}]
    )
    assert client.text(URI) == "["
    assert (
        client.ask("textDocument/hover", {**HOVER, "textDocument": {"uri": "file:///not/open.json"}})["result"] is None
    )
    client.change("file:///not/open.json", 2, [{"text": "x"}])
    assert client.text("file:///not/open.json") is None
    assert client.finish() == 0


def test_a_document_of_five_megabytes_is_served() -> None:
    client = RawClient()
    client.initialize({"textDocument": {"diagnostic": {}}})
    members = ",\n".join(f'  "key_{number}": {{"value": [1, 2, 3], "text": "some text"}}' for number in range(90_000))
    text = f'{{\n  "train_batch_size": 8,\n{members}\n}}\n'
    assert len(text) > 5_000_000
    client.open(URI, text)
    client.change(
        URI, 2, [{"range": {"start": {"line": 1, "character": 22}, "end": {"line": 1, "character": 23}}, "text": "16"}]
    )
    assert "16" in str(client.ask("textDocument/hover", {**HOVER, "position": {"line": 1, "character": 22}})["result"])
    assert client.text(URI) == text.replace(": 8,", ": 16,", 1)
    assert client.finish() == 0


def test_five_hundred_documents_are_open_at_once() -> None:
    client = RawClient()
    client.initialize()
    uris = [f"file:///w/{number}/ds_config.json" for number in range(500)]
    for uri in uris:
        client.open(uri, CONFIG)
    assert client.ask("textDocument/hover", {**HOVER, "textDocument": {"uri": uris[250]}})["result"] is not None
    full = client.memory()  # behind the answer, which waits until all are open
    for _ in range(3):
        for uri in uris:
            client.notify("textDocument/didClose", {"textDocument": {"uri": uri}})
        for uri in uris:
            client.open(uri, CONFIG)
    assert client.text(uris[-1]) == CONFIG
    assert client.memory() < full + 12, "documents that were closed are kept"
    assert client.finish() == 0


def test_a_client_that_dies_takes_its_server_along() -> None:
    for _ in range(3):
        client = RawClient()
        client.initialize()
        client.open(URI, CONFIG)
        client.notify("workspace/didChangeWorkspaceFolders", {"event": {"added": [], "removed": []}})
        assert client.end() in {0, 1}


def test_exit_without_shutdown_is_said_in_the_exit_code() -> None:
    client = RawClient()
    client.initialize()
    client.notify("exit")
    assert client.end() == 1


def test_settings_that_are_wrong_are_said_once_and_left_out() -> None:
    client = RawClient()
    client.initialize()
    client.open(URI, CONFIG)
    wrong = {"worldSize": "many", "select": ["X1"], "nonsense": 1, "consumer": "transformers"}
    for _ in range(2):
        client.notify("workspace/didChangeConfiguration", {"settings": {"dsmigrate": wrong}})
    status = client.ask("workspace/executeCommand", {"command": "dsmigrate.status", "arguments": [URI]})["result"]
    assert status["consumer"] == "transformers"
    assert status["worldSize"] is None
    said = [note["params"]["message"] for note in client.notes if note["method"] == "window/showMessage"]
    assert len(said) == 3
    assert any("world-size" in text for text in said)
    assert client.finish() == 0


def test_memory_does_not_grow_with_edits() -> None:
    client = RawClient()
    client.initialize({"textDocument": {"diagnostic": {}}})
    client.open(URI, CONFIG)
    place = {"start": {"line": 0, "character": 1}}

    def edit(times: int) -> float:
        for number in range(times):
            inserted = number % 2 == 0
            end = {"line": 0, "character": 1 if inserted else 2}
            client.change(URI, number, [{"range": {**place, "end": end}, "text": " " if inserted else ""}])
        assert client.text(URI) == CONFIG
        client.ask("textDocument/diagnostic", {"textDocument": {"uri": URI}})
        return client.memory()

    first = edit(2000)
    assert edit(4000) < first + 2, "something is kept of each edit"
    assert client.finish() == 0


def test_what_is_no_json_is_answered_and_leaves_a_line_in_the_log(tmp_path: Path) -> None:
    log = tmp_path / "log"
    client = RawClient((*COMMAND[:-1], "warning"), log=log)
    client.initialize()
    for body in (b"{", b"\xff\xfe", b"[" * 100_000):
        client.raw(body)
        assert client.next_answer() == {
            "jsonrpc": "2.0",
            "id": None,
            "error": {"code": -32700, "message": "Parse Error"},
        }
    assert client.finish() == 0
    said = log.read_text(encoding="utf-8")
    assert said.count("what came is no JSON") == 3
    assert "Traceback" not in said


def test_a_message_of_no_known_form_is_an_invalid_request() -> None:
    client = RawClient()
    client.initialize()
    odd: list[Data] = [{"jsonrpc": "1.0", "id": 5, "method": "x"}]
    odd += [{"jsonrpc": "2.0", "id": "a", "method": method} for method in (5, [], {"x": 1})]
    for message in odd:
        client.send(message)
        assert client.next_answer()["error"]["code"] == -32600
    client.notify("workspace/didChangeConfiguration", {"settings": {"method": ["x"]}})
    assert client.text(URI) is None
    assert client.finish() == 0


@pytest.mark.parametrize("method", ["selectionRange", "documentSymbol", "foldingRange"])
def test_answers_about_a_deep_document_can_be_written(method: str) -> None:
    client = RawClient()
    client.initialize({"textDocument": {"documentSymbol": {"hierarchicalDocumentSymbolSupport": True}}})
    text = '{"train_batch_size": 8, "a": [' + '{"a": [' * 239 + "1" + "]}" * 240
    client.open(URI, text)
    params = {"textDocument": {"uri": URI}, "positions": [{"line": 0, "character": text.index("1]")}]}
    assert client.ask(f"textDocument/{method}", params).get("result") is not None
    assert client.finish() == 0


def test_a_notification_that_asks_for_an_answer_gets_an_error() -> None:
    client = RawClient()
    client.initialize()
    item = {"uri": URI, "languageId": "json", "version": 1, "text": CONFIG}
    assert client.ask("textDocument/didOpen", {"textDocument": item})["error"]["code"] == -32600
    assert client.text(URI) is None
    assert client.finish() == 0


def test_shutdown_ends_what_is_under_way(tmp_path: Path) -> None:
    log = tmp_path / "log"
    client = RawClient(log=log)
    client.initialize()
    sides = [{"name": f"{name}.json", "text": CONFIG} for name in ("a", "b")]
    params = {"command": "dsmigrate.diff", "arguments": sides}
    commands = [client.begin("workspace/executeCommand", params) for _ in range(5)]
    answers = client.answers(*commands, client.begin("shutdown"))
    assert all(answer.get("error", {}).get("code") in {None, -32800} for answer in answers)
    client.notify("exit")
    assert client.end() == 0
    assert "Traceback" not in log.read_text(encoding="utf-8")
