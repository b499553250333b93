"""Arguments that the script's parser asks for stand in the launch commands, with words in their place."""

from __future__ import annotations

from textwrap import dedent

import pytest

from dsmigrate.codemod.model import FileResult
from tests.codemod.projects import ENGINE, ENTRY
from tests.support.migrating import migrate_files

PARSER = """
import argparse

def get_parser():
    parser = argparse.ArgumentParser()
    {arguments}
    return parser
"""


def migrate(files: dict[str, str]) -> FileResult:
    """What becomes of the first file, with the others beside."""
    entry = next(iter(files))
    return migrate_files({path: dedent(text).lstrip("\n").encode() for path, text in files.items()}, entry).results[
        entry
    ]


def entry_of(imported: str, first: str) -> str:
    return ENTRY.replace("import engine\n", f"import engine\n    {imported}\n", 1).replace(
        "    def main():\n", f"    def main():\n        {first}\n", 1
    )


def result_of(arguments: str, first: str = "args = get_parser().parse_args()") -> FileResult:
    """The result of a script whose parser stands in a module of its own."""
    files = {
        "train.py": entry_of("from options import get_parser", first),
        "engine.py": ENGINE,
        "options.py": PARSER.format(arguments=arguments),
    }
    return migrate(files)


@pytest.mark.parametrize(
    ("arguments", "tail", "placeholders"),
    [
        ('parser.add_argument("data", metavar="DIR")', " DIR", ("DIR",)),
        ('parser.add_argument("data_path", type=str)', " DATA_PATH", ("DATA_PATH",)),
        ('parser.add_argument("--data", metavar="a dir", required=True)', " --data A_DIR", ("A_DIR",)),
        ('parser.add_argument("-o", "--out-dir", required=True)', " --out-dir OUT_DIR", ("OUT_DIR",)),
        (
            'parser.add_argument("--out", required=True)\n    parser.add_argument("files", nargs="+")',
            " FILES --out OUT",
            ("FILES", "OUT"),
        ),
        ('parser.add_argument("data", nargs="?", default="d")', "", ()),
        ('parser.add_argument("rest", nargs=argparse.REMAINDER)', "", ()),
        ('parser.add_argument("--lr", default=0.1)', "", ()),
        ('parser.add_argument("--lr", required=False)', "", ()),
        ('parser.add_argument("--local_rank", type=int, required=True)', "", ()),
        ('if True:\n        parser.add_argument("data")', " DATA", ("DATA",)),
        ('parser.add_argument("data", **more)', " DATA", ("DATA",)),
        ('sub = parser.add_subparsers()\n    one = sub.add_parser("one")\n    one.add_argument("data")', "", ()),
    ],
)
def test_what_the_parser_asks_for_is_to_be_filled_in(arguments: str, tail: str, placeholders: tuple[str, ...]) -> None:
    result = result_of(arguments)
    assert result.launch[0] == f"torchrun --nproc_per_node 2 train.py{tail}"
    assert result.launch[1].endswith(f"--no_local_rank train.py{tail}")
    assert result.placeholders == placeholders


@pytest.mark.parametrize("first", ["pass", "other = {1: get_parser}"])
def test_a_parser_that_reads_no_command_line_asks_for_nothing(first: str) -> None:
    assert result_of('parser.add_argument("data")', first).placeholders == ()


def test_the_parser_of_a_module_that_is_a_script_too_is_not_asked() -> None:
    options = """
    import argparse
    def get_parser():
        return argparse.ArgumentParser()
    if __name__ == "__main__":
        parser = get_parser()
        parser.add_argument("data")
        parser.parse_args()
    """
    entry = entry_of("import options", "args = options.get_parser().parse_args()")
    found = migrate({"train.py": entry, "engine.py": ENGINE, "options.py": options})
    assert found.placeholders == ()


def test_the_methods_of_a_class_of_options_are_asked() -> None:
    options = """
    import argparse

    class Base:
        def add(self, parser):
            parser.add_argument("--name", required=True)
        def parse(self):
            parser = argparse.ArgumentParser()
            self.add(parser)
            return parser.parse_args()
        def never(self, parser):
            parser.add_argument("--other", required=True)

    class Train(Base):
        pass
    """
    entry = entry_of("from options import Train", "args = Train().parse()")
    found = migrate({"train.py": entry, "engine.py": ENGINE, "options.py": options})
    assert found.placeholders == ("NAME",)


def test_the_parser_of_the_script_itself_is_asked_first() -> None:
    source = "import argparse\nparser = argparse.ArgumentParser()\nparser.add_argument('data')\n"
    entry = entry_of("pass", "args = parser.parse_args()")
    files = {"train.py": entry, "engine.py": ENGINE}
    texts = {name: dedent(text).lstrip("\n").encode() for name, text in files.items()}
    texts["train.py"] = source.encode() + texts["train.py"]
    assert migrate_files(texts, "train.py").results["train.py"].placeholders == ("DATA",)


@pytest.mark.parametrize(
    ("option", "use", "placeholders"),
    [
        ("default=None, type=str", "url = 'file://' + os.path.realpath(args.dist_file)", ("DIST_FILE",)),
        ("type=str", "os.makedirs(args.dist_file, exist_ok=True)", ("DIST_FILE",)),
        ("default='x'", "os.makedirs(args.dist_file, exist_ok=True)", ()),
        ("default=None", "if args.dist_file:\n        os.makedirs(args.dist_file)", ()),
        ("default=None", "path = os.path.realpath(args.dist_file) if args.dist_file else ''", ()),
        ("default=None", "args.dist_file = args.dist_file or 'x'; os.makedirs(args.dist_file)", ()),
        ("default=None", "if args.lr:\n        return\n    os.makedirs(args.dist_file)", ()),
    ],
)
def test_an_option_that_is_none_and_taken_for_a_path_is_to_be_filled_in(
    option: str, use: str, placeholders: tuple[str, ...]
) -> None:
    head = "import argparse\nimport os\nparser = argparse.ArgumentParser()\n"
    head += f"parser.add_argument('--dist-file', {option})\n"
    entry = dedent(entry_of("pass", "args = parser.parse_args()")).lstrip("\n")
    line = "    args = parser.parse_args()\n"
    texts = {
        "train.py": (head + entry.replace(line, f"{line}    {use}\n")).encode(),
        "engine.py": dedent(ENGINE).encode(),
    }
    assert migrate_files(texts, "train.py").results["train.py"].placeholders == placeholders


def test_a_parent_of_the_parser_needs_its_arguments_too() -> None:
    found = result_of(
        'parser.add_argument("--out", required=True)',
        first="import argparse\n        args = argparse.ArgumentParser(parents=[get_parser()]).parse_args()",
    )
    assert found.launch[0].endswith("train.py --out OUT")
