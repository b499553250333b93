"""Python imports this at start-up of every process of a verified run: it starts the harness, and edits no script.

Another ``sitecustomize`` farther down the path (a distribution's, a tool's) is run as well, after it.
"""

from __future__ import annotations

import importlib.machinery
import importlib.util
import os
import sys
from pathlib import Path

_HERE = Path(__file__).resolve().parent
_NAME = "_dsmigrate_harness"


def _start_harness() -> None:
    package = _HERE.parent
    spec = importlib.util.spec_from_file_location(
        _NAME, package / "__init__.py", submodule_search_locations=[str(package)]
    )
    if spec is not None and spec.loader is not None:
        module = importlib.util.module_from_spec(spec)
        sys.modules[_NAME] = module
        spec.loader.exec_module(module)
        module.start()


def _run_the_other() -> None:
    elsewhere = [entry for entry in sys.path if Path(entry or ".").resolve() != _HERE]
    spec = importlib.machinery.PathFinder.find_spec("sitecustomize", elsewhere)
    if spec is not None and spec.loader is not None:
        spec.loader.exec_module(importlib.util.module_from_spec(spec))


if os.environ.get("DSMIGRATE_VERIFY_JOB") and _NAME not in sys.modules:
    _start_harness()
    _run_the_other()
