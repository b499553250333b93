from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.e2e.launching import torch_python

from .servers import installed


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "deepspeed: asks the real DeepSpeed; needs torch and deepspeed")


@pytest.fixture(scope="session")
def deepspeed() -> None:
    """Skip where there is no DeepSpeed to ask."""
    found = "import importlib.util, sys; sys.exit(importlib.util.find_spec('deepspeed') is None)"
    if subprocess.run([torch_python(), "-c", found], check=False).returncode:
        pytest.skip("DSMIGRATE_TORCH_PYTHON names no interpreter with torch and deepspeed")


@pytest.fixture(scope="session")
def node_modules() -> Path:
    """Where the packages of ``servers/package.json`` are, which are installed when they are missing."""
    try:
        return installed.modules()
    except installed.NotInstallableError as error:
        pytest.skip(str(error))
