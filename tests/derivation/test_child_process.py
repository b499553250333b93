from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from dsmigrate.derivation import run
from dsmigrate.derivation.errors import DerivationError
from dsmigrate.derivation.release import derive
from tests.derivation.fake import keys, release


def test_code_that_fails_is_named_with_release_file_and_line(tmp_path: Path) -> None:
    root = release(
        tmp_path, module="from .other_config import x\n", files={"runtime/other_config.py": "\n\nx = 1 / 0\n"}
    )
    with pytest.raises(DerivationError) as caught:
        keys(root)
    assert str(caught.value) == (
        "DeepSpeed 0.0.1: ImportError: deepspeed.runtime.config cannot be run: ZeroDivisionError: division by zero "
        "(deepspeed/runtime/other_config.py, line 3)"
    )


def test_a_release_without_the_functions_the_walk_starts_from_is_an_error(tmp_path: Path) -> None:
    root = release(tmp_path, files={"runtime/config.py": "class Config:\n    pass\n"})
    with pytest.raises(DerivationError, match=r"0\.0\.1: .*no attribute 'DeepSpeedConfig'"):
        keys(root)


def test_a_reader_that_lost_its_function_is_an_error_and_no_silent_gap(tmp_path: Path) -> None:
    root = release(tmp_path, files={"module_inject/autotp_config.py": "class AutoTPConfig:\n    pass\n"})
    with pytest.raises(DerivationError, match="from_dict"):
        keys(root)


def test_a_part_of_the_config_given_to_code_that_is_not_run_is_an_error_and_no_silent_gap(tmp_path: Path) -> None:
    initialize = 'self.compile = get_compile_config(param_dict["compile"])'
    root = release(tmp_path, module="from .compiling import get_compile_config", initialize=initialize)
    with pytest.raises(DerivationError) as caught:
        keys(root)
    assert str(caught.value) == (
        "DeepSpeed 0.0.1: WalkError: DeepSpeedConfig gives deepspeed.runtime.compiling.get_compile_config compile, "
        "and its module is none of READERS"
    )


def test_the_whole_config_given_away_at_run_time_is_an_error_too(tmp_path: Path) -> None:
    engine = "from deepspeed.runtime.other import Other\nfrom deepspeed.runtime.zero.stage3 import Stage3"
    assert keys(release(tmp_path, engine=engine, methods="def a(self):\n    Stage3(ds_config=self.config)")) == {}
    with pytest.raises(DerivationError, match=r"deepspeed\.runtime\.other\.Other gets the whole config"):
        keys(release(tmp_path, engine=engine, methods="def a(self):\n    Other(ds_config=self.config)"))


def test_a_release_without_config_code_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(DerivationError, match=r"DeepSpeed 0\.9\.0: .* holds no deepspeed/runtime/config\.py"):
        derive("0.9.0", tmp_path)


def test_code_that_hangs_is_stopped(tmp_path: Path) -> None:
    root = release(tmp_path, module="while True: pass")
    with pytest.raises(DerivationError, match="took more than 2 seconds"):
        run.run_config_code("0.0.1", root, seconds=2)


@pytest.mark.parametrize(
    ("code", "event"),
    [
        ('import socket; socket.create_connection(("127.0.0.1", 9))', "socket."),
        ('import subprocess; subprocess.run(["true"])', "subprocess.Popen"),
        ('os.system("true")', "os.system"),
        ('open("written", "w")', "open"),
        ('os.mkdir("made")', "os.mkdir"),
    ],
)
def test_code_of_a_release_cannot_reach_out(tmp_path: Path, code: str, event: str) -> None:
    with pytest.raises(DerivationError, match=f"PermissionError: the code of a release may not use {event}"):
        keys(release(tmp_path, module=code))
    assert [path.name for path in tmp_path.iterdir()] == ["deepspeed"]


def test_what_a_release_prints_does_not_spoil_the_facts(tmp_path: Path) -> None:
    root = release(tmp_path, module='print("hello")\nos.write(1, b"more")', initialize='param_dict.get("a", 1)')
    assert sorted(keys(root)) == ["a"]


def test_nothing_of_the_environment_reaches_the_release(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SECRET_TOKEN", "x")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    (tmp_path / "hjson.py").write_text("raise RuntimeError('not isolated')\n", encoding="utf-8")
    root = release(
        tmp_path / "r", module='assert "SECRET_TOKEN" not in os.environ', initialize='param_dict.get("a", 1)'
    )
    assert sorted(keys(root)) == ["a"]


def test_no_bytecode_is_written_beside_the_sources(tmp_path: Path) -> None:
    root = release(tmp_path, initialize='param_dict.get("a", 1)')
    keys(root)
    assert not list(root.rglob("__pycache__"))


def test_pydantic_is_asked_for_when_it_is_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    with pytest.raises(DerivationError, match=r"needs pydantic; install dsmigrate with the extra \[derive\]"):
        keys(release(tmp_path))


def test_the_package_itself_needs_no_pydantic() -> None:
    server = Path(run.__file__).resolve().parents[2]
    code = f"import sys; sys.path.insert(0, {str(server)!r}); import dsmigrate.derivation.cli"
    code += "; print('pydantic' in sys.modules)"
    assert subprocess.check_output([sys.executable, "-c", code], text=True) == "False\n"
