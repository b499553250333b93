"""Text, JSON, page and picture of what was found."""

from __future__ import annotations

import io
import json
import re
import xml.etree.ElementTree as ET
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import jsonschema
import pytest

from dsmigrate.cli import verify as command
from dsmigrate.verify.compare import compare
from dsmigrate.verify.control import Control
from dsmigrate.verify.formats import github, html, junit, text, words
from dsmigrate.verify.formats import json as json_format
from dsmigrate.verify.job import judge
from dsmigrate.verify.model import Ending, Outcome, Resumed, Run, Verdict, Verification
from dsmigrate.verify.resume import continuation
from tests.verify.runs import converted, run, step

SCHEMA = json.loads((Path(__file__).parents[2] / "schemas" / "output" / "verify.schema.json").read_bytes())
CRASH = Outcome(Ending.CRASHED, "torchrun train.py", (1, -6), ("KeyError: 'lr_scheduler'", "killed"))
HANG = Outcome(Ending.TIMED_OUT, "torchrun train.py", (None, None), ("", ""), ("train.py:3 in main (inside of wait)",))


def found(comparison_of: str) -> Verification:
    wrong = converted(lambda one: replace(one, loss=one.loss * 3, norm=(one.norm or 0) * 3) if one.index > 2 else one)
    after = {
        "good": converted(),
        "wrong": wrong,
        "crash": converted(
            steps=2, outcome=CRASH, crashes=({"type": "KeyError", "message": "'x'", "at": "train.py:3"},)
        ),
        "hang": converted(steps=2, outcome=HANG),
        "nothing": converted(steps=0),
        "noise": replace(noisy(), setting=converted().setting),
        "nan": converted(lambda one: replace(one, loss=float("nan"), norm=float("inf")) if one.index > 1 else one),
    }[comparison_of]
    control = (
        Control(run(), lambda steps: replace(noisy(), steps=noisy().steps[:steps]))
        if comparison_of == "noise"
        else None
    )
    return Verification(Path("train.py"), None, "2 of 8 GPUs", (Verdict(2, judge(run(), after, 1.0, control)),))


def noisy() -> Run:
    return replace(run(), steps=tuple(replace(one, loss=one.loss * 1.02) for one in run().steps))


def lines(verification: Verification) -> list[str]:
    return ["".join(piece for piece, _ in line) for line in text.render(verification)]


ALL = ("good", "wrong", "crash", "hang", "nothing", "nan", "noise")


@pytest.mark.parametrize("name", ALL)
def test_json_keeps_its_contract(name: str) -> None:
    jsonschema.Draft7Validator.check_schema(SCHEMA)
    verification = found(name)
    document = json.loads(json_format.render(verification))
    jsonschema.validate(document, SCHEMA, cls=jsonschema.Draft7Validator)
    assert document["agrees"] is (name == "good")
    assert document["verdicts"][0]["zero_stage"] == 2
    assert len(document["run"]["steps"]) == 8


def test_json_counts_steps_from_one() -> None:
    verdict = json_format.document(found("wrong"))["verdicts"][0]
    assert verdict["status"] == "parts"
    assert verdict["differences"][0]["step"] == 4
    assert verdict["run"]["steps"][0]["step"] == 1
    assert verdict["causes"][0]["id"] == "loss-divided-by-accumulation"


def test_the_verdict_comes_first() -> None:
    assert (
        lines(found("good"))[0] == "train.py → its conversion at ZeRO 2: agrees over 8 optimizer steps (full precision)"
    )
    wrong = lines(found("wrong"))
    assert wrong[0].endswith("parts at step 4: loss")
    assert wrong[1].startswith(
        "  loss at step 4: 1.538462 in the original, 4.615385 in the conversion (2.0e+00, allowed"
    )
    assert "  likely cause: the loss is divided by the number of micro-batches twice, or not at all" in "\n".join(wrong)
    assert any(re.match(r"\s+4 +1\.5385 +4\.6154", line) for line in wrong)


def test_agreement_says_how_close_it_is_and_what_measuring_costs() -> None:
    said = "\n".join(lines(found("good")))
    assert "largest relative differences: loss 0, gradient norm 0" in said
    assert (
        "per step: original 20.0 ms, of which 1.0 ms measuring; conversion 20.0 ms, of which 1.0 ms measuring" in said
    )


def test_a_crash_shows_the_exception_the_command_and_the_last_lines() -> None:
    said = lines(found("crash"))
    assert said[0].endswith("the conversion fails after 2 optimizer steps: KeyError: 'x'")
    assert "  KeyError: 'x'" in said
    assert "  at train.py:3" in said
    assert "  $ torchrun train.py" in said
    assert "    KeyError: 'lr_scheduler'" in said
    assert any("a key of the checkpoint is DeepSpeed's own" in line for line in said)


def test_a_hang_says_where_it_stands() -> None:
    said = "\n".join(lines(found("hang")))
    assert "does not end in its time, after 2 optimizer steps" in said
    assert "train.py:3 in main (inside of wait)" in said


