"""Every sentence has its translation, with the same things filled in, and every message of an example is translated."""

from __future__ import annotations

import ast
import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from dsmigrate.codemod.convert import convert
from dsmigrate.codemod.model import Options
from dsmigrate.convert.explained import every_conversion
from dsmigrate.diff.registry import every_explanation
from dsmigrate.docs import conversions
from dsmigrate.facts import catalogue, translated
from dsmigrate.facts.sentences import reads_like_prose
from dsmigrate.facts.sources import FactsError, read
from dsmigrate.languages import ENGLISH, LANGUAGES, retold, say, told, using
from dsmigrate.rules.registry import every_rule
from tests.diff.examples import compared
from tests.rules.examples import findings

from .unsaid import unsaid

ROOT = Path(__file__).resolve().parents[2]
SCHEMAS = ROOT / "schemas"
OTHERS = [language for language in LANGUAGES if language != ENGLISH]
HAN = re.compile(r"[\u4e00-\u9fff]")
CODE = re.compile(
    r"`[^`]*`|\"[^\"]*\"|'[^']*'|\{[a-z]+\}|\[[^\]]*\]|--carry \w+|--[a-z-]+|accelerate launch|[a-z]+/[\w.]+"
)
"""Code, values, options, commands and paths."""
WORD = re.compile(r"(?<![\w.])[a-z][a-z-]*[a-z](?![\w.])")
KEPT = frozenset(
    {
        "all-gather",
        "all-reduce",
        "all-to-all",
        "reduce",
        "reduce-scatter",
        "rank",
        "token",
        "epoch",
        "batch",
        "pass",
        "step",
        "autocast",
        "amp",
        "mup",
        "autosp",
        "autotp",
        "torch",
        "dtype",
        "fp",
        "bf",
        "int",
        "float",
        "bfloat",
        "true",
        "false",
        "null",
        "auto",
        "none",
        "inf",
        "cpu",
        "nvme",
        "deepep",
        "json",
        "prepare",
        "betas",
        "eps",
        "log",
        "linear",
        "memlock",
        "zip",
        "pickle",
        "layer-token",
        "accelerate",
        "deepspeed",
        "dsmigrate",
        "no",
        "whole",
        "optimizer",
        "scheduler",
    }
)
"""Words that Chinese users write as they are: collectives, formats, values of keys, names of other programs."""
NAMES = re.compile(r"[\w.+×/ →():,、-]*")


@pytest.mark.parametrize("language", OTHERS)
def test_every_sentence_of_the_code_has_its_translation_and_none_is_left_over(language: str) -> None:
    assert list(catalogue.problems(SCHEMAS, language)) == []


@pytest.mark.parametrize("language", OTHERS)
def test_every_text_about_a_key_has_its_translation_of_the_english_as_it_is(language: str) -> None:
    folder = SCHEMAS / "deepspeed"
    assert list(translated.problems(folder, read(folder), language)) == []


def _of_rules() -> Iterator[tuple[str, str]]:
    for rule in every_rule():
        for example in rule.examples:
            for finding in findings(rule, example):
                yield finding.code, finding.message
                yield from ((finding.code, other.message) for other in finding.related)
                yield from ((finding.code, fix.title) for fix in finding.fixes)


def _of_explanations() -> Iterator[tuple[str, str]]:
    for item in every_explanation():
        for example in item.examples:
            result = compared(example)
            for said in result.explained:
                yield from ((said.code, text) for text in (said.message, said.advice, said.brief, said.tally) if text)
            yield item.code, result.verdict


def _of_conversions() -> Iterator[tuple[str, str]]:
    for item in every_conversion():
        yield from ((item.code, text) for text in (say(item.summary), say(item.why), say(item.advice)))
        yield item.code, conversions.effect(item)
        for example in item.examples:
            yield from ((item.code, note.message) for note in conversions.noted(item, example))


def _left(text: str) -> list[str]:
    """The English words of a Chinese sentence that are not code, values or terms."""
    return [word for word in WORD.findall(CODE.sub(" ", text)) if word not in KEPT]


@pytest.mark.broad
@pytest.mark.parametrize(("messages", "least"), [(_of_rules, 500), (_of_explanations, 500), (_of_conversions, 120)])
def test_no_message_of_any_example_keeps_a_word_of_english(messages: object, least: int) -> None:
    with using("zh-CN"):
        said = [*dict.fromkeys(messages())]  # type: ignore[operator]
    assert len(said) > least
    assert [(code, text) for code, text in said if _left(text)] == []
    silent = [(code, text) for code, text in said if not HAN.search(text)]
    assert [(code, text) for code, text in silent if not NAMES.fullmatch(CODE.sub("", text))] == []
    assert len(silent) < len(said) / 20


def _of_codemod() -> Iterator[tuple[str, str]]:
    for example in sorted((ROOT / "server/dsmigrate/codemod/examples").glob("*.before.txt")):
        text = example.read_bytes()
        found = convert(lambda path, text=text: text if path == "train.py" else None, "train.py", Options())  # type: ignore[misc]
        for change in (change for result in found.results.values() for change in result.changes):
            yield from ((change.code, said) for said in (change.message, change.reason) if said)


@pytest.mark.broad
def test_no_decision_about_an_example_keeps_a_sentence_of_english() -> None:
    with using("zh-CN"):
        said = list(dict.fromkeys(_of_codemod()))
    assert len(said) > 250
    assert [
        (code, text) for code, text in said if reads_like_prose(text) and not HAN.search(text) and "→" not in text
    ] == []


