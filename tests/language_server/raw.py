"""A client that speaks the protocol by hand, so that it can also say what no well-behaved client would."""

from __future__ import annotations

import json
import os
import queue
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.support.events import PATIENCE, until

Data = dict[str, Any]
COMMAND = (sys.executable, "-m", "dsmigrate.language_server.main", "--log-level", "error")


class RawClient:
    """One server process, and what it says."""

    def __init__(self, command: tuple[str, ...] = COMMAND, log: Path | None = None) -> None:
        """Start the server; its log goes to a file, or nowhere."""
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
        self._log = log.open("ab") if log is not None else None
        self.process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log or subprocess.DEVNULL,
            env=environment,
        )
        assert self.process.stdin is not None
        self.input = self.process.stdin
        self.notes: list[Data] = []
        self.asked: list[Data] = []
        """Requests of the server, each of which is answered with null."""
        self._answers: queue.Queue[Data | None] = queue.Queue()
        self._number = 0
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        out = self.process.stdout
        assert out is not None
        while True:
            length = 0
            while line := out.readline().strip():
                if line.lower().startswith(b"content-length:"):
                    length = int(line.split(b":")[1])
            if not length:
                self._answers.put(None)
                return
            message = json.loads(out.read(length))
            if "method" in message and "id" in message:
                self.asked.append(message)
                self.send({"jsonrpc": "2.0", "id": message["id"], "result": None})
            elif "method" in message:
                self.notes.append(message)
            else:
                self._answers.put(message)

    def send(self, message: object) -> None:
        """Send a message."""
        self.raw(json.dumps(message).encode())

    def raw(self, body: bytes) -> None:
        """Send bytes as the body of a message."""
        self.input.write(b"Content-Length: %d\r\n\r\n%s" % (len(body), body))
        self.input.flush()

    def notify(self, method: str, params: object = None) -> None:
        """Send a notification."""
        self.send({"jsonrpc": "2.0", "method": method, "params": params})

    def ask(self, method: str, params: object = None) -> Data:
        """Send a request and return the whole answer to it."""
        return self.answer(self.begin(method, params))

    def begin(self, method: str, params: object = None) -> int:
        """Send a request and return its number."""
        self._number += 1
        self.send({"jsonrpc": "2.0", "id": self._number, "method": method, "params": params})
        return self._number

    def answer(self, number: int) -> Data:
        """Return the whole answer to a request, without those to others that come before."""
        while (answer := self._answers.get(timeout=PATIENCE)) is not None:
            if answer.get("id") == number:
                return answer
        raise AssertionError(f"the server ended instead of answering request {number}")

    def next_answer(self) -> Data:
        """Return the answer that comes next, to whatever request."""
        answer = self._answers.get(timeout=PATIENCE)
        assert answer is not None, "the server ended"
        return answer

    def answers(self, *numbers: int) -> list[Data]:
        """Return the answers to some requests, in the order in which they come."""
        found: list[Data] = []
        while len(found) < len(numbers):
            answer = self.next_answer()
            found += [answer] if answer["id"] in numbers else []
        return found

    def wait_for(self, happened: Callable[[], bool]) -> None:
        """Wait until something has happened."""
        until(happened)

    def initialize(self, capabilities: Data | None = None, **more: object) -> Data:
        """Begin a session; returns what the server can do."""
        answer = self.ask(
            "initialize", {"processId": None, "rootUri": None, "capabilities": capabilities or {}, **more}
        )
        self.notify("initialized", {})
        found: Data = answer["result"]["capabilities"]
        return found

    def open(self, uri: str, text: str, language: str = "json") -> None:
        """Open a document."""
        item = {"uri": uri, "languageId": language, "version": 1, "text": text}
        self.notify("textDocument/didOpen", {"textDocument": item})

    def change(self, uri: str, version: int, changes: list[Data]) -> None:
        """Change a document."""
        params = {"textDocument": {"uri": uri, "version": version}, "contentChanges": changes}
        self.notify("textDocument/didChange", params)

    def text(self, uri: str) -> str | None:
        """Return a document as the server has it."""
        answer = self.ask("dsmigrate/viewFileText", {"uri": uri})
        found: str | None = answer["result"]
        return found

    def memory(self) -> float:
        """Return what the server has in memory, in MiB."""
        pages = int(Path(f"/proc/{self.process.pid}/statm").read_text(encoding="ascii").split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE") / (1 << 20)

    def finish(self) -> int:
        """Say goodbye and return the exit code."""
        self.ask("shutdown")
        self.notify("exit")
        return self.end()

    def end(self) -> int:
        """Hang up and return the exit code."""
        self.input.close()
        code = self.process.wait(timeout=PATIENCE)
        if self._log is not None:
            self._log.close()
        return code
