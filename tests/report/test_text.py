from __future__ import annotations

import io
from dataclasses import replace

import pytest
from rich.console import Console

from dsmigrate.codemod.model import Accumulation, Change, FileResult, Kind, Status
from dsmigrate.report.text import show
from dsmigrate.report.view import Entry, Report
from tests.report.samples import BROKEN, CONVERTED, REFUSED, UNCHANGED, entry


def shown(report: Report, *, verbose: bool = False, **console: object) -> str:
    out = io.StringIO()
    made = Console(file=out, width=40, highlight=False, markup=False, **console)  # type: ignore[arg-type]
    show(report, made, verbose=verbose)
    return out.getvalue()


def test_a_refused_script_says_where_and_why() -> None:
    assert shown(Report((entry(REFUSED),))) == (
        "gan.py: refused, left as it is\n"
        "  Refused\n"
        "    gan.py:77  MG901  two models are trained  (one engine trains one model)\n"
        "\n"
    )


def test_an_unchanged_script_says_so() -> None:
    assert shown(Report((entry(UNCHANGED),))) == (
        "utils.py: unchanged\n  nothing of DistributedDataParallel to convert in it\n\n"
    )


def test_a_converted_script_lists_what_a_person_has_to_know() -> None:
    report = Report(
        (entry(CONVERTED),), write_command="dsmigrate src/train.py --write", verify_command="dsmigrate verify"
    )
    assert shown(report) == (
        "src/train.py: converted, with work left for you, ZeRO 2\n"
        "  Left for you, marked # TODO(dsmigrate) in the script\n"
        "    src/train.py:200  MG601  the checkpoint is written by a helper of another module  (not seen here)\n"
        "  Behaves differently under DeepSpeed\n"
        "    src/train.py:41  MG801  buffers are broadcast once  (DDP does so at every forward)\n"
        "  Train\n"
        "    torchrun --nproc_per_node=2 src/train.py\n"
        "\n"
        "Nothing is written yet. Next:\n"
        "    dsmigrate src/train.py --write\n"
        "    dsmigrate verify\n"
    )


def test_a_verbose_report_lists_every_decision_by_kind_and_line() -> None:
    report = Report((entry(CONVERTED),), write_command="dsmigrate src/train.py --write")
    assert shown(report, verbose=True) == (
        "src/train.py: converted, with work left for you, ZeRO 2\n"
        "  Left for you, marked # TODO(dsmigrate) in the script\n"
        "    src/train.py:200  MG601  the checkpoint is written by a helper of another module  (not seen here)\n"
        "  Behaves differently under DeepSpeed\n"
        "    src/train.py:41  MG801  buffers are broadcast once  (DDP does so at every forward)\n"
        "  Converted\n"
        "    src/train.py:41   MG101  the DDP wrap becomes deepspeed.initialize\n"
        "    src/train.py:120  MG301  GradScaler gives way to the engine  (fp16 scales in the engine)\n"
        "  Kept as it is\n"
        "    src/train.py:9  MG202  dist.barrier stays  (collectives work as before)\n"
        "  Train\n"
        "    torchrun --nproc_per_node=2 src/train.py\n"
        "    deepspeed src/train.py\n"
        "\n"
        "Nothing is written yet. Next:\n"
        "    dsmigrate src/train.py --write\n"
    )


def test_what_is_said_of_several_lines_stands_once_and_what_is_left_is_not_said_again() -> None:
    note = Change("MG508", Kind.KEPT, 7, 7, "names begin with 'module.'", "")
    left = Change("MG427", Kind.TODO, 5, 5, "check the limit", "")
    told = (left, note, replace(note, line=9))
    result = FileResult("train.py", Status.CONVERTED_WITH_TODOS, told, notes=told)
    assert shown(Report((Entry(result),))) == (
        "train.py: converted, with work left for you\n"
        "  Left for you, marked # TODO(dsmigrate) in the script\n"
        "    train.py:5  MG427  check the limit\n"
        "  Behaves differently under DeepSpeed\n"
        "    train.py:7,9  MG508  names begin with 'module.'\n"
        "\n"
    )


