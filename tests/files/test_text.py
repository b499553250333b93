from __future__ import annotations

import codecs

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dsmigrate.files.text import SourceError, decode, encode, newline_of


@pytest.mark.parametrize(
    ("source", "line", "says"),
    [
        (b"x = 1\ny = '\xff'\n", 2, "byte 0xff is not valid utf-8"),
        (b"\n" * 3000 + b"\xe9", 3001, "byte 0xe9 is not valid utf-8"),
        (b"x = 1\n\x00\n", 2, "NUL byte"),
        (b"\x7fELF\x02\x01\x01\x00", 1, "NUL byte"),
        ("x = 1\n".encode("utf-16"), 1, "UTF-16"),
        (b"# coding: klingon\n", 1, "unknown encoding: klingon"),
        (b"# coding: rot13\nk\n", 1, "not a text encoding"),
        (codecs.BOM_UTF8 + b"# coding: latin-1\n", 1, "encoding problem"),
        (b"# coding: utf-7\nx = 1  # +AGE-\n", 1, "do not survive"),
    ],
)
def test_what_is_not_text_is_refused_with_its_line(source: bytes, line: int, says: str) -> None:
    with pytest.raises(SourceError) as caught:
        decode(source)
    assert caught.value.line == line
    assert says in caught.value.message


@pytest.mark.parametrize(
    ("source", "encoding", "bom", "newline"),
    [
        (b"", "utf-8", False, "\n"),
        (b"x = 1", "utf-8", False, "\n"),
        (b"x = 1\r\ny = 2\r\nz = 3\n", "utf-8", False, "\r\n"),
        (b"x = 1\ry = 2\r", "utf-8", False, "\r"),
        (codecs.BOM_UTF8 + b"x = 1\n", "utf-8", True, "\n"),
        ("# -*- coding: latin-1 -*-\nx = 'é'\n".encode("latin-1"), "iso-8859-1", False, "\n"),
        ("#!/usr/bin/python\n# vim: set fileencoding=cp1251 :\nx = 'ж'\n".encode("cp1251"), "cp1251", False, "\n"),
        (("é" * 5000).encode(), "utf-8", False, "\n"),
    ],
)
def test_text_is_read_as_python_reads_it_and_comes_back_unchanged(
    source: bytes, encoding: str, bom: bool, newline: str
) -> None:
    found = decode(source)
    assert (found.encoding, found.bom, found.newline) == (encoding, bom, newline)
    assert encode(found.text, found) == source


def test_a_character_without_a_form_in_the_encoding_is_named_with_its_line() -> None:
    found = decode(b"# coding: latin-1\nx = 1\n")
    with pytest.raises(SourceError) as caught:
        encode("a\nb\n\u0436", found)
    assert caught.value.line == 3
    assert "'\\u0436' has no form in iso-8859-1" in caught.value.message


def test_the_commonest_line_end_wins() -> None:
    assert newline_of("a\r\nb\nc\n") == "\n"
    assert newline_of("a\r\nb\r\nc\n") == "\r\n"


@given(st.binary())
def test_any_bytes_come_back_unchanged_or_are_refused(source: bytes) -> None:
    try:
        found = decode(source)
    except SourceError as error:
        assert 1 <= error.line <= source.count(b"\n") + source.count(b"\r") + 1
    else:
        assert encode(found.text, found) == source
