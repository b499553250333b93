"""What a checkpoint answers otherwise, being a directory, where a resume looks for its file."""

from __future__ import annotations

import pytest

from dsmigrate.codemod.model import Kind
from tests.codemod.checks import Migrated, convert
from tests.codemod.steps.checkpoint_scripts import RESUME, STATE, saving

SAVES = saving(f'if rank == 0:\n    torch.save({STATE}, os.path.join(args.output, f"{{epoch}}.pt"))')
NEWEST = RESUME.replace("if args.resume", "path = newest(args.output)\nif path").replace("args.resume", "path")


def marked(migrated: Migrated) -> list[str]:
    return [c.message for c in migrated.changes if c.code == "MG623" and c.kind is Kind.TODO]


@pytest.mark.parametrize(
    "listing",
    [
        "[f for _, _, files in os.walk(folder) for f in files]",
        "[f for f in glob.glob(folder + '/*.pt') if os.path.getsize(f) > 10000]",
        "[f for f in glob.glob(folder + '/*.pt') if os.stat(f).st_size > 10000]",
        "sorted(glob.glob(folder + '/**/*.pt', recursive=True))",
        "sorted(Path(folder).rglob('*.pt'))",
    ],
)
def test_a_search_that_a_directory_answers_otherwise_is_marked(listing: str) -> None:
    helper = f"def newest(folder):\n    found = {listing}\n    return found[-1] if found else None"
    migrated = convert(imports="import glob\nfrom pathlib import Path", helpers=helper, resume=NEWEST, loop=SAVES)
    migrated.said("MG623", listing, Kind.TODO)


@pytest.mark.parametrize(
    "test", ["args.resume and not os.path.isdir(args.resume)", "args.resume and not Path(args.resume).is_dir()"]
)
def test_the_path_of_a_resume_that_is_told_from_a_folder_is_marked(test: str) -> None:
    resume = RESUME.replace("if args.resume", f"if {test}")
    migrated = convert(imports="from pathlib import Path", resume=resume, loop=SAVES)
    migrated.said("MG623", test, Kind.TODO)


def test_other_folders_are_asked_as_before() -> None:
    before = (
        "if not os.path.isdir(args.output):\n    os.makedirs(args.output)\nfor _ in os.walk(args.words):\n    pass\n"
    )
    assert not marked(convert(resume=before + RESUME, loop=SAVES))


@pytest.mark.parametrize("base", ["torch.utils.data.Dataset", "object"])
def test_what_a_data_set_finds_is_its_data(base: str) -> None:
    line = "self.files = glob.glob(folder + '/**/*', recursive=True)"
    helpers = f"class Words({base}):\n    def __init__(self, folder):\n        {line}"
    before = "words = Words(args.output)\n"
    migrated = convert(imports="import glob", helpers=helpers, resume=before + RESUME, loop=SAVES)
    assert bool(marked(migrated)) is (base == "object")


@pytest.mark.parametrize(
    ("test", "asked"),
    [
        ("args.resume.endswith('.pt')", "args.resume.rstrip(os.sep).endswith('.pt')"),
        ("args.resume.endswith(('.pt', '.pth'))", "args.resume.rstrip(os.sep).endswith(('.pt', '.pth'))"),
        ("os.path.splitext(args.resume)[1] == '.pt'", "os.path.splitext(os.path.normpath(args.resume))[1] == '.pt'"),
    ],
)
def test_the_ending_of_a_resume_path_may_have_a_slash_behind_it(test: str, asked: str) -> None:
    migrated = convert(resume=RESUME.replace("if args.resume", f"if {test}"), loop=SAVES)
    assert f"if {asked}:" in migrated.code
    migrated.said("MG623", test, Kind.CONVERTED)


@pytest.mark.parametrize("test", ["args.output.endswith('.pt')", "args.resume.endswith('pt')"])
def test_other_endings_are_asked_for_as_before(test: str) -> None:
    assert f"print({test})" in convert(resume=f"{RESUME}\nprint({test})", loop=SAVES).code


@pytest.mark.parametrize(
    ("listing", "finds"),
    [
        ("glob.glob(folder + '/**/weights.bin', recursive=True)", False),
        ("glob.glob(os.path.join(folder, '**', 'weights.bin'), recursive=True)", False),
        ("glob.glob(f'{folder}/**/weights.bin', recursive=True)", False),
        ("glob.glob(f'{folder}/**/{NAME}', recursive=True)", True),
        ("glob.glob(os.path.join(folder, '**', NAME), recursive=True)", True),
        ("list(Path(folder).rglob('*states*'))", True),
    ],
)
def test_a_search_for_a_name_that_no_file_of_a_checkpoint_has_is_not(listing: str, *, finds: bool) -> None:
    helper = f"def newest(folder):\n    found = {listing}\n    return found[-1] if found else None"
    imports = "import glob\nfrom pathlib import Path\nfrom names import NAME"
    migrated = convert(imports=imports, helpers=helper, resume=NEWEST, loop=SAVES)
    assert any("found here too" in message for message in marked(migrated)) == finds
