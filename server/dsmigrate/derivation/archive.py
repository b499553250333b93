"""Taking ``setup.py``, ``deepspeed/**/*.py`` and the C++ of ``csrc`` out of a source archive into a given folder."""

from __future__ import annotations

import io
import shutil
import tarfile
import tempfile
from pathlib import Path, PurePosixPath

from dsmigrate.derivation.errors import DerivationError

PACKAGE = "deepspeed"
NATIVE = "csrc"
SETUP = "setup.py"
_TAKEN = {SETUP: {".py"}, PACKAGE: {".py"}, NATIVE: {".cpp", ".h", ".cu", ".cuh"}}
LARGEST_FILE = 8 * 1024 * 1024
LARGEST_TOTAL = 200 * 1024 * 1024


def extract(data: bytes, target: Path, version: str) -> None:
    """Write the package's Python and C++ files below ``target``, all or nothing.

    Only regular files named ``<anything>/deepspeed/….py``, ``<anything>/csrc/….cpp`` (``.h``, ``.cu``) and
    ``<anything>/setup.py`` are taken; a name that climbs out of the archive, a link in
    such a place or a file of absurd size raises DerivationError, and leaves nothing behind.
    """
    target.parent.mkdir(parents=True, exist_ok=True)
    staging = Path(tempfile.mkdtemp(prefix=f"{target.name}.", dir=target.parent))
    try:
        try:
            _write(data, staging, version)
        except (tarfile.TarError, EOFError, OSError) as error:
            raise DerivationError(f"DeepSpeed {version}: its source archive cannot be read: {error}") from error
        if target.exists():
            shutil.rmtree(target)
        staging.rename(target)
    finally:
        shutil.rmtree(staging, ignore_errors=True)


def _write(data: bytes, folder: Path, version: str) -> None:
    total = 0
    with tarfile.open(fileobj=io.BytesIO(data), mode="r:gz") as archive:
        for member in archive:
            place = wanted(member.name, version)
            if place is None or member.isdir():
                continue
            content = archive.extractfile(member) if member.isreg() else None
            if content is None:
                raise DerivationError(f"DeepSpeed {version}: {member.name} of the archive is not a regular file")
            total += member.size
            if member.size > LARGEST_FILE or total > LARGEST_TOTAL:
                raise DerivationError(f"DeepSpeed {version}: {member.name} of the archive is too large")
            path = folder.joinpath(*place.parts)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content.read())
    if not (folder / PACKAGE / "__init__.py").is_file():
        raise DerivationError(f"DeepSpeed {version}: the source archive holds no {PACKAGE}/__init__.py")


def wanted(name: str, version: str) -> PurePosixPath | None:
    """Return where a member goes, relative to the target, or None when it is not taken.

    Raises DerivationError for a name that is absolute or climbs.
    """
    path = PurePosixPath(name)
    if path.is_absolute() or ".." in path.parts or "\\" in name or ":" in name:
        raise DerivationError(f"DeepSpeed {version}: the archive holds the unsafe name {name!r}")
    inside = path.parts[1:]
    if not inside or path.suffix not in _TAKEN.get(inside[0], ()):
        return None
    return PurePosixPath(*inside)
