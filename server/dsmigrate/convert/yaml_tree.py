"""YAML as a tree with places. Read as Accelerate does, by the rules of YAML 1.1: a bare ``no`` is false."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from dsmigrate.convert.model import ConvertError, Place
from dsmigrate.languages import say

if TYPE_CHECKING:
    from ruamel.yaml.nodes import Node

_DEEPEST = 32
_CONTROL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ud800-\udfff]")


@dataclass(frozen=True, slots=True)
class Entry:
    """A key of a mapping with its value: plain data, or the entries of the mapping that it is."""

    name: str
    value: Any
    place: Place
    entries: tuple[Entry, ...] | None = None
    is_plain: bool = True
    """Whether a scalar stands without quotes."""
    is_block: bool = True
    """Whether a mapping is written in lines, and not between braces."""

    def get(self, name: str) -> Entry | None:
        """Return the last entry of that name, which is the one that counts."""
        return last(self.entries or (), name)


def last(entries: tuple[Entry, ...], name: str) -> Entry | None:
    """Return the last entry of that name."""
    return next((entry for entry in reversed(entries) if entry.name == name), None)


def read(text: str) -> Entry:
    """Return the mapping that a YAML text is, as an entry without a name; an empty text is an empty one.

    Raises ConvertError, with the place, for text that is not YAML, holds several documents, or is no mapping.
    """
    from ruamel.yaml import YAML  # noqa: PLC0415 - costs as much as all else of a check
    from ruamel.yaml.error import MarkedYAMLError, YAMLError  # noqa: PLC0415
    from ruamel.yaml.nodes import MappingNode  # noqa: PLC0415
    from ruamel.yaml.scanner import Scanner  # noqa: PLC0415

    class Shallow(Scanner):
        """Looks at every open bracket for every token: a few thousand of them would take minutes."""

        def fetch_flow_collection_start(self, *words: Any, **more: Any) -> None:  # noqa: ANN401 - the library's
            if self.flow_level > _DEEPEST:
                raise ConvertError.at(say("the YAML is nested too deeply"), text, self.reader.index)
            super().fetch_flow_collection_start(*words, **more)

    strange = _CONTROL.search(text)
    if strange is not None:
        message = say("the character {character} cannot stand in YAML", character=ascii(strange[0]))
        raise ConvertError.at(message, text, strange.start())
    loader = YAML(typ="safe", pure=True)
    loader.version = (1, 1)
    loader.Scanner = Shallow
    try:
        node = loader.compose(text)
    except ConvertError:
        raise
    except MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        said = " ".join(str(error.problem or error.context or say("it cannot be parsed")).split())
        message = say("not valid YAML: {said}", said=said)
        raise ConvertError.at(message, text, mark.index if mark else 0) from None
    except (YAMLError, ValueError, TypeError, LookupError, AttributeError, AssertionError) as error:
        said = " ".join(str(error).split())[:200]
        raise ConvertError(say("not valid YAML: {said}", said=said), 1, 1) from None
    except RecursionError:
        raise ConvertError(say("the YAML is nested too deeply"), 1, 1) from None
    if node is None:
        return Entry("", {}, Place(0, 0, 0, len(text)), ())
    if not isinstance(node, MappingNode):
        raise ConvertError.at(say("the YAML is no mapping of keys to values"), text, node.start_mark.index)
    return _entry("", node, Place(node.start_mark.index, node.start_mark.index, *_span(node)), text, 0)


def _entry(name: str, node: Node, place: Place, text: str, depth: int) -> Entry:
    from ruamel.yaml.nodes import MappingNode, ScalarNode, SequenceNode  # noqa: PLC0415

    if depth > _DEEPEST:
        raise ConvertError.at(say("the YAML is nested too deeply"), text, place.start)
    if isinstance(node, MappingNode):
        entries = tuple(_entries(node, text, depth))
        value = {entry.name: entry.value for entry in entries}
        return Entry(name, value, place, entries, is_block=not node.flow_style)
    if isinstance(node, SequenceNode):
        for item in node.value:
            _refuse_alias(item, node.start_mark.index, text)
        return Entry(name, [_entry("", item, place, text, depth + 1).value for item in node.value], place)
    assert isinstance(node, ScalarNode)  # noqa: S101 - there are three kinds of nodes
    return Entry(name, scalar(node.value, str(node.tag)), place, is_plain=node.style is None)


def _entries(node: Any, text: str, depth: int) -> Iterator[Entry]:  # noqa: ANN401 - the library's node
    from ruamel.yaml.nodes import ScalarNode  # noqa: PLC0415

    for key, value in node.value:
        start, end = _span(key)
        if not isinstance(key, ScalarNode):
            raise ConvertError.at(say("a key of the YAML is no text"), text, start)
        if key.value == "<<":
            raise ConvertError.at(say("merge keys (<<) are not followed; write the keys out"), text, start)
        at = _span(value)
        _refuse_alias(value, start, text)
        if at[0] < start:  # an alias: its value stands at the anchor, elsewhere
            at = (start, end)
        elif at[0] == at[1]:  # nothing, for which the parser names the next thing there is
            at = (text.find(":", end) + 1 or end,) * 2  # "? key" has no colon
        yield _entry(str(key.value), value, Place(start, end, *at), text, depth + 1)


def _refuse_alias(node: Any, start: int, text: str) -> None:  # noqa: ANN401 - the library's node
    """Raise ConvertError for a node that stands before ``start`` and holds others: aliases can make it endless."""
    if isinstance(node.value, list) and node.start_mark.index < start:
        raise ConvertError.at(say("aliases (*name) of mappings and lists are not followed"), text, start)


def _span(node: Any) -> tuple[int, int]:  # noqa: ANN401 - the library's node
    """Return start and end of a node; the end of a block mapping without the blank lines behind it."""
    start, end = node.start_mark.index, node.end_mark.index
    inner = node.value
    if isinstance(inner, list) and inner and not node.flow_style:
        deepest = inner[-1][1] if isinstance(inner[-1], tuple) else inner[-1]
        if deepest.start_mark.index > start:  # an alias stands at its anchor
            end = max(_span(deepest)[1], start)
    return start, end


_INTEGER = re.compile(r"[-+]?(?:0|[1-9][0-9_]*)")
_FLOAT = re.compile(r"[-+]?(?:[0-9][0-9_]*)\.[0-9_]*(?:[eE][-+][0-9]+)?|[-+]?\.[0-9_]+(?:[eE][-+][0-9]+)?")
_LONGEST = 300


def scalar(text: str, tag: str) -> Any:  # noqa: ANN401 - whatever it is
    """Return what PyYAML makes of a plain scalar of a tag; numbers that it leaves as text (``1e-5``) stay text."""
    kind = tag.rpartition(":")[2]
    if kind == "null":
        return None
    if kind == "bool":
        return text.lower() in {"yes", "true", "on", "y"}
    if kind == "int" and _INTEGER.fullmatch(text) and len(text) < _LONGEST:
        return int(text.replace("_", ""))
    if kind == "float" and _FLOAT.fullmatch(text):
        return float(text.replace("_", ""))
    return text
