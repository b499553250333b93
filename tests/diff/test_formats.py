from __future__ import annotations

import re
from html.parser import HTMLParser
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from dsmigrate.cli.app import run
from dsmigrate.diff.changed import Entry, Outcome, Status, compare_all
from dsmigrate.diff.formats import github, html, junit, markdown, text
from dsmigrate.diff.formats.picture import draw, figures, size
from dsmigrate.diff.job import Source
from dsmigrate.memory import usage
from dsmigrate.settings.check import CheckSettings
from dsmigrate.settings.diff import DiffSettings

Captured = pytest.CaptureFixture[str]
OLD = """{
  "train_batch_size": 8,
  "gradient_clipping": 0.5,
  "fp16": {
    "enabled": true,
    "loss_scale": 128
  },
  "zero_optimization": {"stage": 2}
}
"""
NEW = """{
  // naïve
  "train_batch_size": 16,
  "fp16": {
    "enabled": true
  },
  "zero_optimization": {"stage": 2},
  "steps_per_print": 10
}
"""
HOSTILE = '{"train_batch_size": 8, "`` <script>alert(1)</script> @octocat [x](y)\\u0007": "*`]]>&"}'


def outcome(
    old: str,
    new: str | bytes,
    name: str = "configs/ds.json",
    before: str | None = None,
    settings: DiffSettings | None = None,
) -> Outcome:
    data = new if isinstance(new, bytes) else new.encode()
    sources = Source(before or name, old.encode(), Path()), Source(name, data, Path())
    status = Status.CHANGED if before is None else Status.RENAMED
    return compare_all((Entry(status, *sources),), settings or DiffSettings())[0]


def test_annotations_stand_at_the_line_of_the_new_file_and_of_the_section_for_what_is_gone() -> None:
    lines = github.render((outcome(OLD, NEW),)).splitlines()
    found = {}
    for line in lines:
        match = re.match(
            r"::(error|warning|notice) file=configs/ds\.json,line=(\d+),endLine=\d+(,col=\d+,endColumn=\d+)?,", line
        )
        assert match, line
        found.setdefault(match[2], []).append(line)
    assert set(found) == {"1", "3", "4", "8"}
    assert "clip" in found["1"][0].lower()
    assert "scale" in found["4"][0].lower()
    assert ",col=3,endColumn=25," in found["3"][0]


def test_a_file_that_cannot_be_compared_is_an_annotation_of_its_own() -> None:
    (line,) = github.render((outcome("{}", b"\xff\x00"),)).splitlines()
    assert line.startswith("::error file=configs/ds.json::Cannot be compared: ")


def test_markdown_of_a_pair_is_the_same_every_time_and_keeps_its_heading() -> None:
    compared = outcome(OLD, NEW).compared
    again = outcome(OLD, NEW).compared
    assert compared is not None
    assert again is not None
    text = markdown.render(compared)
    assert text == markdown.render(again)
    assert text.startswith("### `configs/ds.json` → `configs/ds.json`\n\n**")
    assert "  - `train_batch_size`: `8` → `16`" in text


def test_markdown_of_several_folds_each_and_links_to_lines() -> None:
    changed, same = outcome(OLD, NEW, before="old.json"), outcome(OLD, OLD, "same.json")
    text = markdown.render_all((changed, same), link=lambda path, line: f"https://host/{path}#L{line}", marker=True)
    lines = text.splitlines()
    assert lines[0] == markdown.MARKER
    assert lines[3].startswith("- **`old.json → configs/ds.json`** (renamed): Changes training: ")
    assert lines[4] == "- **`same.json`**: No semantic change"
    assert "([line 3](https://host/configs/ds.json#L3))" in text
    assert text.count("<details") == text.count("</details>") == text.count("<summary>")
    assert markdown.render_all(()) == "## DeepSpeed configs\n\nNo DeepSpeed config is changed.\n"


@pytest.mark.parametrize("limit", [200, 1000, 3000])
def test_markdown_never_exceeds_its_limit(limit: int) -> None:
    outcomes = tuple(outcome(OLD, NEW, f"ds_{number}.json") for number in range(9))
    assert len(markdown.render_all(outcomes, limit=limit)) <= limit


def test_nothing_of_a_config_becomes_markdown() -> None:
    text = markdown.render_all((outcome("{}", HOSTILE),), show_all=True)
    outside = re.sub(r"`[^`\n]*`", "", text)
    assert "octocat" not in outside.replace("&#64;octocat", "")
    assert "<script" not in outside
    assert "[x]" not in outside.replace("\\[x]", "")


