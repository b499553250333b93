"""What the client can do, and what it has open as folders."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from lsprotocol import types


class Client:
    """The client of a session; everything is off until ``initialize`` tells."""

    def __init__(self) -> None:
        self.name = ""
        self.options: Any = None
        self.locale: str | None = None
        """The language of the editor: "zh-cn", "en-US"."""
        self.folders: dict[str, str] = {}
        self._capabilities = types.ClientCapabilities()

    def introduce(self, params: types.InitializeParams) -> None:
        """Take what the client says of itself."""
        self.name = params.client_info.name if params.client_info is not None else ""
        self.options = params.initialization_options
        self.locale = params.locale
        self._capabilities = params.capabilities
        folders: Sequence[types.WorkspaceFolder] = params.workspace_folders or ()
        self.folders = {folder.uri: folder.name for folder in folders}
        if not self.folders and params.root_uri:
            self.folders[params.root_uri] = ""

    def can(self, path: str) -> Any:  # noqa: ANN401 - a switch, a list of names, or an object of them
        """Return a capability by its path (``text_document.hover.content_format``), None where it is not there."""
        found: Any = self._capabilities
        for name in path.split("."):
            found = getattr(found, name, None)
            if found is None:
                return None
        return found

    def option(self, name: str) -> object:
        """Return one of the options that the client gave when it introduced itself, None where there is none."""
        return self.options.get(name) if isinstance(self.options, dict) else None

    @property
    def pulls_diagnostics(self) -> bool:
        """Whether it asks for diagnostics itself, so that none are sent unasked."""
        return self.can("text_document.diagnostic") is not None

    @property
    def is_vs_code(self) -> bool:
        """Whether it is VS Code or one of its kin, which check JSON themselves."""
        name = self.name.lower()
        return any(word in name for word in ("visual studio code", "code - oss", "vscod", "code-server", "cursor"))

    def folder_of(self, uri: str) -> str:
        """Return the innermost workspace folder that an address lies in, "" for none."""
        inside = [folder for folder in self.folders if uri == folder or uri.startswith(folder.rstrip("/") + "/")]
        return max(inside, key=len, default="")
