"""``python -m dsmigrate.derivation``."""

from __future__ import annotations

from dsmigrate.derivation.cli import main

if __name__ == "__main__":
    main(prog_name="python -m dsmigrate.derivation")
