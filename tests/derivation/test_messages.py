from __future__ import annotations

import json
import zipfile
from pathlib import Path

import pytest

from dsmigrate.derivation import messages
from dsmigrate.derivation.errors import DerivationError
from dsmigrate.derivation.sources import Sources

PACKAGES = """
[deepspeed]
modules = ["deepspeed/*", "csrc/*"]
searched = ["csrc/*"]
raises = "RuntimeError"
without = ["deepspeed/inference/*"]
[torch]
releases = ["2.6.0"]
modules = ["torch/amp/*"]
searched = ["torch/lib/*.so"]
raises = "RuntimeError"
"""
TABLE = """
[a]
package = "torch"
text = ["GPU {} is out of memory", "nobody says {} this"]
[b]
package = "deepspeed"
printed = ["{} bytes of the buffer, {} of the file"]
text = ["the state {} is of another kind"]
python = [
    { text = "'Offload' object has no attribute 'step'", line = "class Offload:", raises = "AttributeError" },
    { text = "assert norm > 0.", line = "assert norm > 0.", raises = "AssertionError" },
]
"""


def derived(
    tmp_path: Path, sources: dict[str, dict[str, str]], packages: tuple[str, ...] = ()
) -> dict[str, dict[str, object]]:
    folder = tmp_path / "schemas"
    (folder / "messages").mkdir(parents=True)
    (folder / "messages" / "packages.toml").write_text(PACKAGES, encoding="utf-8")
    (folder / "messages.toml").write_text(TABLE, encoding="utf-8")
    for release, files in sources.items():
        for name, text in {"deepspeed/__init__.py": "", "csrc/a.cpp": "", "setup.py": "", **files}.items():
            path = tmp_path / "cache" / release / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
    wheels = tmp_path / "wheels"
    wheels.mkdir()
    with zipfile.ZipFile(wheels / "torch-2.6.0-cp311-none-any.whl", "w") as wheel:
        wheel.writestr("torch/amp/scaler.py", "assert scale, 'the scale of the step is missing'")
        wheel.writestr("torch/nn/other.py", "assert scale, 'the scale of the module is missing'")
        wheel.writestr("torch/lib/libc10.so", b"\x7fELF\0GPU \0 is out of memory\0nobody says \0")
    made = messages.derive(folder, Sources(cache=tmp_path / "cache", index_url=""), list(sources), packages)
    return {path.stem: json.loads(text) for path, text in made.items()}


def test_texts_are_told_with_their_releases_and_their_newest_place(tmp_path: Path) -> None:
    always, moved = "raise ValueError('the stage is always wrong')", "raise ValueError('the stage is at times wrong')"
    found = derived(
        tmp_path,
        {
            "0.9.0": {"deepspeed/a.py": always, "deepspeed/b.py": moved, "deepspeed/inference/c.py": moved},
            "0.9.1": {"deepspeed/new.py": always},
            "0.9.2": {"deepspeed/new.py": always, "deepspeed/b.py": moved},
        },
    )
    assert found["deepspeed"]["releases"] == ["0.9.0", "0.9.1", "0.9.2"]
    assert found["deepspeed"]["texts"] == {
        "the stage is always wrong": ["deepspeed/new.py", "ValueError", [["0.9.0", "0.9.2"]]],
        "the stage is at times wrong": ["deepspeed/b.py", "ValueError", [["0.9.0", "0.9.0"], ["0.9.2", "0.9.2"]]],
    }


def test_a_text_of_a_library_is_looked_for_piece_by_piece(tmp_path: Path) -> None:
    found = derived(tmp_path, {"0.9.0": {}})
    assert found["torch"]["texts"] == {
        "GPU {} is out of memory": ["torch/lib/libc10.so", "RuntimeError", [["2.6.0", "2.6.0"]]],
        "the scale of the step is missing": ["torch/amp/scaler.py", "AssertionError", [["2.6.0", "2.6.0"]]],
    }


def test_what_python_says_of_a_line_is_told_of_the_releases_that_have_the_line(tmp_path: Path) -> None:
    found = derived(
        tmp_path,
        {
            "0.9.0": {"deepspeed/a.py": "class Offload:\n    assert norm > 0.\n"},
            "0.9.1": {"deepspeed/a.py": "class Offload:\n    pass\n", "deepspeed/inference/b.py": "assert norm > 0.\n"},
        },
    )
    assert found["deepspeed"]["texts"] == {
        "'Offload' object has no attribute 'step'": ["deepspeed/a.py", "AttributeError", [["0.9.0", "0.9.1"]]],
        "assert norm > 0.": ["deepspeed/a.py", "AssertionError", [["0.9.0", "0.9.0"]]],
    }


def test_cpp_is_searched_for_what_it_raises_and_prints_and_for_lines(tmp_path: Path) -> None:
    printed = 'cerr << bytes << " bytes of the buffer, " << file << " of the file";'
    raised = 'throw std::runtime_error("the state "s + name + " is of another kind");'
    found = derived(tmp_path, {"0.9.0": {"csrc/a.cpp": printed}, "0.9.1": {"csrc/a.cpp": f"{raised} assert norm > 0."}})
    assert found["deepspeed"]["texts"] == {
        "{} bytes of the buffer, {} of the file": ["csrc/a.cpp", "stderr", [["0.9.0", "0.9.0"]]],
        "the state {} is of another kind": ["csrc/a.cpp", "RuntimeError", [["0.9.1", "0.9.1"]]],
        "assert norm > 0.": ["csrc/a.cpp", "AssertionError", [["0.9.1", "0.9.1"]]],
    }


def test_releases_before_those_that_are_known_are_read_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(globals(), "PACKAGES", PACKAGES.replace("[deepspeed]", '[deepspeed]\nearlier = ["0.8.3"]'))
    said = "raise ValueError('the stage is always wrong')"
    for release in ("0.8.3", "0.9.0"):
        path = tmp_path / "cache" / release / "deepspeed" / "a.py"
        path.parent.mkdir(parents=True)
        path.write_text(said, encoding="utf-8")
    for part in ("csrc/a.cpp", "setup.py", "deepspeed/__init__.py"):
        path = tmp_path / "cache" / "0.8.3" / part
        path.parent.mkdir(exist_ok=True)
        path.touch()
    found = derived(tmp_path, {"0.9.0": {}})
    assert found["deepspeed"]["releases"] == ["0.8.3", "0.9.0"]
    assert found["deepspeed"]["texts"] == {
        "the stage is always wrong": ["deepspeed/a.py", "ValueError", [["0.8.3", "0.9.0"]]]
    }


def test_only_the_packages_that_are_named_are_read(tmp_path: Path) -> None:
    assert derived(tmp_path, {"0.9.0": {}}, ("deepspeed",)).keys() == {"deepspeed"}


def test_a_module_that_does_not_parse_is_named(tmp_path: Path) -> None:
    with pytest.raises(DerivationError, match=r"deepspeed/a\.py"):
        derived(tmp_path, {"0.9.0": {"deepspeed/a.py": "def"}})
