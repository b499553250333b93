"""Any text, in any form: a conversion or an error with a place, and never anything else."""

from __future__ import annotations

import json

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from dsmigrate.convert import tree
from dsmigrate.convert.job import Request, convert
from dsmigrate.convert.model import ConvertError, Form
from dsmigrate.convert.reading import Input, document_of, read
from dsmigrate.document import EditError

pytestmark = pytest.mark.broad

NAMES = ["a.json", "a.yaml", "a.py", "a"]
PIECES = (
    "distributed_type: DEEPSPEED|FSDP|deepspeed_config:|fsdp_config:|  zero_stage: 3|  - 1|{|}|[|]|:|,|&a|*a|#|---|..."
    "|\"auto\"|auto|zero_optimization|'stage'|ds_config = {|DeepSpeedPlugin(|)|hf_ds_config=|TrainingArguments(|é"
    "|deepspeed=|mixed_precision: no|!!python/object|1e999|-0.0|true|None|x = |gradient_clipping|\U0001d4b3|\ufeff"
)
WORDS = st.sampled_from(["\n", "\t", "\r", "\x00", "\ud800", *PIECES.split("|")])
TEXTS = st.one_of(
    st.text(max_size=60), st.lists(WORDS, max_size=20).map(" ".join), st.lists(WORDS, max_size=20).map("".join)
)


@settings(max_examples=200)
@given(TEXTS, st.sampled_from(NAMES), st.sampled_from(list(Form)))
@example("distributed_type: DEEPSPEED\nx: &a [*a]\n", "a.yaml", Form.DEEPSPEED)
@example("distributed_type: DEEPSPEED\ndeepspeed_config: &a\n  zero_stage: 2\n  b: *a\n", "a.yaml", Form.DICT)
@example("%YAML 9.9\n---\na: 1\n", "a.yaml", Form.DICT)
@example('{"train_batch_size": NaN}', "a.json", Form.DICT)
@example('{"zero_optimization": [], "bf16": 3, "optimizer": {"params": "auto"}}', "a.json", Form.ACCELERATE)
@example('{"a.b": {"": {"c d": 1}}, "é": null}', "a.json", Form.PLUGIN)
@example(
    '{"zero_optimization": {"offload_param": {"device": "nvme", "nvme_path": "\\ud800"}}}', "a.json", Form.ACCELERATE
)
@example('{"\\ud800": "\\ud800"}', "a.json", Form.DICT)
def test_any_text_gives_a_conversion_or_an_error(text: str, name: str, target: Form) -> None:
    try:
        found = convert(Request(name, text.encode("utf-8", "surrogatepass"), target))
    except ConvertError as error:
        assert error.message
        assert error.line <= text.count("\n") + text.count("\r") + 1
        return
    assert found.written.text.encode()
    for finding in found.findings:
        assert 0 <= finding.start <= len(found.document.text)


LEAVES = st.one_of(st.none(), st.booleans(), st.integers(-9, 9), st.floats(), st.text(max_size=4), st.just("auto"))
NAMED = (
    "stage device nvme_path enabled lr zero_optimization offload_param fp16 optimizer params gradient_clipping x é.b"
)
KEYS = st.sampled_from(NAMED.split())
CONFIGS = st.dictionaries(
    KEYS,
    st.recursive(
        LEAVES,
        lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(KEYS, inner, max_size=4)),
        max_leaves=8,
    ),
    max_size=5,
)


@settings(max_examples=200)
@given(CONFIGS, CONFIGS, st.sampled_from([Form.DEEPSPEED, Form.DICT]))
def test_any_config_is_written_over_any_other(config: dict[str, object], there: dict[str, object], form: Form) -> None:
    from dsmigrate.convert.model import Target  # noqa: PLC0415 - beside its use

    target = json.dumps(there) if form is Form.DEEPSPEED else f"ds_config = {there!r}\n"
    source = json.dumps(config).encode()
    try:
        text = convert(Request("a.json", source, form, into=Target(there=target))).written.text
    except (ConvertError, EditError) as error:
        assert str(error)
        assert "please report" not in str(error)
        return
    assert read(form, Input(text)).config.keys() <= config.keys()


@settings(max_examples=100)
@given(CONFIGS)
def test_the_document_of_settings_says_what_the_settings_say(config: dict[str, object]) -> None:
    text = json.dumps(config)
    try:
        settings_read = read(Form.DEEPSPEED, Input(text))
    except ConvertError:
        return
    document = document_of(settings_read)
    assert document.text == text
    for path, member, node in document.walk():
        assert node is not None
        assert tree.get(settings_read.config, path) is not tree.MISSING or not path
        if member is not None:
            assert 0 <= member.start <= member.end <= len(text)