def test_what_no_signature_fits_says_so() -> None:
    odd = converted(lambda one: replace(one, norm=(one.norm or 0) * 1.37) if one.index > 2 else one)
    one = Verification(Path("a.py"), Path("b.py"), "CPU", (Verdict(None, compare(run(), odd)),))
    said = "\n".join(lines(one))
    assert "a.py → b.py: parts at step 4: gradient norm" in said
    assert "no known cause fits" in said


def test_a_resumed_run_is_told_with_its_cause() -> None:
    scratch = replace(converted(steps=4), steps=tuple(step(index) for index in range(4)))
    comparison = continuation(converted(), scratch, 4, 1.0)
    resumed = Resumed("converted", 4, comparison)
    one = Verification(Path("a.py"), None, "CPU", (Verdict(2, compare(run(), converted()), resumed),))
    assert not one.agrees
    said = "\n".join(lines(one))
    assert "stopped after step 4 and started again: inputs at step 1: those of the conversion are others" in said
    assert "training starts from the beginning" in said
    jsonschema.validate(json_format.document(one), SCHEMA, cls=jsonschema.Draft7Validator)


@pytest.mark.parametrize("name", ALL)
def test_the_page_is_self_contained_and_its_pictures_are_xml(name: str) -> None:
    page = html.render(found(name))
    assert "<script" not in page
    assert "http://" not in page.replace("http://www.w3.org/2000/svg", "")
    for drawn in re.findall(r"<svg.*?</svg>", page, re.DOTALL):
        ET.fromstring(drawn)  # noqa: S314 - our own


def test_the_picture_has_both_curves_and_marks_where_they_part() -> None:
    drawn = html.svg(found("wrong"))
    root = ET.fromstring(drawn)  # noqa: S314 - our own
    curves = [element for element in root.iter() if element.tag.endswith("polyline")]
    assert len(curves) == 6
    first, second = (curve.attrib["points"].split() for curve in curves[:2])
    assert len(first) == len(second) == 8
    assert first[0] == second[0]
    assert first[3] != second[3]
    assert drawn.count('stroke-dasharray="3 3"') == 3


def test_a_curve_has_gaps_where_it_is_not_a_number() -> None:
    root = ET.fromstring(html.svg(found("nan")))  # noqa: S314 - our own
    curves = [element.attrib["points"].split() for element in root.iter() if element.tag.endswith("polyline")]
    assert [len(points) for points in curves[:2]] == [8, 2]


def test_names_are_escaped() -> None:
    one = replace(found("good"), original=Path("<b>&.py"))
    assert "<b>&.py" not in html.render(one)
    ET.fromstring(html.svg(one))  # noqa: S314 - our own


@pytest.mark.parametrize("name", ALL)
def test_junit_counts_what_parts_and_what_could_not_be_found_out(name: str) -> None:
    top = ET.fromstring(junit.render(found(name)))  # noqa: S314 - our own
    suite = top[0]
    wanted = {"good": ("0", "0"), "noise": ("0", "1")}.get(name, ("1", "0"))
    assert (suite.attrib["tests"], suite.attrib["failures"], suite.attrib["errors"]) == ("1", *wanted)
    (case,) = suite
    assert case.attrib["name"] == "train.py → its conversion at ZeRO 2"
    assert (case[0].text or "").startswith("train.py → its conversion at ZeRO 2: ")


@pytest.mark.parametrize("name", ALL)
def test_github_has_one_command_for_each_stage(name: str) -> None:
    (line,) = github.render(found(name)).splitlines()
    kind = "notice" if name == "good" else "error"
    assert line.startswith(f"::{kind} file=train.py,title=dsmigrate verify%3A train.py → its conversion at ZeRO 2::")
    if name == "wrong":
        assert "%0Alikely cause: the loss is divided by the number of micro-batches twice" in line


def test_the_tables_of_the_page_name_their_columns() -> None:
    page = html.render(found("wrong"))
    heads = re.findall(r'<th scope="col">([^<]*)</th>', page)
    assert heads[:6] == ["quantity", "step", "original", "conversion", "relative difference", "allowed"]
    assert heads[6:9] == ["step", "loss, original", "loss, conversion"]
    for row in re.findall(r"<tr>(.*?)</tr>", page):
        assert row.count("<t") in {6, 9}


def test_how_far_a_run_is_and_how_long_it_takes(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]
    monkeypatch.setattr(command, "time", SimpleNamespace(monotonic=lambda: now[0]))
    said: list[str] = []
    progress = command.Progress(io.StringIO(), said.append)
    for seconds, taken in ((0.0, 0), (20.0, 0), (40.0, 4), (60.0, 8), (80.0, 12)):
        now[0] = seconds
        progress("original", taken, 20)
    assert said == ["  original: step 4 of 20", "  original: step 12 of 20, about 40 s left"]
    said.clear()
    progress("converted", 0, 20)
    now[0] = 200.0
    progress("converted", 0, 20)
    assert said == ["  converted: before its first step"]


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (1.0, "1"),
        (0.5, "0.5"),
        ((0.1, 0.1), "0.1"),
        ((0.1, 0.2), "0.1, 0.2"),
        (None, "none"),
        (float("inf"), "inf"),
        (7, "7"),
    ],
)
def test_numbers_for_people(value: object, shown: str) -> None:
    assert words.number(value) == shown
