"""Messages to the language server that no editor sends, and those that every editor sends, in any order.

A case is one session in this process: the bytes of a client go in, and what the server says is looked at. Every request
has to be answered once, none of them with an internal error, and nothing may be logged with a traceback.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import json
import logging
import os
import random
import threading
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest import mock

from pygls.io_ import run_async

from dsmigrate import languages
from dsmigrate.checking import evidence
from dsmigrate.language_server.registry import COMMANDS, FEATURES
from dsmigrate.language_server.server import Server
from dsmigrate.settings import toml
from tests.fuzz.failing import FailedError
from tests.fuzz.mutation import ODD, mutated

Data = dict[str, Any]
CLIENTS = sorted((Path(__file__).parents[1] / "language_server" / "clients").glob("*.json"))
LAST = "last"
"""The id of the request that ends a session."""
MESSAGES = 40
"""Messages of one session."""
_INTERNAL = -32603
_ODD_NUMBERS = (-1, 0, 1, 2, 7, 10**6, 2**31 - 1, 2**31, 2**63, -(2**40), 1.5, 1e300)
_ODD_VALUES = (None, True, "", "x", [], {}, [[]], {"": None}, "\ud800", "a" * 5000, *ODD)
_METHODS = tuple(entry.name for entry in FEATURES)
_OTHERS = (
    "initialize", "no/such", "$/setTrace", "$/progress", "$/unknown", "window/workDoneProgress/cancel",
    "completionItem/resolve", "textDocument/formatting", "textDocument/semanticTokens/full", "workspace/symbol",
    "textDocument/rename", "",
)  # fmt: skip
_KINDS = ("quickfix", "refactor.rewrite", "source.fixAll.dsmigrate", "source", "", "x")


class _Log(logging.Handler):
    """Keeps what is logged with a traceback."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.failures: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        if record.exc_info and record.exc_info[0] is not None:
            self.failures.append(logging.Formatter().format(record))


class _Writer:
    """Where the server writes to: takes messages apart, and answers its requests somehow."""

    def __init__(self, chance: random.Random, reader: asyncio.StreamReader) -> None:
        self._chance = chance
        self._reader = reader
        self.answers: list[Data] = []
        self.ended = asyncio.Event()

    def write(self, data: bytes) -> None:
        message: Data = json.loads(data.partition(b"\r\n\r\n")[2])
        if "method" not in message:
            self.answers.append(message)
            if message.get("id") == LAST:
                self.ended.set()
        elif "id" in message and self._chance.random() < 0.9:
            result = self._chance.choice((None, [], {}, [{"worldSize": 8}], [None], "x", 5, {"applied": True}))
            answer: Data = {"jsonrpc": "2.0", "id": message["id"], "result": result}
            if self._chance.random() < 0.2:
                answer = {**answer, "error": {"code": -1, "message": "no"}}
            self._reader.feed_data(framed(json.dumps(answer).encode()))

    def close(self) -> None:
        """Stay as it is."""


def framed(body: bytes) -> bytes:
    """Return a message with its header."""
    return b"Content-Length: %d\r\n\r\n%s" % (len(body), body)


