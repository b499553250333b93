"""Beginning and end of a session, folders, settings, and files that change on disk."""

from __future__ import annotations

import asyncio
import gc
import logging
from typing import TYPE_CHECKING

from lsprotocol import types
from pygls.exceptions import JsonRpcException

if TYPE_CHECKING:
    from dsmigrate.language_server.session import Session

logger = logging.getLogger(__name__)
WATCHED = (
    "**/{dsmigrate,pyproject}.toml",
    "**/{requirements*,constraints*}.txt",
    "**/{setup.py,setup.cfg,Pipfile.lock,uv.lock,poetry.lock,pdm.lock}",
    "**/environment*.{yml,yaml}",
    "**/{Dockerfile*,*.Dockerfile,*.dockerfile}",
    "**/*.{json,jsonc,hjson,yaml,yml}",
)
"""Files that decide about release and settings, and the configs themselves."""
_CONFIGS = (".json", ".jsonc", ".hjson", ".yaml", ".yml")


async def initialized(session: Session, _params: types.InitializedParams) -> None:
    """Ask for settings, watch files, and have everything in memory before the first question."""
    watch(session)
    await ask_for_settings(session)
    await warm_up()


def shutdown(session: Session, _params: object = None) -> None:
    """Let go of everything."""
    for document in session.documents:
        session.documents.close(document.uri)


async def configuration_changed(session: Session, params: types.DidChangeConfigurationParams) -> None:
    """Take new settings: those sent along, or those that the client answers when it is asked."""
    if params.settings:
        session.give(params.settings)
    if not await ask_for_settings(session):
        settings_changed(session)


async def folders_changed(session: Session, params: types.DidChangeWorkspaceFoldersParams) -> None:
    """Add and drop folders; each has settings of its own."""
    for folder in params.event.removed:
        session.client.folders.pop(folder.uri, None)
    for folder in params.event.added:
        session.client.folders[folder.uri] = folder.name
    if not await ask_for_settings(session):
        settings_changed(session)


def files_changed(session: Session, params: types.DidChangeWatchedFilesParams) -> None:
    """Read settings files and pins again when they changed, and look for configs anew."""
    session.files = None
    names = {change.uri.rpartition("/")[2] for change in params.changes}
    if any(not name.endswith(_CONFIGS) or name.startswith("environment") for name in names):
        from dsmigrate.checking import evidence  # noqa: PLC0415
        from dsmigrate.settings import toml  # noqa: PLC0415

        toml.forget()
        evidence.forget()
        settings_changed(session)


def settings_changed(session: Session) -> None:
    """Make everything anew that settings decide about, and have the client ask again."""
    from dsmigrate.language_server.features import diagnostics  # noqa: PLC0415 - it needs this module's neighbours

    session.reset()
    diagnostics.refresh(session)
    for kind in ("inlay_hint", "code_lens"):
        ask_again(session, kind)


def ask_again(session: Session, kind: str) -> None:
    """Have the client ask again for its ``inlay_hint`` or ``code_lens``, if it can be told to."""
    if session.client.can(f"workspace.{kind}.refresh_support"):
        session.server.protocol.send_request(f"workspace/{kind.replace('_h', 'H').replace('_l', 'L')}/refresh")


async def ask_for_settings(session: Session) -> bool:
    """Ask the client for its settings, for each folder; returns False when it cannot be asked."""
    if not session.client.can("workspace.configuration"):
        return False
    scopes = ["", *session.client.folders]
    items = [types.ConfigurationItem(scope_uri=scope or None, section="dsmigrate") for scope in scopes]
    try:
        answers = await session.server.workspace_configuration_async(types.ConfigurationParams(items=items))
    except JsonRpcException as error:
        logger.warning("the client does not tell its settings: %s", error)
        return False
    except Exception:
        logger.warning("the client does not tell its settings", exc_info=True)
        return False
    given = [session.give_for(scope, answer) for scope, answer in zip(scopes, answers or (), strict=False)]
    if any(given):
        settings_changed(session)
    return True


def watch(session: Session) -> None:
    """Have the client tell when files change that matter, where it can."""
    if not can_watch(session):
        return
    watchers = [types.FileSystemWatcher(glob_pattern=glob) for glob in WATCHED]
    options = types.DidChangeWatchedFilesRegistrationOptions(watchers=watchers)
    session.server.client_register_capability(
        types.RegistrationParams(
            registrations=[
                types.Registration(
                    id="dsmigrate-files", method=types.WORKSPACE_DID_CHANGE_WATCHED_FILES, register_options=options
                )
            ]
        )
    )


def can_watch(session: Session) -> bool:
    """Return whether the client tells of files that change."""
    return bool(session.client.can("workspace.did_change_watched_files.dynamic_registration"))


def view_text(session: Session, params: object) -> str | None:
    """Answer the text of an open document as the server has it, None for one that is not open."""
    document = session.documents.get(str(params.get("uri"))) if isinstance(params, dict) else None
    return None if document is None else document.text


async def warm_up() -> None:
    """Import every rule and read the facts that nearly every config needs, then what hover and completion need."""
    from dsmigrate.document import parse  # noqa: PLC0415
    from dsmigrate.editing.view import View  # noqa: PLC0415

    config = '{"train_micro_batch_size_per_gpu": 1, "zero_optimization": {"stage": 3}, "bf16": {"enabled": true}}'
    view = View(parse(config))
    view.findings  # noqa: B018 - made for what it leaves in memory
    await asyncio.sleep(0.05)  # a document that is opened meanwhile goes first
    from dsmigrate.editing.completion import complete  # noqa: PLC0415
    from dsmigrate.editing.hover import hover_at  # noqa: PLC0415
    from dsmigrate.language_server.features import actions, completion, reading  # noqa: F401, PLC0415

    for offset in (1, 3, config.index("stage"), config.index("3")):
        hover_at(view, offset)
        complete(view, offset, snippets=True)
    gc.collect()
    gc.freeze()
