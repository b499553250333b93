"""Tensors of a checkpoint that stay in use are where the script has placed them."""

from __future__ import annotations

import pytest

from tests.codemod.checks import convert
from tests.codemod.steps.checkpoint_scripts import RESUME, STATE, saving

AVERAGED = STATE.replace("epoch}", 'epoch, "ema": ema}')
SAVE = f"if rank == 0:\n    torch.save({AVERAGED}, 'last.pt')"
START = "ema = {name: value.clone() for name, value in model.module.state_dict().items()}\n"


def resumed(given: str, use: str, more: str = "") -> str:
    load = RESUME.replace(', map_location="cpu"', given).rstrip() + f"\n    {use}\n{more}"
    return convert(resume=START + load.lstrip(), loop=saving(SAVE)).code


@pytest.mark.parametrize(
    ("given", "placed"),
    [
        (", map_location=device", ", map_location=device"),
        (', map_location=f"cuda:{local_rank}"', ', map_location=f"cuda:{local_rank}"'),
        (', {"cuda:0": f"cuda:{local_rank}"}', ', map_location={"cuda:0": f"cuda:{local_rank}"}'),
        ("", ", map_location=None"),
        (', map_location="cpu"', ""),
        (", lambda storage, loc: storage", ""),
        (", map_location=torch.device('cpu')", ""),
    ],
)
def test_an_average_that_goes_on(given: str, placed: str) -> None:
    code = resumed(given, 'ema = checkpoint["ema"]')
    assert f"    checkpoint = read_checkpoint(args.resume{placed})\n" in code
    assert ('def read_checkpoint(path, map_location="cpu"):' in code) == bool(placed)
    assert ("torch.load(files[0], map_location=map_location, weights_only=False)" in code) == bool(placed)


@pytest.mark.parametrize("use", ["ema = checkpoint.get('ema')", "held = checkpoint\n    ema.update(held['ema'])"])
def test_other_spellings(use: str) -> None:
    assert "read_checkpoint(args.resume, map_location=device)" in resumed(", map_location=device", use)


@pytest.mark.parametrize("use", ["average.load_state_dict(checkpoint['ema'])", "best = checkpoint['best']", "pass"])
def test_what_is_copied_or_a_number_may_come_from_anywhere(use: str) -> None:
    assert "checkpoint = read_checkpoint(args.resume)\n" in resumed("", use)
    assert "checkpoint = read_checkpoint(args.resume)\n" in resumed(", map_location=None", use)


def test_a_place_that_the_script_names_holds_for_whatever_it_reads() -> None:
    assert "read_checkpoint(args.resume, map_location=device)" in resumed(
        ", map_location=device", "w = checkpoint['w']"
    )


def test_beside_a_read_that_looks_something_up() -> None:
    code = resumed(", map_location=device", "ema = checkpoint['ema']", "last = torch.load('last.pt')['epoch']\n")
    assert 'def read_checkpoint(path, map_location="cpu", resume=True):' in code
    assert "last = read_checkpoint('last.pt', resume=False)['epoch']" in code
    assert "    if resume:\n        _resume_requests.append" in code