def test_what_is_left_in_another_file_of_the_training_is_left() -> None:
    left = FileResult(
        "engine.py", Status.CONVERTED_WITH_TODOS, (Change("MG427", Kind.TODO, 5, 5, "check the limit", ""),)
    )
    report = Report((Entry(FileResult("train.py", Status.CONVERTED)), Entry(left, of="train.py")))
    assert shown(report).startswith("train.py: converted, with work left for you\n")


def test_a_stage_that_an_option_decides_is_said_so_and_the_figures_are_those_of_one_stage() -> None:
    training = Accumulation("SGD", stage="0 if args.lars else 2")
    result = FileResult("train.py", Status.CONVERTED, config={"zero_optimization": {"stage": 2}}, training=training)
    text = shown(Report((Entry(result),)))
    assert text.startswith("train.py: converted, ZeRO 0 if args.lars else 2\n  Memory and traffic at ZeRO 2\n")


def test_a_file_that_is_new_is_not_counted() -> None:
    new = FileResult("ds_compat.py", Status.CONVERTED)
    report = Report((entry(CONVERTED), entry(UNCHANGED), Entry(new, is_new=True, of=CONVERTED.path)))
    assert shown(report).endswith("2 files: 1 converted with todos, 1 unchanged\n")


def test_a_config_in_the_way_is_said_before_writing_is_proposed() -> None:
    report = Report((entry(CONVERTED, in_the_way=True),), write_command="dsmigrate src/train.py --write")
    assert (
        "src/ds_config.json is there and differs: --force replaces it, --config-name NAME leaves it\n"
        "Nothing is written yet." in shown(report)
    )


def test_after_writing_the_paths_stand_in_place_of_the_proposal() -> None:
    text = shown(Report((entry(CONVERTED),), ("src/train.py", "src/ds_config.json"), "dsmigrate src/train.py --write"))
    assert text.endswith("wrote src/train.py\nwrote src/ds_config.json\n")
    assert "Nothing is written" not in text


def test_of_several_files_those_without_a_decision_are_only_counted() -> None:
    text = shown(Report(tuple(map(entry, (UNCHANGED, CONVERTED, REFUSED, BROKEN)))))
    assert "utils.py" not in text
    assert "  Train\n    torchrun --nproc_per_node=2 src/train.py\n" in text
    assert "old.py: not readable as a training script\n" in text
    assert text.endswith("4 files: 1 converted with todos, 1 unchanged, 1 refused, 1 error\n")


def test_long_lines_are_not_wrapped_and_markup_is_only_text() -> None:
    result = CONVERTED.__class__(
        "x.py",
        REFUSED.status,
        (REFUSED.changes[0].__class__("MG901", REFUSED.changes[0].kind, 1, 1, "a [bold]list[0][/bold] " * 8, ""),),
    )
    assert "a [bold]list[0][/bold] " * 7 in shown(Report((Entry(result),)))


def test_colour_is_only_colour() -> None:
    plain = shown(Report((entry(CONVERTED),)))
    coloured = shown(Report((entry(CONVERTED),)), force_terminal=True, color_system="standard")
    assert "\x1b[" in coloured
    assert "\x1b[" not in plain


@pytest.mark.parametrize(
    ("results", "code"),
    [
        ((), 0),
        ((UNCHANGED,), 0),
        ((CONVERTED,), 1),
        ((UNCHANGED, REFUSED), 1),
        ((CONVERTED, REFUSED, BROKEN), 2),
    ],
)
def test_the_exit_code_tells_what_is_left(results: tuple[object, ...], code: int) -> None:
    assert Report(tuple(map(entry, results))).exit_code == code  # type: ignore[arg-type]
