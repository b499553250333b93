"""The text of a config as a tree with exact ranges, and edits of it as edits of the text.

The dialect is what DeepSpeed's own loader accepts: Hjson, of which JSON is a part. Nothing here knows of DeepSpeed's
keys. ``parse`` and ``parse_bytes`` are the way in.
"""

from dsmigrate.document.document import Document, parse, parse_bytes
from dsmigrate.document.errors import DocumentError, EditError, PathError
from dsmigrate.document.nodes import Array, Key, Member, Node, Object, Scalar
from dsmigrate.document.paths import Path, parse_path, render_path
from dsmigrate.document.places import Place, Where
from dsmigrate.document.positions import Encoding, LineIndex, Position
from dsmigrate.document.problems import Breaks, Code, Problem
from dsmigrate.document.shapes import Style
from dsmigrate.document.textedits import TextEdit, apply

__all__ = [
    "Array",
    "Breaks",
    "Code",
    "Document",
    "DocumentError",
    "EditError",
    "Encoding",
    "Key",
    "LineIndex",
    "Member",
    "Node",
    "Object",
    "Path",
    "PathError",
    "Place",
    "Position",
    "Problem",
    "Scalar",
    "Style",
    "TextEdit",
    "Where",
    "apply",
    "parse",
    "parse_bytes",
    "parse_path",
    "render_path",
]
