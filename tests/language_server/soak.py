"""Random edits of open documents, with the text kept on this side as well."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

from tests.language_server.raw import RawClient

Data = dict[str, Any]
PIECES = (
    *(
        '"',
        "{",
        "}",
        "[",
        "]",
        ",",
        ":",
        "\n",
        "\r\n",
        "\r",
        " ",
        "  ",
        "\t",
        "// x",
        "# x",
        "/*",
        "*/",
        "'",
        "\\",
        "\\u12",
    ),
    *("1", "5e8", "-", "true", "null", "auto", "NaN", "😀", "é", "\u2028", "\ufeff", "𝔘𝔫𝔦", "\x00", "\x85"),
    *('"zero_optimization": {"stage": 3}', '"train_batch_size": 8,', '"fp16": {', '"optimizer": {"type": "AdamW"}'),
)
CONFIG = '{\n  "train_batch_size": 8,\n  "zero_optimization": {\n    "stage": 2,\n    "overlap_comm": true\n  }\n}\n'
UNITS: dict[str, Callable[[str], int]] = {
    "utf-8": lambda text: len(text.encode("utf-8", "surrogatepass")),
    "utf-16": lambda text: len(text.encode("utf-16-le", "surrogatepass")) // 2,
    "utf-32": len,
}


class Document:
    """The client's copy of a text, and random changes of it."""

    def __init__(self, uri: str, chance: random.Random, encoding: str) -> None:
        self.uri, self.chance, self.encoding = uri, chance, encoding
        self.text = CONFIG
        self.version = 1

    def changes(self) -> list[Data]:
        """Change the text in one to four places, each after the other, and return the changes for the protocol."""
        return [self._change() for _ in range(self.chance.choice((1, 1, 1, 2, 4)))]

    def _change(self) -> Data:
        chance = self.chance
        self.version += 1
        kind = chance.random()
        if kind < 0.01 or len(self.text) > 4000:
            self.text = chance.choice((CONFIG, "", CONFIG.replace("\n", "\r\n"), CONFIG.replace("\n", "\r")))
            return {"text": self.text}
        start = chance.randint(0, len(self.text))
        end = start if kind < 0.6 else min(len(self.text), start + chance.randint(1, 30))
        start, end = self._whole(start), self._whole(end)
        new = "" if kind > 0.8 else "".join(chance.choices(PIECES, k=chance.randint(1, 3)))
        span = {"start": self._position(start), "end": self._position(end)}
        if chance.random() < 0.02:  # beyond the end of a line, or of the text: the end is meant
            line_end = min((place for place in (self.text.find("\n", end), self.text.find("\r", end)) if place >= 0),
                           default=len(self.text))  # fmt: skip
            end = line_end
            span["end"] = {"line": self._position(end)["line"], "character": 100_000}
        self.text = self.text[:start] + new + self.text[end:]
        return {"range": span, "text": new}

    def _whole(self, offset: int) -> int:
        """Return an offset that is not between a carriage return and its line feed, where no position lies."""
        return offset + (self.text[offset - 1 : offset + 1] == "\r\n")

    def _position(self, offset: int) -> Data:
        before = self.text[:offset].replace("\r\n", "\n").replace("\r", "\n")
        return {"line": before.count("\n"), "character": UNITS[self.encoding](before.rpartition("\n")[2])}


def session(edits: int, seed: int, encoding: str, requests: int = 50) -> tuple[int, list[float]]:
    """Make random edits in one session, with requests in between, and compare the texts.

    Returns how many edits were made, and the memory in MiB after each tenth of them. Raises AssertionError where server
    and client disagree, or an answer is an error.
    """
    chance = random.Random(seed)  # noqa: S311 - nothing here is secret
    client = RawClient()
    client.initialize({"general": {"positionEncodings": [encoding]}, "textDocument": {"diagnostic": {}}})
    documents = [Document(f"file:///soak/ds_config_{number}.json", chance, encoding) for number in range(3)]
    for document in documents:
        client.open(document.uri, document.text)
    made = 0
    memory: list[float] = []
    while made < edits:
        document = chance.choice(documents)
        changes = document.changes()
        client.change(document.uri, document.version, changes)
        made += len(changes)
        if chance.randrange(requests) == 0:
            _look(client, document, chance)
        if made >= edits * (len(memory) + 1) // 10:
            client.text(document.uri)  # behind its answer all edits so far are made
            memory.append(client.memory())
    for document in documents:
        assert client.text(document.uri) == document.text
    assert client.finish() == 0
    return made, memory


def _look(client: RawClient, document: Document, chance: random.Random) -> None:
    assert client.text(document.uri) == document.text, f"the texts differ at version {document.version}"
    where = {"line": chance.randint(0, 60), "character": chance.randint(0, 200)}
    asked = {"textDocument": {"uri": document.uri}, "position": where}
    span = {"start": where, "end": where}
    for method, params in (
        ("textDocument/hover", asked),
        ("textDocument/completion", asked),
        ("textDocument/diagnostic", asked),
        ("textDocument/codeAction", {**asked, "range": span, "context": {"diagnostics": []}}),
        ("textDocument/documentSymbol", asked),
        ("textDocument/foldingRange", asked),
        ("textDocument/inlayHint", {**asked, "range": {"start": {"line": 0, "character": 0}, "end": where}}),
        ("textDocument/codeLens", asked),
        ("textDocument/selectionRange", {**asked, "positions": [where]}),
        ("textDocument/documentLink", asked),
        ("textDocument/definition", asked),
        ("textDocument/references", {**asked, "context": {"includeDeclaration": True}}),
    ):
        answer = client.ask(method, params)
        assert "error" not in answer, (method, answer["error"], document.text)
