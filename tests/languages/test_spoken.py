"""The language that is spoken: sentences, their parts, and what is forgotten when it changes."""

from __future__ import annotations

import pytest

from dsmigrate.knowledge import Consumer, knowledge
from dsmigrate.languages import forgotten, mark, say, spoken, tag_of, use, using


def test_english_is_what_the_code_says() -> None:
    assert spoken() == "en"
    assert say("no {brief}", brief="clipping") == "no clipping"
    assert say("a brace { alone") == "a brace { alone"
    assert mark("{count} edits") == "{count} edits"


def test_chinese_comes_from_the_catalogue_and_leaves_out_what_only_english_needs() -> None:
    with using("zh-CN"):
        assert spoken() == "zh-CN"
        assert say("{ranks} rank{en_s}", ranks=4, en_s="s") == "4 个 rank"
        assert say("nobody has translated {this}", this="x") == "nobody has translated x"
    assert say("{ranks} rank{en_s}", ranks=4, en_s="s") == "4 ranks"


@pytest.mark.parametrize(
    ("consumer", "said"),
    [("plain DeepSpeed", "由普通 DeepSpeed 读取"), ("Accelerate", "由 Accelerate 读取"), ("程序", "由程序读取")],
)
def test_no_blank_stands_between_han_characters_where_a_name_is_filled_in(consumer: str, said: str) -> None:
    with using("zh-CN"):
        assert say("read by {consumer}", consumer=say(consumer)) == said


def test_a_blank_of_what_is_filled_in_stays() -> None:
    with using("zh-CN"):
        assert say("nobody has translated {this}, 如 {that}", this="我的 文件", that="a 中") == (
            "nobody has translated 我的 文件, 如 a 中"
        )
        assert say("{size:>4} 和 {text!r}", size=2, text="中") == "   2 和 '中'"


def test_a_language_without_a_catalogue_is_refused_and_changes_nothing() -> None:
    with pytest.raises(ValueError, match="no catalogue for the language 'fr'"):
        use("fr")
    assert spoken() == "en"


def test_what_was_kept_in_the_former_language_is_forgotten() -> None:
    calls: list[str] = []
    forgotten(lambda: calls.append(spoken()))
    with using("zh-CN"):
        assert calls == ["zh-CN"]
        use("zh-CN")
        assert calls == ["zh-CN"]
    assert calls == ["zh-CN", "en"]


def test_the_documentation_of_keys_follows_and_comes_back() -> None:
    english = knowledge().key("fp16.loss_scale")
    assert english is not None
    with using("zh-CN"):
        chinese = knowledge().key("fp16.loss_scale")
        assert chinese is not None
        assert chinese.summary == "固定的损失缩放系数，或以 0 表示动态。"
        assert (chinese.type, chinese.default, chinese.since) == (english.type, english.default, english.since)
        assert chinese.unit == english.unit  # code compares it
    again = knowledge().key("fp16.loss_scale")
    assert again is not None
    assert again.summary == english.summary == "Fixed loss scale, or 0 for a dynamic one."


def test_the_source_of_a_value_keeps_what_it_is_computed_by_in_english() -> None:
    with using("zh-CN"):
        auto = knowledge().auto("zero_optimization.reduce_bucket_size", Consumer.TRANSFORMERS)
        assert auto is not None
        assert (auto.source, auto.english) == ("hidden_size 的平方", "hidden_size squared")


def test_types_keep_what_rules_read_in_english() -> None:
    with using("zh-CN"):
        facts = knowledge().optimizer("AdamW")
        assert facts is not None
        parameter = facts.parameters["bias_correction"]
        assert parameter.only_with.startswith("`torch_adam` left false")
        assert parameter.only_said.startswith("`torch_adam` 保持 false")
        assert facts.parameters["weight_decay"].english != facts.parameters["weight_decay"].summary


@pytest.mark.parametrize(
    ("locale", "tag"),
    [
        ("zh-cn", "zh-CN"),
        ("zh_CN.UTF-8", "zh-CN"),
        ("zh-Hans-SG", "zh-CN"),
        ("zh", "zh-CN"),
        ("zh-tw", "en"),
        ("zh-Hant", "en"),
        ("en-US", "en"),
        ("de", "en"),
        ("", "en"),
        (None, "en"),
    ],
)
def test_the_language_of_a_locale(locale: str | None, tag: str) -> None:
    assert tag_of(locale) == tag
