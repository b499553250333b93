"""Faults of the text: duplicate keys, broken syntax, and what Hjson reads as something else."""

from __future__ import annotations

import json
import random
import re

from .case import Config, Planted

FAMILY = "text"


def spoiled(rng: random.Random, config: Config) -> tuple[str, Planted] | None:
    """Return the text of a config with a fault, and the fault."""
    text = json.dumps(config, indent=2)
    members = list(re.finditer(r'^( +)"([^"]+)": ([^\n]*?)(,?)$', text, re.MULTILINE))
    plain = [member for member in members if member[3] not in {"{", "["}]
    one = rng.choice(plain)
    name = one[2]
    way = rng.choice(sorted(WAYS))
    if way == "duplicate key":
        other = rng.choice((one[3], "3", "true"))
        new = f'{text[: one.start()]}{one[1]}"{name}": {other},\n{text[one.start() :]}'
    elif way == "missing comma":
        new = text[: one.end() - 1] + text[one.end() :] if one[4] else text
    elif way == "unclosed":
        new = text.rstrip("}\n ") + "\n"
    elif way == "trailing text":
        new = text + rng.choice(("}", "\n]", "\nzzz", ",", "\n{}"))
    elif way == "open string":
        new = text.replace(f'"{name}":', f'"{name}:', 1)
    elif way == "trailing comma":
        new = re.sub(r"\n( *)}", r",\n\1}", text, count=1)
    elif way == "no object":
        new = rng.choice((f"[{text}]", "null", "2.5", '"text"', ""))
    elif way == "comment":
        new = text.replace("\n", rng.choice((" // note\n", " # note\n", " /* note */\n")), 1)
    else:
        content = rng.choice(WORDS)
        new = text[: one.start(3)] + content + text[one.end(3) :]
    if new == text:
        return None
    return new, Planted(way, (name,), FAMILY)


WAYS = frozenset(
    {
        "comment",
        "duplicate key",
        "missing comma",
        "no object",
        "open string",
        "trailing comma",
        "trailing text",
        "unclosed",
        "word",
    }
)
WORDS = (
    "$VALUE",
    "${VALUE}",
    "NaN",
    "Infinity",
    "True",
    "None",
    "'x'",
    "1e-3",
    ".5",
    "+1",
    "0x10",
    "auto",
    "01",
    "1_000",
)
