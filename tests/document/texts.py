"""Random texts that are almost configs, for hypothesis and for plain random numbers alike."""

from __future__ import annotations

import os
import random
from functools import cache
from pathlib import Path

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

from tests.document import samples

EXPLORE = os.environ.get("DSMIGRATE_EXPLORE")
GENERAL = settings(
    deadline=None,
    derandomize=EXPLORE is None,
    max_examples=int(EXPLORE or "300"),
    suppress_health_check=list(HealthCheck),
)
NO_CORPUS = "DSMIGRATE_CORPUS names no folder of configs"


def seeded(seed: int) -> random.Random:
    """Return a source of chance that repeats itself."""
    return random.Random(seed)  # noqa: S311 - nothing here is secret


@cache
def corpus() -> dict[str, str]:
    """Return the configs of the folder DSMIGRATE_CORPUS, by file name; empty when it is not set."""
    folder = os.environ.get("DSMIGRATE_CORPUS")
    if not folder:
        return {}
    return {file.name: file.read_bytes().decode("utf-8") for file in sorted(Path(folder).iterdir()) if file.is_file()}


def jumble(random: random.Random) -> str:
    """Return pieces in any order, at times in brackets."""
    text = "".join(random.choices(samples.PIECES, k=random.choice([1, 2, 3, 4, 5, 6, 8, 10, 14, 20, 30])))
    return random.choice(["{}", "{}", "{}", "{{{}}}", "{{{}}}", "{{\n{}\n}}", "[{}]"]).format(text)


def almost_config(random: random.Random) -> str:
    """Return an object with members of all kinds, at times with a few faults or cut off."""

    def blank() -> str:
        return random.choice(samples.BLANKS)

    def value(depth: int) -> str:
        kind = random.random()
        if depth < 3 and kind < 0.25:
            return "{" + members(depth + 1) + "}"
        if depth < 3 and kind < 0.4:
            separator = random.choice([",", " , ", "\n", ",\n"])
            items = separator.join(value(depth + 1) for _ in range(random.randint(0, 3)))
            return f"[{blank()}{items}{random.choice(['', ','])}{blank()}]"
        return random.choice(samples.SCALARS)

    def members(depth: int) -> str:
        parts = []
        for _ in range(random.randint(0, 4)):
            parts += [blank(), random.choice(samples.KEYS), random.choice(["", "", " "]), ":"]
            parts += [random.choice([" ", "", " \n"]), value(depth), blank(), random.choice([",", ",", ",", ",\n", ""])]
        return "".join(parts) + blank()

    root = members(0)
    text = blank() + (f"{{{root}}}" if random.random() < 0.7 else root) + blank()
    return damaged(text, random)


def damaged(text: str, random: random.Random) -> str:
    """Return ``text`` as it is, with a few pieces put over it, or cut off."""
    kind = random.random()
    if kind < 0.3:
        for _ in range(random.randint(1, 3)):
            start = random.randint(0, len(text))
            end = min(len(text), start + random.choice([0, 0, 1, 2, 9]))
            text = text[:start] + random.choice([*samples.PIECES, *[""] * 20]) + text[end:]
    elif kind < 0.45:
        text = text[: random.randint(0, len(text))]
    return text


SEEDS = st.randoms(use_true_random=False)
TEXTS = st.one_of(
    SEEDS.map(jumble),
    SEEDS.map(almost_config),
    st.builds(damaged, st.sampled_from(list(samples.ALL.values())), SEEDS),
    st.text(alphabet=st.characters()),
    st.text(alphabet="{}[]:,\"'#/*\n\\ a1u-"),
)
