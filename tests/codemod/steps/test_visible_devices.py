"""MG225: a script that sets CUDA_VISIBLE_DEVICES below the import of deepspeed."""

from __future__ import annotations

import pytest

from dsmigrate.codemod.model import Kind
from tests.codemod.checks import convert, migrate, script


@pytest.mark.parametrize(
    "line",
    [
        'os.environ["CUDA_VISIBLE_DEVICES"] = args.output',
        'os.environ.setdefault("CUDA_VISIBLE_DEVICES", "2,3")',
        'os.environ.update({"CUDA_VISIBLE_DEVICES": "2,3"})',
        'os.environ.update(CUDA_VISIBLE_DEVICES="2,3")',
        'os.putenv("CUDA_VISIBLE_DEVICES", "2,3")',
    ],
)
def test_it_has_no_effect_in_a_function_or_below_the_imports(line: str) -> None:
    convert(end=line).said("MG225", line, Kind.TODO)
    assert "set CUDA_VISIBLE_DEVICES for the launcher" in convert(options=line).said("MG225", line, Kind.TODO).message


@pytest.mark.parametrize("line", ['print(os.environ["CUDA_VISIBLE_DEVICES"])', 'os.environ["OMP_NUM_THREADS"] = "1"'])
def test_reading_it_is_no_matter(line: str) -> None:
    convert(end=line).silent("MG225")


def test_above_the_imports_it_counts() -> None:
    migrate('import os\nos.environ["CUDA_VISIBLE_DEVICES"] = "2,3"\n' + script()).silent("MG225")