class Client:
    """A client that knows the protocol and keeps to it as it likes."""

    def __init__(self, chance: random.Random, folder: Path, texts: list[str]) -> None:
        self._chance = chance
        self._texts = texts
        self._uris = [
            *(f"file://{folder}/{name}" for name in ("ds_config.json", "other.jsonc", "train.py", "README.md")),
            "untitled:Untitled-1", "git:/x/ds_config.json", "file:///", "", "\x00", "ds_config.json", "http://x/a.json",
        ]  # fmt: skip
        self._number = 0
        self.asked: list[object] = []
        """The ids of requests, as far as they have one that can be answered."""

    def first(self, folder: Path) -> bytes:
        """Return the beginning of a session."""
        known: Data = {}
        if self._chance.random() < 0.6:
            known = json.loads(self._chance.choice(CLIENTS).read_text(encoding="utf-8"))["capabilities"]
        params = {"processId": None, "rootUri": f"file://{folder}", "capabilities": known}
        if self._chance.random() < 0.3:
            params["initializationOptions"] = self._value()
        if self._chance.random() < 0.3:
            params["locale"] = self._chance.choice(("zh-cn", "en", "x", ""))
        return self._request("initialize", params) + self._notification("initialized", {})

    def message(self) -> bytes:
        """Return the next message."""
        what = self._chance.random()
        if what < 0.15:
            return self._opened()
        if what < 0.35:
            return self._changed()
        if what < 0.8:
            return self._request(self._chance.choice((*_METHODS, *_METHODS, *_OTHERS)), self._params())
        if what < 0.88:
            return self._command()
        if what < 0.93:
            return self._notification("$/cancelRequest", {"id": self._some_id()})
        if what < 0.97:
            return self._notification(self._chance.choice((*_METHODS, *_OTHERS)), self._params())
        return self._nonsense()

    def _send(self, message: object) -> bytes:
        return framed(json.dumps(message).encode())

    def _request(self, method: str, params: object) -> bytes:
        self._number += 1
        identity: object = self._number if self._chance.random() < 0.9 else f"r{self._number}"
        self.asked.append(identity)
        return self._send({"jsonrpc": "2.0", "id": identity, "method": method, "params": params})

    def _notification(self, method: str, params: object) -> bytes:
        return self._send({"jsonrpc": "2.0", "method": method, "params": params})

    def _some_id(self) -> object:
        recent = self.asked[-1] if self.asked else 1
        return self._chance.choice((recent, recent, self._number + 1, "none", 10**9))

    def _text(self) -> str:
        text = mutated(self._chance, self._chance.choice(self._texts), self._texts)
        if self._chance.random() < 0.03:
            text = text.replace("{", "{" + " " * 70_000, 1) if "{" in text else text * 100
        return text

    def _uri(self) -> str:
        return self._chance.choice(self._uris[:3]) if self._chance.random() < 0.85 else self._chance.choice(self._uris)

    def _opened(self) -> bytes:
        language = self._chance.choice(("json", "json", "jsonc", "python", "hjson", "plaintext", ""))
        item = {"uri": self._uri(), "languageId": language, "version": self._number, "text": self._text()}
        return self._notification("textDocument/didOpen", self._bent({"textDocument": item}))

    def _changed(self) -> bytes:
        changes: list[Data] = []
        for _ in range(self._chance.choice((1, 1, 2, 5))):
            text = self._chance.choice(("", "x", '"', "{", "}", "\n", self._chance.choice(ODD), self._text()[:50]))
            changes.append({"text": text} if self._chance.random() < 0.1 else {"range": self._range(), "text": text})
        document = {"uri": self._uri(), "version": self._chance.choice((self._number, -1, 0, 2**31 - 1))}
        return self._notification(
            "textDocument/didChange", self._bent({"textDocument": document, "contentChanges": changes})
        )

    def _position(self) -> Data:
        line = self._chance.choice((*range(12), *_ODD_NUMBERS)) if self._chance.random() < 0.9 else self._value()
        return {"line": line, "character": self._chance.choice((*range(40), *_ODD_NUMBERS))}

    def _range(self) -> Data:
        return {"start": self._position(), "end": self._position()}

    def _params(self) -> object:
        """Return the parameters that any method could have, all of them at once."""
        params: Data = {
            "textDocument": {"uri": self._uri()},
            "position": self._position(),
            "positions": [self._position() for _ in range(self._chance.randrange(3))],
            "range": self._range(),
            "context": {"diagnostics": [], "includeDeclaration": True, "only": self._chance.choice((None, [*_KINDS]))},
            "previousResultIds": [],
            "settings": self._chance.choice((None, {}, {"dsmigrate": {"worldSize": 8}}, self._value())),
            "event": {"added": [{"uri": self._uri(), "name": "x"}], "removed": [{"uri": self._uri(), "name": "x"}]},
            "changes": [{"uri": self._uri(), "type": 2}],
            "uri": self._uri(),
            "label": "stage",
            "title": "x",
            "data": self._chance.choice((None, self._action(), {"item": ["zero_optimization", "x"]}, self._value())),
            "value": "off",
            "token": self._number,
        }
        return self._bent(params)

    def _action(self) -> Data:
        names = ("fix", "fix-code", "fix-all", "suppress", "stage", "precision", "upgrade", "use-auto", "x")
        action = [self._chance.choice(names), *(self._chance.choice((0, 1, 99, "DS002", "cpu", 3)) for _ in range(3))]
        return {
            "uri": self._uri(),
            "at": self._chance.choice((0, 1, 50)),
            "action": action[: self._chance.randrange(1, 5)],
        }

    def _command(self) -> bytes:
        name = self._chance.choice([entry.name for entry in COMMANDS])
        ways = (
            self._uri, self._position, self._value, lambda: "zero_optimization.stage", lambda: "stage", lambda: "HEAD",
            lambda: {"name": "a.json", "text": self._text()}, lambda: False, lambda: "worldSize",
        )  # fmt: skip
        arguments = [self._chance.choice(ways)() for _ in range(self._chance.randrange(4))]
        params: Data = {"command": name, "arguments": arguments}
        return self._request("workspace/executeCommand", self._bent(params) if self._chance.random() < 0.2 else params)

    def _value(self) -> object:
        return self._chance.choice((*_ODD_VALUES, *_ODD_NUMBERS))

    def _bent(self, params: object) -> object:
        """Return parameters, one time in four with something in them replaced, left out or added."""
        if self._chance.random() > 0.25:
            return params
        made = json.loads(json.dumps(params))
        holder: Any = made
        while isinstance(holder, dict | list) and holder:
            keys = list(holder) if isinstance(holder, dict) else list(range(len(holder)))
            key = self._chance.choice(keys)
            inner = holder[key]
            if not isinstance(inner, dict | list) or not inner or self._chance.random() < 0.3:
                match self._chance.randrange(3):
                    case 0:
                        del holder[key]
                    case 1:
                        holder[key] = self._value()
                    case _ if isinstance(holder, dict):
                        holder["jsonrpc" if self._chance.random() < 0.1 else "more"] = self._value()
                break
            holder = inner
        return made if self._chance.random() < 0.95 else self._value()

    def _nonsense(self) -> bytes:
        """Return what is no message, or one that nobody has asked for."""
        bodies = (
            b"{", b"[]", b"null", b"5", b'"x"', b"{}", b'{"jsonrpc": "2.0"}',
            b'{"jsonrpc": "1.0", "id": 90001, "method": "x"}',
            b"\xff\xfe", b"[" * 5000, b'{"jsonrpc": "2.0", "id": 99999, "result": null}',
            b'{"jsonrpc": "2.0", "id": null, "method": "textDocument/hover"}',
            b'{"jsonrpc": "2.0", "id": 1.5, "method": 5}',
            b'{"jsonrpc": "2.0", "id": 90004, "method": ["x"]}', b'{"jsonrpc": "2.0", "error": 5, "id": "x"}',
            b'{"jsonrpc": "2.0", "id": [], "method": "textDocument/hover", "params": {}}',
            b'{"jsonrpc": "2.0", "method": "textDocument/hover", "params": [1, 2]}',
            b'[{"jsonrpc": "2.0", "method": "initialized", "params": {}}]',
        )  # fmt: skip
        if self._chance.random() < 0.05:
            return self._request("shutdown", None)
        if self._chance.random() < 0.2:
            headers = (b"X-Odd: 1\r\n", b"Content-Type: x\r\n", b"\r\n", b"Content-Length: -5\r\n", b"\xff\r\n")
            return self._chance.choice(headers)
        return framed(self._chance.choice(bodies))


