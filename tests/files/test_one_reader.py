"""Every file of a user is read through ``files/reading.py``: nothing else in the package opens one."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import dsmigrate

pytestmark = pytest.mark.broad

PACKAGE = Path(dsmigrate.__file__).parent
OPENS = {
    "open", "fdopen", "read_text", "read_bytes", "FileIO", "TextIOWrapper", "getline", "getlines", "checkcache",
    "fromfile", "copy2", "copyfile", "copytree", "run_path", "open_code", "read_csv", "memmap",
}  # fmt: skip
OF_MODULES = {
    ("json", "load"),
    ("tomllib", "load"),
    ("hjson", "load"),
    ("pickle", "load"),
    ("tokenize", "open"),
    ("shutil", "copy"),
}
NO_FILES = {"documents"}
"""What has an ``open`` that opens no file."""
NOT_ITS_BUSINESS = {
    "files/reading.py": "the one that reads",
    "files/exchange.py": "copies a file beside itself where there are no hard links",
    "files/journal.py": "opens its own file, to hold a lock on it",
    "files/writing.py": "reads what it is about to replace, and writes",
    "schemas_location.py": "our own facts",
    "codemod/catalogue.py": "our own examples",
    "codemod/runtime": "our own parts, which run inside of the converted script",
    "cli/ci.py": "appends to the file that the runner names",
    "cli/streams.py": "opens the null device",
    "derivation": "a command for developers, over releases of DeepSpeed",
    "facts": "a command for developers, over schemas/",
    "docs": "a command for developers, over docs/",
    "verify/harness": "runs inside of the script that is verified",
    "verify/processes.py": "/proc",
    "verify/reading.py": "what verify itself recorded",
    "verify/running.py": "what verify itself recorded",
}


def opened_in(text: str) -> set[str]:
    """What of a module opens files, by its name."""
    tree = ast.parse(text)
    own = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
    called = {id(node.func) for node in ast.walk(tree) if isinstance(node, ast.Call)}
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and node.attr == "open" and id(node) not in called:
            continue  # a field of that name
        if isinstance(node, ast.Name) and node.id in OPENS - own:
            found.add(node.id)
        elif isinstance(node, ast.Attribute):
            owner = node.value.attr if isinstance(node.value, ast.Attribute) else getattr(node.value, "id", "")
            if (owner, node.attr) in OF_MODULES or (node.attr in OPENS and owner not in NO_FILES):
                found.add(node.attr)
    return found


def test_nothing_but_the_reader_opens_a_file() -> None:
    found = {}
    for file in sorted(PACKAGE.rglob("*.py")):
        name = file.relative_to(PACKAGE).as_posix()
        if not any(name == place or name.startswith(f"{place}/") for place in NOT_ITS_BUSINESS):
            opens = opened_in(file.read_text(encoding="utf-8"))
            if opens:
                found[name] = opens
    assert found == {}


def test_what_is_excepted_is_there() -> None:
    assert all((PACKAGE / place).exists() for place in NOT_ITS_BUSINESS)


def test_every_spelling_of_opening_is_seen() -> None:
    seen = {
        "open(path)", "path.open()", "Path(path).read_bytes()", "path.read_text()", "os.open(path, 0)", "io.open(path)",
        "json.load(stream)", "shutil.copy2(a, b)", "read = path.read_bytes", "linecache.getline(path, 1)",
    }  # fmt: skip
    assert all(opened_in(text) for text in seen)


OUR_OWN = {
    "codemod/runtime",
    "facts/catalogue.py",
    "derivation/run.py",
    "schemas_location.py",
    "verify/launching.py",
    "verify/harness",
}


def test_a_path_of_a_user_is_resolved_by_what_has_an_answer_for_a_link_to_itself() -> None:
    def resolves(node: ast.AST) -> bool:
        return isinstance(node, ast.Call) and ast.unparse(node).endswith(".resolve()")

    found = set()
    for file in sorted(PACKAGE.rglob("*.py")):
        name = file.relative_to(PACKAGE).as_posix()
        if not any(name == place or name.startswith(f"{place}/") for place in OUR_OWN):
            text = file.read_text(encoding="utf-8")
            found |= {
                name for node in ast.walk(ast.parse(text) if ".resolve()" in text else ast.Module()) if resolves(node)
            }
    assert found == set()
