"""Texts of every kind the dialect knows: whole, half typed, and odd."""

from __future__ import annotations

import itertools

CONFIG = """{
    "train_batch_size": "auto",
    "gradient_clipping": 1.0,
    "zero_optimization": {
        "stage": 3,
        "offload_optimizer": {"device": "cpu", "pin_memory": true},
        "reduce_bucket_size": 5e8
    },
    "optimizer": {
        "type": "AdamW",
        "params": {"lr": 3e-5, "betas": [0.9, 0.999], "eps": 1e-8}
    },
    "steps_per_print": 2000
}
"""

HJSON = """# how we train
train_batch_size: 32
fp16: {
  enabled: true   // off on CPU
  loss_scale: 0
}
optimizer:
{
  type: Adam
  params: {
    lr: 1e-4, eps: 1e-8
    betas: [0.9, 0.95]
  }
}
note: spaces, commas, and # marks are text here
"""

WHOLE = {
    "config": CONFIG,
    "hjson": HJSON,
    "empty": "",
    "blank": " \n\t\r\n",
    "only a comment": "# nothing yet\n",
    "empty object": "{}",
    "empty object with blanks": "{ \n }\n",
    "empty array": "[]",
    "one line": '{"a": 1, "b": {"c": [1, 2, {"d": null}]}, "e": "x"}',
    "tabs": '{\n\t"a": 1,\n\t"b": {\n\t\t"c": 2\n\t}\n}\n',
    "two blanks": '{\n  "a": {\n    "b": {\n      "c": {}\n    }\n  }\n}',
    "crlf": CONFIG.replace("\n", "\r\n"),
    "cr": CONFIG.replace("\n", "\r"),
    "byte-order mark": "\ufeff" + CONFIG,
    "byte-order mark read as latin-1": '\xef\xbb\xbf{"a": 1}',
    "comments of all kinds": '{\n  # one\n  "a": 1, // two\n  /* three */ "b": /* four */ 2 /* five\n 6 */\n}// 7',
    "comment marks in strings": '{"a": "# // /* no */", "b": "x"}',
    "trailing commas": '{"a": [1, 2,], "b": {"c": 3,},}',
    "commas missing": '{\n  "a": 1\n  "b": [1\n 2\n "x" "y"]\n  "c": {"d": "e" "f": "g"} "h": true\n}',
    "commas first": '{\n  "a": 1\n  , "b": 2\n  , "c": {"d": 3\n  , "e": 4}\n}',
    "unquoted keys": "{a: 1, b-c: 2, d.e: 3, f/g: 4, h#i: 5, ünï: 6}",
    "single quotes": "{'a': 'b', \"c\": 'd\"e', 'f': \"g'h\"}",
    "quoteless": "{\n a: auto\n b: two words, and a comma\n c: x # not a comment\n d: true story\n e: 1 2\n}",
    "quoteless in an array": "[\n  one\n  two, three\n  4\n]",
    "literals before marks": "{a: true# c\n b: false// c\n c: null/* c */, d: 1# c\n e: [true, null]}",
    "numbers": "[0, -0, -0.0, 1.0, 1.5, 5e8, 5E+8, 2e-3, 1e9, 1e10, 12345678901234567890, 1e22, 0.1e1]",
    "number-like strings": "[\n01\n+1\n.5\n5.\n1e\n0x10\n1_000\n--1\n1.e5\n- 1\n]",
    "constants": "{a: NaN\n b: Infinity\n c: -Infinity\n}",
    "foreign digits": "{a: 1\u0662, b: \u0661\n}",
    "foreign blanks": "{a: true\xa0, b: x\x0b\n c: \u20035\n d: 5\x0c\n}",
    "escapes": r'{"a": "\"\\\/\b\f\n\r\t", "b": "\u00e9\ud83d\ude00\ud800", "c\n": 1}',
    "foreign escapes": r"""{"a": "\'", "b": "\u 041\u+041"}""",
    "unicode": '{"ключ": "значение", "😀": "\u2028\u2029\x7f", "é": ["e\u0301"]}',
    "lone surrogates": '{"a\ud800": "\udc00"}',
    "multi-line strings": "{\n  a: '''\n     one\n       two\n     three\n     '''\n  b: '''x''' c: 1\n}",
    "multi-line string on the first line": "{a: '''one\n        two'''\n  }",
    "multi-line string with crlf": "{\r\n  a:\r\n    '''\r\n    one\r\n\r\n    two'''\r\n}",
    "no root braces": "a: 1\nb: {c: 2}\n'd': [3]\n",
    "no root braces on one line": "a: 1, b: 2,",
    "root string": '"text" // and a comment',
    "root number": " 5e8\n",
    "root word": "hello # world",
    "root word that looks like a member": "stage:",
    "key on another line": '{\n"a"\n:\n1\n,\nb\n:\n2}',
    "empty key": "{\"\": 1, '': 2\n}".replace("'': 2", '"b": 2'),
    "keys with dots": '{"a.b": {"c[0]": 1, "d e": {"\\"": 2}}}',
    "duplicate keys": '{"a": 1, "b": {"c": 1, "c": {"d": 2}}, "a": [3]}',
    "control characters outside strings": "{a: x\x00y\n b\x01: 1}",
    "braces in strings": '{"a": "{[", "b": "]}", "c": "\\"}"}',
}