class Page(HTMLParser):
    """The tags of a page, whether each is closed, and its text."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.opened: list[str] = []
        self.seen: list[str] = []
        self.addresses: list[str] = []
        self.text = ""
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.append(tag)
        self.addresses += [value or "" for name, value in attrs if name in {"src", "href"}]
        if tag != "meta":
            self.opened.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:  # noqa: ARG002
        self.seen.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.opened.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


def test_the_page_is_well_formed_and_loads_nothing() -> None:
    page = Page(html.render((outcome(OLD, NEW), outcome(OLD, OLD, "same.json"), outcome("{}", HOSTILE, "<b>.json"))))
    assert page.opened == []
    assert {"script", "link", "img", "b"}.isdisjoint(page.seen)
    assert all(address.startswith("https://github.com/dsmigrate/dsmigrate/") for address in page.addresses)
    assert "<script>alert(1)</script>" in page.text
    assert "same.json changed\nNo semantic change.\n" in page.text
    assert re.search(r"train_batch_size\s*8\s*→\s*16", page.text)


def test_without_figures_the_page_has_no_picture() -> None:
    assert "svg" not in Page(html.render((outcome(OLD, NEW),))).seen


def test_the_picture_has_bars_in_one_scale_and_names_every_figure() -> None:
    gib = 1 << 30
    text = draw(
        {"parameters": 14 * gib, "optimizer <states>": 42 * gib}, {"parameters": 14 * gib, "gradients": 7 * gib}
    )
    root = ET.fromstring(text)  # noqa: S314 - our own
    bars = [bar for bar in root if bar.tag == "rect" and bar.get("height") == "26"]
    widths = [float(bar.get("width", "")) for bar in bars]
    assert widths == pytest.approx([140, 420, 140, 70])
    assert len({bars[0].get("fill"), bars[2].get("fill")}) == 1
    assert len({bar.get("fill") for bar in bars}) == 3
    texts = [element.text for element in root.iter("text")]
    assert "56.0 GiB" in texts
    assert "21.0 GiB" in texts
    assert "optimizer <states>: 42.0 GiB → 0 B" in texts
    assert root.get("aria-label") == "Memory per GPU, without activations: 56.0 GiB before, 21.0 GiB after"


@pytest.mark.parametrize("stage", [0, 1, 2, 3])
def test_with_figures_the_page_shows_the_peak_of_both_sides(stage: int) -> None:
    config = OLD.replace('"stage": 2', f'"stage": {stage}')
    settings = DiffSettings(check=CheckSettings(world_size=8, parameters=7_000_000_000))
    compared = outcome(OLD, config, settings=settings).compared
    assert compared is not None
    for view, shown in zip((compared.old, compared.new), figures(compared), strict=True):
        found = usage(view.context)
        assert found is not None
        assert sum(shown.values()) == found.peak()
    page = Page(html.render((outcome(OLD, config, settings=settings),)))
    assert page.seen.count("svg") == 1
    assert page.seen.count("rect") > 4


@pytest.mark.parametrize(("count", "text"), [(0, "0 B"), (1023, "1023 B"), (1536, "1.5 KiB"), (80 << 30, "80.0 GiB")])
def test_sizes_are_binary(count: int, text: str) -> None:
    assert size(count) == text


def test_junit_has_a_suite_for_a_config_and_failures_from_a_severity_on() -> None:
    outcomes = (outcome(OLD, NEW), outcome(OLD, OLD, "same.json"), outcome("{}", b"\xff\x00", "broken.json"))
    root = ET.fromstring(junit.render(outcomes, "warning").encode())  # noqa: S314 - our own
    suites = {suite.get("name"): suite for suite in root}
    assert set(suites) == {"configs/ds.json", "same.json", "broken.json"}
    batch = next(case for case in suites["configs/ds.json"] if "train_batch_size" in case.get("name", ""))
    assert batch.get("line") == "3"
    assert batch.find("failure") is not None
    assert suites["same.json"].attrib == {"name": "same.json", "tests": "1", "failures": "0", "errors": "0"}
    assert suites["broken.json"].get("errors") == "1"
    assert root.get("tests") == str(sum(1 for _ in root.iter("testcase")))
    quiet = ET.fromstring(junit.render(outcomes, "never").encode())  # noqa: S314 - our own
    assert quiet.get("failures") == "0"


def test_junit_holds_any_text() -> None:
    root = ET.fromstring(junit.render((outcome("{}", HOSTILE, "a\x07<.json"),), "info").encode())  # noqa: S314 - our own
    assert root[0].get("name") == "a\N{REPLACEMENT CHARACTER}<.json"


@pytest.mark.parametrize(
    ("form", "begins"),
    [
        ("markdown", "## DeepSpeed configs\n"),
        ("github", "::"),
        ("html", "<!doctype html>\n"),
        ("junit", '<?xml version="1.0" encoding="utf-8"?>\n<testsuites '),
    ],
)
def test_the_command_prints_each_format_for_a_pair(tmp_path: Path, capsys: Captured, form: str, begins: str) -> None:
    old, new = tmp_path / "old.json", tmp_path / "new.json"
    old.write_text(OLD, encoding="utf-8")
    new.write_text(NEW, encoding="utf-8")
    assert run(["diff", str(old), str(new), "--format", form]) == 1
    assert capsys.readouterr().out.startswith(begins)


def test_a_key_with_another_name_is_shown_as_both_files_have_it() -> None:
    old = '{"train_batch_size": 8, "zero_optimization": {"stage": 2, "cpu_offload": true}}'
    new = '{"train_batch_size": 8, "zero_optimization": {"stage": 2, "offload_optimizer": {"device": "cpu"}}}'
    one = outcome(old, new)
    assert one.compared is not None
    lines = ["".join(piece for piece, _ in line) for line in text.render(one.compared, show_all=True)]
    assert '  zero_optimization.cpu_offload → zero_optimization.offload_optimizer.device: true → "cpu"' in lines
    renamed = '`zero_optimization.cpu_offload` → `zero_optimization.offload_optimizer.device`: `true` → `"cpu"`'
    assert renamed in markdown.render_all((one,))
    short = '{"train_batch_size": 8, "zero_optimization": {"stage": 3, "prefetch_bucket_size": 5}}'
    text_ = markdown.render_all((outcome(short, short.replace("prefetch", "stage3_prefetch")),))
    assert "`zero_optimization.prefetch_bucket_size` → `zero_optimization.stage3_prefetch_bucket_size`: `5`\n" in text_


def test_configs_with_one_verdict_share_a_line() -> None:
    outcomes = (*(outcome(OLD, NEW, name) for name in ("a.json", "b.json")), outcome(OLD, OLD, "c.json"))
    rows = [line for line in markdown.render_all(outcomes).splitlines() if line.startswith("- **`")]
    assert rows[0].startswith("- **`a.json`**, **`b.json`**: Changes training: ")
    assert rows[1:] == ["- **`c.json`**: No semantic change"]


def test_keys_of_which_the_same_is_said_stand_under_one_sentence() -> None:
    old = '{"train_batch_size": 8, "gradient_clipping": 0.5, "fp16": {"enabled": true}}'
    written = ', "hysteresis": 2, "loss_scale": 0, "min_loss_scale": 1}'
    report = markdown.render_all((outcome(old, old.replace("0.5", "1.5").replace("true}", f"true{written}")),))
    assert report.count("writing it changes nothing") == 1
    assert "<summary>3 without effect</summary>" in report
    assert report.count("  - `fp16.") == 3


def test_what_does_nothing_is_folded_once_where_nothing_else_is_said() -> None:
    report = markdown.render_all((outcome('{"train_batch_size": 8}', '{"train_batch_size": 8, "_note": 1}'),))
    assert report.count("<details") == report.count("<summary") == 1


def test_counts_agree_with_their_nouns() -> None:
    old = '{"train_batch_size": 8, "gradient_clipping": 0.5, "steps_per_print": 10}'
    single = markdown.render_all((outcome(old, old.replace("0.5", "1.5").replace("10", "20")),))
    assert "1 needs review, 1 other effect<" in single
    two = old.replace('"train_batch_size": 8', '"train_batch_size": 16').replace("0.5", "1.5")
    assert "2 need review<" in markdown.render_all((outcome(old, two),))


def test_what_is_about_an_unknown_key_that_stays_stands_at_its_line() -> None:
    old = '{\n"train_batch_size": 8, "zero_optimization": {"stage": 1,\n"comm_overlap": true}}'
    one = outcome(old, old.replace("1,", "2,"))
    assert one.compared is not None
    lines = ["".join(piece for piece, _ in line) for line in text.render(one.compared)]
    assert "warning[DF112] validity  configs/ds.json:3" in lines
