"""Checkpoints that a module reads, of this script and of others."""

from __future__ import annotations

from tests.codemod.across.together import ENGINE, ENTRY, convert


def test_a_function_that_no_file_of_the_set_has_is_not_named() -> None:
    entry = ENTRY.replace(
        "engine.train_one_epoch(model, loader, optimizer)",
        'engine.epoch_of("last.pt")\n        engine.epoch_of("other.pt")\n'
        "        engine.train_one_epoch(model, loader, optimizer)\n"
        '        state = {"model": model.state_dict(), "optimizer": optimizer.state_dict()}\n'
        '        torch.save(state, "last.pt")',
    )
    engine = (
        "    import torch\n"
        + ENGINE
        + """
    def epoch_of(path):
        return torch.load(path)["epoch"]
    """
    )
    project = convert({"train.py": entry, "engine.py": engine})
    after = project.after("engine.py")
    assert (
        "TODO(dsmigrate MG622): a DeepSpeed checkpoint, which is a directory, may be read here: what the script"
        in after
    )
    assert 'is the entry "script" of the mp_rank_00_model_states.pt in it' in " ".join(after.replace("#", "").split())
    assert "read_checkpoint" not in after + project.after("train.py")


def asking(helper: str) -> str:
    """The entry script with a resume that a helper of ``files.py`` decides about, and that file."""
    entry = ENTRY.replace("import engine", "import engine\n    from files import there")
    entry = entry.replace(
        "engine.train_one_epoch(model, loader, optimizer)",
        "if there(args.start):\n            state = torch.load(args.start)\n"
        '            model.load_state_dict(state["model"])\n'
        '            optimizer.load_state_dict(state["optimizer"])\n'
        "        engine.train_one_epoch(model, loader, optimizer)\n"
        '        state = {"model": model.state_dict(), "optimizer": optimizer.state_dict()}\n'
        "        torch.save(state, args.start)",
    )
    return convert({"train.py": entry, "engine.py": ENGINE, "files.py": helper}).after("train.py")


def test_a_helper_of_a_file_that_takes_no_part_is_named_where_it_asks_for_a_file() -> None:
    after = asking("import os\n\ndef there(path):\n    return os.path.isfile(path)\n")
    assert "TODO(dsmigrate MG623): there of another file asks for a file" in after
    assert after.count("TODO") == 1
    assert "asks for a file" not in asking("import os\n\ndef there(path):\n    return os.path.exists(path)\n")
