"""What is said of checkpoints on other nodes, in other hands, and of files that are no checkpoints of the engine."""

from __future__ import annotations

import pytest

from dsmigrate.codemod.model import Kind
from tests.codemod.checks import Migrated, convert

SAVE = 'torch.save({"net": model.module.state_dict(), "opt": optimizer.state_dict()}, path)'
LOAD = """
if args.resume:
    state = torch.load(args.resume, map_location="cpu")
    model.module.load_state_dict(state["net"])
    optimizer.load_state_dict(state["opt"])
"""


def saved(guard: str, after: str = "pass") -> Migrated:
    text = f'path = os.path.join(args.output, "last.pt")\nif {guard}:\n    {SAVE}\n    {after}\n'
    return convert(end=text, imports="from pathlib import Path\n\nimport wandb\n\nimport tracker")


@pytest.mark.parametrize(
    "guard",
    [
        "local_rank == 0",
        "rank % torch.cuda.device_count() == 0",
        'int(os.environ["LOCAL_RANK"]) == 0',
        "not local_rank",
        "local_rank in [-1, 0]",
    ],
)
def test_a_file_of_every_node_is_spoken_of(guard: str) -> None:
    assert "each node" in saved(guard).told()


def test_a_variable_may_tell_the_first_rank_of_a_node() -> None:
    text = f'path = "a.pt"\nis_main = local_rank == 0\nif is_main:\n    {SAVE}\n'
    assert "each node" in convert(end=text).told()
    assert "each node" not in convert(end=text.replace("local_rank", "rank")).told()


@pytest.mark.parametrize("guard", ["rank == 0", "dist.get_rank() == 0", "rank == 0 and local_rank == 0"])
def test_a_file_of_one_rank_is_not(guard: str) -> None:
    assert "each node" not in saved(guard).told()


@pytest.mark.parametrize(
    "after",
    [
        'wandb.Artifact("net", type="model").add_file(str(path))',
        "wandb.save(str(path))",
        "tracker.run.log_model(os.path.dirname(path), 3)",
        "tracker.run.log_artifact(Path(path).parent)",
    ],
)
def test_what_takes_the_file_elsewhere_is_marked(after: str) -> None:
    saved("rank == 0", after).said("MG623", after, Kind.TODO)


@pytest.mark.parametrize("after", ['tracker.run.log_file("notes.txt")', "wandb.log(dict(epoch=1))"])
def test_what_takes_something_else_is_not(after: str) -> None:
    migrated = saved("rank == 0", after)
    assert "todo" not in migrated.told()


def test_a_plain_file_to_resume_from_is_spoken_of() -> None:
    change = convert(resume=LOAD, end=f'path = "a.pt"\n{SAVE}').said("MG622", "torch.load(", Kind.KEPT)
    assert "stops here now" in change.message


def test_weights_that_are_loaded_before_the_engine_come_from_a_plain_file_too() -> None:
    wrap = 'net = Net().cuda()\nstate = torch.load("a.pt")\nnet.load_state_dict(state["net"])\nmodel = DDP(net)\n'
    migrated = convert(wrap=wrap, resume='optimizer.load_state_dict(state["opt"])', end=f'path = "a.pt"\n{SAVE}')
    assert "is not restored here" in migrated.told()


def test_a_function_that_takes_a_file_of_the_folder_elsewhere_is_marked() -> None:
    helper = """
        def upload(folder):
            wandb.Artifact("net", type="model").add_file(os.path.join(folder, "last.pt"))
        """
    text = (
        f'path = os.path.join(args.output, "last.pt")\nif rank == 0:\n    {SAVE}\n    upload(os.path.dirname(path))\n'
    )
    migrated = convert(end=text, imports="import wandb", helpers=helper)
    migrated.said("MG623", "add_file(os.path.join(folder", Kind.TODO)


@pytest.mark.parametrize(
    ("text", "own"),
    [
        ('link = os.path.join("out", "latest")', True),
        ('os.path.lexists(f"{args.output}/latest")', True),
        ('if os.path.exists("out/latest"):\n        print(epoch)', True),
        ('print("the latest")', False),
        ('path = "out/latest.pt"', False),
    ],
)
def test_the_script_has_something_that_is_called_latest(text: str, own: bool) -> None:
    migrated = saved("rank == 0", text)
    assert ("save_latest=False" in migrated.code) == own
    if own:
        assert "called latest" in migrated.said("MG623", "torch.save(", Kind.KEPT).message
