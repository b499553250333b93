"""A real git repository for a test, away from the settings of whoever runs it."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
DSMIGRATE = f'"{sys.executable}" -m dsmigrate'
NOWHERE = {
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_AUTHOR_NAME": "A",
    "GIT_AUTHOR_EMAIL": "a@example.org",
    "GIT_COMMITTER_NAME": "A",
    "GIT_COMMITTER_EMAIL": "a@example.org",
    "GIT_AUTHOR_DATE": "2024-01-01T00:00:00Z",
    "GIT_COMMITTER_DATE": "2024-01-01T00:00:00Z",
}


def environment() -> dict[str, str]:
    """Return what a child process needs to run git alone, and this dsmigrate."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("GIT_", "GITHUB_"))}
    return {**kept, **NOWHERE, "PYTHONPATH": str(ROOT / "server"), "PYTHONIOENCODING": "utf-8"}


@dataclass(frozen=True)
class Repository:
    """A folder with a repository on the branch ``main``."""

    folder: Path

    @classmethod
    def make(cls, folder: Path) -> Repository:
        """Make a repository in a folder that need not be there."""
        folder.mkdir(parents=True, exist_ok=True)
        made = cls(folder)
        made.git("init", "--quiet", "--initial-branch=main")
        return made

    def git(self, *arguments: str, check: bool = True, **variables: str) -> subprocess.CompletedProcess[str]:
        """Run git in the folder, with environment variables added."""
        command, around = ["git", "-C", str(self.folder), *arguments], {**environment(), **variables}
        ran = subprocess.run(command, capture_output=True, text=True, encoding="utf-8", check=False, env=around)
        assert not check or ran.returncode == 0, ran.stderr
        return ran

    def put(self, files: dict[str, str | None]) -> None:
        """Write files by their paths, or take away those that are None."""
        for name, text in files.items():
            path = self.folder / name
            if text is None:
                path.unlink()
            else:
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text, encoding="utf-8")

    def commit(self, files: dict[str, str | None], message: str = "change") -> str:
        """Write files, commit everything and return the id of the commit."""
        self.put(files)
        self.git("add", "--all")
        self.git("commit", "--quiet", "--allow-empty", "-m", message)
        return self.git("rev-parse", "HEAD").stdout.strip()

    def dsmigrate(self, *arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
        """Run ``dsmigrate`` as a process in the folder."""
        return subprocess.run(
            [sys.executable, "-m", "dsmigrate", *arguments],
            cwd=self.folder,
            capture_output=True,
            text=True,
            encoding="utf-8",
            check=False,
            env={**environment(), **variables},
        )
