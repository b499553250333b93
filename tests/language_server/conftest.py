"""Real sessions: the server as its own process, and pytest-lsp as the client, with what editors can do.

pytest-lsp brings what VS Code, Neovim and Emacs could do some years ago. ``clients`` has what VS Code can do today, as
vscode-languageclient 11.0 works it out (``computeClientCapabilities`` of its ``LanguageClient``).
"""

from __future__ import annotations

import json
import sys
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
import pytest_lsp
from lsprotocol import types
from pygls.protocol import default_converter
from pytest_lsp import ClientServerConfig, LanguageClient, client_capabilities

from tests.language_server.talk import listen

CLIENTS = Path(__file__).parent / "clients"
EDITORS = {
    "visual_studio_code_v1.139.0": "Visual Studio Code",
    "visual-studio-code": "Visual Studio Code",
    "neovim": "Neovim",
    "emacs": "Emacs",
}
NEWEST = next(iter(EDITORS))
AGREED = (
    types.CLIENT_REGISTER_CAPABILITY,
    types.WORKSPACE_CODE_LENS_REFRESH,
    types.WORKSPACE_INLAY_HINT_REFRESH,
)
"""Requests of the server that need no more than a yes."""
SERVER = [sys.executable, "-m", "dsmigrate.language_server.main", "--log-level", "error"]


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Return a folder that the client has open."""
    return tmp_path_factory.mktemp("workspace")


def capabilities_of(editor: str) -> types.ClientCapabilities:
    """Return what an editor can do, by the name of a file in ``clients``, or else as pytest-lsp knows it."""
    file = CLIENTS / f"{editor}.json"
    if not file.exists():
        return client_capabilities(editor)
    found = json.loads(file.read_text(encoding="utf-8"))["capabilities"]
    return default_converter().structure(found, types.ClientCapabilities)


@pytest_lsp.fixture(
    config=ClientServerConfig(server_command=SERVER),
    params=[NEWEST, *(pytest.param(name, marks=pytest.mark.broad) for name in EDITORS if name != NEWEST)],
    scope="module",
    loop_scope="module",
)
async def client(lsp_client: LanguageClient, request: pytest.FixtureRequest, workspace: Path) -> AsyncIterator[None]:
    """A session with the capabilities of an editor; its name is that of the editor."""
    capabilities = capabilities_of(request.param)
    for method in AGREED:
        lsp_client.feature(method)(lambda _params: None)
    agreed = await lsp_client.initialize_session(
        types.InitializeParams(
            capabilities=capabilities,
            client_info=types.ClientInfo(name=EDITORS[request.param]),
            workspace_folders=[types.WorkspaceFolder(uri=workspace.as_uri(), name="workspace")],
        )
    )
    listen(lsp_client, EDITORS[request.param], capabilities, agreed)
    yield
    await lsp_client.shutdown_session()
