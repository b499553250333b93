"""Variables that are true at rank 0 alone, under any name, are guards as the rank itself is."""

from __future__ import annotations

import pytest

from tests.codemod.checks import Migrated, convert

LOOP = """
for epoch in range(args.epochs):
    for x, y in train_loader:
        optimizer.zero_grad()
        F.cross_entropy(model(x), y).backward()
        optimizer.step()
    if {test}:
        torch.save({{"model": model.state_dict(), "optimizer": optimizer.state_dict(), "epoch": epoch}}, "last.pt")
"""
HELPERS = "def is_master(args):\n    return dist.get_rank() == 0\n\n\n"


def saving(flag: str, test: str) -> Migrated:
    return convert(end=f"{flag}\n{LOOP.format(test=test)}", loop="", helpers=HELPERS)


@pytest.mark.parametrize(
    ("flag", "test"),
    [
        ("args.keep = args.output and is_master(args)", "args.keep"),
        ("args.keep = args.output and rank == 0", "args.keep and epoch % 5 == 0"),
        ("keep = rank == 0", "keep"),
        ("keep = not rank", "keep"),
        ("keep = rank == 0 if args.distributed else True", "keep"),
        ("writes = is_master(args)\nargs.keep = writes", "args.keep"),
        ("args.keep = False\nif rank == 0:\n    args.keep = True", "args.keep"),
        ("if rank != 0:\n    args.output = None", "args.output"),
        ('args.output = "runs" if rank == 0 else ""', "args.output and epoch % 5 == 0"),
        ("args.every = 5 if rank == 0 else 0", "args.every and epoch % args.every == 0"),
        ("args.saver = object() if rank == 0 else None", "args.saver is not None"),
        ("keep = not args.distributed or rank == 0", "keep"),
        ("keep = rank % torch.cuda.device_count() == 0", "keep"),
        ("skip = rank != 0", "not skip"),
        ("skip = rank != 0\nlast = skip", "not last"),
    ],
)
def test_the_collective_save_stands_behind_it(flag: str, test: str) -> None:
    code = saving(flag, test).section("end")
    condition = "    if epoch % 5 == 0:\n        " if "% 5" in test else "    "
    assert code.rstrip().endswith(f'"last.pt")\n{condition}save_requested_checkpoints(model)')


def test_who_left_by_a_variable_writes_with_the_others_before() -> None:
    """The others wait for all ranks in the collective save; those that went on to the next round would never come."""
    loop = LOOP.replace("    if {test}:\n        torch", "    if skip:\n        continue\n    torch")
    code = convert(end=f"skip = rank != 0\n{loop.replace('{{', '{').replace('}}', '}')}", loop="").section("end")
    assert "    if skip:\n        save_requested_checkpoints(model)\n        continue\n" in code
    assert code.endswith('"last.pt")\n    save_requested_checkpoints(model)\n')


def test_a_number_that_is_made_of_itself_is_followed_once() -> None:
    saving("n = 3\nn = int(n)", "n == 0")


@pytest.mark.parametrize(
    "flag", ["args.keep = bool(args.output)", "args.keep = args.epochs > 5", "args.keep = args.output and args.amp"]
)
def test_what_all_ranks_share_is_no_guard(flag: str) -> None:
    code = saving(flag, "args.keep").section("end")
    assert '"last.pt")\n        save_requested_checkpoints(model)' in code


HELPER = """
def save(model, optimizer, epoch):
    if dist.get_rank() == 0:
        torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict(), "epoch": epoch}, "last.pt")
"""
ITS_CALL = """
best = 1e9
for epoch in range(args.epochs):
    for x, y in train_loader:
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
    if {test}:
        save(model, optimizer, epoch)
"""
COLLECTIVE = "save_requested_checkpoints(model)\n"


@pytest.mark.parametrize("test", ["loss.item() < best", "os.path.exists('now')", "loss < best and epoch % 5 == 0"])
def test_a_helper_that_some_ranks_may_pass_over_asks_only(test: str) -> None:
    migrated = convert(loop=ITS_CALL.format(test=test), helpers=HELPER)
    assert COLLECTIVE not in migrated.section("helpers")
    condition = "    if epoch % 5 == 0:\n        " if "% 5" in test else "    "
    assert migrated.section("loop").endswith(f"save(model, optimizer, epoch)\n{condition}{COLLECTIVE}")


def test_so_does_one_that_such_a_helper_calls() -> None:
    helpers = f"{HELPER}\n\ndef keep(model, optimizer, epoch):\n    save(model, optimizer, epoch)\n"
    loop = ITS_CALL.format(test="loss.item() < best").replace("        save(", "        keep(")
    migrated = convert(loop=loop, helpers=helpers)
    assert COLLECTIVE not in migrated.section("helpers")
    assert migrated.section("loop").endswith(f"keep(model, optimizer, epoch)\n    {COLLECTIVE}")


def test_a_helper_that_all_ranks_run_writes_as_before() -> None:
    migrated = convert(loop=ITS_CALL.format(test="(epoch + 1) % args.epochs == 0"), helpers=HELPER)
    assert migrated.section("helpers").endswith(COLLECTIVE)
    assert COLLECTIVE not in migrated.section("loop")


def test_a_training_that_runs_under_a_test_runs_on_all_ranks() -> None:
    helpers = f"{HELPER}\n\ndef train(args, model, optimizer, train_loader):\n" + "".join(
        f"    {line}\n" for line in ITS_CALL.format(test="epoch").strip().splitlines()
    )
    migrated = convert(
        loop="if train_loader.dataset:\n    train(args, model, optimizer, train_loader)", helpers=helpers
    )
    assert migrated.section("helpers").count(COLLECTIVE) == 1
    assert COLLECTIVE not in migrated.section("loop")


def test_two_files_of_one_state_are_asked_for_within_a_test() -> None:
    guarded = "for name in ('a.pt', 'b.pt'):\n            if rank == 0:\n                torch.save({}, name)"
    state = '{"model": model.state_dict(), "optimizer": optimizer.state_dict()}'
    loop = ITS_CALL.format(test="loss.item() < best").replace("save(model, optimizer, epoch)", guarded.format(state))
    assert convert(loop=loop).section("loop").endswith(f"name)\n    {COLLECTIVE}")
