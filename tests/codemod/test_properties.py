"""Any Python file: no exception, and an output that compiles and is stable, or none at all."""

from __future__ import annotations

import os
import warnings
from pathlib import Path

import hypothesmith
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dsmigrate.codemod.model import FileResult, Kind, Options, Status
from tests.support.migrating import migrate_source

pytestmark = [pytest.mark.broad, pytest.mark.filterwarnings("ignore::SyntaxWarning")]
EXAMPLES = sorted(path for path in (Path(__file__).parents[2] / "examples").rglob("*.py") if path.stat().st_size)
OPTIONS = st.builds(
    Options,
    zero_stage=st.sampled_from([None, 0, 1, 2, 3]),
    offload=st.sampled_from(["none", "cpu"]),
    optimizer=st.sampled_from(["keep", "config"]),
    precision=st.sampled_from(["keep", "fp16", "bf16"]),
    config=st.sampled_from([None, {}, {"train_batch_size": 8, "zero_optimization": {"stage": 1}}]),
    target_version=st.sampled_from(["0.9.0", "0.16.9", "0.19.3", "0.19.8"]),
)
GENERAL = settings(
    deadline=None,
    derandomize=os.environ.get("DSMIGRATE_EXPLORE") is None,
    max_examples=int(os.environ.get("DSMIGRATE_EXPLORE", "60")),
    suppress_health_check=list(HealthCheck),
)

GRAMMAR = st.deferred(hypothesmith.from_grammar)  # whose tables take seconds, also of those who only collect tests


@st.composite
def mutated_scripts(draw: st.DrawFn) -> str:
    """Draw an example with lines deleted, doubled, swapped, shifted or cut off, as files in mid-edit are."""
    lines = draw(st.sampled_from(EXAMPLES)).read_text(encoding="utf-8").splitlines(keepends=True)
    for _ in range(draw(st.integers(1, 6))):
        here = draw(st.integers(0, len(lines) - 1))
        there = draw(st.integers(0, len(lines) - 1))
        match draw(st.sampled_from(["delete", "double", "swap", "move", "dedent", "rename"])):
            case "delete" if len(lines) > 1:
                del lines[here]
            case "double":
                lines.insert(here, lines[here])
            case "swap":
                lines[here], lines[there] = lines[there], lines[here]
            case "move":
                lines.insert(there, lines.pop(here))
            case "dedent":
                lines[here] = lines[here].removeprefix("    ")
            case "rename":
                lines[here] = lines[here].replace("model", "net").replace("optimizer", "opt")
    text = "".join(lines)
    return text[: draw(st.integers(0, len(text)))] if draw(st.integers(0, 9)) == 0 else text


def assert_sound(source: bytes, options: Options) -> FileResult:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        result = migrate_source(source, path="train.py", options=options)
        if result.new_source is None:
            assert result.diff == ""
            assert result.config is None
            assert result.status in {Status.UNCHANGED, Status.REFUSED, Status.ERROR}
        else:
            compile(result.new_source, "train.py", "exec", dont_inherit=True)
            assert result.status in {Status.CONVERTED, Status.CONVERTED_WITH_TODOS}
            assert result.diff
    if result.status in {Status.REFUSED, Status.ERROR}:
        assert any(change.kind is Kind.REFUSED for change in result.changes)
    last = source.count(b"\n") + source.count(b"\r") + 1
    for change in (*result.changes, *result.notes):
        assert 1 <= change.line <= change.end_line <= last + 1, change
    assert all(change.code != "MG999" for change in result.changes), result.changes
    return result


@GENERAL
@given(mutated_scripts(), OPTIONS)
def test_a_script_in_mid_edit(text: str, options: Options) -> None:
    result = assert_sound(text.encode(), options)
    if result.new_source is not None:
        again = migrate_source(result.new_source, path="train.py", options=options)
        assert (again.status, again.diff) == (Status.UNCHANGED, ""), again.changes


@GENERAL
@given(GRAMMAR)
def test_any_code_of_the_grammar(text: str) -> None:
    assert_sound(text.encode("utf-8", "surrogatepass"), Options())


@GENERAL
@given(GRAMMAR, st.sampled_from(EXAMPLES))
def test_any_code_around_a_training_script(text: str, example: Path) -> None:
    source = example.read_bytes() + b"\n" + text.encode("utf-8", "surrogatepass")
    assert_sound(source, Options())


@settings(GENERAL, max_examples=200)
@given(st.binary() | st.text().map(str.encode))
def test_any_bytes(source: bytes) -> None:
    assert_sound(source, Options())


@pytest.mark.parametrize("newline", ["\r\n", "\r"])
@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_other_line_ends_give_the_same_conversion(example: Path, newline: str) -> None:
    text = example.read_text(encoding="utf-8")
    plain = assert_sound(text.encode(), Options())
    other = assert_sound(text.replace("\n", newline).encode(), Options())
    assert other.status == plain.status
    assert other.changes == plain.changes
    if plain.new_source is not None:
        assert other.new_source == plain.new_source.replace(b"\n", newline.encode())
