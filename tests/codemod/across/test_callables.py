"""Functions as values: filled in advance, under other names, and handed to other functions."""

from __future__ import annotations

import pytest

from tests.codemod.across.together import convert, refused

ENTRY = """
    from functools import partial
    import torch
    import torch.distributed as dist
    from torch.nn.parallel import DistributedDataParallel
    from loop import finish, run, train_step

    def main():
        dist.init_process_group("nccl")
        model = DistributedDataParallel(torch.nn.Linear(4, 4).cuda())
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        step = partial(train_step, model, done=finish)
        for batch in loader:
            step(optimizer, batch, max_norm=0.5)

    main()
    """
LOOP = """
    import torch

    def train_step(net, opt, batch, done=None, max_norm=0.0):
        loss = net(batch).sum()
        opt.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(net.parameters(), max_norm)
        done(opt)

    def finish(opt):
        opt.step()

    def run(step, optimizer, loader):
        for batch in loader:
            step(optimizer, batch)
    """


def _loop(entry: str, loop: str = LOOP) -> str:
    return convert({"train.py": entry, "loop.py": loop}).after("loop.py")


def test_what_partial_gives_arrives_in_the_function_s_parameters() -> None:
    after = _loop(ENTRY)
    assert "net.backward(loss)" in after
    assert "clip_grad_norm_" not in after


def test_a_limit_that_partial_gives_is_the_config_s() -> None:
    entry = ENTRY.replace("done=finish", "done=finish, max_norm=0.25").replace(", max_norm=0.5)", ")")
    project = convert({"train.py": entry, "loop.py": LOOP})
    assert project.result.entry.config is not None
    assert project.result.entry.config["gradient_clipping"] == 0.25


def test_a_function_that_is_handed_on_takes_the_engine_where_it_is_called() -> None:
    after = _loop(ENTRY)
    assert "def finish(opt, *, engine):\n    engine.step()" in after
    assert "done(opt, engine=net)" in after


def test_partial_of_partial_counts_all_that_was_given() -> None:
    entry = ENTRY.replace(
        "for batch in loader:\n            step(optimizer, batch, max_norm=0.5)",
        "run(partial(step, optimizer), loader)",
    )
    loop = LOOP.replace("def run(step, optimizer, loader)", "def run(step, loader)").replace(
        "step(optimizer, batch)", "step(batch)"
    )
    assert "net.backward(loss)" in _loop(entry, loop)


@pytest.mark.parametrize("made", ["train_step", "train_step if fast else slow_step"])
def test_another_name_of_a_function_is_followed(made: str) -> None:
    entry = ENTRY.replace("step = partial(train_step, model, done=finish)", f"step = {made}").replace(
        "step(optimizer, batch, max_norm=0.5)", "step(model, optimizer, batch, finish)"
    )
    entry = entry.replace("import finish, run, train_step", "import finish, run, slow_step, train_step")
    own = LOOP[LOOP.index("    def train_step") : LOOP.index("    def finish")]
    loop = f"{LOOP.rstrip()}\n\n{own.replace('train_step', 'slow_step')}"
    assert _loop(entry, loop).count("net.backward(loss)") == (1 if made == "train_step" else 2)


def test_a_function_that_goes_out_of_sight_is_not_given_the_engine() -> None:
    entry = ENTRY.replace("step = partial", "register(finish)\n        step = partial")
    refused({"train.py": entry, "loop.py": LOOP}, "MG913", "the optimizer is stepped where neither")
