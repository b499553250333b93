"""What is known of a text of which parts are not."""

from __future__ import annotations

import pytest

from tests.codemod.analysis.running import saved

TRUE = ["True"]
FALSE = ["False"]


@pytest.mark.parametrize(
    "text",
    ['f"cuda:{rank}"', '"cuda:%d" % rank', '"cuda:{}".format(rank)', '"cuda:" + str(rank)', 'f"cuda:{rank}/{rank}"'],
)
@pytest.mark.parametrize(
    ("test", "found"),
    [
        ('"cuda" in d', TRUE),
        ('d.startswith("cuda")', TRUE),
        ('d.startswith("cpu")', FALSE),
        ('d == "cpu"', FALSE),
        ('d != "cpu"', TRUE),
        ('torch.device(d).type == "cuda"', TRUE),
    ],
)
def test_known_parts_decide(text: str, test: str, found: list[str]) -> None:
    assert saved(f'rank = dist.get_rank()\nd = {text}\ntorch.save({test}, "x")') == found


@pytest.mark.parametrize(
    ("text", "test"),
    [
        ('f"cuda:{rank}"', 'd == "cuda:0"'),
        ('f"cuda:{rank}"', '"1" in d'),
        ('f"cuda:{rank}"', 'd.startswith("cuda:0")'),
        ('f"{rank}.pt"', 'd.startswith("0")'),
        ('"%d%%" % rank', 'd.endswith("0%")'),
        ("str(rank)", '"0" in d'),
    ],
)
def test_what_the_unknown_part_decides_stays_open(text: str, test: str) -> None:
    found = saved(f'rank = dist.get_rank()\nd = {text}\ntorch.save({test}, "x")')
    assert found not in (TRUE, FALSE)


@pytest.mark.parametrize(
    ("text", "test", "found"),
    [
        ('f"{rank}.pt"', 'd.endswith(".pt")', TRUE),
        ('f"{rank}.pt"', 'd.endswith(".pth")', FALSE),
        ('"%d%%" % rank', 'd.endswith("%")', TRUE),
        ('"a{{}}{}".format(rank)', '"a{}" in d', TRUE),
    ],
)
def test_ends_and_escapes(text: str, test: str, found: list[str]) -> None:
    assert saved(f'rank = dist.get_rank()\nd = {text}\ntorch.save({test}, "x")') == found
