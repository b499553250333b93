"""``ds_compat.py`` is put together of the parts: what is asked for, what that needs, and nothing else."""

from __future__ import annotations

import ast
import sys
from itertools import combinations

import pytest
from pyflakes.api import check
from pyflakes.reporter import Reporter

from dsmigrate.codemod.runtime.assemble import Assembled, Origin, assemble
from dsmigrate.codemod.runtime.sources import PARTS, sources

NAMES = sorted(
    node.name
    for source in sources().values()
    for node in ast.parse(source).body
    if isinstance(node, ast.FunctionDef | ast.ClassDef)
)
SMALL = {
    "low": '"""Low things."""\n\nimport os\nfrom typing import Any\n\n\n'
    "def low(x: Any) -> str:\n    return os.fspath(x)\n\n\n# Spare.\nSPARE = 1\n",
    "high": '"""High things."""\n\nimport torch\nimport os\n\nfrom dsmigrate.codemod.runtime.low import low\n\n\n'
    "def high() -> str:\n    return low(torch) + helper()\n\n\ndef helper() -> str:\n    return 'x'\n\n\n"
    "def apart() -> str:\n    return os.getcwd()\n",
}


def defined(text: str) -> list[str]:
    return [node.name for node in ast.parse(text).body if isinstance(node, ast.FunctionDef | ast.ClassDef)]


def written(*names: str, existing: str | None = None, release: str = "1.2.3") -> str:
    return assemble(names, SMALL, release, existing).text


def test_a_file_has_what_was_asked_for_and_what_that_needs() -> None:
    assert written("high") == (
        '"""What the converted training scripts of this project need besides DeepSpeed.\n'
        "\n"
        "Written by dsmigrate 1.2.3. It is yours now: edit it freely. If another script of the project is converted,\n"
        "dsmigrate adds what that one needs, and keeps your changes.\n"
        '"""\n'
        "# parts: high\n"
        "# sha256: DIGEST\n"
        "\n"
        "from __future__ import annotations\n"
        "\n"
        "import os\n"
        "from typing import Any\n"
        "\n"
        "import torch\n"
        "\n"
        "\n"
        "# Low things.\n"
        "\n"
        "\n"
        "def low(x: Any) -> str:\n"
        "    return os.fspath(x)\n"
        "\n"
        "\n"
        "# High things.\n"
        "\n"
        "\n"
        "def high() -> str:\n"
        "    return low(torch) + helper()\n"
        "\n"
        "\n"
        "def helper() -> str:\n"
        "    return 'x'\n"
    ).replace("DIGEST", written("high").partition("sha256: ")[2][:16])


def test_the_order_in_which_names_are_asked_for_does_not_matter() -> None:
    assert written("apart", "high") == written("high", "apart", "high")


def test_a_second_run_changes_nothing() -> None:
    once = written("high")
    again = assemble(["high"], SMALL, "1.2.3", once)
    assert (again.text, again.origin) == (once, Origin.OURS)


def test_a_second_script_adds_what_it_needs() -> None:
    assert written("apart", existing=written("high")) == written("apart", "high")


def test_an_unchanged_file_follows_a_new_release() -> None:
    old = written("high", release="1.0.0")
    newer = SMALL | {"high": SMALL["high"].replace("'x'", "'y'")}
    found = assemble(["apart"], newer, "2.0.0", old)
    assert found == assemble(["apart", "high"], newer, "2.0.0") or found.origin is Origin.OURS
    assert found.text == assemble(["apart", "high"], newer, "2.0.0").text


def test_many_names_are_read_again() -> None:
    once = assemble(NAMES, sources(), "1.2.3").text
    assert assemble(["load_config"], sources(), "1.2.3", once) == assemble(NAMES, sources(), "1.2.3", once)
    assert assemble(["load_config"], sources(), "1.2.3", once).text == once


def test_line_ends_of_git_are_no_edit_and_stay() -> None:
    text = written("high").replace("\n", "\r\n")
    assert assemble(["high"], SMALL, "1.2.3", text) == Assembled(text, Origin.OURS)


