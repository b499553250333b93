"""Sizes of tensors from the header of a .safetensors file: eight bytes of length, then JSON. No weight is read.

The format is https://github.com/huggingface/safetensors; the largest header is the library's own limit.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any, TypeGuard

from dsmigrate.files.reading import opened
from dsmigrate.files.text import SourceError
from dsmigrate.memory.sources.config import load
from dsmigrate.memory.sources.errors import ModelError

_LARGEST_HEADER = 100_000_000
_MOST_FILES = 10_000
_BITS = {
    "F64": 64, "F32": 32, "F16": 16, "BF16": 16, "F8_E4M3": 8, "F8_E5M2": 8, "F8_E8M0": 8, "F6_E2M3": 6, "F6_E3M2": 6,
    "F4": 4, "I64": 64, "I32": 32, "I16": 16, "I8": 8, "U64": 64, "U32": 32, "U16": 16, "U8": 8, "BOOL": 8, "C64": 64,
}  # fmt: skip
_BUFFERS = ("e_score_correction_bias", "rotary_emb.inv_freq", "attn.masked_bias")
"""How names of tensors end that are stored with the weights, and never trained."""
_WEIGHTS = frozenset({"F64", "F32", "F16", "BF16", "F8_E4M3", "F8_E5M2"})


@dataclass(frozen=True, slots=True)
class Tensors:
    """The tensors of a checkpoint in the order of the file: elements of those that train, and what else is there.

    ``formats`` are the formats of the weights. ``others`` counts tensors of whole numbers, which quantised weights and
    buffers are stored as.
    """

    sizes: tuple[int, ...]
    formats: frozenset[str]
    others: int


def read(file: Path) -> Tensors:
    """Return the tensors of a .safetensors file, or of all the files that an index names.

    Raises ModelError with the file, the tensor and what is wrong.
    """
    headers = [_header(one) for one in _files(file)]
    sizes = tuple(elements for header in headers for format_, elements in header if format_ in _WEIGHTS)
    if not sizes:
        raise ModelError(f"{file}: no tensor of floating-point weights in it")
    formats = frozenset(format_ for header in headers for format_, _ in header if format_ in _WEIGHTS)
    return Tensors(sizes, formats, sum(format_ not in _WEIGHTS for header in headers for format_, _ in header))


def _files(file: Path) -> list[Path]:
    """Return the files themselves; names of an index stay in its folder."""
    if not file.name.endswith(".json"):
        return [file]
    named = load(file).get("weight_map")
    if not isinstance(named, Mapping) or not named:
        raise ModelError(f"{file}: no weight_map: not an index of .safetensors files")
    found = list(dict.fromkeys(named.values()))
    if len(found) > _MOST_FILES:
        raise ModelError(f"{file}: {len(found)} files, more than {_MOST_FILES}")
    for name in found:
        if not isinstance(name, str) or PurePosixPath(name).name != name or not name.endswith(".safetensors"):
            raise ModelError(f"{file}: weight_map names {name!r}, which is not a .safetensors file beside it")
    return [file.parent / name for name in found]


def _header(file: Path) -> list[tuple[str, int]]:
    """Return format and elements of each tensor, in the order in which they lie in the file."""
    try:
        with opened(file) as stream:
            whole = os.fstat(stream.fileno()).st_size
            start = stream.read(8) or b""  # None where /proc has nothing to say yet
            length = int.from_bytes(start, "little")
            if len(start) < 8 or not 2 <= length <= min(_LARGEST_HEADER, whole - 8):
                raise ModelError(
                    f"{file}: the header is said to have {length} bytes, the file has {whole}: not .safetensors, "
                    "or cut off (a Git LFS pointer is a text of 130 bytes)"
                )
            text = stream.read(length) or b""
    except SourceError as error:
        raise ModelError(f"{file}: {error.message}") from None
    except OSError as error:
        raise ModelError(f"{file}: cannot be read: {error.strerror}") from None
    try:
        found = json.loads(text)
    except json.JSONDecodeError as error:
        raise ModelError(f"{file}: header, byte {8 + error.pos}: not JSON: {error.msg}") from None
    except (RecursionError, ValueError):
        raise ModelError(f"{file}: the header is not JSON in UTF-8") from None
    if not isinstance(found, dict):
        raise ModelError(f"{file}: the header is {type(found).__name__}, not an object")
    return _sorted(file, found, whole - 8 - length)


def _sorted(file: Path, header: Mapping[str, Any], held: int) -> list[tuple[str, int]]:
    tensors = sorted(_tensors(file, header, held))
    return [(format_, elements) for _, format_, elements in tensors]


def _tensors(file: Path, header: Mapping[str, Any], held: int) -> Iterator[tuple[int, str, int]]:
    """Yield offset, format and elements; raises ModelError where shape, format and bytes disagree."""
    for name, entry in header.items():
        if name == "__metadata__" or name.endswith(_BUFFERS):
            continue
        said = f"{file}: tensor {name[:100]!r}"
        values = entry if isinstance(entry, dict) else {}
        format_, shape, place = values.get("dtype"), values.get("shape"), values.get("data_offsets")
        if not isinstance(format_, str) or format_ not in _BITS:
            raise ModelError(f"{said}: dtype {format_!r} is not known")
        if not _counts(shape) or not _counts(place) or len(place) != 2 or not place[0] <= place[1] <= held:
            raise ModelError(
                f"{said}: shape {shape!r:.100} or data_offsets {place!r:.100} make no sense in {held} bytes"
            )
        elements = math.prod(shape)
        if elements * _BITS[format_] != 8 * (place[1] - place[0]):
            raise ModelError(f"{said}: {elements} elements of {format_} do not take {place[1] - place[0]} bytes")
        yield place[0], format_, elements


def _counts(value: Any) -> TypeGuard[list[int]]:  # noqa: ANN401 - whatever the header holds
    return (
        isinstance(value, list)
        and len(value) <= 16
        and all(isinstance(one, int) and not isinstance(one, bool) and 0 <= one < 1 << 48 for one in value)
    )
