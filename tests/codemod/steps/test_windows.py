"""Windows whose end is marked by hand, and what looks at gradients within them."""

from __future__ import annotations

import pytest

from dsmigrate.codemod.model import Kind
from tests.codemod.checks import convert

TAIL = """
    for i, (x, y) in enumerate(train_loader):
        (F.cross_entropy(model(x), y) / args.accum).backward()
        if (i + 1) % args.accum == 0:
            nn.utils.clip_grad_value_(model.parameters(), 0.5)
            optimizer.step()
            optimizer.zero_grad()
    if (i + 1) % args.accum != 0:
        nn.utils.clip_grad_value_(model.parameters(), 0.5)
        optimizer.step()
        optimizer.zero_grad()
    """


def test_a_clip_at_every_micro_batch_is_not_at_the_end_of_a_window_in_another_function() -> None:
    migrated = convert(
        helpers="""
            def plain_step(loss, optimizer):
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
            """,
        loop="""
            for i, (x, y) in enumerate(train_loader):
                loss = F.cross_entropy(model(x), y)
                if args.plain:
                    plain_step(loss, optimizer)
                else:
                    (loss / args.accum).backward()
                    nn.utils.clip_grad_value_(model.parameters(), 0.5)
                    if (i + 1) % args.accum == 0:
                        optimizer.step()
                        optimizer.zero_grad()
            """,
    )
    assert "set_gradient_accumulation_boundary" not in migrated.code
    assert "managed_gradient_accumulation" not in migrated.config
    migrated.said("MG404", "    optimizer.step()", Kind.KEPT)


def test_leftovers_with_clips_that_stay_are_averaged_in_every_backward() -> None:
    migrated = convert(loop=TAIL)
    assert "set_gradient_accumulation_boundary" not in migrated.code
    migrated.said("MG404", "    optimizer.step()", Kind.KEPT)
    assert migrated.config["zero_optimization"] == {"stage": 0}


@pytest.mark.parametrize("options", [{"target_version": "0.18.0", "zero_stage": 1}, {"zero_stage": 1}])
def test_leftovers_behind_the_loop_are_no_window_that_is_marked(options: dict[str, object]) -> None:
    migrated = convert(loop=TAIL, to=options)
    assert "set_gradient_accumulation_boundary(" not in migrated.section("loop").replace("boundary(True or False)", "")
    migrated.said("MG406", "    optimizer.step()", Kind.TODO)


def test_both_ways_to_step_at_the_end_of_a_window_make_one_condition() -> None:
    migrated = convert(
        loop="""
            for i, (x, y) in enumerate(train_loader):
                (F.cross_entropy(model(x), y) / args.accum).backward()
                if (i + 1) % args.accum == 0:
                    if args.verbose:
                        print("step")
                        optimizer.step()
                    else:
                        optimizer.step()
                    optimizer.zero_grad()
            """,
        to={"target_version": "0.18.0"},
    )
    assert "model.set_gradient_accumulation_boundary((i + 1) % args.accum == 0)\n" in migrated.section("loop")


NO_SYNC = """
    seen = 0
    for x, y in train_loader:
        seen += 1
        with model.no_sync() if seen % args.accum else contextlib.nullcontext():
            (F.cross_entropy(model(x), y) / args.accum).backward()
        {clip}
        if seen % args.accum == 0:
            optimizer.step()
            optimizer.zero_grad()
    if seen % args.accum:
        optimizer.step()
    """


def test_a_clip_under_no_sync_is_marked_where_the_window_cannot_be() -> None:
    migrated = convert(loop=NO_SYNC.format(clip="nn.utils.clip_grad_value_(model.parameters(), 0.5)"))
    assert "this rank's own" in migrated.said("MG404", "optimizer.step()", Kind.TODO).message
