"""The npm packages of ``package.json``, kept in a cache outside of the repository.

``DSMIGRATE_NODE_MODULES`` names another folder for it.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

LIST = Path(__file__).with_name("package.json")
_INSTALL = ("install", "--no-package-lock", "--no-audit", "--no-fund", "--ignore-scripts", "--loglevel=error")


class NotInstallableError(Exception):
    """There is no Node.js, or npm cannot get the packages."""


def modules() -> Path:
    """Return the folder ``node_modules`` with the packages, installed once for each content of ``package.json``."""
    if shutil.which("node") is None or shutil.which("npm") is None:
        raise NotInstallableError("needs Node.js 20 or newer with npm")
    wanted = LIST.read_bytes()
    home = _cache() / hashlib.sha256(wanted).hexdigest()[:12]
    if not (home / "node_modules").is_dir():
        _install(wanted, home)
    return home / "node_modules"


def _cache() -> Path:
    named = os.environ.get("DSMIGRATE_NODE_MODULES")
    if named:
        return Path(named)
    return Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "dsmigrate" / "node"


def _install(wanted: bytes, home: Path) -> None:
    """Install beside ``home`` and move the whole in place: test processes may do this at the same time."""
    home.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=home.parent) as scratch:
        fresh = Path(scratch) / "fresh"
        fresh.mkdir()
        (fresh / "package.json").write_bytes(wanted)
        done = subprocess.run(["npm", *_INSTALL], cwd=fresh, capture_output=True, text=True, check=False)
        if done.returncode:
            raise NotInstallableError(f"npm install failed: {done.stderr[-500:]}")
        try:
            fresh.rename(home)
        except OSError:
            if not (home / "node_modules").is_dir():
                raise


def environment(folder: Path) -> dict[str, str]:
    """Return the environment of a script of ours that requires the packages."""
    return {**os.environ, "NODE_PATH": str(folder)}
