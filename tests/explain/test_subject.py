from __future__ import annotations

import json
from pathlib import Path

import jsonschema
import pytest

from dsmigrate.codemod.model import Idea
from dsmigrate.convert.explained import Explained, every_conversion
from dsmigrate.explain import NothingToExplainError, Overview, ParameterOf, find, markdown
from dsmigrate.explain.json import document
from dsmigrate.knowledge import Key, TypeFacts, knowledge
from dsmigrate.knowledge.bugs import every_bug

SCHEMA = json.loads((Path(__file__).parents[2] / "schemas" / "output" / "explain.schema.json").read_bytes())


@pytest.mark.parametrize(
    ("word", "says"),
    [
        ("zero_stage", "there is no key, type or code zero_stage; near: zero_optimization.stage"),
        ("MG999999", "there is no key, type or code MG999999; `dsmigrate explain` lists the sections"),
        ("zzzz", "there is no key, type or code zzzz; `dsmigrate explain` lists the sections"),
        ("AdamW.leraning_rate", "there is no key, type or code AdamW.leraning_rate"),
        ("gradient_cliping", "there is no key, type or code gradient_cliping; near: gradient_clipping"),
        ("CV13", "there is no code CV13; near: CV113 (two-precisions), CV103 (nvme-path-lost), "),
        ("000", "there is no code 000; `dsmigrate explain codes` lists every code"),
        ("WarmpLR", "there is no key, type or code WarmpLR; near: scheduler.WarmupLR"),
        ("overlap-comm-nans", "there is no key, type or code overlap-comm-nans; near: overlap-comm-nan"),
    ],
)
def test_what_is_nothing_is_told_with_what_is_near(word: str, says: str) -> None:
    with pytest.raises(NothingToExplainError) as error:
        find(word, knowledge())
    assert str(error.value).startswith(says)


@pytest.mark.parametrize(
    ("word", "kind", "name"),
    [
        ("zero_optimization.stage", Key, "zero_optimization.stage"),
        ("`zero_optimization.stage`", Key, "zero_optimization.stage"),
        ("ZERO_OPTIMIZATION.STAGE", Key, "zero_optimization.stage"),
        ("bfloat16.enabled", Key, "bf16.enabled"),
        ("stage", Key, "zero_optimization.stage"),
        ("fp16", Key, "fp16"),
        ("amp", Key, "amp"),
        ("AdamW", TypeFacts, "AdamW"),
        ("adamw", TypeFacts, "AdamW"),
        ("optimizer.AdamW", TypeFacts, "AdamW"),
        ("WarmupLR", TypeFacts, "WarmupLR"),
        ("AdamW.lr", ParameterOf, "lr"),
        ("CV103", Explained, "nvme-path-lost"),
        ("cv103", Explained, "nvme-path-lost"),
        ("optimizer.params.lr", ParameterOf, "lr"),
        ("scheduler.params.warmup_num_steps", ParameterOf, "warmup_num_steps"),
    ],
)
def test_a_word_finds_its_subject(word: str, kind: type, name: str) -> None:
    found = find(word, knowledge())
    assert type(found) is kind
    assert getattr(found, "path" if kind is Key else "name") == name


def test_codes_and_the_overview() -> None:
    assert isinstance(find("mg101", knowledge()), Idea)
    assert isinstance(find("101", knowledge()), Idea)
    everything, codes = find(None, knowledge()), find("codes", knowledge())
    assert isinstance(everything, Overview)
    assert isinstance(codes, Overview)
    assert {"zero_optimization", "train_batch_size"} <= {key.path for key in everything.keys}
    assert codes.codes
    assert [item.code for item in codes.conversions][:2] == ["CV101", "CV102"]


def every_word() -> list[str | None]:
    known = knowledge()
    types = [*known.every_optimizer(), *known.every_scheduler()]
    parameters = [f"{facts.path}.{name}" for facts in types for name in facts.parameters]
    return [
        None,
        "codes",
        "MG101",
        "DF101",
        *(bug.id for bug in every_bug()),
        *(item.code for item in every_conversion()),
        *known.every_path(),
        *(facts.path for facts in types),
        *parameters,
    ]


@pytest.mark.broad
@pytest.mark.parametrize("version", [None, "0.9.0", "0.16.4"])
def test_every_subject_has_markdown_and_json_that_keeps_the_contract(version: str | None) -> None:
    known = knowledge(version)
    validator = jsonschema.Draft7Validator(SCHEMA)
    for word in every_word():
        subject = find(word, known)
        text = markdown.text(subject, known)
        assert text.startswith("# "), word
        assert text.endswith("\n"), word
        found = json.loads(json.dumps(document(subject, known), allow_nan=False))
        assert [error.message for error in validator.iter_errors(found)] == [], word


def test_a_bug_is_told_with_its_releases_its_condition_and_its_cure() -> None:
    known = knowledge()
    text = markdown.text(find("`Hpz-Stale-After-Load`", known), known)
    assert text.startswith("# hpz-stale-after-load\n")
    assert "DeepSpeed 0.10.0 to 0.18.2: the first step after loading a checkpoint" in text
    assert "`zero_optimization.stage` is `3`, `zero_optimization.zero_hpz_partition_size` > 1." in text
    assert "Fixed in 0.18.3; until then set `zero_optimization.zero_hpz_partition_size: 1`." in text
    assert "<https://github.com/deepspeedai/DeepSpeed/issues/7606>" in text


def test_a_key_lists_its_bugs_of_all_releases() -> None:
    known = knowledge("0.9.0")
    key = find("zero_optimization.overlap_comm", known)
    assert "- 0.12.4 to 0.18.9: `overlap_comm` lets the memory" in markdown.text(key, known)
    assert "overlap-comm-nan" in document(key, known)["bugs"]
    assert "Known bugs" not in markdown.text(find("dump_state", known), known)


def test_the_contract_is_a_schema_that_refuses() -> None:
    jsonschema.Draft7Validator.check_schema(SCHEMA)
    found = document(find("fp16.enabled", knowledge()), knowledge())
    for broken in ({**found, "version": 2}, {**found, "status": "perhaps"}, {**found, "about": "type"}):
        assert not jsonschema.Draft7Validator(SCHEMA).is_valid(broken)
