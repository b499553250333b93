"""The tree means what the loaders mean: hjson as DeepSpeed calls it, and strict JSON."""

from __future__ import annotations

import pytest
from hypothesis import given

from dsmigrate.document import Code, Document, parse
from tests.document import loader, samples, texts


def assert_as_loaded(text: str) -> Document:
    document = parse(text)
    fatal = [item for item in document.problems if item.is_fatal]
    accepted, loaded = loader.deepspeed(text)
    assert accepted == document.is_readable, (text, fatal, loaded)
    if accepted:
        assert repr(document.value()) == repr(loaded), text
    elif all(item.code is Code.DUPLICATE_KEY for item in fatal):
        accepted, loaded = loader.deepspeed(text, duplicates=True)
        assert accepted, text
        assert repr(document.value()) == repr(loaded), text
    assert document.is_strict_json == loader.is_json(text), (text, document.problems)
    assert all(0 <= item.start <= item.end <= len(text) for item in document.problems), text
    return document


@pytest.mark.parametrize("text", samples.ALL.values(), ids=samples.ALL)
def test_a_sample_is_read_as_deepspeed_reads_it(text: str) -> None:
    assert_as_loaded(text)


@pytest.mark.parametrize("name", samples.WHOLE)
def test_a_whole_sample_has_no_fatal_problem(name: str) -> None:
    codes = {item.code for item in parse(samples.WHOLE[name]).problems if item.is_fatal}
    assert codes == ({Code.DUPLICATE_KEY} if name == "duplicate keys" else set())


@pytest.mark.parametrize("text", samples.HALF.values(), ids=samples.HALF)
def test_a_half_typed_sample_has_one(text: str) -> None:
    assert not parse(text).is_readable


@texts.GENERAL
@given(texts.TEXTS)
def test_any_text_is_read_as_deepspeed_reads_it(text: str) -> None:
    assert_as_loaded(text)


@pytest.mark.skipif(not texts.corpus(), reason=texts.NO_CORPUS)
def test_real_configs_are_read_as_deepspeed_reads_them() -> None:
    for text in texts.corpus().values():
        assert_as_loaded(text)


@pytest.mark.skipif(not texts.corpus(), reason=texts.NO_CORPUS)
def test_real_configs_cut_off_anywhere_are_read_as_deepspeed_reads_them() -> None:
    for number, text in enumerate(texts.corpus().values()):
        for end in range(number % 37, len(text), 37 if texts.EXPLORE else 370):
            assert_as_loaded(text[:end])
