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
