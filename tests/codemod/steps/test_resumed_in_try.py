"""Resumes within the script's own try: what fails in the engine must not be passed over."""

from __future__ import annotations

import pytest

from dsmigrate.codemod.model import Kind
from tests.codemod.checks import convert
from tests.codemod.steps.checkpoint_scripts import STATE, saving

SAVE = saving(f'if rank == 0:\n    torch.save({STATE}, "last.pt")')
RESUME = """
if args.resume:
    checkpoint = torch.load(args.resume, map_location="cpu")
    model.module.load_state_dict(checkpoint["model"])
    try:
        optimizer.load_state_dict(checkpoint["optimizer"])
    except {kind}:
        {handler}
"""
WHOLE = """
try:
    checkpoint = torch.load(args.resume, map_location="cpu")
    model.module.load_state_dict(checkpoint["model"])
    optimizer.load_state_dict(checkpoint["optimizer"])
except {kind}:
    {handler}
"""
HELPER = """def resume(path, model, optimizer):
    checkpoint = torch.load(path, map_location="cpu")
    model.load_state_dict(checkpoint["model"])
    optimizer.load_state_dict(checkpoint["optimizer"])
"""
CALL = "try:\n    resume(args.resume, model.module, optimizer)\nexcept {kind}:\n    {handler}\n"


@pytest.mark.parametrize("resume", [RESUME, WHOLE, CALL])
@pytest.mark.parametrize("kind", ["Exception", "Exception as error", "(KeyError, ValueError)", "RuntimeError"])
def test_a_resume_whose_errors_are_passed_over_is_marked(resume: str, kind: str) -> None:
    migrated = convert(
        helpers=HELPER if resume is CALL else "", resume=resume.format(kind=kind, handler='print("failed")'), loop=SAVE
    )
    found = [c for c in migrated.changes if c.code == "MG622" and c.kind is Kind.TODO]
    assert len([c for c in found if c.message.startswith("the except around this")]) == 1, migrated.told()


@pytest.mark.parametrize("resume", [RESUME, WHOLE, CALL])
@pytest.mark.parametrize(
    ("kind", "handler"),
    [("FileNotFoundError", "print()"), ("OSError", "pass"), ("Exception", "raise"), ("Exception", "sys.exit(1)")],
)
def test_a_resume_whose_errors_stop_the_script_is_right(resume: str, kind: str, handler: str) -> None:
    migrated = convert(
        imports="import sys",
        helpers=HELPER if resume is CALL else "",
        resume=resume.format(kind=kind, handler=handler),
        loop=SAVE,
    )
    assert not [c for c in migrated.changes if c.message.startswith("the except around this")]
