"""A block that only some ranks may run is left by `return`, `break`, …: the checkpoint is written before that, too."""

from __future__ import annotations

import pytest

from dsmigrate.codemod.model import Kind
from tests.codemod.checks import Migrated, convert
from tests.codemod.steps.checkpoint_scripts import HOLLOW, RESUME, STATE, saved, saving

START = "best = 1e9\n"
SAVE = f'if rank == 0:\n        torch.save({STATE}, "best.pt")'
ASKED = f'if rank == 0:\n        request_checkpoint({HOLLOW}, "best.pt")'
WRITTEN = "save_requested_checkpoints(model)"
TAKEN = '{"model": model.state_dict(), "optimizer": optimizer.state_dict(), "epoch": epoch}'
GUARDED = f"        torch.save({TAKEN}, path)\n"
HELPER = "def save(model, optimizer, epoch, path):\n    if dist.get_rank() == 0:\n"


def trained(end: str, helpers: str = "", imports: str = "import sys") -> Migrated:
    return convert(loop=START + saving(end).lstrip("\n"), helpers=helpers, resume=RESUME, imports=imports)


@pytest.mark.parametrize("leave", ["continue", "break", "return", "raise SystemExit", "sys.exit(0)", "return best"])
def test_all_ranks_write_before_it_and_behind_the_block(leave: str) -> None:
    migrated = trained(f"if loss.item() < best:\n    {SAVE}\n    best = 0\n    {leave}")
    wanted = saved(f"if loss.item() < best:\n    {ASKED}\n    best = 0\n    {WRITTEN}\n    {leave}\n{WRITTEN}")
    assert migrated.section("loop") == START + wanted


def test_rank_0_that_leaves_alone_writes_with_the_others() -> None:
    migrated = trained(f"if rank == 0 and epoch % 5 == 0:\n    torch.save({STATE}, 'best.pt')\n    sys.exit()")
    wanted = f"    {WRITTEN}\n    sys.exit()\nif epoch % 5 == 0:\n    {WRITTEN}"
    assert migrated.section("loop").endswith("".join(f"    {line}\n" for line in wanted.splitlines()))


@pytest.mark.parametrize(
    ("body", "wanted"),
    [
        (
            f"{GUARDED}        return path\n    return None",
            "        {}\n        return path\n    {}\n    return None\n",
        ),
        (
            f"        if path is None: return\n{GUARDED}",
            "            {}\n            return\n        request_checkpoint",
        ),
        (
            f"        try:\n    {GUARDED}            return True\n        except OSError:\n            return 0",
            "    {}\n            return True\n        except OSError:\n            {}\n            return 0\n    {}\n",
        ),
    ],
)
def test_a_helper_that_returns_under_the_guard(body: str, wanted: str) -> None:
    migrated = trained("out = save(model, optimizer, epoch, 'last.pt')", helpers=HELPER + body)
    assert wanted.format(*[WRITTEN] * 3) in migrated.section("helpers") + "\n"
    assert WRITTEN not in migrated.section("loop")


def test_inner_loops_and_other_branches_are_not_left() -> None:
    end = f"""
if loss.item() < best:
    {SAVE}
    for name in ("a", "b"):
        if name == "b":
            break
elif best < 0:
    raise ValueError(best)
"""
    section = trained(end).section("loop")
    assert section.count(WRITTEN) == 1
    assert section.endswith(f"        raise ValueError(best)\n    {WRITTEN}\n")


def test_an_exception_that_may_be_caught_is_marked() -> None:
    guarded = SAVE.replace("\n", "\n    ")
    end = f"if loss < best:\n    try:\n        {guarded}\n        raise OSError\n    except OSError:\n        pass"
    assert "on all ranks" in trained(end).said("MG621", "torch.save(", Kind.TODO).message


def test_the_result_of_a_saving_helper_is_returned() -> None:
    """Nothing behind a `return` runs: the caller of the caller writes."""
    helpers = f"""
def save(model, optimizer, epoch):
    torch.save({TAKEN}, "last.pt")
    return epoch

def keep(model, optimizer, epoch):
    return save(model, optimizer, epoch)
"""
    migrated = trained("keep(model, optimizer, epoch)", helpers=helpers)
    assert WRITTEN not in migrated.section("helpers")
    assert migrated.section("loop").endswith(f"    keep(model, optimizer, epoch)\n    {WRITTEN}\n")


@pytest.mark.parametrize("meeting", ["dist.barrier()", "dist.destroy_process_group()", "cleanup()"])
def test_it_is_written_before_the_ranks_meet_or_part(meeting: str) -> None:
    """A rank that came alone waits there for ever, and behind the end of the group nothing can be written."""
    helpers = "def cleanup():\n    dist.destroy_process_group()\n"
    migrated = trained(f"if loss.item() < best:\n    {SAVE}\n    print(best)\n    {meeting}\n    return", helpers)
    wanted = (
        f"if loss.item() < best:\n    {ASKED}\n    print(best)\n    {WRITTEN}\n    {meeting}\n    return\n{WRITTEN}"
    )
    assert migrated.section("loop") == START + saved(wanted)


def test_two_requests_on_both_sides_of_a_meeting() -> None:
    end = f"if loss.item() < best:\n    {SAVE}\n    dist.barrier()\n    {SAVE}\n    return"
    assert "on all ranks" in trained(end).said("MG621", "torch.save(", Kind.TODO).message
