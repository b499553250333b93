"""``python -m tests.benchmarks.feature_table NAME=COMMAND …``: what language servers say they can do, side by side.

Every cell comes from the server's own answer to ``initialize``, from a client that can do everything and registers
nothing later. The table of docs/language-server-peers.md is this one, with the versions it was made with.
"""

from __future__ import annotations

import json
import shlex
import sys
from typing import Any

from cattrs import Converter
from lsprotocol import converters
from pytest_lsp import client_capabilities

from tests.language_server.raw import RawClient

Data = dict[str, Any]
ROWS: tuple[tuple[str, str], ...] = (
    ("hover", "hoverProvider"),
    ("completion", "completionProvider"),
    ("documentation of completions on demand", "completionProvider.resolveProvider"),
    ("diagnostics when the client asks (pull)", "diagnosticProvider"),
    ("diagnostics of the whole workspace", "diagnosticProvider.workspaceDiagnostics"),
    ("code actions", "codeActionProvider"),
    ("edits of code actions on demand", "codeActionProvider.resolveProvider"),
    ("fix all (`source.fixAll`)", "codeActionProvider.codeActionKinds:source.fixAll"),
    ("inlay hints", "inlayHintProvider"),
    ("code lenses", "codeLensProvider"),
    ("outline", "documentSymbolProvider"),
    ("folding", "foldingRangeProvider"),
    ("growing selections", "selectionRangeProvider"),
    ("links", "documentLinkProvider"),
    ("definition", "definitionProvider"),
    ("references", "referencesProvider"),
    ("highlights", "documentHighlightProvider"),
    ("rename", "renameProvider"),
    ("formatting", "documentFormattingProvider"),
    ("semantic tokens", "semanticTokensProvider"),
    ("commands", "executeCommandProvider"),
    ("position encoding by negotiation", "positionEncoding"),
)


def main() -> None:
    """Print the table of the servers that the arguments name."""
    servers = dict(argument.split("=", 1) for argument in sys.argv[1:])
    found = {name: capabilities(shlex.split(command)) for name, command in servers.items()}
    print(f"| | {' | '.join(found)} |")
    print(f"|---|{'---|' * len(found)}")
    for title, path in ROWS:
        print(f"| {title} | {' | '.join('yes' if has(can, path) else '–' for can in found.values())} |")


def capabilities(command: list[str]) -> Data:
    """Return what a server answers to a client of today's VS Code that registers nothing later."""
    client = RawClient(tuple(command))
    try:
        return client.initialize(whole_client(), initializationOptions={"provideFormatter": True})
    finally:
        client.process.kill()


def whole_client() -> Data:
    """Return the capabilities of VS Code with what newer ones add, and no registration after the start."""
    converter: Converter = converters.get_converter()
    text = json.dumps(converter.unstructure(client_capabilities("visual-studio-code")))
    found: Data = json.loads(text.replace('"dynamicRegistration": true', '"dynamicRegistration": false'))
    found["textDocument"] |= {"diagnostic": {}, "inlayHint": {"resolveSupport": {"properties": []}}}
    found["workspace"] |= {"diagnostics": {"refreshSupport": True}}
    found["general"] = {**(found.get("general") or {}), "positionEncodings": ["utf-32", "utf-8", "utf-16"]}
    return found


def has(can: Data, path: str) -> bool:
    """Return whether a capability is there; behind a colon stands what a list must hold an entry of."""
    place, _, wanted = path.partition(":")
    found: Any = can
    for name in place.split("."):
        found = found.get(name) if isinstance(found, dict) else None
    if wanted:
        return isinstance(found, list) and any(str(entry).startswith(wanted) for entry in found)
    return bool(found) or found == {}


if __name__ == "__main__":
    main()
