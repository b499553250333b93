"""The command ``dsmigrate``; ``--version`` answers before anything else is imported."""

from __future__ import annotations

import sys


def main() -> int:
    """Run the command line and return its exit code."""
    if sys.argv[1:] in (["--version"], ["-V"]):
        from dsmigrate import __version__  # noqa: PLC0415

        try:
            sys.stdout.write(f"dsmigrate {__version__}\n")
            sys.stdout.flush()
        except OSError as error:
            from dsmigrate.cli import streams  # noqa: PLC0415

            streams.give_up(sys.stdout, error)
            streams.flushed()
            return 2
        return 0
    from dsmigrate.cli.app import run  # noqa: PLC0415

    return run(sys.argv[1:])


if __name__ == "__main__":
    sys.exit(main())
