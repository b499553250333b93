"""The command line of the server: ``deepspeed-language-server`` and ``dsmigrate server``."""

from __future__ import annotations

import argparse
import gc
import logging
import sys
from collections.abc import Sequence
from typing import NoReturn

from dsmigrate import __version__

_LEVELS = ("debug", "info", "warning", "error")
_COLLECT_AFTER = 20_000
"""Objects between two collections: a check makes some thousand that go at once, and a pause is felt while typing."""
_TURN = 0.001
"""Seconds after which the thread that works on a long document lets the others on."""
_HOST = "127.0.0.1"


def parser(program: str) -> argparse.ArgumentParser:
    """Return what understands the arguments."""
    made = argparse.ArgumentParser(
        prog=program,
        description="Language server for DeepSpeed's ds_config.json and for training scripts that use it.",
    )
    made.add_argument("--version", action="version", version=f"dsmigrate {__version__}")
    way = made.add_mutually_exclusive_group()
    way.add_argument("--stdio", action="store_true", help="speak on standard input and output (the default)")
    way.add_argument("--tcp", action="store_true", help="wait for one client on a TCP port, for debugging")
    way.add_argument("--ws", action="store_true", help="wait for one client on a WebSocket, for debugging")
    made.add_argument("--host", default=_HOST, help=f"address to listen on (default {_HOST}: this machine alone)")
    made.add_argument("--port", type=_port, default=2087, help="port to listen on (default 2087)")
    made.add_argument("--log-level", choices=_LEVELS, default="warning", help="what goes to the log (default warning)")
    made.add_argument("--log-file", metavar="FILE", help="where the log goes (default: standard error)")
    made.add_argument("--clientProcessId", type=int, help=argparse.SUPPRESS)  # VS Code's client adds it
    return made


def main(arguments: Sequence[str] | None = None, program: str = "deepspeed-language-server") -> NoReturn:
    """Serve until the client leaves; exits with 0, or 1 when it left without saying goodbye."""
    asked = parser(program).parse_args(arguments)
    try:
        _log(asked.log_level, asked.log_file)
    except OSError as error:
        sys.stderr.write(f"{program}: {asked.log_file}: {error.strerror}\n")
        sys.exit(2)
    gc.disable()  # nothing that the imports make is garbage
    from dsmigrate.language_server.server import Server  # noqa: PLC0415 - after --help and --version

    server = Server()
    gc.set_threshold(_COLLECT_AFTER, 10, 10)
    gc.enable()
    sys.setswitchinterval(_TURN)
    if asked.tcp or asked.ws:
        start = server.start_tcp if asked.tcp else server.start_ws
        try:
            start(asked.host, asked.port)
        except OSError as error:
            sys.stderr.write(f"{program}: {asked.host}:{asked.port}: {error.strerror or error}\n")
            sys.exit(2)
    else:
        server.start_io()
    sys.exit(0 if server.protocol.said_goodbye else 1)


def _port(text: str) -> int:
    port = int(text)
    if not 0 <= port <= 65535:
        raise ValueError(text)
    return port


def _log(level: str, file: str | None) -> None:
    """Send the log to a file or to standard error; standard output belongs to the protocol."""
    handler: logging.Handler = logging.FileHandler(file, encoding="utf-8") if file else logging.StreamHandler()
    handler.addFilter(Once())
    logging.basicConfig(
        level=level.upper(), handlers=[handler], format="%(asctime)s %(levelname)s %(name)s: %(message)s"
    )
    if level != "debug":
        logging.getLogger("pygls").setLevel(logging.CRITICAL)  # guard.py says it with context


class Once(logging.Filter):
    """Lets a traceback through once; when it comes again, its first line alone."""

    def __init__(self) -> None:
        super().__init__()
        self._seen: set[str] = set()

    def filter(self, record: logging.LogRecord) -> bool:
        """Return True, with the traceback taken out where it was logged before."""
        if record.exc_info and record.exc_info[2] is not None:
            where = record.exc_info[2]
            while where.tb_next is not None:
                where = where.tb_next
            key = f"{record.exc_info[0]}{where.tb_frame.f_code.co_filename}{where.tb_lineno}"
            if key in self._seen:
                record.exc_info, record.exc_text = None, None
                record.msg = f"{record.getMessage()} (again)"
                record.args = ()
            self._seen.add(key)
        return True


if __name__ == "__main__":
    main()
