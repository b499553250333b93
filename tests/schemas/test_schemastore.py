"""SchemaStore's conventions, as far as they are visible without its repository.

Its checker compiles every schema with ajv in strict mode, where an unknown keyword is an error; a short list of editor
keywords is allowed for all, further ones are declared per schema (``unknownKeywords``). Schemas and test files are
strict JSON without a byte order mark; names in the catalog are plain; every schema has an entry.
"""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path, PurePosixPath
from typing import Any

import jsonschema
import pytest

from .bad import BAD
from .servers import installed
from .support import NAME, contribution, good_configs, names, nodes, paths, schema

STORE = "https://www.schemastore.org/"
DRAFT = "http://json-schema.org/draft-07/schema#"
EDITOR_KEYWORDS = frozenset(
    {"allowTrailingCommas", "defaultSnippets", "markdownDescription", "enumDescriptions", "markdownEnumDescriptions"}
)
"""What SchemaStore's checker lets pass in every schema, of those that we might use."""
KEYWORDS = frozenset(jsonschema.Draft7Validator.META_SCHEMA["properties"])
BYTE_ORDER_MARKS = (b"\xef\xbb\xbf", b"\xfe\xff", b"\xff\xfe")

every_schema = pytest.mark.parametrize("name", names())


def declared() -> set[str]:
    return set(contribution()["schema-validation"]["unknownKeywords"])


def strict_json(text: str) -> Any:
    """Parse JSON as a linter does: a key that is there twice is an error, and so are NaN and Infinity."""

    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        names = [name for name, _ in pairs]
        assert len(names) == len(set(names)), f"a key is there twice: {sorted(names)}"
        return dict(pairs)

    def no_number(text: str) -> Any:
        raise AssertionError(f"{text} is no JSON")

    return json.loads(text, object_pairs_hook=unique, parse_constant=no_number)


def test_there_is_a_schema_for_the_newest_release_and_for_each_minor_one() -> None:
    releases = json.loads((paths()[NAME].parent / "releases.json").read_text(encoding="utf-8"))["releases"]
    minors = {release.rpartition(".")[0] for release in releases}
    assert set(names()) == {NAME, *(f"{NAME}-{minor}" for minor in minors)}
    newest = releases[-1].rpartition(".")[0]
    assert schema()["properties"] == schema(f"{NAME}-{newest}")["properties"]


@every_schema
def test_it_is_a_valid_draft_07_schema(name: str) -> None:
    assert schema(name)["$schema"] == DRAFT
    jsonschema.Draft7Validator.check_schema(schema(name))


@every_schema
def test_its_id_is_where_schemastore_serves_it(name: str) -> None:
    assert schema(name)["$id"] == f"{STORE}{name}.json"
    assert "id" not in schema(name)


@every_schema
def test_the_file_is_strict_json_without_a_byte_order_mark(name: str) -> None:
    content = paths()[name].read_bytes()
    assert not content.startswith(BYTE_ORDER_MARKS)
    assert content.endswith(b"}\n")
    assert b"\r" not in content
    strict_json(content.decode("utf-8"))


@every_schema
def test_every_keyword_is_of_the_draft_or_declared(name: str) -> None:
    used = {keyword for _, node in nodes(schema(name)) for keyword in node}
    assert used - KEYWORDS - EDITOR_KEYWORDS <= declared()


def test_every_declared_keyword_is_used() -> None:
    used = {keyword for name in names() for _, node in nodes(schema(name)) for keyword in node}
    assert declared() <= used
    assert not declared() & (EDITOR_KEYWORDS | KEYWORDS)


@every_schema
def test_every_reference_is_internal_and_resolves(name: str) -> None:
    root = schema(name)
    assert "$ref" not in root
    for path, node in nodes(root):
        if "$ref" in node:
            target: Any = root
            assert node["$ref"].startswith("#/"), path
            for part in node["$ref"][2:].split("/"):
                target = target[part.replace("~1", "/").replace("~0", "~")]
            assert isinstance(target, dict), path


@every_schema
def test_every_definition_is_used(name: str) -> None:
    used = {node["$ref"].rpartition("/")[2] for _, node in nodes(schema(name)) if "$ref" in node}
    assert set(schema(name).get("definitions", {})) <= used


