"""Config dictionaries in scripts: found, read with exact offsets, and never trusted too far."""

from __future__ import annotations

import ast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dsmigrate.editing import View
from dsmigrate.editing.python import as_python, literals
from dsmigrate.rules.context import UNKNOWN
from tests.document.texts import GENERAL, seeded

SCRIPT = """import deepspeed

ds_config = {
    "train_micro_batch_size_per_gpu": args.batch,  # of one GPU
    'zero_optimization': {"stage": 2, "overlap_comm": True, "reduce_bucket_size": int(5e8)},
    "optimizer": {"type": "AdamW", "params": {"lr": 1e-4, "betas": (0.9, 0.95), "weight_decay": - 1}},
    "fp16": {"enabled": not args.bf16}, "steps_per_print": None,
    "gradient_clipping": max(
        1.0,
        args.clip),
    "tensor": 1_000,
}
other = {"stage": 3}
engine, *_ = deepspeed.initialize(model=model, config=ds_config)
"""


def test_a_dictionary_is_read_with_the_offsets_of_the_script() -> None:
    (literal,) = literals(SCRIPT)
    assert literal.is_whole
    assert len(literal.masked.text) == len(SCRIPT)
    assert SCRIPT[literal.start : literal.end] == SCRIPT[SCRIPT.index("{") : SCRIPT.index("}\nother") + 1]
    value = literal.document.value()
    assert isinstance(value, dict)
    assert value["zero_optimization"]["stage"] == 2
    assert value["zero_optimization"]["overlap_comm"] is True
    assert value["optimizer"]["params"]["betas"] == [0.9, 0.95]
    assert value["steps_per_print"] is None
    span = literal.document.range_of(("optimizer", "params", "lr"))
    assert span is not None
    assert SCRIPT[span[0] : span[1]] == "1e-4"


def test_expressions_are_unknown_and_no_finding_rests_on_them() -> None:
    (literal,) = literals(SCRIPT)
    hidden = [SCRIPT[start:end] for start, end in literal.masked.unknown]
    assert hidden == [
        "args.batch", "int(5e8)", "- 1", "not args.bf16", "max(\n        1.0,\n        args.clip)", "1_000",
    ]  # fmt: skip
    view = View(literal.document, unknown=literal.masked.unknown, whole=literal.is_whole)
    assert view.context.value("train_micro_batch_size_per_gpu") is UNKNOWN
    assert view.context.stage == 2
    assert not [finding for finding in view.findings if finding.code.startswith("DS2")]


def test_a_fault_is_found_at_its_place_in_the_script() -> None:
    script = (
        'import deepspeed\ndeepspeed.initialize(config={"train_batch_size": 8, "zero_optimization": {"stage": 5}})\n'
    )
    (literal,) = literals(script)
    view = View(literal.document)
    assert [script[finding.start : finding.end] for finding in view.findings if finding.severity.value == "error"] == [
        "5"
    ]


@pytest.mark.parametrize(
    "script",
    [
        'deepspeed.initialize(config={"train_batch_size": 1})',
        'import deepspeed\ntraining = {"train_batch_size": 1}\ndeepspeed.initialize(args, config=training)',
        'plugin = DeepSpeedPlugin(hf_ds_config={"train_batch_size": 1})',
        'TrainingArguments(deepspeed={"train_batch_size": 1})',
        'dschf = HfDeepSpeedConfig({"train_batch_size": 1})  # deepspeed',
        'DEEPSPEED_CONFIG = {"train_batch_size": 1}',
        'def f():\n    ds_config={"train_batch_size": 1}',
    ],
)
def test_each_way_to_pass_a_config_is_found(script: str) -> None:
    assert [literal.document.value() for literal in literals(script)] == [{"train_batch_size": 1}]


@pytest.mark.parametrize(
    "script",
    [
        "import deepspeed\nkinds = {'stage': 1}\n",
        "import deepspeed\nf(config=make({'a': 1}))\n",
        "import deepspeed\nadds = {'a': 1}\n",
        "config = {'a': 1}\n",
        '# deepspeed\ntext = "ds_config = {1: 2}"\n',
    ],
)
def test_other_dictionaries_are_left_alone(script: str) -> None:
    assert literals(script) == ()


def test_what_is_unpacked_makes_a_config_that_is_not_whole() -> None:
    (literal,) = literals('ds_config = {**base, "train_batch_size": 1, key: 2, "zero_optimization": {"stage": 1}}')
    assert not literal.is_whole
    assert literal.document.value() == {"train_batch_size": 1, "zero_optimization": {"stage": 1}}
    view = View(literal.document, whole=False)
    assert not [finding for finding in view.findings if finding.start == view.document.root.start]  # type: ignore[union-attr]


@pytest.mark.parametrize(
    "piece",
    [
        'ds_config = {"zero_optimization": {"stage":',
        'ds_config = {"zero_opt',
        "ds_config = {'a': 1, 'b",
        "ds_config = {",
    ],
)
def test_half_typed_scripts_are_read(piece: str) -> None:
    (literal,) = literals(piece)
    assert literal.masked.text.rstrip() == piece.replace("ds_config =", "           ").rstrip()


def test_json_is_written_as_python() -> None:
    text = '"overlap_comm": true,\n"a": [null, false], "true": "null", "half'
    assert as_python(text) == '"overlap_comm": True,\n"a": [None, False], "true": "null", "half'
    assert ast.literal_eval(as_python('{"a": [true, null, "false \\" true"]}')) == {"a": [True, None, 'false " true']}


PIECES = (
    *('"a"', "'b'", ":", ",", "{", "}", "[", "]", "(", ")", "1", "-", "x", "True", "None", "**", "*", "\n", "#c\n"),
    *('"""', "'", '"', "f'{a}'", "lambda x: 1", " ", "ds_config=", "config={", "\\", "1_0", "😀", "for a in b"),
)


@GENERAL
@given(st.integers(0, 1 << 30))
def test_any_text_is_masked_in_its_length_and_its_lines(seed: int) -> None:
    random = seeded(seed)
    script = "deepspeed ds_config={" + "".join(random.choices(PIECES, k=random.randint(0, 40)))
    for literal in literals(script):
        text = literal.masked.text
        assert len(text) == len(script)
        assert [i for i, char in enumerate(text) if char == "\n"] == [
            i for i, char in enumerate(script) if char == "\n"
        ]
        assert View(literal.document, unknown=literal.masked.unknown, whole=literal.is_whole).findings is not None
