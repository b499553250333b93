"""How much of real configs other forms carry, and whether it comes back as it was.

    python -m tests.benchmarks.round_trips FOLDER [--wrong]

``FOLDER``, else ``DSMIGRATE_CORPUS``, holds configs. For each form: configs that went there and back, those of which
everything that was carried came back the same, those of which everything was carried, and the share of keys that was.
``--wrong`` lists what came back as something else. The command exits with 1 when there is any.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence

from dsmigrate.convert.model import ConvertError, Form
from tests.convert.configs import Config, real
from tests.convert.round_trip import trip

WAYS = (
    (Form.ACCELERATE, "fields"),
    (Form.PLUGIN, "fields"),
    (Form.PLUGIN, "whole"),
    (Form.DICT, "auto"),
    (Form.TRANSFORMERS, "auto"),
)


def measure(form: Form, carrying: str, configs: Sequence[tuple[str, Config]]) -> tuple[str, list[str]]:
    """Return the line of a form, and what came back as something else."""
    done = same = whole = keys = kept = 0
    wrong: list[str] = []
    for name, config in configs:
        try:
            found = trip(config, form, carrying)
        except ConvertError as error:
            wrong += [f"{name}: {error.message}"] if "please report" in error.message else []
            continue
        differences = found.differences()
        wrong += [f"{name}: {one}" for one in differences]
        done, same, whole = done + 1, same + (not differences), whole + (found.keys == found.kept)
        keys, kept = keys + found.keys, kept + found.kept
    share = 100 * kept / max(keys, 1)
    title = f"{form.value} ({carrying})"
    return f"{title:24}{done:8}{same:8}{whole:8}{share:9.1f} %", wrong


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the table; returns 1 when something came back as something else."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.round_trips", description=__doc__)
    parser.add_argument("folder", nargs="?", help="a folder of configs")
    parser.add_argument("--wrong", action="store_true", help="list what came back as something else")
    asked = parser.parse_args(arguments)
    if asked.folder:
        os.environ["DSMIGRATE_CORPUS"] = asked.folder
    configs = list(real())
    if not configs:
        print("no configs: name a FOLDER")
        return 2
    print(f"{len(configs)} configs\n{'form':24}{'tried':>8}{'same':>8}{'whole':>8}{'keys':>11}")
    failed = False
    for form, carrying in WAYS:
        line, wrong = measure(form, carrying, configs)
        print(line, flush=True)
        failed = failed or bool(wrong)
        for one in wrong if asked.wrong else ():
            print(f"  {one}")
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