@every_schema
def test_every_key_is_described(name: str) -> None:
    silent = [
        path
        for path, node in nodes(schema(name))
        if len(path) > 1 and path[-2] == "properties" and not {"if", "then", "not"} & set(path[:-1])
        if not node.get("description") and "$ref" not in node
    ]
    assert silent == []


@every_schema
def test_no_description_ends_with_a_colon(name: str) -> None:
    ends = [path for path, node in nodes(schema(name)) if re.search(r":\s*$", str(node.get("description", "")))]
    assert ends == []


@every_schema
def test_every_value_of_a_list_has_as_many_descriptions_as_the_list_has_values(name: str) -> None:
    for path, node in nodes(schema(name)):
        for keyword in ("enumDescriptions", "markdownEnumDescriptions"):
            assert len(node.get(keyword, node.get("enum", ()))) == len(node.get("enum", ())), path


def test_the_entry_of_the_catalog_is_plain() -> None:
    entry = contribution()["catalog"]
    assert set(entry) == {"name", "description", "fileMatch", "url", "versions"}
    for field in ("name", "description"):
        assert not re.search(r"[,. \t-]$", entry[field])
        assert "schema" not in entry[field].lower()
        assert "\n" not in entry[field]
    assert len(set(entry["fileMatch"])) == len(entry["fileMatch"])
    assert all("/" not in glob or glob.startswith("**/") for glob in entry["fileMatch"])


def test_the_entry_of_the_catalog_names_every_schema() -> None:
    entry = contribution()["catalog"]
    assert entry["url"] == f"{STORE}{NAME}.json"
    assert entry["versions"] == {
        name.removeprefix(f"{NAME}-"): f"{STORE}{name}.json" for name in names() if name != NAME
    }


@pytest.mark.parametrize(
    "file", ["ds_config.json", "ds_config_zero3.json", "ds_config-gpt.json", "deepspeed_config.json"]
)
def test_common_file_names_are_matched(file: str) -> None:
    assert any(PurePosixPath(file).match(glob) for glob in contribution()["catalog"]["fileMatch"])


@pytest.mark.parametrize("file", ["config.json", "package.json", "zero.json", "accelerate_config.yaml"])
def test_names_of_other_files_are_not_matched(file: str) -> None:
    assert not any(PurePosixPath(file).match(glob) for glob in contribution()["catalog"]["fileMatch"])


def test_the_positive_test_files_are_strict_json() -> None:
    for _, _, path in good_configs():
        content = path.read_bytes()
        assert not content.startswith(BYTE_ORDER_MARKS), path
        assert content.endswith(b"}\n"), path
        strict_json(content.decode("utf-8"))


@pytest.mark.node
def test_ajv_compiles_every_schema_in_strict_mode_and_agrees_on_every_case(node_modules: Path) -> None:
    documents: dict[str, list[Any]] = {name: [] for name in names()}
    expected: dict[str, list[str | None]] = {name: [] for name in names()}
    for _, minor, path in good_configs():
        name = NAME if minor is None else f"{NAME}-{minor}"
        documents[name].append(json.loads(path.read_text(encoding="utf-8")))
        expected[name].append(None)
    for case in BAD:
        documents[case.schema].append(case.config)
        expected[case.schema].append(f"{case.path} {case.keyword}")
    asked = {
        "keywords": sorted(EDITOR_KEYWORDS | declared()),
        "schemas": {name: schema(name) for name in names()},
        "documents": documents,
    }
    run = subprocess.run(
        ["node", str(installed.LIST.with_name("ajv_strict.cjs"))],
        input=json.dumps(asked),
        env=installed.environment(node_modules),
        capture_output=True,
        text=True,
        check=True,
    )
    answers = json.loads(run.stdout)
    assert {name: answer["error"] for name, answer in answers.items() if "error" in answer} == {}
    for name, answer in answers.items():
        for document, wanted, got in zip(documents[name], expected[name], answer["results"], strict=True):
            said = {f"{error['path'][1:].replace('/', '.')} {error['keyword']}" for error in got or ()}
            assert (wanted in said) if wanted else got is None, (name, document, wanted, said)
