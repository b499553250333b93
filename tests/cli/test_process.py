"""The command as a process: what it imports, what reaches which stream, and how it ends."""

from __future__ import annotations

import os
import pty
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from dsmigrate import __version__
from tests.support.events import PATIENCE

ROOT = Path(__file__).parents[2]
STUBBED = """
import signal, sys
for number, handler in ((signal.SIGINT, signal.default_int_handler), (signal.SIGHUP, signal.SIG_DFL)):
    signal.signal(number, handler)  # whoever starts the tests may ignore them
sys.path[:0] = [{server!r}, {root!r}]
from types import ModuleType
from tests.support import codemod
module = ModuleType("dsmigrate.codemod.convert")
module.Entry, module.convert_together = codemod.Entry, codemod.convert_together
sys.modules[module.__name__] = module
import re
from dsmigrate.migration import job
job._WORDS = re.compile(b"stub")
from dsmigrate.__main__ import main
sys.exit(main())
"""


def command(*arguments: str) -> list[str]:
    code = STUBBED.format(server=str(ROOT / "server"), root=str(ROOT))
    return [sys.executable, "-c", code, *arguments]


def python(code: str) -> str:
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "server")}
    ran = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    return ran.stdout


def test_version_imports_nothing_heavy() -> None:
    code = (
        "import sys; sys.argv = ['dsmigrate', '--version']\nfrom dsmigrate.__main__ import main\nmain()\n"
        "print(sorted({'click', 'rich', 'libcst', 'json', 'pathlib', 'dataclasses'} & set(sys.modules)))"
    )
    assert python(code) == f"dsmigrate {__version__}\n[]\n"


def test_help_imports_neither_libcst_nor_rich() -> None:
    code = (
        "import sys\nfrom dsmigrate.cli.app import run\nassert run(['--help']) == 0\n"
        "print(sorted({'rich', 'libcst'} & set(sys.modules)))"
    )
    assert python(code).endswith("\n[]\n")


def test_help_and_version_are_exit_code_0_and_no_arguments_2() -> None:
    for arguments, code in ((["--help"], 0), (["migrate", "--help"], 0), (["-h"], 0), (["-V"], 0), ([], 2)):
        assert subprocess.run(command(*arguments), capture_output=True, check=False).returncode == code


def test_a_reader_that_has_gone_causes_no_traceback(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("# stub: convert\n")
    process = subprocess.Popen(command(str(tmp_path), "-q"), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout is not None
    process.stdout.close()
    process.stdout = None
    _, errors = process.communicate(timeout=PATIENCE)
    assert (process.returncode, errors) == (2, "")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_an_interrupted_run_ends_quietly_and_leaves_everything(tmp_path: Path, number: signal.Signals) -> None:
    folder, reached = tmp_path / "scripts", tmp_path / "reached"
    folder.mkdir()
    os.mkfifo(reached)
    texts = {folder / f"{index:02}.py": f"# stub: {'wait' if index == 30 else 'convert'}\n" for index in range(60)}
    for path, text in texts.items():
        path.write_text(text)
    process = subprocess.Popen(
        command(str(folder), "--write", "--jobs", "2"),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        env={**os.environ, "STUB_REACHED": str(reached)},
    )
    reached.read_text()  # waits for a worker that is in the middle of its work
    os.killpg(process.pid, number)
    _, errors = process.communicate()
    assert "Traceback" not in errors
    assert process.returncode == 128 + number
    assert {path: path.read_text() for path in folder.iterdir()} == texts


def on_a_terminal(arguments: list[str], folder: Path, **environment: str) -> str:
    """Run the command with stdout and stderr on a pseudo-terminal and return what a person would see."""
    leader, follower = pty.openpty()
    process = subprocess.Popen(
        command(*arguments), cwd=folder, stdout=follower, stderr=follower, env={**os.environ, **environment}
    )
    os.close(follower)
    seen = b""
    while True:
        try:
            part = os.read(leader, 65536)
        except OSError:
            break
        if not part:
            break
        seen += part
    process.wait()
    os.close(leader)
    return seen.decode()


def test_a_person_sees_colour_and_progress_unless_they_ask_for_none(tmp_path: Path) -> None:
    for index in range(60):
        (tmp_path / f"{index}.py").write_text("# stub: convert\n")
    coloured = on_a_terminal([".", "--jobs", "2"], tmp_path, TERM="xterm-256color", NO_COLOR="")
    assert "\x1b[32m+# done ds_config.json None" in coloured
    assert "migrating" in coloured
    plain = on_a_terminal(["."], tmp_path, TERM="xterm-256color", NO_COLOR="1")
    assert "\x1b[32m" not in plain
    assert "+# done ds_config.json None" in plain
