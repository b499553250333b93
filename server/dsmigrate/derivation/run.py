"""Runs the config code of one release in a child process and returns what it tells."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from dsmigrate.derivation.errors import DerivationError

SECONDS = 120
BOOT = (
    "import sys; sys.path.insert(0, sys.argv[1]); from pathlib import Path; "
    "from dsmigrate.derivation.child.main import main; main(Path(sys.argv[2]))"
)


def run_config_code(release: str, root: Path, seconds: float = SECONDS) -> dict[str, Any]:
    """Return ``keys`` and ``engine`` of the release unpacked at ``root`` (the folder that holds ``deepspeed``).

    Raises DerivationError when pydantic is missing, and when the code of the release fails or takes too long.
    """
    if importlib.util.find_spec("pydantic") is None:
        raise DerivationError("DeepSpeed's config code needs pydantic; install dsmigrate with the extra [derive]")
    package_root = Path(__file__).resolve().parents[2]
    command = [sys.executable, "-I", "-B", "-X", "utf8", "-c", BOOT, str(package_root), str(root.resolve())]
    try:
        child = subprocess.run(  # noqa: S603 - our own interpreter and code
            command, capture_output=True, timeout=seconds, check=False, env=_environment(), cwd=root
        )
    except subprocess.TimeoutExpired:
        raise DerivationError(f"DeepSpeed {release}: its config code took more than {seconds:g} seconds") from None
    if child.returncode:
        raise DerivationError(f"DeepSpeed {release}: {_reason(child.stderr.decode('utf-8', 'replace'))}")
    try:
        return dict(json.loads(child.stdout))
    except ValueError:
        raise DerivationError(f"DeepSpeed {release}: the child process wrote no JSON") from None


def _environment() -> dict[str, str]:
    """Return an environment without the user's Python, CUDA or proxy settings."""
    kept = ("PATH", "SYSTEMROOT", "TEMP", "TMP", "TMPDIR", "LANG")
    return {name: os.environ[name] for name in kept if name in os.environ} | {"PYTHONHASHSEED": "0"}


def _reason(stderr: str) -> str:
    lines = [line for line in stderr.splitlines() if line.strip()]
    return lines[-1] if lines else "the child process ended without a word"
