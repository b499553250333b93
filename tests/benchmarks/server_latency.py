"""``python -m tests.benchmarks.server_latency CONFIG``: the language server beside a bare pygls server and VS Code's.

Prints medians and 95th and 99th percentiles in milliseconds, over rounds in turn: start (process to answer of
``initialize``), a change with its diagnostics, hover, completion; memory in MiB after the start; and ratios. VS Code's
JSON server, from npm, has our own JSON Schema. All three are asked for diagnostics, as VS Code does.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from tests.language_server.raw import COMMAND, RawClient
from tests.schemas.servers.installed import NotInstallableError, modules

Data = dict[str, Any]
Samples = dict[str, list[float]]
SCHEMA = Path(__file__).parents[2] / "schemas" / "deepspeed" / "deepspeed-config.schema.json"
BARE = (sys.executable, "-m", "tests.benchmarks.bare_server")
METRICS = ("start", "change", "hover", "completion")


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("config", type=Path)
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--samples", type=int, default=40, help="of each request in a round")
    asked = parser.parse_args()
    text = asked.config.read_text(encoding="utf-8")
    servers = {"dsmigrate": COMMAND, "bare pygls": BARE}
    try:
        servers["vscode-json"] = (str(modules() / ".bin" / "vscode-json-language-server"), "--stdio")
    except NotInstallableError as error:
        print(f"without VS Code's JSON server: {error}")
    found: dict[str, Samples] = {name: defaultdict(list) for name in servers}
    for number in range(asked.rounds):
        for name in list(servers) if number % 2 else reversed(servers):
            for metric, value in session(servers[name], text, asked.samples):
                found[name][metric].append(value)
    print(f"{asked.config.name}: {text.count(chr(10)) + 1} lines, {asked.rounds} rounds of {asked.samples}")
    for name, samples in found.items():
        times = "  ".join(f"{metric} {shown(samples[metric])}" for metric in METRICS)
        print(f"{name:12} {times}  memory {statistics.median(samples['memory']):.1f}")
    for metric in METRICS:
        own = statistics.median(found["dsmigrate"][metric])
        others = {name: statistics.median(samples[metric]) for name, samples in found.items() if name != "dsmigrate"}
        print(f"{metric}: " + ", ".join(f"{own / other:.2f} x {name}" for name, other in others.items()))


def shown(samples: list[float]) -> str:
    """Return median, 95th and 99th percentile."""
    cuts = statistics.quantiles(samples, n=100, method="inclusive")
    return f"{cuts[49]:.2f}/{cuts[94]:.2f}/{cuts[98]:.2f}"


def session(command: tuple[str, ...], text: str, samples: int) -> Iterator[tuple[str, float]]:
    """Yield what one session gives: metric and value."""
    began = time.perf_counter()
    client = RawClient(command)
    client.initialize({"textDocument": {"diagnostic": {"dynamicRegistration": False}}})
    yield "start", (time.perf_counter() - began) * 1000
    schemas = [{"fileMatch": ["*.json"], "url": "ours://schema", "schema": json.loads(SCHEMA.read_text("utf-8"))}]
    client.notify("workspace/didChangeConfiguration", {"settings": {"json": {"schemas": schemas}}})
    uri = "file:///benchmark/ds_config.json"
    client.open(uri, text)
    identifier = {"textDocument": {"uri": uri}}
    client.ask("textDocument/diagnostic", identifier)
    time.sleep(1)  # whatever a server does after it has answered
    yield "memory", client.memory()
    lines = text.split("\n")
    keys = [(number, line.index('"') + 2) for number, line in enumerate(lines) if '":' in line]
    version = 1

    def change() -> None:
        nonlocal version
        version += 1
        span = {"start": {"line": 0, "character": 1}, "end": {"line": 0, "character": 1 + (version % 2)}}
        client.change(uri, version, [{"range": span, "text": "" if version % 2 else " "}])
        client.ask("textDocument/diagnostic", identifier)

    asks: dict[str, Callable[[int], object]] = {
        "change": lambda _: change(),
        "hover": lambda number: client.ask("textDocument/hover", at(identifier, keys[number % len(keys)])),
        "completion": lambda number: client.ask("textDocument/completion", at(identifier, keys[number % len(keys)])),
    }
    for metric, ask in asks.items():
        for number in range(3):
            ask(number)
        for number in range(samples):
            start = time.perf_counter()
            ask(number * 7)
            yield metric, (time.perf_counter() - start) * 1000
    client.process.kill()
    client.process.wait()


def at(identifier: Data, place: tuple[int, int]) -> Data:
    """Return the parameters of a request at a place."""
    return {**identifier, "position": {"line": place[0], "character": place[1]}}


if __name__ == "__main__":
    main()
