"""Reads configs as JSON lines and says what the config class of one older release makes of each.

The release's own config code runs; torch, and every module that is no config code, are stubs. numpy is itself where it
is installed. Arguments: the folder that holds ``dsmigrate``, and the folder that holds ``deepspeed`` of the release.
"""

from __future__ import annotations

import contextlib
import faulthandler
import json
import logging
import os
import sys
import warnings
from pathlib import Path

SECONDS = 5
"""What a config may take; 2 to the power of a planted 10**20 takes for ever, and the process ends."""


def main() -> None:
    """Judge ``{"config": …, "worlds": […]}`` on standard input, one answer a line; end at one that takes too long."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # the release's own talk
    warnings.filterwarnings("ignore")
    logging.disable(logging.CRITICAL)
    sys.path.insert(0, sys.argv[1])
    with contextlib.suppress(ImportError):
        import numpy  # noqa: F401, ICN001, PLC0415 - elastic batch sizes are computed with it; later it would be a stub
    from dsmigrate.derivation.child.importer import install  # noqa: PLC0415 - from the folder given
    from dsmigrate.derivation.child.main import refuse  # noqa: PLC0415

    install(Path(sys.argv[2]))
    import deepspeed.runtime.config as runtime  # noqa: PLC0415 - the release's own

    runtime.dist.get_rank = lambda *_, **__: 0
    sys.addaudithook(refuse)
    for line in sys.stdin:
        asked = json.loads(line)
        error = ""
        faulthandler.dump_traceback_later(SECONDS, exit=True)
        for world in asked["worlds"]:
            runtime.dist.get_world_size = lambda *_, world=world, **__: world
            try:
                runtime.DeepSpeedConfig(json.loads(line)["config"])
                error = ""
                break
            except Exception as problem:  # noqa: BLE001 - the answer is whatever the release says
                error = error or f"{type(problem).__name__}: {' '.join(str(problem).split())[:600]}"
        answers.write(json.dumps({"verdict": "config" if error else "accepted", "error": error}) + "\n")
        answers.flush()
    os._exit(0)


if __name__ == "__main__":
    main()