HALF = {
    "key begun": '{"a": 1, "zero_op',
    "key begun before others": '{\n  "a": 1,\n  "zero_op\n  "b": 2\n}',
    "bare key begun": '{\n  "a": 1,\n  stag\n}',
    "colon missing": '{"a" 1, "b": 2}',
    "colon missing before an object": '{"a" {"b": 1}, "c": 2}',
    "value missing": '{"a": , "b": 2}',
    "value missing before a line": '{\n  "a":\n  "b": 2\n}',
    "value missing at the end": '{"a": 1, "b":}',
    "value begun": '{"a": tru, "b": 2}',
    "value begun in an array": '{"a": [1, fal], "b": 2}',
    "string begun": '{\n  "a": "aut\n  "b": 2\n}',
    "brace missing": '{"a": {"b": 1, "c": 2}',
    "bracket missing": '{"a": [1, 2, "b": 3}',
    "wrong bracket": '{"a": [1, 2}, "b": 3}',
    "one brace too many": '{"a": {"b": 1}}, "c": 2}',
    "commas in a row": '{"a": 1,, "b": [,1,,2]}',
    "colons in a row": '{"a":: 1, : 2, [3]}',
    "object where a key belongs": '{{"a": 1}, "b": 2}',
    "comment not ended": '{"a": 1 /* and',
    "text behind": '{"a": 1} and more',
    "bad escapes": r'{"a": "\q\u12", "b\x": 1}',
    "tab in a string": '{"a": "x\ty", "b": 2}',
    "comment before the colon of a bare key": "{a /* c */ : 1}",
    "bare key of two words": "{a b: 1}",
    "only a brace": "{",
    "only a bracket": "]",
    "only a quote": '"',
    "only a comma": ",",
    "mark and nothing else": "\ufeff",
    "number too large": '{"a": 1e400}',
    "multi-line string on one line": "{a: '''x'''}",
    "multi-line string not ended": "{\na: '''x\n  y",
    "negative escape": r'{"a": "\u-041"}',
}

ALL = {**WHOLE, **HALF}

PIECES = [
    *"{}[]:,\"'#/\n\r\t \\",
    *('"a"', '"b"', "a", "b", "a b", "'c'", "'''x'''", "'''\n  x\n y'''", "'''", "//", "/*", "*/", "\r\n", "  "),
    *("1", "-1", "0", "01", "1.5", "5e8", "1e10", "1e400", "-0", "-0.0", ".5", "5.", "true", "false", "null", "tru"),
    *("NaN", "Infinity", "-Infinity", "\x0b", "\xa0", "\u0661", "1\u0662", "\\n", "\\u0041", "\\u+041", "\\u-041"),
    *(
        "\\ud800",
        "\\udc00",
        "\\u 41",
        "\\u\r\n04",
        "\ufeff",
        "\xef\xbb\xbf",
        "\x00",
        '"x\ty"',
        '"\\\'"',
        "é",
        "😀",
        "\ud800",
    ),
    *("# c\n", "// c\n", "/* c */", "a: 1", '"a": 1', '"k": "v",\n', "{\n", "\n}", "a:", "foo # bar\n"),
]
"""What random texts and random edits are made of."""

SCALARS = [
    *("1", "2.5", "5e8", "true", "false", "null", '"s"', "'s'", "auto\n", "foo # bar\n", "-0", "1e10", "tru", '"\\n"'),
    *("NaN\n", "1 ", "true # x\n", "'''m\n  n'''", '"\\u00e9"'),
]
KEYS = ['"a"', '"b"', "c", "d", '"e.f"', "'g'", "h#i", "j/", "k"]
BLANKS = ["", "", " ", "\n", "\r\n", "\t", "# c\n", "/* c */ ", "\n  "]


def cases() -> list[tuple[str, str]]:
    """Return all samples with their names."""
    return list(itertools.chain(ALL.items()))