@pytest.mark.parametrize(
    "edit",
    [
        lambda text: text.replace("'x'", "'mine'"),
        lambda text: text + "\n\ndef mine() -> None:\n    pass\n",
        lambda text: "".join(line for line in text.splitlines(keepends=True) if "sha256" not in line),
    ],
)
def test_an_edited_file_is_kept_and_completed(edit: object) -> None:
    assert callable(edit)
    edited = edit(written("high"))
    same = assemble(["high"], SMALL, "2.0.0", edited)
    more = assemble(["apart"], SMALL, "2.0.0", edited)
    assert (same.text, same.origin) == (edited, Origin.EDITED)
    assert more.origin is Origin.EDITED
    assert more.text.startswith(edited.rstrip())
    assert more.text.endswith("\n\n\n# High things.\n\n\ndef apart() -> str:\n    return os.getcwd()\n")
    assert assemble(["apart"], SMALL, "2.0.0", more.text).text == more.text


def test_imports_that_an_edited_file_lacks_are_added() -> None:
    edited = written("apart") + "\nmine = 1\n"
    added = assemble(["high"], SMALL, "2.0.0", edited).text.removeprefix(edited)
    assert added.startswith("\n\nfrom typing import Any\n\nimport torch\n\n\n# Low things.\n")
    ast.parse(edited + added)


def test_an_edited_file_keeps_its_line_ends() -> None:
    edited = (written("high") + "\nmine = 1\n").replace("\n", "\r\n")
    text = assemble(["apart"], SMALL, "2.0.0", edited).text
    assert text.startswith(edited)
    assert "\n" not in text.replace("\r\n", "")


def test_a_file_of_the_project_is_left_alone() -> None:
    found = assemble(["high"], SMALL, "1.2.3", "import os\n")
    assert (found.text, found.origin) == ("import os\n", Origin.FOREIGN)


def test_an_unknown_name_is_refused() -> None:
    with pytest.raises(ValueError, match="no part defines nowhere, there"):
        assemble(["there", "high", "nowhere"], SMALL, "1.2.3")


def test_no_two_parts_define_the_same_name() -> None:
    assert len(NAMES) == len(set(NAMES))


def test_parts_bind_a_name_to_the_same_import() -> None:
    bound: dict[str, str] = {}
    for source in sources().values():
        for node in ast.parse(source).body:
            if isinstance(node, ast.Import | ast.ImportFrom):
                for alias in node.names:
                    text = ast.unparse(type(node)(**{**vars(node), "names": [alias]}))
                    assert bound.setdefault(alias.asname or alias.name, text) == text


@pytest.mark.parametrize("part", PARTS)
def test_a_part_imports_the_standard_library_torch_deepspeed_and_parts_before_it(part: str) -> None:
    allowed = {*sys.stdlib_module_names, "torch", "deepspeed"}
    for node in ast.walk(ast.parse(sources()[part])):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("dsmigrate."):
            assert (node.module or "").rpartition(".")[2] in PARTS[: PARTS.index(part)]
        elif isinstance(node, ast.ImportFrom):
            assert (node.module or "").partition(".")[0] in allowed
        elif isinstance(node, ast.Import):
            assert {alias.name.partition(".")[0] for alias in node.names} <= allowed


@pytest.mark.parametrize("name", NAMES)
def test_each_definition_is_documented(name: str) -> None:
    nodes = [node for source in sources().values() for node in ast.walk(ast.parse(source))]
    node = next(n for n in nodes if isinstance(n, ast.FunctionDef | ast.ClassDef) and n.name == name)
    assert ast.get_docstring(node)


@pytest.mark.parametrize("names", [[name] for name in NAMES] + [NAMES], ids=lambda names: names[0])
def test_what_a_file_reads_it_defines_or_imports(names: list[str]) -> None:
    text = assemble(names, sources(), "1.2.3").text
    assert check(text, "ds_compat.py", Reporter(sys.stdout, sys.stdout)) == 0
    assert "dsmigrate.codemod" not in text
    assert max(map(len, text.splitlines())) <= 120


def test_a_file_for_two_is_that_of_one_and_then_the_other() -> None:
    for one, other in combinations(["use_grad_scaler", "keep_torch_checkpoints", "load_config", "drop_gradients"], 2):
        first = assemble([one], sources(), "1.2.3").text
        both = assemble([other], sources(), "1.2.3", first).text
        assert both == assemble([one, other], sources(), "1.2.3").text
        assert set(defined(first)) <= set(defined(both))
