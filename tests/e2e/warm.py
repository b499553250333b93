"""Runs processes of `dsmigrate verify` without paying for ``import torch, deepspeed`` in each.

``python warm.py SOCKET`` imports the libraries once and forks a process for every client. ``python -SE warm.py SOCKET
SCRIPT ARGS`` is a client: it stands for ``python SCRIPT ARGS`` with its own environment, folder and output, passes on
the signals it gets, takes the other process along when it is killed, and ends with its exit code. The harness is loaded
in the forked process as Python would load it at its start. Imports nothing but the standard library and `runner`.
"""

from __future__ import annotations

import array
import atexit
import contextlib
import json
import os
import runpy
import selectors
import signal
import socket
import struct
import sys
from pathlib import Path
from typing import Any

FORWARDED = (signal.SIGINT, signal.SIGTERM, signal.SIGUSR1)
_LENGTH = struct.Struct("!Q")
_POLL_SECONDS = 0.02


def ask(path: str, arguments: list[str]) -> int:
    """Be a client; returns the exit code."""
    with socket.socket(socket.AF_UNIX) as server:
        server.connect(path)
        text = json.dumps({"argv": arguments, "cwd": str(Path.cwd()), "env": dict(os.environ)}).encode()
        descriptor = (socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [1]))
        server.sendmsg([_LENGTH.pack(len(text))], [descriptor])
        server.sendall(text)
        for number in FORWARDED:
            signal.signal(number, lambda number, _frame: server.sendall(bytes([number])))
        code = server.recv(4)
    number = struct.unpack("!i", code)[0] if len(code) == 4 else 1
    if number < 0:  # it was killed
        if -number != signal.SIGKILL:
            signal.signal(-number, signal.SIG_DFL)
        os.kill(os.getpid(), -number)
    return number


def serve(path: str) -> None:
    """Be the server until the standard input is closed."""
    import runner  # noqa: PLC0415 - beside this file

    runner.import_libraries("deepspeed")
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(path)
    listener.listen()
    print("ready", flush=True)
    children: dict[int, socket.socket] = {}
    with selectors.DefaultSelector() as waiting:
        waiting.register(listener, selectors.EVENT_READ)
        waiting.register(sys.stdin, selectors.EVENT_READ)
        while True:
            for key, _ in waiting.select(_POLL_SECONDS):
                if key.fileobj is sys.stdin:
                    for pid in children:
                        os.kill(pid, signal.SIGKILL)
                    return
                if key.fileobj is listener:
                    _begin(listener, waiting, children)
                else:
                    _pass_on(key.fileobj, waiting, children)
            _collect(waiting, children)


def _begin(listener: socket.socket, waiting: selectors.BaseSelector, children: dict[int, socket.socket]) -> None:
    client, _ = listener.accept()
    head, descriptors, _, _ = socket.recv_fds(client, _LENGTH.size, 1)
    text = b""
    while len(text) < _LENGTH.unpack(head)[0]:
        text += client.recv(1 << 16)
    pid = os.fork()
    if pid == 0:
        for other in (listener, client, *children.values()):
            other.close()
        _become(json.loads(text), descriptors[0])
    os.close(descriptors[0])
    children[pid] = client
    waiting.register(client, selectors.EVENT_READ)


def _pass_on(client: Any, waiting: selectors.BaseSelector, children: dict[int, socket.socket]) -> None:
    """Send the child the signals of its client; nothing to read means that the client is gone."""
    pid = next(pid for pid, one in children.items() if one is client)
    with contextlib.suppress(ConnectionError):
        numbers = client.recv(16)
        for number in numbers or (signal.SIGKILL,):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, number)
        if numbers:
            return
    waiting.unregister(client)


def _collect(waiting: selectors.BaseSelector, children: dict[int, socket.socket]) -> None:
    """Tell the clients of processes that have ended."""
    for pid in list(children):
        ended, status = os.waitpid(pid, os.WNOHANG)
        if ended:
            client = children.pop(pid)
            with contextlib.suppress(KeyError):
                waiting.unregister(client)
            with contextlib.suppress(OSError):
                client.sendall(struct.pack("!i", os.waitstatus_to_exitcode(status)))
            client.close()


def _become(job: dict[str, Any], output: int) -> None:
    """Turn this fork into the process that the client stands for; does not return."""
    os.setsid()
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(output, 1)
    os.dup2(output, 2)
    sys.stdin, sys.stdout, sys.stderr = os.fdopen(0), os.fdopen(1, "w", buffering=1), os.fdopen(2, "w", buffering=1)
    os.chdir(job["cwd"])
    os.environ.clear()
    os.environ.update(job["env"])
    sys.argv = job["argv"]
    paths = os.environ["PYTHONPATH"].split(os.pathsep)
    sys.path[:1] = [str(Path(sys.argv[0]).resolve().parent), *paths]
    runpy.run_path(str(Path(paths[0]) / "sitecustomize.py"))
    code: Any = 0
    try:
        runpy.run_path(str(Path(sys.argv[0]).resolve()), run_name="__main__")
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else int(end.code is not None)
    except BaseException:  # noqa: BLE001 - what the interpreter does with it
        sys.excepthook(*sys.exc_info())  # type: ignore[arg-type]
        code = 1
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


if __name__ == "__main__":
    if len(sys.argv) == 2:
        serve(sys.argv[1])
    else:
        sys.exit(ask(sys.argv[1], sys.argv[2:]))