def test_a_decision_is_made_in_english_and_said_in_the_readers_language() -> None:
    made = told("{message}: ZeRO 0", message=told("{name} works layer by layer", name="LARS"))
    assert made == "LARS works layer by layer: ZeRO 0"
    with using("zh-CN"):
        assert retold(made) == "LARS 逐层计算：ZeRO 阶段 0"
        assert retold("the engine averages the gradients") == "由引擎对梯度求平均"
        assert retold("loss.backward() → engine.backward(loss)") == "loss.backward() → engine.backward(loss)"
    assert retold(made) == made


def test_idioms_fill_in_sentences_with_told() -> None:
    found = []
    for path in (ROOT / "server/dsmigrate/codemod/idioms").rglob("*.py"):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        raised = {inner for node in ast.walk(tree) if isinstance(node, ast.Raise) for inner in ast.walk(node)}
        for node in ast.walk(tree):
            if isinstance(node, ast.JoinedStr) and node not in raised:
                text = "".join(str(one.value) if isinstance(one, ast.Constant) else "x_" for one in node.values)
                found += [f"{path.name}:{node.lineno}: {text}"] if reads_like_prose(text) else []
    assert found == []


CONVERSION = [
    file
    for file in [*(ROOT / "server/dsmigrate/convert").rglob("*.py"), ROOT / "server/dsmigrate/checking/forms.py"]
    if "explained" not in file.parts and file.name != "fills.py"
]
"""The modules that say something of a conversion. ``explained`` is said by who asks; ``fills`` has texts of facts."""


def test_a_conversion_says_nothing_that_is_not_asked_of_the_catalogue() -> None:
    found = {file.name: list(unsaid(file.read_text(encoding="utf-8"))) for file in CONVERSION}
    assert len(found) > 20
    assert {name: texts for name, texts in found.items() if texts} == {}


@pytest.mark.parametrize(
    ("code", "found"),
    [
        ('raise ConvertError("the config is no object")', ["the config is no object"]),
        ('message = f"{key} has no field in Accelerate"', [" has no field in Accelerate"]),
        ('raise ConvertError(say("the config is no object"))', []),
        ('say("{count} value{en_s}", en_s=f"s are {more} or so")', []),
        ('text = "from accelerate import Accelerator"', []),
        ('def f():\n    """Return the config as it is."""\n', []),
    ],
)
def test_the_test_sees_what_is_not_asked(code: str, found: list[str]) -> None:
    assert list(unsaid(code)) == found


def test_the_test_sees_an_english_word() -> None:
    assert _left("`stage` 为 2，and 有 bucket") == ["and", "bucket"]


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    shutil.copytree(SCHEMAS, tmp_path / "schemas", ignore=shutil.ignore_patterns("versions", "compiled"))
    return tmp_path / "schemas"


def test_a_sentence_that_changes_is_missing_and_its_old_translation_stale(copy: Path) -> None:
    file = copy / "locale" / "zh-CN" / "rules_keys.toml"
    text = file.read_text(encoding="utf-8")
    file.write_text(text.replace('"Add `{name}`" =', '"Add the `{name}`" =', 1), encoding="utf-8")
    problems = list(catalogue.problems(copy, "zh-CN"))
    assert problems == [
        'zh-CN/rules_keys.toml lacks "Add `{name}`", said in rules/keys/required',
        'zh-CN: nothing says "Add the `{name}`" any more',
    ]


def test_a_translation_that_fills_in_something_else_is_told(copy: Path) -> None:
    file = copy / "locale" / "zh-CN" / "rules_keys.toml"
    text = file.read_text(encoding="utf-8")
    file.write_text(text.replace("添加 `{name}`", "添加 `{names}`", 1), encoding="utf-8")
    assert list(catalogue.problems(copy, "zh-CN")) == [
        '"Add `{name}`" has other code in backticks than its translation',
        "\"Add `{name}`\" fills in name, its translation ['names']",
    ]


def test_a_sentence_that_stands_in_two_files_is_an_error(copy: Path) -> None:
    file = copy / "locale" / "zh-CN" / "syntax.toml"
    file.write_text(file.read_text(encoding="utf-8") + '"Add `{name}`" = "添加 `{name}`"\n', encoding="utf-8")
    with pytest.raises(FactsError, match="another file has 'Add"):
        catalogue.read(copy, "zh-CN")


def test_the_chinese_of_a_key_is_stale_when_its_english_changes(copy: Path) -> None:
    file = copy / "deepspeed" / "keys" / "fp16.toml"
    file.write_text(
        file.read_text(encoding="utf-8").replace("Fixed loss scale", "A fixed loss scale", 1), encoding="utf-8"
    )
    folder = copy / "deepspeed"
    found = list(translated.problems(folder, read(folder), "zh-CN"))
    mend = "mend it, then python -m dsmigrate.facts --accept-translations"
    assert found == [f"zh-CN/fp16.toml: fp16.loss_scale: the English has changed; {mend}"]
    translated.accept(folder, read(folder))
    assert list(translated.problems(folder, read(folder), "zh-CN")) == []


def test_missing_texts_and_other_code_are_told_with_their_field(copy: Path) -> None:
    file = copy / "deepspeed" / "keys" / "zh-CN" / "fp16.toml"
    text = file.read_text(encoding="utf-8").replace(
        'values = { "true" = "float16 权重，带损失缩放", "false" = "关闭" }\n', "", 1
    )
    file.write_text(text.replace("整个节写成 `null`", "整个节写成 `nil`", 1), encoding="utf-8")
    folder = copy / "deepspeed"
    assert sorted(translated.problems(folder, read(folder), "zh-CN")) == [
        "zh-CN/fp16.toml: fp16.enabled: values is not translated text by text",
        "zh-CN/fp16.toml: fp16: trap has other code in backticks than the English",
    ]
