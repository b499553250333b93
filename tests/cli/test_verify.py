"""The command, with a verification of a few lines in the place of the real one."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from dsmigrate.cli.app import run
from dsmigrate.settings.toml import forget
from dsmigrate.verify import job
from dsmigrate.verify.compare import compare
from dsmigrate.verify.model import Verdict, Verification, VerifyError
from dsmigrate.verify.request import Request
from tests.verify import runs

Captured = pytest.CaptureFixture[str]


@pytest.fixture
def asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[Request]:
    """What the command asks for; the verification agrees, unless the original is called wrong.py."""
    forget()
    monkeypatch.chdir(tmp_path)
    for name in ("train.py", "wrong.py", "converted.py"):
        (tmp_path / name).write_text("")
    found: list[Request] = []

    def verify(request: Request, say: Callable[[str], None], _progress: object) -> Verification:
        say("training")
        found.append(request)
        if request.original.name == "broken.py":
            raise VerifyError("the original itself fails at train.py:3\n$ torchrun")
        after = runs.converted(steps=7 if request.original.name == "wrong.py" else 8)
        comparison = compare(runs.run(), after)
        verdicts = tuple(Verdict(stage, comparison) for stage in request.stages or (None,))
        return Verification(request.original, request.converted, "CPU", verdicts)

    monkeypatch.setattr(job, "verify", verify)
    return found


def test_scripts_options_and_arguments_are_told_apart(asked: list[Request]) -> None:
    words = [
        "verify",
        "train.py",
        "converted.py",
        "--steps",
        "7",
        "--zero-stage",
        "0,3",
        "--",
        "--steps",
        "9",
        "--",
        "x",
    ]
    assert run(words) == 0
    assert asked[0].original == Path("train.py")
    assert asked[0].converted == Path("converted.py")
    assert asked[0].arguments == ("--steps", "9", "--", "x")
    assert (asked[0].steps, asked[0].stages) == (7, (0, 3))
    assert asked[0].resume is None


def test_the_exit_code_says_whether_they_agree(asked: list[Request]) -> None:
    assert run(["verify", "train.py"]) == 0
    assert run(["verify", "wrong.py"]) == 1
    assert run(["verify", "broken.py"]) == 2
    assert len(asked) == 3


def test_it_says_that_it_runs_code(asked: list[Request], capsys: Captured) -> None:
    run(["verify", "train.py", "-n", "4"])
    talk = capsys.readouterr().err
    assert talk.startswith(
        "this runs your code: train.py and its conversion are trained for 20 optimizer steps by 4 processes"
    )
    run(["verify", "train.py", "--quiet"])
    assert capsys.readouterr().err == ""
    assert asked


@pytest.mark.usefixtures("asked")
def test_what_could_not_be_done_is_said_on_stderr(capsys: Captured) -> None:
    assert run(["verify", "broken.py", "-q"]) == 2
    streams = capsys.readouterr()
    assert streams.out == ""
    assert "the original itself fails at train.py:3" in streams.err


REASON = "the original itself fails at train.py:3"


def test_a_verification_that_cannot_be_made_is_reported_to_junit(asked: list[Request], capsys: Captured) -> None:
    assert run(["verify", "broken.py", "converted.py", "--format", "junit"]) == 2
    printed = capsys.readouterr()
    (suite,) = ET.fromstring(printed.out)  # noqa: S314 - our own
    assert [suite.attrib[name] for name in ("tests", "failures", "errors")] == ["1", "0", "1"]
    (case,) = suite
    assert case.attrib["name"] == "broken.py → converted.py"
    (error,) = case
    assert (error.tag, error.attrib["message"]) == ("error", REASON)
    assert error.text == f"{REASON}\n$ torchrun"
    assert f"Error: {REASON}" in printed.err
    assert len(asked) == 1


def test_a_verification_that_cannot_be_made_is_an_error_on_github(asked: list[Request], capsys: Captured) -> None:
    assert run(["verify", "broken.py", "--format", "github"]) == 2
    out = capsys.readouterr().out
    assert out == (
        f"::error file=broken.py,title=dsmigrate verify%3A broken.py → its conversion::{REASON}%0A$ torchrun\n"
    )
    assert len(asked) == 1


def test_the_interpreter_that_lacks_torch_is_reported_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "train.py").write_text("import torch\n")
    assert run(["verify", "train.py", "--format", "github", "--python", str(tmp_path / "nowhere"), "-q"]) == 2
    assert capsys.readouterr().out.startswith("::error file=train.py,title=dsmigrate verify%3A train.py")


@pytest.mark.parametrize("form", ["text", "json", "html", "svg"])
def test_other_formats_leave_it_to_stderr(asked: list[Request], form: str, capsys: Captured) -> None:
    assert run(["verify", "broken.py", "--format", form]) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert REASON in printed.err
    assert len(asked) == 1


@pytest.mark.parametrize(
    ("flags", "resume"),
    [
        ([], None),
        (["--resume"], ()),
        (["--resume-args", "--resume last.pt"], ("--resume", "last.pt")),
        (["--resume", "--resume-args", "--ckpt 'a b'"], ("--ckpt", "a b")),
    ],
)
def test_resuming_is_asked_for(asked: list[Request], flags: list[str], resume: tuple[str, ...] | None) -> None:
    run(["verify", "train.py", *flags])
    assert asked[0].resume == resume


def test_settings_hold_and_flags_override_them(asked: list[Request]) -> None:
    Path("dsmigrate.toml").write_text('[verify]\nsteps = 5\nprocesses = 3\nresume-args = "--resume x"\n')
    run(["verify", "train.py", "--steps", "6"])
    run(["verify", "train.py", "--resume"])
    assert (asked[0].steps, asked[0].processes, asked[0].resume) == (6, 3, None)
    assert asked[1].resume == ("--resume", "x")


@pytest.mark.usefixtures("asked")
@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([], "one script, or two, are trained, and 0 are given"),
        (["train.py", "a.py", "b.py"], "and 3 are given; their arguments follow --"),
        (["train.py", "--steps", "0"], "--steps 0 is not a number from 1 on"),
        (["train.py", "--plot", "curve.png"], "--plot curve.png: the ending says the format: .svg or .html"),
        (["train.py", "--plot", "no/curve.svg"], "--plot no/curve.svg: there is no folder no"),
    ],
)
def test_wrong_usage_is_said(words: list[str], said: str, capsys: Captured) -> None:
    assert run(["verify", *words]) == 2
    assert said in " ".join(capsys.readouterr().err.split())


@pytest.mark.usefixtures("asked")
def test_formats_and_plots(capsys: Captured) -> None:
    run(["verify", "train.py", "--format", "json", "-q"])
    assert json.loads(capsys.readouterr().out)["agrees"] is True
    run(["verify", "train.py", "--format", "svg", "-q"])
    assert capsys.readouterr().out.startswith("<svg")
    run(["verify", "train.py", "--format", "html", "-q", "--plot", "curve.svg"])
    assert capsys.readouterr().out.startswith("<!doctype html>")
    assert Path("curve.svg").read_text().startswith("<svg")


def test_what_is_missing_is_said_before_anything_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "train.py").write_text("import torch\n")
    with pytest.raises(VerifyError, match=r"nowhere\.py: no such file"):
        job.verify(Request(Path("nowhere.py")), lambda _: None)
    with pytest.raises(VerifyError, match="give CONVERTED"):
        job.verify(Request(Path("train.py"), here=True), lambda _: None)
    with pytest.raises(VerifyError, match="no such interpreter"):
        job.verify(Request(Path("train.py"), python="/nowhere/python"), lambda _: None)
    empty = tmp_path / "python"
    empty.write_text("#!/bin/sh\necho '[null, null]'\n")
    empty.chmod(0o755)
    with pytest.raises(VerifyError, match=r"has no torch\. Name one with --python"):
        job.verify(Request(Path("train.py"), python=str(empty)), lambda _: None)