def files(chance: random.Random, folder: Path) -> None:
    """Write what may lie beside the documents: ordinary files, and odd ones that nothing may wait for."""
    config = '{"train_batch_size": 8, "zero_optimization": {"stage": 2}}'
    (folder / "ds_config.json").write_text(config, encoding="utf-8")
    (folder / "train.py").write_text("import deepspeed\n", encoding="utf-8")
    for name in ("requirements.txt", "pyproject.toml", "dsmigrate.toml", "uv.lock", "more.json", "environment.yml"):
        match chance.randrange(8):
            case 0:
                os.mkfifo(folder / name)
            case 1:
                (folder / name).symlink_to("/dev/zero")
            case 2:
                text = chance.choice(("deepspeed==0.16.4\n", "[tool.dsmigrate]\nworld-size = 8\n", "\0"))
                (folder / name).write_text(text, encoding="utf-8")


async def _session(chance: random.Random, folder: Path, texts: list[str]) -> tuple[Client, list[Data]]:
    server, reader = Server(), asyncio.StreamReader(limit=1 << 26)
    writer = _Writer(chance, reader)
    server.protocol.set_writer(writer)
    client = Client(chance, folder, texts)
    serving = asyncio.create_task(
        run_async(threading.Event(), reader, server.protocol, None, server.report_server_error)
    )
    if chance.random() < 0.95:
        reader.feed_data(client.first(folder))
    for _ in range(MESSAGES):
        reader.feed_data(client.message())
        if chance.random() < 0.5:
            await asyncio.sleep(0)
    reader.feed_data(framed(json.dumps({"jsonrpc": "2.0", "id": LAST, "method": "shutdown"}).encode()))
    await writer.ended.wait()
    while others := asyncio.all_tasks() - {asyncio.current_task(), serving}:
        await asyncio.wait(others)
    reader.feed_eof()
    await serving
    if "session" in server.__dict__:
        server.session.aside.end()
    return client, writer.answers


@contextlib.contextmanager
def _quiet() -> Iterator[_Log]:
    """Keep what is logged, and leave out what a process does for itself alone."""
    log = _Log()
    root = logging.getLogger()
    level = logging.getLogger("pygls").level
    root.addHandler(log)
    logging.getLogger("pygls").setLevel(logging.CRITICAL)
    try:
        with mock.patch.object(gc, "freeze"), mock.patch.object(gc, "unfreeze"):
            yield log
    finally:
        root.removeHandler(log)
        logging.getLogger("pygls").setLevel(level)
        languages.use("en")
        toml.forget()
        evidence.forget()


def converse(chance: random.Random, folder: Path, texts: list[str]) -> int:
    """Hold a session; returns how many answers there were. Raises FailedError."""
    files(chance, folder)
    with _quiet() as log:
        client, answers = asyncio.run(_session(chance, folder, texts))
    if log.failures:
        raise FailedError(log.failures[0][-3000:])
    for answer in answers:
        if answer.get("error", {}).get("code") == _INTERNAL:
            raise FailedError(str(answer)[:2000])
    told = Counter(str(answer.get("id")) for answer in answers)
    odd = {identity: told[str(identity)] for identity in client.asked if told[str(identity)] != 1}
    if odd:
        raise FailedError(f"not one answer to each of {odd}")
    return len(answers)
